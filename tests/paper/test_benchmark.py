"""``deccs benchmark``: any method with any settings."""

import pytest
from typer.testing import CliRunner

from deccs.app.cli import app
from deccs_paper import records, runner
from deccs_paper.benchmark import changes_in
from deccs_paper.processes import Workers


def made_up(run, cache):
    """In place of a run, in a process forked from this one."""
    scores = {"nmi": 0.5, "ari": 0.4, "accuracy": 0.6, "agreement": 0.9}
    ok = {
        "status": "failed" if run.method == "IDEC" else "ok",
        "error": "too bad",
        "scores": scores,
        "best_round": 1,
        "peak_memory_mb": 1.0,
        "seconds": {"total": 60.0},
        "rounds": [{"members": {"kmeans": {"nmi": 0.25}}}],
    }
    return [header | ok for header in runner.headers(run)]


@pytest.fixture
def benchmark(monkeypatch, tmp_path):
    """The command with made-up runs, writing to records.jsonl of a new folder."""
    monkeypatch.setattr(
        "deccs_paper.benchmark.Workers", lambda jobs, cache: Workers(jobs, cache, made_up, "fork")
    )
    monkeypatch.chdir(tmp_path)
    return lambda *words: CliRunner().invoke(app, ["benchmark", *words, "--out", "records.jsonl"])


def test_nothing_is_run_twice(benchmark, tmp_path):
    settings = ["--set", "rounds.n_rounds=1"]
    assert benchmark("synth", "--seeds", "2", *settings).exit_code == 0
    answer = benchmark("SYNTH", "--seeds", "3", *settings)
    made = list(records.read(tmp_path / "records.jsonl"))
    assert [record["repetition"] for record in made] == [0, 1, 2]
    # By the name and the settings of published records.
    assert {record["experiment"] for record in made} == {"n_rounds=1"}
    assert {record["settings"]["n_rounds"] for record in made} == {1}
    assert "| SYNTH | 0.25 | **0.500 ± 0.000** |" in answer.output


def test_a_page_gets_the_table(benchmark, tmp_path):
    (tmp_path / "page.md").write_text(
        "a\n<!-- table: deccs benchmark -->\n<!-- end of table -->\nb"
    )
    assert benchmark("synth", "--methods", "dec", "--page", "page.md").exit_code == 0
    assert (tmp_path / "page.md").read_text() == (
        "a\n<!-- table: deccs benchmark -->\n| method | SYNTH |\n|---|---|\n| DEC | 0.50 (0.65) |\n"
        "<!-- end of table -->\nb"
    )


def test_failed_runs_are_counted(benchmark):
    answer = benchmark("synth", "--methods", "idec", "--seeds", "2")
    assert answer.exit_code == 1
    assert "synth IDEC 1: failed: too bad" in answer.output
    assert "2 of the runs have failed" in answer.output


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["iris"], "benchmark: 'iris' is not known."),
        (["synth", "--methods", "DECS"], "--methods: 'DECS' is not known. Did you mean 'DECCS'?"),
        (["synth", "--set", "rounds.n_round=1"], "--set: DECCS has no parameter rounds__n_round."),
        (["synth", "--set", "n_rounds"], "n_rounds"),
    ],
)
def test_wrong_names_are_reported(benchmark, tmp_path, words, message):
    answer = benchmark(*words)
    assert answer.exit_code == 2 and message in " ".join(answer.output.split())
    assert not list(tmp_path.iterdir())


def test_settings_are_numbers_lists_or_text():
    assert changes_in(["lambda_cons=auto", "network.layers=[8, 2]", "tol=1e-3", "scale=none"]) == {
        "lambda_cons": "auto",
        "network__layers": [8, 2],
        "tol": 1e-3,
        "scale": None,
    }
