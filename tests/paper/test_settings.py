"""The paper's settings as data."""

import pytest

from deccs.consensus import FUNCTIONS
from deccs_paper.settings import METHODS, PAPER, estimator_for


@pytest.mark.parametrize("name", PAPER)
def test_the_papers_settings(name):
    model = estimator_for(name, random_state=7)
    linkage = dict(model.members)["agglomerative"].linkage
    images = name in ("mnist", "fmnist", "kmnist", "usps")
    assert model.rounds.lambda_cons == (0.1 if images else 10)
    assert linkage == ("single" if name == "synth" else "ward")
    small = {"synth": (20, 20, 2), "mice": (256, 128, 64)}
    assert model.network.layers == small.get(name, (500, 500, 2000, 10))
    assert model.random_state == 7
    assert model.views is None


def test_changes_reach_nested_settings():
    model = estimator_for("usps", rounds__n_rounds=2, pretraining__n_epochs=3, scale=None)
    assert (model.rounds.n_rounds, model.pretraining.n_epochs, model.scale) == (2, 3, None)
    assert model.rounds.lambda_cons == 0.1  # the paper's, which was not changed
    with pytest.raises(ValueError, match="Invalid parameter 'lambda'"):
        estimator_for("usps", rounds__lambda=1)


def test_an_unknown_data_set_lists_those_that_exist():
    with pytest.raises(ValueError, match="No settings for data set 'iris'; there are synth, mice"):
        estimator_for("iris")


def test_the_consensus_functions_of_the_comparison_are_fixed():
    """A new function must not make the published runs incomplete."""
    names = METHODS["consensus"].functions
    assert names == ("cspa", "hgpa", "mcla", "supra", "hbgf", "nmf", "eac", "lwea", "lwgp")
    assert METHODS["AE+consensus"].functions == names and set(names) <= set(FUNCTIONS)
