"""What IEC and AGAE share: k-means members on the raw data, an embedding of their labels, k-means on that."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, ClassVar

import numpy as np
import torch
from scipy.sparse import csr_array
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning

from deccs.answer import Answer
from deccs.base import Fit
from deccs.checks import whole
from deccs.consensus.partitions import DistinctRows, distinct_rows, membership
from deccs.data.scaling import Scaler, widths_of
from deccs.data.source import RowSource, blocks, each_block
from deccs.deep.base import DeepClustering, first_centers, one_hot, squared_distances
from deccs.events import NOBODY, Listeners, Progress
from deccs.labels import NOISE, canonical
from deccs.seeds import reproducible_threads, seed_for
from deccs.storage import NO_CHECKPOINT, Checkpoint, reals, stored, wholes

SAMPLE = 5_000  # points one k-means sees: enough for its centers, and it makes members differ more
ROWS_AT_ONCE = 1_000


@stored
@dataclass(frozen=True, eq=False)
class Ensemble:
    """The members as centers, which label any point."""

    # Per member (n_centers, n_features), scaled.
    centers: list[Annotated[np.ndarray, reals(None, "n_features")]]
    # Per member (n_centers,) the number of each center's cluster, -1 if it has no training point.
    numbers: list[Annotated[np.ndarray, wholes(None)]]

    def check_stored(self) -> None:
        """Raise a ValueError where centers and their numbers do not fit each other."""
        sizes = [len(centers) for centers in self.centers]
        if not sizes or min(sizes) == 0 or [len(numbers) for numbers in self.numbers] != sizes:
            raise ValueError("Ensemble must have one number for each center of each member")
        for numbers in self.numbers:
            if not 0 <= numbers.max() < len(numbers):
                raise ValueError("Ensemble has clusters without a center")

    @property
    def n_clusters(self) -> np.ndarray:
        """(n_members,) clusters of each member."""
        return np.array([numbers.max() + 1 for numbers in self.numbers])

    def memberships(self, source: RowSource, scaler: Scaler) -> Iterator[csr_array]:
        """(n_block, n_all_clusters) of raw rows, new or old, block by block."""
        for nearest in nearest_centers(source, scaler, self.centers):
            labels = [
                numbers[member_nearest]
                for numbers, member_nearest in zip(self.numbers, nearest.T, strict=True)
            ]
            yield membership(np.stack(labels, axis=1), self.n_clusters)


def kmeans_ensemble(
    source: RowSource,
    scaler: Scaler,
    n_members: int,
    sizes: tuple[int, int],
    root: int,
    *,
    stage: str = "base partitions",
    listeners: Listeners = NOBODY,
    checkpoint: Checkpoint = NO_CHECKPOINT,
) -> tuple[Ensemble, np.ndarray]:
    """k-means ``n_members`` times, and the base partitions: (n_members, n_points), numbered by first appearance.

    Each has its own sample of the points and its own number of clusters, from the least to the
    greatest of ``sizes``. That makes the members differ ("random parameter selection"). A callback
    can stop after any member.
    """
    n_features, _ = widths_of(scaler, source.shape[1])
    centers = checkpoint.restore("members", partial(checked_centers, n_features, n_members)) or []
    while len(centers) < n_members:
        seed = seed_for(root, "base partition", len(centers))
        member_centers, error = centers_of_sample(source, scaler, sizes, seed)
        centers.append(member_centers)
        checkpoint.save_at_times("members", lambda: {"centers": centers})
        listeners.tell("on_progress", Progress(stage, len(centers), n_members, error))
        if listeners.stopped:
            break
    # (n_members, n_points)
    nearest = np.concatenate(list(nearest_centers(source, scaler, centers))).T
    base_partitions = np.stack([canonical(member_nearest) for member_nearest in nearest])
    numbers = [np.full(len(member_centers), NOISE) for member_centers in centers]
    for member_numbers, member_nearest, labels in zip(
        numbers, nearest, base_partitions, strict=True
    ):
        member_numbers[member_nearest] = labels
    return Ensemble(centers, numbers), base_partitions


def checked_centers(n_features: int, n_members: int, state: dict[str, Any]) -> list[np.ndarray]:
    """The centers of the members of a state: (n_centers, n_features) each."""
    centers: list[np.ndarray] = state["centers"]
    shapes = [part.shape for part in centers]
    fit = all(len(shape) == 2 and shape[0] and shape[1] == n_features for shape in shapes)
    if not fit or len(centers) > n_members or not np.isfinite(np.concatenate(centers)).all():
        raise ValueError(f"Of {n_members} members in {n_features} columns, these are no centers")
    return centers


def centers_of_sample(
    source: RowSource, scaler: Scaler, sizes: tuple[int, int], seed: int
) -> tuple[np.ndarray, float]:
    """(n_centers, n_features) of one k-means on a sample, and the mean squared distance to them."""
    rng = np.random.default_rng(seed)
    n_points = source.shape[0]
    sample = np.sort(rng.choice(n_points, min(SAMPLE, n_points), replace=False))
    n_centers = min(int(rng.integers(sizes[0], sizes[1] + 1)), len(sample))
    X = scaler(source.read(sample)).astype(np.float32)  # (n_sample, n_features)
    with warnings.catch_warnings(), reproducible_threads():
        warnings.simplefilter("ignore", ConvergenceWarning)  # fewer distinct points than centers
        kmeans = KMeans(n_centers, n_init=1, max_iter=30, random_state=seed).fit(X)
    return kmeans.cluster_centers_.astype(np.float64), float(kmeans.inertia_) / len(sample)


def nearest_centers(
    source: RowSource, scaler: Scaler, centers: list[np.ndarray]
) -> Iterator[np.ndarray]:
    """(n_block, n_members): the nearest of each member's centers, block by block."""
    stacked = np.concatenate(centers)  # (n_all_centers, n_features)
    ends = np.cumsum([len(member_centers) for member_centers in centers])[:-1]
    lengths = np.square(stacked).sum(axis=1)
    for _, block in each_block(source, width=len(stacked)):
        X = scaler(block)
        distances = lengths - 2 * X @ stacked.T  # less the length of x, which all have in common
        slack = 1e-12 * (np.square(X).sum(axis=1) + lengths.max())
        by_member = np.split(distances, ends, axis=1)
        yield np.stack([first_least(columns, slack) for columns in by_member], axis=1)


