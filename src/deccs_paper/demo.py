"""``deccs demo``: DECCS on SYNTH; labels, representation, rounds and a picture go to a folder."""

from __future__ import annotations

import json
import time
from pathlib import Path

import numpy as np

from deccs import datasets, plots, scores
from deccs.answer import Answer
from deccs.app.output import Output, errors_as_messages
from deccs.app.run_folder import make_folder
from deccs.display import Display
from deccs.estimator import DECCS
from deccs.events import Callback
from deccs.rounds.records import Round
from deccs.storage.atomic import replacing
from deccs_paper import figures
from deccs_paper.runner import round_record
from deccs_paper.settings import estimator_for


def command(out: Path, seed: int) -> None:
    """What ``deccs demo`` does."""
    output = Output()
    with errors_as_messages(output):
        run(out, seed, output)


class Representation(Callback):
    """Keeps the representation of the training rows: a fit computes it for its labels."""

    def __init__(self) -> None:
        self.blocks: list[np.ndarray] = []

    def on_answer(self, answer: Answer) -> None:
        self.blocks.append(answer.Z)


def run(out: Path, seed: int, output: Output) -> None:
    """Fit SYNTH as the paper does and write the results to ``out``, a folder that is made if needed."""
    make_folder(out)
    started = time.perf_counter()
    X, truth = datasets.load("synth", return_X_y=True)
    model, representation = estimator_for("synth", random_state=seed), Representation()
    with Display(output.stderr, extra=lambda finished: member_nmi(finished, truth)) as display:
        model.set_params(callbacks=[display, representation]).fit(X)
    seconds = time.perf_counter() - started

    Z = np.concatenate(representation.blocks).astype(X.dtype, copy=False)  # (n_points, n_latent)
    files = write_results(out, model, Z, truth, seconds)
    try:
        figure = figures.before_and_after(X, truth, model.rounds_, best_round=model.best_round_)
    except ImportError as error:
        output.note(f"No picture: {error}")
    else:
        files.append(out / "synth.png")
        with replacing(files[-1]) as file:
            figure.savefig(file, format="png")
    output.result({}, summary(model, truth, seconds, files))


def member_nmi(finished: Round, truth: np.ndarray) -> str:
    values = scores.of_members(finished, truth)
    return "NMI " + "  ".join(
        f"{plots.SHORT_NAMES.get(name, name)} {values[name]['nmi']:.2f}" for name in values
    )


def write_results(
    out: Path, model: DECCS, Z: np.ndarray, truth: np.ndarray, seconds: float
) -> list[Path]:
    """Labels, the representation and the rounds as files."""
    table = np.column_stack([np.arange(len(truth)), model.labels_, truth])  # (n_points, 3)
    history = {
        "agreement": model.agreement_,
        "best_round": model.best_round_,
        "labels": scores.against_truth(truth, model.labels_),
        "seconds": round(seconds, 2),
        "rounds": [round_record(round_, truth) for round_ in model.rounds_],
    }
    files = [out / name for name in ("labels.csv", "representation.npy", "rounds.json")]
    with replacing(files[0]) as file:
        np.savetxt(file, table, fmt="%d", delimiter=",", header="row,label,truth", comments="")
    with replacing(files[1]) as file:
        np.save(file, Z)
    with replacing(files[2]) as file:
        file.write(json.dumps(history, indent=2).encode() + b"\n")
    return files


def summary(model: DECCS, truth: np.ndarray, seconds: float, files: list[Path]) -> str:
    values = scores.against_truth(truth, model.labels_)
    first = model.rounds_[0].agreement
    return "\n".join(
        [
            "DECCS on SYNTH",
            f"  labels      NMI {values['nmi']:.3f}, ARI {values['ari']:.3f}",
            f"  agreement   {first:.3f} at first, {model.agreement_:.3f} in the best round",
            f"  best round  {model.best_round_} of {model.n_iter_ - 1}",
            f"  seconds     {seconds:.1f}",
            *[f"  {'' if place else 'written':10}  {path}" for place, path in enumerate(files)],
        ]
    )
