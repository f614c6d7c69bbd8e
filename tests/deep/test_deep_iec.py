"""IEC: its closed form by hand and by brute force, its members, and the contract of the deep methods."""

from typing import ClassVar

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from deccs.consensus.partitions import distinct_rows, membership
from deccs.data.scalers import fit_scaler
from deccs.data.source import ArrayRows
from deccs.deep.base_partitions import kmeans_ensemble, nearest_centers
from deccs.deep.iec import IEC, denoising_map, principal_part, stacked_maps, with_constant
from deccs.events import Callback, Listeners
from deccs.labels import canonical
from deccs.storage import Checkpoint

QUICK = {"n_clusters": 3, "n_partitions": 8, "random_state": 0}


@pytest.fixture(scope="module")
def fitted(blobs):
    return IEC(**QUICK).fit(blobs.X)


def one_hot(n_points=60, clusters=(2, 3, 4), seed=0):
    """Memberships of random labels with the constant one: (n_points, 9 + 1)."""
    rng = np.random.default_rng(seed)
    first = rng.integers(max(clusters), size=n_points)
    labels = np.stack(
        [(first + (rng.random(n_points) < 0.3)) % k for k in clusters], axis=1
    )  # members agree often
    return np.hstack([membership(labels, np.array(clusters)).toarray(), np.ones((n_points, 1))])


def test_the_closed_form_by_hand():
    """One cluster that holds 3 of 4 points, lost with chance 1/2.

    Scatter [[3, 3], [3, 4]]. Q = [[3/2, 3/2], [3/2, 4]] and P = [3/2, 3]; P Q^-1 = [2/5, 3/5].
    """
    scatter = with_constant(np.array([[3.0]]), n_points=4)
    assert_array_equal(scatter, [[3, 3], [3, 4]])
    assert_allclose(denoising_map(scatter, noise=0.5), [[0.4, 0.6]])


def test_the_closed_form_is_the_limit_of_least_squares_on_noisy_copies():
    H = one_hot()  # (60, 10)
    noise, copies = 0.3, 1_000
    kept = np.random.default_rng(1).random((copies, *H.shape)) > noise  # (1000, 60, 10)
    kept[..., -1] = True  # the constant is never lost
    noisy = (H * kept).reshape(-1, H.shape[1])  # 60,000 rows
    brute, *_ = np.linalg.lstsq(noisy, np.tile(H[:, :-1], (copies, 1)), rcond=None)
    # Weights are off by about 1 / sqrt(60,000) = 0.004; five times that is allowed.
    assert_allclose(denoising_map(H.T @ H, noise), brute.T, atol=0.02)


def test_hardly_any_noise_leaves_everything_as_it_is():
    H = one_hot()
    assert_allclose(H @ denoising_map(H.T @ H, noise=1e-7).T, H[:, :-1], atol=1e-4)


def test_a_layer_is_the_closed_form_on_the_rows_the_layer_before_gives():
    H = one_hot()
    first, second = stacked_maps(H.T @ H, noise=0.2, n_layers=2)
    hidden = np.hstack(
        [H @ first.T, np.ones((len(H), 1))]
    )  # the rows themselves, not their scatter
    assert_allclose(H @ second.T, hidden @ denoising_map(hidden.T @ hidden, 0.2).T, atol=1e-9)


def test_the_principal_part_keeps_the_distances_of_all_layers_side_by_side():
    H = one_hot()
    scatter = H.T @ H
    maps = stacked_maps(scatter, noise=0.2, n_layers=3)
    side_by_side = np.hstack([H @ weights.T for weights in maps])  # (60, 27)
    part = H[:, :-1] @ principal_part(maps, scatter, share=1 - 1e-12)
    assert part.shape[1] <= 9
    distances = lambda Z: np.square(Z[:, None] - Z[None]).sum(axis=2)  # noqa: E731
    assert_allclose(distances(part), distances(side_by_side), atol=1e-9)
    assert principal_part(maps, scatter, share=0.5).shape[1] < part.shape[1]


def test_the_scatter_is_the_overlaps_of_the_distinct_rows(fitted):
    rows = distinct_rows(fitted.base_partitions_)
    H = membership(
        fitted.base_partitions_.T, rows.n_clusters
    ).toarray()  # (n_points, D), point by point
    assert len(rows) < len(H)
    assert_array_equal(rows.overlaps, H.T @ H)
    assert_array_equal(rows.membership.toarray()[rows.row_of], H)


