"""Facts about versions, machine and memory."""

import math
import sys
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pytest

import deccs
from deccs import environment
from deccs.json_values import finite


def test_versions_are_those_of_the_packages():
    versions = environment.versions()
    assert versions["deccs"] == deccs.__version__ and versions["torch"] == version("torch")
    assert set(versions) == {"deccs", "python", *environment.LIBRARIES}


def test_the_machine_has_a_processor_and_threads():
    facts = environment.machine()
    assert facts["cores"] >= 1 and facts["threads"] >= 1 and facts["processor"]


def test_peak_memory_counts_what_was_freed():
    before = environment.peak_memory_mb()
    block = np.ones(2**24)  # 128 MB
    block[:] = 2.0
    held = environment.peak_memory_mb()
    del block
    assert held >= before and held > 128
    assert environment.peak_memory_mb() > held - 2  # the kernel counts in batches


@pytest.mark.skipif(sys.platform == "win32", reason="has no resource module")
def test_peak_memory_where_there_is_no_proc(monkeypatch):
    import resource

    def nothing(path):
        raise FileNotFoundError(path)

    monkeypatch.setattr(Path, "read_text", nothing)
    usage = type("Usage", (), {"ru_maxrss": 300 * 2**20})  # bytes, as macOS has them
    monkeypatch.setattr(resource, "getrusage", lambda who: usage)
    assert environment.peak_memory_mb() == 300.0
    assert environment.processor_name()
    monkeypatch.setitem(sys.modules, "resource", None)  # Windows
    assert math.isnan(environment.peak_memory_mb())


def test_json_has_no_nan():
    assert finite({"a": [math.nan, {"b": (math.inf, 1, 0.5, "x", None, True)}]}) == {
        "a": [None, {"b": [None, 1, 0.5, "x", None, True]}]
    }
