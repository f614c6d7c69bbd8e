"""Members, starts and values of k on other processes: those of this machine, of Dask and of Ray."""

import os
import warnings
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from joblib import effective_n_jobs, parallel_config
from numpy.testing import assert_array_equal
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.cluster import KMeans

from deccs import count_clusters
from deccs.rounds.records import Consensus
from deccs.rounds.restarts import chosen
from deccs.spreading import SpreadWarning, each, n_places, one_thread, spread
from deccs.storage import FolderCheckpoint

pytestmark = [
    pytest.mark.filterwarnings("error::deccs.spreading.SpreadWarning"),
    pytest.mark.filterwarnings("ignore::deccs.counting.one_group.OneGroupWarning"),
]
HERE = os.getpid()
X = np.random.default_rng(0).normal(
    size=(150, 4)
)  # one cloud: no start is so good that it ends the search


def where(shared, number):
    """A call that says something of the process it runs in."""
    warnings.warn(f"number {number}", UserWarning, stacklevel=1)
    if number == 2:
        raise ZeroDivisionError("two")
    return shared + number, os.getpid(), n_places(), torch.get_num_threads()


def dies_elsewhere(parent, number):
    if os.getpid() != parent:
        os._exit(3)
    return number


class DiesElsewhere(ClusterMixin, BaseEstimator):
    """A member that no worker survives."""

    def __init__(self, parent=HERE):
        self.parent = parent

    def fit(self, X, y=None):
        if os.getpid() != self.parent:
            os._exit(3)
        self.labels_ = KMeans(3, n_init=1, random_state=0).fit_predict(X)
        return self


def test_without_a_config_nothing_is_spread():
    assert n_places() == 1
    calls = each(where, (10,), [(0,), (2,)])
    with pytest.warns(UserWarning, match="number 0"):
        assert next(calls)[:2] == (10, HERE)
    with pytest.warns(UserWarning, match="number 2"), pytest.raises(ZeroDivisionError):
        next(calls)


def test_threads_of_this_process_are_no_other_places():
    with parallel_config(backend="threading", n_jobs=2):
        assert n_places() == 1


def test_calls_come_back_in_order_with_their_warnings_and_errors(elsewhere):
    assert n_places() == 2
    outcomes = spread(where, (10,), [(0,), (2,), (1,)])
    with pytest.warns(UserWarning, match="number 0"):
        value, pid, n_inside, n_threads = outcomes[0].result()
    assert (value, n_inside, n_threads) == (10, 1, 1)  # a worker does not spread its work again
    assert pid != HERE
    with pytest.warns(UserWarning, match="number 2"), pytest.raises(ZeroDivisionError, match="two"):
        outcomes[1].result()
    with pytest.warns(UserWarning, match="number 1"):
        assert outcomes[2].result()[0] == 11


def test_where_workers_die_calls_are_made_here(elsewhere):
    with pytest.warns(SpreadWarning, match="could not spread 2 calls .* run in this process"):
        outcomes = spread(dies_elsewhere, (HERE,), [(0,), (1,)])
    assert [outcome.result() for outcome in outcomes] == [0, 1]


def test_what_cannot_be_sent_is_called_here(elsewhere):
    generator = (number for number in range(3))
    with pytest.warns(SpreadWarning, match="cannot pickle 'generator' object"):
        outcomes = spread(next, (generator,), [(), ()])
    assert [outcome.result() for outcome in outcomes] == [0, 1]


@pytest.mark.slow
def test_inside_a_fit_scikit_learn_stays_in_this_process(small, elsewhere):
    seen = []
    small(
        n_rounds=0, callbacks=[lambda round_: seen.append((effective_n_jobs(None), n_places()))]
    ).fit(X)
    assert seen == [(1, 2)]
    assert effective_n_jobs(None) == 2


def same_fits(one, other):
    assert_array_equal(one.labels_, other.labels_)
    assert one.agreement_ == other.agreement_
    assert [round_.start for round_ in one.rounds_] == [round_.start for round_ in other.rounds_]
    weights = one.autoencoder_.state_dict(), other.autoencoder_.state_dict()
    for name, weight in weights[0].items():
        assert_array_equal(weight, weights[1][name])


@pytest.fixture(scope="module")
def plain(small):
    """A fit with three starts in one process, and what it told."""
    told = []
    with one_thread():
        model = small(n_init=3, callbacks=[told.append]).fit(X)
    return SimpleNamespace(model=model, told=told)


def not_here(*arguments, **options):
    raise AssertionError("This ran in the first process.")


