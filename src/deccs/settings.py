"""Settings of the parts of the method: each class is the only place of its settings and defaults.

They are reached through scikit-learn's nested names: ``DECCS(10).set_params(rounds__n_rounds=5)``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Annotated, Any

from deccs.checks import (
    AUTO,
    FLAG,
    NONE,
    WIDTHS,
    Parameters,
    Rule,
    instance,
    is_widths,
    number,
    one_of,
    share,
    whole,
)
from deccs.storage.values import register

HEIGHT_AND_WIDTH = Rule("(height, width)", lambda value: is_widths(value) and len(value) == 2)
COUNT_OR_SHARE = AUTO | share(one=True) | whole(at_least=2)


class Settings(Parameters):
    """Shown like an estimator: by what differs from the defaults."""

    def __repr__(self) -> str:
        defaults = type(self)().get_params(deep=False)
        values = self.get_params(deep=False).items()
        changed = [f"{name}={value!r}" for name, value in values if value != defaults[name]]
        return f"{type(self).__name__}({', '.join(changed)})"


@dataclass(repr=False, kw_only=True)
class Network(Settings):
    """The autoencoder that is built when you bring none of your own.

    Parameters
    ----------
    layers : tuple of int or "auto"
        Widths of the encoder, the last being the embedding; the decoder mirrors it. "auto" follows
        from the size of the data, see :func:`deccs.rules.default_layers`.
    dropout : float, default=0
        Share of the units that are left out in each step of training.
    image_shape : (height, width), "auto" or None
        Images train with small random shifts, turns and scalings. "auto": rows of an array
        (n, height, width), and flat rows that look like images, see
        :func:`deccs.rules.image_shape_of_rows`. None: rows are no images.
    """

    layers: Annotated[Sequence[int] | str, AUTO | WIDTHS] = "auto"
    dropout: Annotated[float, share(zero=True)] = 0.0
    image_shape: Annotated[Sequence[int] | str | None, AUTO | HEIGHT_AND_WIDTH | NONE] = "auto"


@dataclass(repr=False, kw_only=True)
class Pretraining(Settings):
    """How the autoencoder is trained by reconstruction, before any cluster is known.

    Parameters
    ----------
    n_steps : int or "auto"
        Batches to train on. "auto": see :func:`deccs.rules.default_pretraining_steps`.
    n_epochs : int or None
        The same budget as passes over the data; given, it takes the place of ``n_steps``.
    batch_size : int, default=128
        Half of the paper's: as good with the same number of steps, at half the cost.
    learning_rate, weight_decay : float
        Of Adam.
    input_noise : float or "auto"
        Share of the inputs set to zero (a denoising autoencoder). "auto": 0.2 from ten columns on,
        else 0.
    schedule : "one-cycle" or "plateau"
        "plateau" halves the rate when the held-out error stops falling, and stops after
        ``patience`` checks without a better one.
    patience : int, default=10
    held_out : float, default=0.1
        Share of the points that only decides which weights to keep (at most 2,000 points).
    layerwise_epochs : int, default=0
        Epochs of greedy training for each layer first; 0 for none.
    grid : dict of lists or None
        Settings of ``Pretraining`` or ``Network`` to choose from by held-out reconstruction error,
        e.g. ``{"layers": [(64, 8), (256, 16)], "learning_rate": [1e-3, 1e-2]}``.
    """

    n_steps: Annotated[int | str, AUTO | whole(at_least=0)] = "auto"
    n_epochs: Annotated[int | None, whole(at_least=0) | NONE] = None
    batch_size: Annotated[int, whole(at_least=1)] = 128
    learning_rate: Annotated[float, number(at_least=0)] = 1e-3
    weight_decay: Annotated[float, number(at_least=0)] = 0.0
    input_noise: Annotated[float | str, AUTO | share(zero=True)] = "auto"
    schedule: Annotated[str, one_of("one-cycle", "plateau")] = "one-cycle"
    patience: Annotated[int, whole(at_least=1)] = 10
    held_out: Annotated[float, share(zero=True)] = 0.1
    layerwise_epochs: Annotated[int, whole(at_least=0)] = 0
    grid: Annotated[
        Mapping[str, Sequence[Any]] | None, instance(Mapping, words="a dict of lists") | NONE
    ] = None


def without_steps(pretraining: Pretraining) -> Pretraining:
    """The same settings, but nothing is trained: for a single cluster, which needs no embedding."""
    return replace(pretraining, n_steps=0, n_epochs=None, layerwise_epochs=0, grid=None)


@dataclass(repr=False, kw_only=True)
class Rounds(Settings):
    """The rounds of Algorithm 1: cluster, update, cluster, ...

    Parameters
    ----------
    n_rounds : int, default=10
        T; 0 gives the plain autoencoder with its ensemble.
    n_init : int or "auto"
        How many times the rounds may start from the same autoencoder. Among starts within 0.05 of
        the best agreement, the one whose labels separate the fewest nearest neighbors of the first
        embedding is kept. Full agreement that separates hardly any ends the search. "auto": 4 up to
        2,000 points, else 1.
    tol : float or None
        Stop when the agreement changes by less than this (the paper's tau). None stops at full
        agreement only. Either way the round of highest agreement is the result.
    sample_size : "auto", int or float
        Points the members cluster in a round, as a number or a share. "auto" is the paper's rule,
        see :func:`deccs.rules.default_sample_size`.
    n_steps : int or "auto"
        Steps of the update in a round (SGD with momentum 0.9), at most. "auto": 120, and 400 up to
        2,000 points, where a step costs next to nothing.
    batch_size : int, default=128
        Clustered points in a step, and as many that were not in the sample.
    learning_rate : float, default=0.03
        Of the first round, divided by 1 + the round's consensus weight.
    learning_rate_decay : float, default=0.9
        What the rate is multiplied by from round to round.
    lambda_cons : float or "auto"
        Weight of the consensus loss. "auto" is the inverse variance of the first embedding, which
        makes the loss independent of its scale.
    lambda_rec : float or "auto"
        Weight of the reconstruction. "auto" is 1, as in the paper, and 10 up to 2,000 points.
    lambda_ce : float, default=1
        Weight of the classification; 0 only for the ablation.
    lambda_pairs : float, default=1
        Weight of pairs given to ``fit`` as ``must_link`` and ``cannot_link``; without any it has no effect.
    weight_power : float, default=10
        Members count by their agreement with the others to this power. 1 is the authors' program,
        where a member at 0.66 counts nearly as much as one at 0.75, and a majority of poor members
        can drag the rest along.
    center : "mean" or "median", default="mean"
        The center of a cluster in the consensus loss.
    moving_centers : bool, default=True
        Centers follow the batches (the authors' program) or stay fixed within a round (the paper).
    use_unclustered, weight_by_probability, ramp_up : bool, default=True
        The paper's three heuristics: points outside the sample are trained on too, with predicted
        labels; points count by their classifier's probability; the consensus weight grows over the
        rounds.
    rec_by_disagreement : bool, default=True
        Weight the reconstruction by 1 - agreement, as the authors' program does.
    held_out : float, default=0.1
        Share of the sample that only decides when to stop.
    patience : int, default=3
        Checks of the held-out loss without a better one before an update stops.
    standardize : bool, default=False
        Scale each dimension of the embedding by itself before the members see it, as the authors'
        program does. Members do worse with it.
    min_cluster_size : int, default=6
        Smaller clusters take no part in their round; the limit shrinks on small samples.
    """

    n_rounds: Annotated[int, whole(at_least=0)] = 10
    n_init: Annotated[int | str, AUTO | whole(at_least=1)] = "auto"
    tol: Annotated[float | None, number() | NONE] = None
    sample_size: Annotated[int | float | str, COUNT_OR_SHARE] = "auto"
    n_steps: Annotated[int | str, AUTO | whole(at_least=1)] = "auto"
    batch_size: Annotated[int, whole(at_least=2)] = 128
    learning_rate: Annotated[float, number(at_least=0)] = 0.03
    learning_rate_decay: Annotated[float, number(at_least=0)] = 0.9
    lambda_cons: Annotated[float | str, AUTO | number(at_least=0)] = "auto"
    lambda_rec: Annotated[float | str, AUTO | number(at_least=0)] = "auto"
    lambda_ce: Annotated[float, number(at_least=0)] = 1.0
    lambda_pairs: Annotated[float, number(at_least=0)] = 1.0
    weight_power: Annotated[float, number(at_least=0)] = 10.0
    center: Annotated[str, one_of("mean", "median")] = "mean"
    moving_centers: Annotated[bool, FLAG] = True
    use_unclustered: Annotated[bool, FLAG] = True
    weight_by_probability: Annotated[bool, FLAG] = True
    ramp_up: Annotated[bool, FLAG] = True
    rec_by_disagreement: Annotated[bool, FLAG] = True
    held_out: Annotated[float, share(zero=True)] = 0.1
    patience: Annotated[int, whole(at_least=1)] = 3
    standardize: Annotated[bool, FLAG] = False
    min_cluster_size: Annotated[int, whole(at_least=1)] = 6


def keep_in_files(cls: type[Any], renamed: Mapping[str, str] | None = None) -> None:
    """Let model files hold settings of this class; ``renamed`` maps names in older files."""
    names = [field.name for field in fields(cls)]

    def make(stored: dict[str, Any]) -> Parameters:
        current = {(renamed or {}).get(name, name): value for name, value in stored.items()}
        if current.get("n_epochs") == "auto":  # files of version 1 had "auto" here
            del current["n_epochs"]
        return cls(**current)

    register(cls, lambda value: {name: getattr(value, name) for name in names}, make)


keep_in_files(Network)
keep_in_files(Pretraining, renamed={"epochs": "n_epochs"})
keep_in_files(Rounds)
