"""From requests to replies, without HTTP: what several clients ask at the same time is one pass over their rows."""

from __future__ import annotations

import sys
import traceback
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import groupby
from typing import Any, TypeVar

import numpy as np

from deccs.answer import Answer
from deccs.serving.limits import Limits, Problem, check_size
from deccs.serving.npy import npy_of
from deccs.serving.rows import RowReader, Rows, Words, quoted

JSON, NPY, CSV = "application/json", "application/x-npy", "text/csv"
FIELDS = ("labels", "names", "probabilities", "confidence", "novelty")
T = TypeVar("T")
R = TypeVar("R")
OF_LABELS = frozenset(("labels", "names"))  # what follows from labels alone


@dataclass(frozen=True)
class Question:
    """The body of a request, and what it wants to know."""

    body: bytes
    media: str = JSON  # of the body
    has_header: bool = True  # of CSV
    fields: tuple[str, ...] = ()  # of FIELDS; () for all that the model has
    reply: str = JSON  # what the reply should be


@dataclass(frozen=True)
class Reply:
    """What is sent back."""

    status: int
    body: bytes
    media: str = JSON
    n_rows: int = 0  # for the log


@dataclass(frozen=True, eq=False)
class Served:
    """A fitted model that answers questions; ``tell`` is given what the operator should know of errors."""

    model: Any
    preprocessing: Mapping[str, Any]
    limits: Limits = field(default_factory=Limits)
    tell: Callable[[str], object] = sys.stderr.write

    @cached_property
    def reader(self) -> RowReader:
        return RowReader(self.model, self.preprocessing, self.limits)

    @cached_property
    def names(self) -> tuple[str, ...] | None:
        """Of the clusters; None where nobody has named them."""
        names: tuple[str, ...] | None = getattr(self.model, "cluster_names_", None)
        return names

    @cached_property
    def fields(self) -> tuple[str, ...]:
        """What the model can say of a row."""
        one = self.pass_over(self.usual_row, with_all=True)
        has = {name for name in FIELDS if getattr(one, name, None) is not None}
        return tuple(name for name in FIELDS if name in has or (name == "names" and self.names))

    @cached_property
    def n_probabilities(self) -> int:
        """How many of them the reply has for a row."""
        probabilities = self.pass_over(self.usual_row, with_all=True).probabilities
        return 0 if probabilities is None else int(probabilities.shape[1])

    @property
    def usual_row(self) -> np.ndarray:
        """(1, n_cells) the mean of each cell."""
        mean = np.asarray(self.model.scaler_.mean, dtype=np.float64)
        n_cells = (
            self.reader.n_columns if self.reader.coding is None else len(self.reader.coding.cells)
        )
        return np.broadcast_to(mean, (1, n_cells)).copy()

    def pass_over(self, cells: np.ndarray, *, with_all: bool) -> Answer:
        """The answer for (n, n_cells): the labels alone, which are found faster, or everything."""
        source = self.reader.source(cells)
        if with_all:
            return Answer.joined(self.model._answers(source))
        labels = np.concatenate(list(self.model._label_blocks(source)))
        return Answer(Z=np.empty((len(labels), 0)), labels=labels)

    def replies(self, questions: Sequence[Question]) -> list[Reply]:
        """A reply to each question, from one pass over all rows; one that fails does not harm the others."""
        read = self.coded([guarded(self.read, question, self.tell) for question in questions])
        replies: dict[int, Reply] = {
            place: rows for place, rows in enumerate(read) if isinstance(rows, Reply)
        }
        asked = [
            Asked(place, question, rows, self.wanted(question))
            for place, (question, rows) in enumerate(zip(questions, read, strict=True))
            if isinstance(rows, Rows)
        ]
        asked.sort(key=needs_all)
        for with_all, group in groupby(asked, key=needs_all):
            replies |= self.answered(list(group), with_all=with_all)
        return [replies[place] for place in range(len(questions))]

    def coded(self, read: Sequence[Rows | Words | Reply]) -> list[Rows | Reply]:
        """Words become numbers: those of all questions at once, one by one where that fails."""
        several = [rows for rows in read if isinstance(rows, Words)]
        numbers: Iterator[Rows | Reply] = iter(())
        if several:
            together = guarded(self.reader.coded, several, self.tell)
            if isinstance(together, Reply):
                alone = (guarded(self.reader.coded, [words], self.tell) for words in several)
                numbers = (one if isinstance(one, Reply) else one[0] for one in alone)
            else:
                numbers = iter(together)
        return [next(numbers) if isinstance(rows, Words) else rows for rows in read]

    def read(self, question: Question) -> Rows | Words:
        """The rows of a question, if it can be answered."""
        if unknown := [name for name in question.fields if name not in self.fields]:
            raise Problem(
                422,
                f"This model has no {quoted(unknown)}. Ask for some of {', '.join(self.fields)}.",
            )
        if question.media == CSV:
            rows: Rows | Words = self.reader.csv(question.body, header=question.has_header)
        elif question.media == NPY:
            rows = self.reader.array(question.body)
        else:
            rows = self.reader.json(question.body)
        if "probabilities" in self.wanted(question):
            check_size(len(rows), self.n_probabilities, self.limits)
        return rows

    def wanted(self, question: Question) -> tuple[str, ...]:
        if question.reply == NPY:
            return ("labels",)
        return question.fields or self.fields

    def answered(self, asked: Sequence[Asked], *, with_all: bool) -> dict[int, Reply]:
        """Replies by the places of the questions; one by one where they fail together."""
        try:
            cells = [one.rows.cells for one in asked]
            joined = cells[0] if len(cells) == 1 else np.concatenate(cells)
            answer = self.pass_over(joined, with_all=with_all) if len(joined) else None
            replies, start = {}, 0
            for one in asked:
                stop = start + len(one.rows.cells)
                part = None
                if answer is not None:
                    part = answer if len(asked) == 1 else answer.rows(np.arange(start, stop))
                replies[one.place] = self.reply(one, part)
                start = stop
            return replies
        except Exception as error:  # noqa: BLE001  whatever it is, the others get their replies
            if len(asked) == 1:
                return {asked[0].place: failed(error, self.tell)}
        alone = [self.answered([one], with_all=with_all) for one in asked]
        return {place: reply for found in alone for place, reply in found.items()}

    def reply(self, asked: Asked, answer: Answer | None) -> Reply:
        """What is known of the rows of a question, as it wants it."""
        columns = {name: self.column(name, asked.rows, answer) for name in asked.wanted}
        n_rows, notes = len(asked.rows), asked.rows.notes
        if asked.question.reply == NPY:
            labels = columns["labels"]
            if isinstance(labels, list):
                labels = np.array([-1 if label is None else label for label in labels])
            return Reply(200, npy_of(np.asarray(labels, dtype=np.int64)), NPY, n_rows)
        return Reply(200, as_json({**columns, **({"notes": notes} if notes else {})}), JSON, n_rows)

    def column(self, name: str, rows: Rows, answer: Answer | None) -> Any:
        """A value for each row, None for rows without a label."""
        if answer is None or not len(rows.cells):  # all rows are dropped, or there are none
            return [None] * len(rows)
        values: Any
        if name == "names":
            names = (*(self.names or ()), None)  # a label of -1 has no name
            values = [names[label] for label in answer.labels.tolist()]
        else:
            values = getattr(answer, name)
        if rows.kept is None:
            return values
        listed_values = iter(values if isinstance(values, list) else values.tolist())
        return [next(listed_values) if is_kept else None for is_kept in rows.kept.tolist()]


