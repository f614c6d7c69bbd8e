"""The files for agents, as they are in the wheel."""

from __future__ import annotations

from importlib.resources import files

SKILL, INDEX = "SKILL.md", "llms.txt"


def read(name: str) -> str:
    """The text of one of the files.

    >>> read(SKILL).splitlines()[1], read(INDEX).splitlines()[0]
    ('name: deccs', '# deccs')
    """
    return (files(__package__) / name).read_text(encoding="utf-8")
