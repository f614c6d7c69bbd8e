"""Changed checkpoints, many of them: a fit goes on with the same bits, or says what is wrong.

    python -m tests.fuzz.checkpoints --n 5000 --seed 0
    python -m tests.fuzz.checkpoints --seed 0 --only 4711      # one of them again

Fits of many methods are stopped, a state is changed, and the same fit runs again. What is not resealed must
be noticed: the bits are those of an undisturbed fit. A state that was resealed may hold other numbers that
nobody can tell from right ones; then the bits may differ, but nothing else may go wrong.
"""

from __future__ import annotations

import argparse
import copy
import json
import os
import resource
import shutil
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from contextlib import suppress
from functools import cache
from pathlib import Path

import numpy as np
import safetensors.numpy
import torch
from sklearn.cluster import KMeans

from deccs import Callback, ConsensusMatrix, Network, Pretraining, Rounds
from deccs.deep import METHODS
from deccs.network.autoencoder import TrainingError
from deccs.storage import CheckpointError, CheckpointWarning, checkpoints, container
from tests.deep.killed_fits import RESUMABLE, SETTINGS, SPECIAL, check_often
from tests.fuzz.crash_points import forked, quick_and_often, small
from tests.fuzz.mutations import change_arrays, change_tree, sealed, spoiled, zipped
from tests.helpers.quick_count import quick_counts
from tests.helpers.small import far_blobs

MOST_SECONDS = 30
MOST_MEMORY = 2 * 2**30  # bytes above what the process has at first
DOCUMENTED = (CheckpointError, TrainingError)
SAME, NOTICED, OTHER = "same bits", "same bits, set aside", "other numbers"


class Stop(Exception):
    pass


class TooLong(BaseException):
    """A fit has hung."""


class Stops(Callback):
    """Ends a fit after so many events."""

    def __init__(self, after):
        self.left = after

    def on_progress(self, progress):
        self.left -= 1
        if self.left == 0:
            raise Stop

    def on_round(self, finished):
        self.on_progress(None)


def deep(name):
    def make(**more):
        cls = METHODS[name]
        accepted = cls().get_params(deep=False)
        values = {**SETTINGS, **SPECIAL.get(name, {}), "pretraining": Pretraining(n_epochs=2)}
        return cls(**{key: value for key, value in values.items() if key in accepted}, **more)

    return make


def rounds(**more):
    return small(random_state=0, **more).set_params(rounds__n_rounds=2, rounds__tol=-1.0)


def layerwise(**more):
    return small(random_state=0, **more).set_params(
        pretraining=Pretraining(n_epochs=2, layerwise_epochs=1, schedule="plateau"),
        network=Network(layers=(5, 4, 2), dropout=0.1),
        rounds=Rounds(n_rounds=1, n_init=2, n_steps=2),
    )


def counted(**more):
    return small(random_state=0, **more).set_params(n_clusters="2-4", rounds__n_rounds=0)


def resampled(**more):
    return ConsensusMatrix([2, 3], member=KMeans(n_init=1), n_resamples=5, random_state=0, **more)


FITS = {"rounds": rounds, "layerwise": layerwise, "count": counted, "resamples": resampled}
FITS |= {name: deep(name) for name in RESUMABLE}


@cache
def rows():
    return far_blobs().X[::3].astype(np.float64)


@cache
def wide_rows():
    return np.tile(rows(), (1, 4))  # 16 columns, an image of 4 x 4 for ConCURL


def data_of(name):
    return wide_rows() if name in RESUMABLE else rows()


def bits_of(model):
    parts = [model.labels_]
    if hasattr(model, "autoencoder_"):
        parts += [weight.numpy() for weight in model.autoencoder_.state_dict().values()]
    return parts


def same(one, other):
    return len(one) == len(other) and all(map(np.array_equal, one, other))


def fit(name, folder, after=None):
    """Fit with a checkpoint; the bits."""
    callbacks = [Stops(after)] if after else None
    return bits_of(FITS[name](checkpoint=folder, callbacks=callbacks).fit(data_of(name)))


def make_checkpoints(place):
    """Stopped fits in folders, and their bits without a stop."""
    straight = {}
    for name in FITS:
        with tempfile.TemporaryDirectory() as folder:
            straight[name] = fit(name, Path(folder) / "c")
        for after in (2, 4, 7, 11):
            folder = place / f"{name}-{after}"
            with suppress(Stop):
                fit(name, folder, after)
            states = [path for path in folder.glob("*.state.zip") if path.name != "fit.state.zip"]
            if not states:
                shutil.rmtree(folder, ignore_errors=True)
    return straight


