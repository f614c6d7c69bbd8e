"""``DECCS(n_clusters=k, views=None, random_state=0)`` gives what it gave before the code was rebuilt.

``bits.json`` was made with commit edd3506, when there were no views. Another processor or library
rounds otherwise, even a processor of the same name: labels must be the same but for a few points.
"""

import json
from pathlib import Path

import numpy as np
import pytest

from deccs import DECCS, scores

BITS = json.loads((Path(__file__).parent / "bits.json").read_text())


@pytest.mark.parametrize(
    "name",
    [
        "synth",
        pytest.param("mice", marks=pytest.mark.slow),
        pytest.param("pendigits", marks=pytest.mark.slow),
    ],
)
def test_the_paper_s_method_gives_the_labels_it_always_gave(name, load_real):
    before = BITS["fits"][name]
    data = load_real(name)
    X, y = data.X[: before["rows"]], data.y[: before["rows"]]
    model = DECCS(n_clusters=before["n_clusters"], views=None, random_state=0).fit(X)
    labels = np.array([int(digit) for digit in before["digits"]])  # n_clusters is at most 10
    assert scores.nmi(labels, model.labels_) > 0.99
    if name == "synth":  # four clusters of four shapes: no single member solves it
        assert scores.ari(y, model.labels_) > 0.98
        members = scores.of_members(model.rounds_[model.best_round_], y)
        assert all(member["ari"] > 0.98 for member in members.values())
