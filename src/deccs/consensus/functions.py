"""All consensus functions by name."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from deccs.consensus.choice import supra
from deccs.consensus.evidence import eac
from deccs.consensus.factorization import nmf
from deccs.consensus.graphs import cspa, hbgf, hgpa, mcla
from deccs.consensus.locally_weighted import lwea, lwgp

FUNCTIONS: dict[str, Callable[..., np.ndarray]] = {
    "cspa": cspa,
    "hgpa": hgpa,
    "mcla": mcla,
    "supra": supra,
    "hbgf": hbgf,
    "nmf": nmf,
    "eac": eac,
    "lwea": lwea,
    "lwgp": lwgp,
}
