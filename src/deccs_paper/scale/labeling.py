"""How fast a fitted model labels rows, beside the machine's matrix products, and whether single precision shows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from deccs import DECCS
from deccs.app.pace import best_seconds, product_rate
from deccs_paper.scale.moons import batches

CLOSE = 1e-5  # difference of the two highest probabilities


def products_per_row(model: DECCS) -> int:
    """Multiplications and additions that a row takes at least: the encoder's layers, and the classifier."""
    layers = [
        layer for layer in model.autoencoder_.encoder.modules() if isinstance(layer, nn.Linear)
    ]
    head = model.label_classifier_
    n_weights = sum(layer.weight.numel() for layer in layers)
    return 2 * (n_weights + (0 if head is None else head.weight.numel()))


def measure(folder: Path, n_rows: int, seed: int) -> dict[str, Any]:
    """Label rows in memory with a model of a run."""
    model = DECCS.load(folder / "model")
    del model.feature_names_in_  # an array has none, and a warning for each run would say so
    X = np.concatenate([block for block, _ in batches(n_rows, seed)])  # (n_rows, n_columns)
    model.predict(X[:1000])
    products, seconds = product_rate(), best_seconds(lambda: model.predict(X))
    labels = model.predict(X)
    exact, margins = exactly(model, X)
    differs = labels != exact
    rate = n_rows / seconds
    return {
        "rows": n_rows,
        "threads": torch.get_num_threads(),
        "rows_per_second": round(rate),
        "gigaflops_of_labels": round(rate * products_per_row(model) / 1e9, 2),
        "gigaflops_of_products": round(products / 1e9, 2),
        "share_of_products": round(rate * products_per_row(model) / products, 3),
        "other_labels": int(differs.sum()),
        "other_labels_of_clear_rows": int((differs & (margins > CLOSE)).sum()),
        "close_rows": int((margins <= CLOSE).sum()),
    }


def exactly(model: DECCS, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Labels in double precision, and by how much the best class leads: (n_rows,) each."""
    labels, margins = [], []
    for answer in model._answers(model._checked(X)):
        labels.append(answer.labels)
        assert answer.probabilities is not None
        second, first = np.partition(answer.probabilities, -2, axis=1)[:, -2:].T
        margins.append(first - second)
    return np.concatenate(labels), np.concatenate(margins)
