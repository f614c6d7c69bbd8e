"""How the paper trained the deep methods: settings to pass to the classes."""

from __future__ import annotations

from typing import Any

WITH_A_PRESET = ("DEC", "IDEC", "DCN", "VaDE", "SpectralNet")

# SpectralNet's authors have settings for small sets and for all others. Their siamese network stops
# early. On small sets they use the affinities of all pairs, which are nearly 0 beyond 20 neighbors.
SPECTRALNET = {
    "n_neighbors": 3,
    "scale_neighbors": 2,
    "walk_length": 1,
    "siamese_neighbors": 2,
    "siamese_steps": 50_000,
    "n_steps": 40_000,
    "hidden": (1024, 1024, 512),
    "batch_size": 1024,
    "learning_rate": 1e-3,
}
SPECTRALNET_SMALL = {
    "n_neighbors": 20,
    "scale_neighbors": 2,
    "walk_length": 1,
    "siamese_steps": 0,
    "n_steps": 30_000,
    "hidden": (50, 50, 50),
    "batch_size": 128,
    "learning_rate": 1e-3,
}


def paper_training(method: str, *, small: bool = False) -> dict[str, Any]:
    """How the paper trained DEC, IDEC, DCN, VaDE and SpectralNet: ``DEC(10, **paper_training("DEC"))``.

    The defaults reach the same results with a small part of the steps. ``small``: SpectralNet's
    settings for SYNTH and MICE; the other methods have one set of settings.

    >>> paper_training("DEC")
    {'learning_rate': 0.0001, 'n_steps': 100000, 'batch_size': 256, 'tol': 0.0}
    """
    if method not in WITH_A_PRESET:
        raise ValueError(
            f"The paper gives no training for {method!r}, only for {', '.join(WITH_A_PRESET)}."
        )
    if method == "SpectralNet":
        return dict(SPECTRALNET_SMALL if small else SPECTRALNET)
    to_the_end = {"tol": 0.0} if method in ("DEC", "IDEC") else {}
    return {"learning_rate": 1e-4, "n_steps": 100_000, "batch_size": 256, **to_the_end}
