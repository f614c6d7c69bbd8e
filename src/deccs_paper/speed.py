"""``make bench``: the loops against the machine's limit and plain loops, whole fits against the published recipe.

All in one run: on a shared machine only ratios mean something. One JSON line per measurement.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import torch
from rich.console import Console

from deccs import datasets, scores
from deccs.clock import Clock
from deccs.data.rows import Rows
from deccs.data.scalers import fit_scaler
from deccs.data.source import source_of
from deccs.environment import peak_memory_mb
from deccs.estimator import DECCS
from deccs.events import Callback
from deccs.members.asking import ask
from deccs.members.default import default_members
from deccs.network.autoencoder import Autoencoder, encode
from deccs.network.device import threads_for
from deccs.rounds.classifiers import Classifiers, Heads, classify, present_clusters, split_sample
from deccs.rounds.records import Clustered, Round
from deccs.rounds.update import Update, update
from deccs.seeds import generator_for, seed_for
from deccs.settings import Pretraining, Rounds
from deccs.training.engine import train
from deccs.training.pretraining import pretrain
from deccs_paper import plain_loops, records
from deccs_paper.blocks import Block
from deccs_paper.runner import ROOT
from deccs_paper.settings import LARGE, PAPER_TABLES, estimator_for, settings_of

LIST = Block("figures", "python -m deccs_paper.speed")
# Columns and encoder of the two networks that are measured.
MNIST, SYNTH = (784, LARGE), (2, (20, 20, 2))
N_SAMPLE, N_MEMBERS, N_CLUSTERS = 5_600, 4, 10
PUBLISHED_STEPS = {"pretrain": 150_000, "update": 200_000}
GROWTH = (10_000, 70_000, 700_000)


def matrix_rate(seconds: float = 2.0) -> float:
    """GFLOP/s of the best single-precision matrix product: the limit."""
    best, end = 0.0, time.perf_counter() + seconds
    A, B = torch.randn(2048, 2048), torch.randn(2048, 2048)
    while time.perf_counter() < end:
        start = time.perf_counter()
        A @ B
        best = max(best, 2 * 2048**3 / (time.perf_counter() - start) / 1e9)
    return best


@dataclass(frozen=True)
class Pace:
    """The median of three measurements of a loop, each between two of the limit, since the machine's pace changes."""

    seconds: float
    share_of_limit: float


def pace_of(measure: Callable[[], float], gflop: float) -> Pace:
    """``measure`` returns the seconds per step; a step has ``gflop`` of products."""
    seconds, shares, limit = [], [], matrix_rate(0.5)
    for _ in range(3):
        seconds.append(measure())
        before, limit = limit, matrix_rate(0.5)
        shares.append(gflop / seconds[-1] / max(before, limit))
    return Pace(float(np.median(seconds)), float(np.median(shares)))


def step_gflop(n_columns: int, layers: tuple[int, ...], n_rows: int) -> float:
    """Forward, backward to the weights and backward to the inputs of all layers but the first.

    >>> round(step_gflop(3, (2,), 1) * 1e9)       # 3-2 and 2-3: 12 + 12 forward, 24 to the weights, 12 to the inputs
    60
    """
    widths = (n_columns, *layers)
    encoder = [a * b for a, b in pairwise(widths)]
    products = 2 * sum(encoder)  # the decoder mirrors the encoder
    return 2 * n_rows * (3 * products - encoder[0]) / 1e9


def made_up(n_rows: int, n_columns: int) -> tuple[torch.Tensor, Rows]:
    X = torch.randn(n_rows, n_columns, generator=torch.Generator().manual_seed(0))
    source = source_of(X.numpy())
    return X, Rows(source, fit_scaler(source, None))


def pretraining_step(
    n_columns: int, layers: tuple[int, ...], n_rows: int, batch_size: int
) -> float:
    """Seconds per step, including its share of the held-out error."""
    _, rows = made_up(n_rows, n_columns)
    network = Autoencoder.feed_forward(n_columns, layers)
    settings = Pretraining(n_epochs=1, batch_size=batch_size)
    start = time.perf_counter()
    pretrain(network, rows, settings, root=0)
    return (time.perf_counter() - start) / np.ceil(0.9 * n_rows / batch_size)


