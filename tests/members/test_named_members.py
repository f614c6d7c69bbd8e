"""What every member with a name must do. A new name is tested with no further line."""

import pytest
from numpy.testing import assert_array_equal

from deccs import DECCS, Network, Pretraining, Rounds, scores
from deccs.members.asking import fresh_copy
from deccs.members.default import DEFAULT_MEMBERS, MEMBERS

every_member = pytest.mark.parametrize("name", MEMBERS)


@every_member
def test_it_finds_far_blobs(name, blobs):
    labels = fresh_copy(MEMBERS[name](3), seed=0).fit_predict(blobs.X)
    assert labels.shape == blobs.y.shape
    assert scores.ari(blobs.y, labels) > 0.95


@every_member
def test_the_same_seed_gives_the_same_labels_and_the_data_stays_as_it_is(name, blobs):
    X = blobs.X.copy()
    first, second = (fresh_copy(MEMBERS[name](3), seed=0).fit_predict(X) for _ in range(2))
    assert_array_equal(first, second)
    assert_array_equal(X, blobs.X)


@every_member
def test_it_takes_part_in_an_ensemble(name, blobs):
    other = "kmeans" if name != "kmeans" else "mixture"
    members = [(key, MEMBERS[key](3)) for key in (name, other)]
    model = DECCS(
        3,
        members=members,
        network=Network(layers=(4, 2)),
        pretraining=Pretraining(n_epochs=5, batch_size=32),
        rounds=Rounds(n_rounds=0, n_init=1),
        random_state=0,
    ).fit(blobs.X)
    assert model.rounds_[0].member_names == (name, other)


def test_the_default_ensemble_has_four_names():
    assert len(set(DEFAULT_MEMBERS)) == 4 and set(DEFAULT_MEMBERS) <= set(MEMBERS)
