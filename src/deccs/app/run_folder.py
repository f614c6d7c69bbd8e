"""The folder of a run: what ``deccs fit`` writes, and what the other commands read."""

from __future__ import annotations

import codecs
import csv
import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO, Protocol, Self

import numpy as np

from deccs import storage
from deccs.answer import Answer
from deccs.base import Clusterer
from deccs.data.tables import Table, read_like
from deccs.events import Callback
from deccs.json_values import finite
from deccs.report import write_report
from deccs.storage.atomic import replacing, sync_folder, write_text
from deccs.storage.locks import FolderLock

LABELS, EMBEDDING, SUMMARY = "labels.csv", "embedding.npy", "summary.json"
MODEL, REPORT, ROUNDS, CHECKPOINT = "model", "report.html", "rounds.jsonl", "checkpoint"
# The summary is moved in last: a folder that has one is complete.
RESULTS = (REPORT, LABELS, EMBEDDING, MODEL, SUMMARY)


class RunError(ValueError):
    """A folder is not what a command needs; the message says what to do."""


def make_folder(path: Path) -> None:
    if path.is_file():
        raise RunError(f"--out {path} is a file. Give the name of a folder.")
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RunError(
            f"--out {path} cannot be created: {error.strerror}. Give another folder."
        ) from error


def in_use(folder: Path) -> FolderLock:
    """While this is entered, no other command writes to the folder; an empty one is removed then."""
    make_folder(folder)
    return FolderLock(folder)


def check_free(folder: Path, *, overwrite: bool) -> None:
    """Refuse a folder that holds results, before any work is done."""
    existing = [name for name in RESULTS if (folder / name).exists()]
    if existing and not overwrite:
        raise RunError(
            f"{folder} already holds results ({', '.join(existing)}). Give another folder with "
            "--out, or add --overwrite to replace them."
        )


class RunWriter(Callback):
    """Writes labels and embedding while a fit tells its answer, and the rest when it is done.

    Everything is written to a hidden folder first and moved into place at the end, so that a run
    folder holds all results of one fit or none.
    """

    def __init__(self, folder: Path, table: Table) -> None:
        self.folder, self.table = folder, table
        self.stage = folder  # a hidden folder from the first answer on
        self.blocks: list[Answer] = []  # without the embedding, which can be large
        self._stack = ExitStack()
        self._files = ExitStack()

    def __enter__(self) -> Self:
        make_folder(self.folder)
        for leftover in self.folder.glob(".part-*"):  # of a process that was killed
            shutil.rmtree(leftover, ignore_errors=True)
        return self

    def __exit__(self, *exception: Any) -> None:
        self._stack.__exit__(*exception)

    def on_answer(self, answer: Answer) -> None:
        if not self.blocks:
            self._open(answer)
        self.embedding.write(np.ascontiguousarray(answer.Z, dtype="<f4").tobytes())
        self.labels.write(answer)
        nothing = np.empty((len(answer), 0))
        self.blocks.append(replace(answer, Z=nothing, probabilities=None))

    def answer(self) -> Answer:
        """The answer for all rows; the embedding is read from its file when it is used."""
        whole = Answer.joined(self.blocks)
        path = self.folder / EMBEDDING
        return replace(whole, Z=np.load(path, mmap_mode="r")) if path.exists() else whole

    def finish(self, model: Clusterer, summary: Mapping[str, Any]) -> None:
        """Write model and summary, and move all results into place."""
        self.labels.finish()
        self._files.close()
        storage.save(model, self.stage / MODEL, preprocessing=self.table.preprocessing())
        text = json.dumps(finite(dict(summary)), indent=2, allow_nan=False)
        write_text(self.stage / SUMMARY, text + "\n")
        self._move_into_place()

    def _open(self, answer: Answer) -> None:
        temporary = tempfile.TemporaryDirectory(dir=self.folder, prefix=".part-")
        self.stage = Path(self._stack.enter_context(temporary))
        self._stack.enter_context(self._files)
        self.embedding = self._files.enter_context(replacing(self.stage / EMBEDDING))
        shape = int(self.table.kept.sum()), answer.Z.shape[1]
        write_npy_header(self.embedding, shape)
        labels = self._files.enter_context(replacing(self.stage / LABELS))
        self.labels = LabelsFile(codecs.getwriter("utf-8")(labels), self.table)

    def _move_into_place(self) -> None:
        old = self.stage / "old"
        old.mkdir()
        for name in reversed(RESULTS):  # the old summary goes first: no mixture looks complete
            if (self.folder / name).exists():
                os.replace(self.folder / name, old / name)
        for name in RESULTS:
            if (self.stage / name).exists():
                os.replace(self.stage / name, self.folder / name)
        sync_folder(self.folder)


