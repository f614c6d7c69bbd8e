"""``DECCS(n_clusters=k, random_state=0)`` gives the bits it gave before the code was rebuilt.

``bits.json`` was made with commit edd3506. Another processor or library rounds otherwise: there the
labels must be the same but for a few points.
"""

import hashlib
import json
from pathlib import Path

import numpy as np
import pytest

from deccs import DECCS, datasets, scores
from deccs.environment import processor_name, versions

BITS = json.loads((Path(__file__).parent / "bits.json").read_text())
SAME_MACHINE = processor_name() == BITS["processor"] and all(
    versions()[name] == number for name, number in BITS["versions"].items()
)


def sha256(array):
    array = np.ascontiguousarray(array)
    return hashlib.sha256(f"{array.dtype}{array.shape}".encode() + array.tobytes()).hexdigest()


@pytest.mark.parametrize(
    "name",
    [
        "synth",
        pytest.param("mice", marks=pytest.mark.slow),
        pytest.param("pendigits", marks=pytest.mark.slow),
    ],
)
def test_the_defaults_give_the_bits_they_always_gave(name, request):
    load = datasets.load if name == "synth" else request.getfixturevalue("load_real")
    before = BITS["fits"][name]
    data = load(name)
    X, y = data.X[: before["rows"]], data.y[: before["rows"]]
    model = DECCS(n_clusters=before["n_clusters"], random_state=0).fit(X)
    labels = np.array([int(digit) for digit in before["digits"]])  # n_clusters is at most 10
    assert scores.nmi(labels, model.labels_) > 0.99
    if SAME_MACHINE:
        assert sha256(model.labels_.astype(np.int64)) == before["labels"]
        assert sha256(model.transform(X)) == before["Z"]
        assert sha256(model.predict_proba(X)) == before["proba"]
        assert sha256(model.consensus_confidence(X)) == before["confidence"]
        assert [round_.agreement for round_ in model.rounds_] == before["agreement"]
        assert model.best_round_ == before["best_round"]
    if (
        name == "synth"
    ):  # four clusters of four shapes: the method solves what no single member does
        assert scores.ari(y, model.labels_) > 0.98
        members = scores.of_members(model.rounds_[model.best_round_], y)
        assert all(member["ari"] > 0.98 for member in members.values())
