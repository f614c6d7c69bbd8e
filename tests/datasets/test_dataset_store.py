"""Where files come from, and every way in which that can fail."""

import errno
import hashlib
import os
from dataclasses import replace

import numpy as np
import pooch
import pytest
from numpy.testing import assert_array_equal

from deccs.datasets import DatasetError, load, store
from deccs.datasets.sources import SOURCES, RemoteFile, content_sha256

X = np.array([[0, 100] * 8, [7] * 16, [100] * 16], dtype=np.uint8)  # what formats.pendigits() holds
y = np.array([8, 0, 9])


@pytest.fixture
def pendigits(web, cache, formats, monkeypatch):
    """Three rows of pendigits, published on the local web server; a test may change the source."""
    web.pages["pendigits.zip"] = formats.pendigits()
    checksum = "sha256:" + hashlib.sha256(web.pages["pendigits.zip"]).hexdigest()
    files = (RemoteFile(web.url("pendigits.zip"), checksum),)
    source = replace(SOURCES["pendigits"], n=3, files=files, content=content_sha256(X, y))

    def publish(**changes):
        monkeypatch.setitem(SOURCES, "pendigits", replace(source, **changes))

    publish()
    return publish


def assert_nothing_usable(cache):
    assert store.cached_file("pendigits") is None
    assert not cache.exists() or list(cache.iterdir()) == []  # no temporary file either


def fail_to_load():
    """The message; it must say which data set, and the way round the failure."""
    with pytest.raises(DatasetError) as failure:
        load("pendigits")
    message = str(failure.value)
    assert "'pendigits'" in message and "DECCS_DATA" in message
    return message


def test_download_fills_the_cache_and_is_done_once(web, pendigits, cache):
    first = load("pendigits", normalize=False)
    assert_array_equal(first.X, X)
    assert_array_equal(first.y, y)
    assert sorted(os.listdir(cache)) == ["pendigits.npz", "pendigits.npz.sha256"]
    assert first.source == str(cache / "pendigits.npz")
    assert first.sha256 == hashlib.sha256((cache / "pendigits.npz").read_bytes()).hexdigest()

    assert load("pendigits").sha256 == first.sha256
    assert web.requests == ["pendigits.zip"]


def test_http_error(web, pendigits, cache):
    web.pages.clear()
    message = fail_to_load()
    assert "404" in message and web.url("pendigits.zip") in message
    assert_nothing_usable(cache)


def test_no_network(web, pendigits, cache):
    web.close()
    assert "Check the network" in fail_to_load()
    assert_nothing_usable(cache)


def test_wrong_checksum(web, pendigits, cache):
    published = hashlib.sha256(web.pages["pendigits.zip"]).hexdigest()
    web.pages["pendigits.zip"] += b"!"
    message = fail_to_load()
    assert "is not the published data" in message and published in message
    assert_nothing_usable(cache)


def test_truncated_body(web, pendigits, cache):
    web.claims["pendigits.zip"] = len(web.pages["pendigits.zip"])
    web.pages["pendigits.zip"] = web.pages["pendigits.zip"][:-50]
    assert "Could not download" in fail_to_load()
    assert_nothing_usable(cache)


def test_neither_https_nor_a_sha256_is_refused_before_the_download(web, pendigits, cache):
    for checksum in (None, "md5:" + "0" * 32):
        pendigits(files=(RemoteFile(web.url("pendigits.zip"), checksum),), content=None)
        assert "no https, and no sha256" in fail_to_load()
    assert_nothing_usable(cache)


def test_truncated_body_of_a_file_without_a_published_checksum(web, pendigits, cache):
    pendigits(files=(RemoteFile(web.url("pendigits.zip"), None),))
    web.pages["pendigits.zip"] = web.pages["pendigits.zip"][:-50]
    assert "cannot be decoded" in fail_to_load()
    assert_nothing_usable(cache)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"content": "0" * 64}, "the decoded arrays should have sha256 000"),
        ({"n": 4}, "expected 4 rows, got 3"),
        ({"d": 17}, r"expected X \(rows, 17\)"),
        ({"k": 9}, "expected labels 0 to 8 in y, got int64 from 0 to 9"),
    ],
)
def test_other_content_is_the_same_error_as_a_wrong_checksum(web, pendigits, cache, changes, words):
    pendigits(**changes)
    with pytest.raises(DatasetError, match=f"is not the published data: {words}"):
        load("pendigits")
    assert_nothing_usable(cache)


