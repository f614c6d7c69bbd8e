"""Tables with categories, dates and gaps: how they are made, the ways to cluster them, the summary."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import typer
from numpy.testing import assert_array_equal

from deccs_paper import records
from deccs_paper.mixed import command, methods, runs, sets, summary, tables, variants
from deccs_paper.mixed.methods import METHODS, TableTask
from deccs_paper.mixed.sets import KnownTable
from deccs_paper.mixed.variants import (
    AT_RANDOM,
    BY_VALUE,
    CATEGORIES,
    MIXED,
    NUMBERS,
    VARIANTS,
    Variant,
)
from deccs_paper.processes import Workers
from deccs_paper.yardstick import command as yardstick_command
from deccs_paper.yardstick import runs as yardstick_runs

ROOT = Path(__file__).parents[2]
WITH_GAPS = Variant(MIXED, 0.2, BY_VALUE)


def numbers(n=200, d=6, seed=0):
    return np.random.default_rng(seed).normal(size=(n, d))


def blobs(n=60, d=4):
    """Two classes far apart."""
    y = np.arange(n) % 2
    return KnownTable("blobs", numbers(n, d) + 20 * y[:, None], y)


# Kinds of columns


def test_the_kinds_of_a_mixed_table_by_hand():
    """Of six columns two are categories (one has two values only) and one is dates."""
    X = numbers()
    X[:, 3] = X[:, 3] > 0
    frame = Variant(MIXED).frame(X, seed=0)
    binned, dated = variants.roles(X, seed=0)
    assert 3 in binned and len(binned) == 2 and len(dated) == 1
    for number, (_, column) in enumerate(frame.items()):
        if number in binned:
            assert set(column) <= set(variants.LEVELS)
            assert column.nunique() == (2 if number == 3 else 5)
        elif number in dated:
            assert column.dtype.kind == "M"
            assert column.min() == pd.Timestamp("2019-01-01")
            assert column.max() == pd.Timestamp("2024-12-31")
        else:
            assert_array_equal(column, X[:, number])


def test_levels_keep_the_order_of_the_rows_and_their_words_do_not():
    column = np.random.default_rng(0).permutation(100).astype(float)
    levels = variants.levels_of(column)
    assert_array_equal(levels, column // 20)
    words = [variants.words_of(column, seed) for seed in range(30)]
    for each in words:
        assert len(set(zip(levels, each, strict=True))) == 5  # one word a level
    orders = [[each[levels == level][0] for level in range(5)] for each in words]
    assert sum(order == sorted(order) for order in orders) < 5  # 1 in 120 by chance


def test_dates_are_as_far_apart_as_the_numbers():
    column = np.array([0.0, 0.25, 0.5, 1.0])
    days = variants.dates_of(column).astype("datetime64[D]").astype(int)
    assert_array_equal(days - days[0], [0, 548, 1096, 2191])  # 547.75 and 1095.5 are rounded
    assert len(set(variants.dates_of(np.full(3, 7.0)))) == 1


def test_a_column_of_one_value_is_one_level():
    frame = Variant(CATEGORIES).frame(np.ones((4, 2)), seed=0)
    assert (frame.nunique() == 1).all()


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda variant: variant.name)
def test_the_same_seed_gives_the_same_table_and_another_seed_another(variant):
    X = numbers()
    first, second = variant.frame(X, 0), variant.frame(X, 0)
    pd.testing.assert_frame_equal(first, second)
    if variant != Variant(NUMBERS):
        assert not first.equals(variant.frame(X, 1))


# Gaps


@pytest.mark.parametrize("share", variants.SHARES)
@pytest.mark.parametrize("mechanism", [AT_RANDOM, BY_VALUE])
def test_the_share_of_cells_is_what_was_asked_for(share, mechanism):
    X = numbers(2_000, 5) ** 3
    chances = variants.chances(X, share, mechanism)
    assert chances.mean(axis=0) == pytest.approx(np.full(5, share))
    hidden = variants.hidden(X, share, mechanism, seed=0)
    assert hidden.mean() == pytest.approx(share, abs=4 * np.sqrt(share * (1 - share) / X.size))


def test_large_values_go_missing_more_often_and_at_random_they_do_not():
    X = numbers(4_000, 1)
    upper = X[:, 0] > np.median(X)
    by_value = variants.hidden(X, 0.2, BY_VALUE, seed=0)[:, 0]
    at_random = variants.hidden(X, 0.2, AT_RANDOM, seed=0)[:, 0]
    assert by_value[upper].mean() > 5 * by_value[~upper].mean()
    assert at_random[upper].mean() == pytest.approx(at_random[~upper].mean(), abs=0.04)


def test_more_gaps_hide_the_same_cells_and_more_in_every_variant():
    X = numbers()
    small = [Variant(kinds, 0.05, BY_VALUE).frame(X, 0).isna() for kinds in (NUMBERS, MIXED)]
    large = Variant(NUMBERS, 0.4, BY_VALUE).frame(X, 0).isna()
    pd.testing.assert_frame_equal(*small)
    assert (large | ~small[0]).to_numpy().all() and large.sum().sum() > small[0].sum().sum()
    whole, gaps = Variant(MIXED).frame(X, 0), Variant(MIXED, 0.2, AT_RANDOM).frame(X, 0)
    assert (gaps.isna() | (gaps == whole)).to_numpy().all()  # nothing else is changed


# The tables


def test_a_table_judges_or_is_for_choices_and_there_are_enough():
    assert not set(sets.DEVELOPMENT) & set(sets.JUDGING)
    assert {"wine", "breast cancer"} <= set(sets.JUDGING)
    in_pool = [name for names in sets.GROUPS.values() for name in names if name not in sets.LOADERS]
    assert len(in_pool) >= 6
    # The pool has wine, too; it may not be on both sides.
    assert "uci-wine" not in in_pool


def test_large_tables_are_cut_and_their_rows_keep_their_classes(tmp_path):
    X = np.arange(1_500.0)[:, None] + np.arange(50) / 100
    np.savez(tmp_path / "large.npz", X=X, y=np.arange(1_500) % 7)
    table = sets.read_table("large", tmp_path)
    assert table.X.shape == (1_000, 40) and table.k == 7
    assert_array_equal(table.X[:, 0] % 7, table.y)
    assert_array_equal(sets.read_table("large", tmp_path).X, table.X)
    wine = sets.read_table("wine", tmp_path)
    assert (wine.X.shape, wine.k) == ((178, 13), 3)


# Methods


FRAME = pd.DataFrame(
    {
        "number": [1.0, 3.0, None, None],
        "day": pd.to_datetime(["2024-01-01", None, "2024-01-03", None]),
        "word": ["a", None, "b", "b"],
        "empty": [None, None, None, None],
    }
)


def test_plain_filling_by_hand():
    filled = methods.filled(FRAME)
    assert list(filled) == ["number", "day", "word"]
    assert filled["number"].tolist() == [1, 3, 2, 2]
    assert filled["day"].dt.day.tolist() == [1, 2, 3, 2]
    assert filled["word"].tolist() == ["a", "b", "b", "b"]
    assert FRAME.isna().sum().sum() == 9  # the table itself is as it was


def test_cells_by_hand():
    cells = methods.coded(FRAME.drop(columns="empty"))
    gap = np.nan
    expected = [[-1, -1, 1, 0], [1, gap, gap, gap], [gap, 1, 0, 1], [gap, gap, 0, 1]]
    assert_array_equal(cells, expected)


@pytest.fixture
def quick(monkeypatch):
    """k-means in place of DECCS; returns what it was given."""
    given = []

    def fitted(model, X):
        given.append(X)
        labels = methods.KMeans(model.n_clusters, n_init=3, random_state=0).fit_predict(X)
        return methods.Clustering(labels)

    monkeypatch.setattr(methods, "fitted", fitted)
    return given


@pytest.mark.parametrize("variant", [Variant(MIXED), WITH_GAPS, Variant(CATEGORIES)])
@pytest.mark.parametrize("name", [name for name in METHODS if name not in ("deccs", "drop")])
def test_every_rival_separates_two_clear_classes(name, variant, quick):
    if METHODS[name].missing():
        pytest.skip("kmodes is not installed")
    table = blobs()
    result = METHODS[name].cluster(TableTask(variant.frame(table.X, 0), 2, 0))
    assert runs.scores.nmi(table.y, result.labels) > 0.6  # chance is 0
    for cells in quick:
        assert not np.isnan(cells).any()
        assert_array_equal(cells.mean(axis=0).round(9), np.zeros(cells.shape[1]))


def test_ours_is_given_the_table_as_it_is(quick):
    frame = pd.DataFrame({"a": [0.0, 1.0, 9.0]})
    METHODS["deccs"].cluster(TableTask(frame, 2, 0))
    assert quick[0] is frame


def test_rows_with_gaps_are_one_more_group_when_they_are_dropped(quick):
    table = blobs(100, 2)
    frame = Variant(NUMBERS, 0.2, AT_RANDOM).frame(table.X, 0)
    result = methods.drop(TableTask(frame, 2, 0))
    whole = frame.notna().all(axis=1).to_numpy()
    assert_array_equal(result.covered, whole)
    assert_array_equal(result.labels == 2, ~whole)
    assert runs.scores.nmi(table.y[whole], result.labels[whole]) == 1.0


def test_dropping_needs_enough_rows():
    frame = pd.DataFrame(blobs(32).X[:31])
    frame.iloc[29:, 0] = np.nan
    with pytest.raises(methods.TooFewRowsError, match=r"29 of 31 rows have no gap.*at least 30"):
        methods.drop(TableTask(frame, 2, 0))


def test_a_task_has_no_true_labels():
    assert set(TableTask.__dataclass_fields__) == {"frame", "k", "seed"}


# Runs


def test_what_is_run_by_hand():
    """DECCS: 3 complete variants and 4 at 20 % with all seeds, 8 with one."""
    count = {
        name: sum(METHODS[name].n_seeds(variant, 3) for variant in VARIANTS) for name in METHODS
    }
    assert count["deccs"] == count["mean"] == count["k-prototypes"] == 3 * (3 + 4) + 8
    assert count["drop"] == 3 * 4 + 8
    assert count["knn + deccs"] == count["iterative + deccs"] == 4
    waiting = runs.waiting([blobs()], list(METHODS), 3, [])
    assert len(waiting) == sum(count.values())
    assert [run.seed for run in waiting] == sorted(run.seed for run in waiting)


def test_a_record_says_what_is_missing_and_how_rows_without_gaps_came_out(monkeypatch):
    """The first column is the row's number, so that a method can be right on whole rows only."""
    table = blobs(200)
    table.X[:, 0] = np.arange(200)

    def right_on_whole_rows(task):
        whole = task.frame.notna().all(axis=1).to_numpy()
        rows = task.frame["column 0"].fillna(0).to_numpy().astype(int)
        return methods.Clustering(np.where(whole, table.y[rows], 0))

    monkeypatch.setitem(METHODS, "made up", methods.Way("made up", right_on_whole_rows))
    variant = Variant(NUMBERS, 0.2, AT_RANDOM)
    (record,) = yardstick_runs.carry_out(runs.MixedRun(runs.Case(table, variant), 0, ("made up",)))
    assert record["dataset"] == "blobs: numbers, 20 % missing at random"
    assert record["scores"]["nmi_whole_rows"] == 1.0 > record["scores"]["nmi"]
    gaps = variant.frame(table.X[yardstick_runs.row_order(200, 0)], 0).isna()
    assert record["missing_share"] == pytest.approx(gaps.to_numpy().mean(), abs=1e-4)
    assert record["empty_rows"] == gaps.all(axis=1).sum()
    assert record["empty_columns"] == 0 and record["experiment"] == runs.EXPERIMENT


