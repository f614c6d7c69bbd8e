"""The command line on tables that are learned from a sample: labels in parts, killed fits, and all other commands."""

import json
from contextlib import contextmanager

import numpy as np
import polars as pl
import pytest
from numpy.testing import assert_array_equal

from deccs import DECCS
from deccs.app import run_folder
from deccs.app.parts import PartsWriter
from deccs.scores import ari
from tests.helpers.command_line import deccs, rows_of
from tests.helpers.large import N_LEARNED, N_PART, blobs_of, frame_of, lower_limits

SETTINGS = """
clusters = 3
rounds = 0
[settings]
network.layers = [8, 2]
rounds = {n_init = 1, n_steps = 5, batch_size = 64}
[settings.pretraining]
n_epochs = 5
batch_size = 32
"""
N_ROWS = 3 * N_PART + 41
X, TRUTH = blobs_of(N_ROWS)
KEYS = np.array([f"k{row}" for row in range(N_ROWS)])
FRAME = frame_of(X, key=KEYS)
GAPS = np.arange(N_ROWS) % 10 == 3
PARTS = [f"part-{number:05d}.parquet" for number in range(4)]
WITHOUT_PARTS = [
    "clusters.txt",
    "embedding",
    "labels",
    "model",
    "report.html",
    "rounds.jsonl",
    "summary.json",
]

pytestmark = pytest.mark.usefixtures("quick_classifiers", "quick_manifold")


