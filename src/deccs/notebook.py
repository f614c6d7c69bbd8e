"""What a notebook shows of a fitted model, below scikit-learn's diagram."""

from __future__ import annotations

from html import escape
from typing import Protocol

import numpy as np

from deccs.counting.words import sentence_of, stability_sentence, warning_of_one_group
from deccs.rounds.records import Round


class Summarized(Protocol):
    """What the summary needs of a fitted DECCS; the estimator itself is above this module."""

    labels_: np.ndarray  # (n_points,)
    rounds_: list[Round]
    best_round_: int
    agreement_: float
    member_names_: tuple[str, ...]
    label_source_: str


def summary_html(model: Summarized) -> str:
    """A small table: the number of clusters, if it was looked for, agreement, cluster sizes, members."""
    sizes = np.bincount(model.labels_)  # (n_clusters,)
    answer, stability = sentence_of(model), getattr(model, "cluster_stability_", None)
    facts = {} if answer is None else {"answer": answer}
    trust = getattr(model, "trust_", None)
    if trust is not None and trust.signs.of_one_group:
        facts["warning"] = warning_of_one_group(trust.signs)
    if stability:
        facts["stability"] = stability_sentence(stability)
    facts |= {
        "agreement": f"{model.rounds_[0].agreement:.3f} before training, "
        f"{model.agreement_:.3f} after it",
        "rounds": f"{len(model.rounds_)}, best: {model.best_round_}",
        "cluster sizes": ", ".join(str(size) for size in sizes),
        "members": ", ".join(model.member_names_),
        "labels from": model.label_source_,
    }
    rows = "".join(
        f'<tr><th scope="row" style="text-align:left">{name}</th><td style="text-align:left">{escape(value)}</td></tr>'
        for name, value in facts.items()
    )
    return f'<table aria-label="Summary of the fit"><tbody>{rows}</tbody></table>'
