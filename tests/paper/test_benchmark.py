import json

import pytest

from deccs import DECCS, Pretraining, datasets
from deccs.consensus import FUNCTIONS
from deccs_paper import estimator_for, records, runner, table
from deccs_paper.__main__ import changes_from, main, setting
from deccs_paper.processes import Workers
from deccs_paper.settings import METHODS, PAPER

QUICK = {"n_rounds": 1, "n_init": 1, "n_steps": 5, "pretraining": Pretraining(epochs=2)}


@pytest.fixture(autouse=True)
def no_shared_data(monkeypatch):
    monkeypatch.delenv(
        "DECCS_DATA", raising=False
    )  # SYNTH then comes from its generator, everywhere


def quick_run(repetition=0, method="DECCS", **changes):
    return runner.Run("test", method, "synth", repetition, QUICK | changes)


@pytest.mark.parametrize("name", PAPER)
def test_the_paper_s_settings_stand_as_data(name):
    model = estimator_for(name, random_state=7)
    linkage = dict(model.members)["agglomerative"].linkage
    images = name in ("mnist", "fmnist", "kmnist", "usps")
    assert model.lambda_cons == (0.1 if images else 10)
    assert linkage == ("single" if name == "synth" else "ward")
    assert model.layers == {"synth": (20, 20, 2), "mice": (256, 128, 64)}.get(
        name, (500, 500, 2000, 10)
    )
    assert model.random_state == 7
    plain = METHODS["DECCS plain"].build(name, random_state=7)
    given = {
        key: value
        for key, value in plain.get_params().items()
        if value != DECCS().get_params()[key]
    }
    assert set(given) <= {"n_clusters", "random_state"}  # nothing but k


def test_unknown_data_set_names_those_there_are():
    with pytest.raises(ValueError, match="No settings for data set 'iris'; there are synth, mice"):
        estimator_for("iris")


def test_records_from_before_the_methods_last_change_do_not_count():
    def made(method, recipe, nmi):
        return {
            "experiment": "default",
            "method": method,
            "dataset": "usps",
            "repetition": recipe,
            "recipe": recipe,
            "status": "ok",
            "scores": {"nmi": nmi},
        }

    changed = METHODS["VaDE"].recipe
    there = [
        made(method, recipe, nmi)
        for method in ("AGAE", "VaDE")
        for recipe, nmi in ((changed - 1, 0.5), (changed, 0.6))
    ]
    lines = table.consensus_markdown(there).splitlines()
    assert "| AGAE | 0.55 (0.74) |" in lines  # nothing of AGAE has changed in between
    assert "| VaDE | 0.60 (0.79) |" in lines


def test_a_record_has_what_the_tables_need(tmp_path):
    (record,) = runner.carry_out(quick_run(), tmp_path)
    assert record["status"] == "ok", record.get("traceback")
    assert set(record) >= {
        "experiment",
        "method",
        "dataset",
        "dataset_sha256",
        "seed",
        "settings",
        "scores",
        "members",
        "rounds",
        "seconds",
        "peak_memory_mb",
        "versions",
        "machine",
        "code",
        "best_round",
        "autoencoder",
    }
    assert set(record["scores"]) == {"nmi", "ari", "accuracy", "agreement"}
    assert len(record["rounds"]) == 2
    assert set(record["rounds"][0]["members"]["kmeans"]) == {"nmi", "ari", "accuracy"}
    assert record["scores"] == json.loads(json.dumps(record["scores"]))


def test_a_cached_autoencoder_gives_the_same_run(tmp_path):
    (first,), (second,) = (
        runner.carry_out(quick_run(), tmp_path),
        runner.carry_out(quick_run(), tmp_path),
    )
    assert (first["autoencoder"]["from"], second["autoencoder"]["from"]) == ("training", "cache")
    assert first["scores"] == second["scores"]
    assert (
        first["seconds"]["pretrain"] == second["seconds"]["pretrain"]
    )  # what it cost, not what the cache cost
    (other,) = runner.carry_out(quick_run(pretraining=Pretraining(epochs=3)), tmp_path)
    assert other["autoencoder"]["from"] == "training"


def test_the_runner_gives_what_a_plain_fit_gives(tmp_path):
    run = quick_run()
    data = datasets.load("synth")
    labels = run.estimator().fit(data.X).labels_
    from deccs.scores import against_truth

    assert (
        runner.carry_out(run, tmp_path)[0]["scores"].items()
        >= against_truth(data.y, labels).items()
    )


