import re

import pytest
from sklearn import config_context
from sklearn.base import BaseEstimator
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from deccs import DECCS
from deccs.notebook import summary_html
from tests.helpers.counted import give_count


def without_numbers(html):
    """Every diagram has another number in its ids."""
    return re.sub(r"\d+", "", html)


def test_a_fitted_model_shows_its_summary_below_scikit_learn_s_diagram(fitted):
    shown = fitted._repr_html_()
    diagram = BaseEstimator._html_repr(fitted)
    assert without_numbers(shown).startswith(without_numbers(diagram)[:200])
    assert f"{fitted.agreement_:.3f} after it" in shown
    assert "60, 60, 60" in shown  # the three blobs
    assert fitted._repr_mimebundle_()["text/html"].endswith("</table>")


def test_scikit_learn_s_own_ways_stay(fitted):
    assert "Summary of the fit" not in DECCS(3)._repr_html_()
    assert "DECCS" in make_pipeline(StandardScaler(), fitted)._repr_html_()
    with config_context(display="text"):
        assert not hasattr(fitted, "_repr_html_")
        assert "text/html" not in fitted._repr_mimebundle_()


def test_names_of_members_are_escaped(small, blobs):
    model = small(members=[("<b>x", blobs.y), ("y", blobs.y)]).fit(blobs.X)
    summary = model._repr_html_().split('aria-label="Summary of the fit"')[1]
    assert "&lt;b&gt;x" in summary and "<b>" not in summary


@pytest.mark.parametrize("repr_of", [repr, str])
def test_the_text_is_scikit_learn_s(fitted, repr_of):
    assert repr_of(fitted).startswith("DECCS(")


def test_the_number_of_clusters_that_was_found_comes_first(small, blobs):
    model = small().fit(blobs.X)
    assert "answer" not in summary_html(model)
    give_count(model, blobs.X, [2, 3, 4], verdicts=["stable", "stable", "<b>"])
    rows = re.findall(r"<th[^>]*>(.*?)</th><td[^>]*>(.*?)</td>", summary_html(model))
    assert rows[0] == ("answer", "3 clusters.")
    assert rows[1] == ("stability", "Cluster 2 is &lt;b&gt;.")
