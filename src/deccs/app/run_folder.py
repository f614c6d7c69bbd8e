"""The folder of a run while ``deccs fit`` writes it: whatever happens, results are complete or not there.

Results are written to a hidden folder. When all are there, it gets the name ``.results-complete``: from
then on they are the results of the run. Old ones are removed, the folder becomes ``.results-moving``,
and what is in it moves into place. A command that finds one of these names finishes the work of the
process that was killed.
"""

from __future__ import annotations

import json
import os
import shutil
import stat
import tempfile
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO, Self

import numpy as np

from deccs import storage
from deccs.answer import Answer
from deccs.app.labels_file import LABELS_NAMES, LabelsFormat
from deccs.app.parts import (
    EMBEDDING_PARTS,
    LABELS_PARTS,
    PartsWriter,
    answer_in_parts,
    unusable_parts,
)
from deccs.app.run_error import RunError
from deccs.base import Clusterer
from deccs.clock import Clock
from deccs.data.tables import Table
from deccs.describing.description import describe
from deccs.events import Callback
from deccs.json_values import finite
from deccs.labeling import ROWS_OF_PART, state_name
from deccs.storage.atomic import LEFTOVER, replacing, sync_folder, write_text
from deccs.storage.locks import NAME as LOCK
from deccs.storage.locks import FolderLock

LABELS, EMBEDDING, SUMMARY = "labels.csv", "embedding.npy", "summary.json"
CLUSTERS = "clusters.txt"  # what makes each cluster different, for people
MODEL, REPORT, ROUNDS, CHECKPOINT = "model", "report.html", "rounds.jsonl", "checkpoint"
# The summary is moved in last: a folder that has one is complete.
RESULTS = (
    REPORT,
    *LABELS_NAMES,
    LABELS_PARTS,
    CLUSTERS,
    EMBEDDING,
    EMBEDDING_PARTS,
    MODEL,
    SUMMARY,
)
# Of a large table: parts survive a kill, and the same fit goes on after them.
UNFINISHED = ".results-unfinished"
PART, COMPLETE, MOVING = ".part-", ".results-complete", ".results-moving"
NEW_ROUNDS = ".rounds.jsonl"  # while the results of an earlier fit are still there
MOST_LOG = 2**30  # bytes of rounds.jsonl that are read again


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
    if (folder / CHECKPOINT).is_symlink():
        raise RunError(
            f"{folder / CHECKPOINT} is a symbolic link, and states would be written to where it "
            "leads. Remove it, or give another --out."
        )
    return FolderLock(folder)


def check_free(folder: Path, *, overwrite: bool) -> None:
    """Refuse a folder that holds results, before any work is done."""
    existing = [name for name in RESULTS if os.path.lexists(folder / name)]
    if existing and not overwrite:
        raise RunError(
            f"{folder} already holds results ({', '.join(existing)}). Give another folder with "
            "--out, or add --overwrite to replace them."
        )


def was_interrupted(folder: Path) -> bool:
    """Whether a command that wrote to the folder has not come to its end, or is still at it."""
    return any(os.path.lexists(folder / name) for name in (LOCK, COMPLETE, MOVING))


def settle(folder: Path) -> bool:
    """Move complete results into place, if a killed process has left some; whether it has."""
    complete, moving = folder / COMPLETE, folder / MOVING
    is_moving, is_complete = is_real_folder(moving), holds_summary(complete)
    if is_moving:
        move_into_place(moving)
    if is_complete:
        for name in (SUMMARY, *RESULTS, ROUNDS):  # without a summary no mixture looks complete
            remove(folder / name)
        sync_folder(folder)
        os.replace(complete, moving)
        move_into_place(moving)
    drafts = [path for path in folder.iterdir() if LEFTOVER.fullmatch(path.name)]
    for leftover in (complete, moving, *folder.glob(f"{PART}*"), *drafts):
        remove(leftover)  # of a process that was killed
    if not (folder / CHECKPOINT).is_dir():  # nothing says which rows are labeled
        remove(folder / UNFINISHED)
    return is_moving or is_complete


def holds_complete_results(folder: Path) -> bool:
    """Whether all results are written, but not all in place."""
    return holds_summary(folder / COMPLETE) or holds_summary(folder / MOVING)


def holds_summary(folder: Path) -> bool:
    return is_real_folder(folder) and (folder / SUMMARY).is_file()


def move_into_place(moving: Path) -> None:
    for name in (ROUNDS, *RESULTS):
        if os.path.lexists(moving / name):
            os.replace(moving / name, moving.parent / name)
    sync_folder(moving.parent)
    remove(moving.parent / NEW_ROUNDS)
    remove(moving)


def is_real_folder(path: Path) -> bool:
    return path.is_dir() and not path.is_symlink()


def remove(path: Path) -> None:
    """Remove a file, a link or a whole folder, if it exists; links are not followed."""
    if is_real_folder(path):
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