def no_space(*args, **kwargs):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.parametrize(
    ("where", "what"),
    [(pooch.HTTPDownloader, "__call__"), (np, "savez_compressed"), (os, "fsync"), (os, "replace")],
    ids=["downloading", "writing", "flushing", "renaming"],
)
def test_disk_full(pendigits, cache, monkeypatch, where, what):
    with monkeypatch.context() as full:
        full.setattr(where, what, no_space)
        message = fail_to_load()
    assert "the disk is full" in message and "DECCS_CACHE" in message and str(cache) in message
    assert_nothing_usable(cache)
    load("pendigits")  # and with room it works


def test_cache_that_cannot_be_a_folder(pendigits, cache):
    cache.write_text("a file is in the way")
    assert str(cache) in fail_to_load()


@pytest.mark.parametrize("damage", ["half", "empty", "no sidecar", "other sidecar"])
def test_a_damaged_cache_file_is_downloaded_again(web, pendigits, cache, caplog, damage):
    load("pendigits")
    path, sidecar = cache / "pendigits.npz", cache / "pendigits.npz.sha256"
    whole = path.read_bytes()
    match damage:
        case "half":
            path.write_bytes(whole[: len(whole) // 2])
        case "empty":
            path.write_bytes(b"")
        case "no sidecar":
            sidecar.unlink()
        case "other sidecar":
            sidecar.write_text("0" * 64)
    assert_array_equal(load("pendigits", normalize=False).X, X)
    assert web.requests == ["pendigits.zip"] * 2
    assert "does not match its checksum" in caplog.text
    assert path.read_bytes() == whole


def test_a_damaged_cache_file_without_network_is_an_error_not_data(web, pendigits, cache):
    load("pendigits")
    (cache / "pendigits.npz").write_bytes(b"half")
    web.close()
    fail_to_load()


def test_the_users_folder_comes_first(web, pendigits, cache, tmp_path, monkeypatch):
    load("pendigits")
    np.savez(tmp_path / "pendigits.npz", X=X[:1] + 1, y=y[:1])  # a part is allowed
    monkeypatch.setenv("DECCS_DATA", str(tmp_path))
    mine = load("pendigits", normalize=False)
    assert_array_equal(mine.X, X[:1] + 1.0)
    assert mine.source == str(tmp_path / "pendigits.npz")
    assert mine.sha256 == hashlib.sha256((tmp_path / "pendigits.npz").read_bytes()).hexdigest()


def test_a_data_set_that_is_not_in_the_users_folder_comes_from_the_cache(
    pendigits, tmp_path, monkeypatch
):
    (tmp_path / "mine").mkdir()
    monkeypatch.setenv("DECCS_DATA", str(tmp_path / "mine"))
    assert load("pendigits").n == 3


def test_a_users_folder_that_does_not_exist(cache, monkeypatch, tmp_path):
    monkeypatch.setenv("DECCS_DATA", str(tmp_path / "absent"))
    with pytest.raises(DatasetError, match="DECCS_DATA is set to .*absent', which is not a folder"):
        load("synth")


@pytest.mark.parametrize(
    ("arrays", "words"),
    [
        ({"X": X}, "y is not a file in the archive"),
        (
            {"X": X[:, :3], "y": y},
            r"expected X \(rows, 16\) and y \(rows,\), got \(3, 3\) and \(3,\)",
        ),
        ({"X": X, "y": y[:2]}, r"got \(3, 16\) and \(2,\)"),
        ({"X": X, "y": y + 1}, "expected labels 0 to 9 in y, got int64 from 1 to 10"),
        ({"X": X, "y": y / 2}, "got float64"),
        ({"X": np.full((3, 16), np.nan), "y": y}, "missing or infinite"),
        ({"X": X.astype(str), "y": y}, "expected numbers in X"),
        ({"X": X.astype(object), "y": y}, "allow_pickle=False"),
    ],
)
def test_a_users_file_that_does_not_fit(cache, tmp_path, monkeypatch, arrays, words):
    np.savez(tmp_path / "pendigits.npz", **arrays)
    monkeypatch.setenv("DECCS_DATA", str(tmp_path))
    with pytest.raises(DatasetError, match=words) as failure:
        load("pendigits")
    assert "pendigits.npz" in str(failure.value) and "remove" in str(failure.value)
