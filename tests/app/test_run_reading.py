"""Run folders from anyone: what is wrong is said with the file and the field."""

import json
import os
import shutil

import polars as pl
import pytest

from deccs import DECCS
from deccs.app.comparison import labels_of
from deccs.app.run_error import RunError
from deccs.app.run_reading import check_preprocessing, load_model, read_summary, training_table
from deccs.data.coding import Coding, Column
from deccs.data.tables import TableError
from deccs.storage import ModelFileError

SUMMARY = {"data": {"file": "../x.csv", "sha256": None}, "agreement": 0.5}
LABELS = "id,label,confidence\na,0,1.0\nb,-1,0.5\nc,,\n"


@pytest.fixture
def run(tmp_path):
    (tmp_path / "summary.json").write_text(json.dumps(SUMMARY))
    (tmp_path / "labels.csv").write_text(LABELS)
    return tmp_path


def test_what_is_right_is_read(run):
    labels = labels_of(run)
    assert labels.labels == {"a": 0, "b": -1} and labels.key == "id" and labels.sizes() == [1]


@pytest.mark.parametrize(
    ("summary", "told"),
    [
        ("[]", "summary.json must hold names and values"),
        ("[" * 100_000, "cannot be read"),
        ("\xff", "cannot be read"),
        ("{}", "data must be a table"),
        ({"data": []}, "data must be a table"),
        ({"data": {"file": 3}}, "data.file must be a path, got 3"),
        ({"data": {"file": "a\0b"}}, "data.file must be a path"),
        ({"data": {"file": "x", "sha256": 5}}, "data.sha256 must be a text"),
        ({**SUMMARY, "agreement": "high"}, "agreement must be a number, got 'high'"),
        ({**SUMMARY, "agreement": True}, "agreement must be a number"),
        ('{"data": {"file": "x"}, "agreement": NaN}', "agreement must be a number"),
        ({**SUMMARY, "options": [1]}, "options must be a table"),
        ({**SUMMARY, "clusters": 3}, "clusters must be a list of tables, got 3"),
        ({**SUMMARY, "clusters": ["a"]}, "clusters must be a list of tables"),
    ],
)
def test_a_wrong_summary_is_told_by_its_field(summary, told, run):
    text = summary if isinstance(summary, str) else json.dumps(summary)
    (run / "summary.json").write_text(text, encoding="latin-1")
    with pytest.raises(RunError) as error:
        read_summary(run)
    assert "summary.json" in str(error.value) and told in str(error.value)


@pytest.mark.parametrize(
    ("labels", "told"),
    [
        ("", "the first line must name the columns"),
        ("a,b\n", "the first line must name the columns"),
        ("id,label,confidence\na,0\n", "line 2: 3 fields are expected, got 2"),
        ("id,label\na,99999999999\n", "line 2: label must be a whole number"),  # 745 GiB
        ("id,label\na,-7\n", "line 2: label must be a whole number"),
        ("id,label\na,1.5\n", "line 2: label must be a whole number"),
        ("id,label\na,0\na,1\n", "line 3: the id 'a' occurs twice"),
        ("id,label\n" + "a" * 200_000 + ",0\n", "field larger than field limit"),
        ("id,label\n" + "a" * 2**20 + ",0\n", "a line of more than 1,048,576 characters"),
        ("id,label\n\xff,0\n", "cannot be read"),
    ],
)
def test_wrong_labels_are_told_by_their_line(labels, told, run):
    (run / "labels.csv").write_text(labels, encoding="latin-1")
    with pytest.raises(RunError) as error:
        labels_of(run)
    assert "labels.csv" in str(error.value) and told in str(error.value)


