"""Whole fits with a few labels and pairs."""

import pickle
import warnings

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn import config_context
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import deccs
from deccs.deep import IDEC
from deccs.estimator import with_rows
from deccs.storage import CheckpointError
from tests.helpers.small import small_deccs

pytestmark = pytest.mark.usefixtures("quick_classifiers", "quick_manifold")


@pytest.fixture(scope="module")
def few(blobs):
    """Two rows of each blob with a label, in the order c, a, b of the blobs."""
    partial = np.full(180, None, dtype=object)
    for blob, name in enumerate("cab"):
        partial[np.flatnonzero(blobs.y == blob)[:2]] = name
    return partial


@pytest.fixture(scope="module")
def labeled(blobs, few):
    return small_deccs().fit(blobs.X, partial=few)


@pytest.fixture(scope="module")
def of_views(blobs, few):
    """With views, and a cannot-link in the middle of a blob."""
    model = small_deccs(views="auto", n_rounds=0)
    with pytest.warns(deccs.ConstraintWarning, match="1 of 1 cannot-links"):
        return model.fit(
            blobs.X, partial=few, cannot_link=np.flatnonzero(blobs.y == 0)[[3, 4]][None]
        )


def test_clusters_have_the_numbers_of_the_classes(labeled, blobs):
    assert labeled.partial_classes_ == ("a", "b", "c")
    assert_array_equal(labeled.labels_, np.array([2, 0, 1])[blobs.y])
    assert_array_equal(labeled.predict(blobs.X), labeled.labels_)
    assert_array_equal(labeled.predict_proba(blobs.X).argmax(1), labeled.labels_)
    assert not labeled.violations_.any and labeled.violations_.n_partial == 6
    assert "partial labels" in labeled.member_names_


def test_a_fit_with_views_chooses_by_constraints(of_views, blobs):
    assert_array_equal(of_views.predict(blobs.X), of_views.labels_)
    right = np.array([2, 0, 1])[blobs.y]
    assert (of_views.labels_ == right).mean() > 0.98
    names = [candidate.name for candidate in of_views.candidates_]
    assert any("with constraints" in name for name in names)


def test_violations_are_told_and_kept_and_the_next_fit_knows_nothing_of_them(
    blobs, fitted, tmp_path
):
    first, second, third = np.flatnonzero(blobs.y == 0)[:3]
    model = small_deccs(n_rounds=0)
    words = f"1 of 1 cannot-links are violated .pairs {first}-{second}"
    with pytest.warns(deccs.ConstraintWarning, match=words):
        model.fit(blobs.X, cannot_link=[[first, second]], must_link=[[third, first]])
    assert model.violations_.counts == {"must_link": 0, "cannot_link": 1, "partial": 0}
    assert not [name for name in vars(model) if "given" in name or "constraints" in name]
    model.save(tmp_path / "model")
    kept = deccs.DECCS.load(tmp_path / "model").violations_
    assert_array_equal(kept.cannot_link, [[first, second]])
    # With nothing given the bits are those of a fit that was never asked.
    model.set_params(rounds__n_rounds=2).fit(blobs.X, must_link=[], partial=np.full(180, -1))
    assert_array_equal(model.transform(blobs.X), fitted.transform(blobs.X))
    assert model.violations_ is None and not hasattr(model, "partial_classes_")


def test_pairs_pull_rows_together_in_the_rounds(blobs):
    """Two of three blobs are joined by many must-links: they become one of two clusters."""
    rng = np.random.default_rng(0)
    ends = np.stack([rng.choice(np.flatnonzero(blobs.y == blob), 60) for blob in (1, 2)], axis=1)
    model = small_deccs(
        n_clusters=2, n_rounds=1, n_steps=60, lambda_pairs=10
    )  # with 0 all are violated
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", deccs.ConstraintWarning)
        model.fit(blobs.X, must_link=ends)
    assert len(model.violations_.must_link) == 0
    assert_array_equal(model.labels_ == model.labels_[blobs.y == 0][0], blobs.y == 0)


def test_more_classes_than_clusters_are_refused(blobs):
    with pytest.raises(
        ValueError, match=r"partial names 4 classes \(0, 1, 2, 3\), more than n_clusters=3"
    ):
        small_deccs().fit(blobs.X, partial=np.arange(180) % 4)
    with pytest.raises(ValueError, match="more than n_clusters='2-3'"):
        small_deccs(n_clusters="2-3").fit(blobs.X, partial=np.arange(180) % 4)


def test_other_constraints_are_another_fit(blobs, few, labeled, tmp_path):
    def stop(*_):
        raise KeyboardInterrupt

    model = small_deccs(checkpoint=tmp_path / "state", callbacks=[stop])
    with pytest.raises(KeyboardInterrupt):
        model.fit(blobs.X, partial=few)
    other = few.copy()
    other[np.flatnonzero(few == "a")[0]] = None
    model.set_params(callbacks=None)
    with pytest.raises(CheckpointError, match="constraints"):
        model.fit(blobs.X, partial=other)
    with pytest.raises(CheckpointError, match="constraints"):
        model.fit(blobs.X)
    model.fit(blobs.X, partial=few)
    assert_array_equal(model.transform(blobs.X), labeled.transform(blobs.X))


def test_scikit_learn_passes_them_on(blobs, few):
    pipeline = make_pipeline(StandardScaler(), small_deccs(scale=None, n_rounds=0))
    labels = pipeline.fit_predict(blobs.X, deccs__partial=few)
    assert_array_equal(labels, np.array([2, 0, 1])[blobs.y])
    with config_context(enable_metadata_routing=True):
        asked = clone(small_deccs()).set_fit_request(partial=True, must_link=True)
        assert asked.get_metadata_routing().fit.requests["partial"] is True
    with pytest.raises(TypeError, match="partial"):
        IDEC(3).fit(blobs.X, partial=few)


def test_a_fitted_model_can_be_sent(labeled, blobs):
    again = pickle.loads(pickle.dumps(labeled))
    assert_array_equal(again.predict(blobs.X), labeled.labels_)


def test_of_a_large_table_constraints_outside_the_sample_are_only_told(blobs, monkeypatch):
    monkeypatch.setattr("deccs.data.learning_rows.MOST_ROWS", 90)
    partial = np.where(np.arange(180) % 10 == 0, blobs.y, -1)
    model = small_deccs(n_rounds=0).fit(blobs.X, partial=partial)
    assert len(model.learning_rows_) == 90
    assert model.violations_.n_partial == 18
    assert (model.labels_ == blobs.y).mean() > 0.98


def test_rows_that_must_be_in_a_sample():
    assert_array_equal(with_rows(np.arange(10), np.array([2, 50])), [0, 1, 2, 3, 4, 5, 6, 7, 8, 50])
    full = with_rows(np.arange(4), np.array([10, 11, 12]))
    assert_array_equal(full, [0, 1, 10, 11])  # half of it at most
