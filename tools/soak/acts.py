"""The acts of the soak test. Each draws what it does from its own random numbers.

An act raises ``Wrong`` for anything that must not happen, and returns what did, in a word.
"""

import json
import shutil
import signal
import time
from dataclasses import replace
from pathlib import Path

from tools.soak.checks import (
    UNFINISHED,
    check_names,
    check_no_drafts,
    check_refused,
    check_succeeded,
    which_run,
)
from tools.soak.disks import Skipped, small_disk
from tools.soak.running import Kill, Wrong

ACTS = {}  # kind -> (weight, function)
SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT)
NOTES = "notes.txt"  # a file of the user's in the folder of a run; no command may touch it


def act(weight):
    """Register a function as an act that is drawn with this weight."""

    def register(function):
        ACTS[function.__name__] = (weight, function)
        return function

    return register


def draw_kind(rng):
    weights = [weight for weight, _ in ACTS.values()]
    return rng.choices(list(ACTS), weights)[0]


@act(3)
def fit(scene):
    """A fit that nothing disturbs gives the bits of its reference."""
    chosen, _ = scene.fit()
    more = scene.rng.choice([(), ("--json",), ("--overwrite",)])
    ended = scene.command(*chosen.words(scene.stage.file(chosen), scene.run, *more))
    check_succeeded(ended)
    if more == ("--json",) and json.loads(ended.stdout)["status"] != "ok":
        raise Wrong(f"--json printed {ended.stdout[:200]}")
    scene.check_finished(chosen)
    return "same bits"


@act(6)
def killed_fit(scene):
    """A fit is killed, once or more, and then run again: it ends with the bits of its reference."""
    chosen, reference = scene.fit()
    old = scene.old_run(chosen, scene.run) if scene.rng.random() < 0.4 else None
    extra = own_notes(scene) if scene.rng.random() < 0.5 else ()
    words = chosen.words(scene.stage.file(chosen), scene.run, *(["--overwrite"] if old else []))
    known = {str(each): scene.stage.reference(each) for each in (chosen, old) if each}
    holds = str(old) if old else None
    for _ in range(scene.rng.randint(1, 3)):
        scene.command(*words, kill=draw_kill(scene.rng, reference), below=scene.run)
        holds = which_run(scene.run, known) if scene.run.exists() else None
        if holds == str(chosen):
            break
    ended = scene.command(*words)
    refused = ended.code == 2 and holds == str(chosen) and not old
    if not refused:  # the killed fit had not finished
        check_succeeded(ended)
    elif not (scene.run / "report.html").exists():  # killed between the results and the report
        check_succeeded(scene.command("report", scene.run))
    check_notes(scene, extra)
    if refused:
        which_run(scene.run, {str(chosen): reference})
        check_no_drafts(scene.run)
        return "had finished"
    scene.check_finished(chosen, extra)
    return "went on, same bits"


def draw_kill(rng, reference):
    sent = rng.choice(SIGNALS)
    if rng.random() < 0.6:
        return Kill(sent, call=rng.randint(1, reference.n_calls + 5))
    begun = rng.random() < 0.8
    return Kill(sent, seconds=rng.uniform(0.01, 1.1 * reference.seconds + 0.1), begun=begun)


def own_notes(scene):
    scene.run.mkdir(exist_ok=True)
    (scene.run / NOTES).write_text("mine")
    return {NOTES}


def check_notes(scene, extra):
    if extra and (scene.run / NOTES).read_text() != "mine":
        raise Wrong("a file of the user's was changed")


@act(4)
def predict(scene):
    """New rows get the labels that the reference's model gave them."""
    chosen, reference = scene.fit()
    labels = scene.place / "labels.csv"
    words = ["predict", reference.run, scene.stage.file(chosen, new=True)]
    if scene.rng.random() < 0.5:
        ended = scene.command(*words)
        text = ended.stdout
    else:
        ended = scene.command(*words, "--out", labels)
        text = labels.read_text() if ended.code == 0 else ""
    check_succeeded(ended)
    if text != reference.predicted:
        raise Wrong("other labels than at first")
    return "same labels"


@act(2)
def report(scene):
    """A report that is written again is the same."""
    _, reference = scene.fit()
    page = scene.place / "again.html"
    check_succeeded(scene.command("report", reference.run, "--out", page))
    if page.read_bytes() != (reference.run / "report.html").read_bytes():
        raise Wrong("another report than the fit's own")
    return "same page"


