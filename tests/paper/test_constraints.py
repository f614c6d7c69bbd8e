"""What the runs with a few labels and pairs give to a fit, what they score, and their table."""

import numpy as np
import pytest

from deccs_paper import constraints, records
from deccs_paper.constraints import GIVEN, NONE, OURS, Part, page_text, scores_of


@pytest.fixture(scope="module")
def part(tmp_path_factory):
    path = tmp_path_factory.mktemp("sets") / "three.npz"
    rng = np.random.default_rng(0)
    y = rng.integers(3, size=400)
    np.savez(path, X=rng.normal(size=(400, 2)) + 9 * y[:, None], y=np.where(y == 2, 7, y))
    return Part(str(path), 300, seed=1)


def test_what_is_known_is_true_and_is_not_scored(part):
    X, y = part.arrays
    assert X.shape == (300, 2) and part.k == 3
    for given, n_known in (("1 % of the labels", 3), ("5 % of the labels", 15)):
        partial = part.known(given)["partial"]
        known = partial >= 0
        assert known.sum() == n_known and (partial[known] == y[known]).all()
        assert (part.unknown_rows(given) == ~known).all()
    pairs = part.known("50 pairs")
    assert len(pairs["must_link"]) + len(pairs["cannot_link"]) == 50
    assert (y[pairs["must_link"][:, 0]] == y[pairs["must_link"][:, 1]]).all()
    assert (y[pairs["cannot_link"][:, 0]] != y[pairs["cannot_link"][:, 1]]).all()
    assert not part.unknown_rows("50 pairs")[pairs["cannot_link"]].any()
    assert part.known(NONE) == {} and part.unknown_rows(NONE).all()


def test_baselines_find_clear_classes(part):
    for way in (constraints.by_seeded_kmeans, constraints.by_spreading):
        labels, _ = way(part, part.known("5 % of the labels"))
        assert scores_of(part, "5 % of the labels", labels)["ari"] > 0.95


def test_the_table_by_hand(tmp_path):
    out = tmp_path / "made.jsonl"
    shared = {
        "rows": 9,
        "method": OURS,
        "given": GIVEN[0],
        "status": "ok",
        "violated": {"partial": 3},
    }
    for dataset, nmi in (("usps", 0.5), ("mice", 0.7)):
        scored = {"nmi": nmi, "ari": 0.25, "nmi_without": 0.25, "ari_without": 0.125}
        records.append(out, shared | scored | {"dataset": dataset, "seed": 0})
    lines = page_text(out).splitlines()
    assert "| USPS | 1 | 0.250 / 0.125 | **0.500 / 0.250** | - | - | 3.0 |" in lines[2]
    assert "| **mean** |  | 0.250 / 0.125 | **0.600 / 0.250** |" in lines[4]
