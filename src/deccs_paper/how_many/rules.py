"""Rules by name: how many clusters data have, as people decide it by the book, and as we do.

Each is one function of a :class:`Question`, which has no true labels. ``@rule("name")`` adds one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from importlib import import_module
from itertools import combinations

import numpy as np
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.linalg import eigh
from scipy.sparse.csgraph import laplacian
from sklearn.cluster import HDBSCAN, KMeans
from sklearn.metrics import (
    adjusted_rand_score,
    calinski_harabasz_score,
    davies_bouldin_score,
    silhouette_score,
)
from sklearn.mixture import GaussianMixture
from sklearn.neighbors import kneighbors_graph

from deccs.counting.records import Count
from deccs.labels import NOISE
from deccs.members.manifold import manifold_embedding
from deccs.seeds import seed_for
from deccs_paper.how_many.measures import FIRST
from deccs_paper.yardstick.methods import Method, OnOneScale, adds_to, evoc_of, umap_of

MOST_ROWS = (
    2_000  # shown to a rule that fits something for every k, compares all pairs or resamples
)
MOST_ROWS_PAC = 1_000
MOST_ROWS_ONCE = 10_000  # shown to a rule that clusters once
MOST_CLUSTERS, ALL_UP_TO, STEP = 120, 20, 1.08
N_INIT = 3  # of k-means
DIMENSIONS = 5  # of a manifold embedding
FULL_UP_TO = 20  # columns up to which the components of a mixture have a full covariance
N_REFERENCES = 10  # of the gap statistic
N_NEIGHBORS = 10  # of the graph whose eigenvalues are compared
SHARE = 0.8  # of the rows in a resample
N_RESAMPLES, N_PAIRS = 20, 10  # of PAC; of resamples compared for stability
UNSURE = 0.1, 0.9  # consensus between these is ambiguous
TOPIC_SIZE = 10  # smallest cluster of BERTopic
DECCS, FIT = "deccs", "DECCS fit"


def numbers_to_try(n_rows: int) -> tuple[int, ...]:
    """From 2 to an eighth of the rows, at least 10 and at most 120: all up to 20, then in steps of 8 %.

    >>> numbers_to_try(50)
    (2, 3, 4, 5, 6, 7, 8, 9, 10)
    >>> numbers_to_try(200)[-4:], numbers_to_try(10_000)[-4:], len(numbers_to_try(10_000))
    ((20, 22, 24, 25), (96, 104, 112, 120), 42)
    """
    most = min(MOST_CLUSTERS, max(10, n_rows // 8), n_rows - 1)
    numbers = list(range(2, min(most, ALL_UP_TO) + 1))
    while numbers[-1] < most:
        numbers.append(min(most, round(numbers[-1] * STEP)))
    return tuple(numbers)


@dataclass(frozen=True)
class Question(OnOneScale):
    """What a rule is given: the data as published, and a seed."""

    X: np.ndarray  # (n, d)
    seed: int

    @property
    def ks(self) -> tuple[int, ...]:
        return numbers_to_try(len(self.X))

    @property
    def n_dimensions(self) -> int:
        """Of a manifold embedding."""
        return min(DIMENSIONS, self.X.shape[1])

    @cached_property
    def covariance(self) -> str:
        """Of the components of a mixture."""
        return "full" if self.components.shape[1] <= FULL_UP_TO else "diag"

    def generator(self, *place: object) -> np.random.Generator:
        return np.random.default_rng(seed_for(self.seed, *place))


@dataclass(frozen=True)
class Ranking:
    """What a rule answers: numbers of clusters, the chosen one first."""

    candidates: tuple[int, ...]
    clear: bool | None = None  # whether the rule is sure, if it says so
    labels: np.ndarray | None = None  # (n,) of a rule that clusters at the number it chose, too
    count: Count | None = None  # all that our own rule knows

    @property
    def k(self) -> int:
        return self.candidates[0]


@dataclass(frozen=True)
class Rule(Method):
    """A row of the comparison. Rules with the same ``shared`` part run in one process after it."""

    recipe: int = 1
    most_rows: int | None = MOST_ROWS  # shown to it; None: all
    can_say_one: bool = False  # whether one cluster is a possible answer


RULES: dict[str, Rule] = {}  # by name, filled by the functions below
rule = adds_to(RULES, Rule)  # @rule("silhouette") above a function Question -> Ranking


def best_first(scores: Mapping[int, float]) -> tuple[int, ...]:
    """Numbers of clusters by their score, the largest first; of equal ones the smaller number.

    >>> best_first({2: 0.5, 3: 0.9, 4: 0.5, 5: float("nan")})
    (3, 2, 4, 5)
    """
    known = {k: -np.inf if np.isnan(score) else score for k, score in scores.items()}
    return tuple(sorted(known, key=lambda k: (-known[k], k)))


def kmeans(Z: np.ndarray, k: int, seed: int) -> KMeans:
    return KMeans(min(k, len(Z)), n_init=N_INIT, random_state=seed).fit(Z)


# Indices of k-means, on the raw data and on our manifold


@dataclass(frozen=True)
class Partitions:
    """k-means of some points for every number of clusters."""

    Z: np.ndarray  # (n, d)
    labels: dict[int, np.ndarray]  # k -> (n,)


def partitions(Z: np.ndarray, question: Question) -> Partitions:
    return Partitions(Z, {k: kmeans(Z, k, question.seed).labels_ for k in question.ks})


def partitions_of_data(question: Question) -> Partitions:
    return partitions(question.components, question)


def partitions_of_manifold(question: Question) -> Partitions:
    Z = manifold_embedding(question.scaled, question.n_dimensions, question.seed)
    return partitions(Z, question)


def by_index(
    index: Callable[[np.ndarray, np.ndarray], float], _question: Question, made: Partitions
) -> Ranking:
    """The number of clusters with the largest index. One cluster, or a row each, has none."""
    scores = {
        k: index(made.Z, labels) if 1 < len(np.unique(labels)) < len(labels) else np.nan
        for k, labels in made.labels.items()
    }
    return Ranking(best_first(scores))


def low_davies_bouldin(Z: np.ndarray, labels: np.ndarray) -> float:
    """The index of Davies and Bouldin, which is small where clusters are compact and far apart."""
    return -float(davies_bouldin_score(Z, labels))


INDICES: dict[str, Callable[[np.ndarray, np.ndarray], float]] = {
    "silhouette": silhouette_score,
    "Calinski-Harabasz": calinski_harabasz_score,
    "Davies-Bouldin": low_davies_bouldin,
}
for where, shared in (("", partitions_of_data), (" on manifold", partitions_of_manifold)):
    for name, index in INDICES.items():
        rule(name + where, shared=shared)(partial(by_index, index))


# The gap statistic


@rule("gap statistic", can_say_one=True)
def gap_statistic(question: Question) -> Ranking:
    """The first k with gap(k) >= gap(k + 1) - s(k + 1), of Tibshirani, Walther and Hastie (2001).

    The second and third such k are the next candidates, and no larger one is tried. The others
    follow by their gap; the largest gap is chosen where no k fulfills the condition.
    """
    Z = on_principal_axes(question.components)
    rng = question.generator("references")
    low, high = Z.min(axis=0), Z.max(axis=0)
    references = [rng.uniform(low, high, size=Z.shape) for _ in range(N_REFERENCES)]
    gaps: dict[int, float] = {}
    fulfilled: list[int] = []
    last = 0
    for k in (1, *question.ks):
        logs = np.array([log_within(one, k, question.seed) for one in references])
        gap = float(logs.mean()) - log_within(Z, k, question.seed)
        error = float(logs.std()) * np.sqrt(1 + 1 / N_REFERENCES)
        if gaps and gaps[last] >= gap - error:
            fulfilled.append(last)
        gaps[k], last = gap, k
        if len(fulfilled) == FIRST:
            break
    others = (k for k in best_first(gaps) if k not in fulfilled)
    return Ranking((*fulfilled, *others))


def on_principal_axes(Z: np.ndarray) -> np.ndarray:
    """The points in the coordinates of their principal components, where the box of a reference is."""
    centered = Z - Z.mean(axis=0)
    _, _, axes = np.linalg.svd(centered, full_matrices=False)
    turned: np.ndarray = centered @ axes.T
    return turned


def log_within(Z: np.ndarray, k: int, seed: int) -> float:
    """Logarithm of the squared distances to the centers of k-means.

    >>> round(log_within(np.array([[0.0], [2], [10], [12]]), 2, seed=0), 6)  # log(4)
    1.386294
    """
    return float(np.log(max(kmeans(Z, k, seed).inertia_, 1e-300)))


# Mixtures


@dataclass(frozen=True)
class Fitted:
    """A mixture with some number of components."""

    bic: float
    labels: np.ndarray  # (n,)


def mixtures(question: Question) -> dict[int, Fitted]:
    """A Gaussian mixture for every number of clusters; none where the covariances have no inverse."""
    made = {}
    for k in question.ks:
        model = GaussianMixture(k, covariance_type=question.covariance, random_state=question.seed)
        try:
            labels = model.fit_predict(question.components)
        except ValueError:
            continue
        made[k] = Fitted(float(model.bic(question.components)), labels)
    return made


@rule("BIC of a mixture", shared=mixtures)
def bic(_question: Question, made: dict[int, Fitted]) -> Ranking:
    return Ranking(best_first({k: -fitted.bic for k, fitted in made.items()}))


@rule("agreement", shared=mixtures)
def agreement(question: Question, made: dict[int, Fitted]) -> Ranking:
    """Mean ARI between k-means, Ward's tree and a mixture."""
    Z = question.components
    tree = linkage(Z, method="ward")
    scores = {}
    for k, fitted in made.items():
        ward = fcluster(tree, k, criterion="maxclust")
        scores[k] = mean_ari([kmeans(Z, k, question.seed).labels_, ward, fitted.labels])
    return Ranking(best_first(scores))


