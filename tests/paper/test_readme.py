"""The numbers in README and docs are those of the records, and their Python runs."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from deccs_paper import consensus_speed, constraints, export_check, rules_table, speed, table
from deccs_paper.confidence import tables as confidence
from deccs_paper.mixed import tables as mixed
from deccs_paper.months import command as months
from deccs_paper.novelty import tables as novelty
from deccs_paper.scale import page as scale
from deccs_paper.yardstick import by_dataset, tables
from tests.helpers.quick_count import quick_counts

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "results"


@pytest.mark.parametrize(
    ("page", "block", "content", "command"),
    [
        ("README.md", table.TABLE, table.of_file, "deccs benchmark --page README.md"),
        (
            "docs/consensus.md",
            table.TABLE,
            table.of_file,
            "deccs benchmark --out results/consensus.jsonl --page docs/consensus.md",
        ),
        (
            "docs/deep.md",
            table.TABLE,
            table.of_file,
            "deccs benchmark --out results/deep.jsonl --page docs/deep.md",
        ),
        (
            "docs/consensus.md",
            consensus_speed.SECONDS,
            lambda path: consensus_speed.markdown(consensus_speed.of_records(path)),
            "python -m deccs_paper.consensus_speed --out results/consensus-speed.jsonl "
            "--page docs/consensus.md",
        ),
        (
            "docs/choice.md",
            tables.SHORT,
            tables.short_text,
            f"{tables.SHORT.command} --out results/pool.jsonl",
        ),
        (
            "docs/tables.md",
            mixed.PAGE,
            mixed.page_text,
            f"{mixed.PAGE.command} --out results/mixed.jsonl",
        ),
        (
            "docs/constraints.md",
            constraints.PAGE,
            constraints.page_text,
            f"{constraints.PAGE.command} --out results/constraints.jsonl",
        ),
        (
            "docs/watching.md",
            novelty.PAGE,
            novelty.page_text,
            f"{novelty.PAGE.command} --out results/novelty.jsonl",
        ),
        (
            "docs/confidence.md",
            confidence.PAGE,
            confidence.page_text,
            f"{confidence.PAGE.command} --out results/confidence.jsonl",
        ),
        (
            "docs/refit.md",
            months.PAGE,
            lambda path: months.page_text(
                months.read_records(path), months.PAGE.command.split()[2:]
            ),
            f"{months.PAGE.command} --out results/months.jsonl",
        ),
        (
            "docs/production.md",
            export_check.PAGE,
            lambda path: export_check.markdown(export_check.of_records(path)),
            f"{export_check.PAGE.command} --out results/onnx.jsonl",
        ),
        ("README.md", by_dataset.RIVALS, by_dataset.rivals_table, by_dataset.RIVALS.command),
        (
            "docs/large_data.md",
            scale.PAGE,
            scale.page_text,
            f"{scale.PAGE.command} --out results/scale.jsonl",
        ),
        (
            "docs/large_data.md",
            scale.PLAN,
            scale.plan_text,
            f"{scale.PLAN.command} --out results/scale.jsonl",
        ),
        (
            "docs/speed.md",
            speed.LIST,
            speed.listed,
            "python -m deccs_paper.speed --out results/speed.jsonl --page docs/speed.md",
        ),
    ],
)
def test_numbers_are_those_of_the_records(page, block, content, command):
    text = (ROOT / page).read_text()
    words = command.split()
    file = words[words.index("--out") + 1] if "--out" in words else "results/deccs.jsonl"
    assert text == block.put_into(text, content(ROOT / file)), f"run: {command}"


def test_the_table_of_rules_is_that_of_the_code():
    text = (ROOT / "docs" / "method.md").read_text()
    block = rules_table.RULE_TABLE
    assert text == block.put_into(text, rules_table.rules_markdown()), f"run: {block.command}"


def code_blocks(path):
    return [part.split("```")[0] for part in path.read_text().split("```python\n")[1:]]


QUICK_PAGES = ("README", "editing", "refit", "production", "constraints", "watching", "confidence")
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
FEW = {
    "deccs.rounds.update.default_update_steps": 5,
    "deccs.rounds.restarts.default_restarts": 1,
    "deccs.training.pretraining.default_pretraining_steps": 5,
    "deccs.deep.base.default_deep_steps": 5,
}

# What a launcher of one process sets, for `deccs.distributed()`; the system chooses the port.
ALONE = {"RANK": "0", "WORLD_SIZE": "1", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "0"}


@pytest.mark.parametrize(
    "block",
    [
        pytest.param(
            block,
            id=f"{page.stem}-{number}",
            marks=[] if page.stem in QUICK_PAGES else [pytest.mark.slow],
        )
        for page in PAGES
        for number, block in enumerate(code_blocks(page))
    ],
)
def test_the_python_of_the_pages_runs(block, monkeypatch, tmp_path):
    """On little data and with few steps."""
    import deccs

    monkeypatch.chdir(tmp_path)  # what the pages write goes there
    X, y = deccs.datasets.make_synth(n_per_cluster=40, random_state=0)
    X = np.hstack([X, X])
    monkeypatch.setattr(deccs.datasets, "load", lambda name, return_X_y: (X, y))
    for rule, value in FEW.items():
        monkeypatch.setattr(rule, lambda *sizes, value=value: value)
    monkeypatch.setattr("deccs.rounds.algorithm.FULL", 0.0)  # the rounds end after two
    words = np.array(["Berlin", "Ulm"])[y % 2]
    customers = pl.DataFrame({"income": X[:, 0], "orders": X[:, 1], "city": words})
    (tmp_path / "sales").mkdir()
    customers.write_parquet(tmp_path / "sales" / "2024.parquet")
    np.save(tmp_path / "rows.npy", X)
    for name, value in ALONE.items():
        monkeypatch.setenv(name, value)
    known = {"my_labels": y, "base_partitions": [y, y[::-1]], "X": X, "X_new": X}
    with quick_counts():
        exec(block, known | {"customers": customers, "deccs": deccs})
