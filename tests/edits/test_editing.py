"""Edits of fitted models: laws for labels, probabilities, confidence, names and files."""

import copy
import json

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import deccs
from deccs import DECCS, ConsensusClustering, Network, Pretraining
from deccs.deep import DCN
from deccs.edits.documents import EditsError, checked_edits, read_edits
from deccs.edits.splitting import head_of, rows_of
from deccs.storage.values import ModelFileError


def a_dcn():
    return DCN(
        3,
        network=Network(layers=(8, 2)),
        pretraining=Pretraining(n_epochs=15, batch_size=32, learning_rate=1e-2),
        n_steps=20,
        random_state=0,
    )


@pytest.fixture(scope="module")
def model(fitted):
    """Three far blobs. Each merge or split takes half a second: its clusters are judged again."""
    return fitted


@pytest.fixture(scope="module")
def plain(blobs):
    """A model that judges its clusters when it is asked."""
    return a_dcn().fit(blobs.X)


@pytest.fixture(scope="module")
def split(model):
    return model.split(1)


def same(one, other):
    """Whether two models have the same attributes, bit for bit."""
    if set(vars(one)) != set(vars(other)):
        return False
    return all(
        value is vars(other)[name]
        or (isinstance(value, np.ndarray) and np.array_equal(value, vars(other)[name]))
        or (not isinstance(value, np.ndarray) and value == vars(other)[name])
        for name, value in vars(one).items()
    )


def test_merge_then_predict_is_predict_then_merge(model, blobs):
    merged = model.merge([2, 0])
    assert_array_equal(merged.predict(blobs.X), np.array([2, 1, 2])[model.predict(blobs.X)])
    assert_array_equal(merged.labels_, merged.predict(blobs.X))
    before, after = model.predict_proba(blobs.X), merged.predict_proba(blobs.X)
    assert_allclose(
        after, np.column_stack([0 * before[:, 0], before[:, 1], before[:, [0, 2]].sum(1)])
    )
    assert merged.clusters_ == (1, 2)
    assert merged.n_clusters_ == 3


def test_the_model_itself_is_not_changed(plain):
    before = copy.copy(plain)
    plain.merge([0, 1])
    plain.drop(2)
    assert same(before, plain)
    assert plain.edits_ == ()


def test_a_split_gives_the_largest_part_the_old_number(split, model, blobs):
    sizes = np.bincount(split.labels_, minlength=4)
    assert split.clusters_ == (0, 1, 2, 3)
    assert sizes[1] >= sizes[3] > 0
    assert sizes[1] + sizes[3] == (model.labels_ == 1).sum()
    others = model.labels_ != 1
    assert_array_equal(split.labels_[others], model.labels_[others])
    assert_array_equal(split.predict(blobs.X), split.labels_)
    assert_allclose(split.predict_proba(blobs.X).sum(axis=1), 1)


def test_a_row_gets_alone_what_it_gets_among_others(split, blobs):
    alone = np.concatenate([split.predict(row[None]) for row in blobs.X[:20]])
    assert_array_equal(alone, split.predict(blobs.X)[:20])


def test_a_split_by_rows_follows_the_rows(plain):
    inside = np.flatnonzero(plain.labels_ == 0)
    chosen = inside[plain.embedding_[inside, 0] > np.median(plain.embedding_[inside, 0])]
    split = plain.split(0, rows=chosen)
    parts = split.labels_[inside]
    wanted = np.isin(inside, chosen)
    agreement = max((parts[wanted] == number).mean() for number in (0, 3))
    assert agreement > 0.9


def test_merging_the_parts_again_restores_the_labels(split, model):
    assert_array_equal(split.merge([1, 3]).labels_, model.labels_)


def test_rename_changes_no_number(model, blobs):
    named = model.rename(1, "loyal")
    assert_array_equal(named.predict(blobs.X), model.predict(blobs.X))
    assert_array_equal(named.consensus_confidence(blobs.X), model.consensus_confidence(blobs.X))
    assert named.cluster_names_ == ("cluster 0", "loyal", "cluster 2")
    with pytest.raises(ValueError, match="Cluster 1 is named 'loyal' already"):
        named.rename(0, "loyal")


def test_pinned_rows_stay_where_they_are_put(model, blobs):
    other = (model.labels_[:2] + 1) % 3
    pinned = model.pin([0], int(other[0]))
    assert pinned.predict(blobs.X)[0] == pinned.labels_[0] == other[0]
    assert_array_equal(pinned.labels_[1:], model.labels_[1:])
    assert pinned.consensus_confidence(blobs.X[:1])[0] == 1
    assert pinned.predict_proba(blobs.X[:1])[0, other[0]] == 1


def test_rows_of_a_dropped_cluster_have_none(model, blobs):
    dropped = model.drop(2)
    assert_array_equal(dropped.predict(blobs.X), np.where(model.labels_ == 2, -1, model.labels_))
    assert (dropped.consensus_confidence(blobs.X)[model.labels_ == 2] == 0).all()
    assert dropped.clusters_ == (0, 1)


def test_undo_restores_the_bits(plain, blobs):
    edited = plain.merge([0, 1]).split(2).rename(0, "both").pin([3, 4], 2).drop(2)
    names = [one["edit"] for one in edited.edits_]
    assert names == ["merge", "split", "rename", "pin", "drop"]
    shorter = edited.undo().undo()
    again = plain.merge([0, 1]).split(2).rename(0, "both")
    assert_array_equal(shorter.labels_, again.labels_)
    assert_array_equal(shorter.predict_proba(blobs.X), again.predict_proba(blobs.X))
    for _ in range(3):
        shorter = shorter.undo()
    assert same(shorter, plain)
    with pytest.raises(ValueError, match="no edit to undo"):
        plain.undo()


