"""stdout and stderr that are closed, full or no longer read: no traceback, and no result is lost.

Commands run in forks of a process that has imported everything, with the real streams of a process.
"""

import json
import os
import sys
from pathlib import Path

import pytest

from deccs.app import cli, commands
from deccs.app.output import Steady, printable
from tests.helpers.command_line import write_table
from tests.helpers.forks import CONTEXT
from tests.helpers.slow import mostly_slow

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks")
RESULTS = {"labels.csv", "clusters.txt", "embedding.npy", "model", "summary.json", "report.html"}
CLOSED, GONE, FULL = "closed", "gone", "/dev/full"


def run(words, place, stdout=None, stderr=None):
    """(exit code, stdout, stderr) of ``deccs`` with streams that are closed, not read any more, or full."""
    files = [place / "stdout.txt", place / "stderr.txt"]
    child = CONTEXT.Process(target=command, args=(words, place, files, (stdout, stderr)))
    child.start()
    child.join()
    assert not (place / "traceback.txt").exists(), (place / "traceback.txt").read_text()
    texts = [file.read_text() if file.exists() else "" for file in files]
    assert not any("Traceback" in text for text in texts), texts
    return child.exitcode, *texts


def command(words, place, files, states):
    """A process that is a command, with such streams."""
    assert commands
    code = 99
    try:
        for number, (state, file) in enumerate(zip(states, files, strict=True), 1):
            set_stream(number, state, file)
        sys.argv = ["deccs", *map(str, words)]
        cli.main()
    except SystemExit as end:
        code = end.code or 0
        sys.stdout.flush()  # as at the end of every process
        sys.stderr.flush()
    except BaseException as error:
        (place / "traceback.txt").write_text(repr(error))
    os._exit(code)


def set_stream(number, state, file):
    """What a shell does with ``>&-``, with a pipe whose reader has ended, and with a file."""
    name = {1: "stdout", 2: "stderr"}[number]
    if state == CLOSED:
        os.close(number)
        setattr(sys, name, None)
        return
    if state == GONE:
        reader, handle = os.pipe()
        os.close(reader)
    else:
        handle = os.open(state or file, os.O_WRONLY | os.O_CREAT, 0o666)
    os.dup2(handle, number)
    os.close(handle)
    setattr(sys, name, open(number, "w", closefd=False))  # noqa: SIM115


@pytest.fixture(scope="module")
def data(tmp_path_factory, blobs):
    return write_table(tmp_path_factory.mktemp("streams") / "data.csv", blobs.X[::3])


def fit(data, out, *more):
    return [
        "fit",
        data,
        "--method",
        "consensus",
        "--clusters",
        3,
        "--id",
        "key",
        "--out",
        out,
        *more,
    ]


@pytest.mark.parametrize("stdout", mostly_slow([None, CLOSED, GONE], (GONE,)))
@pytest.mark.parametrize("stderr", [None, CLOSED, GONE, FULL])
def test_a_fit_needs_no_streams(stdout, stderr, data, tmp_path):
    out = tmp_path / "run"
    code, text, _ = run(fit(data, out, "--json"), tmp_path, stdout, stderr)
    assert code == 0
    assert {path.name for path in out.iterdir()} == RESULTS
    assert "k0,0," in (out / "labels.csv").read_text()[:40]  # and nothing else was printed into it
    assert stdout or json.loads(text)["status"] == "ok"


def test_a_result_that_cannot_be_printed_is_told(data, tmp_path):
    code, _, err = run(fit(data, tmp_path / "run"), tmp_path, FULL)
    assert code == 1 and "No space left" in err
    assert {path.name for path in (tmp_path / "run").iterdir()} == RESULTS


def test_predict_does_not_lose_labels_in_silence(data, tmp_path):
    assert run(fit(data, tmp_path / "run"), tmp_path)[0] == 0
    predict = ["predict", tmp_path / "run", data]
    code, text, _ = run(predict, tmp_path)
    assert code == 0 and text.endswith((tmp_path / "run" / "labels.csv").read_text())
    for state in (GONE, FULL):
        (tmp_path / "stderr.txt").unlink()
        code, _, err = run(predict, tmp_path, state)
        assert code == 1 and "Not all labels could be written to stdout" in err and "--out" in err


@pytest.mark.parametrize(
    "words", [["--help"], ["--version"], ["fit", "--help"], ["compare"], ["x"]]
)
@pytest.mark.parametrize("state", [CLOSED, GONE])
def test_help_and_errors_need_no_streams(words, state, tmp_path):
    code, *_ = run(words, tmp_path, state, state)
    assert code in ((0, 1) if {"--help", "--version"} & set(words) else (2,))


def test_stdout_that_is_full_is_told_by_every_command(tmp_path):
    assert Path(FULL).exists()
    code, _, err = run(["--version"], tmp_path, FULL)
    assert code == 1 and "stdout cannot be written" in err


def test_a_steady_stream_has_all_a_stream_has():
    assert Steady(sys.__stderr__).encoding == sys.__stderr__.encoding


def test_names_in_files_cannot_move_the_cursor():
    assert printable("\033[2Ja\x9bb\nc\td\r") == "?[2Ja?b\nc\td?"
