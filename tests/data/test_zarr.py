"""Zarr folders: small ones are arrays, large ones are read in chunks and never in memory as a whole."""

import importlib.util
import shutil
import subprocess
import sys

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from deccs import DECCS
from deccs.app.run_reading import identity
from deccs.data.source import ColumnRows, in_order
from deccs.data.tables import TableError, read_like, read_table, zarr_arrays
from deccs.data.tables.raw import GoneError
from deccs.data.tables.zarr_arrays import ZarrRows
from tests.helpers.command_line import deccs, rows_of
from tests.helpers.large import N_LEARNED, blobs_of, call_here, lower_limits

zarr = pytest.importorskip("zarr")

N_ROWS = 700
X, _ = blobs_of(N_ROWS)


def write(path, values=X, **options):
    array = zarr.create_array(str(path), shape=values.shape, dtype=values.dtype, **options)
    array[...] = values
    return path


@pytest.fixture(autouse=True)
def read_here(monkeypatch):
    """All chunks are read in this process, which does not take seconds to start."""
    monkeypatch.setattr(zarr_arrays, "isolated", call_here)


@pytest.fixture
def low_limits(monkeypatch):
    lower_limits(monkeypatch)
    monkeypatch.setattr(zarr_arrays, "LARGE", 1_000)
    monkeypatch.setattr(zarr_arrays, "AT_ONCE", 400)


def cells(table):
    return np.concatenate(list(in_order(table.rows, 64)))


@pytest.mark.parametrize(
    "options",
    [
        {"chunks": (64, 4)},
        {"chunks": (1, 3)},
        {"chunks": (700, 1)},
        {"chunks": (10, 2), "shards": (50, 4)},
        {"chunks": (64, 4), "zarr_format": 2},
    ],
)
@pytest.mark.parametrize("is_large", [True, False])
def test_rows_of_all_kinds_of_chunks(tmp_path, request, options, is_large):
    if is_large:
        request.getfixturevalue("low_limits")
    table = read_table(write(tmp_path / "x.zarr", **options))
    assert table.is_large == is_large == isinstance(table.rows, ZarrRows)
    assert table.feature_names == ("column 1", "column 2", "column 3", "column 4")
    assert_array_equal(cells(table), X)
    rng = np.random.default_rng(0)
    for rows in (slice(5, 5), slice(60, 200), rng.integers(0, N_ROWS, 30), np.array([3, 3, 1])):
        assert_array_equal(table.rows.read(rows), X[rows])
    assert_array_equal(np.concatenate(list(in_order(table.rows, 64, 130, 333))), X[130:333])
    assert_array_equal(cells(read_like(tmp_path / "x.zarr", table.preprocessing())), X)


def test_no_chunk_is_read_twice_by_a_stream(tmp_path, low_limits, monkeypatch):
    table = read_table(write(tmp_path / "x.zarr", chunks=(70, 4)))
    read, asked = ZarrRows.read, []
    monkeypatch.setattr(ZarrRows, "read", lambda self, rows: asked.append(rows) or read(self, rows))
    list(table.rows.stream(64))
    assert [(rows.start, rows.stop) for rows in asked] == [
        (start, start + 70) for start in range(0, N_ROWS, 70)
    ]


def test_the_array_x_of_a_group_and_an_array_inside_it(tmp_path):
    group = zarr.open_group(str(tmp_path / "g"), mode="w")
    for name in ("X", "other"):
        group.create_array(name, data=X + (name == "other"))
    assert_array_equal(cells(read_table(tmp_path / "g")), X)
    assert_array_equal(cells(read_table(tmp_path / "g" / "other")), X + 1)


def test_whole_numbers_and_images(tmp_path, low_limits):
    images = np.arange(700 * 12, dtype=np.uint16).reshape(700, 4, 3)
    table = read_table(write(tmp_path / "x.zarr", images, chunks=(64, 4, 3)))
    assert table.image_shape == (4, 3) and table.feature_names[4] == "pixel 1,1"
    assert_array_equal(cells(table), images.reshape(700, 12))


@pytest.mark.parametrize("missing", ["auto", "drop", "mean"])
def test_gaps_and_chosen_columns_of_a_large_array_are_those_of_a_small_one(
    tmp_path, low_limits, missing
):
    gaps = X.copy()
    gaps[::9, 2] = np.nan
    write(tmp_path / "x.zarr", gaps, chunks=(64, 4))
    np.save(tmp_path / "x.npy", gaps)
    options = {"missing": missing, "exclude": ["column 1"]}
    large, small = (read_table(tmp_path / f"x.{end}", **options) for end in ("zarr", "npy"))
    assert_array_equal(cells(large), cells(small))
    assert_array_equal(large.kept, small.kept)
    assert large.means == small.means and large.notes == small.notes
    assert large.is_large and large.feature_names == small.feature_names


def test_a_large_memory_map_is_not_copied(tmp_path, monkeypatch):
    np.save(tmp_path / "x.npy", X)
    monkeypatch.setattr("deccs.data.tables.reading.LARGE", 1_000)
    table = read_table(tmp_path / "x.npy", columns=["column 4", "column 2"])
    assert isinstance(table.rows, ColumnRows) and isinstance(table.rows.source.X, np.memmap)
    assert_array_equal(cells(table), X[:, [3, 1]])


