"""Consensus functions: many partitions in, one out.

Every function takes ``(base_partitions, n_clusters=None, *, weights=None, random_state=None)`` with
``base_partitions`` of shape (n_members, n_points), -1 or NaN where a member has no label, and returns one
label per point. ``n_clusters=None`` is the number most members have.
"""

from deccs.consensus.choice import average_nmi, supra
from deccs.consensus.estimators import AutoencoderConsensus, ConsensusClustering
from deccs.consensus.evidence import co_association, eac
from deccs.consensus.factorization import nmf
from deccs.consensus.functions import FUNCTIONS
from deccs.consensus.graphs import cspa, hbgf, hgpa, mcla
from deccs.consensus.locally_weighted import lwea, lwgp
from deccs.consensus.partitions import FewerClusters
from deccs.consensus.projections import RandomProjectionEM, RandomProjectionFCM

__all__ = [
    "FUNCTIONS",
    "AutoencoderConsensus",
    "ConsensusClustering",
    "FewerClusters",
    "RandomProjectionEM",
    "RandomProjectionFCM",
    "average_nmi",
    "co_association",
    "cspa",
    "eac",
    "hbgf",
    "hgpa",
    "lwea",
    "lwgp",
    "mcla",
    "nmf",
    "supra",
]
