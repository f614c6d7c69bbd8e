"""What a value in a file must be, so that nothing can go wrong later because of it.

A stored dataclass says it by the type hints of its fields, an estimator in ``LEARNED``. Arrays have
their shape in words; a word stands for one size within one object::

    raw: Annotated[np.ndarray, reals("n_sample", "n_components")]
    labels: Annotated[np.ndarray, wholes("n_sample", below="n_clusters")]
"""

from __future__ import annotations

import dataclasses
import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from numbers import Real
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

import numpy as np

from deccs.checks import Rule, check_value, is_whole
from deccs.labels import NOISE
from deccs.storage.values import Fields, in_one_line, register

T = TypeVar("T")
LARGEST = 1e100  # of any number that is calculated with: products of three do not overflow
Sizes = dict[str, int]  # what the words in shapes stand for
Later = list[Callable[[], None]]  # checks of values, once all sizes are known


@dataclass(frozen=True)
class Numbers:
    """An array of numbers."""

    dtypes: tuple[str, ...]
    shape: tuple[str | int | None, ...]  # None for any size
    least: float = -LARGEST
    most: float = LARGEST
    below: str | None = None  # the word for a size that values are below
    with_nan: bool = False  # NaN and infinity may be among them

    def check(self, name: str, value: Any, sizes: Sizes, later: Later) -> None:
        """Raise a ValueError for another type or shape; values are checked later."""
        if not isinstance(value, np.ndarray) or str(value.dtype) not in self.dtypes:
            raise ValueError(f"{name} must be an array of {self.dtypes[-1]}, got {brief(value)}")
        expected = [sizes.get(size) if isinstance(size, str) else size for size in self.shape]
        fits = len(value.shape) == len(expected) and all(
            size in (None, actual) for size, actual in zip(expected, value.shape, strict=True)
        )
        if not fits:
            raise ValueError(
                f"{name} must be of shape ({', '.join(map(str, self.shape))}), "
                f"got {value.shape}, where {in_one_line(sizes)}"
            )
        for size, actual in zip(self.shape, value.shape, strict=True):
            # The same word may come twice in one shape.
            if isinstance(size, str) and sizes.setdefault(size, actual) != actual:
                raise ValueError(f"{name} must be square, got shape {value.shape}")
        later.append(partial(self.check_values, name, value, sizes))

    def check_values(self, name: str, value: np.ndarray, sizes: Sizes) -> None:
        """Raise a ValueError for a number out of range."""
        if self.with_nan or not value.size:
            return
        most = min(self.most, sizes[self.below] - 1) if self.below in sizes else self.most
        low, high = value.min().item(), value.max().item()
        if not (low >= self.least and high <= most):  # False for NaN
            raise ValueError(f"{name} must be between {self.least} and {most}, got {low} to {high}")


def reals(
    *shape: str | int | None,
    least: float = -LARGEST,
    most: float = LARGEST,
    with_nan: bool = False,
) -> Numbers:
    """Finite numbers; NaN only where nothing is calculated with them."""
    return Numbers(("float32", "float64"), shape, least, most, with_nan=with_nan)


def wholes(
    *shape: str | int | None, least: int = NOISE, below: str | None = None, small: bool = False
) -> Numbers:
    """Whole numbers: labels, unless ``least`` says otherwise. ``small`` ones may take fewer bytes."""
    few_bytes = ("int8", "int16") if small else ()
    return Numbers((*few_bytes, "int32", "int64"), shape, least, 2**62, below)


@dataclass(frozen=True)
class Maybe:
    """Something that not every fit learns, or that older files lack."""

    hint: Any


def check_fields(
    name: str, values: Mapping[str, Any], hints: Mapping[str, Any], sizes: Sizes | None = None
) -> None:
    """Raise a ValueError for the first value that is not what its hint says, or is missing."""
    later: Later = []
    sizes = {} if sizes is None else sizes
    for field, hint in hints.items():
        if field in values:
            check(f"{name}.{field}", values[field], hint, sizes, later)
        elif not isinstance(hint, Maybe):
            raise ValueError(f"{name}.{field} is missing")
    for check_values in later:
        check_values()