def mean_ari(labelings: Sequence[np.ndarray]) -> float:
    """The mean over pairs.

    >>> mean_ari([np.array([0, 0, 1, 1]), np.array([1, 1, 0, 0]), np.array([0, 1, 0, 1])])
    0.0
    """
    pairs = combinations(labelings, 2)
    return float(np.mean([adjusted_rand_score(one, other) for one, other in pairs]))


# Eigengap


@rule("eigengap")
def eigengap(question: Question) -> Ranking:
    """The largest gap between eigenvalues of the normalized Laplacian of the neighbor graph."""
    Z, ks = question.components, question.ks
    directed = kneighbors_graph(Z, min(N_NEIGHBORS, len(Z) - 1))
    graph = directed.maximum(directed.T)
    values = eigh(
        np.asarray(laplacian(graph.toarray(), normed=True)),
        eigvals_only=True,
        subset_by_index=[0, ks[-1]],
    )  # (largest k + 1,) ascending
    return Ranking(best_first({k: values[k] - values[k - 1] for k in ks}))


# Resampling


@rule("PAC", most_rows=MOST_ROWS_PAC)
def pac(question: Question) -> Ranking:
    """Least share of pairs of which Monti's consensus is ambiguous, with k-means."""
    Z = question.components
    rows = resamples(question, N_RESAMPLES)
    scores = {}
    for k in question.ks:
        labelings = [
            kmeans(Z[one], k, seed_for(question.seed, number)).labels_
            for number, one in enumerate(rows)
        ]
        scores[k] = -ambiguous_share(consensus(rows, labelings, len(Z)))
    return Ranking(best_first(scores))


