"""Members by name: the four of the default ensemble, and others for the command line."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from sklearn.cluster import HDBSCAN, Birch, BisectingKMeans, KMeans
from sklearn.mixture import GaussianMixture

from deccs.checks import MANY_CLUSTERS
from deccs.members.agglomerative import Agglomerative
from deccs.members.genie import Genie
from deccs.members.spectral import NeighborSpectral

Member = tuple[str, Any]  # (name, any object with fit_predict) or (name, labels of all points)
ViewMember = tuple[str, Any, str]  # ... and the view it clusters, see deccs.members.views
MakeMember = Callable[[int], Any]  # from the number of clusters

MEMBERS: dict[str, MakeMember] = {}  # by name, filled by the functions below
PARTIAL = "partial labels"  # the name of those given to a fit, as a member with gaps
EARLIER = "earlier clusters"  # ... of those that a model finds which a fit should be like
DEFAULT_MEMBERS = ("kmeans", "spectral", "agglomerative", "mixture")
# Of more than MANY_CLUSTERS: spectral clustering and mixtures would take minutes to hours.
FAST_MEMBERS = ("kmeans", "agglomerative", "bisecting")
VIEW_MEMBERS = (*DEFAULT_MEMBERS, "genie")  # on the raw data and on its manifold


def member(name: str) -> Callable[[MakeMember], MakeMember]:
    """Give a member a name for the command line: ``@member("hdbscan")`` above a function.

    The function makes the clusterer from the number of clusters.
    """

    def add(make: MakeMember) -> MakeMember:
        MEMBERS[name] = make
        return make

    return add


def default_members(n_clusters: int) -> list[Member]:
    """The paper's heterogeneous ensemble: k-means, spectral, agglomerative, Gaussian mixture.

    For more than 500 clusters those whose time does not explode: k-means, agglomerative, bisecting.
    """
    return [(name, MEMBERS[name](n_clusters)) for name in default_names(n_clusters)]


def default_names(n_clusters: int) -> tuple[str, ...]:
    """The names of the default members."""
    return DEFAULT_MEMBERS if n_clusters <= MANY_CLUSTERS else FAST_MEMBERS


def starts_for(n_clusters: int, n_init: int) -> int:
    """How often to start k-means: ``n_init`` times up to 100 clusters, then fewer and fewer.

    >>> starts_for(10, 30), starts_for(200, 30), starts_for(5_000, 10)
    (30, 15, 1)
    """
    return max(1, min(n_init, 100 * n_init // n_clusters))


def default_view_members(n_clusters: int, views: Sequence[str]) -> list[ViewMember]:
    """Each member of ``VIEW_MEMBERS`` on each of the views."""
    return [
        (f"{view} {name}", MEMBERS[name](n_clusters), view)
        for view in views
        for name in VIEW_MEMBERS
    ]


@member("kmeans")
def kmeans(n_clusters: int) -> KMeans:
    return KMeans(n_clusters, n_init=starts_for(n_clusters, 10))


@member("spectral")
def spectral(n_clusters: int) -> NeighborSpectral:
    return NeighborSpectral(n_clusters)


@member("agglomerative")
def agglomerative(n_clusters: int) -> Agglomerative:
    return Agglomerative(n_clusters)


@member("mixture")
def mixture(n_clusters: int) -> GaussianMixture:
    return GaussianMixture(n_clusters, covariance_type="full", reg_covar=1e-5, n_init=3)


@member("genie")
def genie(n_clusters: int) -> Genie:
    return Genie(n_clusters)


@member("bisecting")
def bisecting(n_clusters: int) -> BisectingKMeans:
    return BisectingKMeans(n_clusters)


@member("birch")
def birch(n_clusters: int) -> Birch:
    return Birch(n_clusters=n_clusters)


@member("hdbscan")
def hdbscan(n_clusters: int) -> HDBSCAN:
    """HDBSCAN chooses the number of clusters by itself."""
    return HDBSCAN(copy=True)
