"""Commands as a user types them."""

import csv
from pathlib import Path

from typer.testing import CliRunner

from deccs.app import cli


def deccs(*words, app=cli.app):
    """(exit code, stdout, stderr) of a command."""
    result = CliRunner().invoke(app, [str(word) for word in words])
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, result.stdout, result.stderr


def rows_of(path_or_text):
    text = path_or_text.read_text() if isinstance(path_or_text, Path) else path_or_text
    return list(csv.reader(text.splitlines()))


def write_table(path, X, names=("a", "b", "c", "d"), first=0, word="x"):
    """A CSV file with a key, a word that names the row, and numbers."""
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["key", "word", *names])
        for number, row in enumerate(X, start=first):
            values = (repr(float(value)) for value in row)
            writer.writerow([f"k{number}", f"{word}{number}", *values])
    return path
