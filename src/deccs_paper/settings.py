"""What the paper itself varies by data set; everything else is one set of defaults."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from importlib.resources import files
from typing import Any

from deccs import deep
from deccs.consensus import ConsensusClustering, RandomProjectionEM, RandomProjectionFCM
from deccs.estimator import DECCS
from deccs.members.agglomerative import Agglomerative
from deccs.members.default import Member, default_members
from deccs.settings import Network, Rounds

# In every record. Raise it when the method or a default changes what a run gives, and set it for the
# methods that change: their older records are shown until there are new ones, and never count as new.
RECIPE = 6
PRETRAINING_RECIPE = 1  # the same for the cached autoencoders

LARGE = (500, 500, 2000, 10)  # the network of DEC, for all sets above 2,000 points


@dataclass(frozen=True)
class PaperSettings:
    """Section VI and the appendix: network, weight of the consensus loss, linkage, scaling."""

    k: int
    layers: tuple[int, ...] = LARGE
    lambda_cons: float = 0.1  # images; 10 for the UCI sets and SYNTH
    linkage: str = "ward"  # "single" for the synthetic sets
    scale: str | None = "auto"  # SYNTH is not scaled; the loaders have normalized the others


PAPER = {
    "synth": PaperSettings(4, layers=(20, 20, 2), lambda_cons=10.0, linkage="single", scale=None),
    "mice": PaperSettings(8, layers=(256, 128, 64), lambda_cons=10.0),
    "pendigits": PaperSettings(10, lambda_cons=10.0),
    "har": PaperSettings(6, lambda_cons=10.0),
    "mnist": PaperSettings(10),
    "fmnist": PaperSettings(10),
    "kmnist": PaperSettings(10),
    "usps": PaperSettings(10),
}

# The two clusters of the appendix (Fig. 9) that no line separates: generated, not loaded.
TOYS = {
    "nonlinear": PaperSettings(
        2, layers=(20, 20, 2), lambda_cons=10.0, linkage="single", scale=None
    )
}

# table -> row -> data set -> mean and deviation over ten runs; a single number where the paper took it
# from elsewhere or prints no deviation. KMNIST means all 70,000 points.
PAPER_TABLES: dict[str, dict[str, dict[str, list[float]]]] = json.loads(
    files("deccs_paper").joinpath("paper.json").read_text()
)


def settings_of(name: str) -> PaperSettings:
    known = PAPER | TOYS
    if name not in known:
        raise ValueError(f"No settings for data set {name!r}; there are {', '.join(known)}.")
    return known[name]


def paper_members(name: str, copies: int = 1) -> list[Member]:
    """The default members with the linkage the paper chose for this data set, each ``copies`` times.

    >>> [member for member, _ in paper_members("usps", copies=2)][3:6]
    ['mixture', 'kmeans 2', 'spectral 2']
    """
    paper = settings_of(name)
    agglomerative = Agglomerative(paper.k, linkage=paper.linkage)
    return [
        (
            member if copy == 1 else f"{member} {copy}",
            agglomerative if member == "agglomerative" else clusterer,
        )
        for copy in range(1, copies + 1)
        for member, clusterer in default_members(paper.k)
    ]


def estimator_for(
    name: str, *, random_state: int | None = 0, copies: int = 1, **changes: Any
) -> DECCS:
    """DECCS set up as in the paper for one of its data sets; ``changes`` override any parameter.

    ``copies`` puts every member that many times into the ensemble (the study of its size).

    >>> model = estimator_for("usps", rounds__n_rounds=5)
    >>> model.rounds.lambda_cons, model.rounds.n_rounds, estimator_for("synth").network.layers
    (0.1, 5, (20, 20, 2))
    """
    paper = settings_of(name)
    model = DECCS(
        paper.k,
        members=paper_members(name, copies),
        views=None,
        network=Network(layers=paper.layers, image_shape=None),
        rounds=Rounds(lambda_cons=paper.lambda_cons),
        scale=paper.scale,
        random_state=random_state,
    )
    return model.set_params(**changes)


def consensus_for(
    name: str, *, random_state: int | None = 0, **changes: Any
) -> ConsensusClustering:
    """The paper's ensemble, to be combined by a consensus function."""
    paper = settings_of(name)
    model = ConsensusClustering(
        paper.k, members=paper_members(name), scale=paper.scale, random_state=random_state
    )
    return model.set_params(**changes)


