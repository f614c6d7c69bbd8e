"""Rules for the number of clusters, compared over folders of data sets."""

import json
import pickle
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

import deccs
from deccs_paper import commands, records
from deccs_paper.how_many import command, measures, no_clusters, rules, runs, tables
from deccs_paper.how_many.rules import FIT, RULES, Question, Ranking, Rule
from deccs_paper.how_many.runs import RuleRun
from deccs_paper.processes import Workers
from deccs_paper.yardstick import command as yardstick_command
from deccs_paper.yardstick.pool import read_pool
from deccs_paper.yardstick.runs import carry_out, headers, row_order

ROOT = Path(__file__).parents[2]
RECORDS = ROOT / "results" / "how-many.jsonl"


def blobs(k=4, n=120, d=2, spread=0.05):
    """Round clusters on a circle, far apart: (n, d), in order."""
    rng = np.random.default_rng(0)
    angle = 2 * np.pi * np.arange(k) / k
    centers = np.zeros((k, d))
    centers[:, :2] = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    return np.repeat(centers, n // k, axis=0) + spread * rng.normal(size=(n, d))


def write_folder(folder, *names, k=4):
    folder.mkdir(exist_ok=True)
    for name in names:
        np.savez(folder / f"{name}.npz", X=blobs(k), y=np.repeat(np.arange(k), 120 // k))
    return folder


def record(rule, dataset, chosen, truth, *, seed=0, others=(), cpu=1.0, status="ok", **more):
    made = {
        "experiment": runs.EXPERIMENT,
        "dataset": dataset,
        "sha256": "0",
        "n": 100,
        "d": 2,
        "k": truth,
        "method": rule,
        "recipe": 1,
        "seed": seed,
        "status": status,
    }
    if status == "ok":
        made |= runs.measures_of(Ranking((chosen, *others)), truth) | {"cpu_seconds": cpu}
    return made | more


@pytest.fixture
def in_this_process(monkeypatch):
    """Fork from the tests' process, where rules may be made up."""
    monkeypatch.setattr(
        yardstick_command,
        "workers_for",
        lambda waiting, jobs: Workers(jobs, None, carry_out, "fork", headers=headers),
    )


@pytest.fixture
def made_up(monkeypatch):
    """Add a rule for one test."""

    def add(name, answer, **facts):
        monkeypatch.setitem(RULES, name, Rule(name, answer, **facts))

    return add


def how_many(folders, wanted, out, *, n_seeds=1, page=None, again=False, without=False, fits=False):
    command.command(
        folders,
        wanted,
        n_seeds,
        without_clusters=without,
        fits=fits,
        jobs=1,
        out=out,
        page=page,
        again=again,
    )


# Measures


def test_what_is_right_by_hand():
    """Truth 10 has room for 1, truth 11 for a fifth of it, which is 2."""
    assert [k for k in range(1, 30) if measures.is_right(k, 10)] == [9, 10, 11]
    assert [k for k in range(1, 30) if measures.is_right(k, 11)] == [9, 10, 11, 12, 13]
    assert [k for k in range(1, 30) if measures.is_near(k, 4)] == [2, 3, 4, 5, 6]
    assert [k for k in range(1, 30) if measures.is_near(k, 15)] == [12, 13, 14, 15, 16, 17, 18]
    assert [k for k in range(1, 30) if measures.is_right(k, 1)] == [1, 2]


@pytest.mark.parametrize("n_rows", [50, 200, 10_000])
def test_every_truth_has_a_number_tried_that_counts_as_it(n_rows):
    """Steps of 8 % leave no truth out: the next number is never more than 5 % away."""
    ks = rules.numbers_to_try(n_rows)
    assert all(any(measures.is_truth(k, truth) for k in ks) for truth in range(2, ks[-1] + 1))
    assert list(ks) == sorted(set(ks))


def test_nearer_measures_are_stricter():
    for truth in range(1, 130):
        for k in range(1, 200):
            right = measures.is_right(k, truth)
            assert measures.is_truth(k, truth) <= measures.is_within_1(k, truth) <= right
            assert right <= measures.is_near(k, truth)


def test_ranks_by_hand():
    made = runs.measures_of(Ranking((2, 9, 5, 6)), truth=6)
    assert (made["rank_right"], made["rank_truth"]) == (3, 4)
    assert measures.among_first(made["rank_right"]) and not measures.among_first(made["rank_truth"])
    assert made["octaves"] == pytest.approx(np.log2(3), abs=1e-4)
    assert runs.measures_of(Ranking((3,)), truth=6)["rank_truth"] is None


# Rules


RANK_ALL = [
    name
    for name, rule in RULES.items()
    if name not in ("HDBSCAN", "UMAP + HDBSCAN", "EVoC", "always 3", "deccs", FIT)
]


def answer(name, X, seed=0):
    rule, question = RULES[name], Question(X, seed)
    return rule.cluster(question, *([rule.shared(question)] if rule.shared else []))


@pytest.mark.parametrize(
    "name", [*sorted({*RANK_ALL, "HDBSCAN"} - {"eigengap", "Calinski-Harabasz on manifold"})]
)
def test_three_round_clusters_at_equal_distances_are_three(name):
    """Two of them can be joined in three ways: no rule should like that better."""
    ranking = answer(name, blobs(k=3)[row_order(120, 0)])
    best = 1 if name == "agreement" else 0  # all methods join the same two: a tie of 2 and 3
    assert ranking.candidates[best] == 3
    if name in RANK_ALL and name != "gap statistic":  # which stops at its third candidate
        assert sorted(ranking.candidates) == list(rules.numbers_to_try(120))


def test_the_gap_statistic_answers_1_for_one_cluster():
    """Its next candidates fulfill the condition, too."""
    ranking = answer("gap statistic", np.random.default_rng(0).uniform(size=(200, 2)))
    assert ranking.k == 1 and list(ranking.candidates[:3]) == sorted(ranking.candidates[:3])


def test_the_eigengap_by_hand():
    """Three groups of 11, each joined to all of its group: eigenvalues 0, 0, 0, then 11/10."""
    X = np.repeat([[0.0, 0], [50, 0], [0, 50]], 11, axis=0)
    X += np.random.default_rng(0).normal(size=X.shape)
    assert answer("eigengap", X).k == 3


def test_pac_by_hand():
    """Of three pairs one was together in one of two draws: a third of the pairs is ambiguous."""
    draws = [np.array([0, 1, 2]), np.array([0, 1, 2])]
    shares = rules.consensus(draws, [np.array([0, 0, 1]), np.array([0, 1, 2])], n_rows=3)
    assert shares.tolist() == [0.5, 0, 0]
    assert rules.ambiguous_share(shares) == pytest.approx(1 / 3)


def test_davies_bouldin_by_hand():
    """Clusters of width 1 (mean distance to the center) and centers 10 apart: (1 + 1) / 10."""
    Z = np.array([[0.0], [2], [10], [12]])
    assert rules.low_davies_bouldin(Z, np.array([0, 0, 1, 1])) == pytest.approx(-0.2)


def test_a_mixture_of_many_columns_has_no_full_covariance():
    rng = np.random.default_rng(0)
    assert Question(rng.normal(size=(40, 20)), 0).covariance == "full"
    assert Question(rng.normal(size=(40, 21)), 0).covariance == "diag"


def test_resamples_are_80_percent_and_the_same_for_a_seed():
    first, again = (rules.resamples(Question(np.zeros((50, 2)), 3), 2) for _ in range(2))
    assert [len(rows) for rows in first] == [40, 40]
    assert all((one == other).all() for one, other in zip(first, again, strict=True))
    assert (first[0] != first[1]).any()


def test_noise_is_no_cluster_and_one_cluster_is_an_answer():
    X = np.random.default_rng(0).normal(size=(30, 2))
    assert answer("HDBSCAN", np.repeat(X[:1], 30, axis=0)).candidates == (1,)


def test_our_answer_comes_first_and_each_number_once(monkeypatch):
    """The data are those published, in the order of the run, and the seed is that of the run."""
    found = [SimpleNamespace(k=k) for k in (7, 4, 4, 2)]
    X, given = blobs(), []

    def count_clusters(rows, *, random_state):
        given.append((rows, random_state))
        return SimpleNamespace(n_clusters=4, candidates=found, is_clear=False)

    class Model:
        n_clusters_, k_candidates_, labels_ = 4, found, np.arange(120)

        def __init__(self, n_clusters, random_state):
            given.append((n_clusters, random_state))

        def fit(self, rows):
            given.append((rows, 3))

    monkeypatch.setattr(deccs, "count_clusters", count_clusters, raising=False)
    monkeypatch.setattr(deccs, "DECCS", Model)
    ranking, fitted = answer("deccs", X, seed=3), answer(FIT, X, seed=3)
    assert ranking.candidates == fitted.candidates == (4, 7, 2)
    assert ranking.clear is False and ranking.labels is None and len(fitted.labels) == 120
    assert [seed for _, seed in given] == [3, 3, 3] and given[1][0] == "auto"
    assert given[0][0] is given[2][0] is X


def test_a_question_has_no_true_labels_and_no_number():
    assert set(Question.__dataclass_fields__) == {"X", "seed"}


# Runs


def test_rules_are_shown_few_rows_and_the_record_says_how_many(tmp_path, made_up):
    seen = {}
    for name, most in (("few", 50), ("all", None)):

        def look(question, name=name):
            seen[name] = question.X
            return Ranking((4, 2), clear=name == "all")

        made_up(name, look, most_rows=most)
    (file,) = read_pool(write_folder(tmp_path, "a"))
    few, every = (carry_out(RuleRun(file, 0, (name,)))[0] for name in ("few", "all"))
    assert (few["n_shown"], every["n_shown"]) == (50, 120)
    assert (few["is_clear"], every["is_clear"]) == (False, True)
    expected = file.arrays()[0][row_order(120, 0)]
    assert (seen["all"] == expected).all() and (seen["few"] == expected[:50]).all()


def test_a_fit_is_scored_on_the_rows_with_a_class(tmp_path, made_up):
    """Labels are in the order of the run, y is in that of the file."""
    folder = write_folder(tmp_path, "a")
    X, y = blobs(), np.repeat(np.arange(4), 30)
    X[:, 0], y[0] = np.arange(120), -1
    np.savez(folder / "a.npz", X=X, y=y)
    (file,) = read_pool(folder)

    def by_number(question):
        return Ranking((4,), labels=(question.X[:, 0] // 30).astype(int))

    made_up("fit", by_number, most_rows=None)
    (made,) = carry_out(RuleRun(file, 1, ("fit",)))
    assert made["scores"] == {"nmi": 1.0, "ari": 1.0} and made["is_truth"]


def test_one_record_a_run_and_none_is_repeated(tmp_path, in_this_process):
    first, second = write_folder(tmp_path / "a", "x"), write_folder(tmp_path / "b", "y", k=3)
    out = tmp_path / "r.jsonl"
    how_many([first], "silhouette,gap statistic", out)
    how_many([first, second], "silhouette,gap statistic", out)
    how_many([first, second], "silhouette,gap statistic", out)
    made = list(records.read(out))
    assert [(one["dataset"], one["method"]) for one in made] == [
        ("x", "silhouette"),
        ("x", "gap statistic"),
        ("y", "silhouette"),
        ("y", "gap statistic"),
    ]
    for one in made:
        assert one["chosen"] == one["k"] == one["candidates"][0] and one["is_truth"]
        assert (one["n"], one["d"], one["n_shown"]) == (120, 2, 120)
        assert len(one["candidates"]) == min(10, one["n_candidates"])
        assert one["cpu_seconds"] > 0 and len(one["sha256"]) == 64
        assert one["versions"]["scikit-learn"] and one["code"] and one["machine"]


def test_a_rule_that_fails_is_a_row_and_is_repeated_on_request(tmp_path, in_this_process, made_up):
    def breaks(question):
        raise RuntimeError("no luck")

    made_up("breaks", breaks)
    folder, out = write_folder(tmp_path / "pool", "a"), tmp_path / "r.jsonl"
    with pytest.raises(typer.Exit):
        how_many([folder], "breaks,always 3", out)
    how_many([folder], "breaks,always 3", out)
    assert [one["status"] for one in records.read(out)] == ["failed", "ok"]
    with pytest.raises(typer.Exit):
        how_many([folder], "breaks,always 3", out, again=True)
    assert "breaks on a" in tables.page_text(out)


def test_rules_by_name_by_default_and_on_data_without_clusters(capsys):
    by_default = command.wanted_rules(None, without_clusters=False, fits=False)
    assert by_default == [name for name in RULES if name != FIT]
    assert command.wanted_rules("PAC", without_clusters=False, fits=True) == ["PAC", FIT]
    can = command.wanted_rules(None, without_clusters=True, fits=False)
    assert can == ["gap statistic", "HDBSCAN", "UMAP + HDBSCAN", "EVoC", "deccs"]
    with pytest.raises(ValueError, match="Did you mean 'PAC'"):
        command.wanted_rules("PAK", without_clusters=False, fits=False)


def test_data_without_clusters_are_the_same_each_time_and_go_to_other_processes():
    draws = no_clusters.no_cluster_sets()
    assert len(draws) == 3 * 5 * 2 * 4 == len({one.sha256 for one in draws})
    again = pickle.loads(pickle.dumps(draws[7]))
    assert (again.arrays()[0] == draws[7].arrays()[0]).all() and again.sha256 == draws[7].sha256


def test_columns_of_a_correlated_gaussian_correlate():
    X = no_clusters.correlated(np.random.default_rng(0), 20_000, 3)
    expected = [[1, 0.8, 0.64], [0.8, 1, 0.8], [0.64, 0.8, 1]]
    assert np.cov(X.T) == pytest.approx(np.array(expected), abs=0.03)


def test_data_without_clusters_are_run_and_shown(tmp_path, in_this_process, made_up, monkeypatch):
    few = [no_clusters.NoClusters("one Gaussian", 400, d, draw) for d in (2, 5) for draw in (0, 1)]
    monkeypatch.setattr(no_clusters, "no_cluster_sets", lambda: few)
    made_up("two on two", lambda question: Ranking((2 if question.X.shape[1] == 2 else 1,)))
    made_up("gap statistic", lambda question: Ranking((1,)), can_say_one=True)
    made_up("two on two", RULES["two on two"].cluster, can_say_one=True)
    out = tmp_path / "r.jsonl"
    how_many([], "two on two,gap statistic,PAC", out, without=True)
    for chosen, name in ((1, "a"), (2, "b")):
        records.append(out, record("gap statistic", name, chosen, 3))
    *_, section, _ = tables.sections(out, wide=True)
    cells = {row[0]: dict(zip(section.heads, row, strict=True)) for row in section.rows}
    assert cells.keys() == {"gap statistic", "two on two"}  # PAC cannot say 1
    assert cells["gap statistic"]["all"] == "1.00" and cells["two on two"]["all"] == "0.50"
    assert cells["gap statistic"][tables.ON_POOL] == "0.50"
    assert cells["two on two"]["2 columns"] == "0.00" and cells["two on two"]["5 columns"] == "1.00"
    assert cells["two on two"]["uniform noise"] == cells["two on two"]["1,000 rows"] == ""


def test_data_without_clusters_take_no_folder(tmp_path):
    app = typer.Typer()
    app.command()(commands.how_many)
    assert CliRunner().invoke(app, [str(tmp_path), "--no-clusters"]).exit_code == 2


# Tables


def test_the_table_of_rules_by_hand():
    """On x one seed in two is right, on y both: three quarters of the mean over data sets."""
    made = [
        record("PAC", "x", 4, 4, cpu=1.0),
        record("PAC", "x", 8, 4, seed=1, others=(2, 4), cpu=3.0),
        record("PAC", "y", 7, 8, cpu=1.0),
        record("always 3", "x", 3, 4),
        record("always 3", "y", 3, 8),
    ]
    (section,) = tables.by_rule("Made up", made)
    assert section.title == "Made up: 2 of 2 data sets, 2 seeds"
    pac, always = (dict(zip(section.heads, row, strict=True)) for row in section.rows)
    assert pac["rule"] == "PAC" and always["rule"] == "always 3"
    assert pac["the truth"] == "0.25"  # a half of x
    assert pac["within 1"] == "0.75"
    assert pac["right"] == "0.75 (0.50 to 1.00)"
    assert pac["truth among first 3"] == "0.50"  # x with both seeds, y with none
    assert pac["mean abs(log2(k / truth))"] == f"{(0.5 + np.log2(8 / 7)) / 2:.2f}"
    assert pac["CPU seconds"] == "1.5"
    assert always["right"].startswith("0.50")


def test_rules_are_compared_on_what_all_of_them_have():
    made = [record("PAC", name, 4, 4) for name in "abcdefghij"]
    made += [record("eigengap", name, 9, 4) for name in "abcdefghi"]
    made += [record("agreement", "a", 4, 4), record(FIT, "a", 4, 4)]
    (section,) = tables.by_rule("Pool", made)
    assert section.title == "Pool: 9 of 10 data sets, 1 seed"
    assert [row[0] for row in section.rows] == ["PAC", "eigengap"]


def test_the_table_of_data_sets_by_hand():
    made = [
        record("deccs", "x", 4, 4, others=(2, 9, 11)),
        record("deccs", "x", 5, 4, seed=1, others=(3,)),
        record("PAC", "x", 2, 4),
    ]
    (section,) = tables.by_dataset(made)
    assert section.rows == [["x", "4", "**4/5**", "2, 9", "2"]]
    assert section.heads[-1] == "PAC"


def test_nmi_at_the_chosen_and_at_the_true_k_by_hand():
    """Seed 1 was not told the truth: it does not count."""
    made = [
        record(FIT, "x", 5, 4, cpu=6.0, scores={"nmi": 0.7}),
        record(FIT, "x", 5, 4, seed=1, scores={"nmi": 0.1}),
        record(FIT, "y", 2, 2, cpu=2.0, scores={"nmi": 0.5}),
        record(FIT, "z", 2, 2, scores={"nmi": 0.9}),
    ]
    told = [
        {**record("DECCS", "x", 4, 4, cpu=3.0), "recipe": 9, "scores": {"nmi": 0.8}},
        {**record("DECCS", "y", 2, 2, cpu=1.0), "recipe": 9, "scores": {"nmi": 0.5}},
        {**record("DECCS", "z", 2, 2, cpu=1.0), "recipe": 9, "scores": {"nmi": 0.5}, "sha256": "1"},
    ]
    (section,) = tables.fits(made, told)
    mean, x, y = section.rows
    assert x == ["x", "4", "**5**", "0.700", "0.800", "-0.100", "6.0", "3.0", "2.00"]
    assert y[5] == "+0.000" and mean[5].startswith("-0.050 (-0.100 to ")
    assert mean[3].startswith("0.600") and mean[-1] == "2.00"
    assert not tables.fits(made, [])


def test_the_page_is_rewritten_from_the_records(tmp_path, in_this_process):
    folder, out, page = write_folder(tmp_path / "p", "a"), tmp_path / "r.jsonl", tmp_path / "p.md"
    page.write_text(f"before\n{tables.PAGE.begin}\n{tables.PAGE.end}\nafter\n")
    how_many([folder], "silhouette,always 3", out, page=page)
    text = page.read_text()
    assert "| silhouette | 1.00 |" in text and "| a | 4 |" in text and text.endswith("after\n")
    assert text == tables.PAGE.put_into(text, tables.page_text(out))
    assert tables.page_text(tmp_path / "none.jsonl") == "No records yet."


def test_the_published_page_is_that_of_the_published_records():
    text = (ROOT / "docs" / "how-many.md").read_text(encoding="utf-8")
    assert text == tables.PAGE.put_into(text, tables.page_text(RECORDS)), (
        f"run: {tables.PAGE.command}"
    )


def test_published_records_are_complete_and_left_alone_by_reproduce():
    for line in RECORDS.read_text().splitlines():
        one = json.loads(line)
        assert {"dataset", "sha256", "n", "d", "k", "method", "seed", "status"} <= one.keys()
    assert not records.read_all([RECORDS])


def test_no_constant_is_right_more_often_than_3():
    made = tables.succeeded(records.read(RECORDS), runs.EXPERIMENT)
    truths = {one["dataset"]: one["k"] for one in made if one["dataset"] not in tables.PAPER}
    hits = {k: sum(measures.is_right(k, truth) for truth in truths.values()) for k in range(1, 121)}
    assert max(hits, key=hits.get) == 3
