"""The folder of a run: what ``deccs fit`` writes, what the other commands read."""

from __future__ import annotations

import csv
import io
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from deccs import report, scores
from deccs import storage as files
from deccs.data.tables import Table, read_like
from deccs.datasets.store import file_sha256
from deccs.estimator import DECCS

LABELS, EMBEDDING, SUMMARY, MODEL, REPORT = (
    "labels.csv",
    "embedding.npy",
    "summary.json",
    "model",
    "report.html",
)
RESULTS = (
    REPORT,
    LABELS,
    EMBEDDING,
    MODEL,
    SUMMARY,
)  # the summary is moved in last: with it the run is whole
CHECKPOINT = "checkpoint"
NO_LABEL = -1  # of a row that was dropped for its missing values


class RunError(ValueError):
    """A folder is not what a command needs; the message says what to do."""


def make_folder(path: Path) -> None:
    if path.is_file():
        raise RunError(f"--out {path} is a file. Name a folder; it is made if it is not there.")
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RunError(
            f"--out {path} cannot be made: {error.strerror}. Name another folder."
        ) from error


def write(path: Path, into: Callable[[Any], object]) -> Path:
    """All of the file or nothing: it gets its name when it is complete."""
    temporary = path.with_name(f".{path.name}.part")
    try:
        with temporary.open("wb") as file:
            into(file)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
    return path


def check_free(folder: Path, *, overwrite: bool) -> None:
    """Refuse a folder that holds results, before any work is done for it."""
    there = [name for name in RESULTS if (folder / name).exists()]
    if there and not overwrite:
        raise RunError(
            f"{folder} holds results already ({', '.join(there)}). Name another folder with --out, or add "
            "--overwrite to replace them."
        )


def write_run(folder: Path, model: DECCS, table: Table, summary: Mapping[str, Any]) -> None:
    """Labels, embedding, model and summary; they come to their places when all of them are complete."""
    labels, confidence = labeled(model, table, model.labels_)
    with staged(folder) as stage:
        (stage / LABELS).write_text(labels_csv(table, labels, confidence), encoding="utf-8")
        np.save(stage / EMBEDDING, model.transform(table.X).astype(np.float32))
        files.save(model, stage / MODEL, preprocessing=table.preprocessing())
        (stage / SUMMARY).write_text(
            json.dumps(summary, indent=2, allow_nan=False) + "\n", encoding="utf-8"
        )


@contextmanager
def staged(folder: Path) -> Iterator[Path]:
    """A place to write results in; without an error they replace those of the folder, one rename each."""
    make_folder(folder)
    for left in folder.glob(".part-*"):  # of a run that was killed while writing
        shutil.rmtree(left, ignore_errors=True)
    with tempfile.TemporaryDirectory(dir=folder, prefix=".part-") as name:
        stage = Path(name)
        yield stage
        old = stage / "old"
        old.mkdir()
        for result in reversed(RESULTS):  # the old summary goes first: no half-new run looks whole
            if (folder / result).exists():
                os.replace(folder / result, old / result)
        for result in RESULTS:
            if (stage / result).exists():
                os.replace(stage / result, folder / result)