def test_undo_restores_the_bits_of_confidence_too(split, model):
    assert same(split.undo(), model)


def test_saved_and_loaded_edits_hold(split, model, blobs, tmp_path):
    edited = split.rename(0, "both").pin([3], 2)
    edited.save(tmp_path / "model.zip")
    loaded = DECCS.load(tmp_path / "model.zip")
    light = deccs.load(tmp_path / "model.zip")
    assert loaded.edits_ == light.edits_ == edited.edits_
    for one in (loaded, light):
        assert_array_equal(one.predict(blobs.X), edited.predict(blobs.X))
        assert_array_equal(one.answer(blobs.X).confidence, edited.answer(blobs.X).confidence)
    assert_array_equal(loaded.undo().undo().undo().labels_, model.labels_)
    assert loaded.cluster_names_ == edited.cluster_names_


def test_a_history_that_does_not_fit_is_refused(plain, tmp_path):
    edited = plain.merge([0, 1])
    edited.n_clusters_ = 7
    edited.save(tmp_path / "model.zip")
    with pytest.raises(ModelFileError, match="_edits must lead to n_clusters_"):
        DCN.load(tmp_path / "model.zip")


def test_members_keep_the_numbers_of_merged_clusters(model, blobs):
    merged = model.merge([2, 0])
    table = np.array([2, 1, 2, -1])
    assert_array_equal(merged.members_predict(blobs.X), table[model.members_predict(blobs.X)])


@pytest.mark.parametrize("other", [ConsensusClustering(3, random_state=0), a_dcn()])
def test_other_methods_can_be_edited(other, blobs):
    model = other.fit(blobs.X)
    edited = model.merge([1, 2]).split(0, X=blobs.X).pin([0], 1, X=blobs.X).drop(3)
    assert_array_equal(edited.predict(blobs.X), edited.labels_)
    for _ in range(4):
        edited = edited.undo(X=blobs.X)
    assert same(edited, model)


def test_a_model_without_a_representation_of_its_rows_asks_for_them(blobs):
    model = ConsensusClustering(3, random_state=0).fit(blobs.X)
    with pytest.raises(ValueError, match="Give the data of the fit as X"):
        model.split(0)
    with pytest.raises(ValueError, match="with 180 rows; got 5"):
        model.split(0, X=blobs.X[:5])


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda m: m.merge([0]), "at least two"),
        (lambda m: m.merge(5), "Give the numbers of several clusters"),
        (lambda m: m.merge([0, "1"]), "given by its number"),
        (lambda m: m.split(9), "no cluster 9"),
        (lambda m: m.split(0, into=1), "from 2 on"),
        (lambda m: m.split(0, into=100), "too few to be split into 100"),
        (lambda m: m.split(0, rows=[10**6]), "no row 1000000"),
        (lambda m: m.split(0, rows=np.flatnonzero(m.labels_ == 0)), "but not all"),
        (lambda m: m.split(0, into=3, rows=[1]), "rows make two parts"),
        (lambda m: m.pin([], 0), "rows must be numbers"),
        (lambda m: m.pin([0.5], 0), "rows must be numbers"),
        (lambda m: m.rename(0, ""), "1 to 100 letters"),
        (lambda m: m.rename(0, "a\x1b[31m"), "1 to 100 letters"),
        (lambda m: m.merge([0, 1]).rename(1, "x"), "no cluster 1; the clusters are 0, 2"),
    ],
)
def test_edits_that_cannot_be_made(plain, make, says):
    with pytest.raises(ValueError, match=says):
        make(plain)


def test_edits_of_a_file(plain, tmp_path):
    edits = [{"edit": "merge", "clusters": [0, 1]}, {"edit": "rename", "cluster": 0, "name": "x"}]
    document = {"format": "deccs edits", "version": 1, "n_rows": 180, "edits": edits}
    path = tmp_path / "edits.json"
    path.write_text(json.dumps(document))
    edited = plain.edit(read_edits(path, 180))
    assert edited.edits_ == plain.merge([0, 1]).rename(0, "x").edits_
    with pytest.raises(EditsError, match=r"of a fit of 180 rows, but this fit has 7"):
        read_edits(path, 7)
    with pytest.raises(ValueError, match="Edit 2 of 2 cannot be made: There is no cluster 1"):
        plain.edit([edits[0], {"edit": "drop", "cluster": 1}])


@pytest.mark.parametrize(
    ("edits", "says"),
    [
        (5, "must be a list"),
        ([{"edit": "explode"}], "must be one of merge, split"),
        ([{"edit": ["merge"]}], "must be one of merge, split"),
        (["merge"], "must be one of merge, split"),
        ([{"edit": "merge"}], "lacks 'clusters'"),
        ([{"edit": "merge", "clusters": "0,1"}], "clusters must be a list of whole numbers"),
        ([{"edit": "drop", "cluster": True}], "cluster must be a whole number"),
        ([{"edit": "drop", "cluster": 1, "x": 1}], "has 'x', which it cannot use"),
        ([{"edit": "rename", "cluster": 1, "name": 3}], "name must be a text"),
    ],
)
def test_files_of_edits_from_strangers(edits, says):
    with pytest.raises(EditsError, match=says):
        checked_edits(edits)


def test_a_head_separates_what_a_line_separates():
    rng = np.random.default_rng(0)
    Z = np.concatenate([rng.normal(size=(50, 2)), rng.normal(size=(50, 2)) + 8])
    weight, bias = head_of(Z, np.repeat([0, 1], 50))
    assert_array_equal((Z @ weight.T + bias).argmax(axis=1), np.repeat([0, 1], 50))


def test_rows_can_be_a_mask():
    assert_array_equal(rows_of(np.array([True, False, True]), 3), [0, 2])