def check(name: str, value: Any, hint: Any, sizes: Sizes, later: Later) -> None:
    """Raise a ValueError for a value that is not what the hint says."""
    if isinstance(hint, Maybe):
        return check(name, value, hint.hint, sizes, later)
    if isinstance(hint, Numbers):
        return hint.check(name, value, sizes, later)
    if isinstance(hint, Rule):
        return check_value(name, value, hint)
    if get_origin(hint) in (Union, types.UnionType):
        return check_any(name, value, get_args(hint), sizes, later)
    if hasattr(hint, "__metadata__"):  # Annotated
        for part in hint.__metadata__:
            check(name, value, part, sizes, later)
        return None
    if get_origin(hint) is not None:
        return check_parts(name, value, get_origin(hint), get_args(hint), sizes, later)
    if not PLAIN.get(hint, lambda given: isinstance(given, hint))(value):
        expected = getattr(hint, "__name__", str(hint))
        raise ValueError(f"{name} must be a {expected}, got {brief(value)}")
    return None


PLAIN: dict[Any, Callable[[Any], bool]] = {
    Any: lambda value: True,
    int: lambda value: is_whole(value) and -(2**63) <= value < 2**63,
    float: lambda value: isinstance(value, Real) and not isinstance(value, bool | np.bool_),
    bool: lambda value: isinstance(value, bool | np.bool_),
    None: lambda value: value is None,
    type(None): lambda value: value is None,
}


def check_any(name: str, value: Any, hints: Sequence[Any], sizes: Sizes, later: Later) -> None:
    """Raise a ValueError for a value that is nothing of what is allowed."""
    *others, last = [hint for hint in hints if hint is not type(None)]
    if value is None and len(others) + 1 < len(hints):
        return None
    for hint in others:
        trial = dict(sizes)
        try:
            check(name, value, hint, trial, later)
        except ValueError:
            continue
        sizes.update(trial)
        return None
    return check(name, value, last, sizes, later)


def check_parts(
    name: str, value: Any, kind: Any, inner: Sequence[Any], sizes: Sizes, later: Later
) -> None:
    """Raise a ValueError for a list, tuple or dict of something else."""
    if not isinstance(value, kind):
        raise ValueError(f"{name} must be a {kind.__name__}, got {brief(value)}")
    if isinstance(value, Mapping):
        for key, part in value.items():
            check(f"a key of {name}", key, inner[0], sizes, later)
            check(f"{name}[{key!r:.60}]", part, inner[1], sizes, later)
        return
    several = kind is list or inner[-1] is ...
    if not several and len(value) != len(inner):
        raise ValueError(f"{name} must have {len(inner)} parts, got {len(value)}")
    for number, part in enumerate(value):
        check(f"{name}[{number}]", part, inner[0 if several else number], sizes, later)


def brief(value: Any) -> str:
    """A value in a few words."""
    if isinstance(value, np.ndarray):
        return f"an array of {value.dtype} of shape {value.shape}"
    return f"the {type(value).__name__} {in_one_line(repr(value)[:200])}"


def stored(cls: type[T]) -> type[T]:
    """Let files hold this dataclass. Fields are checked by their hints, and by ``check_stored``."""
    names = [field.name for field in dataclasses.fields(cls)]  # type: ignore[arg-type]

    def make(fields: Fields) -> T:
        value = cls(**fields)
        hints = {name: hints_of(cls)[name] for name in names}  # type: ignore[arg-type]
        check_fields(cls.__name__, {name: getattr(value, name) for name in names}, hints)
        if hasattr(value, "check_stored"):
            value.check_stored()
        return value

    register(
        cls,
        lambda value: {name: getattr(value, name) for name in names},
        make,
        keeps_text=getattr(cls, "KEEPS_TEXT", False),
    )
    return cls


@cache
def hints_of(cls: type) -> dict[str, Any]:
    """The type hints of a dataclass, evaluated once."""
    return get_type_hints(cls, include_extras=True)
