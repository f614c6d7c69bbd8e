"""What the report shows of a table with columns of any kind."""

import re
from html import unescape

import numpy as np
import pytest

from deccs.describing.columns import Described
from deccs.describing.description import describe
from deccs.report import write_report
from deccs.report.by_kinds import bars
from tests.describing.tables import CITIES, HOSTILE, levels, number, random_table
from tests.helpers.report_stand_in import StandIn
from tests.report.test_report import NASTY, Page

EACH = 40  # rows of each of two clusters


@pytest.fixture
def table():
    """Two clusters: low and high income, many of Rome, more gaps."""
    income = number(
        np.concatenate([np.arange(40) + 10, np.arange(40) + 90]), "net_income", whole=True
    )
    city = levels(np.concatenate([np.repeat([0, 1], 20), np.repeat([2, 1], [30, 10])]), CITIES)
    phone = number(np.where(np.arange(80) % 40 < np.repeat([4, 32], 40), np.nan, 1.0), "phone")
    joined = Described("joined", "date", np.concatenate([np.arange(40), 2_000 + np.arange(40.0)]))
    return [income, city, phone, joined], np.repeat([0, 1], EACH)


def fitted(labels):
    X = np.column_stack([np.random.default_rng(0).normal(size=(len(labels), 3)), labels])
    return StandIn().fit(X), X


def written(tmp_path, table, **options):
    columns, labels = table
    write_report(*fitted(labels), tmp_path / "report.html", described=columns, **options)
    return (tmp_path / "report.html").read_text(encoding="utf-8")


def cards(text):
    """The words of each card."""
    found = re.findall(r'<article class="card">(.*?)</article>', text, re.S)
    return [" ".join(unescape(re.sub(r"<[^>]+>", " ", card)).split()) for card in found]


def test_cards_have_names_rules_and_differences_of_each_kind(tmp_path, table):
    low, high = cards(written(tmp_path, table))
    assert low.startswith(
        "0 · low net income, phone given 40 points net income <= 70 right for 100 %"
    )
    assert "net income 29.5 69.5" in low and "no phone 10 % 45 %" in low
    assert high.startswith("1 · high net income, Rome 40 points")
    assert "city Rome 75 % 38 %" in high and "no phone 80 % 45 %" in high
    assert "joined 3 to 23 July 1975 1970 to 1975" in high  # days 2,010 to 2,029 since 1970


def test_names_stand_beside_the_numbers_everywhere(tmp_path, table):
    text = written(tmp_path, table)
    page = Page(text)
    assert page.data["names"] == ["low net income, phone given", "high net income, Rome"]
    sizes = text.split('id="sizes-head"')[1].split("</section>")[0]
    uncertain = text.split('id="uncertain-head"')[1].split("</section>")[0]
    for part in (sizes, uncertain):
        assert " 1 · high net income, Rome</span>" in part


def test_names_may_be_given_and_must_be_one_for_each_cluster(tmp_path, table):
    text = written(tmp_path, table, names=["poor", "cluster 1"])
    assert Page(text).data["names"] == ["poor", ""]
    assert cards(text)[0].startswith("0 · poor") and cards(text)[1].startswith(
        "Cluster 1 40 points"
    )
    model, X = fitted(table[1])
    write_report(model, X, tmp_path / "plain.html", names=["poor", NASTY], feature_names="abcd")
    plain = (tmp_path / "plain.html").read_text()
    assert cards(plain)[0].startswith("0 · poor") and Page(plain).of("b") == []
    with pytest.raises(ValueError, match="each of the 2 clusters, got 1"):
        write_report(model, X, tmp_path / "no.html", names=["poor"])
    with pytest.raises(ValueError, match=r"'age' of described .* shape \(80,\); got shape \(3,\)"):
        write_report(model, X, tmp_path / "no.html", described=[number([1, 2, 3], "age")])
    assert not (tmp_path / "no.html").exists()


def test_without_them_the_page_has_no_names(tmp_path, table):
    model, X = fitted(table[1])
    write_report(model, X, tmp_path / "report.html")
    text = (tmp_path / "report.html").read_text()
    assert Page(text).data["names"] is None and 'class="named"' not in text
    assert cards(text)[0].startswith("Cluster 0 ")


def test_a_cluster_without_a_rule_says_so(tmp_path):
    noise = [number(np.tile(np.arange(40), 2), "noise")]
    first, _ = cards(written(tmp_path, (noise, np.repeat([0, 1], EACH))))
    assert first == (
        "Cluster 0 40 points No simple rule finds this cluster. "
        "In no column does it differ much from all rows."
    )


def test_empty_clusters_and_noise_are_shown(tmp_path, table):
    columns, labels = table
    labels = np.where(np.arange(80) < 10, -1, np.where(labels == 1, 2, 0))
    found = cards(written(tmp_path, (columns, labels)))
    assert len(found) == 3 and found[1] == "Cluster 1 0 points No point has this label."


def widths(html):
    """(margin, width) of each bar in percent."""
    return [
        (float(a), float(b))
        for a, b in re.findall(r"margin-left:(-?[\d.]+)%;width:([\d.]+)%", html)
    ]


def test_bars_are_as_long_as_what_they_show(table):
    columns, labels = table
    line = {each.said.what: each for each in describe(columns, labels, 2).differences[1]}
    assert widths(bars(line["city Rome"], 3)) == [(0, 75), (0, 37.5)]
    assert widths(bars(line["no phone"], 3)) == [(0, 80), (0, 45)]
    income = line["net income"]
    assert f"--v:{income.effect / 3 * 50:.1f}%" in bars(income, 3) and "up" in bars(income, 3)
    (here_from, here), (all_from, all_) = widths(bars(line["joined"], 3))
    # Half of the cluster within 19.5 days of the 2,000 and some that half of all rows cover.
    assert here < all_ / 50 and here_from + here <= 100 and all_from >= 0
    assert 'class="c1"' in bars(line["joined"], 3)


@pytest.mark.parametrize("seed", range(6))
def test_bars_stay_inside_for_any_table(seed):
    columns, labels = random_table(seed)
    columns.append(number(np.where(np.isnan(columns[0].values), np.nan, 5e307 * labels), "wild"))
    for line in describe(columns, labels, 4).differences:
        for each in line:
            for margin, width in widths(bars(each, 9)):
                assert margin >= -0.1 and width >= 0 and margin + width <= 100.2


def test_strings_from_tables_do_no_harm(tmp_path):
    columns, labels = random_table(1, names=[NASTY, *HOSTILE[:5]])
    columns = [
        Described(c.name, c.kind, c.values, tuple([NASTY, *HOSTILE][: len(c.levels)]), c.whole)
        for c in columns
    ]
    page = Page(written(tmp_path, (columns, labels)))
    assert page.of("b") == [] and page.of("img") == [] and len(page.of("script")) == 2
    assert all(not name.startswith("on") for _, attributes in page.elements for name in attributes)
