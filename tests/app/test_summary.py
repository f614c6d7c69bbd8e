"""What the summary of a run says of the number of clusters and of how stable they are."""

import json
from pathlib import Path

import pytest

from deccs.app.summary import cluster_facts, k_facts, summary_text
from tests.helpers.counted import give_count


@pytest.fixture
def counted(small, blobs):
    model = small().fit(blobs.X)
    verdicts = ["stable", "dissolves", "doubtful"]
    return give_count(model, blobs.X, [2, 3, 4], runners_up=[4], verdicts=verdicts)


def text_of(model, X):
    facts = {
        "data": {"rows_without_label": 0},
        "seconds": {"read": 0.0, "fit": 1.0},
        **k_facts(model),
        **cluster_facts(model, model.answer(X)),
    }
    return summary_text(Path("run"), json.loads(json.dumps(facts)))


def test_candidates_with_their_reasons_and_the_sentence(counted):
    facts = k_facts(counted)["k"]
    assert facts["n_clusters"] == 3 and facts["is_clear"] is True
    assert facts["sentence"].startswith("3 clusters")
    supports = counted.count_.curves["support"]
    assert facts["candidates"] == [
        {"k": 3, "support": supports[1], "reasons": ["a reason"]},
        {"k": 4, "support": supports[2], "reasons": ["a reason"]},
    ]


def test_stability_of_each_cluster(counted, blobs):
    facts = cluster_facts(counted, counted.answer(blobs.X))
    assert facts["clusters"][1]["stability"] == {
        "verdict": "dissolves",
        "jaccard": 0.3,
        "reference": 0.4,
        "agreement": 0.7,
        "separation": 0.2,
    }
    assert facts["stability"] == {
        "sentence": "Cluster 1 dissolves when the data are drawn again; 2 is doubtful.",
        "stable": 1,
        "clusters": 3,
    }


def test_the_sentence_comes_first_in_the_terminal(counted, blobs):
    first, second, third, *_ = text_of(counted, blobs.X).splitlines()
    assert first.startswith("answer      3 clusters; 4 would also be defensible: it splits ")
    assert second == "clusters    0: 60, 1: 60, 2: 60"
    assert third == (
        "stability   Cluster 1 dissolves when the data are drawn again; 2 is doubtful."
    )


def test_a_model_that_was_told_the_number_says_nothing_of_it(fitted, blobs):
    assert k_facts(fitted) == {}
    text = text_of(fitted, blobs.X)
    assert text.startswith("clusters    0: 60")
    assert "stability   All clusters are stable." in text  # that is known without a search, too
