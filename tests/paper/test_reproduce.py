"""``deccs reproduce``: the command, its files and its page."""

import re
import shutil
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest
from rich.console import Console
from typer.testing import CliRunner

from deccs.app.cli import app
from deccs.datasets.store import DatasetError
from deccs_paper import records, reproduce, runner
from deccs_paper.experiments import TABLES, Row
from deccs_paper.figures import FIGURES as DRAWINGS
from deccs_paper.processes import Workers
from deccs_paper.settings import RECIPE
from tests.paper.made_up import failed, made

QUIET = Console(quiet=True)


class Tags(HTMLParser):
    def __init__(self):
        super().__init__()
        self.open, self.seen, self.links = [], [], []

    def handle_starttag(self, tag, attrs):
        self.seen.append(tag)
        self.links += [value for name, value in attrs if name in ("src", "href")]
        if tag not in ("meta", "img"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_a_figure_that_cannot_be_drawn_is_reported(tmp_path, monkeypatch):
    def fails(task):
        raise ImportError("no matplotlib")

    monkeypatch.setitem(reproduce.DRAWINGS, "fig7", replace(DRAWINGS["fig7"], drawing=fails))
    answer = CliRunner().invoke(app, ["reproduce", "fig7", "--page-only", "--out", str(tmp_path)])
    assert "fig7 not drawn: ImportError: no matplotlib" in answer.output
    assert answer.exit_code == 1


def test_a_missing_partitioner_is_reported_before_consensus_runs_start(tmp_path, monkeypatch):
    monkeypatch.setattr(records, "published", list)
    monkeypatch.setattr("deccs.consensus.partitioners.module", lambda name: None)
    answer = CliRunner().invoke(
        app, ["reproduce", "table2", "--data", "synth", "--methods", "LWEA", "--out", str(tmp_path)]
    )
    assert answer.exit_code == 1 and "deccs[partition]" in answer.output
    assert not (tmp_path / "records.jsonl").exists()


def test_the_page_is_complete_and_needs_nothing_else(tmp_path, monkeypatch):
    monkeypatch.setattr(records, "published", list)
    row = Row("DEC", "DEC")
    ok = made(row, "usps", [0.6])
    for record in [*ok, failed(ok[0]) | {"repetition": 1}]:
        records.append(tmp_path / reproduce.RECORDS, record)
    selection = reproduce.select(["table2", "claims", "fig1"], ["usps"])
    files, not_drawn = reproduce.write_all(selection, tmp_path, None, draw=False, console=QUIET)
    assert [path.name for path in files] == ["table2.md", "table2.tex", "claims.md", "index.html"]
    assert not_drawn == []  # not asked for is no failure
    page = (tmp_path / "index.html").read_text()
    tags = Tags()
    tags.feed(page)
    assert tags.open == [] and all(link.startswith("#") for link in tags.links)
    assert "1 ok of 2" in page and "&lt;b&gt;no&lt;/b&gt;" in page and "<b>no</b>" not in page
    assert "not drawn yet: deccs reproduce fig1" in page
    assert "SYNTH" not in (tmp_path / "table2.md").read_text()


def test_the_published_page_is_that_of_the_records(tmp_path, monkeypatch):
    """Tables, claims and words, but not the pictures: another matplotlib may draw other bytes."""
    monkeypatch.setenv("DECCS_DATA", "/nowhere")
    monkeypatch.setattr("deccs_paper.figures.curves.save", lambda picture, out, name: None)
    published = Path(__file__).parents[2] / "results" / "page"
    for path in published.glob("fig*"):
        shutil.copy(path, tmp_path)
    answer = CliRunner().invoke(app, ["reproduce", "--page-only", "--out", str(tmp_path)])
    assert answer.exit_code == 0, answer.output
    assert "The autoencoder helps every consensus method on MICE" in answer.output
    assert not (tmp_path / "records.jsonl").exists()
    for name in [*(f"{table}.md" for table in TABLES), "claims.md", "index.html"]:
        ours, theirs = (
            PICTURE.sub("", (folder / name).read_text()) for folder in (tmp_path, published)
        )
        assert ours == theirs, f"{name} has drifted: deccs reproduce --page-only --out results/page"


PICTURE = re.compile(r'src="data:[^"]*"')


def test_a_figure_with_fits_of_its_own_is_drawn_once(tmp_path, monkeypatch):
    calls = []

    def draw(task):
        calls.append(1)
        (task.out / "fig4.png").write_bytes(b"png")
        return {"claims": []}

    monkeypatch.setitem(reproduce.DRAWINGS, "fig4", replace(DRAWINGS["fig4"], drawing=draw))
    for _ in range(2):
        found = reproduce.drawn("fig4", [], tmp_path, None, draw=True, console=QUIET)
        assert found.png == b"png"
    assert len(calls) == 1
    monkeypatch.setattr(reproduce, "RECIPE", RECIPE + 1)  # the method has changed since
    reproduce.drawn("fig4", [], tmp_path, None, draw=True, console=QUIET)
    assert len(calls) == 2


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["tabel2"], "reproduce: 'tabel2' is not known. Did you mean 'table2'?"),
        ([], "Say what to reproduce: table1"),
        (["table2", "--data", "mnits"], "--data: 'mnits' is not known. Did you mean 'mnist'?"),
        (["table2", "--methods", "DEC,SVM"], "--methods of table2: 'SVM' is not known."),
        (["table1", "--methods", "DEC"], "--methods of table1: 'DEC' is not known."),
        (["table2", "--data", "nonlinear"], "Nothing of table2 is left with --data nonlinear"),
        (["table2", "--seeds", "0"], "--seeds must be at least 1, got 0."),
    ],
)
def test_wrong_names_are_reported(words, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    answer = CliRunner().invoke(app, ["reproduce", *words])
    assert answer.exit_code == 2
    assert message in " ".join(answer.output.split())
    assert not list(tmp_path.iterdir())


def test_a_run_from_the_command_line_and_nothing_the_second_time(tmp_path, monkeypatch):
    monkeypatch.setattr(records, "published", list)
    monkeypatch.setattr(
        "deccs_paper.reproduce.Workers", lambda jobs, cache: Workers(jobs, cache, scored, "fork")
    )
    words = [
        "reproduce",
        "table2",
        "--data",
        "synth",
        "--seeds",
        "2",
        "--methods",
        "RP+EM,LWEA",
        "--jobs",
        "2",
        "--out",
        str(tmp_path / "out"),
    ]
    first, second = CliRunner().invoke(app, words), CliRunner().invoke(app, words)
    assert first.exit_code == second.exit_code == 0, first.output
    assert "4 runs to do" in first.output and "0 runs to do" in second.output
    assert (
        "| RP+EM | **0.250 ± 0.250** (n 2, paper 0.61 ± 0.00 ▼) |"
        in (tmp_path / "out" / "table2.md").read_text()
    )
    methods = [record["method"] for record in records.read(tmp_path / "out" / "records.jsonl")]
    assert methods.count("RP+EM") == methods.count("LWEA") == methods.count("CSPA") == 2


def test_fresh_runs_are_repeated_and_printed_next_to_the_published(tmp_path, monkeypatch):
    monkeypatch.setattr(
        "deccs_paper.reproduce.Workers", lambda jobs, cache: Workers(jobs, cache, scored, "fork")
    )
    words = [
        "reproduce",
        "table2",
        "--data",
        "synth",
        "--seeds",
        "2",
        "--methods",
        "RP+EM",
        "--out",
        str(tmp_path),
    ]
    assert "0 runs to do" in CliRunner().invoke(app, words).output
    assert "RP+EM | 0.250" not in (tmp_path / "table2.md").read_text()
    first, second = (CliRunner().invoke(app, [*words, "--fresh"]) for _ in range(2))
    assert (
        "2 runs to do: about " in first.output and "0 runs to do" in second.output
    )  # published runs tell the time
    assert re.search(
        r"synth RP\+EM 1 \(default\): NMI 0\.500 .* \(published: NMI 0\.60", first.output
    )
    assert "| RP+EM | 0.250 ± 0.250 (n 2, " in (tmp_path / "table2.md").read_text()


def scored(run, cache):
    value = run.repetition / 2
    return [
        header
        | {
            "status": "ok",
            "scores": {"nmi": value, "ari": value, "accuracy": value},
            "peak_memory_mb": 1.0,
            "seconds": {"total": 1.0},
        }
        for header in runner.headers(run)
    ]


def test_data_that_cannot_be_had_is_reported_and_no_run_fails(tmp_path, monkeypatch):
    def fails(name, source):
        raise DatasetError(f"Could not download {name}.")

    monkeypatch.setattr(records, "published", list)
    monkeypatch.setattr("deccs.datasets.store.download", fails)
    monkeypatch.setenv("DECCS_DATA", str(tmp_path))
    monkeypatch.setenv("DECCS_CACHE", str(tmp_path))
    answer = CliRunner().invoke(
        app,
        [
            "reproduce",
            "table2",
            "--data",
            "usps",
            "--methods",
            "DEC",
            "--out",
            str(tmp_path / "out"),
        ],
    )
    assert answer.exit_code == 1 and "Could not download usps." in answer.output
    assert not (tmp_path / "out" / "records.jsonl").exists()


def test_failed_runs_end_the_command_with_a_message(tmp_path, monkeypatch):
    def fails(run, cache):
        return [header | {"status": "failed", "error": "too bad"} for header in runner.headers(run)]

    monkeypatch.setattr(records, "published", list)
    monkeypatch.setattr(
        "deccs_paper.reproduce.Workers", lambda jobs, cache: Workers(jobs, cache, fails, "fork")
    )
    answer = CliRunner().invoke(
        app,
        [
            "reproduce",
            "table2",
            "--data",
            "synth",
            "--seeds",
            "1",
            "--methods",
            "RP+EM",
            "--out",
            str(tmp_path),
        ],
    )
    assert answer.exit_code == 1
    assert "1 of the runs have failed" in answer.output
    assert "0 ok of 1" in (tmp_path / "index.html").read_text()
    answer = CliRunner().invoke(
        app,
        [
            "reproduce",
            "table2",
            "--data",
            "SYNTH",
            "--seeds",
            "1",
            "--methods",
            "rp+em",
            "--out",
            str(tmp_path),
        ],
    )
    assert (
        "0 runs to do" in answer.output and "--again repeats them" in answer.output
    )  # not passed over in silence
    assert answer.exit_code == 1
