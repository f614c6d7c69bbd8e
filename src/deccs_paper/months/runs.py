"""A year of fits: like the month before, or each by itself with its clusters matched to those before."""

from __future__ import annotations

import json
import time
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from deccs import DECCS, scores
from deccs.json_values import finite
from deccs.refit.matching import match_clusters
from deccs_paper.months.made import Month, months_of

LIKE, APART = "like the month before", "each month by itself"


def year(name: str, X: np.ndarray, y: np.ndarray, seed: int, way: str) -> Iterator[dict[str, Any]]:
    """A record of each month. Fits by themselves are told the number of classes, the others in month 1 alone."""
    before: Month | None = None
    model: Any = None
    numbers = np.zeros(0, dtype=np.int64)  # (n_before,) the clusters of the month before
    n_given = 0
    for month in months_of(X, y, seed):
        began = time.process_time()
        n_classes = len(np.unique(month.y))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            is_like = way == LIKE and model is not None
            model = DECCS(n_classes, random_state=seed, like=model if is_like else None).fit(
                month.X
            )
        labels = model.labels_
        if before is None:
            n_given = int(labels.max()) + 1
        elif way == APART:
            labels, n_given = matched(month, labels, before, numbers, n_given)
        record = {
            "data": name,
            "seed": seed,
            "way": way,
            "month": month.number,
            "rows": len(labels),
            "classes": n_classes,
            "clusters": len(np.unique(labels)),
            "nmi": scores.nmi(month.y, labels),
            "cpu_seconds": round(time.process_time() - began, 2),
        }
        if before is not None:
            now, then = shared_rows(month, before)
            record["kept"] = float((labels[now] == numbers[then]).mean())
            record["born"] = sorted(set(labels.tolist()) - set(numbers.tolist()))
            record["gone"] = sorted(set(numbers.tolist()) - set(labels.tolist()))
        before, numbers = month, labels
        yield record


def matched(
    month: Month, labels: np.ndarray, before: Month, numbers: np.ndarray, n_given: int
) -> tuple[np.ndarray, int]:
    """The labels in the numbers of the month before, matched by the rows of both months."""
    now, then = shared_rows(month, before)
    renumber = match_clusters(labels[now], numbers[then], int(labels.max()) + 1, n_given)
    return renumber.numbers[labels], renumber.n_all


def shared_rows(month: Month, before: Month) -> tuple[np.ndarray, np.ndarray]:
    """The places, in both months, of the rows that are in both."""
    _, now, then = np.intersect1d(month.ids, before.ids, return_indices=True)
    return now, then


def run_missing(
    sets: Sequence[tuple[str, Path]], seeds: Sequence[int], out: Path, ways: Sequence[str]
) -> None:
    """Run the years that the records lack, and append each month as it comes."""
    known = read_records(out)
    for name, path in sets:
        with np.load(path) as data:
            X, y = data["X"].reshape(len(data["X"]), -1).astype(np.float64), data["y"]
        for seed in seeds:
            for way in ways:
                done = [
                    each
                    for each in known
                    if (each["data"], each["seed"], each["way"]) == (name, seed, way)
                ]
                if len(done) >= 12:
                    continue
                for record in year(name, X, y, seed, way):
                    if record["month"] > len(done):
                        with out.open("a", encoding="utf-8") as file:
                            file.write(json.dumps(finite(record)) + "\n")
                        print(line_of(record), flush=True)


def line_of(record: dict[str, Any]) -> str:
    kept = f", kept {record['kept']:.3f}" if "kept" in record else ""
    return (
        f"{record['data']:18} {record['way']:22} seed {record['seed']} month {record['month']:2}: NMI "
        f"{record['nmi']:.3f}, {record['clusters']} clusters of {record['classes']}{kept}, "
        f"born {record.get('born', [])}, gone {record.get('gone', [])}, {record['cpu_seconds']} s"
    )


def read_records(path: Path) -> list[dict[str, Any]]:
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
