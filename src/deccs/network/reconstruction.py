"""How well a decoder gives rows back: squared error for numbers, cross-entropy for categories.

A value that is missing takes no part. Kinds have the same weight: for a decoder that knows only how often
each value occurs, the error of a column is its variance in the scaled rows, be it squared or cross-entropy.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
import torch

from deccs.data.rows import Rows
from deccs.data.table_scaling import TableScaler

LEAST_ENTROPY = 0.1  # nats: a level that nearly all rows have must not make the others dear
NO_LEVEL = -1e9  # the logit of a place that pads a category to the widest one


class ReconstructionError(Protocol):
    """What training minimizes. ``back`` is (batch, n_features), ``x`` is (batch, n_inputs)."""

    def __call__(self, back: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        """The mean error over the values of a batch that are known."""

    def gradient(self, back: torch.Tensor, x: torch.Tensor, weight: float = 1.0) -> torch.Tensor:
        """``weight`` times the gradient of the error with respect to ``back``."""


class SquaredError:
    """The mean squared error of complete numbers."""

    def __call__(self, back: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        return (back - x).square().mean()

    def gradient(self, back: torch.Tensor, x: torch.Tensor, weight: float = 1.0) -> torch.Tensor:
        return (back - x).mul_(2 * weight / back.numel())


SQUARED = SquaredError()


class TableError:
    """The error of rows of a table with numbers, categories and gaps."""

    def __init__(self, scaler: TableScaler, device: torch.device | str = "cpu") -> None:
        n_scaled = scaler.n_scaled
        self.n_scaled = n_scaled
        is_number = np.zeros(n_scaled, dtype=np.float32)
        is_number[scaler.starts[scaler.numbers]] = 1
        self.is_number = torch.from_numpy(is_number).to(device)
        # Which mask tells whether a scaled column is missing; the last, one more, is never set.
        mask_of_column = {
            int(scaler.column[cell]): place for place, cell in enumerate(scaler.masked)
        }
        cell_of = np.repeat(np.arange(len(scaler.n_levels)), np.maximum(scaler.n_levels, 1))
        n_masks = len(scaler.masked)
        masks = [mask_of_column.get(int(scaler.column[cell]), n_masks) for cell in cell_of]
        self.mask_of = torch.tensor(masks, device=device)  # (n_scaled,)
        columns = [mask_of_column.get(int(column), n_masks) for column in np.unique(scaler.column)]
        self.mask_of_column = torch.tensor(columns, device=device)  # (n_columns,)
        # Categories as one block, padded to the widest: (n_categories, most_levels)
        most = int(scaler.n_levels.max(initial=0))
        places = np.zeros((len(scaler.levels), max(most, 1)), dtype=np.int64)
        is_level = np.zeros(places.shape, dtype=bool)
        costs = np.zeros(len(scaler.levels))
        for row, cell in enumerate(scaler.levels):
            first, n_levels = scaler.starts[cell], scaler.n_levels[cell]
            places[row, :n_levels] = np.arange(first, first + n_levels)
            is_level[row, :n_levels] = True
            shares = scaler.shares[first : first + n_levels]
            costs[row] = cost_of(shares, float(scaler.weight[cell]))
        self.places = torch.from_numpy(places).to(device)
        self.is_level = torch.from_numpy(is_level).to(device)
        self.costs = torch.from_numpy(costs).float().to(device)
        self.has_categories = len(scaler.levels) > 0

    def __call__(self, back: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        target, known, n_known = self._known(x)
        errors = ((back - target).square() * (self.is_number * known)).sum()
        if self.has_categories:
            _, losses, _ = self._categories(back, target, known)
            errors = errors + losses.sum()
        return errors / n_known

    @torch.no_grad()
    def gradient(self, back: torch.Tensor, x: torch.Tensor, weight: float = 1.0) -> torch.Tensor:
        target, known, n_known = self._known(x)
        gradient = (back - target) * (self.is_number * known) * 2
        if self.has_categories:
            probabilities, _, is_target = self._categories(back, target, known)
            costs = self.costs[None, :, None] * known[:, self.places[:, :1]]
            by_level = (probabilities - is_target) * costs  # (batch, n_categories, most_levels)
            gradient[:, self.places[self.is_level]] = by_level[:, self.is_level]
        return gradient * (weight / n_known)

    def _known(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """The rows to give back, (batch, n_scaled), 1 for what is known of them, and how much that is."""
        masks = torch.cat([x[:, self.n_scaled :], x.new_zeros(len(x), 1)], dim=1)
        # A mask that noise has set to 0 says nothing: x is without noise here.
        known = 1 - masks[:, self.mask_of]
        n_known = (1 - masks[:, self.mask_of_column]).sum().clamp(min=1)
        return x[:, : self.n_scaled], known, n_known

    def _categories(
        self, back: torch.Tensor, target: torch.Tensor, known: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Probabilities of levels, losses (batch, n_categories), and which level it is."""
        logits = back[:, self.places].masked_fill(~self.is_level, NO_LEVEL)
        log_p = logits.log_softmax(2)  # (batch, n_categories, most_levels)
        is_target = ((target[:, self.places] > 0) & self.is_level).to(back.dtype)
        losses = -(log_p * is_target).sum(2) * self.costs * known[:, self.places[:, 0]]
        return log_p.exp(), losses, is_target


def cost_of(shares: np.ndarray, weight: float) -> float:
    """What a nat of cross-entropy costs: a category of which only the shares are known costs its variance.

    So does a number of which only the mean is known. Costs without regard to variance, 1 for each column, made
    the embedding of a table a clump for every combination of levels.

    >>> round(cost_of(np.array([0.5, 0.5]), 1.0), 3)  # 0.5 / log(2)
    0.721
    """
    used = shares[shares > 0]
    entropy = max(float(-(used * np.log(used)).sum()), LEAST_ENTROPY)
    return weight**2 * (1 - float(np.square(shares).sum())) / entropy


def error_for(rows: Rows) -> ReconstructionError:
    """The error for the rows of a fit."""
    if isinstance(rows.scaler, TableScaler):
        return TableError(rows.scaler, rows.device)
    return SQUARED