def clustered_sample(
    autoencoder: Autoencoder, rows: Rows, n_sample: int, k: int
) -> tuple[Round, Clustered, Any]:
    """A round before its update, with made-up partitions."""
    sample = torch.arange(n_sample)
    Z = encode(autoencoder, rows, sample)
    labels = made_up_labels(n_sample, k)
    train_on, held_out = split_sample(labels.T.numpy(), 0.1, generator_for(0))
    heads = classify(Z, labels, train_on, held_out, generator_for(0))
    round_ = Round(
        number=1,
        sample=sample.numpy(),
        Z=Z.numpy(),
        member_names=tuple("abcd"),
        base_partitions=labels.T.numpy(),
        agreement_matrix=np.eye(N_MEMBERS),
        agreement=0.5,
        weights=np.ones(N_MEMBERS),
        consensus_weight=1.0,
    )
    return round_, Clustered(sample, Z, labels, train_on, held_out), heads


def made_up_labels(n_sample: int, k: int) -> torch.Tensor:
    """Random labels: (n_sample, n_members)."""
    return torch.randint(k, (n_sample, N_MEMBERS), generator=torch.Generator().manual_seed(1))


def update_step(
    n_columns: int, layers: tuple[int, ...], n_rows: int, n_sample: int, k: int, n_steps: int
) -> float:
    """Seconds per step, including its share of the checks on held-out points."""
    _, rows = made_up(n_rows, n_columns)
    autoencoder = Autoencoder.feed_forward(n_columns, layers)
    round_, clustered, heads = clustered_sample(autoencoder, rows, n_sample, k)
    settings = Rounds(n_steps=n_steps, patience=1_000, learning_rate=1e-6)
    with threads_for(autoencoder, settings.batch_size):
        start = time.perf_counter()
        update(Update(autoencoder, heads, rows, clustered, round_, settings, seed=0))
        return (time.perf_counter() - start) / n_steps


def loops() -> Iterator[dict[str, Any]]:
    """(b) and (c): time per step, share of the limit, and the plain loop as a ratio."""
    batch, each = Pretraining().batch_size, Rounds().batch_size
    for name, (n_columns, layers), n_rows, n_sample, k, n_steps in (
        ("500-500-2000-10", MNIST, 20_000, N_SAMPLE, N_CLUSTERS, 120),
        ("20-20-2", SYNTH, 20_000, 1_000, 4, 400),
    ):
        X, _ = made_up(n_rows, n_columns)
        labels = made_up_labels(n_sample, k)
        network = plain_loops.plain_autoencoder(n_columns, layers)
        given = n_columns, layers, n_rows
        for what, ours, plain, gflop in (
            (
                "pretraining step",
                partial(pretraining_step, *given, batch),
                partial(plain_loops.pretraining_seconds, network, X, batch, n_steps),
                step_gflop(n_columns, layers, batch),
            ),
            (
                "update step",
                partial(update_step, *given, n_sample, k, n_steps),
                partial(plain_loops.update_seconds, network, X, labels, each, n_steps),
                step_gflop(n_columns, layers, 2 * each),
            ),
        ):
            with threads_for(network, batch):  # the limit and the plain loop on as many threads
                pace = pace_of(ours, gflop)
                slow = float(np.median([plain() for _ in range(3)]))
            yield {
                "what": f"{what}, {name}",
                "milliseconds": 1e3 * pace.seconds,
                "share_of_limit": pace.share_of_limit,
                "plain_milliseconds": 1e3 * slow,
                "times_faster_than_plain": slow / pace.seconds,
            }
    yield from embedding_and_classifiers()


