"""Each published format, from a file small enough to read."""

import pytest
from numpy.testing import assert_array_equal

from deccs.datasets import parsers
from deccs.datasets.parsers import DAMAGED


def test_idx_joins_train_and_test(save, formats):
    paths = [
        save("train-images", formats.idx((2, 2, 3), bytes(range(12)))),
        save("train-labels", formats.idx((2,), bytes([7, 0]))),
        save("test-images", formats.idx((1, 2, 3), bytes([255] * 6))),
        save("test-labels", formats.idx((1,), bytes([9]))),
    ]
    X, y = parsers.parse_idx(paths)
    assert_array_equal(X, [[0, 1, 2, 3, 4, 5], [6, 7, 8, 9, 10, 11], [255] * 6])
    assert_array_equal(y, [7, 0, 9])
    assert (X.dtype, y.dtype) == ("uint8", "int64")


def test_a_damaged_idx_file_is_refused(save, formats):
    whole = formats.idx((1,), b"a")
    fewer_values_than_its_header_says = formats.idx((2, 2), b"abc")
    for content in (b"", b"no gzip", whole[:-9], fewer_values_than_its_header_says):
        with pytest.raises(DAMAGED):
            parsers.read_idx(save("images.gz", content))


def test_libsvm_labels_start_at_one_and_absent_values_are_zero(save, formats):
    train = save("usps.bz2", formats.libsvm("10 1:-1 2:0.5 256:1", "1 3:-0.25"))
    test = save("usps.t.bz2", formats.libsvm("5 256:-1"))
    X, y = parsers.parse_libsvm([train, test])
    assert X.shape == (3, 256) and X.dtype == "float32"
    assert_array_equal(X[0, [0, 1, 2, 255]], [-1, 0.5, 0, 1])
    assert_array_equal(X[1, [2, 255]], [-0.25, 0])
    assert_array_equal(X[2, [0, 255]], [0, -1])
    assert_array_equal(y, [9, 0, 4])


def test_pendigits(save, formats):
    X, y = parsers.parse_pendigits([save("pendigits.zip", formats.pendigits())])
    assert_array_equal(X, [[0, 100] * 8, [7] * 16, [100] * 16])
    assert_array_equal(y, [8, 0, 9])
    assert X.dtype == "uint8"


def test_har_is_a_zip_in_a_zip(save, formats):
    folder = "UCI HAR Dataset"
    inner = formats.zip(
        {
            f"{folder}/train/X_train.txt": " 2.5000000e-001 -1.0000000e+000\n 0.0000000e+000 1.0000000e+000",
            f"{folder}/train/y_train.txt": "5\n1\n",
            f"{folder}/test/X_test.txt": " -5.0000000e-001  7.5000000e-001\n",
            f"{folder}/test/y_test.txt": "6\n",
            f"{folder}/train/Inertial Signals/body_acc_x_train.txt": "not this one",
            f"__MACOSX/{folder}/train/._X_train.txt": "nor this one",
        }
    )
    outer = formats.zip({"UCI HAR Dataset.zip": inner, "UCI HAR Dataset.names": "-"})
    X, y = parsers.parse_har([save("har.zip", outer)])
    assert_array_equal(X, [[0.25, -1], [0, 1], [-0.5, 0.75]])
    assert_array_equal(y, [4, 0, 5])
    assert X.dtype == "float32"


def test_an_archive_without_its_member_is_refused(save, formats):
    with pytest.raises(
        ValueError, match=r"expected one UCI HAR Dataset.zip in the archive, found 0"
    ):
        parsers.parse_har([save("har.zip", formats.zip({"other": "-"}))])


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
def test_mice_drops_rows_with_missing_values(save, newline):
    rows = [
        "MouseID,DYRK1A_N,ITSN1_N,Genotype,Treatment,Behavior,class",
        "309_1,0.503643884,0.747193224,Control,Memantine,C/S,c-CS-m",
        "309_2,,0.689063548,Control,Memantine,C/S,c-CS-m",
        "294_1,0.322140322,0.5,Control,Memantine,S/C,c-SC-m",
        "311_1,0.743117916,0.25,Control,Memantine,C/S,c-CS-m",
    ]
    X, y = parsers.parse_mice([save("data.csv", newline.join(rows).encode())])
    assert_array_equal(X, [[0.503643884, 0.747193224], [0.322140322, 0.5], [0.743117916, 0.25]])
    assert_array_equal(y, [0, 1, 0])  # numbered as they appear
    assert X.dtype == "float64"


def test_mice_without_rows_or_class_is_refused(save):
    for content in (b"", b"MouseID,DYRK1A_N\n309_1,0.5\n"):
        with pytest.raises(DAMAGED):
            parsers.parse_mice([save("data.csv", content)])