@dataclass(frozen=True, eq=False)
class Asked:
    """A question whose rows were read."""

    place: int
    question: Question
    rows: Rows
    wanted: tuple[str, ...]


def needs_all(asked: Asked) -> bool:
    return not OF_LABELS.issuperset(asked.wanted)


def guarded(work: Callable[[T], R], given: T, tell: Callable[[str], object]) -> R | Reply:
    """What some work finds, or the reply that says why it finds nothing."""
    try:
        return work(given)
    except Exception as error:  # noqa: BLE001  a reply says what it was
        return failed(error, tell)


def failed(error: BaseException, tell: Callable[[str], object]) -> Reply:
    """The reply to a question that cannot be answered. What nobody expected is told to the operator alone."""
    if isinstance(error, Problem):
        return problem_reply(error.status, str(error))
    if isinstance(error, MemoryError):
        return problem_reply(503, "There is not enough memory for this request. Send fewer rows.")
    if isinstance(error, ValueError | ArithmeticError):  # what `predict` says of the same rows
        problem = Problem(422, str(error))
        return problem_reply(problem.status, str(problem))
    number = uuid.uuid4().hex[:8]
    tell(f"Unexpected error {number}:\n{''.join(traceback.format_exception(error))}")
    return problem_reply(500, f"Unexpected error; the log of the service has it as {number}.")


def problem_reply(status: int, message: str) -> Reply:
    return Reply(status, as_json({"error": message}))


def as_json(document: Mapping[str, Any]) -> bytes:
    """JSON of numbers, texts, lists and arrays."""
    import orjson

    whole = {name: contiguous(value) for name, value in document.items()}
    return orjson.dumps(whole, option=orjson.OPT_SERIALIZE_NUMPY)


def contiguous(value: Any) -> Any:
    return np.ascontiguousarray(value) if isinstance(value, np.ndarray) else value