def embedding_and_classifiers(n_rows: int = 20_000) -> Iterator[dict[str, Any]]:
    _, rows = made_up(n_rows, 784)
    network = Autoencoder.feed_forward(784, LARGE)

    def embed() -> float:
        start = time.perf_counter()
        encode(network, rows)
        return time.perf_counter() - start

    pace = pace_of(embed, 2 * n_rows * sum(a * b for a, b in pairwise((784, *LARGE))) / 1e9)
    yield {
        "what": f"embedding of {n_rows:,} points",
        "milliseconds": 1e3 * pace.seconds,
        "share_of_limit": pace.share_of_limit,
    }
    Z = encode(network, rows, torch.arange(N_SAMPLE))
    labels = made_up_labels(N_SAMPLE, N_CLUSTERS)
    train_on, held_out = split_sample(labels.T.numpy(), 0.1, generator_for(0))
    heads = Classifiers(Z.shape[1], present_clusters(labels))
    learner = Heads(heads, Z, labels, train_on, held_out, generator_for(0))
    start = time.perf_counter()
    train(learner, n_steps=300, rate=0.1, check_every=25)  # as ``classify``, without an early end
    yield {
        "what": "classifiers of a round (300 steps)",
        "milliseconds": 1e3 * (time.perf_counter() - start),
    }


def members(n_sample: int = N_SAMPLE) -> Iterator[dict[str, Any]]:
    """(d): seconds of each member on an embedding of overlapping clusters."""
    rng = np.random.default_rng(0)
    centers = 2.0 * rng.normal(size=(N_CLUSTERS, 10))
    Z = rng.normal(size=(n_sample, 10)) + centers[rng.integers(N_CLUSTERS, size=n_sample)]
    for name, member in default_members(N_CLUSTERS):
        start = time.perf_counter()
        ask(member, Z, np.arange(n_sample), seed=0)
        yield {
            "what": f"member {name}, {n_sample} points",
            "milliseconds": 1e3 * (time.perf_counter() - start),
        }