@act(1)
def compare(scene):
    """Two runs are compared; a run agrees with itself."""
    (_, one), (_, two) = scene.fit(), scene.fit()
    ended = scene.command("compare", one.run, two.run, "--json")
    if ended.code == 2:  # rows with and without ids have no names in common
        return "not comparable"
    check_succeeded(ended)
    nmi = json.loads(ended.stdout)["pairs"][0]["nmi"]
    if not 0 <= nmi <= 1 or (one.run == two.run and nmi < 1):
        raise Wrong(f"NMI {nmi}")
    return "compared"


@act(8)
def python(scene):
    """Fits, files and errors in the one Python process."""
    answer = scene.stage.ask_worker(scene.rng.randrange(10**9), scene.place / "python")
    scene.megabytes = answer["megabytes"]
    scene.what.append(answer.get("what", ""))
    if "wrong" in answer:
        raise Wrong(f"{answer['wrong']}\n{answer['traceback']}")
    if "error" in answer:
        scene.what.append(answer["error"][:150])
        return "documented error"
    if scene.stage.digests.setdefault(answer["key"], answer["digest"]) != answer["digest"]:
        raise Wrong(f"other labels than at first: {answer['key']}")
    return "same labels"


@act(4)
def full_disk(scene):
    """The disk is full; once there is room, the same command finishes."""
    chosen, _ = scene.fit()
    kilobytes = scene.rng.choice([16, 40, 64, 100, 160, 250, 400, 640])
    old = None
    try:
        with small_disk(scene.place / "disk", 20_000) as disk:
            run, filler = disk.folder / "run", disk.folder / "filler"
            if scene.rng.random() < 0.3:
                old = scene.old_run(chosen, run)
            shrink(disk, filler, kilobytes)
            scene.what.append(f"{kilobytes} kB free")
            return fit_after_fault(scene, chosen, old, run, filler.unlink)
    except Skipped as skipped:
        scene.what.append(str(skipped))
        return fit_after_fault(
            scene, chosen, None, scene.run, lambda: None, {"file_size": kilobytes * 1024}
        )


def shrink(disk, filler, kilobytes):
    """Fill the disk but for some kilobytes."""
    free = shutil.disk_usage(disk.folder).free
    filler.write_bytes(bytes(free - kilobytes * 1024))


def fit_after_fault(scene, chosen, old, run, repair, fault=None):
    """Fit with a fault, then without: old, nothing or all at first, all in the end."""
    words = chosen.words(scene.stage.file(chosen), run, *(["--overwrite"] if old else []))
    known = {str(each): scene.stage.reference(each) for each in (chosen, old) if each}
    ended = scene.command(*words, fault=fault)
    holds = which_run(run, known) if run.is_dir() else None
    failed, by_library = ended.code != 0, ended.by_library
    if failed and holds != (str(old) if old else None) and holds != str(chosen):
        raise Wrong(f"after {ended.message!r} the folder holds {holds}, not {old}")
    if failed and not holds and not ended.by_library:
        check_left_by_error(run)
    repair()
    if holds != str(chosen):
        ended = scene.command(*words)
        check_succeeded(ended)
    elif not (run / "report.html").exists():
        check_succeeded(scene.command("report", run))
    if which_run(run, {str(chosen): scene.stage.reference(chosen)}) is None:
        raise Wrong("exit code 0, but no summary.json")
    check_names(run, scene.stage.reference(chosen).names)
    how = "ended by a library" if by_library else "failed"
    return f"{how}, then same bits" if failed else "same bits"


def check_left_by_error(run):
    check_no_drafts(run)
    if run.is_dir():
        present = {path.name for path in run.iterdir()}
        if present - UNFINISHED:
            raise Wrong(f"an unfinished fit left {sorted(present)}")


@act(3)
def little_memory(scene):
    """Memory runs out even for small things; with enough of it, the same command finishes."""
    chosen, reference = scene.fit()
    kilobytes = scene.rng.choice([0, 64, 256, 600, 1200, 2500, 5000, 10_000, 20_000])
    scene.what.append(f"{kilobytes} kB more than the libraries")
    fault = {"memory": kilobytes * 1024}
    if scene.rng.random() < 0.7:
        return fit_after_fault(scene, chosen, None, scene.run, lambda: None, fault)
    words = ["predict", reference.run, scene.stage.file(chosen, new=True)]
    ended = scene.command(*words, fault=fault)
    if ended.code == 0 and ended.stdout != reference.predicted:
        raise Wrong("other labels than at first")
    return "failed" if ended.code else "same labels"


