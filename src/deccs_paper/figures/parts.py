"""What all figures share: what a figure is, its claims, its files."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing


@dataclass(frozen=True)
class Need:
    """Records a figure reads: runs of DECCS as the paper sets it up for a data set, but for these changes."""

    dataset: str
    changes: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Figure:
    """A figure of the paper.

    ``draw(records, out, *, seed=0, quick=False, cache=None)`` writes ``<name>.svg`` and ``<name>.png`` to ``out`` and
    returns the numbers behind the picture as plain JSON, among them ``claims``. ``quick`` is for tests: few points and
    few steps. ``cache`` is the folder of pretrained autoencoders.
    """

    title: str
    caption: str
    needs: tuple[Need, ...]  # empty: it fits its models itself
    draw: Callable[..., dict[str, Any]]


def claim(text: str, holds: bool | None, figures: str) -> dict[str, Any]:
    """What the paper says, whether it holds here (None: records are missing), and by which numbers."""
    return {"claim": text, "holds": None if holds is None else bool(holds), "figures": figures}


def in_words(values: Mapping[str, float]) -> str:
    """
    >>> in_words({"KM": 0.504, "SC": 1})
    'KM 0.50, SC 1.00'
    """
    return ", ".join(f"{name} {value:.2f}" for name, value in values.items())


def save(drawing: Drawing, out: Path, name: str) -> None:
    """As SVG and PNG, each whole or not at all; the same picture gives the same bytes."""
    from matplotlib import rc_context

    out.mkdir(parents=True, exist_ok=True)
    with rc_context({"svg.hashsalt": name}):
        for kind, metadata in {"svg": {"Date": None}, "png": {"Software": None}}.items():
            unfinished = out / f".{name}.{kind}"
            try:
                drawing.savefig(unfinished, format=kind, metadata=metadata)
                if kind == "png":
                    shrink(unfinished)
                unfinished.replace(out / f"{name}.{kind}")
            finally:
                unfinished.unlink(missing_ok=True)


def shrink(png: Path) -> None:
    """256 colors are enough for a drawing, and a third of the bytes: the page carries nine of them."""
    from PIL import Image  # comes with matplotlib

    with Image.open(png) as picture:
        few = picture.convert("RGB").quantize(256, dither=Image.Dither.NONE)
    few.save(png, format="PNG", optimize=True)


def pending_note(missing: Sequence[str]) -> str:
    """
    >>> pending_note(["MICE", "MNIST"])
    'Pending, no runs yet:\\nMICE\\nMNIST'
    """
    return "\n".join(["Pending, no runs yet:", *missing]) if missing else ""
