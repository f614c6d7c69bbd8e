"""Fit every deep method once in one go, and once killed again and again: ``python -m tests.deep.killed_fits FOLDER``.

The fits run in processes forked from this one, which has imported everything: they start at once. Each has a
lifetime, counted in events: a step of training, a state that is on the disk but not yet in place, a state in place.
"""

import os
import random
import signal
import sys
import traceback
import warnings
from pathlib import Path

from sklearn.datasets import make_blobs

from deccs import Network, Pretraining
from deccs.deep import METHODS
from deccs.storage import checkpoints
from deccs.training import engine

N_CLUSTERS = 3
LIVES = (5, 16)  # events; a state is saved every four
MOST_TRIES = 50
SETTINGS = {
    "n_clusters": N_CLUSTERS,
    "network": Network(layers=(8, 2), dropout=0.1),
    "pretraining": Pretraining(n_epochs=3, batch_size=32),
    "n_steps": 14,
    "batch_size": 16,
    "tol": 0.0,
    "split_interval": 2,
    "n_partitions": 4,
    "siamese_steps": 6,
    "hidden": (8,),
    "device": "cpu",
    "random_state": 0,
}
SPECIAL = {"AGAE": {"layers": (8, 4)}}
RESUMABLE = [name for name, cls in METHODS.items() if "checkpoint" in cls().get_params(deep=False)]


def fitted(name, checkpoint=None):
    X, _ = make_blobs(80, 16, centers=N_CLUSTERS, cluster_std=2.0, random_state=0)
    cls = METHODS[name]
    accepted = cls().get_params(deep=False)
    values = SETTINGS | SPECIAL.get(name, {})
    settings = {key: value for key, value in values.items() if key in accepted}
    return cls(**settings, checkpoint=checkpoint).fit(X)


class Lifetime:
    """Kill this process, with no chance to clean up, after so many events."""

    def __init__(self, n_events):
        self.left = n_events

    def event(self):
        self.left -= 1
        if self.left == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    def counts(self, owner, name, *, before):
        """Let each call of a function be an event."""
        function = getattr(owner, name)

        def counted(*arguments, **options):
            if before:
                self.event()
            result = function(*arguments, **options)
            if not before:
                self.event()
            return result

        setattr(owner, name, counted)


def check_often():
    """Check, and save, every two steps of each training."""

    def train(*arguments, **options):
        return original(*arguments, **(options | {"check_every": 2}))

    original = engine.train
    for name, module in list(sys.modules.items()):
        if name.startswith("deccs.") and getattr(module, "train", None) is original:
            module.train = train
    checkpoints.LEAST_PAUSE = checkpoints.PAUSE_PER_COST = 0


def forked(task):
    """The status with which a forked process ends that does this task."""
    child = os.fork()
    if child == 0:
        try:
            task()
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def resumed(name, folder):
    """Fit, be killed, resume, ... until the fit is done; the number of kills."""
    rng = random.Random(name)

    def fit():
        life = Lifetime(n_events)
        life.counts(engine.Run, "one_step", before=True)
        life.counts(os, "replace", before=True)
        life.counts(checkpoints.FolderCheckpoint, "save", before=False)
        model = fitted(name, folder / f"{name}-checkpoint")
        life.left = 0  # survived
        model.save(folder / f"{name}-resumed.zip")

    for n_kills in range(MOST_TRIES):
        n_events = rng.randint(*LIVES)
        status = forked(fit)
        if status != -signal.SIGKILL:
            return n_kills if status == 0 else f"an error after {n_kills} kills"
    return f"not done after {MOST_TRIES} tries"


def main(folder):
    warnings.simplefilter("error", checkpoints.CheckpointWarning)  # no good state is set aside
    check_often()
    for name in RESUMABLE:
        try:
            fitted(name).save(folder / f"{name}-straight.zip")
            result = resumed(name, folder)
        except Exception:
            result = traceback.format_exc()
        (folder / f"{name}.txt").write_text(str(result))
        print(name, result, flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
