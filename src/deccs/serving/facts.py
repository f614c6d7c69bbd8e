"""What a service says of its model."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from deccs._version import __version__
from deccs.serving.answering import Served


def facts_of(served: Served) -> dict[str, Any]:
    """The columns that rows must have, the clusters, what the replies hold, limits and versions."""
    model = served.model
    return {
        "method": type(model).__name__,
        "deccs": __version__,
        "columns": columns_of(served),
        "missing": served.preprocessing.get("missing", "auto"),
        "clusters": [
            {"number": number, "name": served.names[number] if served.names else None}
            for number in model.clusters_
        ],
        "edits": len(model.edits_),
        "fields": list(served.fields),
        "limits": asdict(served.limits),
    }


def columns_of(served: Served) -> list[dict[str, Any]]:
    """Name and kind of each column, in the order of plain lists; the levels where it has some."""
    coding = served.reader.coding
    if coding is None:
        return [{"name": name, "kind": "number"} for name in served.reader.known]
    return [
        {"name": column.name, "kind": column.kind}
        | ({"levels": list(column.levels)} if column.levels else {})
        for column in coding.columns
    ]
