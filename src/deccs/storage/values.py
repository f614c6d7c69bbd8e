"""Values as a JSON tree and named arrays, and back. Only types known here or registered by our own code."""

from __future__ import annotations

import dataclasses
import importlib
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from deccs.loaded import is_tensor

LONGEST_MESSAGE = 3_000


class ModelFileError(ValueError):
    """A model cannot be saved, or a file is no model that can be loaded.

    Its text can be printed, whatever a file has put into it.
    """

    def __init__(self, text: str = "") -> None:
        super().__init__(printable(text, LONGEST_MESSAGE))


def printable(text: object, longest: int) -> str:
    r"""A text without control characters but line breaks and tabs, and cut: what a terminal can be given.

    >>> printable("red: \x1b[31m", 100), printable("abcdef", 5)
    ('red: \\x1b[31m', 'ab...')
    """
    safe = "".join(
        letter if letter.isprintable() or letter in "\n\t" else repr(letter)[1:-1]
        for letter in str(text)[: longest + 1]
    )
    return safe if len(safe) <= longest else safe[: longest - 3] + "..."


def in_one_line(text: object) -> str:
    """A text of a file or of another library for use within a message: short, without line breaks."""
    return " ".join(printable(text, 400).split()).rstrip(".")


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
MOST_VALUES = 1_000_000  # in one document
LONGEST_STRING = 10_000  # of names and the like
MOST_INT_KEY = 100_000  # larger ones can be chosen so that a dict takes quadratic time
LONGEST_RANGE = 1_000_000


@dataclass(frozen=True)
class Kind:
    """How a type is taken apart into fields, and made from them."""

    type: type
    take: Callable[[Any], Fields]
    make: Callable[[Fields], Any]
    keeps_text: bool = (
        False  # control characters, too; whoever shows the texts makes them printable
    )


KINDS: dict[str, Kind] = {}  # by name in the file; no name of a file is ever imported
# Kinds of other libraries, which are loaded when a value or a file has one of these.
HOMES = {
    **dict.fromkeys(("KMeans", "MiniBatchKMeans", "GaussianMixture"), "deccs.storage.clusterers"),
    "csr_array": "deccs.storage.sparse",
    "Sequential": "deccs.storage.networks",
}


def kind_named(name: str) -> Kind | None:
    """The kind of this name, if files can hold it."""
    if name not in KINDS and name in HOMES:
        importlib.import_module(HOMES[name])
    return KINDS.get(name)


# Names in files of version 1 -> their names now.
RENAMED = {"centres": "centers", "FuzzyCentres": "FuzzyCenters", "neighbours": "neighbors"}


def register(
    cls: type,
    take: Callable[[Any], Fields],
    make: Callable[[Fields], Any],
    keeps_text: bool = False,
) -> None:
    """Let files hold values of this type: ``take`` gives the fields to store, ``make`` builds the value."""
    if cls.__name__ in KINDS:
        raise ValueError(f"There are two types to be stored as {cls.__name__!r}.")
    KINDS[cls.__name__] = Kind(cls, take, make, keeps_text)


def make_range(fields: Fields) -> range:
    numbers = range(fields["start"], fields["stop"], fields["step"])
    if len(numbers) > LONGEST_RANGE:
        raise ModelFileError(f"it holds a range of {len(numbers):,} numbers")
    return numbers


register(
    range,
    lambda value: {"start": value.start, "stop": value.stop, "step": value.step},
    make_range,
)


class NotKept:
    """In place of a value that a file cannot hold, such as a user's own clusterer: its text alone."""

    def __init__(self, text: str) -> None:
        self.text = printable(text, LONGEST_TEXT)

    def __repr__(self) -> str:
        return f"<{self.text}, not kept in the model file>"

    def __array__(self, *_: object, **__: object) -> np.ndarray:
        raise TypeError(f"{self!r} is no array.")