def projections_for(
    estimator: Callable[..., Any], name: str, *, random_state: int | None = 0, **changes: Any
) -> RandomProjectionEM | RandomProjectionFCM:
    """Random projections, their dimension chosen without labels unless given."""
    paper = settings_of(name)
    return estimator(paper.k, scale=paper.scale, random_state=random_state).set_params(**changes)


def deep_for(
    estimator: Callable[..., Any], name: str, *, random_state: int | None = 0, **changes: Any
) -> Any:
    """A deep method. The runner gives the shared autoencoder, of the paper's widths, to one that trains one."""
    paper = settings_of(name)
    model = estimator(paper.k, scale=paper.scale, random_state=random_state)
    if "network" in model.get_params(deep=False):
        model.set_params(network=Network(layers=paper.layers, image_shape=None))
    return model.set_params(**changes)


@dataclass(frozen=True)
class Method:
    """How a method of the comparison is built, and what it is given."""

    build: Callable[..., Any]  # (name, random_state=..., **changes) -> an estimator
    embedded: bool = False  # it clusters the plain autoencoder's embedding, not the data
    functions: tuple[str, ...] = ()  # consensus functions that share one clustering by the members
    recipe: int = 1  # the last one that changed its results
    # data set -> settings it needs for that data set
    on: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    images_only: bool = False


RP_EM = partial(projections_for, RandomProjectionEM)
RP_FCM = partial(projections_for, RandomProjectionFCM)

# With more points, full covariances of 784 columns take minutes.
FEWER_POINTS = {name: {"sample_size": 5600} for name in ("mnist", "fmnist", "kmnist")}

# Those of the comparison. A new consensus function is not one of them: it repeats no run.
FUNCTIONS = ("cspa", "hgpa", "mcla", "supra", "hbgf", "nmf", "eac", "lwea", "lwgp")

# Since recipe 6 these start in coordinates in which the clusters are round.
ROUNDING = ("DEC", "IDEC", "DCN", "VaDE", "DeepECT")

METHODS = {
    # Recipe 3 changed the spectral member of these ensembles: raw SYNTH by LWEA went from 0.59 to 0.76.
    "DECCS": Method(estimator_for, recipe=3),
    "consensus": Method(consensus_for, functions=FUNCTIONS, recipe=3, on=FEWER_POINTS),
    "RP+EM": Method(RP_EM),
    "RP+FCM": Method(RP_FCM),
    "AE+consensus": Method(consensus_for, embedded=True, functions=FUNCTIONS, recipe=3),
    "AE+RP+EM": Method(RP_EM, embedded=True),
    "AE+RP+FCM": Method(RP_FCM, embedded=True),
    **{
        name: Method(
            partial(deep_for, estimator),
            images_only=name == "ConCURL",
            recipe=6 if name in ROUNDING else 1,
        )
        for name, estimator in deep.METHODS.items()
    },
    # With the published training, about 100 times as long.
    **{
        f"{name} paper": Method(
            partial(deep_for, deep.METHODS[name], **deep.paper_training(name)),
            recipe=6 if name in ROUNDING else 1,
            on={small: deep.paper_training(name, small=True) for small in ("synth", "mice")},
        )
        for name in deep.WITH_A_PRESET
    },
}


def row_methods(method: str) -> dict[str, str]:
    """The methods that records of a run name -> their consensus functions, if they have one.

    >>> row_methods("DEC"), row_methods("AE+consensus")["AE+LWEA"]
    ({'DEC': ''}, 'lwea')
    """
    functions = METHODS[method].functions
    return {method.replace("consensus", function.upper()): function for function in functions} or {
        method: ""
    }


# The method in a record -> the method to run for it: one run gives the records of all consensus functions.
RUN_FOR = {row: method for method in METHODS for row in row_methods(method)}
