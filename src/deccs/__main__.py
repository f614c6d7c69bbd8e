"""Run DECCS on SYNTH; labels, representation, rounds and a picture go to a folder."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from rich.console import Console
from rich.table import Table
from sklearn.base import clone

from deccs import datasets, plots, scores
from deccs.agreement import NOISE
from deccs.benchmark.settings import estimator_for
from deccs.estimator import DECCS
from deccs.progress import Display
from deccs.rounds import Round


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m deccs", description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("out"), metavar="DIR", help="folder to write to")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args(arguments)
    try:
        given.out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        parser.error(f"--out {given.out} cannot be made a folder ({error.strerror}). Name another one.")

    started = time.perf_counter()
    X, truth = datasets.load("synth", return_X_y=True)
    model = estimator_for("synth", random_state=given.seed)
    # A pipe has no width; rich would break the lines at 80.
    console = Console(stderr=True, width=None if sys.stderr.isatty() else 160)
    with Display(model.n_rounds, console, extra=lambda finished: member_nmi(finished, truth)) as display:
        model, embeddings = fit_and_watch(model, X, display)
    seconds = time.perf_counter() - started

    files = write_results(given.out, model, X, truth, seconds)
    try:
        figure = plots.before_and_after(X, truth, model.rounds_, embeddings, best_round=model.best_round_)
        files.append(write(given.out / "synth.png", lambda file: figure.savefig(file, format="png")))
    except ImportError as error:
        console.print(f"No picture: {error}", markup=False)
    Console().print(summary(model, truth, seconds, files))
    return 0


def fit_and_watch(model: DECCS, X: np.ndarray, display: Display) -> tuple[DECCS, list[np.ndarray]]:
    """A fitted copy of the model, and the embedding of all points at the start of each round.

    Callbacks see rounds, not networks. So a fit of no rounds trains the autoencoder, and its
    encoder takes a hook along that names the copy the rounds work on.
    """
    start = clone(model).set_params(n_rounds=0, callbacks=[SimpleNamespace(on_epoch=display.on_epoch)]).fit(X)
    at_work: list[torch.nn.Module] = [start.autoencoder_.encoder]
    x = torch.from_numpy(start.scaler_(np.asarray(X, dtype=np.float64))).float()
    x = x.to(next(start.autoencoder_.parameters()).device)

    @torch.no_grad()
    def embedding() -> np.ndarray:
        return at_work[0].eval()(x).cpu().numpy()

    def remember(encoder: torch.nn.Module, *_: object) -> None:
        at_work[0] = encoder

    embeddings = [embedding()]
    hook = start.autoencoder_.encoder.register_forward_hook(remember)
    own = SimpleNamespace(on_round=lambda finished: embeddings.append(embedding()))  # the update is done by then
    fitted = clone(model).set_params(autoencoder=start.autoencoder_, callbacks=[display, own]).fit(X)
    hook.remove()
    return fitted, embeddings[: len(fitted.rounds_)]


def member_scores(finished: Round, truth: np.ndarray) -> dict[str, dict[str, float]]:
    """NMI and ARI of each member on the points of the sample it has labelled."""
    found = {}
    for name, partition in zip(finished.member_names, finished.base_partitions, strict=True):
        labelled = partition != NOISE
        classes = truth[finished.sample][labelled]
        found[name] = {"nmi": scores.nmi(classes, partition[labelled]), "ari": scores.ari(classes, partition[labelled])}
    return found


def member_nmi(finished: Round, truth: np.ndarray) -> str:
    values = member_scores(finished, truth)
    return "NMI " + "  ".join(f"{plots.SHORT_NAMES.get(name, name)} {values[name]['nmi']:.2f}" for name in values)


def write_results(out: Path, model: DECCS, X: np.ndarray, truth: np.ndarray, seconds: float) -> list[Path]:
    table = np.column_stack([np.arange(len(X)), model.labels_, truth])                 # (n_points, 3)
    Z = model.transform(X)                                                             # (n_points, n_latent)
    history = {
        "agreement": model.agreement_,
        "best_round": model.best_round_,
        "labels": scores.against_truth(truth, model.labels_),
        "seconds": round(seconds, 2),
        "rounds": [
            {
                "round": this.number,
                "agreement": this.agreement,
                "losses": None if this.losses is None else asdict(this.losses),
                "members": member_scores(this, truth),
                "seconds": this.seconds,
            }
            for this in model.rounds_
        ],
    }
    return [
        write(out / "labels.csv",
              lambda file: np.savetxt(file, table, fmt="%d", delimiter=",", header="row,label,truth", comments="")),
        write(out / "representation.npy", lambda file: np.save(file, Z)),
        write(out / "rounds.json", lambda file: file.write(json.dumps(history, indent=2).encode() + b"\n")),
    ]


def write(path: Path, into: Callable[[Any], object]) -> Path:
    """All of the file or nothing: it gets its name when it is complete."""
    with half_written(path) as temporary, temporary.open("wb") as file:
        into(file)
    return path


@contextmanager
def half_written(path: Path) -> Iterator[Path]:
    temporary = path.with_name(f".{path.name}.part")
    try:
        yield temporary
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def summary(model: DECCS, truth: np.ndarray, seconds: float, files: list[Path]) -> Table:
    values = scores.against_truth(truth, model.labels_)
    table = Table("DECCS on SYNTH", "", box=None, header_style="bold", pad_edge=False)
    table.add_row("NMI, ARI", f"{values['nmi']:.3f}, {values['ari']:.3f}")
    table.add_row("agreement", f"{model.rounds_[0].agreement:.3f} at first, {model.agreement_:.3f} in the best round")
    table.add_row("best round", f"{model.best_round_} of {model.n_iter_ - 1}")
    table.add_row("seconds", f"{seconds:.1f}")
    for place, path in enumerate(files):
        table.add_row("" if place else "written", str(path))
    return table


if __name__ == "__main__":
    sys.exit(main())
