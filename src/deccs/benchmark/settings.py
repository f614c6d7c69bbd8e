"""What the paper itself varies by data set, and nothing else. All the rest is one set of defaults."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sklearn.cluster import AgglomerativeClustering

from deccs.ensemble import default_members
from deccs.estimator import DECCS

# Stands in every record and names every cached autoencoder. Raise it when the method or a default changes what a
# run gives: records of another recipe are never taken for this one's.
RECIPE = 1

LARGE = (500, 500, 2000, 10)  # the network of DEC, for all sets above 2,000 points


@dataclass(frozen=True)
class PaperSettings:
    """Section VI and the appendix: network, weight of the consensus loss, linkage, scaling."""

    k: int
    layers: tuple[int, ...] = LARGE
    lambda_cons: float = 0.1          # images; 10 for the UCI sets and SYNTH
    linkage: str = "ward"             # "single" for the synthetic sets
    scale: str | None = "auto"        # SYNTH is not scaled; the loaders have normalised the others


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

# Table II, first row: mean NMI and deviation over ten runs. KMNIST there is all 70,000 points.
PAPER_NMI = {
    "synth": (0.99, 0.02), "mice": (0.57, 0.03), "pendigits": (0.82, 0.02), "har": (0.75, 0.02),
    "mnist": (0.88, 0.02), "fmnist": (0.65, 0.01), "kmnist": (0.61, 0.01), "usps": (0.85, 0.01),
}


def settings_of(name: str) -> PaperSettings:
    if name not in PAPER:
        raise ValueError(f"No settings for data set {name!r}; there are {', '.join(PAPER)}.")
    return PAPER[name]


def estimator_for(name: str, *, random_state: int | None = 0, **changes: Any) -> DECCS:
    """DECCS set up as in the paper for one of its data sets; ``changes`` override any parameter.

    >>> estimator_for("usps").lambda_cons, estimator_for("synth").layers
    (0.1, (20, 20, 2))
    """
    paper = settings_of(name)
    agglomerative = AgglomerativeClustering(paper.k, linkage=paper.linkage)
    members = [(member, agglomerative if member == "agglomerative" else clusterer)
               for member, clusterer in default_members(paper.k)]
    given: dict[str, Any] = {
        "members": members, "layers": paper.layers, "lambda_cons": paper.lambda_cons, "scale": paper.scale,
        "random_state": random_state, **changes,
    }
    return DECCS(paper.k, **given)


def plain_estimator(name: str, *, random_state: int | None = 0, **changes: Any) -> DECCS:
    """``DECCS(n_clusters=k)``: nothing but k is given."""
    return DECCS(settings_of(name).k, random_state=random_state, **changes)


METHODS = {"DECCS": estimator_for, "DECCS plain": plain_estimator}
