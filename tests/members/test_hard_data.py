"""Trees and members on rows where rounding and ties are hard: they end, and give what they promise."""

import subprocess
import sys
import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.cluster.hierarchy import cut_tree, linkage

from deccs import ConsensusClustering
from deccs.members.agglomerative import ward_merges
from deccs.members.asking import ask
from deccs.members.default import MEMBERS
from deccs.members.genie import genie_merges
from deccs.members.processes import in_processes
from deccs.members.running import TooFewMembers, of_one_scale
from deccs.members.spanning_tree import parts_of, single_linkage, spanning_tree
from tests.helpers.hard_data import WITH_TIES, WITHOUT_TIES, cases, near_copies

EVERY_KIND = (*WITH_TIES, *WITHOUT_TIES)


def centered(X):
    """Without an offset: differences of rows stay what they are."""
    X = X - X[0]
    return X - X.mean(axis=0)


def sum_of_squares(X, labels):
    clusters = [X[labels == label] for label in np.unique(labels)]
    return sum(np.square(cluster - cluster.mean(axis=0)).sum() for cluster in clusters)


def rounding(X):
    """What squared distances of rows may be off by."""
    return len(X) * X.shape[1] * np.square(4 * np.finfo(float).eps * np.abs(X).max())


def test_every_cut_of_ward_has_as_many_clusters_as_wanted():
    for kind, X in cases(EVERY_KIND, 140):
        merges = ward_merges(X)
        for k in {1, 2, min(7, len(X)), len(X) // 2 + 1, len(X)}:
            assert parts_of(merges[: len(X) - k], len(X)).max() + 1 == min(k, len(X)), (kind, k)


def test_without_ties_ward_costs_what_scipys_does():
    for kind, X in cases(WITHOUT_TIES, 105):
        X = centered(X)
        merges, tree = ward_merges(X), linkage(X, "ward")
        for k in {2, 7, len(X) // 2 + 1} - set(range(len(X) + 1, 8)):
            ours = sum_of_squares(X, parts_of(merges[: len(X) - k], len(X)))
            scipys = sum_of_squares(X, cut_tree(tree, k)[:, 0])
            assert ours <= scipys * (1 + 1e-6) + rounding(X), (kind, X.shape, k)


def test_ward_always_merges_two_of_the_nearest():
    """A law with ties, too: no two clusters are nearer than those that are merged."""
    for kind, X in cases(EVERY_KIND, 70, most_rows=60, seed=1):
        X = centered(X)
        cluster_of, centers, sizes = np.arange(len(X)), X.copy(), np.ones(len(X))
        for first, second in ward_merges(X):
            a, b = cluster_of[first], cluster_of[second]
            weights = np.outer(sizes, sizes) / np.maximum(sizes[:, None] + sizes, 1)
            distances = weights * np.square(centers[:, None] - centers).sum(axis=2)
            distances[np.outer(sizes, sizes) == 0] = np.inf  # gone
            np.fill_diagonal(distances, np.inf)
            assert distances[a, b] <= distances.min() * (1 + 1e-9) + rounding(X), kind
            sizes[a], sizes[b] = sizes[a] + sizes[b], 0
            cluster_of[cluster_of == b] = a
            centers[a] = X[cluster_of == a].mean(axis=0)


def test_single_linkage_has_scipys_heights_up_to_the_last_digits():
    for kind, X in cases(EVERY_KIND, 140, seed=2):
        X = centered(X)
        ours, scipys = single_linkage(X)[:, 2], linkage(X, "single")[:, 2]
        assert_allclose(ours, scipys, rtol=1e-3, atol=np.sqrt(rounding(X)), err_msg=kind)


def test_a_far_row_does_not_blur_the_distances_of_the_others():
    near = np.random.default_rng(0).normal(size=(100, 3))
    X = np.vstack([1e-3 * near, [[1e6, 1e6, 1e6]]])
    lengths = spanning_tree(X).lengths[:-1]
    assert_allclose(lengths, 1e-3 * spanning_tree(near).lengths, rtol=1e-4)


def test_genie_uses_every_edge_once():
    for _, X in cases(EVERY_KIND, 70, seed=3):
        edges = spanning_tree(X).edges
        merges = genie_merges(edges, 0.3)
        assert sorted(map(tuple, merges.tolist())) == sorted(map(tuple, edges.tolist()))


# Members and fits


def labels_of_members(kinds, n_cases, seed):
    """How many labels each default member gives, and why not."""
    answers = []
    for kind, X in cases(kinds, n_cases, seed=seed):
        for name in MEMBERS:
            labels, words = ask(MEMBERS[name](3), of_one_scale(X), np.arange(len(X)), 0)
            answers.append((kind, name, len(X), None if labels is None else len(labels), words))
    return answers


def fits(n_fits):
    """Clusters and labels of fits on near-copies of rows, as in the CSV file that once held a fit for ever."""
    found = []
    for seed in range(n_fits):
        X = near_copies(np.random.default_rng(seed), 150, 4)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                model = ConsensusClustering(3, random_state=seed).fit(X)
                found.append((model.n_clusters_, len(np.unique(model.labels_))))
            except TooFewMembers:  # all rows are alike
                found.append((len(np.unique(np.round(X, 6), axis=0)), 1))
    return found


def test_every_member_ends_and_says_what_it_could_not_do():
    (answers,) = in_processes(labels_of_members, [(EVERY_KIND, 28, 4)], 1, seconds=120)
    assert not isinstance(answers, Exception), answers
    for kind, name, n_rows, n_labels, words in answers:
        few = n_rows < 10 and ("n_samples" in words or "min_samples" in words)
        assert n_labels == n_rows or few, (kind, name, n_rows, words)


def test_sixty_fits_on_near_copies_end():
    (found,) = in_processes(fits, [(60,)], 1, seconds=120)
    assert not isinstance(found, Exception), found
    assert len(found) == 60
    assert [pair for pair in found if pair[0] != pair[1]] == []


@pytest.mark.slow
def test_a_file_of_near_copies_is_clustered_in_time(tmp_path):
    X = near_copies(np.random.default_rng(0), 300, 4)
    header = {"delimiter": ",", "header": "a,b,c,d", "comments": "", "fmt": "%.18g"}
    np.savetxt(tmp_path / "near.csv", X, **header)
    command = [sys.executable, "-m", "deccs", "fit", "near.csv", "--rounds", "0", "--out", "run"]
    subprocess.run(command, cwd=tmp_path, timeout=120, check=True)
    assert (tmp_path / "run" / "labels.csv").read_text().count("\n") == 301
