"""The data as the networks see it: scaled float rows, read where they are."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
import torch

from deccs.data.scaling import Scaler
from deccs.data.source import blocks, dense_block, is_memory_map, rows_at_once


class Rows:
    """``rows[index]`` gives scaled float32 rows as a tensor.

    An array in memory is scaled once. A memory map or a sparse matrix is read batch by batch,
    so that a file larger than memory can be clustered.
    """

    def __init__(self, X: Any, scaler: Scaler, device: str | torch.device = "cpu") -> None:
        self.X, self.scaler, self.device = X, scaler, torch.device(device)
        self.n_rows, self.n_features = X.shape
        self._table: torch.Tensor | None = None
        if not sp.issparse(X) and not is_memory_map(X):
            table = torch.empty((self.n_rows, self.n_features), dtype=torch.float32)
            for index in blocks(self.n_rows, rows_at_once(self.n_features)):
                table[index] = torch.from_numpy(scaler(dense_block(X, index)).astype(np.float32))
            self._table = table.to(self.device)

    def __len__(self) -> int:
        return self.n_rows

    def __getitem__(self, index: torch.Tensor | slice) -> torch.Tensor:
        if self._table is not None:
            return self._table[index]
        where = index if isinstance(index, slice) else index.numpy()
        block = self.scaler(dense_block(self.X, where))
        return torch.from_numpy(block.astype(np.float32)).to(self.device)
