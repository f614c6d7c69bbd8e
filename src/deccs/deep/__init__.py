"""Deep clustering methods, one file each. A new method needs its import here, and nothing else."""

from deccs.deep.agae import AGAE as AGAE
from deccs.deep.base import METHODS as METHODS
from deccs.deep.concurl import ConCURL as ConCURL
from deccs.deep.dcn import DCN as DCN
from deccs.deep.dec import DEC as DEC
from deccs.deep.dec import IDEC as IDEC
from deccs.deep.deepect import DeepECT as DeepECT
from deccs.deep.iec import IEC as IEC
from deccs.deep.plain import AutoencoderClustering as AutoencoderClustering
from deccs.deep.presets import WITH_A_PRESET as WITH_A_PRESET
from deccs.deep.presets import paper_training as paper_training
from deccs.deep.spectralnet import SpectralNet as SpectralNet
from deccs.deep.vade import VaDE as VaDE

__all__ = ["METHODS", "WITH_A_PRESET", "paper_training"]
__all__ += [cls.__name__ for cls in METHODS.values()]
