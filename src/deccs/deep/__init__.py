"""Deep clustering methods, one file each, on one template; ``METHODS`` share one contract test."""

from deccs.deep.agae import AGAE
from deccs.deep.concurl import ConCURL
from deccs.deep.dcn import DCN
from deccs.deep.dec import DEC, IDEC
from deccs.deep.deepect import DeepECT
from deccs.deep.iec import IEC
from deccs.deep.plain import AutoencoderClustering
from deccs.deep.vade import VaDE

METHODS = {
    "AE+k-means": AutoencoderClustering, "DEC": DEC, "IDEC": IDEC, "DCN": DCN, "VaDE": VaDE, "DeepECT": DeepECT,
    "ConCURL": ConCURL, "IEC": IEC, "AGAE": AGAE,
}

__all__ = ["AGAE", "DCN", "DEC", "IDEC", "IEC", "METHODS", "AutoencoderClustering", "ConCURL", "DeepECT", "VaDE"]
