"""A graph of ONNX operators, written like NumPy.

>>> graph = Graph()
>>> x = graph.input("x", np.float64, 2)
>>> y = (x - np.array([1.0, 0.0])).sum()
>>> [node.op_type for node in graph.model({"y": y}, {}, flat="y").graph.node]
['Sub', 'ReduceSum']

Only operators are used that onnxruntime has in double precision: there is no Asinh and no Erf, and LeakyRelu came late.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

OPSET, ML_OPSET, IR_VERSION = 18, 3, 8  # onnxruntime 1.14 (2023) and newer ones read these
ML = "ai.onnx.ml"
TEXT = np.dtype(object)  # the type of texts in NumPy, as onnxruntime takes them
WHOLE = np.dtype(np.int64)
LIMIT = 2**31 - 2**20  # bytes of a protocol buffer, which an ONNX file is


class ExportError(ValueError):
    """A model cannot be written as ONNX; the message says why, and what to do."""


def onnx_library() -> Any:
    """The onnx package."""
    try:
        import onnx
    except ImportError as error:
        raise ImportError('ONNX files need onnx: pip install "deccs[onnx]".') from error
    return onnx


@dataclass(frozen=True, eq=False)
class Tensor:
    """A value in a graph. Arrays and numbers beside it become constants of its type."""

    graph: Graph
    name: str
    dtype: np.dtype[Any]

    __array_ufunc__ = None  # NumPy leaves ``array + tensor`` to the tensor

    def op(self, kind: str, *others: Any, **how: Any) -> Tensor:
        """The operator with this tensor as its first input."""
        return self.graph.op(kind, self, *others, **how)

    def __add__(self, other: Any) -> Tensor:
        return self.op("Add", other)

    def __sub__(self, other: Any) -> Tensor:
        return self.op("Sub", other)

    def __rsub__(self, other: Any) -> Tensor:
        return self.graph.op("Sub", self.graph.constant(other, self.dtype), self)

    def __mul__(self, other: Any) -> Tensor:
        return self.op("Mul", other)

    def __truediv__(self, other: Any) -> Tensor:
        return self.op("Div", other)

    def __rtruediv__(self, other: Any) -> Tensor:
        return self.graph.op("Div", self.graph.constant(other, self.dtype), self)

    def __matmul__(self, other: Any) -> Tensor:
        return self.op("MatMul", other)

    def __lt__(self, other: Any) -> Tensor:
        return self.op("Less", other, dtype=np.bool_)

    def __gt__(self, other: Any) -> Tensor:
        return self.op("Greater", other, dtype=np.bool_)

    def __ge__(self, other: Any) -> Tensor:
        return self.op("GreaterOrEqual", other, dtype=np.bool_)

    def __le__(self, other: Any) -> Tensor:
        return self.op("LessOrEqual", other, dtype=np.bool_)

    def __and__(self, other: Any) -> Tensor:
        return self.op("And", other, dtype=np.bool_)

    def __or__(self, other: Any) -> Tensor:
        return self.op("Or", other, dtype=np.bool_)

    def __invert__(self) -> Tensor:
        return self.op("Not", dtype=np.bool_)

    def equals(self, other: Any) -> Tensor:
        """Where both are equal. Not ``==``, which tells whether two handles are one."""
        return self.op("Equal", other, dtype=np.bool_)

    def cast(self, dtype: Any) -> Tensor:
        """The same values in another type."""
        if np.dtype(dtype) == self.dtype:
            return self
        to = onnx_library().helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
        return self.op("Cast", to=to, dtype=dtype)

    def where(self, yes: Any, no: Any) -> Tensor:
        """``yes`` where this is true, else ``no``; one of the two is a tensor."""
        like = yes if isinstance(yes, Tensor) else no
        parts = [self.graph.constant(part, like.dtype) for part in (yes, no)]
        return self.op("Where", *parts, dtype=like.dtype)

    def take(self, places: Tensor | np.ndarray | Sequence[int], axis: int = 0) -> Tensor:
        """The parts at these places along an axis."""
        return self.op("Gather", self.graph.constant(places, WHOLE), axis=axis)

    def sum(self, axis: int = 1, keepdims: bool = False) -> Tensor:
        return self._reduced("ReduceSum", axis, keepdims)

    def max(self, axis: int = 1, keepdims: bool = False) -> Tensor:
        return self._reduced("ReduceMax", axis, keepdims)

    def min(self, axis: int = 1, keepdims: bool = False) -> Tensor:
        return self._reduced("ReduceMin", axis, keepdims)

    def mean(self, axis: int = 1) -> Tensor:
        return self._reduced("ReduceMean", axis, False)

    def _reduced(self, kind: str, axis: int, keepdims: bool) -> Tensor:
        return self.op(kind, self.graph.constant([axis], WHOLE), keepdims=int(keepdims))

    def argmax(self, axis: int = 1) -> Tensor:
        return self.op("ArgMax", axis=axis, keepdims=0, dtype=WHOLE)

    def softmax(self, axis: int = 1) -> Tensor:
        return self.op("Softmax", axis=axis)

    def unsqueeze(self, axis: int) -> Tensor:
        return self.op("Unsqueeze", self.graph.constant([axis], WHOLE))

    def squeeze(self, axis: int) -> Tensor:
        return self.op("Squeeze", self.graph.constant([axis], WHOLE))

    def reshape(self, *shape: int) -> Tensor:
        """Another shape; 0 keeps a dimension, so that no rows at all have a shape, too."""
        return self.op("Reshape", self.graph.constant(shape, WHOLE))

    def clip(self, least: float, most: float) -> Tensor:
        return self.op("Clip", least, most)

    def smallest(self, n: int, axis: int = 1) -> tuple[Tensor, Tensor]:
        """The n smallest along an axis in order, and their places; of equal ones the first."""
        count = self.graph.constant([n], WHOLE)
        values, places = self.graph.ops(
            "TopK", self, count, dtypes=(self.dtype, WHOLE), axis=axis, largest=0
        )
        return values, places

    def square(self) -> Tensor:
        return self * self

    def is_one_of(self, n: int) -> Tensor:
        """A place more, with 1 at the number that this is and 0 elsewhere: (...,) -> (..., n) booleans."""
        return self.unsqueeze(-1).equals(np.arange(n))


class Graph:
    """Inputs, constants and operators in the order they are made."""

    def __init__(self) -> None:
        self.nodes: list[Any] = []
        self.inputs: list[Any] = []
        self.constants: dict[str, np.ndarray] = {}
        self._names: dict[tuple[Any, ...], str] = {}  # of constants, by what they hold

    def input(self, name: str, dtype: Any, width: int) -> Tensor:
        """What the graph is given: (n, width)."""
        helper = onnx_library().helper
        kind = np.dtype(dtype)
        self.inputs.append(helper.make_tensor_value_info(name, type_of(kind), ["n", width]))
        return Tensor(self, name, kind)

    def constant(self, value: Any, dtype: Any = None) -> Tensor:
        """A constant; a tensor is returned as it is. Equal ones are held once."""
        if isinstance(value, Tensor):
            return value
        array = np.ascontiguousarray(value, dtype=dtype).reshape(np.shape(value))
        key = (array.dtype.str, array.shape, array.tobytes())
        if key not in self._names:
            self._names[key] = f"deccs.constant.{len(self.constants)}"
            self.constants[self._names[key]] = array
        return Tensor(self, self._names[key], array.dtype)

    def op(self, kind: str, *inputs: Any, dtype: Any = None, **how: Any) -> Tensor:
        """The result of one operator; its type is that of its first input, unless it is given."""
        first = next(part for part in inputs if isinstance(part, Tensor))
        return self.ops(kind, *inputs, dtypes=(dtype or first.dtype,), **how)[0]

    def ops(
        self, kind: str, *inputs: Any, dtypes: Sequence[Any], domain: str = "", **attributes: Any
    ) -> list[Tensor]:
        """The results of an operator with several."""
        like = next(part for part in inputs if isinstance(part, Tensor)).dtype
        names = [self.constant(part, like).name for part in inputs]
        made = [
            Tensor(self, f"deccs.{len(self.nodes)}.{place}", np.dtype(dtype))
            for place, dtype in enumerate(dtypes)
        ]
        make_node = onnx_library().helper.make_node
        outputs = [tensor.name for tensor in made]
        self.nodes.append(make_node(kind, names, outputs, domain=domain, **attributes))
        return made

    def concat(self, parts: Sequence[Tensor], axis: int = 1) -> Tensor:
        """Several tensors side by side."""
        return parts[0] if len(parts) == 1 else self.op("Concat", *parts, axis=axis)

    def model(
        self,
        outputs: Mapping[str, Tensor],
        metadata: Mapping[str, str],
        flat: Collection[str] = (),
    ) -> Any:
        """The ONNX model of some outputs: (n, width), but those in ``flat`` are (n,)."""
        onnx = onnx_library()
        helper = onnx.helper
        named = {tensor.name: name for name, tensor in outputs.items()}
        if len(named) < len(outputs):
            raise AssertionError("two outputs are one tensor")
        nodes = needed(self.nodes, set(named))
        for node in nodes:
            node.input[:] = [named.get(name, name) for name in node.input]
            node.output[:] = [named.get(name, name) for name in node.output]
        used = {name for node in nodes for name in node.input}
        size = sum(part.nbytes for name, part in self.constants.items() if name in used)
        if size > LIMIT:
            raise ExportError(
                f"The model has {size / 2**30:.1f} GB of numbers, and an ONNX file holds 2 GB. Use "
                "precision='single', or leave out outputs."
            )
        constants = [
            onnx.numpy_helper.from_array(array, name)
            for name, array in self.constants.items()
            if name in used
        ]
        results = [
            helper.make_tensor_value_info(
                name, type_of(tensor.dtype), ["n"] if name in flat else ["n", None]
            )
            for name, tensor in outputs.items()
        ]
        graph = helper.make_graph(nodes, "deccs", self.inputs, results, constants)
        domains = [helper.make_opsetid("", OPSET), helper.make_opsetid(ML, ML_OPSET)]
        model = helper.make_model(graph, opset_imports=domains, ir_version=IR_VERSION)
        helper.set_model_props(model, dict(metadata))
        onnx.checker.check_model(model, full_check=True)
        return model


def type_of(dtype: np.dtype[Any]) -> int:
    """ONNX's number of a type."""
    onnx = onnx_library()
    return onnx.TensorProto.STRING if dtype == TEXT else onnx.helper.np_dtype_to_tensor_dtype(dtype)


def needed(nodes: Sequence[Any], wanted: set[str]) -> list[Any]:
    """The operators that these results need, in their order."""
    kept = []
    for node in reversed(nodes):
        if wanted.intersection(node.output):
            kept.append(node)
            wanted = wanted.union(node.input)
    return kept[::-1]
