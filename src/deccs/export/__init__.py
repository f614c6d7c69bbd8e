"""Fitted models outside of Python: one ONNX file from raw columns to labels."""

from deccs.export.graph import ExportError as ExportError
from deccs.export.inputs import onnx_inputs as onnx_inputs
from deccs.export.onnx_file import NotChecked as NotChecked
from deccs.export.onnx_file import export as export

__all__ = ["ExportError", "NotChecked", "export", "onnx_inputs"]