def test_starts_give_the_same_bits_and_tell_the_same(
    small, plain, elsewhere, tmp_path, monkeypatch
):
    told, checkpoint = [], FolderCheckpoint(tmp_path)
    with one_thread(), monkeypatch.context() as patch:
        patch.setattr("deccs.rounds.restarts.run_start", not_here)
        model = small(n_init=3, callbacks=[told.append], checkpoint=checkpoint).fit(X)
    same_fits(model, plain.model)
    where = [(round_.start, round_.number) for round_ in told]
    assert where == [(round_.start, round_.number) for round_ in plain.told]
    assert {start for start, _ in where} == {0, 1, 2}
    for one, other in zip(told, plain.told, strict=True):
        assert_array_equal(one.base_partitions, other.base_partitions)
    # A fit that is killed now need not run the starts again, here or elsewhere.
    told.clear()
    again = small(n_init=3, callbacks=[told.append], checkpoint=checkpoint)
    with one_thread():
        same_fits(again.fit(X), plain.model)
    assert not told


def test_a_start_that_was_begun_goes_on_in_this_process(small, plain, elsewhere, tmp_path):
    class Killed(Exception):
        pass

    def kill(round_):
        if round_.start == 1:
            raise Killed

    checkpoint, told = FolderCheckpoint(tmp_path), []
    with one_thread():
        with pytest.raises(Killed), parallel_config(backend="sequential"):
            small(n_init=3, callbacks=[kill], checkpoint=checkpoint).fit(X)
        model = small(n_init=3, callbacks=[told.append], checkpoint=checkpoint).fit(X)
    same_fits(model, plain.model)
    known = sum(round_.start == 0 for round_ in plain.told) + 1
    rest = [(round_.start, round_.number) for round_ in plain.told[known:]]
    assert [(round_.start, round_.number) for round_ in told] == rest


def test_members_give_the_same_labels(small, elsewhere):
    few = {
        "n_rounds": 0,
        "members": [("a", KMeans(3)), ("b", KMeans(4)), ("c", np.arange(150) % 3)],
    }
    with one_thread():
        model = small(**few).fit(X)
        with parallel_config(backend="sequential"):
            other = small(**few).fit(X)
    same_fits(model, other)
    assert_array_equal(model.rounds_[0].base_partitions, other.rounds_[0].base_partitions)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Member 'deadly'")
def test_a_member_that_no_worker_survives_does_not_end_the_fit(small, elsewhere):
    members = [("a", KMeans(3)), ("b", KMeans(4)), ("deadly", DiesElsewhere())]
    cluster = elsewhere != "loky"  # there, the process that shows whose fault it was is enough
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = small(n_rounds=0, members=members).fit(X)
    assert any(warning.category is SpreadWarning for warning in caught) == cluster
    assert any("the process it ran in has died" in str(warning.message) for warning in caught)
    assert model.member_names_ == ("a", "b")


@pytest.mark.slow
def test_a_limit_of_time_keeps_members_on_this_machine(small, elsewhere):
    with one_thread():
        model = small(n_init=2, member_timeout=60).fit(X)
        with parallel_config(backend="sequential"):
            same_fits(model, small(n_init=2).fit(X))


def test_values_of_k_give_the_same_bits(elsewhere, monkeypatch):
    rows = np.concatenate([X, X + 6])
    with one_thread():
        with monkeypatch.context() as patch:
            patch.setattr("deccs.counting.panel.by_mixture", not_here)
            patch.setattr("deccs.counting.evidence.by_ward", not_here)
            count = count_clusters(rows, "2-6", random_state=0)
        with parallel_config(backend="sequential"):
            other = count_clusters(rows, "2-6", random_state=0)
    assert count.n_clusters == other.n_clusters
    assert_array_equal(count.partitions, other.partitions)
    for name, curve in count.curves.items():
        assert_array_equal(curve, other.curves[name])


def start(number, agreement, n_members=3):
    """A finished start with one round."""
    rank = n_members, agreement
    round_ = SimpleNamespace(number=number, agreement=agreement, rank=rank)
    return Consensus(None, None, 0, [round_])


def test_which_of_finished_starts_is_kept():
    starts = [start(0, 0.90), start(1, 0.93), start(2, 0.80), start(3, 0.99, n_members=2)]
    cuts = [0.2, 0.3, 0.0, 0.0]
    # 0 and 1 agree about as well, and 0 separates fewer neighbors. 2 agrees less, 3 left out a member.
    pairs = list(zip(starts, cuts, strict=True))
    assert chosen(pairs, has_views=False) is starts[0]
    assert chosen(pairs[1:3], has_views=True) is starts[1]
    assert chosen([(starts[0], 0.2), (start(4, 0.92), 0.2)], has_views=False) is starts[0]
