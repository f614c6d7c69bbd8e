"""The paper's numbers and experiments as data."""

import pytest

from deccs_paper.experiments import (
    ALL,
    DECCS_ROW,
    EXPERIMENTS,
    LAMBDA_ROWS,
    TABLES,
    Cell,
    Row,
    ablation,
    cells,
    narrowed,
    runs_of,
    seeds_for,
)
from deccs_paper.figures import FIGURES as DRAWINGS
from deccs_paper.runner import Run
from deccs_paper.settings import PAPER_TABLES


@pytest.mark.parametrize(
    ("table", "row", "dataset", "printed"),
    [  # from deccs.tex
        ("table1", "cons", "synth", [0.17, 0.21]),
        ("table1", "CE", "mnist", [0.81, 0.04]),
        ("table1", "cons + rec", "pendigits", [0.74, 0.02]),
        ("table1", "cons + CE", "kmnist", [0.60, 0.01]),
        ("table1", "cons + CE + rec", "usps", [0.85, 0.01]),
        ("table1", "rec", "har", [0.55, 0.05]),
        ("table1", "CE + rec", "mice", [0.43, 0.04]),
        ("table2", "AE+RP+EM", "mice", [0.51, 0.04]),
        ("table2", "ConCURL", "usps", [0.49, 0.02]),
        ("table2", "IEC", "mnist", [0.54]),
        ("table3", "DECCS without reconstruction", "synth", [1.00, 0.01]),
        ("table3", "SpectralNet", "mnist", [0.93, 0.00]),
        ("study-sample-size", "0.02", "mnist", [0.87]),
    ],
)
def test_the_papers_printed_numbers(table, row, dataset, printed):
    assert PAPER_TABLES[table][row][dataset] == printed


def test_tables_have_the_papers_rows():
    assert [len(TABLES[name].rows) for name in ("table1", "table2", "table3")] == [7, 26, 25]
    for name, rows in PAPER_TABLES.items():
        assert list(rows) == [row.label for row in TABLES[name].rows]
    # All of the full method is the same runs, and Table I is the method itself where nothing is off.
    assert PAPER_TABLES["table1"]["cons + CE + rec"] == PAPER_TABLES["table2"]["DECCS"]
    assert ablation("cons + CE + rec").changes == {}
    assert ablation("CE").changes == {"rounds__lambda_cons": 0.0, "rounds__lambda_rec": 0.0}


def test_the_same_run_has_one_place_in_all_experiments():
    """lambda_cons = 0.1 is what images have anyway; 10 is what the UCI sets have."""
    low, high = LAMBDA_ROWS[0][0], LAMBDA_ROWS[0][2]
    assert (
        Cell(low, "usps", 1).experiment
        == Cell(ablation("cons + CE"), "usps", 1).experiment
        == "lambda_rec=0"
    )
    assert Cell(high, "pendigits", 1).experiment == "lambda_rec=0"
    assert Cell(low, "pendigits", 1).experiment == "lambda_cons=0.1, lambda_rec=0"
    assert Cell(LAMBDA_ROWS[1][0], "mnist", 1).experiment == "default"
    table2, table3 = (
        {
            (run.experiment, run.method, run.dataset, run.repetition)
            for run in runs_of({"": TABLES[name]})
        }
        for name in ("table2", "table3")
    )
    assert table3 - table2 == {
        ("lambda_rec=0", "DECCS", name, repetition)
        for name in ALL
        for repetition in range(5)
        if repetition == 0 or name not in ("mnist", "fmnist", "kmnist")
    }


def test_every_experiment_can_be_built():
    runs = {(run.experiment, run.method, run.dataset): run for run in runs_of(EXPERIMENTS, 1)}
    assert len(runs) > 150
    for run in runs.values():
        model, changes = run.estimator(), dict(run.changes)
        if copies := changes.pop("copies", 0):
            assert len(model.members) == 4 * copies
        assert changes.items() <= model.get_params().items()
    assert set(DRAWINGS) <= set(EXPERIMENTS)


def test_the_tripled_ensemble_has_twelve_members():
    (cell,) = cells(narrowed(TABLES["study-ensemble-size"], ["usps"], ["12 members"]), 1)
    (run,) = cell.runs()
    assert len(run.estimator().members) == 12
    assert len({name for name, _ in run.estimator().members}) == 12


def test_seeds_are_more_where_runs_are_short():
    assert [seeds_for(DECCS_ROW, name) for name in ("usps", "mnist")] == [5, 3]
    assert [seeds_for(Row("DEC", "DEC"), name) for name in ("usps", "mnist")] == [3, 1]


def test_raw_images_are_clustered_with_fewer_points():
    assert Run("default", "consensus", "mnist", 0, {}).estimator().sample_size == 5600
    assert Run("default", "AE+consensus", "mnist", 0, {}).estimator().sample_size == 11000
