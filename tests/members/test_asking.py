"""Members that hang, crash or cannot be sent to another process."""

import ctypes
import os
import signal
import threading
import time

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.cluster import KMeans

from deccs import ConsensusClustering
from deccs.members.asking import Jobs, MemberWarning, ask_all
from deccs.members.processes import Died, NotSent, OutOfTime, in_processes

ROWS = np.arange(40)
posix = pytest.mark.skipif(os.name != "posix", reason="Windows has other exit codes")
X = np.where(ROWS < 20, 0.0, 5.0)[:, None] + np.random.default_rng(0).normal(size=(40, 2))


class Halves(ClusterMixin, BaseEstimator):
    """Finds both halves, unless it hangs or crashes."""

    def __init__(self, what=None):
        self.what = what

    def fit(self, X, y=None):
        if self.what == "hang":
            time.sleep(600)
        if self.what == "crash":
            ctypes.string_at(0)
        if self.what == "exit":
            os._exit(7)
        self.labels_ = (X[:, 0] > np.median(X[:, 0])).astype(int)
        return self


class Locked(Halves):
    """No copy of it can be made in another process."""

    def __getstate__(self):
        raise TypeError("cannot pickle a lock")


def ask(jobs, *what, **members):
    members |= {kind: Halves(kind) for kind in what}
    return dict(
        zip(
            members,
            ask_all({name: (each, X, ROWS, 0) for name, each in members.items()}, jobs),
            strict=True,
        )
    )


@posix
def test_calls_in_processes_have_the_results_of_calls():
    assert in_processes(divmod, [(7, 2), (9, 3), (1, 1)], n_workers=2) == [(3, 1), (3, 0), (1, 0)]
    (pid,) = in_processes(os.getpid, [()], n_workers=1)
    assert in_processes(os.getpid, [()], n_workers=1) == [pid] != [os.getpid()]
    os.kill(pid, signal.SIGTERM)  # such as by the system, for lack of memory
    assert in_processes(divmod, [(7, 2)], n_workers=1) == [(3, 1)]


@posix
def test_one_call_that_fails_takes_no_other_with_it():
    crash, hang = "__import__('ctypes').string_at(0)", "__import__('time').sleep(600)"
    calls = [(crash,), (hang,), (threading.Lock(),), ("6 * 7",)]
    died, late, not_sent, result = in_processes(eval, calls, n_workers=2, seconds=0.5)
    assert isinstance(died, Died) and str(died) == "SIGSEGV(-11)"
    assert isinstance(late, OutOfTime)
    assert isinstance(not_sent, NotSent) and "lock" in str(not_sent)
    assert result == 42


@posix
@pytest.mark.slow
def test_a_member_that_hangs_is_stopped_and_the_others_go_on():
    answers = ask(Jobs(timeout=1.0), "good", "hang", "crash", "exit")
    assert answers["hang"] == (None, "it took longer than member_timeout=1 seconds")
    assert answers["crash"][1] == "the process it ran in has died (SIGSEGV(-11))"
    assert answers["exit"][1] == "the process it ran in has died (EXIT(7))"
    assert_array_equal(answers["good"][0], ROWS >= 20)


def test_a_member_that_cannot_be_sent_runs_in_this_process():
    words = r"'mine' cannot be sent .*cannot pickle a lock.* It runs in this one"
    with pytest.warns(MemberWarning, match=words + ", without a limit of time"):
        answers = ask(Jobs(timeout=60), "good", mine=Locked())
    assert_array_equal(answers["mine"][0], answers["good"][0])


@pytest.mark.slow
def test_a_worker_of_joblib_need_not_know_a_member():
    with pytest.warns(MemberWarning, match=r"'mine' cannot be sent .* It runs in this one\."):
        answers = ask(Jobs(n_jobs=2), "good", mine=Locked())
    assert_array_equal(answers["mine"][0], answers["good"][0])


@posix
@pytest.mark.slow
def test_a_worker_of_joblib_that_dies_costs_its_member_alone():
    answers = ask(Jobs(n_jobs=2), "good", "crash", "fine")
    assert answers["crash"][1] == "the process it ran in has died (SIGSEGV(-11))"
    for name in ("good", "fine"):
        assert_array_equal(answers[name][0], ROWS >= 20)


def test_a_limit_of_time_changes_no_result():
    members = [("kmeans", KMeans(2, n_init=1)), ("halves", Halves()), ("labels", ROWS % 3)]
    plain = ConsensusClustering(2, members=members, random_state=0).fit(X)
    limited = ConsensusClustering(2, members=members, member_timeout=60, random_state=0).fit(X)
    assert_array_equal(limited.base_partitions_, plain.base_partitions_)
    assert_array_equal(limited.labels_, plain.labels_)


def test_a_fit_goes_on_without_a_member_that_hangs(blobs, small):
    members = [("kmeans", KMeans(3, n_init=1)), ("hang", Halves("hang")), ("truth", blobs.y)]
    with pytest.warns(
        MemberWarning, match="'hang' is left out: it took longer than member_timeout"
    ):
        model = small(n_rounds=0, members=members, member_timeout=0.5).fit(blobs.X)
    assert model.member_names_ == ("kmeans", "truth")


@pytest.mark.parametrize("wrong", [0, -1, "5", np.nan, np.inf])
def test_a_limit_of_time_is_a_number_above_0(wrong):
    with pytest.raises(ValueError, match="member_timeout must be a number above 0 or None, got"):
        ConsensusClustering(2, member_timeout=wrong).fit(X)
