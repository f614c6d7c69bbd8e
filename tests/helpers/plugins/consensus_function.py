"""A consensus function: single linkage on the co-association of the members."""

from deccs.consensus import consensus_function
from deccs.consensus.evidence import eac


@consensus_function
def chained(base_partitions, n_clusters=None, *, weights=None, random_state=None):
    """Evidence accumulation with single linkage."""
    return eac(
        base_partitions, n_clusters, linkage="single", weights=weights, random_state=random_state
    )
