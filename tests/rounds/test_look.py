"""What is known before the rounds, when they end, and what the result is chosen from."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from deccs.inference.seen import Components
from deccs.members.choice import NEVER, Judge, best_of
from deccs.members.running import Partitions
from deccs.members.views import views_of
from deccs.rounds.journal import is_alike_or_better
from deccs.rounds.look import CONSENSUS, PATIENCE, Look
from deccs.rounds.records import Round
from tests.helpers.small import rows_of

pytestmark = pytest.mark.usefixtures("quick_manifold", "quick_classifiers")


@pytest.fixture(scope="module")
def views(blobs):
    scaled = rows_of(blobs.X).scaled(np.arange(180))
    as_is = Components(np.zeros(scaled.shape[1]), None)
    return views_of(scaled, as_is, np.arange(180), 3, seed=0)


def look_of(views, **partitions):
    """A look with members of the views that said this; the first is their consensus."""
    panel = np.stack(list(partitions.values()))
    judge = Judge(views.near, views.wide, views.tree, panel, n_clusters=3)
    as_is = Components(np.zeros(4), None)
    return Look(views, as_is, Partitions(tuple(partitions), panel), panel[0], judge)


def round_of(evidence, number=0):
    """A round whose two members have half a point less evidence, and this much."""
    nothing = np.zeros(0)
    return Round(
        number=number,
        sample=nothing,
        Z=nothing,
        member_names=("worse", "better"),
        base_partitions=nothing,
        agreement_matrix=nothing,
        agreement=0.0,
        weights=nothing,
        judged=np.array([[0, 0], [0, 1]]),
        evidence=np.array([evidence - 0.5, evidence]),
    )


def rounds_of(*evidence):
    return [round_of(value, number) for number, value in enumerate(evidence)]


def test_views_are_unanimous_where_all_say_the_same(views, blobs):
    other = np.where(np.arange(180) < 5, (blobs.y + 1) % 3, blobs.y)
    assert look_of(views, a=blobs.y, b=(blobs.y + 1) % 3).is_unanimous  # names do not count
    assert not look_of(views, a=blobs.y, b=other).is_unanimous
    assert not look_of(views, a=blobs.y).is_unanimous  # nobody to agree with


def test_unanimous_views_end_the_rounds(small, blobs):
    model = small(views="auto", n_rounds=3).fit(blobs.X)
    assert [finished.number for finished in model.rounds_] == [0]
    assert model.rounds_[0].losses is None  # no update
    assert_array_equal(model.labels_, blobs.y)


def test_the_consensus_of_the_views_is_one_member(views, blobs):
    name, labels = look_of(views, a=blobs.y, b=1 - blobs.y % 2).member(rows_of(blobs.X))
    assert name == "views"
    assert_array_equal(labels, blobs.y)


def test_candidates_are_the_views_their_consensus_and_the_rounds(views, blobs):
    joined = np.array([0, 0, 1])[blobs.y]
    look = look_of(views, raw=blobs.y, manifold=joined)
    candidates = look.candidates(rounds_of(0.1, 0.2))
    names = ["raw", "manifold", CONSENSUS, "better, round 0", "better, round 1"]
    assert [candidate.name for candidate in candidates] == names
    assert candidates[1].evidence == NEVER  # two clusters instead of three
    assert [candidate.evidence for candidate in candidates[3:]] == [0.1, 0.2]
    assert_array_equal(candidates[3].labels, [0, 1])  # of the better member
    assert candidates[0].evidence == look.judge(blobs.y) > 1  # far blobs: there are gaps
    assert best_of(candidates) is candidates[0]  # the first of those alike


def test_rounds_end_when_none_of_the_last_was_better(views, blobs):
    look = look_of(views, raw=np.arange(180) % 3)  # cuts nearly all ties
    known = look.candidates([])[0].evidence
    better = rounds_of(known + 1, *[known] * PATIENCE)
    assert not look.is_over(better[:-1])
    assert look.is_over(better)
    found_at_last = [*rounds_of(*[known + 1] * PATIENCE), round_of(known + 2, PATIENCE)]
    assert not look.is_over(found_at_last)


def test_rounds_end_when_they_are_no_better_than_the_views(views, blobs):
    look = look_of(views, raw=blobs.y)
    known = look.candidates([])[0].evidence
    rising = [known - 1 + 0.1 * number for number in range(PATIENCE + 1)]
    assert not look.is_over(rounds_of(*rising[:-1]))  # too few to tell
    assert look.is_over(rounds_of(*rising))


def test_of_rounds_alike_the_latest_is_kept():
    assert is_alike_or_better(round_of(0.495), rounds_of(0.5))
    assert not is_alike_or_better(round_of(0.485), rounds_of(0.5))
    assert not is_alike_or_better(round_of(0.487), rounds_of(0.5, 0.495))  # no slow decline


def test_what_a_model_keeps(views, blobs):
    look = look_of(views, raw=blobs.y, manifold=1 - blobs.y % 2)
    seen = look.seen(blobs.y)
    assert seen.names == ("raw", "manifold")
    assert_array_equal(seen.labels, blobs.y)
    assert look.seen(None).labels is None