@pytest.fixture
def in_this_process(monkeypatch):
    """Fork from the tests' process, where tables and methods may be made up."""
    monkeypatch.setattr(
        yardstick_command,
        "workers_for",
        lambda waiting, jobs: Workers(
            jobs, None, yardstick_runs.carry_out, "fork", headers=yardstick_runs.headers
        ),
    )


def test_the_command_runs_what_is_missing_and_rewrites_its_page(
    tmp_path, in_this_process, monkeypatch, capsys
):
    def guess(task):
        return methods.Clustering(np.arange(len(task.frame)) % task.k)

    def breaks(task):
        raise RuntimeError("no luck")

    monkeypatch.setitem(METHODS, "mean", methods.Way("mean", guess))
    monkeypatch.setitem(METHODS, "drop", methods.Way("drop", breaks, complete_as="mean"))
    out, page = tmp_path / "r.jsonl", tmp_path / "page.md"
    page.write_text(f"# A\n{tables.PAGE.begin}\n{tables.PAGE.end}\n")

    def mixed(names, folder=tmp_path):
        command.command(folder, names, "wine", 1, jobs=1, out=out, page=page, again=False)

    mixed("mean")
    mixed("mean")
    assert len(list(records.read(out))) == len(VARIANTS)
    assert "| judging | mean |" in page.read_text()
    with pytest.raises(typer.Exit):
        mixed("mean,drop")
    assert len(list(records.read(out))) == len(VARIANTS) + 12
    mixed("drop", folder=None)  # nothing is run, the page is made from the records
    assert "drop 12 (RuntimeError on wine)" in page.read_text()
    with pytest.raises(typer.Exit):
        mixed("meen")
    assert "Did you mean 'mean'?" in capsys.readouterr().err


