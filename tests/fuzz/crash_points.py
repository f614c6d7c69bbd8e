"""Kill a command at each of its file-system calls, and run it again.

    python -m tests.fuzz.crash_points                    # every call of every case; about ten minutes
    python -m tests.fuzz.crash_points --every 20 fit     # every 20th call of one case

Commands run in processes forked from this one, which has imported everything. A call is the opening
of a file to write, a write (of which half is done), fsync, rename, remove, mkdir, rmdir and so on.
After a kill a folder must hold the old results or the new ones, whole, and the same command must work
and give the bits of an undisturbed run.
"""

import argparse
import io
import json
import os
import shutil
import sys
import tempfile
import time
import traceback
from collections import Counter
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from functools import partial
from pathlib import Path

import numpy as np
import torch

from deccs import DECCS, Network, Pretraining, Rounds
from deccs.app import cli, commands
from deccs.app.run_folder import COMPLETE, MOVING
from deccs.counting import cluster_stability
from deccs.rounds import classifiers
from deccs.storage import CheckpointError, checkpoints
from tests.helpers.command_line import write_table
from tests.helpers.small import far_blobs

KILLED, WRONG = 77, 78  # exit codes of forked processes
EVENTS = (
    "os.rename",
    "os.remove",
    "os.mkdir",
    "os.rmdir",
    "os.link",
    "os.symlink",
    "shutil.rmtree",
)
MEASURED = ("seconds", "seconds_", "peak_memory_mb", "checksum", "file")
SETTINGS = """
clusters = 3
rounds = 1
id = "key"
[settings]
network.layers = [4, 2]
rounds = {n_init = 1, n_steps = 4, batch_size = 64}
[settings.pretraining]
n_epochs = 3
batch_size = 64
"""
WARM = ("--set", "pretraining.n_steps=2", "--set", "rounds.n_steps=2", "--rounds", 1)


# ---- kills


class Calls:
    """Counts what this process does to files below a folder, and ends it at one of the calls."""

    def __init__(self, below, kill_at=None):
        self.below, self.kill_at = os.path.realpath(below), kill_at
        self.names = []

    def watch(self):
        sys.addaudithook(self.event)
        for name in ("fsync", "ftruncate", "write"):
            self.count(os, name)
        real = io.open

        def opened(file, mode="r", *arguments, **options):
            if mode in ("wb", "xb", "ab") and self.is_ours(file):
                return io.BufferedWriter(TornFile(file, mode, self))
            return real(file, mode, *arguments, **options)

        io.open = opened

    def count(self, owner, name):
        real = getattr(owner, name)

        def counted(handle, *arguments):
            if self.is_ours(handle):
                self.call(name)
            return real(handle, *arguments)

        setattr(owner, name, counted)

    def event(self, event, details):
        if event == "open":
            writes = (details[2] or 0) & (os.O_WRONLY | os.O_RDWR)
            if writes and self.is_ours(details[0]):
                self.call("open")
        elif event in EVENTS and (self.is_ours(details[0]) or not os.path.isabs(details[0])):
            self.call(event)

    def is_ours(self, file):
        if isinstance(file, int):
            file = os.readlink(f"/proc/self/fd/{file}")
        return os.path.abspath(os.fspath(file)).startswith(self.below)

    def call(self, name):
        self.names.append(name)
        if self.is_last():
            os._exit(KILLED)

    def is_last(self):
        return len(self.names) == self.kill_at


