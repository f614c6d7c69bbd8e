"""Kills at file-system calls: a sample here, all of them by ``python -m tests.fuzz.crash_points``."""

import os
import sys

import pytest

from tests.fuzz.crash_points import CASES, Wrong, crashes, quick_and_often
from tests.helpers.forks import in_fork
from tests.helpers.slow import mostly_slow

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or not hasattr(os, "fork"), reason="it forks, and reads /proc"
)
# Calls to skip between kills. They are odd, so that all kinds of calls are met.
SAMPLES = {
    "fit": 97,
    "fit, resumed": 89,
    "fit --method consensus --overwrite": 61,
    "rename": 5,
    "save as a folder": 7,
    "save as a zip file": 9,
    "fit in Python": 83,
}


def wrong_crashes(name, place, every):
    with quick_and_often():
        states = list(crashes(name, place, every))
    assert states
    return [f"call {number}: {state}" for number, state in states if isinstance(state, Wrong)]


@pytest.mark.parametrize("name", mostly_slow(SAMPLES, ("rename",)))
def test_killed_at_a_call_it_is_old_or_new_and_goes_on(name, tmp_path):
    assert in_fork(wrong_crashes, name, tmp_path, SAMPLES[name]) == []


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_killed_at_any_call_it_is_old_or_new_and_goes_on(name, tmp_path):
    assert in_fork(wrong_crashes, name, tmp_path, 1) == []