class RunWriter(Callback):
    """Writes labels and embedding while a fit tells its answer, and the rest when it is done.

    Everything is written to a hidden folder first and moved into place at the end, so that a run
    folder holds all results of one fit or none. Of several processes the first one ``leads``: the others
    write parts of a large table, and nothing else.
    """

    def __init__(
        self,
        folder: Path,
        table: Table,
        labels: LabelsFormat | None = None,
        *,
        leads: bool = True,
    ) -> None:
        self.folder, self.table, self.leads = folder, table, leads
        self.format = labels or LabelsFormat()
        self.format.check(table)
        self.estimator: Any = None
        self.parts: PartsWriter | None = None  # of a large table
        self.stage = folder  # a hidden folder from the first answer on
        self.is_finished = False
        self.clock: Clock | None = None  # from the first label on
        self.blocks: list[Answer] = []  # without the embedding, which can be large
        self._answer: Answer | None = None  # of a large table
        self._stack = ExitStack()
        self._files = ExitStack()

    def __enter__(self) -> Self:
        make_folder(self.folder)
        settle(self.folder)
        return self

    def __exit__(self, *exception: Any) -> None:
        self._stack.__exit__(*exception)

    @property
    def log(self) -> Path:
        """Where rounds are logged: an earlier fit keeps its own until its results are replaced."""
        has_results = (self.folder / SUMMARY).exists() and not self.is_finished
        return self.folder / (NEW_ROUNDS if has_results else ROUNDS)

    def on_fit_start(self, estimator: Any) -> None:
        """Names of clusters are those of this estimator."""
        self.estimator = estimator
        if self.leads:
            forget_lost_parts(self.folder, self.table, self.format)

    def on_parts(self, n_known: int) -> None:
        """The table is large: its labels are written in parts, of which some may be there."""
        self.clock = Clock()
        self.stage = self.folder / UNFINISHED
        names = getattr(self.estimator, "cluster_names_", None)
        with_columns = self.format.with_columns
        self.parts = PartsWriter(self.stage, self.table, names, with_columns=with_columns)
        if self.leads and n_known == 0:
            remove(self.stage)
        self.parts.start()

    def on_part(self, rows: range) -> None:
        """Write the part whose answers were told."""
        assert self.parts is not None
        self.parts.finish(rows)

    def on_fit_end(self, estimator: Any) -> None:
        """Labels are written now that the clusters have names."""
        if self.clock is not None:
            self.clock.lap("label")
        if self.parts is not None or not self.leads:
            return
        self.labels = self.format.opened(
            self.labels_file, self.table, getattr(estimator, "cluster_names_", None)
        )
        for block in self.blocks:
            self.labels.write(block)

    def on_answer(self, answer: Answer) -> None:
        if self.parts is not None:
            self.parts.write(answer)
            return
        if not self.blocks:
            self.clock = Clock()
            self._open(answer)
        self.embedding.write(np.ascontiguousarray(answer.Z, dtype="<f4").tobytes())
        nothing = np.empty((len(answer), 0))
        self.blocks.append(replace(answer, Z=nothing, probabilities=None))

    @property
    def seconds(self) -> dict[str, float]:
        """How long labeling took: a part of the fit."""
        return {} if self.clock is None else self.clock.laps

    def answer(self) -> Answer:
        """The answer for all rows; the embedding is read from its file when that is in place.

        That of a large table has labels and confidence alone.
        """
        if self.parts is not None:
            if self._answer is None:
                self._answer = answer_in_parts(self.stage)
            return self._answer
        whole = Answer.joined(self.blocks)
        if not self.is_finished:
            return whole
        return replace(whole, Z=np.load(self.folder / EMBEDDING, mmap_mode="r"))

    def finish(self, model: Clusterer, summary: Mapping[str, Any]) -> None:
        """Write model and summary, and move all results into place."""
        if self.parts is None:
            self.labels.finish()
            self._files.close()
        elif len(model.labels_) <= ROWS_OF_PART:
            self._join_part()
        storage.save(model, self.stage / MODEL, preprocessing=self.table.preprocessing())
        text = description_text(*learned_from(model, self.table))
        if text:
            write_text(self.stage / CLUSTERS, text)
        rounds = read_log(self.log)
        if rounds:
            write_text(self.stage / ROUNDS, rounds.decode())
        text = json.dumps(finite(dict(summary)), indent=2, allow_nan=False)
        write_text(self.stage / SUMMARY, text + "\n")
        os.replace(self.stage, self.folder / COMPLETE)
        sync_folder(self.folder)
        settle(self.folder)
        self.is_finished = True

    def _join_part(self) -> None:
        """One part alone becomes the files that smaller tables have."""
        self.answer()
        whole = answer_in_parts(self.stage, with_embedding=True)
        with replacing(self.stage / EMBEDDING) as file:
            write_npy_header(file, whole.Z.shape)
            file.write(np.ascontiguousarray(whole.Z, dtype="<f4").tobytes())
        names = getattr(self.estimator, "cluster_names_", None)
        with replacing(self.stage / self.format.name) as file:
            labels = self.format.opened(file, self.table, names)
            labels.write(whole)
            labels.finish()
        for place in (LABELS_PARTS, EMBEDDING_PARTS):
            remove(self.stage / place)

    def _open(self, answer: Answer) -> None:
        self.stage = Path(tempfile.mkdtemp(dir=self.folder, prefix=PART))
        self._stack.callback(shutil.rmtree, self.stage, ignore_errors=True)
        self._stack.enter_context(self._files)
        self.embedding = self._files.enter_context(replacing(self.stage / EMBEDDING))
        shape = int(self.table.kept.sum()), answer.Z.shape[1]
        write_npy_header(self.embedding, shape)
        self.labels_file = self._files.enter_context(replacing(self.stage / self.format.name))


