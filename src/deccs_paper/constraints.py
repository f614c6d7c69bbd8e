"""``python -m deccs_paper.constraints``: what a few labels and pairs are worth, on data with known classes.

Each data set is cut to some rows, and fitted without anything known, with 1 % and 5 % of the labels, and with 50 and
200 random pairs of rows, linked as their classes say. All are scored on the rows of which nothing was known. Beside
them stand k-means that starts from the means of the labeled rows, and scikit-learn's label spreading. A record is
written as soon as it is made, and what has one is not made again.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.cluster import KMeans
from sklearn.semi_supervised import LabelSpreading

from deccs import DECCS, datasets, scores
from deccs.constraints.given import pairs_of
from deccs.data.scalers import fit_scaler
from deccs.data.source import source_of
from deccs.labels import NOISE
from deccs.seeds import seed_for
from deccs_paper import records
from deccs_paper.blocks import Block
from deccs_paper.records import Record
from deccs_paper.table import markdown
from deccs_paper.yardstick.pool import read_arrays

EXPERIMENT = "constraints"
PAGE = Block("constraints", "python -m deccs_paper.constraints --page docs/constraints.md")
DATASETS = ("synth", "mice", "pendigits", "har", "usps", "kmnist")
NONE = "nothing"
LABELS = {"5 % of the labels": 0.05, "1 % of the labels": 0.01}
PAIRS = {"200 pairs": 200, "50 pairs": 50}
GIVEN = ("5 % of the labels", "200 pairs", "1 % of the labels", "50 pairs")  # as they are run
OURS, SEEDED, SPREADING = "DECCS", "seeded k-means", "label spreading"
N_NEIGHBORS = 10


@dataclass(frozen=True)
class Part:
    """Some rows of a data set, in random order."""

    name: str
    n_rows: int
    seed: int

    @cached_property
    def arrays(self) -> tuple[np.ndarray, np.ndarray]:
        """X (n, d) and y (n,), classes from 0."""
        path = Path(self.name)
        X, y = read_arrays(path) if path.suffix else datasets.load(self.name, return_X_y=True)
        rows = np.random.default_rng(seed_for(self.seed, "rows")).permutation(
            np.flatnonzero(y != NOISE)
        )
        rows = rows[: self.n_rows]
        return np.asarray(X[rows], dtype=np.float64), np.unique(y[rows], return_inverse=True)[1]

    @property
    def k(self) -> int:
        return int(self.arrays[1].max()) + 1

    def known(self, given: str) -> dict[str, np.ndarray]:
        """The arguments of ``fit``."""
        y = self.arrays[1]
        rng = np.random.default_rng(seed_for(self.seed, given))
        if given in LABELS:
            partial = np.full(len(y), NOISE)
            chosen = rng.permutation(len(y))[: max(2, round(LABELS[given] * len(y)))]
            partial[chosen] = y[chosen]
            return {"partial": partial}
        if given in PAIRS:
            pairs = np.array([rng.choice(len(y), 2, replace=False) for _ in range(PAIRS[given])])
            same = y[pairs[:, 0]] == y[pairs[:, 1]]
            return {"must_link": pairs[same], "cannot_link": pairs[~same]}
        return {}

    def unknown_rows(self, given: str) -> np.ndarray:
        """(n,) True for rows of which nothing is known."""
        known, is_free = self.known(given), np.ones(len(self.arrays[1]), dtype=bool)
        for name in ("must_link", "cannot_link"):
            is_free[pairs_of(known.get(name), name, len(is_free))] = False
        return is_free & (known.get("partial", np.full(len(is_free), NOISE)) == NOISE)


Found = tuple[np.ndarray, Record]  # labels, and what else a record says


def by_deccs(part: Part, known: dict[str, np.ndarray]) -> Found:
    """The labels of DECCS, where they come from, and what they violate."""
    model = DECCS(part.k, random_state=part.seed).fit(part.arrays[0], **known)
    violated = {} if model.violations_ is None else {"violated": model.violations_.counts}
    return model.labels_, {"label_source": model.label_source_, **violated}


def scaled(part: Part) -> np.ndarray:
    X = part.arrays[0]
    return np.asarray(fit_scaler(source_of(X), "auto")(X))


def by_seeded_kmeans(part: Part, known: dict[str, np.ndarray]) -> Found:
    """k-means that starts from the means of the labeled rows; classes without one start anywhere."""
    Z, partial = scaled(part), known["partial"]
    rng = np.random.default_rng(part.seed)
    means = [
        Z[partial == number].mean(0) if (partial == number).any() else Z[rng.integers(len(Z))]
        for number in range(part.k)
    ]
    return KMeans(part.k, init=np.stack(means), n_init=1).fit_predict(Z), {}


def by_spreading(part: Part, known: dict[str, np.ndarray]) -> Found:
    """scikit-learn's label spreading on the graph of the nearest neighbors."""
    model = LabelSpreading(kernel="knn", n_neighbors=N_NEIGHBORS)
    return model.fit(scaled(part), known["partial"]).transduction_, {}


WAYS: dict[str, Callable[[Part, dict[str, np.ndarray]], Found]] = {
    OURS: by_deccs,
    SEEDED: by_seeded_kmeans,
    SPREADING: by_spreading,
}


