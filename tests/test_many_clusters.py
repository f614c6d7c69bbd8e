"""Numbers of clusters near the number of rows: an answer in seconds, or an error that says what to do."""

import time

import numpy as np
import pytest

from deccs import DECCS, ConsensusClustering, default_members
from deccs.deep import IEC, METHODS

X = np.random.default_rng(0).normal(size=(1_200, 4))


@pytest.mark.parametrize("method", [DECCS, ConsensusClustering, *METHODS.values()])
def test_more_clusters_than_half_of_many_rows_are_refused_at_once(method):
    started = time.perf_counter()
    with pytest.raises(ValueError, match=r"n_clusters=1000 is more than half .*at most 600"):
        method(1_000).fit(X)
    assert time.perf_counter() - started < 2


def test_hundreds_of_clusters_have_members_that_take_seconds():
    assert [name for name, _ in default_members(500)] == [
        "kmeans",
        "spectral",
        "agglomerative",
        "mixture",
    ]
    assert [name for name, _ in default_members(501)] == ["kmeans", "agglomerative", "bisecting"]
    model = ConsensusClustering(550, random_state=0).fit(X)
    assert len(set(model.labels_)) == 550


def test_more_pairs_of_clusters_than_memory_holds_are_refused():
    with pytest.raises(ValueError, match=r"Set n_partitions to at most 20"):
        IEC(500).fit(X)
