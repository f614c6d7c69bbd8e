"""Settings: one class per part of the method, each the only place of a setting and its default."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from deccs.storage import stored


@dataclass(frozen=True)
class RoundSettings:
    """What the paper leaves to the user. One set for all data."""

    n_rounds: int = 10  # T; 0 is the plain autoencoder with its ensemble
    tolerance: float | None = (
        None  # tau: stop when the agreement changes by less; None: stop at full agreement
    )
    sample_size: int | float | str = "auto"
    n_steps: int | str = "auto"  # ITER
    batch_size: int = 128  # of clustered points, and as many unclustered ones
    learning_rate: float = 0.03
    learning_rate_decay: float = 0.9  # per round
    lambda_cons: float | str = "auto"
    lambda_rec: float | str = "auto"  # 1 in the paper, 0 in its second variant
    lambda_ce: float = 1.0  # 0 only for the ablation
    weight_power: float = 10.0  # of lambda_i, 1 in the authors' program
    centre: str = "mean"  # or "median"
    moving_centres: bool = True  # the authors' program; the paper's text holds them fixed
    use_unclustered: bool = (
        True  # first heuristic: predicted labels of the points outside the sample
    )
    weight_by_probability: bool = True  # second heuristic
    ramp_up: bool = True  # third heuristic
    rec_by_disagreement: bool = True  # reconstruction times (1 - agreement): the authors' program
    held_out: float = 0.1  # share of the sample that only decides when to stop
    patience: int = 3  # checks of the held-out loss without a better one
    standardise: bool = (
        False  # each dimension of the embedding by itself, before the members see it
    )
    min_cluster_size: int = 6  # smaller clusters take no part in their round
    n_jobs: int | None = None

    def __post_init__(self) -> None:
        if self.centre not in ("mean", "median"):
            raise ValueError(f"centre must be 'mean' or 'median', got {self.centre!r}.")
        for name in (
            "lambda_cons",
            "lambda_rec",
            "lambda_ce",
            "weight_power",
            "learning_rate",
            "learning_rate_decay",
        ):
            value = getattr(self, name)
            may_be_auto = name in ("lambda_cons", "lambda_rec")
            if not (may_be_auto and value == "auto") and (
                not isinstance(value, int | float) or not value >= 0
            ):
                wanted = "a number of at least 0" + (" or 'auto'" if may_be_auto else "")
                raise ValueError(f"{name} must be {wanted}, got {value!r}.")
        if self.tolerance is not None and not isinstance(self.tolerance, int | float):
            raise ValueError(f"tolerance must be a number or None, got {self.tolerance!r}.")
        size = self.sample_size
        share = isinstance(size, float) and 0 < size <= 1
        number = isinstance(size, int | np.integer) and not isinstance(size, bool) and size >= 2
        if not (size == "auto" or share or number):
            raise ValueError(
                f"sample_size must be 'auto', a share in (0, 1] or a number of points, got {size!r}."
            )


@stored
@dataclass(frozen=True)
class Pretraining:
    """How the autoencoder is trained. One set for all data.

    Parameters
    ----------
    epochs : passes over the data; "auto": some 4,000 steps, at least 15 and at most 1,000 passes
    batch_size : half of the paper's by default: as good with the same number of steps, at half the cost
    learning_rate, weight_decay : of Adam
    input_noise : share of the inputs set to zero (a denoising autoencoder); "auto": 0.2 from ten columns on, else 0
    schedule : "one-cycle", or "plateau": halve the rate when the held-out error stands still
    patience : epochs without a better held-out error before stopping
    held_out : share of the points that only decides when to stop (at most 2,000)
    layerwise_epochs : epochs per layer of greedy training first, 0 for none
    """

    epochs: int | str = "auto"
    batch_size: int = 128
    learning_rate: float = 1e-3
    weight_decay: float = 0.0
    input_noise: float | str = "auto"
    schedule: str = "one-cycle"
    patience: int = 10
    held_out: float = 0.1
    layerwise_epochs: int = 0

    def __post_init__(self) -> None:
        if self.schedule not in ("one-cycle", "plateau"):
            raise ValueError(f"schedule must be 'one-cycle' or 'plateau', got {self.schedule!r}.")
        if self.input_noise != "auto" and (
            isinstance(self.input_noise, str) or not 0 <= self.input_noise < 1
        ):
            raise ValueError(
                f"input_noise is 'auto' or a share of the inputs in [0, 1), got {self.input_noise!r}."
            )
        if not 0 <= self.held_out < 1:
            raise ValueError(f"held_out is a share of the points in [0, 1), got {self.held_out!r}.")
        if self.epochs != "auto" and (not isinstance(self.epochs, int) or self.epochs < 0):
            raise ValueError(
                f"epochs must be 'auto' or a whole number of at least 0, got {self.epochs!r}."
            )
        if not isinstance(self.batch_size, int) or self.batch_size < 1:
            raise ValueError(
                f"batch_size must be a whole number of at least 1, got {self.batch_size!r}."
            )