# The summary


def record(method, table, variant, nmi, *, seed=0, status="ok", whole=None):
    made = {
        "experiment": runs.EXPERIMENT,
        "dataset": runs.case_name(table, variant),
        "sha256": "0",
        "method": method,
        "recipe": variants.RECIPE,
        "seed": seed,
        "status": status,
        "n": 100,
        "empty_rows": 0,
        "empty_columns": 0,
    }
    if status == "ok":
        extra = {} if whole is None else {"nmi_whole_rows": whole}
        made["scores"] = {"nmi": nmi} | extra
    return made


FEW, MANY = Variant(NUMBERS, 0.2, AT_RANDOM), Variant(NUMBERS, 0.4, AT_RANDOM)
WHOLE = Variant(NUMBERS)


def test_costs_and_leads_by_hand():
    """Seed 1 of DECCS on zoo has no complete run, so it takes no part in the cost."""
    made = [
        record("deccs", "zoo", WHOLE, 0.8),
        record("deccs", "zoo", FEW, 0.7),
        record("deccs", "zoo", FEW, 0.1, seed=1),
        record("deccs", "vehicle", WHOLE, 0.4),
        record("deccs", "vehicle", FEW, 0.5),
        record("mean", "zoo", FEW, 0.6),
        record("mean", "zoo", WHOLE, 0.9),
        record("drop", "zoo", FEW, 0.2),
        record("mean", "vehicle", FEW, 0.0, status="failed"),
    ]
    values, names = summary.values_of(made), ["zoo", "vehicle"]
    cost = summary.differences(values, summary.to_complete("deccs", [FEW]), names)
    assert cost == {"zoo": pytest.approx(-0.1), "vehicle": pytest.approx(0.1)}
    lead = summary.differences(values, summary.ahead_of("mean", [FEW]), names)
    assert lead == {"zoo": pytest.approx(0.1)}  # on the seed and the table that both have
    dropped = summary.differences(values, summary.to_complete("drop", [FEW]), names)
    assert dropped == {"zoo": pytest.approx(0.2 - 0.9)}  # a complete table loses no row: as "mean"


