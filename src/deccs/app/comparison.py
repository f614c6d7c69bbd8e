"""How well the labels of runs agree."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from deccs import scores
from deccs.app.labels_file import LABELS_NAMES, read_labels
from deccs.app.parts import LABELS_PARTS
from deccs.app.run_error import RunError
from deccs.app.run_folder import LABELS
from deccs.app.run_reading import read_summary


@dataclass(frozen=True, eq=False)
class RunLabels:
    """The labels of a run, and how to match its rows with those of another."""

    folder: Path
    key: str  # "id" or "row"
    labels: dict[str, int]  # of the rows that have one
    summary: dict[str, Any]

    def sizes(self) -> list[int]:
        labels = np.array(list(self.labels.values()), dtype=np.int64)
        return np.bincount(labels[labels >= 0]).tolist()


def labels_of(folder: Path) -> RunLabels:
    summary = read_summary(folder)
    found = [folder / name for name in LABELS_NAMES if (folder / name).is_file()]
    found += [path for path in [folder / LABELS_PARTS] if path.is_dir()]
    path = found[0] if found else folder / LABELS
    if not found:
        raise RunError(f"{path} is not a file. Is {folder} the folder of a finished run?")
    # Runs of earlier versions do not say it, and have ids as they are.
    raw_ids = (summary.get("options") or {}).get("raw_ids", True)
    key, labels = read_labels(path, raw_ids=bool(raw_ids))
    return RunLabels(folder, key, labels, summary)


def compare_runs(folders: Sequence[Path]) -> dict[str, Any]:
    """Every run by itself, and every two by the rows they share."""
    if len(folders) < 2:
        raise RunError(f"Comparing needs at least two runs, got {len(folders)}.")
    runs = [labels_of(folder) for folder in folders]
    return {
        "runs": [
            {
                "run": str(run.folder),
                "rows": len(run.labels),
                "agreement": run.summary.get("agreement"),
                "sizes": run.sizes(),
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
