"""The command line, made from the requests. What a command does is imported when it is run."""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Callable, Mapping
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from deccs._version import __version__
from deccs.app.output import (
    UNEXPECTED,
    Output,
    errors_as_messages,
    flush_stdout,
    open_standard_streams,
)
from deccs.app.plugins import add_plugin_commands
from deccs.app.request import Argument, Entry, Request

# Of commands that need little; the others are in ``commands``.
HOMES = {"predict": "predicting", "serve": "serving", "mcp": "mcp.server", "skill": "skill"}


class Commands(TyperGroup):
    """The commands of deccs; those of other packages are loaded when one of them may be meant."""

    def list_commands(self, ctx: Any) -> list[str]:
        self._add_plugins()
        return super().list_commands(ctx)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name not in self.commands:
            self._add_plugins()
        return super().get_command(ctx, cmd_name)

    def _add_plugins(self) -> None:
        others = typer.Typer()
        add_plugin_commands(others)
        if others.registered_commands:
            self.commands = {**typer.main.get_group(others).commands, **self.commands}


app = typer.Typer(
    cls=Commands,
    help="Cluster tables and images: labels, how reliable they are, and a model for new data.",
    no_args_is_help=True,
    pretty_exceptions_show_locals=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def main() -> None:
    open_standard_streams()
    try:
        app(prog_name="deccs")
    except SystemExit as end:
        try:
            flush_stdout()
        except OSError as error:  # such as a full disk
            print(f"deccs: stdout cannot be written: {error}.", file=sys.stderr)
            sys.exit(end.code or UNEXPECTED)
        raise


def command_for(name: str, request: type[Request]) -> Callable[..., None]:
    """A function with the signature that Typer makes the options of the command from."""

    def run(**typed: Any) -> None:
        given = {key: value for key, value in typed.items() if value is not None}
        output = Output(
            as_json=given.get("as_json", False),
            quiet=given.get("quiet", False),
        )
        with errors_as_messages(output):
            asked = request.read(given)
            home = importlib.import_module(f"deccs.app.{HOMES.get(name, 'commands')}")
            getattr(home, name)(asked, output)

    parameters = [parameter_for(entry) for entry in request.entries().values()]
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__doc__ = request.__doc__
    return run


def parameter_for(entry: Entry) -> inspect.Parameter:
    """A parameter for Typer. What is not typed is None: then the config file or the default counts."""
    words, default = entry.words, None
    if isinstance(words, Argument):
        kind: Any = list[entry.inner] if entry.kind is tuple else entry.kind  # type: ignore[name-defined]
        info: Any = typer.Argument(metavar=words.metavar, help=words.help, show_default=False)
        if words.optional:
            kind = kind | None
        else:
            default = inspect.Parameter.empty
    else:
        typed: dict[Any, Any] = {tuple: str, Mapping: list[str]}
        kind = typed.get(entry.kind, entry.kind) | None
        names = words.names
        if entry.kind is bool and not entry.optional:  # a switch, without --no-...
            names = names or (entry.label,)
        info = typer.Option(*names, metavar=words.metavar, help=help_for(entry), show_default=False)
    return inspect.Parameter(
        entry.name,
        inspect.Parameter.KEYWORD_ONLY,
        default=default,
        annotation=Annotated[kind, info],
    )


def help_for(entry: Entry) -> str:
    """The help of an option, with its default."""
    assert not isinstance(entry.words, Argument)
    plain = entry.default if isinstance(entry.default, str) else ""
    default = entry.words.default or plain
    return f"{entry.words.help} (default: {default})" if default else entry.words.help


for command_name, request_type in Request.COMMANDS.items():
    app.command(command_name)(command_for(command_name, request_type))


def print_version(wanted: bool) -> None:
    if wanted:
        print(f"deccs {__version__}")
        raise typer.Exit


@app.callback()
def common(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=print_version, is_eager=True, help="Print the version and exit."
        ),
    ] = False,
) -> None:
    pass
