"""An option of `deccs fit`: a field that says its type, its help and the parameter it sets."""

from dataclasses import dataclass
from typing import Annotated

from deccs.app.request import FitRequest, Option


@dataclass(frozen=True)
class FitWithDropout(FitRequest, command="fit"):
    dropout: Annotated[
        float | None,
        Option("Share of units left out while the network learns.", sets="network__dropout"),
    ] = None


FitWithDropout.__doc__ = FitRequest.__doc__
