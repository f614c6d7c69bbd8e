"""Changed run folders, many of them: every command works or refuses them in one sentence.

    python -m tests.fuzz.run_folders --n 5000 --seed 0
    python -m tests.fuzz.run_folders --seed 0 --only 4711      # one of them again

A file of a run is changed (bytes, JSON, cells), resealed where it has checksums, removed, or replaced by
a pipe, a device, a link, a folder or a huge file. Then ``predict``, ``report``, ``rename``, ``compare`` and
``fit`` run.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from pathlib import Path

import numpy as np
from typer.testing import CliRunner

from deccs.app import cli, commands
from deccs.app.run_folder import COMPLETE, MOVING
from deccs.storage.locks import NAME as LOCK
from tests.fuzz.crash_points import SETTINGS, deccs, forked, quick_and_often
from tests.fuzz.mutations import STRANGE, a_place, change_tree, sealed, spoiled
from tests.helpers.command_line import write_table
from tests.helpers.small import far_blobs

MOST_SECONDS = 20
MOST_MEMORY = 2 * 2**30  # bytes above what the process has at first
FILES = {  # and how often they are changed
    "summary.json": 0.3,
    "labels.csv": 0.3,
    "model/model.json": 0.2,
    "clusters.txt": 0.05,
    "embedding.npy": 0.05,
    "rounds.jsonl": 0.1,
}
CELLS = [
    "",
    "-1",
    "-2",
    "99999999999",
    "1e5",
    "x",
    "0x1",
    "1.0",
    "\0",
    "'",
    '"',
    "=1+1",
    "a,b",
    "k0",
]
CELLS += ["\ud800", "\x1b[2J", "٣", "0" * 50, "a" * 200_000]


class TooLong(BaseException):
    """A command has hung."""


def make_runs(place):
    """The data and two finished runs of it."""
    data = write_table(place / "data.csv", far_blobs().X[::3])
    (place / "fit.toml").write_text(SETTINGS)
    for name, more in (
        ("deccs", ["--config", place / "fit.toml", "--set", "views=none"]),
        ("consensus", ["--method", "consensus", "--clusters", 3, "--id", "key"]),
    ):
        code, said = forked(lambda name=name, more=more: deccs(command(place, name, more)))
        assert code == 0, said
    return data


def command(place, name, more=()):
    return ["fit", place / "data.csv", *more, "--out", place / name]


def change(run, rng):
    """Change one or two things in a run folder; what was done, in words."""
    return "; ".join(change_one(run, rng) for _ in range(int(rng.geometric(0.8))))


def change_one(run, rng):
    name = str(rng.choice(list(FILES), p=list(FILES.values())))
    path = run / name
    if not path.is_file() or path.stat().st_size > 2**24 or rng.random() < 0.15:
        return replace_file(run, name, rng)
    if rng.random() < 0.2 or name == "clusters.txt":
        path.write_bytes(spoiled(path.read_bytes(), rng))
        return f"{name}: bytes"
    if name.endswith(".csv"):
        return change_cells(path, rng)
    if name == "embedding.npy":
        head = b"{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999, 2), }"
        path.write_bytes(b"\x93NUMPY\x01\x00" + len(head).to_bytes(2, "little") + head)
        return f"{name}: shape"
    if name == "rounds.jsonl":
        path.write_text(json.dumps(STRANGE[int(rng.integers(len(STRANGE)))]) + "\n")
        return f"{name}: a line"
    return change_json(path, rng)


def change_json(path, rng):
    """Another value somewhere; the checksum of a model is made right again, mostly."""
    try:
        document = json.loads(path.read_bytes())
    except ValueError:
        return "nothing"
    if path.name == "summary.json":
        part = rng.choice(["data", "agreement", "options", ""])
        holder, key, way = a_place(document, rng, stop=0.4)
        if part and part in document and rng.random() < 0.7:
            holder, key, way = a_place({part: document[part]}, rng, stop=0.3)
        if holder is None:
            return "nothing"
        holder[key] = STRANGE[int(rng.integers(len(STRANGE)))]
        if len(way.split("/")) == 1:
            document[key] = holder[key]
        text = json.dumps(document)
        path.write_text(text.encode("utf-8", "surrogatepass").decode("utf-8", "replace"))
        return f"summary.json {way}: {holder[key]!r:.40}"
    wrapped = {"learned": document.get("preprocessing")}
    if not isinstance(wrapped["learned"], dict):
        return "nothing"
    done = change_tree(wrapped, [], rng)
    document["preprocessing"] = wrapped.get("learned")
    tensors = next(iter(path.parent.glob("tensors-*")), None)
    if tensors is None:
        return "nothing"
    files = sealed(document, tensors.read_bytes(), reseal=bool(rng.random() < 0.9))
    path.write_bytes(files.text)
    return f"preprocessing {done}"


def change_cells(path, rng):
    """Other cells, missing or doubled lines, lines of other lengths."""
    rows = [line.split(",") for line in path.read_text(errors="replace").splitlines()]
    if not rows:
        return "nothing"
    place, way = int(rng.integers(len(rows))), int(rng.integers(5))
    place = 0 if rng.random() < 0.2 else place
    row, cell = rows[place], str(rng.choice(CELLS))
    if way <= 1 and row:
        row[int(rng.integers(len(row)))] = cell
    elif way == 2:
        rows[place] = row[: int(rng.integers(len(row) + 1))]
    elif way == 3:
        rows.insert(place, list(row))
    else:
        row.append(cell)
    text = "\n".join(",".join(row) for row in rows) + "\n"
    path.write_bytes(text.encode("utf-8", "surrogatepass"))
    return f"labels.csv line {place + 1}: {('cell', 'cell', 'cut', 'doubled', 'longer')[way]} {cell!r:.20}"


def replace_file(run, name, rng):
    """Something else in the place of a file, or of a name that commands look for."""
    name = str(
        rng.choice([name, name, "model", "report.html", "checkpoint", LOCK, COMPLETE, MOVING])
    )
    path = run / name
    inside = os.path.realpath(path.parent).startswith(os.path.realpath(run))
    if not inside or not path.parent.is_dir():  # behind a link or a file of ours
        return "nothing"
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    path.unlink(missing_ok=True)
    ways = ["missing", "empty", "fifo", "folder", "zero", "loop", "tty", "huge", "outside"]
    way = str(rng.choice(ways))
    links = {"zero": "/dev/zero", "loop": path.name, "tty": "/dev/stdin", "outside": ".."}
    if way == "empty":
        path.touch()
    elif way == "fifo":
        os.mkfifo(path)
    elif way == "folder":
        path.mkdir()
    elif way == "huge":
        with path.open("wb") as file:
            file.truncate(2**40)
    elif way in links:
        path.symlink_to(links[way])
    return f"{name}: {way}"


def commands_for(run, place, kind):
    """What is tried with a changed run."""
    more = ["--method", "consensus", "--clusters", "3", "--id", "key"]
    if kind == "deccs":
        more = ["--config", place / "fit.toml", "--set", "views=none"]
    return [
        ["predict", run, run.parent / "data.csv"],
        ["report", run, "--out", run.parent / "again.html"],
        ["rename", run, "0", "another name"],
        ["compare", run, place / kind, "--json"],
        ["fit", run.parent / "data.csv", *more, "--out", run],
    ]


def tried(words):
    """(exit code, what was wrong or "") of a command."""

    def hung(*_):
        raise TooLong

    signal.signal(signal.SIGALRM, hung)
    signal.alarm(MOST_SECONDS)
    try:
        result = CliRunner().invoke(cli.app, [str(word) for word in words])
    finally:
        signal.alarm(0)
    error = result.exception
    if error is not None and not isinstance(error, SystemExit):
        return None, "".join(traceback.format_exception(error))[-1500:]
    if result.exit_code not in (0, 1, 2) or "Traceback" in result.output:
        return result.exit_code, result.output[-500:]
    if result.exit_code and "deccs: " not in result.stderr:
        return result.exit_code, f"no message: {result.output[-500:]}"
    if "MemoryError" in result.stderr or "\033" in result.stderr:
        return result.exit_code, result.stderr[-500:]
    return result.exit_code, ""


def one(place, seed, number):
    """Change a run by its number, and try all commands; what was done, exit codes, what was wrong."""
    rng = np.random.default_rng([seed, number])
    kind = str(rng.choice(["deccs", "consensus"]))
    folder = place / f"try-{number}"
    shutil.copytree(place / kind, folder / "run")
    shutil.copy(place / "data.csv", folder)
    done, codes, wrong = change(folder / "run", rng), [], []
    for words in commands_for(folder / "run", place, kind):
        try:
            code, problem = tried(words)
        except TooLong:
            code, problem = None, f"hung for {MOST_SECONDS} s"
        codes.append((words[0], code))
        if problem:
            wrong.append(f"{words[0]}: {problem}")
    if not {"data.csv"} <= set(os.listdir(folder)) <= {"run", "again.html", "data.csv"}:
        wrong.append(f"written outside: {sorted(os.listdir(folder))}")
    shutil.rmtree(folder)
    return done, codes, wrong


def fuzz(place, seed, numbers):
    """Exit codes, the problems, the longest time and the growth of memory over many runs."""
    codes, problems, longest = Counter(), [], 0.0
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for count, number in enumerate(numbers):
        if count and count % 250 == 0:
            print(f"{count} tried, {len(problems)} problems", file=sys.__stderr__)
        began = time.monotonic()
        done, ended, wrong = one(place, seed, number)
        longest = max(longest, time.monotonic() - began)
        codes.update(f"{name} {code}" for name, code in ended)
        problems += [f"{number} ({done}): {text}" for text in wrong]
    growth = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    return {"codes": dict(codes), "problems": problems, "seconds": longest, "mb": growth}


def fuzz_in_fork(place, seed, numbers):
    """The same in a process with a limit of memory, which leaves this one as it was."""
    file = place / "found.json"

    def task():
        used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + MOST_MEMORY,) * 2)
        deccs(["predict", place / "deccs", place / "data.csv", "--out", place / "warm.csv"])
        file.write_text(json.dumps(fuzz(place, seed, numbers)))

    code, said = forked(task)
    assert code == 0, said
    return json.loads(file.read_text())


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--n", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", type=int)
    options = parser.parse_args()
    assert commands
    numbers = range(options.n) if options.only is None else [options.only]
    with quick_and_often(), tempfile.TemporaryDirectory() as folder:
        make_runs(Path(folder))
        found = fuzz_in_fork(Path(folder), options.seed, numbers)
    for problem in found["problems"]:
        print(problem, flush=True)
    print(
        f"{len(numbers)} run folders, seed {options.seed}: {len(found['problems'])} problems; "
        f"{dict(sorted(found['codes'].items()))}; longest {found['seconds']:.1f} s for five commands, "
        f"memory grew by {found['mb']:.0f} MB"
    )
    return 1 if found["problems"] else 0


if __name__ == "__main__":
    sys.exit(main())