def test_a_fit_labels_all_rows(tmp_path, low_limits, small, quick_classifiers):
    path = write(tmp_path / "x.zarr", chunks=(64, 4))
    model = small().fit(path)
    assert len(model.learning_rows_) == N_LEARNED and len(model.labels_) == N_ROWS
    by_array = small().fit(X)
    assert_array_equal(model.labels_, by_array.labels_)
    assert_array_equal(model.predict(path), by_array.predict(X))
    assert_array_equal(model.predict(read_table(path).rows), model.labels_)


def test_the_command_line(tmp_path, low_limits, quick_classifiers):
    write(tmp_path / "x.zarr", chunks=(64, 4))
    options = ("-k", 3, "--rounds", 0, "--set", "views=none", "--set", "pretraining.n_epochs=2")
    code, _, err = deccs("fit", tmp_path / "x.zarr", *options, "--out", tmp_path / "run")
    assert code == 0, err
    model = DECCS.load(tmp_path / "run" / "model")
    code, out, err = deccs("predict", tmp_path / "run", tmp_path / "x.zarr")
    assert code == 0, err
    assert [int(row[1]) for row in rows_of(out)[1:]] == model.labels_.tolist()
    code, _, err = deccs("report", tmp_path / "run")
    assert code == 0, err
    shutil.rmtree(tmp_path / "x.zarr" / "c" / "3")
    code, _, err = deccs("report", tmp_path / "run")
    assert code == 2 and "has changed since the fit" in " ".join(err.split())


def test_the_files_of_a_folder_tell_whether_it_is_the_same(tmp_path):
    path = write(tmp_path / "x.zarr", chunks=(64, 4))
    before = identity(path, is_large=False)
    assert before == identity(path, is_large=False) and before["sha256"]
    zarr.open(str(path), mode="r+")[0, 0] = 7.0
    assert identity(path, is_large=False) != before


# What cannot be read.


def cut_chunk(path):
    chunk = path / "c" / "3" / "0"
    chunk.write_bytes(chunk.read_bytes()[:40])


@pytest.mark.parametrize(
    "harm",
    [
        lambda path: (path / "zarr.json").write_text("{"),
        lambda path: (path / "zarr.json").unlink(),
    ],
)
def test_a_broken_folder(tmp_path, harm):
    path = write(tmp_path / "x.zarr", chunks=(64, 4))
    harm(path)
    with pytest.raises(TableError, match=r"x\.zarr cannot be read as Zarr.*complete"):
        read_table(path)


def test_a_broken_chunk_ends_with_the_message(tmp_path):
    cut_chunk(write(tmp_path / "x.zarr", chunks=(64, 4)))
    code = f"from deccs.data.tables import read_table; read_table({str(tmp_path / 'x.zarr')!r})"
    ended = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    assert "Check that the folder is complete" in ended.stderr.splitlines()[-1]


def test_chunks_that_are_not_there_are_told(tmp_path):
    path = write(tmp_path / "x.zarr", chunks=(64, 4))
    shutil.rmtree(path / "c" / "3")
    (note,) = read_table(path).notes
    assert note.startswith("1 of 11 chunks are not in the folder: all of their values count as 0.0")


@pytest.mark.parametrize(
    ("values", "told"),
    [
        (np.zeros(9), r"shape \(9,\)"),
        (np.zeros((0, 3)), r"shape \(0, 3\)"),
        (np.zeros((3, 2), complex), "values of type complex128"),
    ],
)
def test_arrays_that_are_no_table(tmp_path, values, told):
    with pytest.raises(TableError, match=told):
        read_table(write(tmp_path / "x.zarr", values))


@pytest.mark.parametrize(
    ("names", "told"), [((), "no array at all"), (("a",), r"only a\. Give one")]
)
def test_a_group_without_x(tmp_path, names, told):
    group = zarr.open_group(str(tmp_path / "x.zarr"), mode="w")
    for name in names:
        group.create_array(name, data=X)
    with pytest.raises(TableError, match=f"without an array X, {told}"):
        read_table(tmp_path / "x.zarr")


def test_an_array_that_goes_or_changes_during_the_fit_is_named(tmp_path, low_limits):
    path = write(tmp_path / "x.zarr", chunks=(64, 4))
    rows = read_table(path).rows
    shutil.rmtree(path / "c" / "3")
    with pytest.raises(GoneError, match=r"x\.zarr had 11 chunks when the fit began and has 10"):
        next(rows.stream(64))
    shutil.rmtree(path)
    with pytest.raises(GoneError, match=r"zarr\.json was there when the fit began"):
        next(rows.stream(64))


def test_without_zarr_the_message_says_what_to_install(tmp_path, monkeypatch):
    path = write(tmp_path / "x.zarr")
    find = importlib.util.find_spec
    monkeypatch.setattr(
        zarr_arrays, "find_spec", lambda name: None if name == "zarr" else find(name)
    )
    with pytest.raises(TableError, match=r'needs zarr: pip install "deccs\[zarr\]"'):
        read_table(path)
