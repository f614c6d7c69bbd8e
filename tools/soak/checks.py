"""What a command and a folder may look like afterwards; anything else is wrong."""

import hashlib
import json
import signal

from tools.soak.running import Wrong

RESULTS = ("labels.csv", "embedding.npy", "model", "summary.json")
UNFINISHED = {"checkpoint", "rounds.jsonl"}  # what an interrupted fit may keep
# What differs from run to run: times, what depends on them, and the data as seen from the run folder.
MEASURED = ("seconds", "seconds_", "peak_memory_mb", "checksum", "file")
BY_SIGNAL = (signal.SIGKILL, signal.SIGTERM)


def check_documented(ended):
    """The exit code is a documented one, with a message in place of a traceback."""
    if ended.sent in BY_SIGNAL and ended.code == -ended.sent:
        return
    if ended.sent == signal.SIGINT and not ended.begun and ended.code in (-2, 130):
        return
    if "Traceback (most recent call last)" in ended.stderr:
        raise Wrong(f"traceback: {ended.stderr.strip().splitlines()[-1]}")
    if ended.code not in (0, 1, 2, 130):
        raise Wrong(f"exit code {ended.code}: {ended.stderr[-300:]}")
    if ended.code and not any(line.startswith("deccs: ") for line in ended.stderr.splitlines()):
        raise Wrong(f"exit code {ended.code} without a message: {ended.stderr[-300:]}")
    if ended.code == 130 and ended.sent != signal.SIGINT:
        raise Wrong("exit code 130, but nobody interrupted it")


def check_succeeded(ended):
    check_documented(ended)
    if ended.code:
        raise Wrong(f"exit code {ended.code}, 0 expected: {ended.message}")


def check_refused(ended, *codes):
    check_documented(ended)
    if ended.code not in codes:
        raise Wrong(f"exit code {ended.code}, expected one of {codes}: {ended.message}")


def bits_of(run):
    """name -> hash of each result of a run folder; what is measured does not count."""
    files = [run / name for name in RESULTS if (run / name).is_file()]
    files += sorted((run / "model").iterdir()) if (run / "model").is_dir() else []
    return {path.relative_to(run).as_posix(): hash_of(path) for path in files}


def hash_of(path):
    content = path.read_bytes()
    if path.suffix == ".json":
        content = json.dumps(without_measured(json.loads(content)), sort_keys=True).encode()
    return hashlib.sha256(content).hexdigest()[:16]


def without_measured(value):
    """A JSON value without times and memory.

    >>> without_measured({"a": [{"seconds": 3, "b": 1}]})
    {'a': [{'b': 1}]}
    """
    if isinstance(value, dict):
        return {
            name: without_measured(part) for name, part in value.items() if name not in MEASURED
        }
    return [without_measured(part) for part in value] if isinstance(value, list) else value


def which_run(run, references):
    """The name of the reference that the folder holds; None without a summary: not finished."""
    if not (run / "summary.json").exists():
        return None
    bits = bits_of(run)
    for name, reference in references.items():
        if bits == reference.bits:
            return name
    differing = {
        name: sorted(
            file for file in bits | reference.bits if bits.get(file) != reference.bits.get(file)
        )
        for name, reference in references.items()
    }
    raise Wrong(f"other bits than each of the references; what differs: {differing}")


def check_names(run, names):
    """The folder holds these names and no other."""
    present = {path.name for path in run.iterdir()}
    if present != set(names):
        missing, extra = sorted(set(names) - present), sorted(present - set(names))
        raise Wrong(f"in the folder of the run: missing {missing}, left over {extra}")


def check_no_drafts(run):
    """No temporary file is left; a process that ended by itself removes its own."""
    if run.is_dir():
        drafts = [
            path.name for path in run.rglob(".*") if path.name.startswith((".deccs-", ".part-"))
        ]
        drafts = [name for name in drafts if not name.endswith(".lock")]
        if drafts:
            raise Wrong(f"left over: {drafts}")
