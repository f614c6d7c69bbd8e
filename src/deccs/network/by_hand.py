"""Feed-forward networks whose gradients are computed without autograd."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import nn

from deccs.inference.encoder import SLOPE as SLOPE
from deccs.storage import stored_layer


def feed_forward(widths: Sequence[int], dropout: float = 0.0) -> nn.Sequential:
    """Linear layers with LeakyReLU(0.01) and dropout between them, none after the last."""
    layers: list[nn.Module] = []
    for n_in, n_out in pairwise(widths):
        layers += [nn.Linear(n_in, n_out), nn.LeakyReLU(SLOPE, inplace=True), nn.Dropout(dropout)]
    return (FeedForward if dropout == 0 else nn.Sequential)(*layers[:-2])


@stored_layer
class FeedForward(nn.Sequential):
    """Linear layers with LeakyReLU between them, whose gradient can be had without autograd.

    A step of a tiny network is all overhead, and autograd's is most of it. In a large one points are columns
    in between: two threads share W @ x better than x @ W^T, which makes a step a tenth faster.
    """

    def __init__(self, *layers: nn.Module) -> None:
        super().__init__(*layers)
        self.linear = [layer for layer in layers if isinstance(layer, nn.Linear)]

    def forward_by_hand(self, x: torch.Tensor) -> tuple[torch.Tensor, list[torch.Tensor]]:
        """What comes out, (batch, n_out), and what each layer was given, (n_in, batch)."""
        seen: list[torch.Tensor] = []
        columns = x.T
        for layer in self.linear:
            if seen:
                columns = nn.functional.leaky_relu_(columns, SLOPE)
            seen.append(columns)
            columns = torch.addmm(layer.bias[:, None], layer.weight, columns)
        return columns.T, seen

    def backward_by_hand(
        self, gradient: torch.Tensor, seen: list[torch.Tensor], to_input: bool = True
    ) -> torch.Tensor:
        """Sets ``.grad`` of the weights; the gradient of the input comes back: (batch, n_out) -> (batch, n_in)."""
        columns = gradient.T
        for number in reversed(range(len(self.linear))):
            layer = self.linear[number]
            # Written where the last one was: new megabytes in each step cost more than it seems.
            layer.weight.grad = torch.mm(columns, seen[number].T, out=layer.weight.grad)
            layer.bias.grad = torch.sum(columns, 1, out=layer.bias.grad)
            if number or to_input:
                columns = torch.mm(layer.weight.T, columns)
            if number:
                columns = torch.ops.aten.leaky_relu_backward(columns, seen[number], SLOPE, True)
        return columns.T
