"""``DECCS(n_clusters=k, views=None, random_state=0)`` gives what it gave before the code was rebuilt.

``bits.json`` was made with commit edd3506, when there were no views; its part "exact" with 75cf89b, on
another machine. Another processor or library rounds otherwise, even a processor of the same name.
Where products round as on that machine, the bits must be the same; elsewhere the labels, but for a
few points.
"""

import hashlib
import json
from pathlib import Path

import numpy as np
import pytest
import torch

from deccs import DECCS, scores
from deccs.environment import versions

BITS = json.loads((Path(__file__).parent / "bits.json").read_text())


def sha256(array):
    array = np.ascontiguousarray(array)
    return hashlib.sha256(f"{array.dtype}{array.shape}".encode() + array.tobytes()).hexdigest()


def rounding():
    """How this machine rounds: the hash of products and exponentials in both precisions."""
    values = np.random.default_rng(0).normal(size=(257, 129))
    single = torch.from_numpy(values).float()
    parts = [values @ values.T, (single @ single.T).numpy(), np.exp(values), single.exp().numpy()]
    return sha256(np.concatenate([part.astype(np.float64).ravel() for part in parts]))


def rounds_as_recorded():
    exact = BITS["exact"]
    same = all(versions()[name] == number for name, number in exact["versions"].items())
    return same and rounding() == exact["rounding"]


@pytest.mark.parametrize(
    "name",
    [
        "synth",
        pytest.param("mice", marks=pytest.mark.slow),
        pytest.param("pendigits", marks=pytest.mark.slow),
    ],
)
def test_the_method_of_the_paper_gives_what_it_always_gave(name, load_real):
    before = BITS["fits"][name]
    data = load_real(name)
    X, y = data.X[: before["rows"]], data.y[: before["rows"]]
    model = DECCS(n_clusters=before["n_clusters"], views=None, random_state=0).fit(X)
    labels = np.array([int(digit) for digit in before["digits"]])  # n_clusters is at most 10
    assert scores.nmi(labels, model.labels_) > 0.99
    if name in BITS["exact"]["fits"] and rounds_as_recorded():
        exact = BITS["exact"]["fits"][name]
        assert sha256(model.labels_.astype(np.int64)) == exact["labels"]
        assert sha256(model.transform(X)) == exact["Z"]
        assert sha256(model.predict_proba(X)) == exact["proba"]
        # What confidence was, before it rested on the raw data.
        assert sha256(model.answer(X).support) == exact["confidence"]
        assert [round_.agreement for round_ in model.rounds_] == exact["agreement"]
        assert model.best_round_ == exact["best_round"]
    if name == "synth":  # four clusters of four shapes: no single member solves it
        assert scores.ari(y, model.labels_) > 0.98
        members = scores.of_members(model.rounds_[model.best_round_], y)
        assert all(member["ari"] > 0.98 for member in members.values())
