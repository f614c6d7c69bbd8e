"""What a fit of a table will take: seconds, memory and disk, for any number of rows and processes.

The steps, rows and messages follow from the rules that a fit goes by. What a product of matrices and a pass
over a file take is measured on the machine (:mod:`deccs.app.pace`); the rest was fitted on the records in
``results/scale.jsonl`` by ``deccs_paper.scale.costs``.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any

from deccs.app.pace import Pace
from deccs.data.learning_rows import MOST_ROWS, most_rows
from deccs.data.tables.frames import LARGE
from deccs.labeling import ROWS_OF_PART
from deccs.members.default import DEFAULT_MEMBERS
from deccs.rules import (
    default_budget,
    default_layers,
    default_sample_size,
    default_update_steps,
    uses_views,
)
from deccs.settings import Pretraining, Rounds
from deccs.training.batches import MOST_HELD_OUT
from deccs.training.pretraining import (
    LEAST_SHARE,
    MOST_BETWEEN_CHECKS,
    ROWS_BETWEEN_AVERAGES,
    share_of_batch,
    steps_of,
)

SINGLE, DOUBLE = 4, 8  # bytes of a number
LARGEST_SAMPLE = 10_000  # rows of a round; the seconds of members are those for so many
TENTH = 0.1  # of the time: what saves less is not worth a word


@dataclass(frozen=True)
class Costs:
    """What a fit takes besides its products of matrices, in seconds of one process of the machine of the records."""

    training: float  # share of the rate of large products that a training step reaches
    weight: float  # seconds of a step for each weight: Adam reads and writes them all
    start: float  # before a table is read: a process of its own, which protects from damaged files
    members: float  # all members of all rounds, one after the other, on 10,000 rows
    rest: float  # classifiers, judging the clusters, names
    views: float  # more of the rest where members look at the raw data, too
    label: float  # seconds a row: confidence, members' labels, writing
    label_exactly: float  # seconds a row of the fit's sample, in double precision
    report: float  # start of the program, report, model
    keep: float  # seconds a row: reading the labels again, writing the model
    memory: float  # bytes of a process before it holds any row


# Made from the records by `python -m deccs_paper.scale.command --costs`.
COSTS = Costs(
    training=0.879,
    weight=1.17e-09,
    start=3.17,
    members=40.9,
    rest=7.05,
    views=178,
    label=2.63e-06,
    label_exactly=4.17e-05,
    report=4.64,
    keep=0,
    memory=9e08,
)


@dataclass(frozen=True)
class Job:
    """A fit of a table of numbers with the default settings.

    >>> Job(rows=1_000_000, columns=64).n_learned, Job(rows=100_000, columns=64).n_learned
    (262144, 100000)
    """

    rows: int
    columns: int
    processes: int = 1
    bytes_per_value: float = SINGLE  # in the file

    @property
    def is_large(self) -> bool:
        """Whether the table stays on the disk."""
        return self.rows * self.columns * DOUBLE > LARGE

    @property
    def n_learned(self) -> int:
        """How many rows the fit learns from."""
        return min(self.rows, most_rows(self.columns) if self.is_large else MOST_ROWS)

    @property
    def is_of_sample(self) -> bool:
        return self.n_learned < self.rows

    @property
    def bytes_of_values(self) -> float:
        return self.rows * self.columns * self.bytes_per_value

    @cached_property
    def budget(self) -> dict[str, Any]:
        """The settings that follow from the size."""
        return default_budget(self.n_learned, self.columns, False)

    @property
    def layers(self) -> tuple[int, ...]:
        """Widths of the encoder.

        >>> Job(rows=1_000_000, columns=64).layers
        (256, 256, 512, 10)
        """
        layers: tuple[int, ...] = self.budget.get(
            "network__layers", default_layers(self.n_learned, self.columns)
        )
        return layers

    @property
    def n_weights(self) -> int:
        """Of encoder and decoder, without biases.

        >>> Job(rows=1_000_000, columns=64).n_weights              # 2 * (64 * 256 + 256 * 256 + 256 * 512 + 512 * 10)
        436224
        """
        return 2 * products_of(self.columns, self.layers)

    @property
    def has_views(self) -> bool:
        return uses_views(self.n_learned, self.columns)

    @property
    def processes_in_training(self) -> int:
        """How many processes share the pretraining: with few rows the first one trains alone."""
        return self.processes if self.n_learned >= LEAST_SHARE * self.processes else 1

    @property
    def batch(self) -> int:
        """Rows of a process in a step of pretraining."""
        return share_of_batch(Pretraining().batch_size, self.processes_in_training)

    @property
    def training_steps(self) -> int:
        """Steps of pretraining, in each process.

        >>> [Job(rows=10**6, columns=64, processes=n).training_steps for n in (1, 2, 64)]
        [8000, 8000, 500]
        """
        settings = Pretraining(n_steps=self.budget.get("pretraining__n_steps", "auto"))
        return self._shared(steps_of(settings, self.n_learned, self._batches_alone))

    @property
    def checks(self) -> int:
        """How often pretraining looks at its error on held-out rows."""
        every = min(self._shared(self._batches_alone), MOST_BETWEEN_CHECKS)
        return math.ceil(self.training_steps / every)

    @property
    def _batches_alone(self) -> int:
        """In a pass over the rows, by one process."""
        settings = Pretraining()
        n_held = min(MOST_HELD_OUT, int(settings.held_out * self.n_learned))
        return math.ceil((self.n_learned - n_held) / settings.batch_size)

    def _shared(self, n_steps: int) -> int:
        """The same number of rows in steps of all processes together."""
        together = self.processes_in_training * self.batch
        return math.ceil(n_steps * Pretraining().batch_size / together)

    @property
    def times_sent(self) -> int:
        """How often all weights are averaged. A check counts three times: Adam's two moments are averaged, too.

        >>> Job(rows=10**6, columns=64, processes=64).times_sent   # after 64 of 500 steps: 7; at 4 checks: 12
        19
        """
        if self.processes_in_training == 1:
            return 0
        every = max(1, ROWS_BETWEEN_AVERAGES // self.batch)
        return self.training_steps // every + 3 * self.checks

    @property
    def n_sample(self) -> int:
        """Rows that members cluster in a round."""
        return default_sample_size(self.n_learned)

    @property
    def update_steps(self) -> int:
        """Of all rounds."""
        in_round = self.budget.get("rounds__n_steps", default_update_steps(self.n_learned))
        return int(Rounds().n_rounds * in_round)

    @property
    def n_labeled(self) -> int:
        """Rows that the busiest process labels: parts of 262,144 rows; of a small table the first process does all.

        >>> Job(rows=10**6, columns=64, processes=2).n_labeled, Job(rows=10**5, columns=64, processes=2).n_labeled
        (524288, 100000)
        """
        if not self.is_of_sample:
            return self.rows
        n_parts = math.ceil(self.rows / ROWS_OF_PART)
        return min(self.rows, math.ceil(n_parts / self.processes) * ROWS_OF_PART)


def products_of(n_columns: int, layers: tuple[int, ...]) -> int:
    """Weights of the encoder; each is multiplied once for each row that is embedded.

    >>> products_of(3, (2, 1))
    8
    """
    return sum(a * b for a, b in pairwise((n_columns, *layers)))


def work_of_training(n_columns: int, layers: tuple[int, ...]) -> int:
    """Multiplications and additions of a row in a step: forward, to the weights, and to all inputs but the first.

    >>> work_of_training(3, (2,))                                  # 3-2 and 2-3: 12 + 12, 24 to the weights, 12 back
    60
    """
    encoder = products_of(n_columns, layers)  # the decoder mirrors it
    return 2 * (3 * 2 * encoder - n_columns * layers[0])


def seconds_of_steps(job: Job, n_steps: int, batch: int, pace: Pace, costs: Costs) -> float:
    """Steps of training.

    >>> pace, costs = Pace(products=1e11, bytes_read=1e9, threads=1), replace(COSTS, training=0.5, weight=1e-9)
    >>> round(seconds_of_steps(Job(10**6, 64), 8_000, 128, pace, costs), 1)  # 52.9 s of products, 3.5 s of Adam
    56.4
    """
    work = work_of_training(job.columns, job.layers) * batch / (pace.products * costs.training)
    return n_steps * (work + job.n_weights * costs.weight)


def seconds_of_reading(job: Job, pace: Pace, costs: Costs) -> float:
    """The pass that looks for gaps and draws the sample. Of a small table every process reads all.

    >>> pace = Pace(products=1e11, bytes_read=1e9, threads=1)
    >>> seconds_of_reading(Job(10**9, 64, processes=64), pace, replace(COSTS, start=2.0))
    6.0
    """
    n_readers = job.processes if job.is_large else 1
    return costs.start + job.bytes_of_values / n_readers / pace.bytes_read


def seconds_of_members(job: Job, costs: Costs) -> float:
    """The four members are dealt to the processes; the time of the slowest grows with the square of the sample.

    >>> [seconds_of_members(Job(10**6, 64, processes=n), replace(COSTS, members=40.0)) for n in (1, 3, 64)]
    [40.0, 20.0, 10.0]
    """
    n_members = len(DEFAULT_MEMBERS)
    dealt = math.ceil(n_members / job.processes) / n_members
    return costs.members * (job.n_sample / LARGEST_SAMPLE) ** 2 * dealt


def seconds_of_rounds(job: Job, pace: Pace, costs: Costs) -> float:
    """Members, and the updates of the first process: as many rows of the sample as others in each step.

    >>> pace, costs = Pace(products=1e11, bytes_read=1e9, threads=1), replace(COSTS, training=0.5, weight=0, members=40)
    >>> round(seconds_of_rounds(Job(10**6, 64), pace, costs), 1)   # 15.9 s of updates
    55.9
    """
    batch = 2 * Rounds().batch_size
    return seconds_of_members(job, costs) + seconds_of_steps(
        job, job.update_steps, batch, pace, costs
    )


def seconds_of_labeling(job: Job, pace: Pace, costs: Costs) -> float:
    """The second pass: reading, embedding, confidence, writing.

    >>> pace, costs = Pace(products=1e11, bytes_read=1e9, threads=1), replace(COSTS, training=0.5, label=5e-5)
    >>> round(seconds_of_labeling(Job(10**6, 64), pace, costs), 1) # 50 s, 8.7 s of products, 0.3 s of reading
    59.0
    """
    if not job.is_of_sample:
        return job.rows * costs.label_exactly
    products = 2 * products_of(job.columns, job.layers) / (pace.products * costs.training)
    reading = job.columns * job.bytes_per_value / pace.bytes_read
    return job.n_labeled * (costs.label + products + reading)


def seconds_of_results(job: Job, costs: Costs) -> float:
    """Report and model, by the first process; the sample is labeled again for the report.

    >>> round(seconds_of_results(Job(10**6, 64), replace(COSTS, report=9.0, label_exactly=1e-4, keep=1e-7)), 1)
    35.3
    """
    again = job.n_learned * costs.label_exactly if job.is_of_sample else 0.0
    return costs.report + again + job.rows * costs.keep


def bytes_sent(job: Job) -> dict[str, float]:
    """What comes to each process over the network: the sample, weights while they are averaged, and all labels.

    >>> {name: round(n / 1e6) for name, n in bytes_sent(Job(10**9, 64, processes=64)).items()}
    {'sample': 67, 'weights': 65, 'labels': 4000}
    """
    if job.processes == 1:
        return dict.fromkeys(("sample", "weights", "labels"), 0.0)
    shared = 2 * (job.processes - 1) / job.processes  # of a sum that all of them get
    return {
        "sample": job.n_learned * job.columns * job.bytes_per_value if job.is_large else 0.0,
        "weights": job.times_sent * shared * SINGLE * job.n_weights,
        "labels": job.rows * SINGLE if job.is_of_sample else 0.0,
    }


def seconds_of_network(job: Job, gigabits: float) -> float:
    """Sample and labels are passed on from process to process, so that each sends them several times.

    >>> round(seconds_of_network(Job(10**9, 64, processes=64), gigabits=1), 1) # 6 times 32.5 s, and 0.5 s
    195.7
    """
    sent, hops = bytes_sent(job), math.ceil(math.log2(job.processes))
    return 8e-9 / gigabits * (hops * (sent["sample"] + sent["labels"]) + sent["weights"])


def memory_of_process(job: Job, costs: Costs) -> float:
    """Bytes of every process: the sample as it was read, as doubles, as they are scaled and sent; weights; labels.

    A row takes 21 bytes besides: its number (8), whether it is labeled (1), its label as it is sent (4) and kept (8).

    >>> round(memory_of_process(Job(10**9, 64, processes=64), replace(COSTS, memory=5e8)) / 1e9, 1)
    21.9
    """
    values = (job.n_learned if job.is_large else job.rows) * job.columns
    of_values = values * (job.bytes_per_value + 2 * DOUBLE + SINGLE)
    weights = 8 * SINGLE * job.n_weights  # gradients, Adam's moments, the best so far, and messages
    return costs.memory + of_values + weights + 21 * job.rows


def memory_of_first(job: Job, costs: Costs) -> float:
    """The first process also reads labels and confidence again, for the summary: 16 bytes a row.

    >>> round((memory_of_first(Job(10**9, 64), COSTS) - memory_of_process(Job(10**9, 64), COSTS)) / 1e9, 1)
    16.0
    """
    return memory_of_process(job, costs) + 16 * job.rows


def disk_of_results(job: Job) -> float:
    """Bytes of labels with confidence (6 a row), the embedding, and the labels in the model (8 a row).

    >>> round(disk_of_results(Job(10**9, 64)) / 1e9, 1)
    54.0
    """
    return job.rows * (6.0 + SINGLE * job.layers[-1] + DOUBLE)


def seconds_of(job: Job, pace: Pace, gigabits: float, costs: Costs = COSTS) -> dict[str, float]:
    """Seconds of each phase, in their order."""
    steps = seconds_of_steps(job, job.training_steps, job.batch, pace, costs)
    return {
        "reading": seconds_of_reading(job, pace, costs),
        "pretraining": steps,
        "rounds": seconds_of_rounds(job, pace, costs),
        "rest of learning": costs.rest + (costs.views if job.has_views else 0.0),
        "labeling": seconds_of_labeling(job, pace, costs),
        "results": seconds_of_results(job, costs),
        "network": seconds_of_network(job, gigabits),
    }


def advice(job: Job, pace: Pace, gigabits: float, costs: Costs = COSTS) -> str:
    """What takes most of the time, and what would help most: each change is tried in the model.

    >>> pace = Pace(products=1e11, bytes_read=1e9, threads=1)
    >>> print(advice(Job(10**9, 64), pace, gigabits=1).replace(". ", ".\\n"))
    Labeling dominates: 96 % of the time.
    With 2 processes instead of 1 it would take 69.4 minutes instead of 2.3 hours.
    """
    phases = seconds_of(job, pace, gigabits, costs)
    total, longest = sum(phases.values()), max(phases, key=lambda name: phases[name])
    more, faster = (
        replace(job, processes=2 * job.processes),
        replace(pace, products=2 * pace.products),
    )
    changes: dict[str, tuple[Job, Pace, float]] = {
        f"With {more.processes} processes instead of {job.processes}": (more, pace, gigabits),
        "With products of matrices twice as fast (more threads for each process)": (
            job,
            faster,
            gigabits,
        ),
        f"With a network of {10 * gigabits:g} Gbit/s": (job, pace, 10 * gigabits),
    }
    after = {words: sum(seconds_of(*change, costs).values()) for words, change in changes.items()}
    best = min(after, key=lambda words: after[words])
    dominates = (
        f"{longest.capitalize()} dominates: {phases[longest] / total:.0%} of the time.".replace(
            "%", " %"
        )
    )
    if after[best] > (1 - TENTH) * total:
        return f"{dominates} More processes or threads, or a faster network, would save less than a tenth of it."
    now, then = duration(total), duration(after[best])
    if now.split()[1] == then.split()[1]:  # the unit
        now = now.split()[0]
    return f"{dominates} {best} it would take {then} instead of {now}."


def duration(seconds: float) -> str:
    """Seconds as people say them.

    >>> duration(9.87), duration(200), duration(10_000)
    ('9.9 seconds', '3.3 minutes', '2.8 hours')
    """
    for size, unit in ((3600, "hours"), (60, "minutes")):
        if seconds >= 2 * size:
            return f"{seconds / size:.1f} {unit}"
    return f"{seconds:.1f} seconds"


def in_gigabytes(n: float) -> str:
    """Bytes as people say them.

    >>> in_gigabytes(5.4e10), in_gigabytes(2.34e9), in_gigabytes(5e8)
    ('54 GB', '2.3 GB', '0.5 GB')
    """
    return f"{n / 1e9:,.0f} GB" if n >= 1e10 else f"{n / 1e9:.1f} GB"


def table_of(job: Job, pace: Pace, gigabits: float, costs: Costs = COSTS) -> list[list[str]]:
    """The plan as rows of a table: what, how much, and what it is made of."""
    phases = seconds_of(job, pace, gigabits, costs)
    sent = sum(bytes_sent(job).values())
    reads = f"{in_gigabytes(read_by_process(job))} by each process, in two passes"
    message = f"{in_gigabytes(sent)} to each process at {gigabits:g} Gbit/s"
    words = {
        "reading": reads if job.is_of_sample else "",
        "pretraining": f"{job.training_steps:,} steps of {job.batch} rows by each process",
        "rounds": f"members on {job.n_sample:,} rows, {job.update_steps:,} steps by the first process",
        "labeling": f"{job.n_labeled:,} rows by the busiest process",
        "network": message if sent else "",
    }
    total = {"total": sum(phases.values())}
    return [
        *([name, duration(n), words.get(name, "")] for name, n in {**phases, **total}.items()),
        ["memory", in_gigabytes(memory_of_process(job, costs)), "of each process"],
        ["", in_gigabytes(memory_of_first(job, costs)), "of the first process"],
        ["disk", in_gigabytes(disk_of_results(job)), "for labels, embedding and model"],
    ]


def headline(job: Job, pace: Pace) -> str:
    """What is planned, and on which machine.

    >>> print(headline(Job(10**6, 64), Pace(products=2e11, bytes_read=5e8, threads=2)))
    1,000,000 rows, 64 columns, 1 process like this one: 200 billion operations a second with 2 threads, 0.5 GB/s read.
    """
    many = f"{job.processes:,} processes" if job.processes > 1 else "1 process"
    threads = f"{pace.threads} threads" if pace.threads > 1 else "1 thread"
    return (
        f"{job.rows:,} rows, {job.columns:,} columns, {many} like this one: {pace.products / 1e9:.0f} billion "
        f"operations a second with {threads}, {pace.bytes_read / 1e9:.1f} GB/s read."
    )


def read_by_process(job: Job) -> int:
    """Bytes of values that a process reads, in both passes.

    >>> read_by_process(Job(10**9, 64, processes=64))
    8000000000
    """
    return round(2 * job.bytes_of_values / (job.processes if job.is_large else 1))


def plan_of(job: Job, pace: Pace, gigabits: float, costs: Costs = COSTS) -> dict[str, Any]:
    """All that the model says of a fit, as a document."""
    phases = seconds_of(job, pace, gigabits, costs)
    return {
        **asdict(job),
        "learned_from": job.n_learned,
        "network_gigabits": gigabits,
        "machine": asdict(pace),
        "seconds": {name: round(seconds, 2) for name, seconds in phases.items()},
        "seconds_total": round(sum(phases.values()), 2),
        "bytes": {
            "read_by_process": read_by_process(job),
            "sent": {name: round(n) for name, n in bytes_sent(job).items()},
            "memory_of_process": round(memory_of_process(job, costs)),
            "memory_of_first": round(memory_of_first(job, costs)),
            "disk": round(disk_of_results(job)),
        },
        "advice": advice(job, pace, gigabits, costs),
    }
