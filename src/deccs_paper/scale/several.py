"""What several processes change: the result, the pace, and what becomes of a fit whose process is killed."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

from deccs import scores
from deccs_paper.scale.fits import labels_of
from deccs_paper.scale.launching import Ended, run_together
from deccs_paper.scale.moons import N_PAIRS, classes_of

PROGRAM = "deccs_paper.scale.program"
FEW_STEPS = ("--rounds", "1", "--set", "pretraining.n_steps=200", "--set", "rounds.n_steps=20")


def measured(task: str, folder: Path, n_processes: int, **options: Any) -> dict[str, Any]:
    """What a task of the program has found; a RuntimeError if it has failed."""
    ended, result = attempted(task, folder, n_processes, **options)
    ended.check()
    return result


def attempted(
    task: str, folder: Path, n_processes: int, **options: Any
) -> tuple[Ended, dict[str, Any]]:
    """How a task has ended, and what it has found; nothing if it has failed."""
    out = folder / f"{task}.json"
    out.unlink(missing_ok=True)
    ended = run_together([PROGRAM, task, out, json.dumps(options)], n_processes)
    return ended, json.loads(out.read_text()) if ended.code == 0 else {}


def whole_fit(table: Path, n_rows: int, folder: Path, n_processes: int) -> dict[str, Any]:
    """A fit of a table with few steps by the command line: how long labeling takes, and whether labels are good."""
    out = folder / "run-of-several"
    shutil.rmtree(out, ignore_errors=True)
    words = ["deccs", "fit", table, "--clusters", 2 * N_PAIRS, "--seed", 0, "--out", out, "--quiet"]
    ended = run_together([*words, *FEW_STEPS], n_processes)
    ended.check()
    seconds = json.loads((out / "summary.json").read_text())["seconds"]
    return {
        "seconds": round(ended.seconds, 1),
        "seconds_label": seconds["label"],
        "rows_per_second": round(n_rows / seconds["label"]),
        "nmi": round(scores.nmi(classes_of(n_rows, seed=0), labels_of(out)), 4),
    }


def killed(folder: Path, n_rows: int, n_steps: int) -> dict[str, Any]:
    """One of three processes is killed while they pretrain; then three resume the fit, and two another copy of it."""
    size, kept = {"rows": n_rows, "steps": n_steps}, folder / "state"
    undisturbed = measured("resumable", folder, 3, **size, checkpoint=None, kill_after=None)
    shutil.rmtree(kept, ignore_errors=True)
    ended, _ = attempted(
        "resumable", folder, 3, **size, checkpoint=str(kept), kill_after=n_steps // 2
    )
    killed_at = float(Path(f"{kept}.killed").read_text())
    n_states = len(list(kept.glob("*.state.zip")))
    by_two = folder / "state-by-two"
    shutil.rmtree(by_two, ignore_errors=True)
    shutil.copytree(kept, by_two)
    three = measured("resumable", folder, 3, **size, checkpoint=str(kept), kill_after=None)
    two = measured("resumable", folder, 2, **size, checkpoint=str(by_two), kill_after=None)
    return {
        "exit_code": ended.code,
        "seconds_to_end": round(ended.ended_at - killed_at, 1),
        "messages": ended.messages,
        "states_kept": n_states,
        "same_bits_by_three": three["digest"] == undisturbed["digest"],
        "same_bits_by_two": two["digest"] == undisturbed["digest"],
        "warnings_of_two": two["warnings"],
    }
