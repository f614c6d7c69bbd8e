"""The rows as networks see them: scaled, in single precision, as tensors."""

from __future__ import annotations

import numpy as np
import torch

from deccs.data.scaling import Scaler
from deccs.data.source import ArrayRows, RowSource, each_block


class Rows:
    """``rows[index]`` gives scaled float32 rows as a tensor.

    An array in memory is scaled once. Any other source is read batch by batch, so that data larger
    than memory can be clustered.
    """

    def __init__(
        self, source: RowSource, scaler: Scaler, device: str | torch.device = "cpu"
    ) -> None:
        self.source, self.scaler, self.device = source, scaler, torch.device(device)
        self.n_rows, self.n_features = source.shape
        self._table: torch.Tensor | None = None
        if type(source) is ArrayRows:
            table = torch.empty((self.n_rows, self.n_features), dtype=torch.float32)
            for place, block in each_block(source):
                table[place] = torch.from_numpy(scaler(block).astype(np.float32))
            self._table = table.to(self.device)

    def __len__(self) -> int:
        return self.n_rows

    def __getitem__(self, index: torch.Tensor | slice) -> torch.Tensor:
        if self._table is not None:
            return self._table[index]
        block = self.source.read(index if isinstance(index, slice) else index.cpu().numpy())
        return torch.from_numpy(self.scaler(block).astype(np.float32)).to(self.device)
