"""Options: declared once, and everything else follows."""

import importlib
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Any

import pytest
import typer

from deccs.app import cli, commands
from deccs.app.methods import estimator_for, methods
from deccs.app.request import (
    FitRequest,
    Option,
    PredictRequest,
    Request,
    RequestError,
    setting_in,
    split_names,
)
from tests.helpers.command_line import deccs


@dataclass(frozen=True)
class WithDecay(FitRequest):
    """A new option is this field and nothing else."""

    decay: Annotated[
        float | None,
        Option("Rate from round to round.", default="0.9", sets="rounds__learning_rate_decay"),
    ] = None


def test_a_new_option_is_one_field(tmp_path, monkeypatch):
    app = typer.Typer()
    app.command("fit")(cli.command_for("fit", WithDecay))
    app.command("other")(lambda: None)  # Typer drops the name of an only command
    asked = []
    monkeypatch.setattr(commands, "fit", lambda request, output: asked.append(request))
    (tmp_path / "c.toml").write_text("decay = 0.5")

    assert "Rate from round to round. (default: 0.9)" in " ".join(
        deccs("fit", "--help", app=app)[1].replace("│", "").split()
    )
    assert deccs("fit", "x.csv", app=app)[0] == 0
    assert deccs("fit", "x.csv", "--decay", 0.25, app=app)[0] == 0
    assert deccs("fit", "x.csv", "--config", tmp_path / "c.toml", app=app)[0] == 0
    assert [request.decay for request in asked] == [None, 0.25, 0.5]
    decays = [
        estimator_for(request).get_params()["rounds__learning_rate_decay"] for request in asked
    ]
    assert decays == [0.9, 0.25, 0.5]
    (tmp_path / "c.toml").write_text("decay = 'fast'")
    code, _, err = deccs("fit", "x.csv", "--config", tmp_path / "c.toml", app=app)
    assert code == 2 and "decay must be a number, got 'fast'" in " ".join(err.split())


@pytest.mark.parametrize(("name", "request_type"), Request.COMMANDS.items())
def test_every_command_has_a_function_help_and_options(name, request_type):
    home = importlib.import_module(f"deccs.app.{cli.HOMES.get(name, 'commands')}")
    assert callable(getattr(home, name))
    code, out, _ = deccs(name, "--help")
    assert code == 0 and request_type.__doc__.split(".")[0].split()[0] in out
    for entry in request_type.entries().values():
        assert entry.label.partition("/")[0] in out, entry.name
        assert entry.words.help[0].isupper() and entry.words.help.endswith(".")


def test_options_that_set_a_parameter_name_one_of_deccs():
    known = estimator_for(FitRequest("x.csv")).get_params(deep=True)
    for entry in FitRequest.entries().values():
        sets = getattr(entry.words, "sets", "")
        assert not sets or sets in known, entry.name


def test_defaults_then_config_then_command_line(tmp_path):
    config = tmp_path / "c.toml"
    config.write_text(
        "clusters = 5\nseed = 3\nmembers = 'kmeans,birch'\n"
        "[settings]\nrounds.tol = 0.1\nrounds.n_rounds = 4"
    )
    given = {"file": "x.csv", "config": config, "seed": 7, "settings": ["rounds.tol=none"]}
    request = FitRequest.read(given)
    assert (request.clusters, request.seed, request.members) == ("5", 7, ("kmeans", "birch"))
    assert request.missing == "auto" and request.columns is None
    model = estimator_for(request)
    assert (model.n_clusters, model.random_state) == (5, 7)
    assert (model.rounds.tol, model.rounds.n_rounds) == (None, 4)
    assert model.members == ["kmeans", "birch"]
    assert estimator_for(FitRequest("x.csv")).random_state == 0


