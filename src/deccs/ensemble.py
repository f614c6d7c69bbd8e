"""The ensemble: members, and the base partitions they make of an embedding."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from joblib import Parallel, delayed
from scipy.cluster.hierarchy import linkage
from scipy.sparse.csgraph import connected_components
from scipy.sparse.linalg import ArpackNoConvergence, eigsh
from sklearn.base import BaseEstimator, ClusterMixin, clone
from sklearn.cluster import AgglomerativeClustering, KMeans
from sklearn.mixture import GaussianMixture
from sklearn.neighbors import NearestNeighbors, kneighbors_graph
from threadpoolctl import threadpool_limits

from deccs.agreement import NOISE, align_labels, as_labelling, canonical
from deccs.seeds import seed_for

DIFFUSION = 20  # steps of the random walk on the neighbours whose probabilities spectral clustering compares

Member = tuple[str, Any]  # (name, anything with fit_predict) or (name, labels of all points)


@dataclass(frozen=True)
class Partitions:
    """What the members in place say of a sample.

    Clusters are numbered alike (Hungarian): a member with fewer clusters than the first leaves out numbers.
    """

    names: tuple[str, ...]
    labels: np.ndarray  # (n_members, n_sample), from 0, -1 for "takes no part"


class MemberWarning(UserWarning):
    """A member was left out of a round."""


class TooFewMembers(ValueError):
    """Fewer than two members gave a partition."""


def default_members(n_clusters: int) -> list[Member]:
    """The paper's heterogeneous ensemble: k-means, spectral, agglomerative, Gaussian mixture."""
    return [
        ("kmeans", KMeans(n_clusters, n_init=10)),
        ("spectral", NeighbourSpectral(n_clusters)),
        ("agglomerative", Agglomerative(n_clusters)),
        ("mixture", GaussianMixture(n_clusters, covariance_type="full", reg_covar=1e-5, n_init=3)),
    ]