def test_a_bar_is_met_by_the_mean_over_tables():
    made = []
    for table, few in (("zoo", 0.7), ("vehicle", 0.79), ("wine", 0.9)):
        made += [record("deccs", table, WHOLE, 0.8), record("deccs", table, FEW, few)]
    bar = summary.BARS[0]
    spread = bar.measured(made, sets.DEVELOPMENT)
    assert spread.mean == pytest.approx(-0.055) and spread.deviation == pytest.approx(0.045)
    assert (spread.n_tables, spread.worst_table) == (2, "zoo")
    assert tables.verdict(bar.above, spread).endswith("not met")
    judged = bar.measured(made, sets.JUDGING)
    assert judged.mean == pytest.approx(0.1) and tables.verdict(bar.above, judged).endswith(": met")


def test_dropping_is_also_compared_on_the_rows_it_keeps():
    made = [
        record("deccs", "zoo", FEW, 0.9, whole=0.6),
        record("drop", "zoo", FEW, 0.2, whole=0.7),
    ]
    by_words = {bar.words: bar.measured(made, ["zoo"]) for bar in summary.BARS}
    assert by_words["20 % missing, ahead of `drop`, all rows"].mean == pytest.approx(0.7)
    kept = by_words["20 % missing, ahead of `drop`, rows without gaps"]
    assert kept.mean == pytest.approx(-0.1)
    assert by_words["categories less numbers"] is None


def test_records_of_an_older_recipe_do_not_count(monkeypatch):
    monkeypatch.setitem(METHODS, "mean", methods.Way("mean", None, recipe=variants.RECIPE + 1))
    assert not summary.values_of([record("mean", "zoo", WHOLE, 0.5)])


def test_the_page_by_hand(tmp_path):
    out = tmp_path / "r.jsonl"
    assert tables.page_text(out) == "No records yet."
    for made in (
        record("deccs", "zoo", WHOLE, 0.8),
        record("deccs", "zoo", Variant(CATEGORIES), 0.78),
        record("deccs", "zoo", MANY, 0.7),
        record("mean", "zoo", MANY, 0.45),
        record("mean", "zoo", WHOLE, 0.75),
        record("drop", "zoo", MANY, 0, status="failed"),
    ):
        records.append(out, made)
    text = tables.page_text(out)
    gap = "40 % missing at random"
    assert f"| {gap} | deccs | 0.700 | 1 | -0.100 ± 0.000 | -0.100 zoo |" in text
    mean = (
        f"| {gap} | mean | 0.450 | 1 | -0.300 ± 0.000 | -0.300 zoo |  |  |  |  | +0.250 ± 0.000 |"
    )
    assert mean in text
    assert "| development | deccs | 0.800 |  | 0.780 |  | -0.020 ± 0.000 | -0.020 zoo |" in text
    assert "above -0.05 | **-0.020** ± 0.000 over 1, worst -0.020 zoo: met |  |" in text
    assert "judging tables" not in text
    assert "drop 1 (failed on zoo)" in text


def test_one_row_a_table_needs_all_variants_with_20_percent_missing():
    made = [
        record("mean", "zoo", variant, nmi)
        for variant, nmi in zip(summary.AT_MAIN_SHARE, (0.1, 0.2, 0.3, 0.4), strict=True)
    ]
    (section,) = tables.by_table(summary.values_of(made))
    assert section.rows == [["zoo", "development", "", "", "0.250", "", "", "", ""]]
    assert not tables.by_table(summary.values_of(made[:3]))
