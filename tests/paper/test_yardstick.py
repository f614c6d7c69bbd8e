"""The yardstick: methods over a folder of data sets."""

import json
import pickle
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import typer
from numpy.testing import assert_array_equal
from typer.testing import CliRunner

from deccs.datasets.sources import content_sha256
from deccs_paper import commands, records
from deccs_paper.processes import Workers
from deccs_paper.yardstick import by_dataset, command, methods, runs, summary, tables, timed
from deccs_paper.yardstick.methods import METHODS, RECIPE, Candidates, Clustering, Method, Task
from deccs_paper.yardstick.pool import read_pool

ROOT = Path(__file__).parents[2]


def write_pool(folder, *names, n=40, columns=5, noise=0):
    """Two separate blobs under each name; the last ``noise`` rows have no class."""
    folder.mkdir(exist_ok=True)
    for number, name in enumerate(names):
        rng = np.random.default_rng(number)
        y = np.repeat([0, 1], n // 2)
        X = rng.normal(size=(n, columns)) + 20 * y[:, None]
        y[n - noise :] = -1
        np.savez(folder / f"{name}.npz", X=X, y=y)
    return folder


def record(method, dataset, nmi, *, seed=0, d=5, cpu=1.0, status="ok", recipe=RECIPE, **scores):
    made = {
        "experiment": runs.EXPERIMENT,
        "dataset": dataset,
        "sha256": "0",
        "method": method,
        "recipe": recipe,
        "seed": seed,
        "status": status,
        "d": d,
    }
    if status == "ok":
        made |= {"scores": {"nmi": nmi, "ami": nmi, "ari": nmi} | scores, "cpu_seconds": cpu}
    return made


@pytest.fixture
def in_this_process(monkeypatch):
    """Fork from the tests' process, where methods may be made up."""
    monkeypatch.setattr(
        command,
        "workers_for",
        lambda waiting, jobs: Workers(jobs, None, runs.carry_out, "fork", headers=runs.headers),
    )


@pytest.fixture
def made_up(monkeypatch):
    """Add a method for one test."""

    def add(name, cluster, **facts):
        monkeypatch.setitem(METHODS, name, Method(name, cluster, **facts))

    return add


def yardstick(folder, wanted, out, *, n_seeds=1, again=False, page=None):
    command.command(folder, wanted, None, n_seeds, jobs=1, out=out, page=page, again=again)


# The folder


def test_data_sets_with_few_rows_come_first_and_rows_without_a_class_are_no_class(tmp_path):
    write_pool(tmp_path, "a", n=60)
    write_pool(tmp_path, "b", n=40, noise=3)
    first, second = read_pool(tmp_path)
    assert (first.name, first.n, first.d, first.k) == ("b", 40, 5, 2)
    assert second.name == "a" and second.sha256 != first.sha256


def test_a_folder_must_have_data_and_a_file_both_arrays(tmp_path):
    with pytest.raises(ValueError, match=r"has no \.npz files"):
        read_pool(tmp_path)
    np.savez(tmp_path / "x.npz", X=np.zeros((3, 2)))
    with pytest.raises(ValueError, match="has no array y"):
        read_pool(tmp_path)
    np.savez(tmp_path / "x.npz", X=np.zeros((3, 2)), y=np.zeros(2))
    with pytest.raises(ValueError, match=r"shapes \(3, 2\) and \(2,\)"):
        read_pool(tmp_path)


# Scores


def test_the_surest_95_percent_by_hand():
    """The only wrong label of 20 is the least sure one: without it the score is 1."""
    y = np.repeat([0, 1], 10)
    labels = y.copy()
    labels[3] = 1
    confidence = np.linspace(0.6, 0.9, 20)
    confidence[3] = 0.5
    result = runs.scores_of(y, Clustering(labels, confidence))
    assert result["nmi"] < 0.8 and result["nmi_surest"] == 1.0
    assert result["surest_share"] == pytest.approx(0.95)


def test_equal_confidences_leave_no_point_out():
    y, labels = np.repeat([0, 1], 10), np.tile([0, 0, 0, 1], 5)
    result = runs.scores_of(y, Clustering(labels, np.ones(20)))
    assert result["surest_share"] == 1.0 and result["nmi_surest"] == result["nmi"]


def test_rows_without_a_class_do_not_count():
    y = np.array([0, 0, 1, 1, -1, -1])
    labels, covered = np.array([0, 0, 1, 1, 0, 1]), np.array([1, 1, 1, 0, 0, 0], dtype=bool)
    result = runs.scores_of(y, Clustering(labels, covered=covered))
    assert result["nmi"] == result["ami"] == result["ari"] == 1.0
    assert result["covered_share"] == 0.75 and result["nmi_covered"] == 1.0
    assert "nmi_surest" not in result


def test_regret_by_hand():
    """The second candidate is right on all rows with a class; the result has no information."""
    y = np.array([0, 0, 1, 1, -1])
    partitions = np.array([[0, 1, 0, 1, 0], [1, 1, 0, 0, 0], [0, 1, 0, 1, 1]])
    names = ("raw kmeans", "kmeans, round 1", "consensus of the views")
    result = Clustering(np.array([0, 1, 0, 1, 1]), candidates=Candidates(names, partitions))
    scores = runs.scores_of(y, result)
    assert (scores["regret"], scores["best_candidate"], scores["consensus_nmi"]) == (1.0, 1.0, 0.0)
    rounds_only = Candidates(names[:2], partitions[:2])
    scores = runs.scores_of(y, Clustering(partitions[1], candidates=rounds_only))
    assert scores["regret"] == 0.0 and "consensus_nmi" not in scores
    assert "regret" not in runs.scores_of(y, Clustering(partitions[1]))


# Methods


@pytest.mark.parametrize(
    "name",
    [
        "kmeans",
        "mixture",
        "ward",
        "sklearn spectral",
        "our spectral",
        "our agglomerative",
        "our manifold+mixture",
        "our manifold+agglomerative",
    ],
)
def test_plain_methods_separate_two_blobs_whatever_their_scale(name, tmp_path):
    (file,) = read_pool(write_pool(tmp_path, "blobs"))
    X, y = np.load(file.path)["X"], np.load(file.path)["y"]
    X[:, 2] = 1e6 * np.random.default_rng(0).normal(size=len(X))  # noise, large without scaling
    task, method = Task(X, 2, seed=0), METHODS[name]
    labels = method.cluster(task, *([method.shared(task)] if method.shared else [])).labels
    assert runs.scores_of(y, Clustering(labels))["nmi"] == 1.0


def test_consensus_over_views_combines_raw_data_and_the_embedding(monkeypatch, tmp_path):
    """UMAP may not be installed here: the embedding is one column of the data."""
    monkeypatch.setattr(methods, "umap_embedding", lambda task: task.scaled[:, :1])
    (file,) = read_pool(write_pool(tmp_path, "blobs"))
    with np.load(file.path) as arrays:
        X, y = arrays["X"], arrays["y"]
    members = methods.views(Task(X, 2, seed=0))
    assert len(members) == 8 and members[4][0] == "kmeans of UMAP"
    for function in ("nmf", "lwgp", "eac"):
        result = methods.combined(Task(X, 2, seed=0), members, function)
        scores = runs.scores_of(y, result)
        assert scores["nmi"] == 1.0 and result.confidence.shape == (40,), function


def test_principal_components_only_where_there_are_more_columns_than_50():
    rng = np.random.default_rng(0)
    narrow, wide = Task(rng.normal(size=(80, 50)), 2, 0), Task(rng.normal(size=(80, 60)), 2, 0)
    assert narrow.components is narrow.scaled
    assert wide.components.shape == (80, 50)
    assert Task(rng.normal(size=(30, 60)), 2, 0).components.shape == (30, 30)


def test_noise_everywhere_is_one_cluster():
    result = methods.with_noise_filled(np.zeros((3, 1)), np.full(3, -1), np.zeros(3))
    assert_array_equal(result.labels, [0, 0, 0])
    assert runs.scores_of(np.array([0, 0, 1]), result)["nmi_covered"] == 0.0


def test_our_methods_return_labels_and_their_confidence():
    from deccs.consensus import ConsensusClustering

    X = np.concatenate([np.zeros((10, 2)), np.ones((10, 2))]) + np.arange(20)[:, None] / 100
    result = methods.fitted(ConsensusClustering(2, random_state=0), X)
    assert_array_equal(result.labels, np.repeat([0, 1], 10))
    assert_array_equal(result.confidence, np.ones(20))  # all members agree


def test_deccs_returns_its_candidates_and_where_its_labels_are_from(small, blobs):
    result = methods.fitted(small(n_rounds=0, views="auto"), blobs.X)
    chosen = result.candidates
    assert runs.CONSENSUS in chosen.names and result.label_source in chosen.names
    assert chosen.partitions.shape == (len(chosen.names), 180)
    scores = runs.scores_of(blobs.y, result)
    assert scores["nmi"] == scores["best_candidate"] == 1.0 and scores["regret"] == 0.0
    without = methods.fitted(small(n_rounds=0), blobs.X)
    assert without.candidates is None and without.label_source == "kmeans"


def test_candidates_of_a_sample_are_left_out():
    """A fitted model does not say which rows it drew."""
    candidate = SimpleNamespace(name="raw kmeans", labels=np.zeros(3, dtype=int))
    model = SimpleNamespace(labels_=np.zeros(4, dtype=int), candidates_=[candidate])
    assert methods.candidates_of(model) is None
    model.labels_ = np.zeros(3, dtype=int)
    assert methods.candidates_of(model).names == ("raw kmeans",)


def test_deep_methods_are_run_by_name_only():
    by_default = {name for name, method in METHODS.items() if method.by_default}
    left_out = {"AutoencoderConsensus", "IDEC", "SpectralNet", "AGAE"}
    assert METHODS.keys() - by_default == left_out
    assert {"DECCS", "DECCS, paper's members only"} <= by_default


# Runs


def test_rows_are_shuffled_by_the_seed_and_results_put_back_into_file_order(made_up, tmp_path):
    """Rows of the file are numbered in their first column; the last 20 are the second class."""
    folder = write_pool(tmp_path, "a")
    with np.load(folder / "a.npz") as arrays:
        X, y = arrays["X"], arrays["y"]
    X[:, 0] = np.arange(40)
    np.savez(folder / "a.npz", X=X, y=y)
    (file,) = read_pool(folder)
    seen = []

    def by_number(task):
        rows = task.X[:, 0].astype(int)
        seen.append(rows)
        labels = (rows >= 20).astype(int)
        wrong = rows == 7
        choice = Candidates(("right",), labels[None])
        return Clustering(labels ^ wrong, 1.0 - wrong, ~wrong, "nowhere", choice)

    for name in ("first", "second"):
        made_up(name, by_number)
    made = [
        *runs.carry_out(runs.PoolRun(file, 0, ("first", "second"))),
        *runs.carry_out(runs.PoolRun(file, 1, ("first",))),
    ]
    for rows in seen:
        assert_array_equal(np.sort(rows), np.arange(40))
        assert 0 < (np.diff(y[rows]) != 0).sum() != 1  # classes are mixed
    assert_array_equal(seen[0], seen[1])
    assert (seen[0] != seen[2]).any()
    for one in made:
        scores = one["scores"]
        assert scores["nmi_surest"] == scores["nmi_covered"] == scores["best_candidate"] == 1.0
        assert scores["regret"] == pytest.approx(1 - scores["nmi"], abs=1e-6)
        assert scores["nmi"] < 0.95 and one["label_source"] == "nowhere"
        assert one["recipe"] == RECIPE == 2


def test_one_record_a_run_with_what_it_was_made_with(tmp_path, in_this_process):
    folder, out = write_pool(tmp_path / "pool", "blobs", noise=2), tmp_path / "r.jsonl"
    yardstick(folder, "kmeans,mixture", out, n_seeds=2)
    made = list(records.read(out))
    assert [(one["method"], one["seed"]) for one in made] == [
        ("kmeans", 0),
        ("mixture", 0),
        ("kmeans", 1),
        ("mixture", 1),
    ]
    for one in made:
        assert (one["dataset"], one["n"], one["d"], one["k"]) == ("blobs", 40, 5, 2)
        assert one["status"] == "ok" and one["scores"]["nmi"] == 1.0
        assert one["cpu_seconds"] > 0 and one["wall_seconds"] > 0
        assert one["peak_memory_mb"] >= one["memory_before_mb"] > 50
        assert one["versions"]["scikit-learn"] and one["code"] and len(one["sha256"]) == 64
    assert "nmi_surest" in made[1]["scores"] and "nmi_surest" not in made[0]["scores"]


def test_a_run_with_a_record_is_not_repeated_unless_the_data_or_the_recipe_changed(
    tmp_path, in_this_process, monkeypatch
):
    folder, out = write_pool(tmp_path / "pool", "a", "b"), tmp_path / "r.jsonl"
    yardstick(folder, "kmeans", out)
    yardstick(folder, "kmeans", out)
    assert len(list(records.read(out))) == 2
    write_pool(folder, "b", n=60)
    yardstick(folder, "kmeans", out)
    assert [one["n"] for one in records.read(out)] == [40, 40, 60]
    newer = Method("kmeans", METHODS["kmeans"].cluster, recipe=RECIPE + 1)
    monkeypatch.setitem(METHODS, "kmeans", newer)
    yardstick(folder, "kmeans", out)
    assert len(list(records.read(out))) == 5


def test_a_method_that_fails_is_a_row_and_is_repeated_on_request(
    tmp_path, in_this_process, made_up
):
    def breaks(task):
        raise RuntimeError("no luck")

    made_up("breaks", breaks)
    folder, out = write_pool(tmp_path / "pool", "a"), tmp_path / "r.jsonl"
    with pytest.raises(typer.Exit):
        yardstick(folder, "breaks,kmeans", out)
    yardstick(folder, "breaks,kmeans", out)
    assert len(list(records.read(out))) == 2
    with pytest.raises(typer.Exit):
        yardstick(folder, "breaks,kmeans", out, again=True)
    failed, fine, _ = records.read(out)
    assert failed["status"] == "failed" and failed["error"] == "RuntimeError: no luck"
    assert fine["status"] == "ok"


def test_what_is_not_installed_is_a_row_and_fails_nothing(tmp_path, in_this_process, made_up):
    made_up("elsewhere", None, needs=("no_such_module",))
    folder, out = write_pool(tmp_path / "pool", "a"), tmp_path / "r.jsonl"
    yardstick(folder, "elsewhere,kmeans", out)
    yardstick(folder, "elsewhere,kmeans", out)
    assert [one["status"] for one in records.read(out)] == ["not installed", "ok"]
    assert "elsewhere on a" in " ".join(tables.gaps(list(records.read(out))))


def test_methods_with_a_shared_part_run_it_once_and_each_pays_for_it(
    tmp_path, in_this_process, made_up
):
    def prepare(task):
        with open(tmp_path / "prepared", "a") as file:
            file.write("x")
        sum(range(2_000_000))
        return np.repeat([0, 1], 20)

    for name in ("first", "second"):
        made_up(name, lambda task, labels: Clustering(labels), shared=prepare)
    folder, out = write_pool(tmp_path / "pool", "a"), tmp_path / "r.jsonl"
    yardstick(folder, "first,second", out)
    made = list(records.read(out))
    assert (tmp_path / "prepared").read_text() == "x"
    assert [one["status"] for one in made] == ["ok", "ok"]
    assert all(one["cpu_seconds"] > 0.005 for one in made)


def test_a_shared_part_that_fails_makes_each_of_its_rows_fail(tmp_path, made_up):
    def prepare(task):
        raise RuntimeError("no luck")

    for name in ("first", "second"):
        made_up(name, lambda task, labels: Clustering(labels), shared=prepare)
    (file,) = read_pool(write_pool(tmp_path, "a"))
    made = runs.carry_out(runs.PoolRun(file, 0, ("first", "second")))
    assert [one["status"] for one in made] == ["failed", "failed"]


def test_a_task_has_no_true_labels():
    assert set(Task.__dataclass_fields__) == {"X", "k", "seed"}


def test_unknown_names_are_errors(tmp_path, capsys):
    folder = write_pool(tmp_path / "pool", "a")
    with pytest.raises(typer.Exit):
        yardstick(folder, "kmeens", tmp_path / "r.jsonl")
    assert "Did you mean 'kmeans'?" in capsys.readouterr().err


# The summary


def test_ranks_wins_and_losses_by_hand():
    made = [
        *(record("DECCS", name, nmi) for name, nmi in zip("abc", (0.5, 0.9, 0.7), strict=True)),
        *(record("kmeans", name, nmi) for name, nmi in zip("abc", (0.6, 0.9, 0.1), strict=True)),
        *(record("ward", name, nmi) for name, nmi in zip("abc", (0.505, 0.8, 0.706), strict=True)),
    ]
    result = summary.compare(summary.values_of(made), ["DECCS", "kmeans", "ward"], "abc")
    rows = {row.method: row for row in result.rows}
    # a: kmeans, ward, DECCS; b: DECCS and kmeans share places 1 and 2; c: ward, DECCS, kmeans
    assert rows["DECCS"].quantities["rank"].value == pytest.approx((3 + 1.5 + 2) / 3)
    assert rows["kmeans"].quantities["rank"].value == pytest.approx((1 + 1.5 + 3) / 3)
    assert rows["ward"].quantities["rank"].value == pytest.approx((2 + 3 + 1) / 3)
    assert rows["DECCS"].against is None
    kmeans, ward = rows["kmeans"].against, rows["ward"].against
    assert (kmeans.wins, kmeans.losses, kmeans.ties) == (1, 1, 1)
    assert (ward.wins, ward.losses, ward.ties) == (1, 1, 1)  # 0.505 to 0.5 is still a tie
    assert [row.method for row in result.rows] == ["DECCS", "ward", "kmeans"]


def test_the_bootstrap_of_a_constant_is_the_constant():
    draws = summary.resamples(7)
    assert draws.shape == (2_000, 7)
    assert summary.mean_of(np.full(7, 0.25), draws) == summary.Estimate(0.25, 0.25, 0.25)


def test_the_bootstrap_of_two_values_by_hand():
    """The mean of two draws from 0 and 1 is 0 or 1 in a quarter of the resamples each."""
    assert summary.mean_of(np.array([0.0, 1.0]), summary.resamples(2)) == summary.Estimate(
        0.5, 0, 1
    )


def test_seeds_are_averaged_before_data_sets_are_compared():
    made = [record("a", "x", 0.2), record("a", "x", 0.4, seed=1), record("b", "x", 0.3)]
    values = summary.values_of(made)
    assert values["a"]["x"]["nmi"] == pytest.approx(0.3)
    assert summary.compare(values, ["a", "b"], ["x"]).rows[0].quantities["rank"].value == 1.5


def test_methods_are_compared_on_what_all_of_them_have():
    made = [record("a", "x", 0.2), record("a", "y", 0.9), record("b", "x", 0.3)]
    made.append(record("b", "y", 0, status="failed"))
    result = summary.compare(summary.values_of(made), ["a", "b"], ["x", "y"])
    assert result.datasets == ("x",)
    assert [row.method for row in result.rows] == ["b", "a"]


def test_a_success_counts_more_than_a_later_failure_and_an_old_recipe_not_at_all(made_up):
    made_up("a", None, recipe=2)
    made = [
        record("a", "x", 0.9, recipe=1),
        record("a", "x", 0.5, recipe=2),
        record("a", "x", 0, recipe=2, status="failed"),
    ]
    assert summary.values_of(made)["a"]["x"]["nmi"] == 0.5


def test_shapes_have_at_most_three_columns():
    made = [record("a", "flat", 0.5, d=3), record("a", "wide", 0.5, d=4)]
    assert summary.shapes_and_tables(made) == {"tables": {"wide"}, "shapes": {"flat"}}


def test_a_quantity_that_a_method_lacks_on_some_data_set_is_left_out():
    made = [record("a", "x", 0.5, nmi_surest=0.6), record("a", "y", 0.5)]
    (row,) = summary.compare(summary.values_of(made), ["a"], "xy").rows
    assert row.quantities["nmi_surest"] is None
    assert tables.number(row.quantities["nmi_surest"], ".3f") == ""


def test_few_data_sets_do_not_take_the_others_from_the_table():
    """A method that has only begun is compared by itself, on what it has."""
    names = [f"set{number}" for number in range(10)]
    made = [record("kmeans", name, 0.5) for name in names]
    made += [record("ward", name, 0.6) for name in names[:9]]
    made += [record("DECCS", name, 0.7) for name in names[:5]]
    made += [record("IDEC", name, 0.7) for name in names[:1]]
    titles = dict(tables.comparisons(made))
    assert [len(one.rows) for one in titles.values()] == [2, 3, 2, 3]
    assert list(titles)[:2] == [
        "all data sets: 9 of 10",
        "all data sets, every method: the 5 that all of them have",
    ]
    assert tables.remarks(made) == ["On too few data sets for a table: IDEC (1)."]


def test_there_is_no_table_of_every_method_over_few_data_sets():
    made = [record("kmeans", f"set{number}", 0.5) for number in range(10)]
    made += [record("DECCS", f"set{number}", 0.5) for number in range(4)]
    assert list(dict(tables.comparisons(made))) == ["all data sets: 10 of 10", "tables: 10 of 10"]


def test_the_choice_of_deccs_by_hand():
    """Regrets of .1 and .3. One data set in two is below the consensus of the views, by .2."""
    made = [
        record("DECCS", "a", 0.6, regret=0.05, consensus_nmi=0.6),
        record("DECCS", "a", 0.6, seed=1, regret=0.15, consensus_nmi=0.604),
        record("DECCS", "b", 0.5, regret=0.3, consensus_nmi=0.7),
        record("DECCS", "large", 0.5),
        record("DECCS, paper's members only", "a", 0.1),
    ]
    choice = summary.choice_of(summary.values_of(made)["DECCS"])
    assert (choice.n_datasets, choice.n_compared) == (2, 2)
    assert choice.regret.value == pytest.approx(0.2) and choice.regret.low == pytest.approx(0.1)
    assert choice.below == summary.Estimate(0.5, 0, 1)  # .602 to .6 is still a tie
    assert choice.largest_loss == (pytest.approx(0.2), "b")
    (text,) = tables.choice_text(made)
    assert text == (
        "What DECCS chose: mean regret 0.200 (0.100 to 0.300) over 2 data sets; share of data sets "
        "below the consensus of the views 0.50 (0.00 to 1.00) of 2; largest loss against it 0.200, "
        "on b."
    )
    assert not tables.choice_text(made[3:])


# The speed of fits


def test_what_is_timed_is_the_same_each_time_and_goes_to_other_processes(monkeypatch):
    monkeypatch.setattr(timed, "file_at_hand", lambda name: None)
    sets = timed.timed_sets()
    sizes = [(one.name, one.n, one.d, one.k) for one in sets]
    assert sizes == [
        ("iris", 150, 4, 3),
        ("wine", 178, 13, 3),
        ("breast cancer", 569, 30, 2),
        ("bent blobs", 5_000, 64, 10),
    ]
    again = pickle.loads(pickle.dumps(sets[3]))
    assert again == sets[3] and content_sha256(*again.arrays()) == sets[3].sha256


def test_bent_blobs_can_be_told_apart():
    X, y = timed.bent_blobs(n=500)
    result = METHODS["mixture"].cluster(Task(X, 10, seed=0))
    assert runs.scores_of(y, result)["nmi"] > 0.8


def test_fits_are_timed_once_and_told_from_those_of_the_pool(
    tmp_path, in_this_process, made_up, capsys
):
    for name in timed.COMPARED:
        made_up(name, METHODS["kmeans"].cluster)
    out = tmp_path / "r.jsonl"
    for _ in range(2):
        command.timed_command("wine,iris", 1, jobs=1, out=out, again=False)
    made = list(records.read(out))
    assert [(one["dataset"], one["method"]) for one in made] == [
        ("iris", "DECCS"),
        ("iris", "umap+mixture"),
        ("wine", "DECCS"),
        ("wine", "umap+mixture"),
    ]
    assert {one["experiment"] for one in made} == {"speed of fits"}
    assert "speed of fits" in capsys.readouterr().out
    assert tables.page_text(out) == "No records yet."


def test_the_table_of_speed_by_hand():
    """The median of 2, 3 and 10 seconds is 3, which is a third of 9."""
    made = [record("DECCS", "a", 0.5, seed=seed, cpu=cpu) for seed, cpu in enumerate((2, 10, 3))]
    made += [record("umap+mixture", "a", 0.4, cpu=9.0), record("DECCS", "b", 0.9)]
    facts = {"experiment": timed.EXPERIMENT, "n": 1_500, "peak_memory_mb": 1_234.5}
    made = [one | facts for one in made] + [record("DECCS", "of the pool", 0.1)]
    first, second = timed.cells(made)
    assert first == [
        *("a", "1,500", "5", "3.0", "9.0", "0.3"),
        *("0.500", "0.400", "1,234", "1,234"),
    ]
    assert second[3:6] == ["1.0", "", ""]
    assert len(timed.heads()) == len(first)


def test_timed_takes_no_folder_and_everything_else_needs_one(tmp_path):
    app = typer.Typer()
    app.command()(commands.yardstick)
    for words in ([str(tmp_path), "--timed"], []):
        assert CliRunner().invoke(app, words).exit_code == 2


# The page


def test_the_page_is_rewritten_from_the_records(tmp_path, in_this_process):
    folder, out, page = write_pool(tmp_path / "pool", "a"), tmp_path / "r.jsonl", tmp_path / "p.md"
    page.write_text(f"before\n{tables.PAGE.begin}\n{tables.PAGE.end}\nafter\n")
    yardstick(folder, "kmeans,ward", out, page=page)
    text = page.read_text()
    assert "| kmeans | 1.000 (1.000 to 1.000) |" in text and text.endswith("after\n")
    assert text == tables.PAGE.put_into(text, tables.page_text(out))


def test_a_page_without_records_that_count_says_so(tmp_path):
    out = tmp_path / "r.jsonl"
    assert tables.page_text(out) == "No records yet."
    records.append(out, record("kmeans", "a", 0.5, recipe=RECIPE - 1))
    assert tables.page_text(out) == "No records yet."


def test_the_published_page_is_that_of_the_published_records():
    text = (ROOT / "docs" / "pool.md").read_text(encoding="utf-8")
    content = tables.page_text(ROOT / "results" / "pool.jsonl")
    assert text == tables.PAGE.put_into(text, content), f"run: {tables.PAGE.command}"


def test_published_records_are_complete():
    path = ROOT / "results" / "pool.jsonl"
    for line in path.read_text().splitlines():
        one = json.loads(line)
        assert {"dataset", "sha256", "n", "d", "k", "method", "seed", "status"} <= one.keys()


def test_reproduce_leaves_records_of_the_yardstick_alone():
    assert not records.read_all([ROOT / "results" / "pool.jsonl"])


def test_the_table_by_data_set_by_hand(tmp_path, in_this_process):
    made = [
        record("DECCS", "usps", nmi, seed=seed, cpu=50.0, nmi_surest=0.9)
        | {"peak_memory_mb": 400.0 + seed}
        for seed, nmi in enumerate((0.8, 0.9))
    ]
    made.append(record("evoc", "usps", 0.7, nmi_covered=0.95))
    made.append(record("umap+mixture", "usps", 0.6, cpu=5.4))
    made.append(record("kmeans", "usps", 0.5, status="failed"))
    out = tmp_path / "records.jsonl"
    for one in made:
        records.append(out, one)
    assert by_dataset.rivals_table(out).splitlines()[2:] == [
        "| USPS | **0.850 ± 0.050** (2) | 0.900 | 0.600 | 0.700 / 0.950 |  | 50 / 5 | 401 |"
    ]
    page = tmp_path / "page.md"
    page.write_text(f"{by_dataset.RIVALS.begin}\n{by_dataset.RIVALS.end}")
    command.command(
        write_pool(tmp_path / "pool", "usps"),
        "kmeans",
        None,
        1,
        jobs=1,
        out=out,
        page=page,
        again=False,
    )
    assert "0.850 ± 0.050" in page.read_text()
