"""Values as a JSON tree and named arrays, and back. Only types known here or registered by our own code."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import torch
from scipy.sparse import csr_array


class ModelFileError(ValueError):
    """A model cannot be saved, or a file is no model that can be loaded."""


Fields = dict[str, Any]
T = TypeVar("T")

NUMBERS = {
    np.dtype(name)
    for name in (
        "bool",
        "int8",
        "int16",
        "int32",
        "int64",
        "uint8",
        "uint16",
        "uint32",
        "uint64",
        "float16",
        "float32",
        "float64",
    )
}
LONGEST_TEXT = 1_000  # of what stands for a value that is not kept


@dataclass(frozen=True)
class Kind:
    """How a type is taken apart into fields, and made from them."""

    type: type
    take: Callable[[Any], Fields]
    make: Callable[[Fields], Any]


KINDS: dict[str, Kind] = {}  # by name in the file; no name of a file is ever imported

# Names in files of version 1 -> their names now.
RENAMED = {"centres": "centers", "FuzzyCentres": "FuzzyCenters", "neighbours": "neighbors"}


def register(cls: type, take: Callable[[Any], Fields], make: Callable[[Fields], Any]) -> None:
    """Let files hold values of this type: ``take`` gives the fields to store, ``make`` builds the value."""
    if cls.__name__ in KINDS:
        raise ValueError(f"There are two types to be stored as {cls.__name__!r}.")
    KINDS[cls.__name__] = Kind(cls, take, make)


def stored(cls: type[T]) -> type[T]:
    """Let files hold this dataclass, field by field."""
    names = [field.name for field in dataclasses.fields(cls)]  # type: ignore[arg-type]
    register(
        cls,
        lambda value: {name: getattr(value, name) for name in names},
        lambda fields: cls(**fields),
    )
    return cls


register(
    range,
    lambda value: {"start": value.start, "stop": value.stop, "step": value.step},
    lambda fields: range(fields["start"], fields["stop"], fields["step"]),
)


class NotKept:
    """In place of a value that a file cannot hold, such as a user's own clusterer: its text alone."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return f"<{self.text}, not kept in the model file>"

    def __array__(self, *_: object, **__: object) -> np.ndarray:
        raise TypeError(f"{self!r} is no array.")