class TornFile(io.FileIO):
    """A file of which the last write before the kill is done by half."""

    def __init__(self, file, mode, calls):
        super().__init__(file, mode)
        self.calls = calls

    def write(self, content):
        self.calls.names.append("write")
        if self.calls.is_last():
            super().write(bytes(content)[: len(content) // 2])
            os._exit(KILLED)
        return super().write(content)


def forked(task):
    """The exit code of a forked process that does this task, and what it printed."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        said, code = io.StringIO(), WRONG
        try:
            with redirect_stdout(said), redirect_stderr(said):
                code = task() or 0
        except BaseException:
            said.write(traceback.format_exc())
        os.write(writer, said.getvalue()[-3000:].encode())
        os._exit(code)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        said = pipe.read().decode()
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), said


def deccs(words):
    """Run a command in this process; its exit code."""
    try:
        cli.app([str(word) for word in words], prog_name="deccs")
    except SystemExit as end:
        return int(end.code or 0)
    return 0


def killed(task, below, kill_at):
    """Do a task with a kill at a call; the exit code."""

    def watched():
        Calls(below, kill_at).watch()
        return task()

    return forked(watched)


def calls_of(task, below):
    """The names of all calls of a task."""
    with tempfile.NamedTemporaryFile() as file:

        def watched():
            calls = Calls(below)
            calls.watch()
            code = task()
            Path(file.name).write_text(json.dumps(calls.names))
            return code

        code, said = forked(watched)
        assert code == 0, said
        return json.loads(Path(file.name).read_text())


def warm_up(place):
    """What is done once is done for all forks; but nothing with polars, whose threads do not come along."""
    np.save(place / "warm.npy", far_blobs().X[::3])
    with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
        deccs(["fit", place / "warm.npy", "--clusters", 3, "--out", place / "warm", *WARM])


# ---- what must be there afterwards


class Wrong(Exception):
    """A promise was broken."""


def without_measured(value):
    if isinstance(value, dict):
        return {key: without_measured(part) for key, part in value.items() if key not in MEASURED}
    return [without_measured(part) for part in value] if isinstance(value, list) else value


def bits_of(run):
    """The results of a run folder, without what is measured."""
    names = ("labels.csv", "clusters.txt", "embedding.npy")
    bits = {name: (run / name).read_bytes() for name in names}
    bits["tensors"] = sorted(path.name for path in (run / "model").iterdir())
    for path in (run / "summary.json", run / "model" / "model.json"):
        bits[path.name] = without_measured(json.loads(path.read_bytes()))
    if (run / "rounds.jsonl").exists():
        lines = (run / "rounds.jsonl").read_text().splitlines()
        bits["rounds"] = [without_measured(json.loads(line)) for line in lines]
    return bits


def differences(one, other):
    """The names of results that differ."""
    return [name for name in one | other if one.get(name) != other.get(name)]


def check_old_or_new(run, old, new):
    """After a kill, the folder holds the old results or the new ones, whole, or none if there were none."""
    if (run / COMPLETE).exists() or (run / MOVING / "summary.json").exists():
        return "complete"  # readers refuse it, and the next command moves them
    if not (run / "summary.json").exists():
        if old is not None:
            raise Wrong("the old results are gone, and the new ones are not complete")
        return "nothing yet"
    bits = bits_of(run)
    if bits == new:
        return "new"
    if old is None or bits != old:
        raise Wrong(f"a mixture of results, or other bits in {differences(bits, new)}")
    return "old"


# ---- cases: each has a folder to begin with, a task, and a check of what a kill leaves


class FitCase:
    """``deccs fit`` with a method, into a folder with or without old results or a checkpoint."""

    def __init__(self, place, method="deccs", overwrite=False, resume_at=None):
        self.data = write_table(place / "data.csv", far_blobs().X[::3])
        (place / "fit.toml").write_text(SETTINGS)
        self.place, self.overwrite = place, overwrite
        options = ["--id", "key"]
        if method == "deccs":
            options = ["--config", place / "fit.toml", "--set", "views=none"]
        self.words = ["fit", self.data, *options, "--method", method, "--clusters", 3]
        self.start = place / "start" / "run"  # at the same depth as the others
        warm_up(place)
        self.new, self.names = self.reference("new", 0)
        self.old = None
        if overwrite:
            self.old, _ = self.reference("old", 1)
            shutil.copytree(place / "old" / "run", self.start)
        if resume_at is not None:
            n_calls = len(calls_of(partial(deccs, self.command(place / "count" / "run")), place))
            code, said = killed(
                partial(deccs, self.command(self.start)), self.start, int(resume_at * n_calls)
            )
            assert code == KILLED, said

    def command(self, run, seed=0):
        run.parent.mkdir(exist_ok=True)
        more = ["--overwrite"] if self.overwrite else []
        return [*self.words, "--seed", seed, "--out", run, *more]

    def reference(self, name, seed):
        run = self.place / name / "run"
        code, said = forked(partial(deccs, self.command(run, seed)))
        assert code == 0, said
        return bits_of(run), sorted(path.name for path in run.iterdir())

    def begin(self, folder):
        if self.start.exists():
            shutil.copytree(self.start, folder / "run", symlinks=True)

    def task(self, folder):
        return partial(deccs, self.command(folder / "run"))

    def check(self, folder):
        run = folder / "run"
        state = check_old_or_new(run, self.old, self.new)
        code, said = forked(self.task(folder))
        finished = code == 2 and "already holds results" in said and state == "new"
        if code != 0 and not finished:
            raise Wrong(f"after {state!r} the same command ends with {code}: {said[-500:]}")
        if differing := differences(bits_of(run), self.new):
            raise Wrong(f"after {state!r} the same command gives other {differing}")
        names = sorted(path.name for path in run.iterdir())
        if names != self.names:
            raise Wrong(f"after {state!r} the folder holds {names}")
        return state


class RenameCase:
    """``deccs rename``: each file has the old name or the new one, and the same command makes all new."""

    def __init__(self, place):
        fit = FitCase(place, method="consensus")
        self.runs = {"old": place / "new" / "run", "new": place / "renamed" / "run"}
        shutil.copytree(self.runs["old"], self.runs["new"])
        code, said = forked(self.task(self.runs["new"].parent))
        assert code == 0 and fit.new != bits_of(self.runs["new"]), said
        self.parts = {which: bits_of(run) for which, run in self.runs.items()}
        self.names = sorted(path.name for path in self.runs["new"].iterdir())

    def begin(self, folder):
        shutil.copytree(self.runs["old"], folder / "run")

    def task(self, folder):
        return partial(deccs, ["rename", folder / "run", 1, "another name"])

    def check(self, folder):
        run = folder / "run"
        bits = bits_of(run)
        states = {
            self.state(part, bits[part]) for part in ("labels.csv", "clusters.txt", "summary.json")
        }
        code, said = forked(self.task(folder))
        if code != 0:
            raise Wrong(f"the same command ends with {code}: {said[-500:]}")
        if differing := differences(bits_of(run), self.parts["new"]):
            raise Wrong(f"the same command gives other {differing}")
        names = sorted(path.name for path in run.iterdir())
        if names != self.names:
            raise Wrong(f"the folder holds {names}")
        return " and ".join(sorted(states))

    def state(self, part, found):
        for which, bits in self.parts.items():
            if found == bits[part]:
                return which
        raise Wrong(f"{part} is neither old nor new")


class SaveCase:
    """``model.save`` over an old model, as a folder or as a zip file."""

    def __init__(self, place, name="model"):
        self.name, X = name, far_blobs().X
        self.models = [small(random_state=seed).fit(X) for seed in (0, 1)]
        self.weights = [weights_of(model) for model in self.models]

    def begin(self, folder):
        self.models[0].save(folder / self.name)

    def task(self, folder):
        return partial(self.models[1].save, folder / self.name)

    def check(self, folder):
        state = self.state(folder)
        self.models[1].save(folder / self.name)
        if self.state(folder) != "new":
            raise Wrong("saved again, it is not the new model")
        return state

    def state(self, folder):
        found = weights_of(DECCS.load(folder / self.name))
        for name, weights in zip(("old", "new"), self.weights, strict=True):
            if all(np.array_equal(a, b) for a, b in zip(found, weights, strict=True)):
                return name
        raise Wrong("neither the old model nor the new one")


class CheckpointCase:
    """A fit in Python with a checkpoint: the next fit is the same one, or one with another seed."""

    def __init__(self, place):
        self.X = far_blobs().X[::3]
        self.straight = [weights_of(small(random_state=seed).fit(self.X)) for seed in (0, 1)]

    def begin(self, folder):
        pass

    def task(self, folder, seed=0):
        def fit():
            model = small(random_state=seed, checkpoint=folder / "c").fit(self.X)
            if not all(
                np.array_equal(a, b)
                for a, b in zip(weights_of(model), self.straight[seed], strict=True)
            ):
                raise Wrong("other bits")

        return fit

    def check(self, folder):
        shutil.copytree(folder, other := folder.with_name(f"{folder.name}-other"))
        code, said = forked(self.task(other, seed=1))
        if code != 0 and CheckpointError.__name__ not in said:
            raise Wrong(f"another seed afterwards: {said[-500:]}")
        shutil.rmtree(other)
        code_same, said = forked(self.task(folder))
        if code_same != 0:
            raise Wrong(f"the same fit afterwards: {said[-500:]}")
        if (folder / "c").exists():
            raise Wrong(f"left over: {sorted(os.listdir(folder / 'c'))}")
        return "other seed fitted" if code == 0 else "other seed refused"


def small(**changes):
    return DECCS(
        3,
        views=None,
        network=Network(layers=(4, 2)),
        pretraining=Pretraining(n_epochs=3, batch_size=64),
        rounds=Rounds(n_rounds=1, n_init=1, n_steps=4, batch_size=64),
        **changes,
    )


def weights_of(model):
    return [model.labels_, *(weight.numpy() for weight in model.autoencoder_.state_dict().values())]


CASES = {
    "fit": FitCase,
    "fit --overwrite": partial(FitCase, overwrite=True),
    "fit, resumed": partial(FitCase, resume_at=0.5),
    "fit --overwrite, resumed": partial(FitCase, overwrite=True, resume_at=0.5),
    "fit --method consensus": partial(FitCase, method="consensus"),
    "fit --method consensus --overwrite": partial(FitCase, method="consensus", overwrite=True),
    "rename": RenameCase,
    "save as a folder": SaveCase,
    "save as a zip file": partial(SaveCase, name="model.zip"),
    "fit in Python": CheckpointCase,
}


@contextmanager
def quick_and_often():
    """Short fits, whose states are saved at every check."""
    torch.set_num_threads(1)
    kept = [
        (classifiers, "MOST_STEPS", 20),
        (cluster_stability, "stability_of", lambda drawn: []),
        (checkpoints, "LEAST_PAUSE", 0.0),
        (checkpoints, "PAUSE_PER_COST", 0),
    ]
    before = [(owner, name, getattr(owner, name)) for owner, name, _ in kept]
    for owner, name, value in kept:
        setattr(owner, name, value)
    try:
        yield
    finally:
        for owner, name, value in before:
            setattr(owner, name, value)


def crash(case, place, number):
    """Kill a case at a call; what it left, or None if it has fewer calls."""
    folder = place / f"at-{number}"
    folder.mkdir()
    case.begin(folder)
    code, said = killed(case.task(folder), folder, number)
    if code == 0:
        return None
    if code != KILLED:
        raise Wrong(f"before the kill: {said[-500:]}")
    state = case.check(folder)
    shutil.rmtree(folder)
    return state


def crashes(name, place, every=1, first=1):
    """(call, what it left or what was wrong) for every so many calls of a case."""
    case = CASES[name](place)
    number = first
    while True:
        try:
            state = crash(case, place, number)
        except Wrong as error:
            yield number, error
        else:
            if state is None:
                return
            yield number, state
        number += every


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("cases", nargs="*", default=list(CASES), help="of: " + ", ".join(CASES))
    parser.add_argument("--every", type=int, default=1, help="kill at every so many calls")
    options = parser.parse_args()
    assert commands  # imported before the forks
    n_wrong = 0
    with quick_and_often():
        for name in options.cases:
            began, states = time.monotonic(), Counter()
            with tempfile.TemporaryDirectory() as folder:
                for number, state in crashes(name, Path(folder), options.every):
                    if isinstance(state, Wrong):
                        n_wrong += 1
                        print(f"{name}, call {number}: {state}", flush=True)
                    states["wrong" if isinstance(state, Wrong) else state] += 1
            found = ", ".join(f"{state}: {count}" for state, count in states.items())
            seconds = time.monotonic() - began
            print(f"{name}: {states.total()} crash points ({found}), {seconds:.0f} s", flush=True)
    return 1 if n_wrong else 0


if __name__ == "__main__":
    sys.exit(main())
