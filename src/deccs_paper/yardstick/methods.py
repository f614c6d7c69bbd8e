"""Methods by name: what people would use instead of DECCS, and our own.

Each is one function of a :class:`Task`, which has no true labels. ``@rival("name")`` adds one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial
from importlib.util import find_spec
from typing import Any, TypeVar

import numpy as np
from sklearn.cluster import HDBSCAN, AgglomerativeClustering, SpectralClustering
from sklearn.decomposition import PCA

from deccs.answer import Answer
from deccs.consensus import AutoencoderConsensus, ConsensusClustering
from deccs.data.scalers import fit_scaler
from deccs.data.source import source_of
from deccs.deep import AGAE, IDEC, SpectralNet
from deccs.estimator import DECCS
from deccs.events import Callback
from deccs.inference.nearest import NearestInSample
from deccs.labels import NOISE
from deccs.members.asking import ask, fresh_copy
from deccs.members.default import DEFAULT_MEMBERS, MEMBERS
from deccs.members.manifold import manifold_embedding
from deccs.members.spectral import of_length_one
from deccs.seeds import seed_for

MOST_COMPONENTS = 50  # principal components of the raw data, where it has more columns
UMAP_NEIGHBORS = 15
MOST_DIMENSIONS = 10  # of a manifold embedding
RECIPE = 2  # of all methods: since 2 the rows are shuffled before every fit


class OnOneScale:
    """Data as published with a seed, and what is made of it for methods that need one scale."""

    X: np.ndarray  # (n, d)
    seed: int

    @cached_property
    def scaled(self) -> np.ndarray:
        """All columns on one scale, by the rule of DECCS: (n, d)."""
        X = self.X.astype(np.float64)
        scaled: np.ndarray = fit_scaler(source_of(X), "auto")(X)
        return scaled

    @cached_property
    def components(self) -> np.ndarray:
        """The scaled data; its first 50 principal components where it has more columns."""
        n_components = min(MOST_COMPONENTS, *self.scaled.shape)
        if n_components == self.scaled.shape[1]:
            return self.scaled
        pca = PCA(n_components, random_state=self.seed)
        components: np.ndarray = pca.fit_transform(self.scaled)
        return components


@dataclass(frozen=True)
class Task(OnOneScale):
    """What a method is given: the data as published, the number of clusters and a seed."""

    X: np.ndarray  # (n, d)
    k: int
    seed: int

    @property
    def n_dimensions(self) -> int:
        """Of a manifold embedding: as many as clusters, from 2 to 10."""
        return min(max(self.k, 2), MOST_DIMENSIONS)

    def member(self, name: str) -> Any:
        """A member of the default ensemble, not fitted."""
        return fresh_copy(MEMBERS[name](self.k), self.seed)


@dataclass(frozen=True)
class Candidates:
    """The partitions of all rows that a fit chose its result from."""

    names: tuple[str, ...]
    partitions: np.ndarray  # (n_candidates, n)


@dataclass(frozen=True)
class Clustering:
    """What a method returns; ``labels`` has no noise left."""

    labels: np.ndarray  # (n,)
    confidence: np.ndarray | None = None  # (n,) how sure each label is
    covered: np.ndarray | None = None  # (n,) whether the method itself labeled the point
    label_source: str | None = None  # which candidate, member or classifier the labels are from
    candidates: Candidates | None = None

    def in_file_order(self, order: np.ndarray) -> Clustering:
        """The same clustering of rows that were shuffled: row i of the fit is ``order[i]`` of the file.

        >>> Clustering(np.array([7, 8, 9])).in_file_order(np.array([2, 0, 1])).labels
        array([8, 9, 7])
        """
        back = np.argsort(order)  # (n,)
        chosen = self.candidates
        return replace(
            self,
            labels=self.labels[back],
            confidence=None if self.confidence is None else self.confidence[back],
            covered=None if self.covered is None else self.covered[back],
            candidates=chosen and replace(chosen, partitions=chosen.partitions[:, back]),
        )


Cluster = Callable[..., Any]  # (task) or, with a shared part, (task, that part)


@dataclass(frozen=True)
class Method:
    """A row of the yardstick. Methods with the same ``shared`` part run in one process after it."""

    name: str
    cluster: Cluster
    needs: tuple[str, ...] = ()  # modules of the extra "rivals"
    shared: Callable[[Task], Any] | None = None
    recipe: int = RECIPE  # raised when the method changes: older records do not count then
    by_default: bool = True  # whether it is run where no methods are named

    def missing(self) -> tuple[str, ...]:
        """What is not installed."""
        return tuple(name for name in self.needs if find_spec(name) is None)


M = TypeVar("M", bound=Method)


def adds_to(registry: dict[str, M], kind: type[M]) -> Callable[..., Any]:
    """A decorator: with a name, and facts if need be, it adds the function below it to a registry."""

    def named(name: str, **facts: Any) -> Callable[[Cluster], Cluster]:
        def add(function: Cluster) -> Cluster:
            registry[name] = kind(name, function, **facts)
            return function

        return add

    return named


METHODS: dict[str, Method] = {}  # by name, filled by the functions below
rival = adds_to(METHODS, Method)  # @rival("ward") above a function Task -> Clustering


# Plain methods on the raw data


@rival("kmeans")
def kmeans(task: Task) -> Clustering:
    return Clustering(task.member("kmeans").fit_predict(task.scaled))


@rival("mixture")
def mixture(task: Task) -> Clustering:
    """On principal components: a full covariance of thousands of columns does not fit into memory."""
    return mixture_of(task, task.components)


@rival("ward")
def ward(task: Task) -> Clustering:
    return Clustering(AgglomerativeClustering(task.k, linkage="ward").fit_predict(task.scaled))


@rival("sklearn spectral")
def sklearn_spectral(task: Task) -> Clustering:
    model = SpectralClustering(
        task.k,
        affinity="nearest_neighbors",
        n_neighbors=min(10, len(task.X)),
        random_state=task.seed,
    )
    return Clustering(model.fit_predict(task.scaled))


@rival("our spectral")
def our_spectral(task: Task) -> Clustering:
    return Clustering(task.member("spectral").fit_predict(task.components))


@rival("our agglomerative")
def our_agglomerative(task: Task) -> Clustering:
    return Clustering(task.member("agglomerative").fit_predict(task.components))


def mixture_of(task: Task, Z: np.ndarray) -> Clustering:
    """A Gaussian mixture of some points; its confidence is the largest probability."""
    probabilities = task.member("mixture").fit(Z).predict_proba(Z)  # (n, k)
    return Clustering(probabilities.argmax(axis=1), probabilities.max(axis=1))


# On a manifold embedding


def umap_embedding(task: Task) -> np.ndarray:
    """umap-learn's embedding of all columns: (n, n_dimensions)."""
    return umap_of(task.scaled, task.n_dimensions, task.seed)