@pytest.fixture(scope="module", autouse=True)
def low_limits():
    with pytest.MonkeyPatch.context() as patch:
        lower_limits(patch)
        yield


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with the same rows as one file, as several and as text, and settings for a quick fit."""
    place = tmp_path_factory.mktemp("large")
    (place / "fit.toml").write_text(SETTINGS)
    FRAME.write_parquet(place / "x.parquet", row_group_size=64)
    (place / "all").mkdir()
    for number, part in enumerate(FRAME.iter_slices(300)):
        part.write_parquet(place / "all" / f"{number}.parquet")
    FRAME.write_csv(place / "x.csv")
    gaps = FRAME.with_columns(a=pl.when(pl.Series(~GAPS)).then("a"))
    gaps.write_parquet(place / "gaps.parquet")
    return place


def fit(place, data, out, *words):
    options = ("--config", place / "fit.toml", "--set", "views=none", "--id", "key")
    return deccs("fit", data, *options, "--out", out, *words)


@pytest.fixture(scope="module")
def run(place):
    """The folder of a fit. Do not change it."""
    code, out, err = fit(place, place / "x.parquet", place / "run")
    assert code == 0, err
    (place / "printed.txt").write_text(out)
    return place / "run"


def labels_in(run):
    return pl.read_parquet(run / "labels" / "part-*.parquet")


def test_a_large_fit_writes_parts(run, place):
    assert sorted(path.name for path in run.iterdir()) == WITHOUT_PARTS
    for folder in ("labels", "embedding"):
        assert sorted(path.name for path in (run / folder).iterdir()) == PARTS
    sizes = [pl.read_parquet(run / "labels" / part).height for part in PARTS]
    assert sizes == [N_PART] * 3 + [41]
    labels = labels_in(run)
    assert labels.columns == ["id", "label", "name", "confidence"]
    assert labels["id"].to_list() == KEYS.tolist()
    assert ari(TRUTH, labels["label"].to_numpy()) > 0.95
    assert labels["confidence"].is_between(0, 1).all()
    model = DECCS.load(run / "model")
    assert_array_equal(model.labels_, labels["label"])
    assert [model.cluster_names_[label] for label in model.labels_] == labels["name"].to_list()
    Z = pl.read_parquet(run / "embedding" / "part-*.parquet")
    assert Z["id"].to_list() == KEYS.tolist()
    np.testing.assert_allclose(Z.select("z0", "z1"), model.transform(FRAME), atol=1e-4)
    summary = json.loads((run / "summary.json").read_text())
    assert summary["learned_from"] == N_LEARNED and summary["data"]["rows"] == N_ROWS
    assert sum(cluster["size"] for cluster in summary["clusters"]) == N_ROWS
    assert f"sample      {N_LEARNED} of {N_ROWS} rows" in (place / "printed.txt").read_text()


@pytest.mark.parametrize("data", ["all", "all/*.parquet", "x.csv"])
def test_the_same_rows_in_other_files_get_the_same_labels(run, place, tmp_path, data):
    code, _, err = fit(place, place / data, tmp_path / "run")
    assert code == 0, err
    assert labels_in(tmp_path / "run").equals(labels_in(run))
    # Gone files of a pattern or a folder would make another report.
    code, _, err = deccs("report", tmp_path / "run")
    assert code == 0, err


def test_a_table_of_one_part_is_written_as_smaller_ones_are(place, tmp_path):
    few = FRAME[: N_PART - 6].with_columns(key=pl.lit("=") + pl.col("key"))
    few.write_parquet(tmp_path / "few.parquet")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("deccs.data.learning_rows.MOST_ROWS", 100)
        code, _, err = fit(place, tmp_path / "few.parquet", tmp_path / "run")
    assert code == 0, err
    names = {path.name for path in (tmp_path / "run").iterdir()}
    assert {"labels.csv", "embedding.npy"} < names and not {"labels", "embedding"} & names
    header, *rows = rows_of(tmp_path / "run" / "labels.csv")
    assert header == ["id", "label", "name", "confidence"]
    model = DECCS.load(tmp_path / "run" / "model")
    assert len(model.learning_rows_) == 100
    assert [row[:2] for row in rows] == [
        [f"'=k{row}", str(label)] for row, label in enumerate(model.labels_)
    ]
    Z = np.load(tmp_path / "run" / "embedding.npy")
    assert Z.dtype == np.float32
    np.testing.assert_allclose(Z, model.transform(few), atol=1e-4)


def test_dropped_rows_have_no_label_and_keep_their_place(place, tmp_path):
    code, _, err = fit(place, place / "gaps.parquet", tmp_path / "run", "--missing", "drop")
    assert code == 0, err
    labels = labels_in(tmp_path / "run")
    assert labels["id"].to_list() == KEYS.tolist()
    assert_array_equal(labels["label"].is_null(), GAPS)
    assert_array_equal(labels["name"].is_null(), GAPS)
    assert ari(TRUTH[~GAPS], labels["label"].drop_nulls().to_numpy()) > 0.95
    Z = pl.read_parquet(tmp_path / "run" / "embedding" / "part-*.parquet")
    assert Z["id"].to_list() == KEYS[~GAPS].tolist()
    out = tmp_path / "new.parquet"
    code, _, err = deccs("predict", tmp_path / "run", place / "gaps.parquet", "--out", out)
    assert code == 0, err
    assert pl.read_parquet(out)["label"].equals(labels["label"])
    code, out, err = deccs("compare", tmp_path / "run", tmp_path / "run", "--json")
    assert code == 0 and json.loads(out)["runs"][0]["rows"] == int((~GAPS).sum()), err


# A fit that is killed.


@contextmanager
def killed_after(n_parts):
    """The process stops when it has written so many parts."""
    finish = PartsWriter.finish
    written = []

    def stop(self, part):
        if self.waiting and len(written) == n_parts:
            raise KeyboardInterrupt
        written.append(part)
        finish(self, part)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(PartsWriter, "finish", stop)
        yield


def killed(place, out, n_parts, *words, data="x.parquet"):
    with killed_after(n_parts):
        code, _, err = fit(place, place / data, out, *words)
    assert code == 130 and "the same command resumes" in " ".join(err.split()), err


def parts_there(out):
    return sorted(path.name for path in (out / run_folder.UNFINISHED / "labels").iterdir())


@pytest.mark.parametrize("n_parts", [0, 2])
def test_a_fit_killed_while_labeling_goes_on_after_its_parts(run, place, tmp_path, n_parts):
    out = tmp_path / "run"
    killed(place, out, n_parts)
    assert parts_there(out) == PARTS[:n_parts]  # complete or not there
    before = {
        path: path.stat().st_mtime_ns for path in out.rglob(".results-unfinished/*/*.parquet")
    }
    with written_parts() as written:
        code, _, err = fit(place, place / "x.parquet", out)
    assert code == 0 and "pretraining" not in err, err
    assert written == list(range(n_parts, 4)) and len(before) == 2 * n_parts
    assert labels_in(out).equals(labels_in(run))
    for part in PARTS:
        for folder in ("labels", "embedding"):
            assert (out / folder / part).read_bytes() == (run / folder / part).read_bytes()
    assert not list(out.glob(".*"))


@contextmanager
def written_parts():
    """The numbers of the parts that are written meanwhile."""
    finish, written = PartsWriter.finish, []

    def noted(self, part):
        if self.waiting:
            written.append(part.start // N_PART)
        finish(self, part)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(PartsWriter, "finish", noted)
        yield written


@pytest.mark.slow
def test_parts_that_are_lost_or_have_other_columns_are_written_again(run, place, tmp_path):
    out = tmp_path / "run"
    killed(place, out, 3)
    (out / run_folder.UNFINISHED / "embedding" / PARTS[1]).unlink()
    with written_parts() as written:
        code, _, err = fit(place, place / "x.parquet", out)
    assert code == 0 and written == [1, 3], err
    assert labels_in(out).equals(labels_in(run))

    other = tmp_path / "other"
    killed(place, other, 2)
    with written_parts() as written:
        code, _, err = fit(place, place / "x.parquet", other, "--with-columns")
    assert code == 0 and written == [0, 1, 2, 3], err
    labels = labels_in(other)
    assert labels.columns == ["id", "label", "name", "confidence", *"abcd", "key"]
    assert labels.select(FRAME.columns).equals(FRAME)


@pytest.mark.slow
def test_other_results_stay_until_a_large_fit_is_done(run, place, tmp_path):
    out = tmp_path / "run"
    code, _, err = fit(place, place / "x.parquet", out)
    before = labels_in(out)
    words = ("--overwrite", "--set", "random_state=7")
    killed(place, out, 1, *words)
    assert labels_in(out).equals(before)
    code, _, err = fit(place, place / "x.parquet", out, *words)
    assert code == 0, err
    assert DECCS.load(out / "model").random_state == 7 and not list(out.glob(".*"))


@contextmanager
def before_labeling(happens):
    """What happens between training and the first label."""
    start = PartsWriter.start

    def begin(self):
        happens()
        start(self)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(PartsWriter, "start", begin)
        yield


def test_progress_of_a_fit_whose_file_is_gone_is_kept(place, tmp_path):
    data, out = tmp_path / "x.parquet", tmp_path / "run"
    FRAME.write_parquet(data)
    with before_labeling(lambda: data.rename(tmp_path / "away")):
        code, _, err = fit(place, data, out)
    told = " ".join(err.split())
    assert code == 1 and "x.parquet was there when the fit began and cannot be read now" in told
    assert "the same command resumes" in told
    (tmp_path / "away").rename(data)
    code, _, err = fit(place, data, out)
    assert code == 0 and "pretraining" not in err, err


def test_a_file_that_changes_during_the_fit_is_an_error_that_names_it(place, tmp_path):
    data, out = tmp_path / "x.parquet", tmp_path / "run"
    FRAME.write_parquet(data)
    with before_labeling(lambda: FRAME[::-1].write_parquet(data)):
        code, _, err = fit(place, data, out)
    assert code == 2 and "x.parquet has changed since it was opened" in " ".join(err.split())
    assert not (out / "summary.json").exists()


# Mistakes.


@pytest.mark.parametrize(
    ("data", "words", "told"),
    [
        ("none*.parquet", [], "no file is there"),
        ("x.npy", ["--with-columns"], "arrays and images have none"),
        ("mixed", [], "y.csv is not Parquet"),
        ("broken", [], "1.parquet cannot be read"),
    ],
)
def test_mistakes_leave_nothing(place, tmp_path, data, words, told):
    np.save(tmp_path / "x.npy", X)
    for name in ("mixed", "broken"):
        (tmp_path / name).mkdir()
        for number in range(3):
            FRAME.write_parquet(tmp_path / name / f"{number}.parquet")
    (tmp_path / "mixed" / "y.csv").write_text("a\n1\n")
    content = (tmp_path / "broken" / "1.parquet").read_bytes()
    (tmp_path / "broken" / "1.parquet").write_bytes(content[:-300])
    settings = tmp_path / "fit.toml"
    settings.write_text((place / "fit.toml").read_text())
    out = tmp_path / "run"
    code, _, err = deccs("fit", tmp_path / data, "--config", settings, "--out", out, *words)
    assert code == 2 and told in " ".join(err.split()), err
    assert not out.exists()


# The other commands.


def test_predict_of_a_large_file_is_written_in_parts_and_is_the_labels(run, place, tmp_path):
    labels = labels_in(run)
    for ending in ("csv", "parquet"):
        for words in ([], ["--with-columns"]):
            out = tmp_path / f"new.{ending}"
            with written_parts() as written:
                command = ("predict", run, place / "all", "--out", out, "--overwrite", *words)
                code, _, err = deccs(*command)
            assert code == 0, err
            assert bool(written) == (ending == "parquet" or bool(words))
            read = pl.read_csv if ending == "csv" else pl.read_parquet
            frame = read(out)
            assert frame.columns == [*labels.columns, *([*FRAME.columns] if words else [])]
            assert frame["id"].to_list() == KEYS.tolist()
            assert_array_equal(frame["label"], labels["label"])
            assert_array_equal(frame["name"], labels["name"])
            np.testing.assert_allclose(frame["confidence"], labels["confidence"], atol=6e-5)
            if words:
                assert frame["key"].to_list() == KEYS.tolist()
                np.testing.assert_allclose(frame.select(*"abcd"), X)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["new.csv", "new.parquet"]


def test_ids_and_cells_that_look_like_formulas_are_text_in_a_csv_of_parts(run, place, tmp_path):
    risky = FRAME.with_columns(key=pl.lit("=") + pl.col("key"), note=pl.lit("@sum"))
    risky.write_parquet(tmp_path / "new.parquet")
    out = tmp_path / "new.csv"
    code, _, err = deccs("predict", run, tmp_path / "new.parquet", "--with-columns", "--out", out)
    assert code == 0, err
    header, first, *_ = rows_of(out)
    row = dict(zip(header, first, strict=True))
    assert (row["id"], row["key"], row["note"]) == ("'=k0", "'=k0", "'@sum")


def test_predict_prints_a_large_file(run, place):
    code, out, err = deccs("predict", run, place / "x.csv")
    assert code == 0, err
    _, *rows = rows_of(out)
    assert [row[0] for row in rows] == KEYS.tolist()
    assert [int(row[1]) for row in rows] == labels_in(run)["label"].to_list()


def test_report_compare_and_rename_know_parts(run, place, tmp_path):
    out = tmp_path / "run"
    code, _, err = fit(place, place / "x.parquet", out)
    assert code == 0, err
    report = (out / "report.html").read_text()
    assert f"a sample of {N_LEARNED} of {N_ROWS} rows" in report
    assert f'"editing":{{"n_rows":{N_ROWS},"rows":' in report  # edits name rows of the fit
    code, _, err = deccs("report", out, "--out", tmp_path / "again.html")
    assert code == 0, err
    assert (tmp_path / "again.html").read_text() == report

    code, _, err = deccs("rename", out, 1, "far away")
    assert code == 0 and "report is written again" in err, err
    labels = labels_in(out)
    assert set(labels.filter(pl.col("label") == 1)["name"]) == {"far away"}
    assert labels.drop("name").equals(labels_in(run).drop("name"))
    assert "far away" in (out / "report.html").read_text()

    code, printed, err = deccs("compare", out, run, "--json")
    assert code == 0, err
    (pair,) = json.loads(printed)["pairs"]
    assert pair["rows_in_common"] == N_ROWS and pair["ari"] == 1


def test_a_part_with_rows_of_another_is_refused(place, run, tmp_path):
    out = tmp_path / "run"
    code, _, err = fit(place, place / "x.parquet", out)
    assert code == 0, err
    pl.read_parquet(out / "labels" / PARTS[0]).write_parquet(out / "labels" / PARTS[1])
    code, _, err = deccs("compare", run, out)
    assert (
        code == 2 and "part-00001.parquet" in err and "in an earlier part" in " ".join(err.split())
    )


def test_data_that_changed_since_a_large_fit_is_told(place, tmp_path):
    FRAME.write_parquet(tmp_path / "x.parquet")
    out = tmp_path / "run"
    code, _, err = fit(place, tmp_path / "x.parquet", out)
    assert code == 0, err
    FRAME[: N_ROWS - 9].write_parquet(tmp_path / "x.parquet")
    code, _, err = deccs("report", out)
    assert code == 2 and "has changed since the fit" in " ".join(err.split())
