"""One Python process that fits, saves, loads and predicts for as long as the soak test runs.

It reads requests from stdin, a JSON object per line, and answers each with a line. Its memory is to
stay flat.
"""

import gc
import hashlib
import json
import random
import resource
import shutil
import sys
import traceback
from contextlib import suppress
from pathlib import Path

import numpy as np
from tools.soak.fits import N_CLUSTERS, SEEDS, TABLES, quick_settings, rows

import deccs
from deccs import storage
from deccs.app.methods import methods
from deccs.storage import CheckpointError, ModelFileError

DOCUMENTED = (ValueError, OSError, MemoryError)


def main():
    answers, sys.stdout = sys.stdout, sys.stderr  # nothing a fit prints can spoil an answer
    for line in sys.stdin:
        request = json.loads(line)
        try:
            answer = act(random.Random(request["seed"]), Path(request["folder"]))
        except Exception as error:  # noqa: BLE001 (anything else is wrong, and told)
            text = "".join(traceback.format_exception(error))
            answer = {"wrong": f"{type(error).__name__}: {error}", "traceback": text[-1500:]}
        shutil.rmtree(request["folder"], ignore_errors=True)
        gc.collect()
        print(json.dumps({**answer, "megabytes": memory()}), file=answers, flush=True)


def memory():
    """Megabytes of this process in memory."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 2**20


def act(rng, folder):
    """One of the acts of this process, on a method, a table and a seed."""
    folder.mkdir(parents=True, exist_ok=True)
    method, table, seed = rng.choice(list(methods())), rng.choice(TABLES), rng.choice(SEEDS)
    kinds = [fit_and_save, fit_and_save, stop_and_resume, another_fit, damaged_file, bad_input]
    chosen = rng.choice(kinds)
    answer = chosen(rng, folder, method, table, seed)
    return {"what": f"{chosen.__name__} {method}", "key": f"{method} {table} {seed}", **answer}


def estimator(method, seed, **more):
    model = methods()[method](N_CLUSTERS, random_state=seed, **more)
    settings = {name.replace(".", "__"): value for name, value in quick_settings(method).items()}
    return model.set_params(**settings)


def digest(*arrays):
    return hashlib.sha256(b"".join(np.ascontiguousarray(a).tobytes() for a in arrays)).hexdigest()[
        :16
    ]


def fitted(method, table, seed, **more):
    return estimator(method, seed, **more).fit(rows(table))


def digest_of(model, table):
    return digest(model.labels_, model.predict(rows(table, new=True)))


def fit_and_save(rng, folder, method, table, seed):
    """Fit, save as folder or zip, load, and predict the same."""
    model = fitted(method, table, seed)
    path = folder / rng.choice(["model", "model.zip"])
    model.save(path)
    again = type(model).load(path)
    assert np.array_equal(again.predict(rows(table)), model.labels_), "loaded, it labels otherwise"
    return {"digest": digest_of(again, table)}


class Stop(Exception):
    """Ends a fit from a callback."""


class StopAt(deccs.Callback):
    """Raises at the n-th event."""

    def __init__(self, number):
        self.left = number

    def on_progress(self, progress):
        self.left -= 1
        if not self.left:
            raise Stop

    on_round = on_progress


def stop_and_resume(rng, folder, method, table, seed):
    """Stopped by an error in a callback, a fit goes on from its checkpoint to the same bits."""
    if "checkpoint" not in estimator(method, seed).get_params(deep=False):
        return {"digest": digest_of(fitted(method, table, seed), table)}
    options = {"checkpoint": folder / "state"}
    with suppress(Stop):
        fitted(method, table, seed, callbacks=[StopAt(rng.randint(1, 6))], **options)
    return {"digest": digest_of(fitted(method, table, seed, **options), table)}


def damaged_file(rng, folder, method, table, seed):
    """A byte of a model file is changed: a ModelFileError, and nothing else."""
    model = fitted(method, table, seed)
    model.save(folder / "model")
    path = rng.choice(sorted((folder / "model").iterdir()))
    flip_byte(path, rng)
    try:
        storage.load(folder / "model")
    except ModelFileError as error:
        return {"error": f"ModelFileError: {error}"}
    raise AssertionError(f"a changed byte in {path.name} was not noticed")


def flip_byte(path, rng):
    """Change one byte of a file."""
    content = bytearray(path.read_bytes())
    content[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
    path.write_bytes(content)


def bad_input(rng, folder, method, table, seed):
    """Calls that cannot work raise a documented error."""
    X = rows(table)
    calls = {
        "a value is missing": lambda: estimator(method, seed).fit(np.where(X > 3, np.nan, X)),
        "infinite values": lambda: estimator(method, seed).fit(np.where(X > 3, np.inf, X)),
        "more clusters than rows": lambda: (
            estimator(method, seed).set_params(n_clusters=500).fit(X)
        ),
        "no rows": lambda: estimator(method, seed).fit(X[:0]),
        "text": lambda: estimator(method, seed).fit(X.astype(str).astype(object) + "x"),
        "no file": lambda: storage.load(folder / "missing"),
        "a folder in the place of a file": lambda: fitted(method, table, seed).save(folder),
    }
    name = rng.choice(list(calls))
    try:
        calls[name]()
    except DOCUMENTED as error:
        return {"error": f"{type(error).__name__} ({name}): {error}"}
    raise AssertionError(f"{name}: no error")


def another_fit(rng, folder, method, table, seed):
    """A fit that finds the states of another seed is refused, or gives its own bits."""
    options = {"checkpoint": folder / "state"}
    if "checkpoint" not in estimator(method, seed).get_params(deep=False):
        options = {}
    other = next(number for number in SEEDS if number != seed)
    with suppress(Stop):
        fitted(method, table, other, callbacks=[StopAt(rng.randint(1, 6))], **options)
    try:
        return {"digest": digest_of(fitted(method, table, seed, **options), table)}
    except CheckpointError as error:
        return {"error": f"CheckpointError: {error}"}


if __name__ == "__main__":
    main()
