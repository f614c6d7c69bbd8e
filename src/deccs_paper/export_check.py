"""``make bench-onnx``: exported models beside themselves: differences over all rows, bytes and speed.

FOLDER has a model for each data set, by its name: ``FOLDER/usps`` or ``FOLDER/usps.zip``, as ``model.save`` writes
them, or a run of ``deccs fit``. ``--fit`` fits those that are missing, with default settings and the number of
clusters. Rows are those of the files, not normalized. Time is that of the processor, with one thread; the best of
several passes over all rows counts, of which large data have one.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from rich.console import Console

from deccs import DECCS, datasets
from deccs.answer import Answer
from deccs.export.checking import run, session_of
from deccs.export.inputs import PRECISIONS, onnx_inputs
from deccs.export.onnx_file import onnx_model
from deccs.storage import load
from deccs_paper import records
from deccs_paper.blocks import Block

PAGE = Block("onnx", "python -m deccs_paper.export_check")
ROWS_AT_ONCE = 1_000
SECONDS = 5.0  # of passes over few rows


@dataclass(frozen=True)
class Measured:
    """A file and its model on all rows of a data set."""

    dataset: str
    method: str
    labels_from: str
    precision: str
    n_rows: int
    n_features: int
    n_bytes: int
    labels_as_fitted: float  # share of the rows that the model labels as in its fit
    labels_differ: int
    probabilities_apart: float | None  # at most
    confidence_apart: float | None
    # Rows per second of processor time: labels alone, then all that an answer has.
    labels: float
    labels_of_onnx: float
    answers: float
    answers_of_onnx: float


def measure(name: str, model: Any, X: np.ndarray, precision: str) -> Measured:
    """Export a model, and run the file on all rows."""
    content = onnx_model(model, precision=precision).SerializeToString()
    for_labels = onnx_model(model, precision=precision, outputs=["labels"]).SerializeToString()
    everything, labels = session_of(content, n_threads=1), session_of(for_labels, n_threads=1)
    blocks = list(inputs_in_blocks(model, X, precision))
    found = joined([run(everything, block) for block in blocks])
    answer = Answer.joined(model.answers(X))
    return Measured(
        name,
        type(model).__name__,
        str(getattr(model, "label_source_", "")),
        precision,
        X.shape[0],
        X.shape[1],
        len(content),
        float((model.labels_ == answer.labels).mean()) if len(model.labels_) == len(X) else 0.0,
        int((found["labels"] != answer.labels).sum()),
        apart(found, answer, "probabilities"),
        apart(found, answer, "confidence"),
        pace(len(X), lambda: model.predict(X)),
        pace(len(X), lambda: [run(labels, block) for block in blocks]),
        pace(len(X), lambda: list(model.answers(X))),
        pace(len(X), lambda: [run(everything, block) for block in blocks]),
    )


def inputs_in_blocks(model: Any, X: np.ndarray, precision: str) -> Iterator[dict[str, np.ndarray]]:
    for start in range(0, len(X), ROWS_AT_ONCE):
        yield onnx_inputs(model, X[start : start + ROWS_AT_ONCE], precision=precision)


def joined(parts: list[dict[str, np.ndarray]]) -> dict[str, np.ndarray]:
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def apart(found: dict[str, np.ndarray], answer: Answer, name: str) -> float | None:
    """The largest difference of a part of the answer; of rows whose labels are equal."""
    expected = getattr(answer, name)
    if name not in found or expected is None:
        return None
    same = found["labels"] == answer.labels
    return float(np.abs(found[name] - expected)[same].max(initial=0.0))


def pace(n_rows: int, work: Callable[[], object]) -> float:
    """Rows per second of processor time, in the fastest pass."""
    passes: list[float] = []
    begin = time.process_time()
    while not passes or time.process_time() - begin < SECONDS:
        start = time.process_time()
        work()
        passes.append(time.process_time() - start)
    return n_rows / max(min(passes), 1e-9)


def rows_of(name: str) -> tuple[np.ndarray, int]:
    """All rows of a data set as they are published, and the number of its classes."""
    X, y = datasets.load(name, return_X_y=True, normalize=False)
    return X.reshape(len(X), -1), len(np.unique(y))


def model_of(folder: Path, name: str, *, may_fit: bool) -> Any:
    """The model of a data set; None if there is none."""
    for path in (folder / name, folder / f"{name}.zip"):
        if path.exists():
            return load(path / "model" if (path / "model").exists() else path)
    if not may_fit:
        return None
    X, k = rows_of(name)
    model = DECCS(k, random_state=0).fit(X)
    folder.mkdir(parents=True, exist_ok=True)
    model.save(folder / name)
    return model


def markdown(rows: list[Measured]) -> str:
    """A line for each data set and precision."""
    heads = (
        "data set | labels from | precision | rows | labels that differ | probabilities differ by | MB | "
        "rows per CPU second, labels: deccs / ONNX | all of the answer: deccs / ONNX"
    )
    lines = [f"| {heads} |", "|---" * (heads.count("|") + 1) + "|"]
    for row in rows:
        cells = [
            row.dataset.upper(),
            row.labels_from,
            row.precision,
            f"{row.n_rows:,}",
            f"{row.labels_differ:,}",
            "-" if row.probabilities_apart is None else f"{row.probabilities_apart:.0e}",
            f"{row.n_bytes / 1e6:.1f}",
            f"{row.labels:,.0f} / {row.labels_of_onnx:,.0f}",
            f"{row.answers:,.0f} / {row.answers_of_onnx:,.0f}",
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def of_records(path: Path) -> list[Measured]:
    """The measurements in a file; of one made twice the later."""
    names = list(Measured.__dataclass_fields__)
    rows = [Measured(**{name: record[name] for name in names}) for record in records.read(path)]
    return list({(row.dataset, row.method, row.precision): row for row in rows}.values())


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m deccs_paper.export_check", description=__doc__)
    parser.add_argument("folder", nargs="*", type=Path, help="folders of models by data set")
    parser.add_argument("--datasets", nargs="+", default=list(datasets.names()))
    parser.add_argument("--precision", nargs="+", default=list(PRECISIONS), choices=PRECISIONS)
    parser.add_argument("--fit", action="store_true", help="fit models that are missing")
    parser.add_argument("--out", type=Path, help="a file to which a JSON line per file is added")
    parser.add_argument("--page", type=Path, help="a page into which the table of --out is written")
    given = parser.parse_args(arguments)
    torch.set_num_threads(1)
    console, measured = Console(), []
    for folder in given.folder:
        for name in given.datasets:
            model = model_of(folder, name, may_fit=given.fit)
            if model is None:
                console.print(f"{folder} has no model of {name}; --fit makes one.", soft_wrap=True)
                continue
            X, _ = rows_of(name)
            for precision in given.precision:
                row = measure(name, model, X, precision)
                measured.append(row)
                if given.out:
                    facts = {"experiment": "onnx", **asdict(row)}
                    records.append(given.out, facts | records.made_with())
                console.print(markdown([row]).splitlines()[-1], soft_wrap=True, highlight=False)
    if given.page:
        PAGE.rewrite(given.page, markdown(of_records(given.out)))
    return 1 if any(row.labels_differ for row in measured if row.precision == "double") else 0


if __name__ == "__main__":
    raise SystemExit(main())
