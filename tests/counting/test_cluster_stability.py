"""Is this cluster real? Jaccard similarities by hand, and verdicts on clear clusters and on noise."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from deccs import ConsensusClustering
from deccs.counting import cluster_stability as module
from deccs.counting.cluster_stability import (
    ABOVE_CHANCE,
    DOUBTFUL,
    LEAST_ROWS,
    STABLE,
    VERY_STABLE,
    Drawn,
    Members,
    best_jaccard,
    draw,
    stability_of,
    verdict,
)
from deccs.data.source import source_of
from tests.helpers.quick_count import quick_counts


@pytest.fixture(scope="module", autouse=True)
def quick():
    with quick_counts():
        yield


def three_blobs(n=30):
    rng = np.random.default_rng(0)
    return rng.normal(size=(3 * n, 2)) + np.repeat([[0, 0], [12, 0], [0, 12]], n, axis=0)


@pytest.fixture(scope="module")
def clear():
    return stability_of(Drawn(three_blobs(), np.repeat([0, 1, 2], 30), 0))


# ---- by hand


def test_the_most_similar_cluster_by_hand():
    labels = np.array([0, 0, 0, 0, 1, 1, 2])
    other = np.array([0, 0, 0, 1, 1, 1, 1])
    # 3 of 4 points; {4, 5} in {3, 4, 5, 6}; {6} in the same
    assert_allclose(best_jaccard(labels, other, 3), [3 / 4, 2 / 4, 1 / 4])
    assert_array_equal(best_jaccard(labels, labels, 3), [1, 1, 1])


def test_a_cluster_without_rows_is_unknown():
    assert_array_equal(best_jaccard(np.array([0, 2]), np.array([0, 1]), 4), [1, np.nan, 1, np.nan])


@pytest.mark.parametrize("seed", range(5))
def test_best_jaccard_equals_a_slow_loop(seed):
    rng = np.random.default_rng(seed)
    labels, other = rng.integers(0, 5, 40), rng.integers(0, 7, 40)
    slow = []
    for c in range(5):
        rows = set(np.flatnonzero(labels == c))
        others = [set(np.flatnonzero(other == d)) for d in range(7)]
        slow.append(max(len(rows & each) / len(rows | each) for each in others if rows | each))
    assert_allclose(best_jaccard(labels, other, 5), slow)


@pytest.mark.parametrize(
    ("jaccard", "reference", "depth", "expected"),
    [
        (1.0, 0.5, 1.0, "very stable"),
        (VERY_STABLE, 0.5, -1.0, "very stable"),  # more than chance, although without a valley
        (VERY_STABLE, VERY_STABLE, 0.1, "very stable"),  # as by chance, but there is a valley
        (VERY_STABLE - 0.01, 0.5, 1.0, "stable"),
        (STABLE, 0.5, 1.0, "stable"),
        (STABLE - 0.01, 0.1, 4.0, "doubtful"),
        (DOUBTFUL, 0.1, 4.0, "doubtful"),
        (DOUBTFUL - 0.01, 0.0, 4.0, "dissolves"),
        (0.95, 0.95 - ABOVE_CHANCE / 2, 0.0, "doubtful"),
        (0.5, 0.9, -1.0, "dissolves"),
    ],
)
def test_verdicts(jaccard, reference, depth, expected):
    assert verdict(jaccard, reference, depth) == expected


# ---- clear clusters, noise, and the rest


def test_clear_clusters_are_very_stable(clear):
    assert [each.cluster for each in clear] == [0, 1, 2]
    assert [each.size for each in clear] == [30, 30, 30]
    assert {each.verdict for each in clear} == {"very stable"}
    assert all(each.jaccard == each.agreement == 1 and each.separation > 1.5 for each in clear)
    assert len({each.reference for each in clear}) == 1 and 0 < clear[0].reference < 1


def test_the_same_drawn_rows_give_the_same_bits(clear):
    again = stability_of(Drawn(three_blobs(), np.repeat([0, 1, 2], 30), 0))
    assert [vars(each) for each in again] == [vars(each) for each in clear]


def test_a_cluster_cut_in_half_dissolves_or_is_doubtful():
    X = three_blobs()
    cut = np.repeat([0, 1, 2], 30)
    cut[:30] = np.where(X[:30, 0] > np.median(X[:30, 0]), 0, 3)
    by_cluster = {each.cluster: each.verdict for each in stability_of(Drawn(X, cut, 0))}
    assert {by_cluster[1], by_cluster[2]} <= {"very stable", "stable"}
    assert {by_cluster[0], by_cluster[3]} <= {"doubtful", "dissolves"}


def test_no_cluster_of_uniform_noise_is_stable():
    """400 x 10 with k = 5: after training, members agree to .993."""
    X = np.random.default_rng(0).uniform(size=(400, 10))
    model = ConsensusClustering(5, members=["kmeans", "agglomerative"], random_state=0).fit(X)
    verdicts = [each.verdict for each in model.cluster_stability_]
    assert len(verdicts) == 5 and not {"very stable", "stable"} & set(verdicts)


def test_noise_takes_no_part(clear):
    X = np.concatenate([three_blobs(), np.random.default_rng(1).uniform(-9, 20, size=(40, 2))])
    labels = np.concatenate([np.repeat([0, 1, 2], 30), np.full(40, -1)])
    assert [vars(each) for each in stability_of(Drawn(X, labels, 0))] == [
        vars(each) for each in clear
    ]


def test_numbers_of_clusters_may_have_gaps(clear):
    named = stability_of(Drawn(three_blobs(), np.repeat([1, 4, 7], 30), 0))
    assert [each.cluster for each in named] == [1, 4, 7]
    assert [each.jaccard for each in named] == [each.jaccard for each in clear]


def test_nothing_is_said_of_one_cluster_of_noise_alone_and_of_a_few_rows():
    X = three_blobs()
    assert stability_of(Drawn(X, np.zeros(90, dtype=int), 0)) == []
    assert stability_of(Drawn(X, np.full(90, -1), 0)) == []
    labels = np.repeat([0, 1, 2], 30)
    labels[: LEAST_ROWS - 1] = 3
    assert [each.cluster for each in stability_of(Drawn(X, labels, 0))] == [0, 1, 2]


def test_a_tiny_fit_is_no_error():
    X = np.array([[0.0, 0], [0, 1], [1, 0], [9, 9], [9, 8], [8, 9]])
    said = stability_of(Drawn(X, np.repeat([0, 1], 3), 0))
    assert [each.size for each in said] == [3, 3]
    assert all(0 <= each.jaccard <= 1 for each in said)


def test_rows_of_a_resample(monkeypatch):
    asked = []
    X, labels = three_blobs(), np.repeat([0, 1, 2], 30)
    ask = Members.ask

    def listen(self, rows, seed, only=None):
        asked.append((len(rows), only))
        return ask(self, rows, seed, only)

    monkeypatch.setattr(Members, "ask", listen)
    Members(X, 3, 0).stability(labels)
    assert asked[0] == (90, None) and len(asked) == 1 + module.N_RESAMPLES
    assert {n for n, _ in asked[1:]} == {72} and len({only for _, only in asked[1:]}) == 1


def test_drawn_rows_are_few_and_keep_their_labels(monkeypatch):
    monkeypatch.setattr(module, "MOST_DRAWN", 50)
    X = np.arange(200.0).reshape(100, 2)
    drawn = draw(source_of(X), lambda block: block, np.arange(100), root=0)
    assert len(drawn.points) == len(drawn.labels) == 50
    assert len(np.unique(drawn.labels)) == 50
    gaps = np.linalg.norm(drawn.points[1:] - drawn.points[:-1], axis=1)
    assert_allclose(gaps, np.abs(np.diff(drawn.labels)) * np.sqrt(8), rtol=1e-4)  # rows in a line


# ---- of a model


def test_it_is_computed_once_and_the_same_for_the_same_seed(monkeypatch):
    X = three_blobs()
    model, again = (
        ConsensusClustering(3, members=["kmeans", "agglomerative"], random_state=0).fit(X)
        for _ in range(2)
    )
    first = model.cluster_stability_
    assert [vars(each) for each in again.cluster_stability_] == [vars(each) for each in first]
    monkeypatch.setattr(module, "stability_of", None)
    assert model.cluster_stability_ is first
    assert model.fit(X[:60]).__dict__.get("_stability") is None  # another fit, other clusters


def test_another_function_is_judged_by_its_own_labels():
    X = three_blobs()
    model = ConsensusClustering(3, members=["kmeans", "agglomerative"], random_state=0).fit(X)
    assert len(model.cluster_stability_) == 3

    def first_apart(partitions, n_clusters=None, *, weights=None, random_state=None):
        return (np.asarray(partitions)[0] > 0).astype(int)  # 30 and 60 rows

    other = model.with_function(first_apart, X)
    assert [each.size for each in other.cluster_stability_] == [30, 60]
