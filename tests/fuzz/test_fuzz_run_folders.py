"""Some changed run folders and checkpoints; more by ``python -m tests.fuzz.run_folders --n 5000``."""

import sys

import pytest

from tests.fuzz import checkpoints, run_folders
from tests.fuzz.crash_points import quick_and_often
from tests.helpers.forks import in_fork
from tests.helpers.slow import mostly_slow

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="it forks, and reads /proc")
MOST_MB = 300


def fuzz_runs(place, seed, n):
    with quick_and_often():
        run_folders.make_runs(place)
        return run_folders.fuzz_in_fork(place, seed=seed, numbers=list(range(n)))


@pytest.mark.slow
def test_commands_refuse_changed_run_folders_in_a_sentence(tmp_path):
    found = in_fork(fuzz_runs, tmp_path, 0, 30)
    assert found["problems"] == []
    assert found["seconds"] < run_folders.MOST_SECONDS and found["mb"] < MOST_MB


@pytest.mark.parametrize("name", mostly_slow(["rounds", "count", "DeepECT"], ("DeepECT",)))
def test_fits_go_on_from_changed_checkpoints(name, tmp_path):
    found = checkpoints.fuzz_in_fork(tmp_path, seed=0, numbers=list(range(25)), names=[name])
    assert found["problems"] == []
    assert found["outcomes"][checkpoints.NOTICED] >= 3
    assert found["seconds"] < checkpoints.MOST_SECONDS and found["mb"] < MOST_MB


@pytest.mark.slow
def test_thousands_of_changed_run_folders_and_checkpoints(tmp_path):
    assert in_fork(fuzz_runs, tmp_path, 1, 3000)["problems"] == []
    found = checkpoints.fuzz_in_fork(tmp_path, seed=1, numbers=list(range(3000)))
    assert found["problems"] == []
