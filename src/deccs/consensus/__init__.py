"""Consensus functions: many partitions in, one out.

Every function takes ``(base_partitions, n_clusters=None, *, weights=None, random_state=None)`` with
``base_partitions`` of shape (n_members, n_points), -1 or NaN where a member has no label, and
returns one label per point. ``n_clusters=None`` is the number most members have. ``FUNCTIONS`` holds
them by name; ``@consensus_function`` adds one.
"""

from deccs.consensus.choice import average_nmi
from deccs.consensus.choice import supra as supra
from deccs.consensus.estimators import AutoencoderConsensus, ConsensusClustering
from deccs.consensus.evidence import co_association
from deccs.consensus.evidence import eac as eac
from deccs.consensus.factorization import nmf as nmf
from deccs.consensus.functions import FUNCTIONS, consensus_function
from deccs.consensus.graphs import cspa as cspa
from deccs.consensus.graphs import hbgf as hbgf
from deccs.consensus.graphs import hgpa as hgpa
from deccs.consensus.graphs import mcla as mcla
from deccs.consensus.locally_weighted import lwea as lwea
from deccs.consensus.locally_weighted import lwgp as lwgp
from deccs.consensus.projections import RandomProjectionEM, RandomProjectionFCM
from deccs.consensus.resampling import ConsensusMatrix
from deccs.labels import FewerClusters

__all__ = [
    "FUNCTIONS",
    "AutoencoderConsensus",
    "ConsensusClustering",
    "ConsensusMatrix",
    "FewerClusters",
    "RandomProjectionEM",
    "RandomProjectionFCM",
    "average_nmi",
    "co_association",
    "consensus_function",
]
__all__ += sorted(FUNCTIONS)  # a new function needs no more than its import above
