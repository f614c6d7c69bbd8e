"""The README's numbers are those of the records, and its Python runs."""

from pathlib import Path

import numpy as np
import pytest

from deccs_paper import consensus_speed, records, speed, table

ROOT = Path(__file__).parents[2]


def test_the_table_is_that_of_the_records():
    text = (ROOT / "README.md").read_text()
    rows = table.markdown(records.read(ROOT / "results" / "deccs.jsonl"))
    assert text == table.put_into(text, rows), "run: python -m deccs_paper --page README.md"


@pytest.mark.parametrize("name", ["consensus", "deep"])
def test_the_tables_of_other_methods_are_those_of_the_records(name):
    text = (ROOT / "docs" / f"{name}.md").read_text()
    rows = table.consensus_markdown(records.read(ROOT / "results" / f"{name}.jsonl"))
    command = f"python -m deccs_paper --out results/{name}.jsonl --page docs/{name}.md"
    assert text == table.put_into(text, rows), f"run: {command}"


def test_the_table_of_seconds_is_that_of_the_records():
    text = (ROOT / "docs" / "consensus.md").read_text()
    rows = consensus_speed.markdown(
        consensus_speed.of_records(ROOT / "results" / "consensus-speed.jsonl")
    )
    command = "python -m deccs_paper.consensus_speed --out results/consensus-speed.jsonl --page docs/consensus.md"
    assert text == table.put_into(text, rows, table.SPEED_BEGIN, table.SPEED_END), f"run: {command}"


def test_the_figures_of_speed_are_those_of_the_records():
    text = (ROOT / "docs" / "speed.md").read_text()
    rows = speed.listed(ROOT / "results" / "speed.jsonl")
    command = "python -m deccs_paper.speed --out results/speed.jsonl --page docs/speed.md"
    assert text == table.put_into(text, rows, speed.LIST_BEGIN, speed.LIST_END), f"run: {command}"


def code_blocks(path):
    return [part.split("```")[0] for part in path.read_text().split("```python\n")[1:]]


PAGES = [ROOT / "README.md", ROOT / "docs" / "consensus.md", ROOT / "docs" / "deep.md"]


@pytest.mark.parametrize("block", [block for page in PAGES for block in code_blocks(page)])
def test_the_readme_s_python_runs(block, monkeypatch, tmp_path):
    """On a small part of the data and with few steps; the calls are the README's own."""
    import deccs

    monkeypatch.chdir(tmp_path)  # what the README writes goes there
    X, y = deccs.datasets.make_synth(n_per_cluster=40, random_state=0)
    X = np.hstack([X, X])
    monkeypatch.setattr(deccs.datasets, "load", lambda name, return_X_y: (X, y))
    monkeypatch.setattr("deccs.rules.default_steps", lambda n_points: 5)
    monkeypatch.setattr("deccs.rules.default_restarts", lambda n_points: 1)
    monkeypatch.setattr("deccs.rules.default_epochs", lambda *sizes: 2)
    exec(
        block, {"my_labels": y, "base_partitions": [y, y[::-1]], "X": X, "X_new": X, "deccs": deccs}
    )