def as_text(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= LONGEST_TEXT else text[: LONGEST_TEXT - 3] + "..."


class Writer:
    """``tree(value, name)`` gives what goes into JSON; ``arrays`` fill meanwhile."""

    def __init__(self) -> None:
        self.arrays: dict[str, np.ndarray] = {}

    def setting(self, value: Any, name: str) -> Any:
        """The tree of something users have given: what cannot be kept becomes text."""
        return self.tree(value, name, or_text=True)

    def tree(self, value: Any, name: str, or_text: bool = False) -> Any:
        def inner(part: Any, key: object) -> Any:
            return self.tree(part, f"{name}/{key}", or_text)

        if value is None or type(value) in (bool, int, str):
            return value
        if type(value) is float:
            return value if math.isfinite(value) else {"kind": "float", "text": repr(value)}
        if type(value) is list:
            return [inner(part, number) for number, part in enumerate(value)]
        if type(value) is tuple:
            return {
                "kind": "tuple",
                "items": [inner(part, number) for number, part in enumerate(value)],
            }
        if isinstance(value, dict):
            pairs = [
                [inner(key, "key"), inner(part, key if isinstance(key, str | int) else "value")]
                for key, part in value.items()
            ]
            return {"kind": "dict", "items": pairs}
        if isinstance(value, np.generic) and value.dtype in NUMBERS:
            return {
                "kind": "scalar",
                "dtype": str(value.dtype),
                "value": inner(value.item(), "value"),
            }
        if isinstance(value, torch.Tensor) and value.dtype is not torch.bfloat16:
            return self._array("tensor", value.detach().cpu().numpy(), name)
        if isinstance(value, np.ndarray) and value.dtype.newbyteorder("=") in NUMBERS:
            return self._array("array", np.asarray(value), name)
        if (
            isinstance(value, np.ndarray)
            and value.ndim == 1
            and all(isinstance(word, str) for word in value)
        ):
            return {"kind": "strings", "items": [str(word) for word in value]}
        if isinstance(value, NotKept):
            return {"kind": "not kept", "text": value.text}
        kind = KINDS.get(type(value).__name__)
        if kind and kind.type is type(value) and (dataclasses.is_dataclass(value) or not or_text):
            return {
                "kind": type(value).__name__,
                "fields": {field: inner(part, field) for field, part in kind.take(value).items()},
            }
        if or_text:
            return {"kind": "not kept", "text": as_text(value)}
        raise ModelFileError(
            f"{name} is a {type(value).__name__}, which a file cannot hold: {as_text(value)}. "
            f"Files hold plain values, arrays and {', '.join(sorted(KINDS))}."
        )

    def _array(self, kind: str, array: np.ndarray, name: str) -> Any:
        """Its order in memory is kept: products of matrices in another order have other last digits."""
        transposed = array.flags.f_contiguous and not array.flags.c_contiguous
        array = array.T if transposed else array
        while name in self.arrays:
            name += "'"
        self.arrays[name] = np.ascontiguousarray(
            array, dtype=array.dtype.newbyteorder("=")
        ).reshape(array.shape)
        return {
            "kind": kind,
            "name": name,
            "dtype": str(array.dtype.newbyteorder("=")),
            "shape": list(array.shape),
            "transposed": transposed,
        }


class Reader:
    """``value(tree)`` undoes ``Writer.tree``. Every array is handed out once; :meth:`finish` says if one is left."""

    def __init__(self, arrays: dict[str, np.ndarray]) -> None:
        self.arrays = dict(arrays)

    def value(self, tree: Any) -> Any:
        if isinstance(tree, list):
            return [self.value(part) for part in tree]
        if not isinstance(tree, dict):
            return tree
        kind = tree["kind"]
        if kind == "float":
            return {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}[tree["text"]]
        if kind == "tuple":
            return tuple(self.value(part) for part in tree["items"])
        if kind == "dict":
            return {self.value(key): self.value(part) for key, part in tree["items"]}
        if kind == "scalar":
            return number_type(tree["dtype"]).type(self.value(tree["value"]))
        if kind == "array":
            return self._array(tree)
        if kind == "tensor":
            return torch.from_numpy(self._array(tree))
        if kind == "strings":
            return np.array([str(word) for word in tree["items"]], dtype=object)
        if kind == "not kept":
            return NotKept(str(tree["text"]))
        kind = RENAMED.get(kind, kind)
        if kind not in KINDS:
            raise ModelFileError(f"it holds a {kind!r}, which this deccs does not know")
        fields = {
            RENAMED.get(name, name): self.value(part) for name, part in tree["fields"].items()
        }
        return KINDS[kind].make(fields)

    def _array(self, tree: Any) -> np.ndarray:
        name, shape, dtype = tree["name"], tuple(tree["shape"]), number_type(tree["dtype"])
        if name not in self.arrays:
            raise ModelFileError(f"the array {name!r} is missing, or asked for twice")
        array = self.arrays.pop(name)
        if array.shape != shape or array.dtype != dtype:
            raise ModelFileError(
                f"the array {name!r} should be of shape {shape} and type {dtype}, "
                f"but is of shape {array.shape} and type {array.dtype}"
            )
        return array.T if tree["transposed"] else array

    def finish(self) -> None:
        if self.arrays:
            raise ModelFileError(
                f"it holds arrays that nothing asks for: {', '.join(sorted(self.arrays)[:5])}"
            )


def number_type(name: str) -> np.dtype[Any]:
    for dtype in NUMBERS:
        if str(dtype) == name:
            return dtype
    raise ModelFileError(f"{name!r} is no type of numbers that files hold")


def take_csr(matrix: csr_array) -> Fields:
    return {
        "data": matrix.data,
        "indices": matrix.indices,
        "indptr": matrix.indptr,
        "shape": matrix.shape,
    }


def make_csr(fields: Fields) -> csr_array:
    matrix = csr_array((fields["data"], fields["indices"], fields["indptr"]), shape=fields["shape"])
    matrix.check_format(full_check=True)  # compiled code trusts the indices
    return matrix


register(csr_array, take_csr, make_csr)
