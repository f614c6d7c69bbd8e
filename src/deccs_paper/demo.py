"""Run DECCS on SYNTH; labels, representation, rounds and a picture go to a folder."""

from __future__ import annotations

import json
import sys
import time
from dataclasses import asdict
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.markup import escape

from deccs import datasets, plots, scores
from deccs.app.run_folder import make_folder, write
from deccs.display import Display
from deccs.estimator import DECCS
from deccs.rounds.records import Round
from deccs_paper import figures, records
from deccs_paper.settings import estimator_for


def run(out: Path, seed: int = 0) -> None:
    """Fit SYNTH as the paper does and write what came of it to ``out``, which is made if it is not there."""
    make_folder(out)
    started = time.perf_counter()
    X, truth = datasets.load("synth", return_X_y=True)
    model = estimator_for("synth", random_state=seed)
    # A pipe has no width; rich would break the lines at 80.
    console = Console(stderr=True, width=None if sys.stderr.isatty() else 160)
    with Display(
        model.n_rounds, console, extra=lambda finished: member_nmi(finished, truth)
    ) as display:
        model.set_params(callbacks=[display]).fit(X)
    seconds = time.perf_counter() - started

    files = write_results(out, model, X, truth, seconds)
    try:
        figure = figures.before_and_after(X, truth, model.rounds_, best_round=model.best_round_)
        files.append(write(out / "synth.png", lambda file: figure.savefig(file, format="png")))
    except ImportError as error:
        console.print(f"No picture: {error}", markup=False)
    Console().print(summary(model, truth, seconds, files), soft_wrap=True, highlight=False)


def member_nmi(finished: Round, truth: np.ndarray) -> str:
    values = scores.of_members(finished, truth)
    return "NMI " + "  ".join(
        f"{plots.SHORT_NAMES.get(name, name)} {values[name]['nmi']:.2f}" for name in values
    )


def write_results(
    out: Path, model: DECCS, X: np.ndarray, truth: np.ndarray, seconds: float
) -> list[Path]:
    table = np.column_stack([np.arange(len(X)), model.labels_, truth])  # (n_points, 3)
    Z = model.transform(X)  # (n_points, n_latent)
    history = {
        "agreement": model.agreement_,
        "best_round": model.best_round_,
        "labels": scores.against_truth(truth, model.labels_),
        "seconds": round(seconds, 2),
        "rounds": [
            {
                "round": this.number,
                "agreement": this.agreement,
                "losses": None if this.losses is None else records.finite(asdict(this.losses)),
                "members": scores.of_members(this, truth),
                "seconds": this.seconds,
            }
            for this in model.rounds_
        ],
    }
    return [
        write(
            out / "labels.csv",
            lambda file: np.savetxt(
                file, table, fmt="%d", delimiter=",", header="row,label,truth", comments=""
            ),
        ),
        write(out / "representation.npy", lambda file: np.save(file, Z)),
        write(
            out / "rounds.json",
            lambda file: file.write(json.dumps(history, indent=2).encode() + b"\n"),
        ),
    ]


def summary(model: DECCS, truth: np.ndarray, seconds: float, files: list[Path]) -> str:
    values = scores.against_truth(truth, model.labels_)
    first = model.rounds_[0].agreement
    return "\n".join(
        [
            "[bold]DECCS on SYNTH[/bold]",
            f"  labels      NMI {values['nmi']:.3f}, ARI {values['ari']:.3f}",
            f"  agreement   {first:.3f} at first, {model.agreement_:.3f} in the best round",
            f"  best round  {model.best_round_} of {model.n_iter_ - 1}",
            f"  seconds     {seconds:.1f}",
            *[
                f"  {'' if place else 'written':10}  {escape(str(path))}"
                for place, path in enumerate(files)
            ],
        ]
    )