def test_whole_tables_of_settings(tmp_path):
    grid = {"learning_rate": [0.1, 0.2]}
    request = FitRequest("x.csv", settings={"pretraining": {"grid": grid, "n_steps": 5}})
    model = estimator_for(request)
    assert model.pretraining.grid == grid and model.pretraining.n_steps == 5


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a=1", 1),
        ("a = 1.5", 1.5),
        ("a=true", True),
        ("a=[8, 2]", [8, 2]),
        ("a='x=y'", "x=y"),
        ("a=x=y", "x=y"),
        ("a=None", None),
        ("a=", ""),
        ("a={b = 1}", {"b": 1}),
    ],
)
def test_values_of_single_settings(text, value):
    assert setting_in(text) == ("a", value)


def test_kinds_of_the_command_line_win_over_those_of_a_file_one_by_one(tmp_path):
    (tmp_path / "c.toml").write_text('[kind]\nzip = "category"\nage = "ordered"')
    given = {"file": "x.csv", "config": tmp_path / "c.toml", "kind": ["age=number", "a=b=date"]}
    kinds = {"zip": "category", "age": "number", "a=b": "date"}
    assert FitRequest.read(given).kind == kinds


@pytest.mark.parametrize(
    ("file", "folder"),
    [
        ("pens.csv", "pens-run"),
        ("data/pens.csv.gz", "pens-run"),
        ("sqlite:///my/shop.db", "shop-run"),
        ("postgresql://me:secret@host:5432/shop?sslmode=require", "shop-run"),
    ],
)
def test_the_folder_of_a_run_has_the_name_of_its_file(file, folder):
    assert FitRequest(file).folder == Path(folder)


def test_names_in_a_list():
    assert split_names('a, "b,c" ,d') == ("a", "b,c", "d")


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"missing": "zero"}, "--missing must be one of auto, error, drop, mean, got 'zero'"),
        ({"settings": ["=3"]}, "--set needs NAME=VALUE"),
        ({"kind": ["zip"]}, "--kind needs COLUMN=KIND, such as zip=category, got 'zip'"),
        ({"kind": ["=date"]}, "--kind needs COLUMN=KIND"),
        ({"labels": "pdf"}, "--labels must be one of csv, parquet, xlsx, got 'pdf'"),
        ({"config": "nowhere.toml"}, "nowhere.toml cannot be read"),
    ],
)
def test_bad_requests_are_refused(given, told):
    with pytest.raises(RequestError, match=told):
        FitRequest.read({"file": "x.csv", **given})


def test_the_documentation_names_every_option_and_method():
    text = (Path(__file__).parents[2] / "docs" / "cli.md").read_text()
    names = set(re.findall(r"`([a-z_+-]+)`", text))
    assert set(FitRequest.config_names()) <= names  # `settings` has a paragraph of its own
    assert set(methods()) <= names


def test_requests_hold_plain_types():
    """What a request can hold is what a config file and a command line can say."""
    kinds = {int, float, str, bool, Path, tuple, Mapping}
    for request_type in Request.COMMANDS.values():
        assert {entry.kind for entry in request_type.entries().values()} <= kinds
        assert [field.name for field in fields(request_type)] == list(request_type.entries())
    out: Any = PredictRequest.entries()["out"]
    assert out.optional and out.kind is Path and out.label == "--out"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no pipes")
def test_pipes_devices_and_huge_files_are_no_config(tmp_path):
    os.mkfifo(tmp_path / "pipe.toml")
    (tmp_path / "zero.toml").symlink_to("/dev/zero")
    (tmp_path / "folder.toml").mkdir()
    with (tmp_path / "huge.toml").open("wb") as file:
        file.truncate(2**40)
    for name in ("pipe", "zero", "folder", "huge"):
        path = tmp_path / f"{name}.toml"
        with pytest.raises(RequestError, match="not a plain file"):
            FitRequest.read({"file": "x.csv", "config": path})
    (tmp_path / "deep.json").write_text("[" * 100_000)
    with pytest.raises(RequestError, match="cannot be read"):
        FitRequest.read({"file": "x.csv", "config": tmp_path / "deep.json"})
