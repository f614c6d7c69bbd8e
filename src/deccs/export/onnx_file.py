"""A fitted model as one ONNX file: from raw columns to labels, checked against the model itself."""

from __future__ import annotations

import json
import warnings
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from os import PathLike
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from deccs._version import __version__
from deccs.checks import check_value, one_of
from deccs.consensus_model import ConsensusModel
from deccs.export.answers import answer_of
from deccs.export.checking import check_same
from deccs.export.graph import ExportError, Graph, Tensor
from deccs.export.inputs import PRECISIONS
from deccs.export.rows import ColumnInput, column_inputs, graph_rows, has_one_input
from deccs.labels import NOISE
from deccs.storage.atomic import replacing

# What a file can say of rows, and where in an answer it is.
OUTPUTS = {
    "labels": "labels",
    "probabilities": "probabilities",
    "confidence": "confidence",
    "novelty": "novelty",
    "embedding": "Z",
    "members": "members",
}
USUAL = ("labels", "probabilities", "confidence", "novelty")
FLAT = ("labels", "confidence", "novelty")  # one number for each row


class NotChecked(UserWarning):
    """A file was written, and nobody has compared it with the model."""


def export(
    model: Any,
    path: str | PathLike[str],
    *,
    precision: str = "double",
    outputs: Sequence[str] | None = None,
    check: Any = True,
) -> None:
    """Write a fitted model to one ONNX file; see :meth:`deccs.DECCS.export`."""
    check_is_fitted(model, "labels_")
    check_value("precision", precision, one_of(*PRECISIONS))
    content = onnx_model(model, precision=precision, outputs=outputs).SerializeToString()
    if check is not False:
        if find_spec("onnxruntime") is None:
            warnings.warn(
                f"{path} is not compared with the model, since onnxruntime is not installed: pip install "
                '"deccs[onnx]", or check=False.',
                NotChecked,
                stacklevel=3,
            )
        else:
            check_same(model, content, precision, rows=None if check is True else check)
    with replacing(path) as file:
        file.write(content)


def onnx_model(
    model: Any, *, precision: str = "double", outputs: Sequence[str] | None = None
) -> Any:
    """The ONNX model of a fitted model, not checked."""
    graph, real = Graph(), PRECISIONS[precision]
    columns = [] if has_one_input(model) else column_inputs(model.coding_)
    rows = graph_rows(graph, model, columns, real)
    answer = answer_of(model, graph, rows)
    found = {name: getattr(answer, where) for name, where in OUTPUTS.items()}
    known = {name: part for name, part in found.items() if part is not None}
    wanted = [name for name in USUAL if name in known] if outputs is None else list(outputs)
    if absent := [name for name in wanted if name not in known]:
        raise ExportError(
            f"outputs must be some of {', '.join(known)} for {type(model).__name__}, got {absent[0]!r}."
        )
    # Rows that predict raises an error for have no label.
    odd = rows.odd | ~is_finite(answer.Z)
    shown = {name: without(odd, known[name], name) for name in wanted}
    return graph.model(shown, metadata(model, columns, precision), FLAT)


def is_finite(Z: Tensor) -> Tensor:
    """(n,) rows with an embedding of numbers."""
    return ~(Z * 0.0).sum().op("IsNaN", dtype=np.bool_)


def without(odd: Tensor, part: Tensor, name: str) -> Tensor:
    """A part of an answer, with "no label" or 0 for odd rows, which are like no other."""
    nothing = {"labels": NOISE, "members": NOISE, "novelty": 1.0}.get(name, 0.0)
    return (odd if name in FLAT else odd.unsqueeze(1)).where(nothing, part)


def metadata(model: Any, columns: Sequence[ColumnInput], precision: str) -> Mapping[str, str]:
    """What the file says of itself."""
    of_array = [str(name) for name in getattr(model, "feature_names_in_", ())]
    about: dict[str, Any] = {
        "deccs": __version__,
        "class": "DECCS" if isinstance(model, ConsensusModel) else type(model).__name__,
        "precision": precision,
        "cluster_names": list(model._names()),
        "clusters": list(model.clusters_),
        "columns": [vars(column) for column in columns] if columns else of_array,
    }
    return {
        key: value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        for key, value in about.items()
    }
