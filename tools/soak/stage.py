"""What the acts of the soak test share: tables, reference runs, the Python process, commands."""

import json
import random
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from tools.soak.checks import (
    bits_of,
    check_documented,
    check_names,
    check_no_drafts,
    check_succeeded,
    which_run,
)
from tools.soak.fits import FORMATS, TABLES, Reference, draw_fit, rows, write_table
from tools.soak.running import ROOT, Command, Wrong, environment


@dataclass
class Stage:
    """What all acts share: tables, reference runs, the Python process."""

    root: Path
    references: dict = field(default_factory=dict)
    digests: dict = field(default_factory=dict)  # of the fits of the Python process
    worker: object = None

    def __post_init__(self):
        self.data = self.root / "data"
        self.data.mkdir(parents=True)
        for table in TABLES:
            for ending in FORMATS:
                write_table(self.data / f"{table}.{ending}", rows(table))
                write_table(self.data / f"{table}-new.{ending}", rows(table, new=True))

    def file(self, fit, *, new=False):
        return self.data / f"{fit.table}{'-new' if new else ''}.{fit.format}"

    def large_file(self):
        """A table of 32 MB, made when it is first needed."""
        path = self.data / "large.npy"
        if not path.exists():
            write_table(path, np.tile(rows(0), (2900, 1)))
        return path

    def reference(self, fit):
        """The run of a fit that nothing disturbs, made when it is first needed."""
        if fit not in self.references:
            self.references[fit] = self._run_undisturbed(fit)
        return self.references[fit]

    def _run_undisturbed(self, fit):
        place = self.root / "references" / str(fit)
        run, count = place / "run", place / "count"
        command = Command(
            fit.words(self.file(fit), run), place, fault={"count": str(count)}, below=run
        )
        ended = command.wait()
        check_succeeded(ended)
        seconds = time.time() - command.ready.stat().st_mtime
        check_no_drafts(run)
        predict = Command(["predict", run, self.file(fit, new=True)], place).wait()
        check_succeeded(predict)
        names = frozenset(path.name for path in run.iterdir())
        return Reference(run, bits_of(run), names, int(count.read_text()), seconds, predict.stdout)

    def ask_worker(self, seed, folder):
        """The answer of the Python process, which is started when it is first needed."""
        if self.worker is None:
            self.worker = subprocess.Popen(
                [sys.executable, "-m", "tools.soak.worker"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=(self.root / "worker.err").open("wb"),
                env=environment(),
                cwd=ROOT,
                text=True,
            )
        self.worker.stdin.write(json.dumps({"seed": seed, "folder": str(folder)}) + "\n")
        self.worker.stdin.flush()
        line = self.worker.stdout.readline()
        if not line:
            code, self.worker = self.worker.wait(), None
            raise Wrong(f"the Python process died with {code}")
        return json.loads(line)


@dataclass
class Scene:
    """One act: its folder, its random numbers and what it did so far."""

    stage: Stage
    place: Path
    rng: random.Random
    what: list = field(default_factory=list)  # in words, for the record
    ended: list = field(default_factory=list)  # the commands
    megabytes: float | None = None  # of the Python process

    @property
    def run(self):
        return self.place / "run"

    def fit(self):
        """A fit of the many, with its reference."""
        drawn = draw_fit(self.rng)
        self.what.append(str(drawn))
        return drawn, self.stage.reference(drawn)

    def start(self, *words, kill=None, fault=None, below=None):
        if kill:
            self.what.append(str(kill))
        folder = self.place / f"command-{len(self.ended)}-{self.rng.randrange(10**6)}"
        return Command(words, folder, fault=fault, kill=kill, below=below)

    def command(self, *words, **more):
        """Run a command to its end; it must end in a documented way."""
        return self.end(self.start(*words, **more))

    def end(self, command):
        ended = command.wait()
        self.ended.append(ended)
        if ended.by_library:
            self.what.append("ended by a library")
        else:
            check_documented(ended)
        return ended

    def old_run(self, fit, run):
        """Put the results of another fit into the folder."""
        old = draw_fit(self.rng)
        while old == fit:
            old = draw_fit(self.rng)
        self.what.append(f"over {old}")
        shutil.copytree(self.stage.reference(old).run, run)
        return old

    def check_finished(self, fit, extra=()):
        """The folder holds the bits of the fit's reference and no leftovers."""
        reference = self.stage.reference(fit)
        if which_run(self.run, {str(fit): reference}) is None:
            raise Wrong("exit code 0, but no summary.json")
        check_names(self.run, reference.names | set(extra))