@act(3)
def large_table(scene):
    """A table is larger than the memory: an error in words, whatever notices it."""
    chosen, reference = scene.fit()
    megabytes = scene.rng.choice([10, 20, 30, 40, 60])
    scene.what.append(f"{megabytes} MB more than the libraries")
    data, fault = scene.stage.large_file(), {"memory": megabytes * 2**20, "strict": True}
    if chosen.format in ("npy", "npz") and scene.rng.random() < 0.5:
        ended = scene.command("predict", reference.run, data, fault=fault)
    else:
        words = replace(chosen, format="npy").words(data, scene.run)
        ended = scene.command(*words, fault=fault)
        if ended.code:
            check_left_by_error(scene.run)
    check_refused(ended, 0, 1, 2)
    return "failed" if ended.code else "enough"


@act(3)
def read_only(scene):
    """A read-only disk can be read, and is refused as a place for results."""
    chosen, reference = scene.fit()
    with small_disk(scene.place / "disk", 50_000) as disk:
        run = disk.folder / "run"
        shutil.copytree(reference.run, run)
        disk.read_only(True)
        new, data = scene.stage.file(chosen, new=True), scene.stage.file(chosen)
        ended = scene.command("predict", run, new)
        check_succeeded(ended)
        if ended.stdout != reference.predicted:
            raise Wrong("other labels than at first")
        writing = {
            "fit": chosen.words(data, disk.folder / "other"),
            "fit over": chosen.words(data, run, "--overwrite"),
            "predict": ["predict", run, new, "--out", disk.folder / "labels.csv"],
            "report": ["report", run],
        }
        name = scene.rng.choice(list(writing))
        scene.what.append(name)
        check_refused(scene.command(*writing[name]), 1, 2)
        disk.read_only(False)
        if which_run(run, {str(chosen): reference}) is None:
            raise Wrong("the run was lost")
        check_names(disk.folder, {"run"})
        check_succeeded(scene.command(*writing[name]))
    return "refused, then done"


@act(3)
def wrong_place(scene):
    """Files in the place of folders, folders in the place of files, and what does not exist."""
    chosen, reference = scene.fit()
    data, new, place = scene.stage.file(chosen), scene.stage.file(chosen, new=True), scene.place
    (place / "file").write_text("mine")
    (place / "folder").mkdir()
    (place / "folder" / NOTES).write_text("mine")
    taken = scene.run / scene.rng.choice(["checkpoint", "rounds.jsonl", "model", "labels.csv"])
    commands = {
        "fit into a file": chosen.words(data, place / "file"),
        "fit below a file": chosen.words(data, place / "file" / "run"),
        "fit a missing file": chosen.words(place / f"missing.{chosen.format}", scene.run),
        "fit a folder": chosen.words(place / "folder", scene.run),
        "predict with no run": ["predict", place / "folder", new],
        "predict with a missing run": ["predict", place / "missing", new],
        "predict a missing file": ["predict", reference.run, place / "missing.csv"],
        "predict into a folder": ["predict", reference.run, new, "--out", place / "folder"],
        "predict into a missing folder": [
            "predict",
            reference.run,
            new,
            "--out",
            place / "no" / "x",
        ],
        "predict over a file": ["predict", reference.run, new, "--out", place / "file"],
        "report into a folder": ["report", reference.run, "--out", place / "folder"],
        "report of no run": ["report", place / "folder"],
        "compare with no run": ["compare", reference.run, place / "folder"],
        "fit where a name is taken": chosen.words(data, scene.run),
    }
    name = scene.rng.choice(list(commands))
    scene.what.append(name)
    if name == "fit where a name is taken":
        scene.what.append(taken.name)
        make_taken(taken, folder=taken.name in ("rounds.jsonl", "labels.csv"))
    ended = scene.command(*commands[name])
    if ended.code == 0 and name == "fit where a name is taken":
        which_run(scene.run, {str(chosen): reference})
    else:
        check_refused(ended, 1, 2)
    check_no_drafts(place)
    kept = (place / "file").read_text(), (place / "folder" / NOTES).read_text()
    if kept != ("mine", "mine") or sorted(p.name for p in (place / "folder").iterdir()) != [NOTES]:
        raise Wrong("a file of the user's was changed")
    return "refused" if ended.code else "same bits"


def make_taken(path, *, folder):
    path.parent.mkdir()
    if folder:
        path.mkdir()
        (path / NOTES).write_text("mine")
    else:
        path.write_text("mine")