def first_least(values: np.ndarray, slack: np.ndarray) -> np.ndarray:
    """The first column within ``slack`` (one number per row) of the row's least.

    A product of matrices rounds a row differently among other rows. A point between two centers
    must get the same one alone as among thousands.

    >>> first_least(np.array([[3.0, 1 + 1e-15, 1.0]]), slack=np.array([1e-12]))
    array([1])
    """
    return np.argmax(values <= (values.min(axis=1) + slack)[:, None], axis=1)


@dataclass(eq=False, repr=False, kw_only=True)
class EnsembleEmbedding(DeepClustering):
    """A deep method on base partitions, where others are on an autoencoder's embedding.

    A method says how many clusters a member has at most (``_most_clusters``), how it learns
    (``_learn_embedding``) and how it embeds memberships (``_embed``). It sees a point only through
    its base labels, so points with the same ones are one row, and new points are embedded like old
    ones.
    """

    LEARNED: ClassVar[Mapping[str, Any]] = {
        "ensemble_": Ensemble,
        "base_partitions_": wholes("n_members", "n_points"),
        "cluster_centers_": reals("n_wanted", "n_components"),
    }

    n_partitions: Annotated[int, whole(at_least=1)] = 100

    def _learn(self, fit: Fit) -> None:
        self.ensemble_, self.base_partitions_ = kmeans_ensemble(
            fit.source,
            fit.scaler,
            self.n_partitions,
            (self.n_wanted, self._most_clusters(fit.source.shape[0])),
            fit.root,
            stage=f"{type(self).__name__}, base partitions",
            listeners=fit.listeners,
            checkpoint=fit.checkpoint,
        )
        rows = distinct_rows(self.base_partitions_)
        Z = self._learn_embedding(rows, fit)  # (n_rows, n_components)
        points = torch.from_numpy(Z[rows.row_of]).float()  # (n_points, n_components)
        self.cluster_centers_ = first_centers(points, self.n_wanted, fit.root).double().numpy()
        self._training_rows = rows, Z

    def _learned_training_answers(self, fit: Fit) -> Iterator[Answer]:
        """One answer for each distinct row, handed out to its points."""
        rows, Z = self.__dict__.pop("_training_rows")  # no part of the model
        parts = [self._answer(Z[place]) for place in blocks(len(Z), ROWS_AT_ONCE)]
        answer = Answer.joined(parts)  # (n_rows, ...)
        for place in blocks(len(rows.row_of), ROWS_AT_ONCE):
            yield answer.rows(rows.row_of[place])

    @abstractmethod
    def _most_clusters(self, n_points: int) -> int:
        """How many clusters a member has at most."""

    @abstractmethod
    def _learn_embedding(self, rows: DistinctRows, fit: Fit) -> np.ndarray:
        """Learn, and return what ``_embed`` gives for the rows."""

    @abstractmethod
    def _embed(self, H: csr_array) -> np.ndarray:
        """(n, n_all_clusters) -> (n, n_components) doubles, each row by itself."""

    def _embedded(self, source: RowSource) -> Iterator[np.ndarray]:
        return (self._embed(H) for H in self.ensemble_.memberships(source, self.scaler_))

    def _belongs(self, Z: np.ndarray) -> np.ndarray:
        """1 for the nearest center: the assignments of k-means are hard."""
        nearest_center = squared_distances(Z, self.cluster_centers_).argmin(axis=1)  # (n,)
        return one_hot(nearest_center, self.n_wanted)

    @property
    def _n_features_out(self) -> int:
        return int(self.cluster_centers_.shape[1])