def umap_of(X: np.ndarray, n_dimensions: int, seed: int, **settings: Any) -> np.ndarray:
    from umap import UMAP

    model = UMAP(
        n_components=n_dimensions,
        n_neighbors=min(UMAP_NEIGHBORS, len(X) - 1),
        min_dist=0.0,
        random_state=seed,
        n_jobs=1,
        **settings,
    )
    embedding: np.ndarray = model.fit_transform(X.astype(np.float32)).astype(np.float64)
    return embedding


@rival("umap+mixture", needs=("umap",), shared=umap_embedding)
def umap_mixture(task: Task, embedding: np.ndarray) -> Clustering:
    return mixture_of(task, embedding)


@rival("umap+agglomerative", needs=("umap",), shared=umap_embedding)
def umap_agglomerative(task: Task, embedding: np.ndarray) -> Clustering:
    return Clustering(task.member("agglomerative").fit_predict(embedding))


@rival("umap+hdbscan", needs=("umap",), shared=umap_embedding)
def umap_hdbscan(_task: Task, embedding: np.ndarray) -> Clustering:
    """HDBSCAN as it comes; it is not told the number of clusters."""
    model = HDBSCAN(copy=True).fit(embedding)
    return with_noise_filled(embedding, model.labels_, model.probabilities_)


def our_manifold(task: Task) -> np.ndarray:
    """The embedding that members of DECCS see: (n, n_dimensions)."""
    return manifold_embedding(task.scaled, task.n_dimensions, task.seed)


@rival("our manifold+mixture", shared=our_manifold)
def our_manifold_mixture(task: Task, embedding: np.ndarray) -> Clustering:
    return mixture_of(task, embedding)


@rival("our manifold+agglomerative", shared=our_manifold)
def our_manifold_agglomerative(task: Task, embedding: np.ndarray) -> Clustering:
    return Clustering(task.member("agglomerative").fit_predict(embedding))


@rival("evoc", needs=("evoc",))
def evoc(task: Task) -> Clustering:
    """EVoC compares points by their angle, and so do we when we fill its noise."""
    model = evoc_of(task, approx_n_clusters=task.k)
    return with_noise_filled(of_length_one(task.scaled), model.labels_, model.membership_strengths_)


def evoc_of(task: OnOneScale, **settings: Any) -> Any:
    """EVoC fitted to all columns."""
    from evoc import EVoC, float_nndescent

    # Nested parallel loops abort the process in the one layer of numba that can be forked.
    float_nndescent.ENABLE_NESTED_PARALLELISM = False
    # Its embedding starts from four principal components, and fails where there are fewer columns.
    dimensions = task.X.shape[1] if task.X.shape[1] < 4 else None
    model = EVoC(node_embedding_dim=dimensions, random_state=task.seed, **settings)
    return model.fit(task.scaled.astype(np.float32))


