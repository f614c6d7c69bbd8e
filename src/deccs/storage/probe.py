"""A loaded model answers for a few rows before anybody else asks: the last net under the checks of a file."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from deccs.answer import Answer

SEED = 20221128  # any


class ProbeRows:
    """Three rows as a model reads them: at 0, at 1, and one that could be of its data.

    For a table there is a fourth, without any value.
    """

    def __init__(self, n_features: int, scaler: Any) -> None:
        noise = np.random.default_rng(SEED).standard_normal((1, n_features))
        plain = [np.full((1, n_features), value) for value in (0.0, 1.0)]
        gaps = [np.full((1, n_features), np.nan)] if scaler.kind == "table" else []
        self.X = np.concatenate([*plain, scaler.mean + scaler.deviation * noise, *gaps])

    @property
    def shape(self) -> tuple[int, int]:
        return self.X.shape[0], self.X.shape[1]

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.X.dtype

    def read(self, rows: slice | np.ndarray, /) -> np.ndarray:
        return self.X[rows].copy()


def probe(model: Any) -> None:
    """Raise a ValueError for an answer that is no answer; whatever else goes wrong is raised, too."""
    rows = ProbeRows(model._n_cells, model.scaler_)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        answer = Answer.joined(model._answers(rows))
        check_answer(answer, rows.shape[0], highest_label(model))
        if getattr(model, "novelty_", None) is not None:
            answers = model._answers_with_novelty(rows)
            novelty = np.concatenate([answer.novelty for answer in answers])
            check_finite("novelty", novelty[:, None], rows.shape[0], 0, 1)
        names = getattr(model, "get_feature_names_out", None)
        if names is not None and len(names()) != answer.Z.shape[1]:
            raise ValueError("its answer for a few rows has columns without a name")
        if hasattr(model, "count_"):
            count = model.count_
            count.labels(model.scaler_(rows.X), int(count.ks[-1]) if len(count.ks) else 1)


def highest_label(model: Any) -> int:
    """The highest label that any row can have."""
    return max(int(model.labels_.max()), getattr(model, "n_clusters_", 1) - 1)


def check_answer(answer: Answer, n_rows: int, highest: int) -> None:
    """Raise a ValueError for numbers that are not finite or out of range."""
    check_finite("Z", answer.Z, n_rows)
    check_labels("labels", answer.labels, n_rows, highest)
    if answer.probabilities is not None:
        check_finite("probabilities", answer.probabilities, n_rows, 0, 1)
    if answer.confidence is not None:
        check_finite("confidence", answer.confidence[:, None], n_rows, 0, 1)
    if answer.members is not None:
        check_labels("members", answer.members.T[:, 0], n_rows, np.iinfo(np.int64).max)


def check_finite(
    name: str, values: np.ndarray, n_rows: int, low: float = -np.inf, high: float = np.inf
) -> None:
    """Raise a ValueError unless this is a table of finite numbers with a row for each row."""
    slack = 1e-6  # of rounding
    if values.ndim != 2 or len(values) != n_rows or not np.isfinite(values).all():
        raise ValueError(f"its answer for a few rows has no finite {name}")
    if values.size and (values.min() < low - slack or values.max() > high + slack):
        raise ValueError(f"its answer for a few rows has {name} that are not from {low} to {high}")


def check_labels(name: str, labels: np.ndarray, n_rows: int, highest: int) -> None:
    """Raise a ValueError unless these are labels, one for each row."""
    if labels.shape != (n_rows,) or labels.dtype.kind != "i":
        raise ValueError(f"its answer for a few rows has no {name}")
    if labels.min() < -1 or labels.max() > highest:
        raise ValueError(f"its answer for a few rows has {name} that are no clusters")