def test_a_failed_run_is_a_row_with_a_status_and_no_number(tmp_path):
    (record,) = runner.carry_out(quick_run(center="mode"), tmp_path)
    assert record["status"] == "failed"
    assert "center must be 'mean' or 'median'" in record["error"]
    assert "scores" not in record
    (good,) = runner.carry_out(quick_run(repetition=1), tmp_path)
    row = table.markdown([record, good], "test").splitlines()[-1]
    assert "1 of 2" in row
    assert f"**{good['scores']['nmi']:.3f}**" in row


def test_seeds_depend_on_the_place_alone():
    assert quick_run(3).seed == quick_run(3, method="DECCS plain").seed
    assert len({quick_run(repetition).seed for repetition in range(20)}) == 20


def test_records_survive_a_broken_line(tmp_path):
    path = tmp_path / "deep" / "records.jsonl"
    records.append(path, {"a": 1})
    path.write_text(path.read_text() + '{"a": 2, "sco')  # killed while writing
    records.append(path, {"a": 3})
    assert list(records.read(path)) == [{"a": 1}, {"a": 3}]
    assert list(records.read(tmp_path / "none")) == []


def made_up(run, cache):
    """In place of a run, in a process forked from this one."""
    scores = {"nmi": 0.5, "ari": 0.4, "accuracy": 0.6, "agreement": 0.9}
    return [
        header
        | {
            "status": "ok",
            "scores": scores,
            "best_round": 1,
            "peak_memory_mb": 1.0,
            "seconds": {"total": 60.0},
            "rounds": [{"members": {"kmeans": {"nmi": 0.25}}}],
        }
        for header in runner.headers(run)
    ]


def test_nothing_is_run_twice(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(
        "deccs_paper.__main__.Workers", lambda jobs, cache: Workers(jobs, cache, made_up, "fork")
    )
    out = ["--out", str(tmp_path / "r.jsonl"), "--set", "n_rounds=1"]
    assert main(["synth", "--seeds", "2", *out]) == 0
    assert main(["synth", "--seeds", "3", *out]) == 0
    assert [record["repetition"] for record in records.read(tmp_path / "r.jsonl")] == [0, 1, 2]
    assert "| SYNTH | 0.25 | **0.500 ± 0.000** |" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "pair"),
    [
        ("n_rounds=3", ("n_rounds", 3)),
        ("lambda_cons=auto", ("lambda_cons", "auto")),
        ("layers=(8,2)", ("layers", (8, 2))),
    ],
)
def test_settings_from_the_command_line(text, pair):
    assert setting(text) == pair


def test_settings_of_the_pretraining_have_its_name_before_them():
    assert changes_from([("pretraining.epochs", 3), ("n_rounds", 1)]) == {
        "n_rounds": 1,
        "pretraining": Pretraining(epochs=3),
    }


def test_deviation_is_over_runs():
    assert table.plus_minus([0.4, 0.6]) == "0.500 ± 0.100"
    assert table.plus_minus([0.4]) == "0.400"  # one run has none
    assert table.plus_minus([]) == "not run"


def test_an_ensemble_is_clustered_once_and_every_function_has_its_record(tmp_path):
    run = runner.Run("test", "AE+consensus", "synth", 0, {"max_points": 300})
    found = runner.carry_out(
        runner.Run("test", "consensus", "synth", 0, {"max_points": 300}), tmp_path
    )
    assert [record["method"] for record in found] == [function.upper() for function in FUNCTIONS]
    assert all(record["status"] == "ok" and record["n_sample"] == 300 for record in found)
    assert (
        len(
            {
                tuple(sorted(member["nmi"] for member in record["members"].values()))
                for record in found
            }
        )
        == 1
    )
    assert {header["method"] for header in runner.headers(run)} == {
        f"AE+{name.upper()}" for name in FUNCTIONS
    }


def test_the_table_of_consensus_methods_has_the_papers_figure_in_brackets():
    record = {
        "experiment": "default",
        "method": "LWEA",
        "dataset": "usps",
        "repetition": 0,
        "recipe": 1,
        "status": "ok",
        "scores": {"nmi": 0.7},
    }
    failed = record | {"method": "CSPA", "status": "failed"}
    table_lines = table.consensus_markdown([record, failed]).splitlines()
    assert "| LWEA | 0.70 (0.72) |" in table_lines
    assert "| CSPA | failed (0.65) |" in table_lines
    assert table_lines[0] == "| method | USPS |"


@pytest.mark.slow
def test_one_run_in_a_process_of_its_own(tmp_path):
    with Workers(1, tmp_path) as workers:
        workers.start_next([quick_run()])
        ((record,),) = workers.ended()
    assert record["status"] == "ok"