def test_members_differ_in_their_numbers_of_clusters_and_know_new_points(blobs):
    source = ArrayRows(blobs.X)
    scaler = fit_scaler(source)
    ensemble, labels = kmeans_ensemble(source, scaler, n_members=12, sizes=(3, 6), root=0)
    sizes = [len(centers) for centers in ensemble.centers]
    assert set(sizes) <= {3, 4, 5, 6} and len(set(sizes)) > 1
    assert all((canonical(partition) == partition).all() for partition in labels)
    X = blobs.X + 1e-3
    slow = np.square(scaler(X)[:, None] - ensemble.centers[5][None]).sum(axis=2).argmin(axis=1)
    (nearest,) = nearest_centers(ArrayRows(X), scaler, ensemble.centers)
    assert_array_equal(nearest[:, 5], slow)
    (H,) = ensemble.memberships(ArrayRows(X), scaler)
    assert_array_equal(H.sum(axis=1), np.full(len(X), 12))  # one cluster of each member


def test_a_point_between_two_centers_has_the_same_one_alone_as_among_many():
    rng = np.random.default_rng(0)
    centers = rng.normal(size=(5, 30))
    X = (centers[[1, 2, 1]] + centers[[3, 4, 4]]) / 2 + np.zeros(
        (3, 1)
    )  # in the middle, but for the last digit
    X = np.repeat(X, 40, axis=0)
    scaler = fit_scaler(ArrayRows(X), None)
    (together,) = nearest_centers(ArrayRows(X), scaler, [centers])
    alone = [next(nearest_centers(ArrayRows(row[None]), scaler, [centers])) for row in X]
    assert_array_equal(together, np.concatenate(alone))


def test_members_are_taken_from_a_checkpoint(blobs):
    class Memory(Checkpoint):
        saved: ClassVar[dict] = {}

        def save_at_times(self, name, state):
            self.saved[name] = {key: list(value) for key, value in state().items()}

        def load(self, name):
            return self.saved.get(name)

    class StopsAfterThree(Callback):
        n_told = 0

        def on_progress(self, progress):
            self.n_told += 1

        def stop(self):
            return self.n_told == 3

    source, memory, listener = ArrayRows(blobs.X), Memory(), StopsAfterThree()
    given = (source, fit_scaler(source), 5, (3, 6), 0)
    whole, partitions = kmeans_ensemble(*given)
    three, _ = kmeans_ensemble(*given, listeners=Listeners([listener]), checkpoint=memory)
    assert len(three.centers) == 3
    resumed, again = kmeans_ensemble(*given, checkpoint=memory)
    assert_array_equal(again, partitions)
    for centers, resumed_centers in zip(whole.centers, resumed.centers, strict=True):
        assert_array_equal(centers, resumed_centers)


def test_the_fit_asks_the_members_for_each_point_once(monkeypatch, blobs):
    n_rows = []
    read = ArrayRows.read

    def counted(self, rows):
        block = read(self, rows)
        n_rows.append(len(block))
        return block

    monkeypatch.setattr(ArrayRows, "read", counted)
    IEC(**QUICK).fit(blobs.X)
    # All rows for their gaps, one row for the shift and all rows for the scale, a sample of all rows for
    # each member, and all rows for the nearest centers; none for the labels. A sample is kept for the stability, and
    # one for the columns.
    assert sum(n_rows) == 1 + (1 + 1 + QUICK["n_partitions"] + 1 + 1 + 1) * len(blobs.X)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"n_clusters": 0},
            "n_clusters must be a whole number of at least 1, 'auto' or a range such as '3-20', got 0",
        ),
        ({"n_clusters": 1_000}, "n_clusters=1000 is more than the number of points"),
        ({"n_partitions": 0}, "n_partitions must be a whole number of at least 1, got 0"),
        ({"n_layers": 0}, "n_layers must be a whole number of at least 1, got 0"),
        ({"noise": 1.0}, r"noise must be a share in \(0, 1\), got 1.0"),
    ],
)
def test_errors_say_what_was_given(blobs, changes, message):
    with pytest.raises(ValueError, match=message):
        IEC(**(QUICK | changes)).fit(blobs.X)