def published_seconds(name: str, n_columns: int, n_rows: int) -> float:
    """The published recipe on this machine: its steps, on 256 and 512 rows, at the pace of the plain loops."""
    paper = settings_of(name)
    X, _ = made_up(min(n_rows, 20_000), n_columns)
    n_sample = min(4_600, n_rows // 2)
    labels = made_up_labels(n_sample, paper.k)
    network = plain_loops.plain_autoencoder(n_columns, paper.layers)
    with threads_for(network, 256):
        pretraining = np.median(
            [plain_loops.pretraining_seconds(network, X, 256, 40) for _ in range(3)]
        )
        rounds = np.median(
            [plain_loops.update_seconds(network, X, labels, 256, 40) for _ in range(3)]
        )
    return float(PUBLISHED_STEPS["pretrain"] * pretraining + PUBLISHED_STEPS["update"] * rounds)


class Watch(Callback):
    """When the member that gives the labels first was as good as the paper."""

    def __init__(self, truth: np.ndarray, goal: float) -> None:
        self.truth, self.goal, self.start = truth, goal, time.perf_counter()
        self.reached: float | None = None  # seconds

    def on_round(self, finished: Round) -> None:
        nmi = scores.nmi(self.truth[finished.sample], finished.base_partitions[0])
        if self.reached is None and nmi >= self.goal:
            self.reached = time.perf_counter() - self.start


def end_to_end(name: str, repetitions: int) -> Iterator[dict[str, Any]]:
    """(e): from raw data to labels with the paper's settings, and the published recipe as a multiple."""
    data = datasets.load(name)
    for repetition in range(repetitions):
        watch = Watch(data.y, PAPER_TABLES["table2"]["DECCS"][name][0])
        model = estimator_for(
            name, random_state=seed_for(ROOT, name, repetition), callbacks=[watch]
        )
        start = time.perf_counter()
        model.fit(data.X)
        seconds = time.perf_counter() - start
        # After each run, since the machine's pace changes.
        published = published_seconds(name, data.d, data.n)
        phases = [finished.seconds for finished in model.rounds_]
        members = sum(phase["cluster"] for phase in phases) / sum(
            sum(phase.values()) for phase in phases
        )
        yield {
            "what": f"{name} from data to labels, repetition {repetition}",
            "seconds": seconds,
            "nmi": scores.nmi(data.y, model.labels_),
            "seconds_to_the_papers_nmi": watch.reached,
            "members_share_of_rounds": members,
            "peak_memory_mb": peak_memory_mb(),
            "published_seconds": published,
            "times_faster_than_published": published / seconds,
        }


def grown(n_points: int) -> dict[str, Any]:
    """(f), in a separate process: noisy copies of 10,000 rows, one epoch and two rounds."""
    rng = np.random.default_rng(0)
    base = rng.normal(size=(10, 64))[rng.integers(10, size=10_000)] + rng.normal(size=(10_000, 64))
    X = np.tile(base.astype(np.float32), (n_points // len(base), 1))
    X += 0.1 * rng.standard_normal(X.shape, dtype=np.float32)
    before, clock = peak_memory_mb(), Clock()
    few, short = Rounds(n_rounds=2), Pretraining(n_epochs=1)
    DECCS(10, rounds=few, pretraining=short, random_state=0).fit(X)
    clock.lap("fit")
    return {
        "what": f"{n_points:,} x 64, one epoch and two rounds",
        "seconds": clock.laps["fit"],
        "peak_memory_mb": peak_memory_mb(),
        "data_mb": X.nbytes / 2**20,
        "before_mb": before,
    }


def growth(sizes: tuple[int, ...] = GROWTH) -> Iterator[dict[str, Any]]:
    for n_points in sizes:
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
            yield pool.submit(grown, n_points).result()


def words(figure: dict[str, Any]) -> str:
    """One line of the printed report.

    >>> words({"what": "update step", "milliseconds": 12.3456, "share_of_limit": 0.81})
    'update step: 12.35 ms, 81 % of the limit'
    """
    form = {
        "milliseconds": "{:.2f} ms",
        "share_of_limit": "{:.0%} of the limit",
        "plain_milliseconds": "plain {:.2f} ms",
        "times_faster_than_plain": "{:.1f} x faster than plain",
        "seconds": "{:.1f} s",
        "nmi": "NMI {:.3f}",
        "seconds_to_the_papers_nmi": "the paper's NMI after {:.0f} s",
        "published_seconds": "published {:.0f} s",
        "times_faster_than_published": "{:.0f} x faster",
        "members_share_of_rounds": "members {:.0%} of the rounds",
        "peak_memory_mb": "{:.0f} MB at most",
        "data_mb": "{:.0f} MB of data",
        "gflops": "{:.0f} GFLOP/s",
    }
    parts = [
        text.format(figure[key]).replace("%", " %")
        for key, text in form.items()
        if figure.get(key) is not None
    ]
    return f"{figure['what']}: {', '.join(parts)}"


def listed(path: Path) -> str:
    """The measurements in a file of records; of one made twice the later."""
    last = {figure["what"]: figure for figure in records.read(path)}
    return "\n".join(f"- {words(figure)}" for figure in last.values())


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m deccs_paper.speed", description=__doc__)
    parser.add_argument(
        "--datasets",
        nargs="*",
        default=["synth", "usps", "mnist"],
        help="data sets of the whole runs, or none",
    )
    parser.add_argument("--seeds", type=int, default=1, help="whole runs per data set")
    parser.add_argument(
        "--sizes", nargs="*", type=int, default=list(GROWTH), help="points, for the growth"
    )
    parser.add_argument("--out", type=Path, default=Path("runs/speed.jsonl"))
    parser.add_argument(
        "--page", type=Path, help="a Markdown page whose list is rewritten from --out"
    )
    given = parser.parse_args(arguments)
    console = Console()
    facts = records.made_with()

    def report(figures: Iterator[dict[str, Any]]) -> None:
        for figure in figures:
            console.print(words(figure), highlight=False, soft_wrap=True)
            records.append(given.out, {"experiment": "speed", **figure, **facts})

    report(iter([{"what": "single-precision matrix product", "gflops": matrix_rate()}]))
    report(loops())
    report(members())
    for name in given.datasets:
        report(end_to_end(name, given.seeds))
    report(growth(tuple(given.sizes)))
    if given.page:
        LIST.rewrite(given.page, listed(given.out))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
