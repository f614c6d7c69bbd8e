"""Deep clustering methods, one file each, on one template: DEC, IDEC, DCN."""

from deccs.deep.dcn import DCN
from deccs.deep.dec import DEC, IDEC

METHODS = {"DEC": DEC, "IDEC": IDEC, "DCN": DCN}

__all__ = ["DCN", "DEC", "IDEC", "METHODS"]
