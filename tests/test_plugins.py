"""Everything that can be added is added by one file and an import: the contract tests and the command line know it.

The plug-ins are in ``tests/helpers/plugins``. They are loaded in processes of their own, so that other tests
do not see them.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

import deccs
from tests.helpers import plugins

ROOT = Path(__file__).parents[1]
PLUGINS = sorted(path.stem for path in Path(plugins.__file__).parent.glob("[a-z]*.py"))
IMPORTS = "".join(f"import tests.helpers.plugins.{name}\n" for name in PLUGINS)

# Where each plug-in is tested with no line added, and the name it goes by.
CONTRACTS = {
    "tests/deep/test_deep.py": "Pull",
    "tests/consensus/test_consensus.py": "chained",
    "tests/consensus/test_consensus_estimators.py": "chained",
    "tests/data/test_readers.py": ".prose",
    "tests/members/test_named_members.py": "minibatch",
    "tests/app/test_request.py": "FitWithDropout",
    "tests/storage/test_models.py": "Pull",
}

COMMAND_LINE = """
from deccs.app.cli import app
def deccs(*words):
    print(">", *words, flush=True)
    app(words, standalone_mode=False)
"""
PROSE = "".join(
    "ab " * (row % 3) * 4 + "x" * (1 + row % 7 + 30 * (row % 3)) + "\n" for row in range(60)
)
QUICK = ("--set", "n_steps=4", "--set", "pretraining.n_steps=4", "--set", "network.layers=[4,2]")
RESUME = """
import sys
from pathlib import Path
from tests.deep import killed_fits
killed_fits.RESUMABLE[:] = ["Pull"]
killed_fits.main(Path(sys.argv[1]))
"""


def python(*arguments, cwd):
    """Run a new Python that sees this code; its output."""
    paths = [str(Path(deccs.__file__).parents[1]), str(ROOT)]
    environment = {name: value for name, value in os.environ.items() if "PYTEST" not in name}
    environment |= {"PYTHONPATH": os.pathsep.join(paths), "OMP_NUM_THREADS": "1", "COLUMNS": "200"}
    result = subprocess.run(
        [sys.executable, *map(str, arguments)],
        cwd=cwd,
        env=environment,
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


@pytest.mark.slow
def test_contract_tests_pick_up_every_plugin(tmp_path):
    report = tmp_path / "report.xml"
    words = " or ".join(sorted(set(CONTRACTS.values())))
    loaded = [part for name in PLUGINS for part in ("-p", f"tests.helpers.plugins.{name}")]
    python(
        *("-m", "pytest", "-p", "no:cacheprovider", *loaded, f"--junitxml={report}"),
        *("-k", f"({words}) and not real_data", *CONTRACTS),
        cwd=ROOT,
    )
    cases = [
        (f"{case.get('classname', '').replace('.', '/')}.py", case.get("name"))
        for case in ElementTree.parse(report).iter("testcase")
        if case.find("skipped") is None
    ]
    for path, word in CONTRACTS.items():
        assert any(file == path and word in name for file, name in cases), (path, word)


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="fits run in forked processes")
def test_a_new_deep_method_is_killed_and_resumed_with_the_same_bits(tmp_path):
    python("-c", f"{IMPORTS}{RESUME}", tmp_path, cwd=tmp_path)
    assert int((tmp_path / "Pull.txt").read_text()) >= 1
    straight, resumed = (tmp_path / f"Pull-{kind}.zip" for kind in ("straight", "resumed"))
    assert straight.read_bytes() == resumed.read_bytes()


def test_the_command_line_knows_every_plugin(tmp_path):
    (tmp_path / "lines.prose").write_text(PROSE)
    script = f"""{IMPORTS}{COMMAND_LINE}
deccs("fit", "--help")
deccs("info", "--json")
quick = {QUICK!r}
deccs("fit", "lines.prose", "-k", "3", "--method", "pull", "--dropout", "0.25", "--out", "pull", *quick)
deccs("predict", "pull", "lines.prose", "--out", "again.csv")
deccs("fit", "lines.prose", "-k", "3", "--method", "consensus", "--members", "kmeans,minibatch",
      "--set", "function=chained", "--out", "chained")
"""
    output = python("-c", script, cwd=tmp_path)
    help_text, _, rest = output.partition("> info")
    assert "--dropout" in help_text and "Share of units left out" in help_text
    facts = json.loads(rest[rest.index("{") : rest.index("\n> fit")])["info"]
    assert "pull" in facts["methods"] and "minibatch" in facts["members"]
    assert ".prose" in facts["files"]
    labels = (tmp_path / "pull" / "labels.csv").read_text()
    assert (tmp_path / "again.csv").read_text() == labels
    options = json.loads((tmp_path / "pull" / "summary.json").read_text())["options"]
    assert (options["method"], options["dropout"]) == ("pull", 0.25)
    assert (tmp_path / "chained" / "report.html").exists()


def test_every_plugin_is_one_file_without_a_word_elsewhere():
    """No test and no module of the library mentions a plug-in, so nothing had to be changed for it."""
    assert len(PLUGINS) == 5
    folder = Path(plugins.__file__).parent
    for path in [*ROOT.glob("src/**/*.py"), *ROOT.glob("tests/**/*.py")]:
        if folder not in path.parents and path != Path(__file__):
            text = path.read_text(encoding="utf-8")
            assert not any(name in text for name in ("Pull(", "chained", ".prose", "minibatch"))