def as_text(value: Any) -> str:
    return printable(repr(value), LONGEST_TEXT)


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
        if isinstance(value, list):
            return [inner(part, number) for number, part in enumerate(value)]
        if isinstance(value, tuple):
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
        if is_tensor(value) and str(value.dtype) != "torch.bfloat16":
            return self._array("tensor", value.detach().cpu().numpy(), name)
        if isinstance(value, np.ndarray) and value.dtype.newbyteorder("=") in NUMBERS:
            return self._array("array", np.asarray(value), name)
        if isinstance(value, np.str_):
            return str(value)
        if (
            isinstance(value, np.ndarray)
            and value.ndim == 1
            and all(isinstance(word, str) for word in value)
        ):
            return {"kind": "strings", "items": [str(word) for word in value]}
        if isinstance(value, NotKept):
            return {"kind": "not kept", "text": value.text}
        kind = kind_named(type(value).__name__)
        is_plain = dataclasses.is_dataclass(value) or isinstance(value, range)
        if kind and kind.type is type(value) and (is_plain or not or_text):
            return {
                "kind": type(value).__name__,
                "fields": {field: inner(part, field) for field, part in kind.take(value).items()},
            }
        if or_text:
            return {"kind": "not kept", "text": as_text(value)}
        raise ModelFileError(
            f"{name} is a {type(value).__name__}, which a file cannot hold: {as_text(value)}. "
            f"Files hold plain values, arrays and {', '.join(sorted({*KINDS, *HOMES}))}."
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

    def __init__(self, arrays: dict[str, np.ndarray], from_stranger: bool = False) -> None:
        self.arrays, self.n_values = dict(arrays), 0
        self.from_stranger = from_stranger  # whether texts may have been made to be printed

    def value(self, tree: Any) -> Any:
        self.n_values += 1
        if self.n_values > MOST_VALUES:
            raise ModelFileError(f"it holds more than {MOST_VALUES:,} values")
        if isinstance(tree, str):
            return printable(tree, LONGEST_STRING) if self.from_stranger else tree
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
            return self._dict(tree["items"])
        if kind == "scalar":
            return number_type(tree["dtype"]).type(self.value(tree["value"]))
        if kind == "array":
            return self._array(tree)
        if kind == "tensor":
            return self._tensor(tree)
        if kind == "strings":
            return np.array([str(word) for word in tree["items"]], dtype=object)
        if kind == "not kept":
            return NotKept(str(tree["text"]))
        kind = RENAMED.get(kind, kind)
        known = self._kind(kind) if isinstance(kind, str) else None
        if known is None:
            raise ModelFileError(f"it holds a {kind!r:.60}, which this deccs does not know")
        from_stranger = self.from_stranger
        self.from_stranger = from_stranger and not known.keeps_text
        fields = {
            RENAMED.get(name, name): self.value(part) for name, part in tree["fields"].items()
        }
        self.from_stranger = from_stranger
        return known.make(fields)

    def _kind(self, name: str) -> Kind | None:
        """What a value of this kind is made by."""
        return kind_named(name)

    def _tensor(self, tree: Any) -> Any:
        import torch

        return torch.from_numpy(self._array(tree))

    def _dict(self, items: Any) -> dict[Any, Any]:
        pairs = [(self.value(key), self.value(part)) for key, part in items]
        for key, _ in pairs:
            if not (type(key) is str or (type(key) is int and 0 <= key <= MOST_INT_KEY)):
                raise ModelFileError(
                    f"{in_one_line(repr(key))} cannot be a key; a key is a text or a whole number "
                    f"from 0 to {MOST_INT_KEY:,}"
                )
        values = dict(pairs)
        if len(values) < len(pairs):
            raise ModelFileError("it has the same key twice")
        return values

    def _array(self, tree: Any) -> np.ndarray:
        name, shape, dtype = tree["name"], tuple(tree["shape"]), number_type(tree["dtype"])
        if name not in self.arrays:
            raise ModelFileError(f"the array {name!r:.100} is missing, or asked for twice")
        array = self.arrays.pop(name)
        if array.shape != shape or array.dtype != dtype:
            raise ModelFileError(
                f"the array {name!r:.100} should be of shape {shape} and type {dtype}, "
                f"but is of shape {array.shape} and type {array.dtype}"
            )
        return array.T if tree["transposed"] else array

    def finish(self) -> None:
        if self.arrays:
            raise ModelFileError(
                f"it holds arrays that nothing asks for: {sorted(self.arrays)[:5]!r:.300}"
            )


def number_type(name: str) -> np.dtype[Any]:
    for dtype in NUMBERS:
        if str(dtype) == name:
            return dtype
    raise ModelFileError(f"{name!r:.60} is no type of numbers that files hold")
