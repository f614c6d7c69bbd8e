"""Refits: clusters keep their numbers, births and deaths are told, columns are those of the earlier model."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal
from sklearn.base import clone

from deccs import DECCS, ConsensusClustering
from deccs.refit.changes import Pooled, gone_clusters, groups_of, spread_groups
from deccs.refit.matching import match_clusters, matching_of
from tests.helpers.small import small_deccs

CENTERS = np.array([[0, 0, 0, 0], [8, 0, 8, 0], [0, 8, 0, 8], [9, 9, 0, 0]], dtype=float)


def drawn(clusters, seed, n=60):
    """Rows around some of four far centers."""
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.repeat(clusters, n))
    return CENTERS[y] + rng.normal(size=(len(y), 4)) * 0.7, y


def test_matching_by_hand():
    labels, earlier = np.array([0, 0, 1, 1, 2, 2]), np.array([4, 4, 1, 1, 1, -1])
    renumber = match_clusters(labels, earlier, n_learned=3, n_before=5)
    assert_array_equal(renumber.numbers, [4, 1, 5])  # 2 shares one row with 1, which is taken
    assert renumber.n_all == 6


def test_a_cluster_is_not_matched_with_one_it_shares_little_with():
    labels = np.repeat([0, 1, 1], [9, 1, 20])
    earlier = np.repeat([1, 0, 1], [9, 1, 20])  # the only row of the earlier cluster 0 is in 1 now
    assert_array_equal(match_clusters(labels, earlier, 2, 2).numbers, [2, 1])
    labels, earlier = np.repeat([0, 1, 1], [30, 1, 20]), np.repeat([1, 0, 2], [30, 1, 20])
    assert_array_equal(match_clusters(labels, earlier, 2, 3).numbers, [1, 2])


def test_what_has_become_of_clusters():
    before, after = np.array([0, 0, 1, 1, 2]), np.array([0, 0, 1, 3, 3])
    matching = matching_of(after, before, (0, 1, 2), (0, 1, 3), ("a", "b", "c", "d"))
    assert (matching.kept, matching.born, matching.gone) == ((0, 1), (3,), (2,))
    assert matching.moves == [(1, 3, 1), (2, 3, 1)]
    assert str(matching) == (
        "2 clusters are kept.\nNew: 3 (d).\nGone: 2 (c).\n60.0% of 5 rows are where the earlier model "
        "has them."
    )


def test_rows_without_neighbors_from_the_other_data_make_groups():
    earlier, _ = drawn([0, 1], seed=0)
    new, y = drawn([1, 2], seed=1)
    of_earlier, of_new = Pooled(earlier, new).alone()
    assert_array_equal(np.unique(of_new[y == 2]), [0])
    assert (of_new[y == 1] == -1).all()
    assert gone_clusters(of_earlier, drawn([0, 1], seed=0)[1]) == (0,)


@pytest.mark.parametrize("seed", range(5))
def test_fresh_rows_of_the_same_clusters_change_nothing(seed):
    of_earlier, of_new = Pooled(drawn([0, 1, 2], seed)[0], drawn([0, 1, 2], seed + 100)[0]).alone()
    assert (of_earlier == -1).all()
    assert (of_new == -1).all()


def test_groups_are_connected_as_by_walking_from_row_to_row():
    rng = np.random.default_rng(0)
    nearest, chosen = rng.integers(0, 60, (60, 2)), rng.random(60) < 0.4
    groups = groups_of(chosen, nearest, least=1)
    for row in np.flatnonzero(chosen):
        reached, waiting = {row}, [row]
        while waiting:
            at = waiting.pop()
            ties = [*nearest[at], *np.flatnonzero((nearest == at).any(axis=1))]
            for other in ties:
                if chosen[other] and other not in reached:
                    reached.add(int(other))
                    waiting.append(int(other))
        assert set(np.flatnonzero(groups == groups[row])) == reached
    assert (groups[~chosen] == -1).all()


def test_rows_between_those_of_a_group_join_it():
    points, _ = drawn([0, 1], seed=0)
    y = drawn([0, 1], seed=0)[1]
    some = np.where((y == 0) & (np.arange(len(y)) % 3 > 0), 0, -1)
    assert_array_equal(spread_groups(some, points), np.where(y == 0, 0, -1))


@pytest.fixture(scope="module")
def february():
    X, y = drawn([0, 1, 2], seed=0)
    return small_deccs().fit(pd.DataFrame(X, columns=list("abcd"))), y


@pytest.fixture(scope="module")
def march(february):
    """One cluster has left, another has come, and all have moved a little."""
    X, y = drawn([0, 2, 3], seed=1)
    earlier = february[0].rename(0, "the first")
    frame = pd.DataFrame(X + 0.2, columns=list("abcd"))
    return small_deccs(like=earlier).fit(frame), y, frame, earlier


def test_numbers_names_births_and_deaths(february, march):
    model, y, _, earlier = march
    number_of = {int(c): int(earlier.labels_[february[1] == c][0]) for c in (0, 1, 2)}
    assert model.matching_.gone == (number_of[1],)
    assert model.matching_.born == (3,)
    assert set(model.clusters_) == {number_of[0], number_of[2], 3}
    expected = np.array([number_of[0], -9, number_of[2], 3])[y]
    assert (model.labels_ == expected).mean() > 0.95
    assert model.cluster_names_[0] == "the first"
    assert "Gone" in str(model.matching_)


def test_a_refit_predicts_what_it_has_fitted(march, tmp_path):
    model, _, frame, _ = march
    assert_array_equal(model.predict(frame), model.labels_)
    assert model.predict_proba(frame).shape == (180, 4)
    model.save(tmp_path / "march")
    loaded = DECCS.load(tmp_path / "march")
    assert_array_equal(loaded.predict(frame), model.labels_)
    assert loaded.like is None
    assert str(loaded.matching_) == str(model.matching_)
    assert loaded.merge([0, 3]).undo().clusters_ == model.clusters_


def test_a_refit_can_be_refitted_and_edited(march):
    model, _, frame, _ = march
    edited = model.merge([3, int(model.clusters_[0])])
    again = small_deccs(like=edited).fit(frame)
    assert set(again.clusters_) == set(edited.clusters_)
    assert (again.labels_ == edited.labels_).mean() > 0.95


def test_a_model_is_named_by_its_path(february, march, tmp_path):
    february[0].save(tmp_path / "run" / "model")
    again = small_deccs(like=tmp_path / "run").fit(march[2])
    assert again.matching_.born == (3,)
    ConsensusClustering(3).fit(drawn([0, 1, 2], 0)[0]).save(tmp_path / "other")
    with pytest.raises(ValueError, match="it must be a DECCS"):
        small_deccs(like=tmp_path / "other").fit(march[2])


def test_columns_are_those_of_the_earlier_model(february, march):
    with pytest.raises(ValueError, match="yet now missing"):
        small_deccs(like=february[0]).fit(march[2].drop(columns="d"))
    with pytest.raises(ValueError, match="like must be"):
        small_deccs(like=3).fit(march[2])


def test_a_clone_keeps_the_model_it_should_be_like(february):
    model = small_deccs(like=february[0])
    assert clone(model).like is february[0]
    assert not hasattr(clone(model), "labels_")