def change(folder, rng):
    """Change a state of a checkpoint; what was done, and whether it was resealed."""
    states = sorted(folder.glob("*.state.zip"))
    path = states[int(rng.integers(len(states)))]
    way = str(
        rng.choice(["tree", "arrays", "bytes", "place", "head"], p=[0.45, 0.25, 0.1, 0.1, 0.1])
    )
    if way == "bytes":
        path.write_bytes(spoiled(path.read_bytes(), rng))
        return f"{path.name}: bytes", False
    if way == "place":
        return replace_state(path, states, rng), False
    document, arrays = container.read(path, checkpoints.FORMAT, checkpoints.FORMAT_VERSION)
    wrapped = {"learned": document["state"]}
    if way == "tree":
        done = change_tree(wrapped, [], rng)
        document["state"] = wrapped.get("learned")
    elif way == "arrays" and arrays:
        done = change_arrays(wrapped, arrays, rng)
    else:
        key = str(rng.choice(["name", "fit", "format_version", "format", "versions", "files"]))
        document[key] = rng.choice([0, 1, 3]) if key == "format_version" else "x"
        document[key] = int(document[key]) if key == "format_version" else document[key]
        done = key
    tensors = safetensors.numpy.save(
        {key: np.ascontiguousarray(part) for key, part in arrays.items()}
    )
    reseal = bool(rng.random() < 0.85)
    files = sealed(copy.deepcopy(document), tensors, reseal)
    path.write_bytes(zipped(files.text, files.name, files.tensors))
    return f"{path.name} {done}{'' if reseal else ', not resealed'}", reseal and way != "head"


def replace_state(path, states, rng):
    """Another state, or something else, in the place of a state."""
    way = str(rng.choice(["other", "missing", "empty", "fifo", "folder", "zero", "loop", "huge"]))
    other = states[int(rng.integers(len(states)))].read_bytes()
    path.unlink()
    if way == "other":
        path.write_bytes(other)
    elif way == "empty":
        path.touch()
    elif way == "fifo":
        os.mkfifo(path)
    elif way == "folder":
        path.mkdir()
    elif way == "huge":
        with path.open("wb") as file:
            file.truncate(2**40)
    elif way in ("zero", "loop"):
        path.symlink_to("/dev/zero" if way == "zero" else path.name)
    return f"{path.name}: {way}"


def one(place, straight, seed, number):
    """Change a checkpoint by the number and fit again; what was done, the outcome, what was wrong."""
    rng = np.random.default_rng([seed, number])
    sources = sorted(path.name for path in place.iterdir() if path.is_dir())
    source = sources[int(rng.integers(len(sources)))]
    name = source.rpartition("-")[0]
    folder = place.parent / f"try-{number}"
    shutil.copytree(place / source, folder)
    done, resealed = change(folder, rng)
    before = torch.get_rng_state()
    try:
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            bits = fit(name, folder)
        aside = any(issubclass(warning.category, CheckpointWarning) for warning in told)
        if same(bits, straight[name]):
            outcome, wrong = (NOTICED if aside else SAME), ""
        else:
            outcome, wrong = OTHER, "" if resealed else "other bits, and it was not resealed"
        if folder.exists() and any(not path.is_dir() for path in folder.iterdir()):
            wrong = f"left over: {sorted(os.listdir(folder))}"
    except DOCUMENTED as error:
        outcome = type(error).__name__
        wrong = "" if resealed else f"an error, and it was not resealed: {error}"
    except TooLong:
        outcome, wrong = "hung", f"hung for {MOST_SECONDS} s"
    except Exception:
        outcome, wrong = "exception", traceback.format_exc()[-1500:]
    torch.set_rng_state(before)
    shutil.rmtree(folder, ignore_errors=True)
    return f"{source} {done}", outcome, wrong


def fuzz(place, straight, seed, numbers):
    """Outcomes, problems, the longest time and the growth of memory over many checkpoints."""

    def hung(*_):
        raise TooLong

    signal.signal(signal.SIGALRM, hung)
    outcomes, problems, longest = Counter(), [], 0.0
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for count, number in enumerate(numbers):
        if count and count % 250 == 0:
            print(f"{count} tried, {len(problems)} problems, {dict(outcomes)}", file=sys.__stderr__)
        began = time.monotonic()
        signal.alarm(MOST_SECONDS)
        done, outcome, wrong = one(place, straight, seed, number)
        signal.alarm(0)
        longest = max(longest, time.monotonic() - began)
        outcomes[outcome] += 1
        if wrong:
            problems.append(f"{number} ({done}): {wrong}")
    growth = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    return {"outcomes": dict(outcomes), "problems": problems, "seconds": longest, "mb": growth}


def fuzz_in_fork(place, seed, numbers, names=None):
    """All of it in a process with a limit of memory, which leaves this one as it was."""
    file = place / "found.json"

    def task():
        check_often()
        for name in set(FITS) - set(names or FITS):
            del FITS[name]
        (place / "checkpoints").mkdir()
        straight = make_checkpoints(place / "checkpoints")
        used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + MOST_MEMORY,) * 2)
        found = fuzz(place / "checkpoints", straight, seed, numbers)
        file.write_text(json.dumps(found))

    with quick_and_often(), quick_counts():
        code, said = forked(task)
    assert code == 0, said
    return json.loads(file.read_text())


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--n", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", type=int)
    options = parser.parse_args()
    numbers = range(options.n) if options.only is None else [options.only]
    with tempfile.TemporaryDirectory() as folder:
        found = fuzz_in_fork(Path(folder), options.seed, list(numbers))
    for problem in found["problems"]:
        print(problem, flush=True)
    print(
        f"{len(numbers)} checkpoints, seed {options.seed}: {len(found['problems'])} problems; "
        f"{found['outcomes']}; longest {found['seconds']:.1f} s, memory grew by {found['mb']:.0f} MB"
    )
    return 1 if found["problems"] else 0


if __name__ == "__main__":
    sys.exit(main())