def with_noise_filled(Z: np.ndarray, labels: np.ndarray, confidence: np.ndarray) -> Clustering:
    """Points without a label get that of their nearest neighbor with one; all noise is one cluster.

    >>> with_noise_filled(np.array([[0.0], [5], [6]]), np.array([0, 1, -1]), np.ones(3)).labels
    array([0, 1, 1])
    """
    covered = labels != NOISE
    filled = np.zeros_like(labels)
    if covered.any():
        filled = np.where(covered, labels, NearestInSample(Z[covered], labels[covered])(Z))
    return Clustering(filled, confidence, covered)


# Classical consensus over views


def views(task: Task) -> list[tuple[str, np.ndarray]]:
    """Labels of the default ensemble on the raw data and on UMAP, without members that failed."""
    members = []
    for view, Z in (("raw data", task.components), ("UMAP", umap_embedding(task))):
        for name in DEFAULT_MEMBERS:
            seed = seed_for(task.seed, view, name)
            labels, _ = ask(MEMBERS[name](task.k), Z, np.arange(len(Z)), seed)
            if labels is not None:
                members.append((f"{name} of {view}", labels))
    return members


def combined(task: Task, members: list[tuple[str, np.ndarray]], function: str) -> Clustering:
    """Members' labels combined; the confidence is the share of members that confirm a label."""
    model = ConsensusClustering(
        task.k,
        members=members,
        function=function,
        sample_size=max(len(task.X), 2),
        scale=None,
        random_state=task.seed,
    )
    return fitted(model, task.components)


@rival("consensus nmf", needs=("umap",), shared=views)
def consensus_nmf(task: Task, members: list[tuple[str, np.ndarray]]) -> Clustering:
    return combined(task, members, "nmf")


@rival("consensus lwgp", needs=("umap",), shared=views)
def consensus_lwgp(task: Task, members: list[tuple[str, np.ndarray]]) -> Clustering:
    return combined(task, members, "lwgp")


@rival("consensus eac", needs=("umap",), shared=views)
def consensus_eac(task: Task, members: list[tuple[str, np.ndarray]]) -> Clustering:
    return combined(task, members, "eac")


# Ours, with default settings


class Answers(Callback):
    """Keeps what a fit says of its rows."""

    def __init__(self) -> None:
        self.blocks: list[Answer] = []

    def on_answer(self, answer: Answer) -> None:
        self.blocks.append(answer)


def fitted(model: Any, X: np.ndarray) -> Clustering:
    """Labels and confidence from one fit; without a confidence, the largest probability counts."""
    answers = Answers()
    labels = model.set_params(callbacks=[answers]).fit(X).labels_
    answer = Answer.joined(answers.blocks)
    # Support, where there is one: what the records were made with.
    confidence = answer.confidence if answer.support is None else answer.support
    if confidence is None and answer.probabilities is not None:
        confidence = answer.probabilities.max(axis=1)
    source: str | None = getattr(model, "label_source_", None)
    return Clustering(labels, confidence, label_source=source, candidates=candidates_of(model))


def candidates_of(model: Any) -> Candidates | None:
    """What a fit chose its result from; None where it has labels of a sample of the rows only.

    Up to 10,000 rows the sample of the views is all of them, in their order. Beyond, a fitted model
    does not say which rows it drew.
    """
    made = getattr(model, "candidates_", None)
    if not made or len(made[0].labels) != len(model.labels_):
        return None
    return Candidates(
        tuple(candidate.name for candidate in made),
        np.stack([candidate.labels for candidate in made]),
    )


def with_settings(estimator: type, task: Task, **settings: Any) -> Clustering:
    return fitted(estimator(task.k, random_state=task.seed, **settings), task.X)


rival("DECCS")(partial(with_settings, DECCS))
rival("DECCS, paper's members only")(partial(with_settings, DECCS, views=None))
for estimator in (AutoencoderConsensus, IDEC, SpectralNet, AGAE):  # too slow for a whole pool
    rival(estimator.__name__, by_default=False)(partial(with_settings, estimator))


# Compilation, which is not part of a fit


def warm_up(modules: set[str]) -> None:
    """Let numba compile what the fits of these modules will call, on few made-up rows."""
    rng = np.random.default_rng(0)
    X = np.repeat(4 * rng.normal(size=(5, 6)), 40, axis=0) + rng.normal(size=(200, 6))
    if "umap" in modules and find_spec("umap"):
        umap_of(X, 2, seed=0)
        umap_of(X, 2, seed=0, force_approximation_algorithm=True)  # from 4,096 rows on
    if "evoc" in modules and find_spec("evoc"):
        evoc(Task(X, 5, seed=0))