@pytest.mark.parametrize(
    ("columns", "told"),
    [
        ({"a": ["x"], "label": [0]}, "the first line must name the columns"),
        ({"id": ["x"], "cluster": [0]}, "the first line must name the columns"),
        ({"id": ["x"], "label": [99_999_999_999]}, "label must be a whole number"),
        ({"id": ["x"], "label": [-7]}, "label must be a whole number"),
        ({"id": ["x"], "label": [1.5]}, "label must be a whole number"),
        ({"id": ["x"], "label": ["0"]}, "label must be a whole number"),
        ({"id": ["x", "x"], "label": [0, 1]}, "'x' occurs twice"),
    ],
)
def test_wrong_labels_of_other_formats_are_told(columns, told, run):
    (run / "labels.csv").unlink()
    pl.DataFrame(columns).write_parquet(run / "labels.parquet")
    with pytest.raises(RunError) as error:
        labels_of(run)
    assert "labels.parquet" in str(error.value) and told in str(error.value)


def test_labels_in_a_spreadsheet_are_whole_numbers_too(run):
    (run / "labels.csv").unlink()
    pl.DataFrame({"id": ["x", "y"], "label": [1.5, 1.0]}).write_excel(run / "labels.xlsx")
    with pytest.raises(RunError, match="labels.xlsx: label must be a whole number"):
        labels_of(run)
    (run / "labels.xlsx").write_bytes((run / "labels.xlsx").read_bytes()[:100])
    with pytest.raises(TableError, match=r"labels\.xlsx"):
        labels_of(run)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no pipes")
@pytest.mark.parametrize("name", ["summary.json", "labels.csv"])
def test_pipes_devices_and_huge_files_are_not_read(name, run):
    path = run / name
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(RunError, match=f"{name} is not a (plain )?file"):
        labels_of(run)
    path.unlink()
    path.symlink_to("/dev/zero")
    with pytest.raises(RunError, match=f"{name} is not a (plain )?file"):
        labels_of(run)
    path.unlink()
    with path.open("wb") as file:
        file.truncate(2**40)
    with pytest.raises(RunError, match="more than"):
        labels_of(run)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("feature_names", ["a", 3]),
        ("feature_names", ["a", "a"]),
        ("feature_names", ["a"]),
        ("id_column", 3),
        ("missing", "zero"),
        ("means", [1.0]),
        ("means", [1.0, "x"]),
        ("means", None),
        ("means", [1.0, float("inf")]),
        ("image_shape", [2]),
        ("image_shape", [3, 3]),
        ("image_shape", [-1, -2]),
        ("encoding", "klingon"),
        ("encoding", "rot13"),
        ("header", "yes"),
    ],
)
def test_wrong_preprocessing_is_told_by_its_field(field, value, tmp_path):
    right = {"feature_names": ["a", "b"], "means": [0.0, 1.0], "missing": "mean"}
    model = DECCS(2)
    model.n_features_in_, model.coding_ = 2, None
    check_preprocessing(tmp_path, right, model)
    with pytest.raises(RunError, match=f"preprocessing.{field}"):
        check_preprocessing(tmp_path, {**right, field: value}, model)


def test_names_of_columns_are_those_of_the_model(tmp_path):
    model = DECCS(2)
    model.coding_ = Coding((Column("a", "number"), Column("b", "yes/no", ("no", "yes"))))
    model.n_features_in_ = 2
    check_preprocessing(tmp_path, {"feature_names": ["a", "b"]}, model)
    with pytest.raises(RunError, match="feature_names are not the columns of the model"):
        check_preprocessing(tmp_path, {"feature_names": ["b", "a"]}, model)


def test_a_very_long_path_in_the_summary_is_told(run):
    (run / "summary.json").write_text(json.dumps({"data": {"file": "a" * 5_000}}))
    with pytest.raises(RunError, match="Say with --data where it is"):
        training_table(run, None, {}, DECCS(2))


def test_a_model_without_its_arrays_is_told(fitted, tmp_path):
    fitted.save(tmp_path / "model")
    next((tmp_path / "model").glob("tensors-*")).unlink()
    with pytest.raises(ModelFileError):
        load_model(tmp_path)
    shutil.rmtree(tmp_path / "model")
    with pytest.raises(RunError, match="does not exist"):
        load_model(tmp_path / "none")
