"""The constants of ``deccs plan``, fitted on records: ``python -m deccs_paper.scale.command --costs``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
from scipy.optimize import nnls

from deccs.app.pace import Pace
from deccs.app.plan import (
    COSTS,
    LARGEST_SAMPLE,
    Costs,
    Job,
    memory_of_process,
    products_of,
    seconds_of,
    seconds_of_rounds,
    seconds_of_steps,
    work_of_training,
)
from deccs_paper.records import Record

GIGABIT = 1.0  # one process sends nothing


def job_of(record: Record) -> Job:
    """The fit that a record tells of."""
    return Job(record["rows"], record["columns"])


def pace_of(record: Record) -> Pace:
    """How fast the machine was before it."""
    return Pace(
        1e9 * record["gigaflops_of_products"], 1e6 * record["read_mb_per_second"], record["threads"]
    )


def fitted(made: Sequence[Record], old: Costs = COSTS) -> Costs:
    """The costs that explain the records best; those that no record tells of stay as they are."""
    good = [record for record in made if record["status"] == "ok"]
    fits = [record for record in good if record["task"] == "fit"]
    alone = [r for r in good if r["task"] == "pretraining" and r["processes"] == 1]
    costs = with_training(alone, old)

    def fit(name: str, of_one: Callable[[Record], float], some: Sequence[Record]) -> None:
        """Set a cost to the mean over some records."""
        nonlocal costs
        if some:
            mean = float(np.mean([of_one(record) for record in some]))
            costs = replace(costs, **{name: max(mean, 0.0)})

    wide = [record for record in fits if not job_of(record).has_views]
    narrow = [record for record in fits if job_of(record).has_views]
    fit("start", lambda r: left(r, "seconds_read", "reading", replace(costs, start=0.0)), wide)
    fit("members", members_of, wide)
    fit("rest", lambda r: rest_of(r, costs), wide)
    fit("views", lambda r: rest_of(r, costs) - costs.rest, narrow)
    fit(
        "label",
        lambda r: left(r, "seconds_label", "labeling", replace(costs, label=0.0)) / r["rows"],
        [record for record in wide if job_of(record).is_of_sample],
    )
    fit(
        "label_exactly",
        lambda r: r["seconds_label"] / r["rows"],
        [record for record in wide if not job_of(record).is_of_sample],
    )
    costs = with_results(wide, costs)
    fit(
        "memory",
        lambda r: 1e6 * r["peak_mb"] - memory_of_process(job_of(r), replace(costs, memory=0.0)),
        wide,
    )
    return costs


def with_training(alone: Sequence[Record], costs: Costs) -> Costs:
    """Seconds of steps = work / (rate x training) + weights x weight, of networks and batches of several sizes."""
    if len(alone) < 2:
        return costs
    rows, seconds = [], []
    for record in alone:
        layers = tuple(record["layers"])
        work = work_of_training(record["columns"], layers) * record["batch"]
        weights = 2 * products_of(record["columns"], layers)
        took = record["seconds"] / record["steps"]  # each counts alike, whatever its size
        rows.append([work / (1e9 * record["gigaflops_of_products"]) / took, weights / took])
        seconds.append(1.0)
    (inverse, weight), _ = nnls(np.array(rows), np.array(seconds))
    return replace(costs, training=1 / inverse, weight=float(weight)) if inverse else costs


def with_results(wide: Sequence[Record], costs: Costs) -> Costs:
    """Seconds after the labels = report + rows x keep, besides those for labeling the sample again."""
    if len(wide) < 2:
        return costs
    after = []
    for record in wide:
        job = job_of(record)
        again = job.n_learned * costs.label_exactly if job.is_of_sample else 0.0
        done = record["seconds_read"] + record["seconds_learn"] + record["seconds_label"]
        after.append(record["seconds"] - done - again)
    rows = [[1.0, record["rows"]] for record in wide]
    (report, keep), _ = nnls(np.array(rows), np.array(after))
    return replace(costs, report=float(report), keep=float(keep))


def members_of(record: Record) -> float:
    """Seconds of the members, had they clustered 10,000 rows."""
    return record["seconds_members"] * (LARGEST_SAMPLE / job_of(record).n_sample) ** 2


def left(record: Record, name: str, phase: str, costs: Costs) -> float:
    """Seconds of a phase beyond those that the model explains so far."""
    return record[name] - seconds_of(job_of(record), pace_of(record), GIGABIT, costs)[phase]


def rest_of(record: Record, costs: Costs) -> float:
    """Seconds of learning that are neither pretraining nor rounds."""
    job, pace = job_of(record), pace_of(record)
    steps = seconds_of_steps(job, job.training_steps, job.batch, pace, costs)
    updates = seconds_of_rounds(job, pace, replace(costs, members=0.0))
    return record["seconds_learn"] - steps - updates - record["seconds_members"]


def predicted(record: Record, costs: Costs = COSTS) -> tuple[float, float]:
    """Seconds and bytes of memory that the model says of a fit."""
    job = job_of(record)
    seconds = sum(seconds_of(job, pace_of(record), GIGABIT, costs).values())
    return seconds, memory_of_process(job, costs)
