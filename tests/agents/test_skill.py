"""The skill for agents: every name in it exists, its examples run, its commands are understood."""

import ast
import dataclasses
import inspect
import re
import shlex
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import typer

import deccs
from deccs.agents.files import SKILL, read
from deccs.app import cli, run_folder
from deccs.app.request import Request
from tests.helpers.command_line import deccs as command
from tests.helpers.quick_count import quick_counts

TEXT = read(SKILL)
FEW = {
    "deccs.rounds.update.default_update_steps": 5,
    "deccs.rounds.restarts.default_restarts": 1,
    "deccs.training.pretraining.default_pretraining_steps": 5,
}
# Code in the text that is no name of ours.
WORDS = {"==", 'pip install "deccs[mcp]"', "FILE", "DIR", "predict"}


def blocks(language, text=TEXT):
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.M | re.S)


def spans(text=TEXT):
    """The code in the lines of the text."""
    prose = re.sub(r"^```.*?^```\n", "", text, flags=re.M | re.S)
    return re.findall(r"`([^`\n]+)`", prose)


@pytest.fixture(scope="module")
def model():
    X = np.random.default_rng(0).normal(size=(60, 2)) + np.repeat([[0, 0], [9, 0], [0, 9]], 20, 0)
    settings = {
        "network": deccs.Network(layers=(4, 2)),
        "pretraining": deccs.Pretraining(n_epochs=1),
        "rounds": deccs.Rounds(n_rounds=0, n_init=1),
    }
    with quick_counts():
        return deccs.DECCS(
            "2-4", members=["kmeans", "agglomerative"], random_state=0, **settings
        ).fit(X)


# What is checked


def check_command(line):
    """A command as the command line itself reads it, without running it."""
    program, name, *words = shlex.split(line, comments=True)
    assert program == "deccs" and name in Request.COMMANDS, f"there is no command {name}"
    app = typer.main.get_command(cli.app)
    context = app.commands[name].make_context(name, list(words))
    given = {key: value for key, value in context.params.items() if value not in (None, ())}
    Request.COMMANDS[name].read(given)


def has(value, name):
    """Whether an object has this name, or a module of ours says that it is public."""
    return name in value.__all__ if inspect.ismodule(value) else hasattr(value, name)


def check_expression(code, known):
    """Every attribute of a known object and every keyword of a call, wherever it stands in the expression."""
    tree = ast.parse(code, mode="eval")

    def value_of(node):
        """The object that a name or an attribute stands for; None if it is not known."""
        if isinstance(node, ast.Name):
            return known.get(node.id)
        if isinstance(node, ast.Attribute):
            home = value_of(node.value)
            if home is None:
                return None
            assert has(home, node.attr), f"{ast.unparse(node)} does not exist"
            return getattr(home, node.attr)
        return None

    checked = False
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            checked |= value_of(node) is not None
        if isinstance(node, ast.Call):
            function = value_of(node.func)
            assert function is not None, f"{ast.unparse(node.func)} is unknown"
            names = [keyword.arg for keyword in node.keywords]
            signature = inspect.signature(function).parameters
            if function == getattr(known.get("model"), "set_params", None):
                signature = known["model"].get_params(deep=True)
            missing = [name for name in names if name not in signature]
            assert not missing, f"{code}: {missing} are no parameters"
            checked = True
    assert checked, f"{code}: nothing in it is a name of ours"


def check_span(code, model):
    """Raise an AssertionError, or what the command line says, for code that names what is not there."""
    parameters = {
        *model.get_params(deep=True),
        *(field.name for field in dataclasses.fields(deccs.DECCS)),
    }
    if code in WORDS or code in run_folder.RESULTS:
        return
    if code.startswith("deccs "):
        name = code.removeprefix("deccs ")
        assert name in Request.COMMANDS or check_command(code) is None
    elif re.fullmatch(r"--[\w-]+", code):
        labels = {
            entry.label
            for request in Request.COMMANDS.values()
            for entry in request.entries().values()
        }
        assert code in labels, f"no command has {code}"
    elif re.match(r"(deccs|model)\b", code):
        check_expression(code, {"deccs": deccs, "model": model})
    elif keyword := re.fullmatch(r"(\w+)=.+", code):
        ast.parse(f"f({code})")
        assert keyword[1] in parameters, f"{keyword[1]} is no parameter"
    else:
        assert code in parameters, f"{code!r} is no name of ours; if it is none, add it to WORDS"