def resamples(question: Question, n_resamples: int) -> list[np.ndarray]:
    """Row numbers of random 80 % of the rows, ascending."""
    rng, n_rows = question.generator("resamples"), len(question.X)
    size = round(SHARE * n_rows)
    return [np.sort(rng.choice(n_rows, size, replace=False)) for _ in range(n_resamples)]


def consensus(
    rows: Sequence[np.ndarray], labelings: Iterable[np.ndarray], n_rows: int
) -> np.ndarray:
    """How often two rows were together, of the times both were drawn: (n_pairs,), NaN for never.

    >>> draws = [np.array([0, 1, 2]), np.array([0, 1])]
    >>> consensus(draws, [np.array([0, 0, 1]), np.array([0, 1])], n_rows=3)  # 01, 02, 12
    array([0.5, 0. , 0. ])
    """
    drawn = np.zeros((n_rows, len(rows)), dtype=np.float32)
    clusters = []  # of each resample, (n_rows, k): 1 where a row is in a cluster
    for number, (one, labels) in enumerate(zip(rows, labelings, strict=True)):
        drawn[one, number] = 1
        clusters.append(np.zeros((n_rows, labels.max() + 1), dtype=np.float32))
        clusters[-1][one, labels] = 1
    pairs = np.triu_indices(n_rows, k=1)
    member = np.hstack(clusters)  # (n_rows, clusters of all resamples)
    together, both = ((one @ one.T)[pairs].astype(np.float64) for one in (member, drawn))
    with np.errstate(invalid="ignore"):
        shares: np.ndarray = together / both
    return shares


