"""What all figures share: their inputs, claims and files."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from deccs.storage.atomic import replacing
from deccs_paper.records import Record

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Picture


@dataclass(frozen=True)
class Need:
    """Records that a figure reads: runs of DECCS with the paper's settings for a data set and these changes."""

    dataset: str
    changes: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Task:
    """What a figure is drawn from, and the folder it goes to."""

    records: list[Record]
    out: Path
    seed: int = 0
    quick: bool = False  # for tests: few points and few steps
    cache: Path | None = None  # the folder of pretrained autoencoders


@dataclass(frozen=True)
class Figure:
    """A figure of the paper.

    ``drawing`` writes ``<name>.svg`` and ``<name>.png``, and returns the numbers behind the picture
    as plain JSON, among them ``claims``.
    """

    title: str
    caption: str
    needs: tuple[Need, ...]  # empty: it fits its models itself
    drawing: Callable[[Task], dict[str, Any]]

    def draw(self, records: list[Record], out: Path, **more: Any) -> dict[str, Any]:
        """Draw into the folder ``out``; ``more`` are ``seed``, ``quick`` and ``cache``."""
        return self.drawing(Task(records, out, **more))


def claim(text: str, holds: bool | None, figures: str) -> dict[str, Any]:
    """What the paper says, whether it holds here (None: records are missing), and the numbers."""
    return {"claim": text, "holds": None if holds is None else bool(holds), "figures": figures}


def in_words(values: Mapping[str, float]) -> str:
    """Names with their values.

    >>> in_words({"KM": 0.504, "SC": 1})
    'KM 0.50, SC 1.00'
    """
    return ", ".join(f"{name} {value:.2f}" for name, value in values.items())


def save(picture: Picture, out: Path, name: str) -> None:
    """As SVG and PNG, each complete or not at all; the same picture gives the same bytes."""
    from matplotlib import rc_context

    out.mkdir(parents=True, exist_ok=True)
    with rc_context({"svg.hashsalt": name}):
        with replacing(out / f"{name}.svg") as file:
            picture.savefig(file, format="svg", metadata={"Date": None})
        png = BytesIO()
        picture.savefig(png, format="png", metadata={"Software": None})
    with replacing(out / f"{name}.png") as file:
        file.write(with_few_colors(png))


def with_few_colors(png: BytesIO) -> bytes:
    """256 colors are enough for a drawing and take a third of the bytes: the page holds nine of them."""
    from PIL import Image  # comes with matplotlib

    with Image.open(png) as picture:
        few = picture.convert("RGB").quantize(256, dither=Image.Dither.NONE)
    smaller = BytesIO()
    few.save(smaller, format="PNG", optimize=True)
    return smaller.getvalue()


def pending_note(missing: Sequence[str]) -> str:
    """The text in place of a figure whose runs are missing.

    >>> pending_note(["MICE", "MNIST"])
    'Pending, no runs yet:\\nMICE\\nMNIST'
    """
    return "\n".join(["Pending, no runs yet:", *missing]) if missing else ""
