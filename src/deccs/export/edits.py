"""What edits make of an answer, as a graph: see :mod:`deccs.edits.steps`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from deccs.edits.steps import SAME_POINT, Pin, Split, Step
from deccs.export.graph import WHOLE, Tensor


@dataclass(frozen=True, eq=False)
class GraphEdited:
    """The answer after some steps; see :class:`deccs.edits.steps.Edited`."""

    labels: Tensor  # (n,)
    probabilities: Tensor | None  # (n, n_numbers)
    sure: Tensor | None = None  # (n,) None where no step has chosen
    pinned: Tensor | None = None  # (n,) None where no row is


def after_steps(
    steps: Sequence[Step], n_learned: int, labels: Tensor, Z: Tensor, probabilities: Tensor | None
) -> GraphEdited:
    """See :func:`deccs.edits.steps.apply`."""
    state, before = GraphEdited(labels, probabilities), n_learned
    for step in steps:
        if isinstance(step, Split):
            state = after_split(step, before, state, Z)
        elif isinstance(step, Pin):
            state = after_pin(step, before, state, Z)
        else:
            state = after_lookup(step, before, state)
        before = step.n_numbers(before)
    return state


def after_lookup(step: Step, before: int, state: GraphEdited) -> GraphEdited:
    """After a step that changes numbers, whatever the row."""
    labels = number_in(step.lookup(before), state.labels)
    if state.probabilities is None:
        return replace(state, labels=labels)
    whither = step.descends(before).astype(np.float64)  # (before, after)
    return replace(state, labels=labels, probabilities=state.probabilities @ whither)


def number_in(table: np.ndarray, numbers: Tensor) -> Tensor:
    """The places of a table, whose last one is for -1."""
    place = (numbers < 0).where(len(table) - 1, numbers)
    return numbers.graph.constant(table, WHOLE).take(place)


def after_split(step: Split, before: int, state: GraphEdited, Z: Tensor) -> GraphEdited:
    graph = Z.graph
    shares = Z.op("Gemm", step.weight, step.bias, transB=1).softmax()  # (n, n_parts)
    is_split = state.labels.equals(step.cluster)
    parts = graph.constant(step.numbers, WHOLE).take(shares.argmax())
    labels, sure = is_split.where(parts, state.labels), is_split.where(shares.max(), 1.0)
    sure = sure if state.sure is None else state.sure * sure
    if state.probabilities is None:
        return replace(state, labels=labels, sure=sure)
    after = step.n_numbers(before)
    others = np.eye(before, after)
    others[step.cluster] = 0
    to_parts = np.arange(after) == np.array(step.numbers)[:, None]  # (n_parts, after)
    of_parts = shares * state.probabilities.take([step.cluster], axis=1)
    probabilities = state.probabilities @ others + of_parts @ to_parts.astype(np.float64)
    return replace(state, labels=labels, probabilities=probabilities, sure=sure)


def after_pin(step: Pin, before: int, state: GraphEdited, Z: Tensor) -> GraphEdited:
    """Rows with the representation of a pinned one; in single precision that is rounded more."""
    same = max(SAME_POINT, 100 * float(np.finfo(Z.dtype).eps))
    error = same * max(1.0, float(np.abs(step.points).max()))
    apart = (Z.unsqueeze(1) - step.points).op("Abs").max(2).min()  # (n,) from the nearest
    among = apart <= error
    pinned = among if state.pinned is None else state.pinned | among
    labels = among.where(step.cluster, state.labels)
    probabilities = state.probabilities
    if probabilities is not None:
        certain = (np.arange(before) == step.cluster).astype(np.float64)
        probabilities = among.unsqueeze(1).where(certain, probabilities)
    return replace(state, labels=labels, probabilities=probabilities, pinned=pinned)


def settled(confidence: Tensor, edited: GraphEdited) -> Tensor:
    """Confidence where a row is pinned, or in no cluster."""
    known = (edited.labels < 0).where(0.0, confidence)
    return known if edited.pinned is None else edited.pinned.where(1.0, known)
