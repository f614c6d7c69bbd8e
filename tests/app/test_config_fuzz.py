"""Config files with values of any type: a message and exit code 2, never a traceback."""

import datetime
import json
import random
from functools import cache

import pytest

from deccs.app.methods import estimator_for, methods
from deccs.app.request import FitRequest, RequestError
from tests.helpers.command_line import deccs

VALUES = [
    None,
    True,
    0,
    -1,
    1,
    3,
    10**400,
    -(10**30),
    0.5,
    float("nan"),
    float("inf"),
    "",
    "auto",
    "3-20",
    "9" * 5_000,
    "\ud800",
    [],
    [1, 2],
    ["a", 1],
    [[1]],
    {},
    {"a": 1},
    {"": {"": 1}},
    {"n_rounds": {"n_rounds": 1}},
    datetime.date(2026, 1, 1),
]
N_CONFIGS = 150


@cache
def options():
    """The options of a config file, and all settings of all methods by their dotted names."""
    settings = {name for method in methods().values() for name in method().get_params(deep=True)}
    return FitRequest.config_names(), sorted(name.replace("__", ".") for name in settings)


def nested(name, value):
    """``a.b`` as a table in a table."""
    first, dot, rest = name.partition(".")
    return {first: nested(rest, value)} if dot else {first: value}


def random_config(rng):
    names, settings = options()
    config = {rng.choice(names): rng.choice(VALUES) for _ in range(rng.randint(0, 2))}
    if rng.random() < 0.7:
        inner = {}
        for name in rng.sample([*settings, "x", "", "__", ".", "rounds.", "a.b.c"], 2):
            value = rng.choice(VALUES)
            inner |= nested(name, value) if rng.random() < 0.5 else {name: value}
        config["settings"] = inner
    if rng.random() < 0.5:
        config["method"] = rng.choice([*methods(), "no method"])
    return config


def as_toml(value):
    """A value in TOML; JSON's spelling where the two agree."""
    if isinstance(value, dict):
        pairs = (f"{json.dumps(key)} = {as_toml(inner)}" for key, inner in value.items())
        return "{" + ", ".join(pairs) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(as_toml, value)) + "]"
    if isinstance(value, float):
        return repr(value)
    return str(value) if isinstance(value, datetime.date) else json.dumps(value)


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    path = tmp_path_factory.mktemp("fuzz") / "data.csv"
    path.write_text("")  # read after the options: whoever gets here is told that it is empty
    return path


@pytest.mark.parametrize("ending", ["toml", "json"])
def test_any_config_is_understood_or_refused(ending, tmp_path, file):
    rng, path, failures = random.Random(0), tmp_path / f"config.{ending}", []
    for number in range(N_CONFIGS):
        config = random_config(rng)
        if ending == "json":
            text = json.dumps(config, default=str)
        else:
            text = "\n".join(f"{name} = {as_toml(value)}" for name, value in config.items())
        path.write_text(text, encoding="utf-8", errors="surrogatepass")
        try:
            code, _, err = deccs("fit", file, "--config", path, "--out", tmp_path / "run")
            if code != 2 or not err.startswith("deccs: ") or len(err) > 5_000:
                failures.append((number, text[:300], code, err[-500:]))
        except Exception as error:
            failures.append((number, text[:300], repr(error)[:500]))
    assert not failures, "\n".join(map(str, failures[:20]))


def test_brackets_in_brackets_and_endless_files_are_refused(tmp_path, file):
    for ending, text in (("json", "[" * 100_000), ("toml", "a = " + "[" * 100_000)):
        path = tmp_path / f"deep.{ending}"
        path.write_text(text)
        code, _, err = deccs("fit", file, "--config", path)
        assert code == 2 and "cannot be read" in err
    path = tmp_path / "long.toml"
    path.write_text("# " + "x" * 2**24)
    code, _, err = deccs("fit", file, "--config", path)
    assert code == 2 and "at most 16,777,216 bytes" in err


@pytest.mark.parametrize(
    "value", [value for value in VALUES if not isinstance(value, dict | type(None))]
)
def test_a_group_of_settings_is_not_a_value(value):
    for settings in ({"network": value}, {"network": value, "network.layers": [4, 2]}):
        request = FitRequest(file="x.csv", settings=settings)
        with pytest.raises(RequestError, match="network must be a table of settings, such as net"):
            estimator_for(request)
