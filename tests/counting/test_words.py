import numpy as np
import pytest

from deccs.counting import words
from deccs.counting.words import Difference, difference, sentence
from tests.helpers.counted import count_of, give_count, stability_of

THREE = np.array([0, 0, 1, 1, 2, 2])
TWO = np.array([1, 1, 0, 0, 0, 0])  # 1 and 2 of THREE are one
FOUR = np.array([0, 0, 1, 1, 3, 2])  # 2 of THREE is two
TRIED = {2: TWO, 3: THREE, 4: FOUR}


# ---- the sentence


@pytest.mark.parametrize(
    ("supports", "is_clear", "expected"),
    [
        ({3: 0.6, 2: 0.1}, True, "3 clusters."),
        (
            {3: 0.6, 2: 0.3},
            True,
            "3 clusters; 2 would also be defensible: it joins 1 and 2.",
        ),
        ({3: 0.6, 4: 0.3}, True, "3 clusters; 4 would also be defensible: it splits 2."),
        (
            {3: 0.4, 4: 0.3, 2: 0.3},
            True,
            "3 clusters; 4 and 2 would also be defensible: 4 splits 2; 2 joins 1 and 2.",
        ),
        (
            {3: 0.4, 4: 0.3, 2: 0.3},
            False,
            "No clear number of clusters: 2, 3 and 4 are about equally well supported; 3 is taken.",
        ),
        (
            {
                3: 0.4,
                4: 0.1,
            },  # far behind, but there must be another for the answer not to be clear
            False,
            "No clear number of clusters: 3 and 4 are about equally well supported; 3 is taken.",
        ),
    ],
)
def test_each_kind_of_sentence(supports, is_clear, expected):
    assert sentence(count_of(TRIED, 3, supports=supports, is_clear=is_clear)) == expected


def test_one_cluster_is_an_answer():
    expected = (
        "No clusters: the data looks like one group. "
        "Nothing stands out from a reference without clusters."
    )
    assert sentence(count_of(TRIED, 1, supports={1: 0.9, 3: 0.6})) == expected


def test_clusters_are_named_as_the_model_numbers_them():
    count = count_of(TRIED, 3, supports={3: 0.6, 2: 0.5})
    renamed = np.array([2, 1, 0])[THREE]  # 1 and 2 are now 1 and 0
    assert sentence(count, renamed).endswith("it joins 0 and 1.")
    renamed[0] = -1  # noise takes no part
    assert sentence(count, renamed).endswith("it joins 0 and 1.")


def test_a_model_that_was_told_the_number_says_nothing(fitted):
    assert words.sentence_of(fitted) is None


def test_the_sentence_of_a_model_uses_its_labels(blobs):
    class Model:
        labels_, n_clusters_ = (blobs.y + 1) % 3, 3

    model = give_count(Model(), blobs.X, [2, 3, 4], runners_up=[2])
    joined = difference(model.labels_, model.labels_at(2)).joined
    assert words.sentence_of(model) == (
        f"3 clusters; 2 would also be defensible: it joins {joined[0][0]} and {joined[0][1]}."
    )


# ---- laws of joining and splitting


def test_one_joins_what_the_other_splits():
    rng = np.random.default_rng(0)
    for _ in range(20):
        fine = rng.integers(6, size=60)
        coarse = np.array([0, 0, 1, 1, 1, 2])[fine]  # nested
        there, back = difference(fine, coarse), difference(coarse, fine)
        assert there == Difference(joined=((0, 1), (2, 3, 4)), split=())
        assert back == Difference(joined=(), split=((0, (0, 1)), (1, (2, 3, 4))))
        assert difference(fine, rng.permutation(6)[fine]) == Difference((), ())


def test_fewer_clusters_always_join_some_and_more_always_split_some():
    rng = np.random.default_rng(1)
    for _ in range(50):
        few, many = (rng.permutation(np.arange(80) % k) for k in (4, 7))
        assert difference(many, few).joined and difference(few, many).split


def test_nothing_but_noise_changes_nothing():
    assert difference([-1, -1, 0], [0, 1, -1]) == Difference((), ())
    assert words.in_words(Difference((), ())) == ""


def test_many_changes_are_counted():
    splits = tuple((cluster, (2 * cluster, 2 * cluster + 1)) for cluster in range(4))
    assert words.in_words(Difference((), splits)) == "splits 4 clusters"
    assert words.in_words(Difference((), splits), parts=True) == "splits 4 clusters into 8"


# ---- over k


def test_numbers_continue_from_k_to_k_and_the_answer_is_kept():
    final = np.array([4, 4, 0, 0, 2, 2])  # numbers of its own
    found = words.sample_clusterings(count_of(TRIED, 3), final)
    assert list(found) == [2, 3, 4] and (found[3] == final).all()
    assert found[2].tolist() == [4, 4, 0, 0, 0, 0]  # 0 and 2 overlap alike; 0 comes first
    assert set(found[4][:4]) == {0, 4} and 2 in found[4][4:]


def test_clusters_that_do_not_change_keep_their_number_over_all_k():
    rng = np.random.default_rng(2)
    fine = np.repeat(np.arange(12), 5)
    tried = {k: rng.permutation(k)[np.minimum(fine, k - 1)] for k in range(2, 13)}
    found = words.sample_clusterings(count_of(tried, 6), np.minimum(fine, 5))
    for k, labels in found.items():
        assert (labels[fine < min(k, 6) - 1] == fine[fine < min(k, 6) - 1]).all()
        assert len(np.unique(labels)) == k and labels.max() < max(k, 6)


def test_which_cluster_splits_into_which():
    steps = [str(step) for step in words.hierarchy(count_of(TRIED, 3))]
    assert steps == ["2 to 3: splits 1 into 1 and 2", "3 to 4: splits 2 into 2 and 3"]


@pytest.mark.parametrize("most", [3, 8, 30])
def test_some_numbers_are_shown_and_the_candidates_are_among_them(most):
    tried = {k: np.arange(200) % k for k in range(2, 100)}
    count = count_of(tried, 10, supports={10: 0.5, 60: 0.4})
    for choose in (words.ks_spread, words.ks_around):
        shown = choose(count, most)
        assert len(shown) == most and sorted(set(shown)) == shown
        assert 10 in shown and (most == 3 or 60 in shown)
    assert words.ks_spread(count, 200) == list(range(2, 100))
    assert words.ks_around(count_of(tried, 1), 3) == [1, 2, 3]  # an answer that was not tried


# ---- each cluster


@pytest.mark.parametrize(
    ("verdicts", "expected", "n_stable"),
    [
        (["very stable", "stable"], "All clusters are stable.", 2),
        (["stable"], "The only cluster is stable.", 1),
        (["stable", "doubtful"], "Cluster 1 is doubtful.", 1),
        (
            ["doubtful", "dissolves", "stable", "dissolves"],
            "Clusters 1 and 3 dissolve when the data are drawn again; 0 is doubtful.",
            1,
        ),
    ],
)
def test_clusters_that_are_not_stable_in_words(verdicts, expected, n_stable):
    stability = stability_of(verdicts)
    assert words.stability_sentence(stability) == expected
    assert words.n_stable(stability) == n_stable
