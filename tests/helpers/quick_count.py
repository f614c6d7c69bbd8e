"""A count of clusters in a fraction of a second: few steps for each layout, which take most of its time."""

from contextlib import contextmanager

import pytest

from deccs.counting import cluster_stability, evidence

N_STEPS = 60


@contextmanager
def quick_counts():
    def quick(embed):
        return lambda X, n_dimensions, seed, **_: embed(X, n_dimensions, seed, n_steps=N_STEPS)

    with pytest.MonkeyPatch.context() as patch:
        for module in (evidence, cluster_stability):
            patch.setattr(module, "manifold_embedding", quick(module.manifold_embedding))
        yield