def ambiguous_share(shares: np.ndarray) -> float:
    """The proportion of ambiguous clustering (Senbabaoglu, Michailidis and Li, 2014).

    >>> ambiguous_share(np.array([0, 0.1, 0.5, 1, np.nan]))
    0.25
    """
    low, high = UNSURE
    known = shares[~np.isnan(shares)]
    return float(((known > low) & (known < high)).mean())


@rule("stability")
def stability(question: Question) -> Ranking:
    """Largest mean ARI between k-means of two resamples, on the rows that both have."""
    Z = question.components
    rows = resamples(question, 2 * N_PAIRS)
    pairs = list(zip(rows[::2], rows[1::2], strict=True))
    shared = [np.intersect1d(*pair, return_indices=True)[1:] for pair in pairs]
    scores = {}
    for k in question.ks:
        aris = []
        for number, ((first, second), (here, there)) in enumerate(zip(pairs, shared, strict=True)):
            one = kmeans(Z[first], k, seed_for(question.seed, number, 0)).labels_
            other = kmeans(Z[second], k, seed_for(question.seed, number, 1)).labels_
            aris.append(adjusted_rand_score(one[here], other[there]))
        scores[k] = float(np.mean(aris))
    return Ranking(best_first(scores))


# Methods that find their own number


def number_of_clusters(labels: np.ndarray) -> int:
    """Noise is no cluster, and without a cluster all rows are one.

    >>> number_of_clusters(np.array([0, 1, -1])), number_of_clusters(np.array([-1, -1]))
    (2, 1)
    """
    return max(1, len(np.unique(labels[labels != NOISE])))


@rule("HDBSCAN", most_rows=MOST_ROWS_ONCE, can_say_one=True)
def hdbscan(question: Question) -> Ranking:
    """As it comes in scikit-learn: clusters of at least 5 points."""
    labels = HDBSCAN(copy=True).fit(question.components).labels_
    return Ranking((number_of_clusters(labels),))


@rule("UMAP + HDBSCAN", most_rows=MOST_ROWS_ONCE, can_say_one=True, needs=("umap",))
def umap_hdbscan(question: Question) -> Ranking:
    """With the settings of BERTopic: 15 neighbors, 5 dimensions, clusters of at least 10 points."""
    embedding = umap_of(question.scaled, question.n_dimensions, question.seed)
    labels = HDBSCAN(min_cluster_size=TOPIC_SIZE, copy=True).fit(embedding).labels_
    return Ranking((number_of_clusters(labels),))


@rule("EVoC", most_rows=MOST_ROWS_ONCE, can_say_one=True, needs=("evoc",))
def evoc(question: Question) -> Ranking:
    """The layer it returns; its other layers, finest first, are the next candidates."""
    model = evoc_of(question)
    layers = [number_of_clusters(labels) for labels in (model.labels_, *model.cluster_layers_)]
    return Ranking(tuple(dict.fromkeys(layers)))


@rule("always 3")
def always_3(_question: Question) -> Ranking:
    """The constant that is right most often, chosen with the true numbers: no rule should be below it."""
    return Ranking((3,))


# Ours


@rule(DECCS, most_rows=None, can_say_one=True)
def deccs(question: Question) -> Ranking:
    """Evidence from members of unlike kinds."""
    count = import_module("deccs").count_clusters(question.X, random_state=question.seed)
    others = (candidate.k for candidate in count.candidates)
    ranked = tuple(dict.fromkeys((count.n_clusters, *others)))
    return Ranking(ranked, clear=bool(count.is_clear), count=count)


@rule(FIT, most_rows=None, can_say_one=True, by_default=False)
def deccs_fit(question: Question) -> Ranking:
    """A whole fit that chooses its number."""
    model = import_module("deccs").DECCS(n_clusters="auto", random_state=question.seed)
    model.fit(question.X)
    others = (candidate.k for candidate in model.k_candidates_)
    return Ranking(tuple(dict.fromkeys((model.n_clusters_, *others))), labels=model.labels_)
