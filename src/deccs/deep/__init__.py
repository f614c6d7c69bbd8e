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

# The paper's training of DEC, IDEC, DCN and VaDE: ``DEC(10, **PAPER_TRAINING)``. The defaults end at the same NMI
# after a small part of the steps.
PAPER_TRAINING: dict[str, Any] = {"learning_rate": 1e-4, "n_steps": 100_000, "batch_size": 256}

__all__ = [
    "AGAE", "DCN", "DEC", "IDEC", "IEC", "METHODS", "PAPER_TRAINING", "AutoencoderClustering", "ConCURL", "DeepECT",
    "SpectralNet", "VaDE",
]
