"""The rows as networks see them: scaled, in single precision, as tensors."""

from __future__ import annotations

import numpy as np
import torch

from deccs.data.augment import draw_small_motion, move
from deccs.data.scaling import Scaler, widths_of
from deccs.data.source import ArrayRows, RowSource, each_block
from deccs.group.group import ALONE, Group


class Rows:
    """``rows[index]`` gives scaled float32 rows as a tensor: (n, n_inputs).

    An array in memory is scaled once. Any other source is read batch by batch, so that data larger
    than memory can be clustered. Rows that are images have an ``image_shape`` (height, width), and
    ``rows.moved(index, generator)`` gives them as training should see them. ``group`` are the processes
    that have the same rows, and can share the work on them.
    """

    def __init__(
        self,
        source: RowSource,
        scaler: Scaler,
        device: str | torch.device = "cpu",
        image_shape: tuple[int, int] | None = None,
        group: Group = ALONE,
    ) -> None:
        self.source, self.scaler, self.device = source, scaler, torch.device(device)
        self.group = group
        self.n_rows = source.shape[0]
        # Networks may see more than they reconstruct: which values of a row are missing.
        self.n_features, self.n_inputs = widths_of(scaler, source.shape[1])
        self.image_shape = image_shape
        self._origin, self._unit = origin_and_unit(scaler)
        self._table: torch.Tensor | None = None
        if type(source) is ArrayRows:
            table = torch.empty((self.n_rows, self.n_inputs), dtype=torch.float32)
            for place, block in each_block(source):
                table[place] = self._tensor(block)
            self._table = table.to(self.device)

    def __len__(self) -> int:
        return self.n_rows

    @property
    def facts(self) -> tuple[Scaler, str, tuple[int, int] | None]:
        """What another process needs to see the same rows in the same way."""
        return self.scaler, str(self.device), self.image_shape

    def scaled(self, index: slice | np.ndarray) -> np.ndarray:
        """Scaled rows in double precision: (n, n_features)."""
        return self.scaler(self.source.read(index))

    def __getitem__(self, index: torch.Tensor | slice) -> torch.Tensor:
        if self._table is not None:
            return self._table[index]
        block = self.source.read(index if isinstance(index, slice) else index.cpu().numpy())
        return self._tensor(block).to(self.device)

    def _tensor(self, block: np.ndarray) -> torch.Tensor:
        """Raw rows as the network sees them: (n, n_inputs)."""
        with np.errstate(over="ignore"):
            single = self.scaler.inputs(block).astype(np.float32)
        if self.scaler.kind == "none" and not np.isfinite(single).all():
            raise ValueError(
                f"X has values up to {np.abs(block).max():.3g}, and networks compute in single "
                "precision, up to 3.4e38. Scale the columns first, or use scale='auto'."
            )
        return torch.from_numpy(single)

    def moved(self, index: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
        """Images shifted, turned and scaled a little, each at random; other rows as they are.

        Nothing is drawn from the generator where rows are no images.
        """
        rows = self[index]  # (batch, n_features)
        if self.image_shape is None:
            return rows
        # A pixel can only go to another column where all columns have one scale.
        pixels = self._unscaled(rows).view(-1, 1, *self.image_shape)
        moved = move(pixels, draw_small_motion(len(rows), generator)).flatten(1)
        return self._scaled(moved)

    def _unscaled(self, rows: torch.Tensor) -> torch.Tensor:
        if self.scaler.kind != "columns":
            return rows
        return torch.addcmul(self._mean, rows, self._deviation)

    def _scaled(self, rows: torch.Tensor) -> torch.Tensor:
        if self.scaler.kind != "columns":
            return rows
        return (rows - self._mean) / self._deviation

    @property
    def _mean(self) -> torch.Tensor:
        return self._column((self.scaler.mean - self._origin) / self._unit)

    @property
    def _deviation(self) -> torch.Tensor:
        return self._column(self.scaler.deviation / self._unit)

    def _column(self, values: np.ndarray) -> torch.Tensor:
        return torch.from_numpy(values).float().to(self.device)


def origin_and_unit(scaler: Scaler) -> tuple[float, float]:
    """What pixels are measured from, and in: 0 and 1, unless single precision would lose them.

    >>> origin_and_unit(Scaler("columns", np.array([5.0, 7.0]), np.array([2.0, 3.0])))
    (0.0, 1.0)
    >>> origin_and_unit(Scaler("columns", np.array([1e15, 1e15]), np.array([2.0, 4.0])))
    (1000000000000000.0, 4.0)
    """
    mean, deviation = np.abs(scaler.mean).max(), float(np.max(scaler.deviation))
    if mean < 1e4 * deviation and 1e-10 < deviation < 1e10:
        return 0.0, 1.0
    return float(np.median(scaler.mean)), deviation
