"""Deep clustering methods, one file each, on one template; ``METHODS`` share one contract test."""

from typing import Any

from deccs.deep.agae import AGAE
from deccs.deep.concurl import ConCURL
from deccs.deep.dcn import DCN
from deccs.deep.dec import DEC, IDEC
from deccs.deep.deepect import DeepECT
from deccs.deep.iec import IEC
from deccs.deep.plain import AutoencoderClustering
from deccs.deep.spectralnet import SpectralNet
from deccs.deep.vade import VaDE

METHODS = {
    "AE+k-means": AutoencoderClustering,
    "DEC": DEC,
    "IDEC": IDEC,
    "DCN": DCN,
    "VaDE": VaDE,
    "DeepECT": DeepECT,
    "SpectralNet": SpectralNet,
    "ConCURL": ConCURL,
    "IEC": IEC,
    "AGAE": AGAE,
}
WITH_A_PRESET = ("DEC", "IDEC", "DCN", "VaDE", "SpectralNet")

# Of SpectralNet's authors: for MNIST and all but the small sets, and for the small ones. Their siamese network ends
# by early stopping; affinities of all pairs, which they have on small sets, are next to nothing beyond 20 neighbors.
SPECTRALNET = {
    False: {
        "n_neighbors": 3,
        "scale_neighbors": 2,
        "walk_length": 1,
        "siamese_neighbors": 2,
        "siamese_steps": 50_000,
        "n_steps": 40_000,
        "hidden": (1024, 1024, 512),
        "batch_size": 1024,
        "learning_rate": 1e-3,
    },
    True: {
        "n_neighbors": 20,
        "scale_neighbors": 2,
        "walk_length": 1,
        "siamese_steps": 0,
        "n_steps": 30_000,
        "hidden": (50, 50, 50),
        "batch_size": 128,
        "learning_rate": 1e-3,
    },
}


def paper_training(method: str, *, small: bool = False) -> dict[str, Any]:
    """How the paper trained DEC, IDEC, DCN, VaDE and SpectralNet: ``DEC(10, **paper_training("DEC"))``.

    The defaults come to the same after a small part of the steps. ``small``: SpectralNet's settings for SYNTH and
    MICE; the others have one set.

    >>> paper_training("DEC")
    {'learning_rate': 0.0001, 'n_steps': 100000, 'batch_size': 256, 'tol': 0.0}
    """
    if method not in WITH_A_PRESET:
        raise ValueError(
            f"The paper has no training of its own for {method!r}; it has for {', '.join(WITH_A_PRESET)}."
        )
    if method == "SpectralNet":
        return dict(SPECTRALNET[small])
    to_the_end = {"tol": 0.0} if method in ("DEC", "IDEC") else {}
    return {"learning_rate": 1e-4, "n_steps": 100_000, "batch_size": 256, **to_the_end}


__all__ = [
    "AGAE",
    "DCN",
    "DEC",
    "IDEC",
    "IEC",
    "METHODS",
    "WITH_A_PRESET",
    "AutoencoderClustering",
    "ConCURL",
    "DeepECT",
    "SpectralNet",
    "VaDE",
    "paper_training",
]
