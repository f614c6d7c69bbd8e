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
from deccs.refit.matching import counts_of, match_clusters


@dataclass(frozen=True, eq=False)
class RunLabels:
    """The labels of a run, and how to match its rows with those of another."""

    folder: Path
    key: str  # "id" or "row"
    labels: dict[str, int]  # of the rows that have one
    summary: dict[str, Any]

    def name_of(self, cluster: int) -> str:
        """The number of a cluster, with its name if it has one."""
        for each in self.summary.get("clusters") or ():
            if each.get("label") == cluster and is_named(each.get("name"), cluster):
                return f"{cluster} {each['name']}"
        return str(cluster)

    def sizes(self) -> list[int]:
        labels = np.array(list(self.labels.values()), dtype=np.int64)
        return np.bincount(labels[labels >= 0]).tolist()


def is_named(name: Any, cluster: int) -> bool:
    """Whether a cluster has a name that says more than its number."""
    return isinstance(name, str) and name != f"cluster {cluster}"


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
        "moves": moves_between(a, b, np.array(labels)),
    }


def moves_between(a: RunLabels, b: RunLabels, labels: np.ndarray) -> list[dict[str, Any]]:
    """Who moved where, the most rows first: labels are (2, n_common).

    The numbers of runs that are like each other mean the same clusters. Those of others are matched first, so
    that as many rows as possible stay where they are.
    """
    before, after = labels
    if not b.summary.get("earlier"):
        n_before, n_after = int(before.max()) + 1, int(after.max()) + 1
        same = match_clusters(after, before, n_after, n_before).numbers
    else:
        same = np.arange(int(after.max()) + 1)
    counts = counts_of(before, after, int(before.max()) + 1, int(after.max()) + 1)
    moves = [
        {
            "from": a.name_of(int(old)),
            "to": b.name_of(int(new)),
            "rows": int(counts[old, new]),
            "share": float(counts[old, new] / counts[old].sum()),
        }
        for old, new in zip(*np.nonzero(counts), strict=True)
        if same[new] != old
    ]
    return sorted(moves, key=lambda move: (-int(str(move["rows"])), str(move["from"])))


def last_name(number: int, runs: Sequence[RunLabels]) -> str:
    """The name of a cluster in the last run that has it."""
    names = [run.name_of(number) for run in runs]
    return next((name for name in reversed(names) if name != str(number)), str(number))


def draw_flow(folders: Sequence[Path], picture: Path) -> None:
    """Who moved where, from run to run, as a picture: the rows that all runs have."""
    from deccs.plots import plot_flow

    runs = [labels_of(folder) for folder in folders]
    common = [name for name in runs[0].labels if all(name in run.labels for run in runs[1:])]
    labels = [np.array([run.labels[name] for name in common]) for run in runs]
    numbers = max(int(part.max()) for part in labels) + 1
    names = [last_name(number, runs) for number in range(numbers)]
    axes = plot_flow(labels, names=names, titles=[folder.resolve().name for folder in folders])
    try:
        figure = axes.get_figure(root=True)
        assert figure is not None
        figure.savefig(picture, bbox_inches="tight")
    except (OSError, ValueError) as error:
        raise RunError(
            f"{picture} cannot be written: {error}. Give a .svg, .png or .pdf file."
        ) from error
