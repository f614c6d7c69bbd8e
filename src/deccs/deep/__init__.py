"""Deep clustering methods, one file each, on one template.

``METHODS`` are those that start from an autoencoder and train it, and share one contract test.
"""

from deccs.deep.agae import AGAE
from deccs.deep.concurl import ConCURL
from deccs.deep.dcn import DCN
from deccs.deep.dec import DEC, IDEC
from deccs.deep.deepect import DeepECT
from deccs.deep.iec import IEC
from deccs.deep.plain import AutoencoderClustering
from deccs.deep.spectralnet import SpectralNet
from deccs.deep.vade import VaDE

METHODS = {"DEC": DEC, "IDEC": IDEC, "DCN": DCN, "VaDE": VaDE, "DeepECT": DeepECT,
           "SpectralNet": SpectralNet}

__all__ = ["AGAE", "DCN", "DEC", "IDEC", "IEC", "METHODS", "AutoencoderClustering", "ConCURL", "DeepECT", "SpectralNet",
           "VaDE"]