def labeled(model: DECCS, table: Table, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(n_rows,) labels and confidence, with rows that were dropped in their places."""
    every, confidence = np.full(len(table.kept), NO_LABEL), np.full(len(table.kept), np.nan)
    every[table.kept] = labels
    confidence[table.kept] = model.consensus_confidence(table.X)
    return every, confidence


def labels_csv(table: Table, labels: np.ndarray, confidence: np.ndarray) -> str:
    """A line per row of the file, in its order; a row without a label has empty fields."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["row" if table.ids.dtype.kind == "i" else "id", "label", "confidence"])
    for name, label, sure in zip(table.ids, labels, confidence, strict=True):
        writer.writerow([name, "", ""] if label == NO_LABEL else [name, label, f"{sure:.4f}"])
    return out.getvalue()


def write_run_report(model: DECCS, table: Table, path: Path, title: str) -> None:
    kept = table.kept
    report.write_report(
        model,
        table.X,
        path,
        feature_names=table.feature_names,
        ids=table.ids[kept],
        columns={name: column[kept] for name, column in table.others.items()},
        image_shape=table.image_shape,
        title=title,
    )


def read_summary(folder: Path) -> dict[str, Any]:
    try:
        summary = json.loads((folder / SUMMARY).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise RunError(
            f"{folder} is no folder of a finished run: {SUMMARY} cannot be read ({error}). Give what "
            "`deccs fit` was given as --out."
        ) from error
    if not isinstance(summary, dict):
        raise RunError(f"{folder / SUMMARY} is not what `deccs fit` writes. Fit anew.")
    return summary


def load_model(folder: Path) -> tuple[DECCS, dict[str, Any]]:
    """The model of a run (or a model folder or .zip itself), and how its data was read."""
    path = folder / MODEL if (folder / MODEL).is_dir() else folder
    if not path.exists():
        raise RunError(f"There is no {folder}. Give what `deccs fit` was given as --out.")
    model = files.load(path, kind=DECCS)
    preprocessing = files.read_preprocessing(path)
    if not isinstance(preprocessing.get("feature_names"), list):
        raise RunError(
            f"{path} does not say which columns it needs: it was not saved by `deccs fit`. Load it in "
            "Python with deccs.DECCS.load."
        )
    return model, preprocessing


def training_table(folder: Path, data: Path | None, preprocessing: Mapping[str, Any]) -> Table:
    """The data of the fit, from where it was or where it is now; it must not have changed."""
    source = read_summary(folder).get("data", {})
    path = data or Path(str(source.get("file", "")))
    if not path.exists():
        raise RunError(
            f"The data of {folder} was {path}, which is not there. Say with --data where it is now."
        )
    if data is None and path.is_file() and file_sha256(path) != source.get("sha256"):
        raise RunError(
            f"{path} has changed since the fit of {folder}. Give the file as it was with --data."
        )
    return read_like(path, preprocessing)


@dataclass(frozen=True, eq=False)
class RunLabels:
    folder: Path
    key: str  # "id" or "row"
    labels: dict[str, int]  # of the rows that have one
    summary: dict[str, Any]


def read_labels(folder: Path) -> RunLabels:
    summary = read_summary(folder)
    path = folder / LABELS
    try:
        with path.open(encoding="utf-8", newline="") as file:
            key, *_ = next(reader := csv.reader(file))
            labels = {name: int(label) for name, label, *_ in reader if label != ""}
    except (OSError, ValueError, StopIteration) as error:
        raise RunError(
            f"{path} cannot be read: {error}. Is {folder} the folder of a finished run?"
        ) from error
    return RunLabels(folder, key, labels, summary)


def compare(folders: Sequence[Path]) -> dict[str, Any]:
    """Every run by itself, and every two by the rows they share."""
    if len(folders) < 2:
        raise RunError(f"Comparing needs at least two runs, got {len(folders)}.")
    runs = [read_labels(folder) for folder in folders]
    return {
        "runs": [
            {
                "run": str(run.folder),
                "rows": len(run.labels),
                "agreement": run.summary.get("agreement"),
                "sizes": np.bincount(list(run.labels.values())).tolist(),
            }
            for run in runs
        ],
        "pairs": [compare_pair(a, b) for a, b in combinations(runs, 2)],
    }


def compare_pair(a: RunLabels, b: RunLabels) -> dict[str, Any]:
    common = [name for name in a.labels if name in b.labels]
    if a.key != b.key or not common:
        raise RunError(
            f"{a.folder} and {b.folder} have no rows in common (by {a.key} and by {b.key}). Fit both "
            "with the same --id."
        )
    labels = [[run.labels[name] for name in common] for run in (a, b)]
    return {
        "runs": [str(a.folder), str(b.folder)],
        "rows_in_common": len(common),
        "nmi": scores.nmi(*labels),
        "ari": scores.ari(*labels),
    }


def forget_checkpoint(folder: Path) -> None:
    shutil.rmtree(folder / CHECKPOINT, ignore_errors=True)


def tidy(folder: Path) -> None:
    """Take away a folder that an unfinished run has made and left empty."""
    if folder.is_dir() and not any(folder.iterdir()):
        folder.rmdir()


def data_facts(path: Path, table: Table) -> dict[str, Any]:
    """What the summary says of the data."""
    return {
        "file": str(path.resolve()),
        "sha256": file_sha256(path) if path.is_file() else None,
        "rows": len(table.kept),
        "rows_without_label": int((~table.kept).sum()),
        "columns": list(table.feature_names),
        "columns_left_out": table.left_out,
        "id_column": table.id_column,
    }
