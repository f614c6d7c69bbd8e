"""What the commands print: messages, results, errors and exit codes."""

from __future__ import annotations

import ctypes
import json
import os
import sys
import unicodedata
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, redirect_stdout, suppress
from typing import IO, Any, TextIO, cast

import typer
from rich.console import Console

from deccs.group.watch import GroupError

UNEXPECTED, BAD_INPUT, INTERRUPTED = 1, 2, 130  # exit codes
WIDTH = 160  # characters of a line where there is no terminal: rich would break lines at 80


class Steady:
    """A stream that does not fail: after its reader has gone, what is written is lost.

    Messages are not worth a fit.
    """

    def __init__(self, stream: Any) -> None:
        self.stream = stream

    def write(self, text: str) -> int:
        with suppress(OSError, ValueError):
            self.stream.write(text)
        return len(text)

    def flush(self) -> None:
        try:
            self.stream.flush()
        except (OSError, ValueError):
            give_up(self.stream)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)


def give_up(stream: Any) -> None:
    """Lose what a stream still holds: it would fail again when the process ends."""
    with suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)


def open_standard_streams() -> None:
    """Give stdin, stdout and stderr a place where they are closed.

    Else the next files that are opened would take their numbers, and what is printed would go there.
    """
    for number, name, flags in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest number that is free
        if getattr(sys, name) is None:
            setattr(sys, name, open(number, flags, encoding="utf-8", closefd=False))  # noqa: SIM115
    sys.stderr = cast(TextIO, Steady(sys.stderr))


def flush_stdout() -> None:
    """Write out what was printed; an OSError if it cannot be, but not where the reader has gone."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        give_up(sys.stdout)
    except OSError:
        give_up(sys.stdout)
        raise


def printable(text: str) -> str:
    """A text without control characters: names in files could move the cursor or clear the screen.

    >>> printable("a" + chr(27) + "[2J\\n")
    'a?[2J\\n'
    """
    return "".join(
        "?" if unicodedata.category(letter) == "Cc" and letter not in "\n\t" else letter
        for letter in text
    )


class Output:
    """Messages go to stderr, results to stdout: as text, or as one JSON object."""

    listeners: Sequence[Any] = ()  # callbacks that are told of a fit, beside the display

    def __init__(self, *, as_json: bool = False, quiet: bool = False) -> None:
        self.as_json, self.quiet = as_json, quiet
        width = None if sys.stderr.isatty() else WIDTH
        steady = cast(IO[str], Steady(sys.stderr))
        self.stderr = Console(file=steady, width=width, emoji=False)  # `:key:` may be in a path

    def note(self, message: str) -> None:
        """Print a message, unless the command is quiet."""
        if not self.quiet:
            message = printable(message)
            self.stderr.print(message, markup=False, highlight=False, soft_wrap=True)

    def table(self, text: Any) -> None:
        """Print a table of messages, unless the command is quiet."""
        if not self.quiet:
            self.stderr.print(text, markup=False, highlight=False)

    def result(self, document: Mapping[str, Any], text: Any) -> None:
        """Print a result: the document as JSON if that was asked for, else the text."""
        if self.as_json:
            print_at_once(json.dumps({"status": "ok", **document}, allow_nan=False))
        elif not self.quiet:
            width = None if sys.stdout.isatty() else WIDTH
            console = Console(soft_wrap=True, width=width, emoji=False)
            with console.capture() as lines:  # rich would end the process if nobody reads it
                shown = printable(text) if isinstance(text, str) else text
                console.print(shown, markup=False, highlight=False)
            print_at_once(lines.get().removesuffix("\n"))

    def failure(self, message: str, code: int) -> typer.Exit:
        """Print why the command ends; returns what to raise.

        Without rich: it loads code to print, for which there may be no memory left.
        """
        Steady(sys.stderr).write(f"deccs: {printable(message)}\n")
        if self.as_json:
            status = "interrupted" if code == INTERRUPTED else "error"
            with suppress(OSError):
                print_at_once(json.dumps({"status": status, "exit_code": code, "message": message}))
        return typer.Exit(code)


def print_at_once(text: str) -> None:
    """Print on stdout; if nobody reads it any more, that is no error."""
    try:
        print(text)
    except BrokenPipeError:
        give_up(sys.stdout)
    flush_stdout()


@contextmanager
def errors_as_messages(output: Output) -> Iterator[None]:
    """Print expected errors as one sentence; any other error keeps its traceback."""
    try:
        yield
    except ValueError as error:
        raise output.failure(str(error), BAD_INPUT) from error
    except (OSError, MemoryError, ImportError, GroupError) as error:
        raise output.failure(in_words(error), UNEXPECTED) from error
    except RuntimeError as error:
        if not (ran_out_of_memory(error) or is_of_data_set(error)):
            raise
        raise output.failure(in_words(error), UNEXPECTED) from error
    except KeyboardInterrupt as error:
        raise output.failure("Stopped; nothing was written.", INTERRUPTED) from error


def is_of_data_set(error: BaseException) -> bool:
    """Whether a data set could not be loaded; that module is there by then, and takes a second to load.

    >>> is_of_data_set(RuntimeError("any"))
    False
    """
    store = sys.modules.get("deccs.datasets.store")
    return store is not None and isinstance(error, store.DatasetError)


# What torch's allocators say, on Linux, on Windows, in C++ and on a graphics card.
NO_MEMORY = ("can't allocate memory", "not enough memory", "bad_alloc", "out of memory")


def ran_out_of_memory(error: BaseException) -> bool:
    """Whether there was no memory left; torch has no error of its own for that.

    >>> ran_out_of_memory(RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory"))
    True
    """
    words = str(error)
    return isinstance(error, MemoryError) or any(sign in words for sign in NO_MEMORY)


def in_words(error: BaseException) -> str:
    """What the machine is to blame for, and what to do where memory is short.

    >>> in_words(OSError(28, "No space left on device")), in_words(MemoryError())[:37]
    ('OSError: [Errno 28] No space left on device', 'MemoryError: there is no memory left.')
    """
    if isinstance(error, GroupError):  # a whole sentence
        return str(error)
    if not ran_out_of_memory(error):
        return f"{type(error).__name__}: {error}"
    given = f" ({error})" if str(error) else ""
    return f"MemoryError: there is no memory left{given}. Close other programs, or fit fewer rows."


@contextmanager
def warnings_as_notes(output: Output) -> Iterator[None]:
    """Print warnings as plain lines, without the code they came from."""
    with warnings.catch_warnings():
        if "sklearn" in sys.modules:  # a fit has loaded it, and predictions need none of it
            from sklearn.exceptions import ConvergenceWarning

            warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.showwarning = lambda message, *place: output.note(f"Note: {message}")
        yield


@contextmanager
def prints_to_stderr() -> Iterator[None]:
    """What others print meanwhile goes to stderr: stdout is for results.

    Members and callbacks may print by Python, by C code or in processes that they start.
    """
    with ExitStack() as stack:
        with suppress(OSError):  # one of both is closed
            kept = os.dup(1)
            stack.callback(os.close, kept)
            os.dup2(2, 1)
            stack.callback(os.dup2, kept, 1)
            stack.callback(flush_c_library)
        stack.enter_context(redirect_stdout(sys.stderr))
        yield


def flush_c_library() -> None:
    """Write out what C code has printed: it keeps it until the end of the process."""
    if os.name == "posix":
        ctypes.CDLL(None).fflush(None)
