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
    "AE+k-means": AutoencoderClustering, "DEC": DEC, "IDEC": IDEC, "DCN": DCN, "VaDE": VaDE, "DeepECT": DeepECT,
    "SpectralNet": SpectralNet, "ConCURL": ConCURL, "IEC": IEC, "AGAE": AGAE,
}



def paper_training(method: str) -> dict[str, Any]:
    """How the paper trained DEC, IDEC, DCN and VaDE: ``DEC(10, **paper_training("DEC"))``.

    The defaults come to the same after a small part of the steps.

    >>> paper_training("DEC")
    {'learning_rate': 0.0001, 'n_steps': 100000, 'batch_size': 256, 'tol': 0.0}
    """
    to_the_end = {"tol": 0.0} if method in ("DEC", "IDEC") else {}
    return {"learning_rate": 1e-4, "n_steps": 100_000, "batch_size": 256, **to_the_end}


__all__ = [
    "AGAE", "DCN", "DEC", "IDEC", "IEC", "METHODS", "AutoencoderClustering", "ConCURL", "DeepECT",
    "SpectralNet", "VaDE", "paper_training",
]