def forget_lost_parts(folder: Path, table: Table, form: LabelsFormat) -> None:
    """Have rows labeled again whose part an interrupted fit has not written, or with other columns."""
    unfinished, with_columns = folder / UNFINISHED, form.with_columns
    for part in unusable_parts(unfinished, table, with_columns=with_columns):
        (folder / CHECKPOINT / f"{state_name(part)}.state.zip").unlink(missing_ok=True)


def write_npy_header(out: BinaryIO, shape: tuple[int, int]) -> None:
    """The beginning of a .npy file of single precision numbers, whose rows follow."""
    facts = {"descr": "<f4", "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(out, facts)


class RunLog(Callback):
    """Appends every round to a file, a JSON object per line, as soon as it is finished.

    A resumed fit goes on with the lines of the interrupted one; ``resumes`` says, when the fit
    starts, whether it is one.
    """

    def __init__(self, path: Path, resumes: Callable[[], bool] = lambda: False) -> None:
        self.path, self.resumes = path, resumes
        self.logged: set[tuple[int, int]] = set()

    def on_fit_start(self, estimator: Any) -> None:
        lines = read_log(self.path) if self.resumes() else b""
        try:
            self.logged = set(map(place_of, lines.splitlines()))
        except (ValueError, TypeError, KeyError, RecursionError):  # not what we have written
            lines, self.logged = b"", set()
        remove(self.path)
        if lines:
            write_text(self.path, lines.decode())

    def on_round(self, finished: Any) -> None:
        place = (finished.start, finished.number)
        if place in self.logged:
            return
        self.logged.add(place)
        line = json.dumps(finite(finished.as_dict()), allow_nan=False) + "\n"
        handle = os.open(self.path, APPEND, 0o666)
        with os.fdopen(handle, "ab") as file:
            file.write(line.encode())

    def on_fit_end(self, estimator: Any) -> None:
        """Add what a killed process had finished, but not logged."""
        for finished in getattr(estimator, "rounds_", ()):
            self.on_round(finished)
        lines = read_log(self.path).splitlines(keepends=True)
        in_order = sorted(lines, key=place_of)
        if in_order != lines:
            write_text(self.path, b"".join(in_order).decode())


def place_of(line: bytes) -> tuple[int, int]:
    """Start and number of a round that was logged."""
    record = json.loads(line)
    return int(record["start"]), int(record["round"])


# A link in the place of a log is not followed.
APPEND = (
    os.O_WRONLY
    | os.O_CREAT
    | os.O_APPEND
    | getattr(os, "O_NOFOLLOW", 0)
    | getattr(os, "O_BINARY", 0)
)


def read_log(path: Path) -> bytes:
    """The whole lines of a log; the last line of a killed process may be torn."""
    try:
        facts = os.lstat(path)
    except FileNotFoundError:
        return b""
    if not stat.S_ISREG(facts.st_mode) or facts.st_size > MOST_LOG:
        return b""
    content = path.read_bytes()
    return content[: content.rfind(b"\n") + 1]


def write_run_report(
    model: Clusterer, table: Table, path: Path, title: str, answer: Answer | None = None
) -> None:
    """The report of a fit; ``answer`` is that of the fit for its rows, if it is known."""
    sample_of = None
    if hasattr(model, "learning_rows_"):
        n_rows = len(model.labels_)
        sample_of = model.learning_rows_, n_rows
        model, table = learned_from(model, table)
        title = f"{title}: a sample of {len(model.labels_):,} of {n_rows:,} rows"
        answer = Answer.joined(model._fast_answers(table.rows))
    from deccs.report import write_report  # takes a second to load, and only a fit writes one

    kept = table.kept
    write_report(
        model,
        table.rows,
        path,
        answer=answer,
        feature_names=table.feature_names,
        ids=table.ids[kept],
        columns={name: column[kept] for name, column in table.others().items()},
        image_shape=table.image_shape,
        title=title,
        sample_of=sample_of,
    )


def learned_from(model: Clusterer, table: Table) -> tuple[Clusterer, Table]:
    """Model and table of the rows that a fit learned from alone; as they are where these are all."""
    if not hasattr(model, "learning_rows_"):
        return model, table
    sample = table.of_rows(model.learning_rows_)
    return model._of_learning_rows(sample.rows), sample


def description_text(model: Clusterer, table: Table) -> str:
    """What makes each cluster different, as plain text; "" where the columns have no names."""
    if not hasattr(model, "cluster_names_"):
        return ""
    said = describe(model._described(table.rows), model.labels_, model.n_clusters_)
    return str(replace(said, names=model.cluster_names_))