def write_npy_header(out: BinaryIO, shape: tuple[int, int]) -> None:
    """The beginning of a .npy file of single precision numbers, whose rows follow."""
    facts = {"descr": "<f4", "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(out, facts)


class TextFile(Protocol):
    """Anything text can be written to."""

    def write(self, text: str, /) -> object: ...


class LabelsFile:
    """A CSV file with a line per row of a table, in its order, written block by block.

    Rows that were dropped because of missing values have empty fields.
    """

    def __init__(self, out: TextFile, table: Table) -> None:
        self.writer = csv.writer(out, lineterminator="\n")
        self.rows = zip(table.ids, table.kept, strict=True)
        self.key = "row" if table.ids.dtype.kind == "i" else "id"
        self.fields: list[str] = []

    def write(self, answer: Answer) -> None:
        """The labels of the next rows, and their confidence if the method has one."""
        self._begin(["label"] if answer.confidence is None else ["label", "confidence"])
        columns: list[Any] = [answer.labels.tolist()]
        if answer.confidence is not None:
            columns.append([f"{value:.4f}" for value in answer.confidence])
        for values in zip(*columns, strict=True):
            for name, kept in self.rows:
                self.writer.writerow([name, *(values if kept else self._empty)])
                if kept:
                    break

    def finish(self) -> None:
        """The dropped rows after the last label."""
        self._begin(["label", "confidence"])
        self.writer.writerows([name, *self._empty] for name, _ in self.rows)

    def _begin(self, fields: list[str]) -> None:
        if not self.fields:
            self.fields = fields
            self.writer.writerow([self.key, *fields])

    @property
    def _empty(self) -> list[str]:
        return [""] * len(self.fields)


class RunLog(Callback):
    """Appends every round to a file, a JSON object per line, as soon as it is finished.

    A resumed fit goes on with the lines of the interrupted one.
    """

    def __init__(self, path: Path, *, resume: bool = False) -> None:
        self.path, self.resume = path, resume
        self.logged: set[tuple[int, int]] = set()

    def on_fit_start(self, estimator: Any) -> None:
        lines = self.path.read_bytes() if self.resume and self.path.exists() else b""
        whole = lines[: lines.rfind(b"\n") + 1]  # the last line of a killed process may be torn
        records = [json.loads(line) for line in whole.splitlines()]
        self.logged = {(record["start"], record["round"]) for record in records}
        self.path.unlink(missing_ok=True)
        if whole:
            write_text(self.path, whole.decode())

    def on_round(self, finished: Any) -> None:
        place = (finished.start, finished.number)
        if place in self.logged:
            return
        self.logged.add(place)
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(finite(finished.as_dict()), allow_nan=False) + "\n")

    def on_fit_end(self, estimator: Any) -> None:
        """Add what a killed process had finished, but not logged."""
        for finished in getattr(estimator, "rounds_", ()):
            self.on_round(finished)


def write_run_report(
    model: Clusterer, table: Table, path: Path, title: str, answer: Answer | None = None
) -> None:
    """The report of a fit; ``answer`` is that of the fit for its rows, if it is known."""
    kept = table.kept
    write_report(
        model,
        table.X,
        path,
        answer=answer,
        feature_names=table.feature_names,
        ids=table.ids[kept],
        columns={name: column[kept] for name, column in table.others.items()},
        image_shape=table.image_shape,
        title=title,
    )


def read_summary(folder: Path) -> dict[str, Any]:
    try:
        return dict(json.loads((folder / SUMMARY).read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError) as error:
        raise RunError(
            f"{folder} is not the folder of a finished run: {SUMMARY} cannot be read ({error}). "
            "Give the folder that was the --out of `deccs fit`."
        ) from error


def load_model(folder: Path) -> tuple[Clusterer, dict[str, Any]]:
    """The model of a run (or a model folder or .zip itself), and how its data was read."""
    path = folder / MODEL if (folder / MODEL).is_dir() else folder
    if not path.exists():
        raise RunError(f"{folder} does not exist. Give the --out of `deccs fit`.")
    model = storage.load(path)
    preprocessing = storage.read_preprocessing(path)
    if not isinstance(preprocessing.get("feature_names"), list):
        raise RunError(
            f"{path} does not say which columns it needs: it was not saved by `deccs fit`. Load it "
            f"in Python with {type(model).__name__}.load."
        )
    return model, preprocessing


def training_table(folder: Path, data: Path | None, preprocessing: Mapping[str, Any]) -> Table:
    """The data of the fit, from where it was or where it is now; it must not have changed."""
    source = read_summary(folder).get("data", {})
    path = data or Path(str(source.get("file", "")))
    if not path.exists():
        raise RunError(
            f"The data of {folder} was in {path}, which does not exist. Say with --data where it "
            "is now."
        )
    if data is None and path.is_file() and file_sha256(path) != source.get("sha256"):
        raise RunError(
            f"{path} has changed since the fit of {folder}. Give the original file with --data."
        )
    return read_like(path, preprocessing)


def file_sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