def record_of(part: Part, method: str, given: str) -> Record:
    """One fit. Its labels are kept: they are scored on the rows that others have not seen, too."""
    record: Record = {
        "experiment": EXPERIMENT,
        "dataset": Path(part.name).stem,
        "rows": part.n_rows,
        "seed": part.seed,
        "method": method,
        "given": given,
    }
    began = time.process_time()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            labels, facts = WAYS[method](part, part.known(given))
    except Exception as error:  # noqa: BLE001  a run that fails is a record, too
        return record | {"status": "failed", "error": f"{type(error).__name__}: {error}"}
    record |= {"status": "ok", "cpu_seconds": round(time.process_time() - began, 2), **facts}
    if given == NONE:
        return record | {"labels": labels.tolist()} | records.made_with()
    return record | scores_of(part, given, labels) | records.made_with()


def scores_of(part: Part, given: str, labels: np.ndarray) -> Record:
    """NMI and ARI on the rows of which nothing was known."""
    free = part.unknown_rows(given)
    y = part.arrays[1]
    return {
        "n_scored": int(free.sum()),
        "nmi": round(scores.nmi(y[free], labels[free]), 4),
        "ari": round(scores.ari(y[free], labels[free]), 4),
    }


def key(record: Record) -> tuple[Any, ...]:
    return tuple(record[name] for name in ("dataset", "rows", "seed", "method", "given"))


def run_missing(
    names: Sequence[str], n_rows: int, seeds: Sequence[int], kinds: Sequence[str], out: Path
) -> None:
    """Make the records that are missing, those without anything known first."""
    known = {key(record): record for record in records.read(out) if record["status"] == "ok"}
    for seed in seeds:
        parts = {name: Part(name, n_rows, seed) for name in names}
        for given in (NONE, *kinds):
            for name, part in parts.items():
                for method in WAYS if given in LABELS else (OURS,):
                    place = (Path(name).stem, n_rows, seed, method, given)
                    if place in known:
                        continue
                    record = record_of(part, method, given)
                    if record["status"] == "ok" and given != NONE and method == OURS:
                        without = known[*place[:4], NONE]
                        before = scores_of(part, given, np.array(without["labels"]))
                        record |= {"nmi_without": before["nmi"], "ari_without": before["ari"]}
                    records.append(out, record)
                    known[place] = record
                    print(*place, record.get("nmi", record["status"]), flush=True)


def page_text(out: Path) -> str:
    """NMI / ARI on the rows of which nothing was known, mean over seeds, as a table of a page."""
    made = {key(record): record for record in records.read(out) if record["status"] == "ok"}
    rows = []
    for given in sorted(GIVEN, key=lambda each: (each in PAIRS, int(each.split()[0]))):
        sets = list(dict.fromkeys(record["dataset"] for record in made.values()))
        lines = [[given, name.upper(), *cells(made, given, name)] for name in sets]
        lines = [line for line in lines if line[2] != "0"]
        if lines:
            rows += [*lines, [given, "**mean**", "", *mean_cells(made, given)]]
    heads = (
        "known",
        "data set",
        "runs",
        "DECCS without",
        "DECCS with",
        SEEDED,
        SPREADING,
        "violated",
    )
    return markdown(heads, rows)


def chosen(
    made: dict[Any, Record], given: str, method: str, name: str | None = None
) -> list[Record]:
    return [
        record
        for record in made.values()
        if record["given"] == given
        and record["method"] == method
        and name in (None, record["dataset"])
    ]


def cells(made: dict[Any, Record], given: str, name: str | None) -> list[str]:
    """What a line says after the names."""
    ours = chosen(made, given, OURS, name)
    violated = [sum(record["violated"].values()) for record in ours]
    return [
        str(len(ours)),
        both(ours, "nmi_without", "ari_without"),
        f"**{both(ours, 'nmi', 'ari')}**",
        both(chosen(made, given, SEEDED, name), "nmi", "ari"),
        both(chosen(made, given, SPREADING, name), "nmi", "ari"),
        f"{np.mean(violated):.1f}" if violated else "",
    ]


def mean_cells(made: dict[Any, Record], given: str) -> list[str]:
    return cells(made, given, None)[1:]


def both(some: Sequence[Record], *names: str) -> str:
    if not some:
        return "-"
    return " / ".join(f"{np.mean([record[name] for record in some]):.3f}" for name in names)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("datasets", nargs="*", default=list(DATASETS), help="names, or files .npz")
    parser.add_argument("--rows", type=int, default=1_000)
    parser.add_argument("--seeds", type=int, nargs="*", default=[0])
    parser.add_argument("--given", nargs="*", default=list(GIVEN), choices=GIVEN)
    parser.add_argument("--out", type=Path, default=Path("results/constraints.jsonl"))
    parser.add_argument("--page", type=Path, help="only rewrite the table of this page")
    asked = parser.parse_args()
    if asked.page:
        PAGE.rewrite(asked.page, page_text(asked.out))
        return
    with records.locked(asked.out):
        run_missing(asked.datasets, asked.rows, asked.seeds, asked.given, asked.out)
    print(page_text(asked.out))


if __name__ == "__main__":
    main()
