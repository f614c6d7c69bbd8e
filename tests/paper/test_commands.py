"""The commands of the paper as a plug-in of the command line."""

import tomllib
from importlib import import_module
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from deccs.app import plugins
from deccs_paper import commands
from deccs_paper.blocks import Block
from deccs_paper.reproduce import NAMES

ROOT = Path(__file__).parents[2]


def test_the_plug_in_is_declared():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    module, function = project["entry-points"][plugins.GROUP]["paper"].split(":")
    assert getattr(import_module(module), function) is commands.add_commands


@pytest.mark.parametrize("declared", [True, False])
def test_the_plug_in_is_found_once_whether_it_is_declared_or_not(monkeypatch, declared):
    """A checkout may have been installed before its commands were declared."""

    class Entry:
        name = "paper"

        @staticmethod
        def load():
            return commands.add_commands

    monkeypatch.setattr(plugins, "entry_points", lambda group: [Entry] if declared else [])
    app = typer.Typer()
    plugins.add_plugin_commands(app)
    names = [command.callback.__name__ for command in app.registered_commands]
    assert names == [
        "reproduce",
        "benchmark",
        "yardstick",
        "how_many",
        "confidence",
        "novelty",
        "mixed",
        "months",
        "demo",
    ]


def test_the_help_of_reproduce_has_every_name():
    app = typer.Typer()
    commands.add_commands(app)
    text = " ".join(
        CliRunner().invoke(app, ["reproduce", "--help"], env={"COLUMNS": "300"}).output.split()
    )
    missing = [name for name in NAMES if name not in text and not name.startswith("fig")]
    assert missing == [] and "fig1 to fig9" in text


@pytest.mark.parametrize(
    "text",
    [
        "no comments",
        "<!-- end of list --> <!-- list: make -->",
        "<!-- list: make --><!-- list: make --><!-- end of list -->",
    ],
)
def test_a_page_without_its_comments_is_not_changed(tmp_path, text):
    page = tmp_path / "page.md"
    page.write_text(text)
    with pytest.raises(ValueError, match="must have <!-- list: make --> and after it"):
        Block("list", "make").rewrite(page, "new")
    assert page.read_text() == text