class NeighbourSpectral(ClusterMixin, BaseEstimator):
    """Spectral clustering of the graph of nearest neighbours, which never has more parts than clusters.

    Own code instead of scikit-learn's, whose solver takes twenty times as long on such graphs. And k-means sees
    twice as many eigenvectors as clusters: two digits that touch are often told apart by one beyond the k-th. Others
    halve a long cluster, which shows: where the first k, or half as many more, give less than half the normalised
    cut, their answer counts. Eigenvectors are weighted by their eigenvalue to the 20th power (diffusion maps), and
    each point is scaled to length 1 (Ng, Jordan and Weiss).

    Rounds make clusters compact, and 10 neighbours then leave a graph in more parts than there
    are clusters. Its first eigenvectors are an arbitrary choice among the parts, and a member that
    was right turns to chance. So the number of neighbours doubles, three times at most, until there
    are no more parts than clusters wanted.
    """

    def __init__(
        self, n_clusters: int = 8, n_neighbors: int = 10, n_components: int | None = None,
        random_state: int | None = None,
    ) -> None:
        self.n_clusters, self.n_neighbors, self.n_components = n_clusters, n_neighbors, n_components
        self.random_state = random_state

    def fit(self, X: np.ndarray, y: object = None) -> NeighbourSpectral:
        self.n_neighbors_ = min(self.n_neighbors, len(X) - 1)
        most = min(8 * self.n_neighbors, len(X) - 1)  # beyond, the graph would fill the memory
        while True:
            graph = neighbour_graph(X, self.n_neighbors_)
            n_parts = connected_components(graph, directed=False)[0]
            if n_parts <= self.n_clusters or self.n_neighbors_ == most:
                break
            self.n_neighbors_ = min(2 * self.n_neighbors_, most)
        wanted = self.n_components or 2 * self.n_clusters
        vectors = leading_eigenvectors(graph, min(wanted, len(X)), self.random_state)
        self.labels_ = self._of(vectors)
        if self.n_components is None:
            fewer = [self._of(vectors[:, :n]) for n in (self.n_clusters, self.n_clusters * 3 // 2)]
            cut, *cuts = (normalised_cut(graph, labels) for labels in (self.labels_, *fewer))
            if min(cuts) < 0.5 * cut:
                self.labels_ = fewer[int(np.argmin(cuts))]
        return self

    def _of(self, vectors: np.ndarray) -> np.ndarray:
        kmeans = KMeans(self.n_clusters, n_init=30, random_state=self.random_state)  # 30 cost a tenth of the neighbours
        return kmeans.fit_predict(of_length_one(vectors))


def neighbour_graph(X: np.ndarray, n_neighbors: int = 10) -> sp.csr_array:
    """(n_points, n_points) 1 for mutual neighbours, 0.5 for those one way; a point is its own neighbour."""
    graph = kneighbors_graph(X, min(n_neighbors, len(X) - 1), include_self=True)
    return sp.csr_array(0.5 * (graph + graph.T))


def normalised_cut(graph: sp.csr_array, labels: np.ndarray) -> float:
    """The share of a cluster's ties that leave it, mean over clusters; 0 where no tie is cut.

    >>> line = sp.csr_array(np.array([[0, 1, 0], [1, 0, 1], [0, 1, 0]]))
    >>> normalised_cut(line, np.array([0, 0, 1]))         # 1 of 3 ends of ties leave the first, the only one the second
    0.6666666666666666
    """
    ends = graph.tocoo()
    n_clusters = int(labels.max()) + 1
    volume = np.bincount(labels[ends.row], ends.data, minlength=n_clusters)
    leaves = np.where(labels[ends.row] != labels[ends.col], ends.data, 0)
    cut = np.bincount(labels[ends.row], leaves, minlength=n_clusters)
    there = volume > 0
    return float((cut[there] / volume[there]).mean())


def leading_eigenvectors(graph: Any, n_components: int, random_state: int | None = None) -> np.ndarray:
    """Those of D^-1/2 W D^-1/2 with the largest eigenvalues, weighted: (n_points, n_components), the largest first.

    ``graph`` is W, symmetric and sparse. Each of its connected parts is solved by itself, because Lanczos
    iterations miss eigenvalues that come more than once, and 1 comes once per part.

    >>> graph = sp.csr_array(np.kron(np.eye(2), np.ones((2, 2))))       # two pairs
    >>> first, second, third, fourth = of_length_one(leading_eigenvectors(graph, 2))
    >>> bool(np.allclose(first, second)), bool(np.allclose(third, fourth)), bool(abs(first @ third) < 1e-9)
    (True, True, True)
    """
    graph = sp.csr_array(graph)
    root_degree = np.sqrt(graph.sum(axis=1))                                      # (n_points,)
    scaled = sp.csr_array(sp.diags_array(1 / root_degree) @ graph @ sp.diags_array(1 / root_degree))
    part = connected_components(graph, directed=False)[1]
    values, vectors = [], []
    for number in range(part.max() + 1):
        inside = np.flatnonzero(part == number)
        own_values, own_vectors = largest_eigenpairs(scaled[inside][:, inside], n_components, random_state)
        values.append(own_values)
        vectors.append(np.zeros((len(part), len(own_values))))
        vectors[-1][inside] = own_vectors
    value, vector = np.concatenate(values), np.hstack(vectors)
    top = np.argsort(-value, kind="stable")[:n_components]
    return np.asarray(vector[:, top] * np.maximum(value[top], 0) ** DIFFUSION)


def of_length_one(points: np.ndarray) -> np.ndarray:
    """Each row scaled to length 1: (n, d) -> (n, d).

    >>> of_length_one(np.array([[3.0, 4.0]]))
    array([[0.6, 0.8]])
    """
    return points / np.maximum(np.linalg.norm(points, axis=1, keepdims=True), 1e-12)


def largest_eigenpairs(matrix: Any, wanted: int, random_state: int | None) -> tuple[np.ndarray, np.ndarray]:
    """(wanted,) eigenvalues and (n, wanted) eigenvectors of a connected part, fewer if it is smaller."""
    n = matrix.shape[0]
    if n <= max(4 * wanted, 500):
        values, vectors = np.linalg.eigh(matrix.toarray())
        return values[-wanted:], vectors[:, -wanted:]
    settings = {"v0": np.random.default_rng(random_state).normal(size=n), "ncv": 4 * wanted}
    try:
        return eigsh(matrix, wanted, which="LA", maxiter=300, **settings)
    except ArpackNoConvergence:  # eigenvalues crowd where clusters are long: invert around 1, slower and safe
        return eigsh(matrix, wanted, sigma=1 + 1e-6, **settings)


class Agglomerative(ClusterMixin, BaseEstimator):
    """Agglomerative clustering whose linkage follows from the data.

    Single linkage is right where gaps part the clusters, whatever their shape, and useless where
    they touch. ``linkage="auto"`` takes it if cutting at the widest gaps leaves ``n_clusters``
    parts of at least ``share`` of an even part each, and Ward's otherwise. The paper chose single
    linkage by hand for its synthetic sets; this needs no hand.
    """

    def __init__(self, n_clusters: int = 8, linkage: str = "auto", share: float = 0.5) -> None:
        self.n_clusters, self.linkage, self.share = n_clusters, linkage, share

    def fit(self, X: np.ndarray, y: object = None) -> Agglomerative:
        labels = None
        if self.linkage == "auto":
            labels = parts_between_gaps(X, self.n_clusters, int(self.share * len(X) / self.n_clusters))
        self.linkage_ = ("ward" if labels is None else "single") if self.linkage == "auto" else self.linkage
        if labels is None and self.linkage_ == "ward":
            labels = ward(X, self.n_clusters)
        elif labels is None:
            labels = AgglomerativeClustering(self.n_clusters, linkage=self.linkage_).fit_predict(X)
        self.labels_ = labels
        return self


def ward(X: np.ndarray, n_clusters: int) -> np.ndarray:
    """Ward's clustering: (n_points,) labels.

    Those of scikit-learn, in a third of its time at 10,000 points and without holding all pairs.

    Follows chains of nearest neighbours: two clusters that are nearest to each other are merged, in any order,
    since no later merge can come nearer. The distance of two clusters needs their centres and sizes only. The
    clusters left are kept in front, so that each step is one product over them.

    >>> ward(np.array([[0.0], [1], [5], [6], [20]]), n_clusters=3)
    array([0, 0, 1, 1, 2])
    """
    n = len(X)
    centres, sizes, point = X.astype(np.float64), np.ones(n), np.arange(n)        # point: any one of the cluster
    squares = np.square(centres).sum(axis=1)
    edges, heights, chain = np.empty((n - 1, 2), dtype=np.int64), np.empty(n - 1), [0]
    for left in range(n, 1, -1):                                                  # clusters left
        chain = chain or [0]
        while True:
            tip = chain[-1]
            apart = squares[:left] - 2 * (centres[:left] @ centres[tip]) + squares[tip]
            apart *= sizes[:left] * sizes[tip] / (sizes[:left] + sizes[tip])
            apart[tip] = np.inf
            if len(chain) > 1 and apart[chain[-2]] <= apart.min():
                break
            chain.append(int(apart.argmin()))
        a, b = sorted(chain[-2:])
        edges[n - left], heights[n - left] = (point[a], point[b]), apart[chain[-2]]
        chain = chain[:-2]
        centres[a] = (sizes[a] * centres[a] + sizes[b] * centres[b]) / (sizes[a] + sizes[b])
        sizes[a] += sizes[b]
        squares[a] = centres[a] @ centres[a]
        last = left - 1                                                           # the last takes the place of b
        for values in (centres, sizes, squares, point):
            values[b] = values[last]
        chain = [b if place == last else place for place in chain]
    low = edges[np.argsort(heights, kind="stable")[: n - n_clusters]]
    graph = sp.coo_array((np.ones(len(low)), (low[:, 0], low[:, 1])), shape=(n, n))
    return canonical(connected_components(graph, directed=False)[1])


def parts_between_gaps(X: np.ndarray, n_parts: int, min_size: int) -> np.ndarray | None:
    """Cut the single-linkage tree at its widest gaps between parts of at least ``min_size`` points.

    A merge of two large parts is a gap; a merge that only takes in stray points is not. None if
    there are fewer than ``n_parts - 1`` gaps: single linkage then has no answer.

    >>> parts_between_gaps(np.array([[0.], [1], [2], [9], [10], [11], [20]]), n_parts=2, min_size=3)
    array([0, 0, 0, 1, 1, 1, 1])
    """
    tree = linkage(X, "single")                                    # (n - 1, 4), merges from near to far
    n = len(X)
    left, right = tree[:, 0].astype(int), tree[:, 1].astype(int)
    size = np.concatenate([np.ones(n), tree[:, 3]])
    gaps = np.flatnonzero(np.minimum(size[left], size[right]) >= max(min_size, 1))
    if len(gaps) < n_parts - 1:
        return None
    kept = np.setdiff1d(np.arange(n - 1), gaps[len(gaps) - (n_parts - 1) :])
    # A tree node and what was merged into it belong together, unless the merge is cut.
    parents = np.concatenate([kept, kept]) + n
    children = np.concatenate([left[kept], right[kept]])
    graph = sp.coo_array((np.ones(len(parents)), (parents, children)), shape=(2 * n - 1, 2 * n - 1))
    part = connected_components(graph, directed=False)[1][:n]
    # Stray points that were merged above a cut belong to no part: they go to that of their neighbour.
    inside = np.isin(part, np.argsort(-np.bincount(part), kind="stable")[:n_parts])
    nearest = NearestNeighbors(n_neighbors=1).fit(X[inside])
    if not inside.all():
        part[~inside] = part[inside][nearest.kneighbors(X[~inside], return_distance=False)[:, 0]]
    return canonical(part)


def without_small_clusters(labels: np.ndarray, min_size: int) -> np.ndarray:
    """Points of clusters below ``min_size`` become noise.

    >>> without_small_clusters(np.array([0, 0, 0, 1]), min_size=2)
    array([ 0,  0,  0, -1])
    """
    labels = canonical(labels)
    sizes = np.bincount(labels[labels != NOISE], minlength=1)
    return canonical(np.where((labels == NOISE) | (sizes[labels] < min_size), NOISE, labels))


def smallest_cluster(n_sample: int, n_clusters: int, wanted: int = 6) -> int:
    """Clusters of five or fewer do not count; on small samples the limit shrinks with them.

    >>> smallest_cluster(5_000, 10), smallest_cluster(30, 3), smallest_cluster(8, 4)
    (6, 2, 1)
    """
    return max(1, min(wanted, n_sample // (5 * n_clusters)))


def is_labelling(member: Any) -> bool:
    return not hasattr(member, "fit_predict")


def asked_clusters(member: Any, found: int) -> int:
    """The number of clusters a member was asked for; what it found, where nobody asked."""
    for name in ("n_clusters", "n_components"):
        if isinstance(getattr(member, name, None), int | np.integer):
            return int(getattr(member, name))
    return found


def members_for(n_clusters: int | None, members: Sequence[Member] | None, n_points: int) -> list[Member]:
    """The members given, checked; the default ones of ``n_clusters`` if there are none."""
    if n_clusters is not None and (not isinstance(n_clusters, int | np.integer) or n_clusters < 1):
        raise ValueError(f"n_clusters must be a whole number of at least 1, or None, got {n_clusters!r}.")
    if n_clusters is not None and n_clusters > n_points:
        raise ValueError(
            f"n_clusters={n_clusters} is more than the number of points, n_samples={n_points}. Ask for fewer."
        )
    if members is not None:
        return check_members(members, n_points)
    if n_clusters is None:
        raise ValueError("n_clusters=None takes the number most members have: give members, or n_clusters.")
    return default_members(max(2, int(n_clusters)))


def check_members(members: Sequence[Member], n_points: int) -> list[Member]:
    """Pairs (name, clusterer or labels), at least two, no name twice."""
    if isinstance(members, str) or not all(
        isinstance(pair, tuple | list) and len(pair) == 2 and isinstance(pair[0], str) for pair in members
    ):
        raise ValueError(
            "members must be a list of pairs like ('kmeans', KMeans(10)); a clusterer needs fit_predict, "
            f"a labelling is an array of one label per point. Got {members!r}."
        )
    names = [name for name, _ in members]
    if len(set(names)) < len(names):
        raise ValueError(f"Each member needs a name of its own, got {names}.")
    if len(names) < 2:
        raise ValueError(
            f"Agreement needs at least two ensemble members, got {len(names)}: {names}. "
            "Add a clusterer, or run the single one on transform(X) of a fit with n_rounds=0."
        )
    checked: list[Member] = []
    for name, member in members:
        if isinstance(member, type):
            raise ValueError(f"Member {name!r} is the class {member.__name__}; give an object: {member.__name__}(...).")
        if is_labelling(member):
            member = as_labelling(name, member, n_points)
        checked.append((name, member))
    return checked


def cluster(
    members: Sequence[Member],
    Z: np.ndarray,
    sample: np.ndarray,
    root: int,
    *,
    standardise: bool = False,
    min_cluster_size: int = 6,
    n_jobs: int | None = None,
) -> Partitions:
    """Let every member cluster the embedded sample.

    One number scales the sample as a whole. ``standardise`` scales each dimension by itself, as the
    authors' program does and the paper does not say; members do worse so on every data set we have.
    A member that fails or finds fewer than two clusters is left out with a warning; two must remain.
    """
    Z = Z.astype(np.float64)
    deviation = Z.std(axis=0) if standardise else np.sqrt(Z.var(axis=0).mean(keepdims=True))
    standard = (Z - Z.mean(axis=0)) / np.where(deviation > 1e-9, deviation, 1)
    answers = Parallel(n_jobs=n_jobs)(
        delayed(ask)(name, member, standard, sample, seed_for(root, name)) for name, member in members
    )
    names: list[str] = []
    partitions: list[np.ndarray] = []
    for (name, _), (answer, complaint) in zip(members, answers, strict=True):
        if answer is not None:
            n_found = len(np.unique(answer[answer != NOISE]))
            labels = without_small_clusters(answer, smallest_cluster(len(Z), max(n_found, 1), min_cluster_size))
            if labels.max() >= 1:
                names.append(name)
                partitions.append(align_labels(labels, partitions[0]) if partitions else labels)
                continue
            complaint = f"it found {n_found} cluster(s), and two of at least {min_cluster_size} points are needed"
        warnings.warn(f"Member {name!r} is left out of this round: {complaint}.", MemberWarning, stacklevel=2)
    if len(names) < 2:
        raise TooFewMembers(
            f"Only {len(names)} of {len(members)} members gave a partition; agreement needs two. "
            "The warnings above say why; other members, fewer clusters or a larger sample may help."
        )
    return Partitions(tuple(names), np.stack(partitions))


def fresh_copy(member: Any, seed: int) -> Any:
    """An unfitted copy, with seeds where it has none."""
    fresh = clone(member, safe=False)
    for key, value in sorted(getattr(fresh, "get_params", dict)().items()):  # those of a pipeline's steps, too
        if value is None and (key == "random_state" or key.endswith("__random_state")):
            fresh.set_params(**{key: seed if key == "random_state" else seed_for(seed, key)})
    return fresh


def ask(
    name: str, member: Any, Z: np.ndarray, sample: np.ndarray, seed: int
) -> tuple[np.ndarray | None, str]:
    """One member's labels of the sample, or None and why not."""
    if is_labelling(member):
        return member[sample], ""
    try:
        fresh = fresh_copy(member, seed)
        with threadpool_limits(1, user_api="openmp"):  # k-means adds up in the order its threads arrive
            labels = np.asarray(fresh.fit_predict(Z))
        if labels.shape != (len(Z),):
            return None, f"fit_predict returned shape {labels.shape} for {len(Z)} points"
        return labels.astype(np.int64), ""
    except Exception as error:  # a user's member may raise anything; the others go on
        return None, f"{type(error).__name__}: {error}"
