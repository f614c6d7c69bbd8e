"""How the commands speak: words, results, errors and the codes they end with."""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import typer
from rich.console import Console
from sklearn.exceptions import ConvergenceWarning

from deccs.datasets.store import DatasetError

UNEXPECTED, BAD_INPUT, INTERRUPTED = 1, 2, 130


class Voice:
    """What a command says: words to stderr, results to stdout, one JSON object in their place if asked for."""

    def __init__(self, *, as_json: bool = False, quiet: bool = False) -> None:
        self.as_json, self.quiet = as_json, quiet
        # A pipe has no width; rich would break the lines at 80.
        self.stderr = Console(stderr=True, width=None if sys.stderr.isatty() else 160)

    def note(self, words: str) -> None:
        if not self.quiet:
            self.stderr.print(words, markup=False, highlight=False, soft_wrap=True)

    def result(self, document: Mapping[str, Any], words: Any) -> None:
        if self.as_json:
            print(json.dumps({"status": "ok", **document}, allow_nan=False))
        elif not self.quiet:
            wide = None if sys.stdout.isatty() else 160
            Console(soft_wrap=True, width=wide).print(words, markup=False, highlight=False)

    def stop(self, words: str, code: int) -> typer.Exit:
        """Say why, and give what to raise."""
        self.stderr.print(f"deccs: {words}", markup=False, highlight=False, soft_wrap=True)
        if self.as_json:
            status = "interrupted" if code == INTERRUPTED else "error"
            print(json.dumps({"status": status, "exit_code": code, "message": words}))
        return typer.Exit(code)


@contextmanager
def plain_errors(voice: Voice) -> Iterator[None]:
    """Bad input is told in a sentence; what nobody expected keeps its traceback."""
    try:
        yield
    except ValueError as error:
        raise voice.stop(str(error), BAD_INPUT) from error
    except (
        OSError,
        DatasetError,
        MemoryError,
        ImportError,
    ) as error:  # an extra that is not installed
        raise voice.stop(f"{type(error).__name__}: {error}", UNEXPECTED) from error
    except KeyboardInterrupt as error:
        raise voice.stop("Stopped; nothing was written.", INTERRUPTED) from error


@contextmanager
def told_warnings(voice: Voice) -> Iterator[None]:
    """Warnings as plain lines, without the code that gave them."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.showwarning = lambda message, *place: voice.note(f"Note: {message}")
        yield