def test_the_front_matter_is_what_agents_read_first():
    matter = re.match(r"---\n(.*?)\n---\n", TEXT, re.S)[1]
    fields = dict(line.split(": ", 1) for line in matter.splitlines())
    assert fields["name"] == "deccs" and re.fullmatch(r"[a-z0-9-]{1,64}", fields["name"])
    assert 100 < len(fields["description"]) <= 1024 and "Use when" in fields["description"]
    assert len(TEXT.splitlines()) < 500


@pytest.mark.parametrize("code", sorted(set(spans())))
def test_names_in_the_text_exist(code, model):
    check_span(code, model)


@pytest.mark.parametrize(
    "code",
    [
        "deccs cluster FILE",
        "deccs fit FILE --k 3",
        "deccs fit FILE --scale big",
        "deccs plan --row 5",
        "--no-such-option",
        "deccs.Deccs",
        "deccs.deep.IDEK",
        "deccs.consensus.lwga",
        "deccs.count_clusters(X, kmax=3)",
        "deccs.DECCS(5, rounds=deccs.Rounds(rounds=5))",
        "model.fit_transform_predict(X)",
        "model.cluster_stability",
        "model.set_params(rounds__rounds=5)",
        "n_cluster=3",
        "clusters",
        "labels.txt",
        "deccs",
    ],
)
def test_a_wrong_name_is_found(code, model):
    with pytest.raises(Exception, match=r"\w"):  # the command line has errors of its own
        check_span(code, model)


@pytest.mark.parametrize("line", [line for block in blocks("sh") for line in block.splitlines()])
def test_commands_are_understood(line):
    check_command(line)


def test_the_python_runs(tmp_path, monkeypatch):
    """One block after the other, on little data and with few steps."""
    monkeypatch.chdir(tmp_path)
    for rule, value in FEW.items():
        monkeypatch.setattr(rule, lambda *sizes, value=value: value)
    monkeypatch.setattr("deccs.rounds.algorithm.FULL", 0.0)  # the rounds end after two
    monkeypatch.setattr("deccs.estimator.uses_views", lambda *sizes: False)
    monkeypatch.setattr("deccs.estimator.default_budget", lambda *sizes: {})
    rng, group = np.random.default_rng(0), np.repeat([0, 1, 2], 15)
    columns = {
        "customer_id": np.arange(45) + 1000,
        "income": np.round(np.exp(rng.normal(10 + group, 0.2))),
        "orders": rng.poisson(np.array([2, 12, 30])[group]),
        "city": np.array(["Berlin", "Ulm", "Kiel"])[group],
    }
    pl.DataFrame(columns).write_csv("customers.csv")
    names = {}
    with quick_counts():
        for block in blocks("python"):
            if not block.startswith("# needs"):
                exec(block, names)
    assert names["model"].labels_.shape == names["labels"].shape == (45,)
    assert Path("report.html").is_file()


def test_the_python_for_scanpy_names_what_is_there(monkeypatch):
    (block,) = [block for block in blocks("python") if block.startswith("# needs: scanpy")]
    asked = {}
    table = type("Table", (dict,), {"__getitem__": lambda self, key: asked.setdefault(key, key)})
    adata = type("Cells", (), dict.fromkeys(("obs", "obsm", "uns"), table()))()
    monkeypatch.setattr("deccs.scanpy.consensus", lambda adata: None)
    exec(block, {"deccs": deccs, "adata": adata})
    assert set(asked) == {
        "deccs",
        "deccs_confidence",
        "X_deccs",
    }  # tests/test_scanpy.py has them all


def test_the_command_prints_it_or_writes_it(tmp_path):
    assert command("skill") == (0, TEXT, "")
    code, _, words = command("skill", "--out", tmp_path / "skills" / "deccs")
    path = tmp_path / "skills" / "deccs" / SKILL
    assert code == 0 and str(path) in words.replace("\n", "") and path.read_text() == TEXT
    code, _, words = command("skill", "--out", tmp_path / "skills" / "deccs")
    assert code == 2 and "--overwrite" in words
    assert command("skill", "--out", tmp_path / "skills" / "deccs", "--overwrite", "-q")[0] == 0