@act(3)
def two_at_once(scene):
    """Two fits into one folder: one is refused, and the folder holds the result of the other."""
    one, _ = scene.fit()
    two, _ = scene.fit()
    while two == one:
        two, _ = scene.fit()
    overwrite = ["--overwrite"] if scene.rng.random() < 0.4 else []
    pause = scene.rng.choice([0.0, scene.rng.uniform(0, 4)])
    scene.what.append(f"{pause:.2f} s apart {' '.join(overwrite)}")
    first = scene.start(*one.words(scene.stage.file(one), scene.run, *overwrite))
    time.sleep(pause)
    second = scene.start(*two.words(scene.stage.file(two), scene.run, *overwrite))
    ends = {one: scene.end(first), two: scene.end(second)}
    finished = [each for each, ended in ends.items() if ended.code == 0]
    for ended in ends.values():
        check_refused(ended, 0, 2)
    if not finished:
        raise Wrong(f"both were refused: {[ended.message for ended in ends.values()]}")
    if len(finished) == 2 and not overwrite:
        raise Wrong("both finished, and one replaced the other's results")
    known = {str(each): scene.stage.reference(each) for each in finished}
    holds = which_run(scene.run, known)
    if holds is None:
        raise Wrong("neither result is there")
    check_names(scene.run, known[holds].names)
    return "one refused" if len(finished) == 1 else "one after the other"


@act(4)
def damage(scene):
    """A byte of a model, a checkpoint, a summary or the data is changed."""
    chosen, reference = scene.fit()
    kind = scene.rng.choice(["model", "checkpoint", "checkpoint", "results", "data"])
    return {
        "model": damaged_model,
        "checkpoint": damaged_checkpoint,
        "results": damaged_results,
        "data": damaged_data,
    }[kind](scene, chosen, reference)


def flip_byte(scene, path):
    content = bytearray(path.read_bytes())
    place, bit = scene.rng.randrange(len(content)), scene.rng.randrange(8)
    content[place] ^= 1 << bit
    path.write_bytes(content)
    scene.what.append(f"bit {bit} of byte {place} of {path.name}")


def damaged_model(scene, chosen, reference):
    """Damage of a model is always found."""
    shutil.copytree(reference.run, scene.run)
    flip_byte(scene, scene.rng.choice(sorted((scene.run / "model").iterdir())))
    name = scene.rng.choice(["predict", "report"])
    new = [scene.stage.file(chosen, new=True)] if name == "predict" else []
    check_refused(scene.command(name, scene.run, *new), 2)
    return "damage found"


def damaged_results(scene, chosen, reference):
    """Damage of a summary or of labels: found, or the command works."""
    shutil.copytree(reference.run, scene.run)
    names = ["summary.json", "labels.csv", *(["rounds.jsonl"] if chosen.method == "deccs" else [])]
    flip_byte(scene, scene.run / scene.rng.choice(names))
    words = scene.rng.choice([["report", scene.run], ["compare", scene.run, reference.run]])
    scene.what.append(words[0])
    ended = scene.command(*words)
    check_refused(ended, 0, 2)
    again = chosen.words(scene.stage.file(chosen), scene.run, "--overwrite")
    check_succeeded(scene.command(*again))
    scene.check_finished(chosen)
    return "replaced"


def damaged_checkpoint(scene, chosen, reference):
    """A fit goes on from damaged states: a warning at most, and the same bits."""
    words = chosen.words(scene.stage.file(chosen), scene.run)
    call = scene.rng.randint(max(1, reference.n_calls // 3), reference.n_calls)
    scene.command(*words, kill=Kill(signal.SIGKILL, call=call), below=scene.run)
    states = sorted((scene.run / "checkpoint").glob("*.state.zip"))
    if not states:
        return "no states to damage"
    flip_byte(scene, scene.rng.choice(states))
    ended = scene.command(*words)
    if ended.code == 2 and which_run(scene.run, {str(chosen): reference}):
        return "had finished"
    check_succeeded(ended)
    scene.check_finished(chosen)
    return "went on, same bits"


def damaged_data(scene, chosen, reference):
    """Other data than a checkpoint's or a run's is refused; nothing else happens to the run."""
    shutil.copytree(reference.run, scene.run)
    data = Path(shutil.copy(scene.stage.file(chosen), scene.place))
    flip_byte(scene, data)
    name = scene.rng.choice(["predict", "report", "fit"])
    scene.what.append(name)
    if name == "fit":
        check_refused(scene.command(*chosen.words(data, scene.place / "other")), 0, 2)
    elif name == "predict":
        check_refused(scene.command("predict", scene.run, data), 0, 2)
    else:
        check_refused(scene.command("report", scene.run, "--data", data), 0, 2)
    if which_run(scene.run, {str(chosen): reference}) is None:
        raise Wrong("the run was lost")
    return "run unharmed"
