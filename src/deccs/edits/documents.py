"""Edits as plain values, and in a small JSON file, such as a report lets its reader download.

``{"format": "deccs edits", "version": 1, "n_rows": 1234, "edits": [{"edit": "merge", "clusters": [3, 5]}, ...]}``;
``n_rows`` is the number of rows of the fit, so that edits of another fit are refused.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from deccs.checks import is_whole
from deccs.edits.steps import Drop, Merge, Pin, Rename, Split, Step

FORMAT, VERSION = "deccs edits", 1
MOST_BYTES = 2**26  # of a file of edits
MOST_EDITS = 1_000  # in one file
# What each edit is given, and of what kind; those in brackets may be left out.
FIELDS: dict[str, dict[str, str]] = {
    "merge": {"clusters": "numbers"},
    "split": {"cluster": "number", "[into]": "number", "[rows]": "numbers"},
    "rename": {"cluster": "number", "name": "text"},
    "pin": {"rows": "numbers", "cluster": "number"},
    "drop": {"cluster": "number"},
}


class EditsError(ValueError):
    """A file or a list of edits cannot be used; the message says why."""


def as_dict(step: Step) -> dict[str, Any]:
    """An edit as a file would say it, but for the rows that were pinned.

    >>> as_dict(Merge((3, 5)))
    {'edit': 'merge', 'clusters': [3, 5]}
    """
    match step:
        case Merge():
            return {"edit": "merge", "clusters": list(step.clusters)}
        case Split():
            parts = list(step.numbers)
            return {"edit": "split", "cluster": step.cluster, "into": len(parts), "parts": parts}
        case Rename():
            return {"edit": "rename", "cluster": step.cluster, "name": step.name}
        case Pin():
            return {"edit": "pin", "cluster": step.cluster, "n_rows": len(step.points)}
        case Drop():
            return {"edit": "drop", "cluster": step.cluster}
    raise TypeError(f"{type(step).__name__} is no edit")


def in_words(edit: Mapping[str, Any]) -> str:
    """An edit as a sentence of a list of edits.

    >>> in_words({"edit": "merge", "clusters": [3, 5]}), in_words({"edit": "drop", "cluster": 7})
    ('merged 3, 5 into 3', 'dropped 7')
    """
    cluster = edit.get("cluster")
    match edit["edit"]:
        case "merge":
            numbers = ", ".join(map(str, edit["clusters"]))
            return f"merged {numbers} into {edit['clusters'][0]}"
        case "split":
            return f"split {cluster} into {', '.join(map(str, edit['parts']))}"
        case "rename":
            return f"named {cluster} {edit['name']!r}"
        case "pin":
            return f"pinned {edit['n_rows']:,} rows to {cluster}"
    return f"dropped {cluster}"


def read_edits(path: Path, n_rows: int) -> list[dict[str, Any]]:
    """The edits of a file, for a fit of so many rows."""
    try:
        if not path.is_file() or path.stat().st_size > MOST_BYTES:
            raise EditsError(f"{path} is not a file of edits of at most {MOST_BYTES:,} bytes.")
        document = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        if isinstance(error, EditsError):
            raise
        raise EditsError(
            f"{path} cannot be read as JSON: {error}. Download the edits again."
        ) from error
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise EditsError(f"{path} is no file of edits: it does not say {FORMAT!r} as its format.")
    if document.get("version") != VERSION:
        raise EditsError(
            f"{path} has version {document.get('version')!r:.20}; this deccs reads version {VERSION}."
        )
    if document.get("n_rows", n_rows) != n_rows:
        raise EditsError(
            f"{path} has edits of a fit of {document['n_rows']!r:.20} rows, but this fit has {n_rows:,}. "
            "Download them from the report of this run."
        )
    return checked_edits(document.get("edits"))


def checked_edits(edits: Any) -> list[dict[str, Any]]:
    """Edits as plain values, if they are some.

    >>> checked_edits([{"edit": "drop", "cluster": 7}])
    [{'edit': 'drop', 'cluster': 7}]
    """
    if not isinstance(edits, Sequence) or isinstance(edits, str) or len(edits) > MOST_EDITS:
        raise EditsError(
            f"edits must be a list of at most {MOST_EDITS:,} edits, got {edits!r:.60}."
        )
    return [checked_edit(number, edit) for number, edit in enumerate(edits, start=1)]


def checked_edit(number: int, edit: Any) -> dict[str, Any]:
    """One edit, with what it needs and nothing else."""
    where = f"Edit {number}"
    kind = edit.get("edit") if isinstance(edit, Mapping) else None
    fields = FIELDS.get(kind) if isinstance(kind, str) else None
    if fields is None:
        raise EditsError(f"{where} must be one of {', '.join(FIELDS)}, got {edit!r:.100}.")
    known = {name.strip("[]"): rule for name, rule in fields.items()}
    missing = [name for name in fields if not name.startswith("[") and name not in edit]
    unknown = [name for name in edit if name not in known and name != "edit"]
    if missing or unknown:
        wrong = (
            f"lacks {missing[0]!r}" if missing else f"has {unknown[0]!r:.60}, which it cannot use"
        )
        raise EditsError(f"{where} ({kind}) {wrong}; it is given {', '.join(known)}.")
    for name, rule in known.items():
        if name in edit and not IS_A[rule](edit[name]):
            raise EditsError(
                f"{where} ({kind}): {name} must be {WORDS[rule]}, got {edit[name]!r:.60}."
            )
    return dict(edit)


IS_A = {
    "number": is_whole,
    "numbers": lambda value: isinstance(value, list) and all(map(is_whole, value)),
    "text": lambda value: isinstance(value, str),
}
WORDS = {"number": "a whole number", "numbers": "a list of whole numbers", "text": "a text"}
