"""Commands from other packages, such as the paper's experiments in ``deccs_paper``.

A package declares a function that adds its commands to the app::

    [project.entry-points."deccs.commands"]
    paper = "deccs_paper.commands:add_commands"
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from functools import partial
from importlib import import_module
from importlib.metadata import entry_points
from importlib.util import find_spec

import typer

GROUP = "deccs.commands"
AddCommands = Callable[[typer.Typer], None]
# A checkout that was installed before it declared its commands has no entry point for them.
OWN = {"paper": "deccs_paper.commands"}


def add_plugin_commands(app: typer.Typer) -> None:
    """Add the commands of all packages that have some; a package that fails adds none."""
    for name, load in plugins():
        try:
            load()(app)
        except Exception as error:  # noqa: BLE001  it must not take the other commands down
            warnings.warn(f"The commands of {name!r} cannot be loaded: {error}", stacklevel=2)


def plugins() -> Iterator[tuple[str, Callable[[], AddCommands]]]:
    """Names, and what imports the function that adds the commands."""
    declared = {entry.name: entry for entry in entry_points(group=GROUP)}
    for name, entry in declared.items():
        yield name, entry.load
    for name, module in OWN.items():
        if name not in declared and find_spec(module.partition(".")[0]) is not None:
            yield name, partial(add_commands_of, module)


def add_commands_of(module: str) -> AddCommands:
    function: AddCommands = import_module(module).add_commands
    return function
