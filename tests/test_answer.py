"""One answer for all rows, made of those of blocks."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from deccs import Answer


def answer(start, stop, **more):
    """Row i has the representation (i, -i) and the label i modulo 3."""
    numbers = np.arange(start, stop)
    return Answer(np.column_stack([numbers, -numbers]).astype(float), numbers % 3, **more)


def test_blocks_are_joined_in_their_order():
    whole = Answer.joined(answer(start, stop) for start, stop in ((0, 4), (4, 5), (5, 9)))
    assert len(whole) == 9
    assert_array_equal(whole.Z, answer(0, 9).Z)
    assert_array_equal(whole.labels, np.arange(9) % 3)
    assert whole.probabilities is None and whole.confidence is None and whole.members is None


def test_members_are_joined_along_the_points():
    parts = [
        answer(
            start,
            stop,
            probabilities=np.full((stop - start, 3), start),
            confidence=np.full(stop - start, stop),
            members=np.full((2, stop - start), [[start], [stop]]),
        )
        for start, stop in ((0, 2), (2, 5))
    ]
    whole = Answer.joined(parts)
    assert_array_equal(whole.members, [[0, 0, 2, 2, 2], [2, 2, 5, 5, 5]])
    assert_array_equal(whole.confidence, [2, 2, 5, 5, 5])
    assert whole.probabilities.shape == (5, 3)


def test_an_answer_is_a_view_for_all_methods(fitted, blobs):
    """One pass over the rows gives the same numbers as each method by itself."""
    whole = fitted.answer(blobs.X)
    assert_array_equal(whole.labels, fitted.predict(blobs.X))
    assert_array_equal(whole.Z, fitted.transform(blobs.X))
    assert_array_equal(whole.probabilities, fitted.predict_proba(blobs.X))
    assert_array_equal(whole.confidence, fitted.consensus_confidence(blobs.X))
    assert_array_equal(whole.members, fitted.members_predict(blobs.X))


def test_answers_come_block_by_block(fitted, blobs):
    many = np.tile(blobs.X, (12, 1))  # 2,160 rows: three blocks
    blocks = list(fitted.answers(many))
    assert [len(block) for block in blocks] == [1024, 1024, 112]
    assert_array_equal(np.concatenate([block.labels for block in blocks]), fitted.predict(many))


def test_wrong_input_is_found_when_answers_are_asked_for(fitted):
    with pytest.raises(ValueError, match="X has 3 features, but DECCS is expecting 4"):
        fitted.answers(np.zeros((5, 3)))
