"""A fitted DECCS as its file has it, without torch and scikit-learn: it answers, and cannot be fitted again.

:func:`load` gives it where the file allows it: the method is DECCS, its network one of ours. The class reads the same
document by the same checks as :class:`deccs.DECCS`, and answers by the same functions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from os import PathLike
from pathlib import Path
from typing import Any, Self

import numpy as np

from deccs.consensus_model import ConsensusModel
from deccs.inference.encoder import SLOPE, DenseEncoder
from deccs.inference.heads import LinearHeads, check_heads
from deccs.storage import container, models
from deccs.storage.probe import probe
from deccs.storage.schema import check_fields
from deccs.storage.values import Kind, ModelFileError, Reader

MOST_WIDE = 2**24  # numbers that a layer may make of one row


class NotLightError(Exception):
    """A file is right, perhaps, but needs torch."""


@dataclass(eq=False, repr=False, kw_only=True)
class Predictor(ConsensusModel, in_files=False):
    """A fitted DECCS that answers for rows: what :func:`deccs.load` gives.

    It has ``predict``, ``predict_proba``, ``transform``, ``answer`` and the other methods of a fitted
    :class:`deccs.DECCS`, with the same results. ``deccs.DECCS.load`` gives the estimator itself.
    """

    def fit(self, X: Any, y: object = None) -> Self:
        """Not possible: what a fit needs was not loaded."""
        raise AttributeError(
            "A Predictor answers for rows and cannot be fitted. deccs.DECCS.load(path) gives the estimator."
        )

    def _learn(self, fit: Any) -> None:
        raise NotImplementedError

    def save(self, path: str | PathLike[str]) -> None:
        """Not possible: a Predictor holds what answers need, and not all that files hold."""
        raise AttributeError("A Predictor is not saved. Copy its file, or use deccs.DECCS.load.")

    def __sklearn_tags__(self) -> Any:
        """What scikit-learn asks for where X is no plain array."""
        from deccs.estimators import SoftEstimator

        return SoftEstimator().__sklearn_tags__()

    def __repr__(self) -> str:
        return f"<Predictor of {self.n_clusters_} clusters, {self.n_features_in_} columns>"


@dataclass(frozen=True, eq=False)
class StoredAutoencoder:
    """The encoder of a file; the decoder is checked and left out."""

    encoder: DenseEncoder

    def exact_encoder(self) -> Callable[[np.ndarray], np.ndarray]:
        return self.encoder

    def dense_encoder(self) -> DenseEncoder:
        return self.encoder

    def check_width(self, n_inputs: int) -> None:
        """Raise a ModelFileError where rows of so many columns do not fit."""
        if n_inputs != self.encoder.n_inputs:
            raise ModelFileError(
                f"its network is for rows of {self.encoder.n_inputs} columns, not of {n_inputs}"
            )


class LightReader(Reader):
    """Reads tensors as arrays, and networks of ours as what answers need of them."""

    def _kind(self, name: str) -> Kind | None:
        return KINDS.get(name) or super()._kind(name)

    def _tensor(self, tree: Any) -> np.ndarray:
        return self._array(tree)


def load(path: str | PathLike[str]) -> Any:
    """The fitted model at this path, as quickly as its file allows.

    A :class:`Predictor` if that can do all it says; else the estimator, as ``load`` of its class gives it.
    """
    document, arrays = container.read(Path(path), models.FORMAT, models.FORMAT_VERSION)
    try:
        return predictor_of(path, document, arrays)
    except NotLightError:
        return models.load(path)


def predictor_of(
    path: str | PathLike[str], document: dict[str, Any], arrays: dict[str, np.ndarray]
) -> Predictor:
    """The predictor of a document that was read; every check of a file is made."""
    if document.get("class") != "DECCS" or document["format_version"] < models.FORMAT_VERSION:
        raise NotLightError
    with models.only_this_error(path, Predictor, document, passes=NotLightError):
        model: Predictor = models.restored(
            Predictor, document, LightReader(arrays, from_stranger=True)
        )
        model._check_learned()
        probe(model)
    return model


def make_autoencoder(fields: Mapping[str, Any]) -> StoredAutoencoder:
    check_fields("Autoencoder", fields, {"encoder": dict, "decoder": dict, "pretrained": bool})
    dense_network(fields["decoder"])
    return StoredAutoencoder(dense_network(fields["encoder"]))


def dense_network(fields: Mapping[str, Any]) -> DenseEncoder:
    """A network of linear layers with LeakyReLU between them, and no other: NotLightError for anything else."""
    check_fields("a network", fields, {"text": str, "weights": dict[str, np.ndarray]})
    try:
        places = places_of_linear(fields["layers"])
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise NotLightError from error
    weights = dict(fields["weights"])
    layers = [
        (weights.pop(f"{place}.weight", None), weights.pop(f"{place}.bias", None), shape)
        for place, shape in places
    ]
    are_right = not weights and all(
        is_weight(weight, shape) and is_weight(bias, shape[:1]) for weight, bias, shape in layers
    )
    follow = all(left[2][0] == right[2][1] for left, right in pairwise(layers))
    if not (are_right and follow):
        raise NotLightError
    return DenseEncoder(
        tuple(weight for weight, _, _ in layers), tuple(bias for _, bias, _ in layers)
    )


def places_of_linear(description: Mapping[str, Any]) -> list[tuple[int, tuple[int, int]]]:
    """The place and the shape (n_out, n_in) of each linear layer."""
    parts = list(enumerate(description["parts"]))
    kept = [(place, part) for place, part in parts if part["layer"] != "Dropout"]
    is_chain = description["layer"] in ("Sequential", "FeedForward") and len(kept) % 2 == 1
    linear = all(part["layer"] == "Linear" and part["bias"] is True for _, part in kept[::2])
    leaky = all(
        part["layer"] == "LeakyReLU" and part["negative_slope"] == SLOPE for _, part in kept[1::2]
    )
    if not (is_chain and linear and leaky):
        raise ValueError
    return [(place, (part["out_features"], part["in_features"])) for place, part in kept[::2]]


def is_weight(value: Any, shape: tuple[int, ...]) -> bool:
    """Whether this is an array of finite singles of this shape."""
    if not isinstance(value, np.ndarray) or value.dtype != np.float32 or value.shape != shape:
        return False
    return bool(value.size and np.isfinite(value).all() and shape[0] <= MOST_WIDE)


def make_heads(fields: Mapping[str, Any]) -> LinearHeads:
    check_heads(fields)
    return LinearHeads(fields["weight"], fields["bias"])


def never_taken(value: Any) -> dict[str, Any]:
    raise ModelFileError(f"a {type(value).__name__} of a Predictor cannot be saved")


# What stands in a Predictor for modules of torch.
KINDS = {
    "Autoencoder": Kind(StoredAutoencoder, never_taken, make_autoencoder),
    "Classifiers": Kind(LinearHeads, never_taken, make_heads),
}
