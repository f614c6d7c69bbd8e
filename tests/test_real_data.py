"""One real run of the method on real data: small settings, so that it fits into `make test`."""

import numpy as np
import pytest

from deccs import DECCS, Network, Pretraining, Rounds, scores


@pytest.mark.slow
def test_deccs_on_real_pendigits_gains_over_its_autoencoder(load_real):
    data = load_real("pendigits")
    keep = np.random.default_rng(0).permutation(data.n)[:2_200]
    X, y = data.X[keep], data.y[keep]
    model = DECCS(
        10,
        network=Network(layers=(100, 100, 10)),
        pretraining=Pretraining(n_steps=1_000),
        rounds=Rounds(n_rounds=3, n_steps=60),
        random_state=0,
    ).fit(X)
    first, last = (scores.of_members(model.rounds_[number], y) for number in (0, model.best_round_))
    assert model.best_round_ > 0
    assert model.agreement_ > model.rounds_[0].agreement
    assert last["kmeans"]["nmi"] > first["kmeans"]["nmi"]
    assert scores.nmi(y, model.labels_) > 0.7
    new = data.X[np.setdiff1d(np.arange(data.n), keep)[:2_000]]  # points the fit never saw
    assert (
        scores.nmi(data.y[np.setdiff1d(np.arange(data.n), keep)[:2_000]], model.predict(new)) > 0.7
    )
