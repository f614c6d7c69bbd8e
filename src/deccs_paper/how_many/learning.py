"""The weights of our rule, learned from records: by how often the supported number was right.

A conditional logit: the logarithm of the support of k is a weighted sum of the evidence for it, and
the support of good numbers is to be high. A number is as good as half whether it is right, and half
what its clustering lacks in NMI to that at the true number. ``deccs how-many --learn`` prints the
weights; with a data set left out they give an honest row of the comparison.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from types import SimpleNamespace

import numpy as np
from scipy.optimize import minimize

from deccs.counting.rule import WEIGHTS, support_with, terms_of
from deccs_paper import records
from deccs_paper.how_many.measures import is_right
from deccs_paper.how_many.rules import DECCS, Ranking
from deccs_paper.how_many.runs import EXPERIMENT, measures_of
from deccs_paper.records import Record
from deccs_paper.settings import PAPER
from deccs_paper.yardstick.runs import OK

LEFT_OUT = "deccs, learned without the data set"
RIDGE = 0.02  # what large weights cost, of terms with deviation 1
WORST = 0.15  # NMI below that at the true number at which a number is no good at all


def usable(made: Iterable[Record]) -> list[Record]:
    """The records that weights are learned from: of our rule, on the pool, with evidence."""
    return [
        record
        for record in made
        if record["method"] == DECCS
        and record["experiment"] == EXPERIMENT
        and record["status"] == OK
        and record["dataset"] not in PAPER
        and record.get("evidence", {}).get("k")
    ]


def terms(record: Record) -> np.ndarray:
    """What is weighed for each k: (n_ks, n_terms)."""
    curves = {name: np.array(values) for name, values in record["evidence"].items()}
    ks = curves.pop("k")
    made = terms_of(SimpleNamespace(ks=ks, **curves))  # type: ignore[arg-type]
    return np.stack([made[name] for name in WEIGHTS], axis=1)


def goodness(record: Record) -> np.ndarray:
    """How good each k would be, from 0 to 1: (n_ks,).

    >>> record = {"k": 3, "evidence": {"k": [2, 3, 9], "nmi": [0.45, 0.6, 0.3]}}
    >>> goodness(record)  # half of 1 for each that is right, half for its NMI
    array([0.5, 1. , 0. ])
    """
    ks, nmi = np.array(record["evidence"]["k"]), np.array(record["evidence"]["nmi"])
    right = np.array([is_right(int(k), record["k"]) for k in ks])
    at_truth = nmi[np.abs(ks - record["k"]).argmin()]
    return np.asarray(0.5 * right + 0.5 * np.clip(1 - (at_truth - nmi) / WORST, 0, 1))


def learned(made: Sequence[Record]) -> dict[str, float]:
    """The weights under which good numbers have the most support."""
    deviation = np.concatenate([terms(record) for record in made]).std(axis=0)
    deviation = np.where(deviation > 0, deviation, 1.0)  # of a term that is the same everywhere
    cases = [(terms(record) / deviation, goodness(record)) for record in made]

    def cost(weights: np.ndarray) -> tuple[float, np.ndarray]:
        total, slope = 0.0, np.zeros(len(weights))
        for values, good in cases:
            logs = values @ weights
            support = np.exp(logs - logs.max())
            support /= support.sum()
            share = support * good
            total -= np.log(share.sum() + 1e-12)
            slope -= (share / (share.sum() + 1e-12) - support) @ values
        n = len(cases)
        return total / n + RIDGE * weights @ weights, slope / n + 2 * RIDGE * weights

    found = minimize(cost, np.zeros(len(WEIGHTS)), jac=True, method="L-BFGS-B").x
    return dict(zip(WEIGHTS, (found / deviation).tolist(), strict=True))


def left_out(made: Iterable[Record]) -> list[Record]:
    """Records of a further rule: ours with weights from all other data sets."""
    known = usable(made)
    result = []
    names = sorted({record["dataset"] for record in known})
    for name in names if len(names) > 1 else []:
        weights = learned([record for record in known if record["dataset"] != name])
        for record in known:
            if record["dataset"] == name:
                result.append(record | answer_with(weights, record) | {"method": LEFT_OUT})
    return result


def answer_with(weights: dict[str, float], record: Record) -> Record:
    """The measures of a record's answer with other weights; one cluster stays one cluster."""
    ks = np.array(record["evidence"]["k"])
    named = dict(zip(WEIGHTS, terms(record).T, strict=True))
    support = support_with(weights, named, np.ones(len(ks), dtype=bool))
    ranked = [int(k) for k in ks[np.argsort(-support, kind="stable")]]
    first = [1] if record["chosen"] == 1 else []
    return measures_of(Ranking((*first, *ranked)), record["k"])


def learned_text(path: Path) -> str:
    """The weights of the records, beside those in the code."""
    known = usable(records.read(path))
    if not known:
        return f"{path} has no records of {DECCS!r} on the pool."
    found = learned(known)
    lines = [f"{name:10} {found[name]:8.2f}   in the code {WEIGHTS[name]:g}" for name in WEIGHTS]
    return "\n".join([f"Weights from {len(known)} records:", *lines])
