"""The checks of the members a user gives."""

import numpy as np
import pytest
from sklearn.cluster import DBSCAN, KMeans
from sklearn.mixture import GaussianMixture

from deccs.members.checks import asked_clusters, check_members, members_for
from deccs.members.default import DEFAULT_MEMBERS


@pytest.mark.parametrize(
    ("members", "words"),
    [
        (
            [("a", [0, 1]), ("b", KMeans(2))],
            r"'a' must have fit_predict, or be an array with one label.*\(4,\).*\(2,\)",
        ),
        ([("a", np.zeros((4, 1))), ("b", KMeans(2))], r"got ndarray of shape \(4, 1\)"),
        ([("a", None), ("b", KMeans(2))], "got NoneType"),
        (
            [("a", [[0], [1, 2]]), ("b", KMeans(2))],
            "'a' has no fit_predict and is not an array of labels",
        ),
        ([("a", KMeans(2)), ("a", KMeans(3))], r"different names, got \['a', 'a'\]"),
        (
            [("a", KMeans), ("b", KMeans(3))],
            r"'a' is the class KMeans; give an object: KMeans\(...\)",
        ),
        ([("a", KMeans(2))], r"at least two ensemble members, got 1: \['a'\]"),
        ([], "at least two ensemble members, got 0"),
        (
            [KMeans(2), KMeans(3)],
            r"list of pairs like \('kmeans', KMeans\(10\)\).*KMeans\(n_clusters=2\)",
        ),
        ({"a": KMeans(2), "b": KMeans(3)}, "list of pairs"),
        ("kmeans", "list of pairs.*'kmeans'"),
    ],
)
def test_wrong_members_are_named(members, words):
    with pytest.raises(ValueError, match=f"(?s){words}"):
        check_members(members, n_points=4)


def test_without_members_there_are_the_default_ones():
    assert [name for name, _ in members_for(3, None, 10)] == list(DEFAULT_MEMBERS)
    assert members_for(1, None, 10)[0][1].n_clusters == 2  # agreement needs two clusters
    with pytest.raises(ValueError, match="needs members. Give members or n_clusters"):
        members_for(None, None, 10)


def test_asked_clusters():
    assert asked_clusters(KMeans(5), n_found=4) == 5
    assert asked_clusters(GaussianMixture(6), n_found=4) == 6
    assert asked_clusters(DBSCAN(), n_found=4) == 4
    assert asked_clusters(np.array([0, 1]), n_found=2) == 2
