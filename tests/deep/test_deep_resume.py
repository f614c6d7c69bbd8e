"""Deep methods killed at any moment with SIGKILL and resumed give the same bits as one uninterrupted fit."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import deccs
from tests.deep.killed_fits import METHODS, RESUMABLE

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="fits run in forked processes")


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """A folder with, for each method, the model of a straight fit and that of a killed one."""
    folder = tmp_path_factory.mktemp("killed")
    root = Path(__file__).parents[2]
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(Path(deccs.__file__).parents[1]), str(root)]),
        # A process that has started threads must not be forked.
        "OMP_NUM_THREADS": "1",
        "CUDA_VISIBLE_DEVICES": "",
    }
    command = [sys.executable, "-m", "tests.deep.killed_fits", str(folder)]
    subprocess.run(command, cwd=folder, env=environment, check=True)
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("name", RESUMABLE)
def test_killed_and_resumed_it_gives_the_same_model(results, name):
    n_kills = (results / f"{name}.txt").read_text()
    assert n_kills.isdigit(), n_kills
    assert int(n_kills) >= 1
    straight, resumed = (results / f"{name}-{kind}.zip" for kind in ("straight", "resumed"))
    assert straight.read_bytes() == resumed.read_bytes()
    assert not (results / f"{name}-checkpoint").exists()


def test_all_methods_that_train_can_be_resumed():
    assert set(METHODS) - set(RESUMABLE) <= {"IEC"}  # IEC has a closed form
