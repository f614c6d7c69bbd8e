"""The autoencoder: ``enc`` embeds a point, ``dec`` gives it back."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import torch
from torch import nn

from deccs.checks import WIDTHS, is_widths
from deccs.data.rows import Rows
from deccs.data.sampling import EveryRow, Index
from deccs.data.scaling import Scaler
from deccs.data.source import RowSource, blocks, in_order, rows_at_once
from deccs.inference.encoder import MOST_VALUES, DenseEncoder, check_finite
from deccs.inference.encoder import TrainingError as TrainingError
from deccs.network.by_hand import SLOPE, FeedForward, feed_forward
from deccs.storage import register
from deccs.storage.networks import check_width, make_network, take_network, values_per_row
from deccs.storage.schema import check_fields


class Autoencoder(nn.Module):
    """An encoder and a decoder; any two modules whose shapes fit each other will do.

    Build the paper's with :meth:`feed_forward`, or bring your own. ``pretrained`` says whether
    training may be skipped: :func:`deccs.training.pretraining.pretrain` sets it, and so can you.
    """

    def __init__(self, encoder: nn.Module, decoder: nn.Module, pretrained: bool = False) -> None:
        super().__init__()
        self.encoder, self.decoder, self.pretrained = encoder, decoder, pretrained

    @classmethod
    def feed_forward(
        cls,
        n_features: int,
        layers: Sequence[int],
        dropout: float = 0.0,
        n_inputs: int | None = None,
    ) -> Autoencoder:
        """An untrained network: ``layers`` are the widths of the encoder, the last is the embedding's.

        The encoder may see more (``n_inputs``) than the decoder gives back (``n_features``).
        """
        if not is_widths(layers):
            raise ValueError(f"layers must be {WIDTHS.words}, got {layers!r}.")
        hidden = tuple(int(width) for width in layers)
        into, out = (n_inputs or n_features, *hidden), (*hidden[::-1], n_features)
        return cls(feed_forward(into, dropout), feed_forward(out, dropout))

    def by_hand(self) -> tuple[FeedForward, FeedForward] | None:
        """Encoder and decoder, if their gradients can be had without autograd."""
        encoder, decoder = self.encoder, self.decoder
        if not isinstance(encoder, FeedForward) or not isinstance(decoder, FeedForward):
            return None
        return (encoder, decoder) if encoder.linear[0].weight.device.type == "cpu" else None

    def exact_encoder(self) -> Callable[[np.ndarray], np.ndarray]:
        """(n, n_features) scaled rows -> (n, n_latent), in double precision."""
        return exact_encoder(self)

    def dense_encoder(self) -> DenseEncoder | None:
        """The encoder without torch; None for one with layers of other kinds than ours."""
        return dense_encoder(self.encoder)

    def check_width(self, n_inputs: int) -> None:
        """Raise a ModelFileError where rows of so many columns do not fit the encoder of a file."""
        check_width(self.encoder, n_inputs)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        z = self.encoder(x)  # (batch, n_latent)
        return z, self.decoder(z)  # ... and (batch, n_features)


def take_autoencoder(autoencoder: Autoencoder) -> dict[str, Any]:
    return {
        "encoder": take_network(autoencoder.encoder),
        "decoder": take_network(autoencoder.decoder),
        "pretrained": autoencoder.pretrained,
    }


def make_autoencoder(fields: dict[str, Any]) -> Autoencoder:
    check_fields("Autoencoder", fields, {"encoder": dict, "decoder": dict, "pretrained": bool})
    return Autoencoder(
        make_network(fields["encoder"]), make_network(fields["decoder"]), fields["pretrained"]
    ).eval()


register(Autoencoder, take_autoencoder, make_autoencoder)


@torch.no_grad()
def encode(autoencoder: Autoencoder, rows: Rows, index: Index | None = None) -> torch.Tensor:
    """Embed some rows, or all of them: (n_rows, n_latent), float32, on the CPU."""
    autoencoder.eval()
    index = EveryRow(len(rows)) if index is None else index
    places = blocks(len(index), rows_at_once(rows.n_features))
    Z = torch.cat([autoencoder.encoder(rows[index[place]]).cpu() for place in places])
    check_finite(Z.numpy())
    return Z


@torch.no_grad()
def encode_exactly(
    autoencoder: Autoencoder, source: RowSource, scaler: Scaler
) -> Iterator[np.ndarray]:
    """Embed raw rows block by block in double precision.

    See :mod:`deccs.inference.encoder` for why.
    """
    encode_block = exact_encoder(autoencoder)
    for block in in_order(source, rows_at_once(source.shape[1]) // 4):
        yield encode_block(scaler.inputs(block))


def exact_encoder(autoencoder: Autoencoder) -> Callable[[np.ndarray], np.ndarray]:
    """(n, n_features) scaled rows -> (n, n_latent), in double precision."""
    dense = dense_encoder(autoencoder.encoder)
    if dense is not None:
        return dense
    # A copy, since other threads may be predicting too; on the CPU, since not every device has doubles.
    encoder = copy.deepcopy(autoencoder.encoder).cpu().double().eval()
    at_once: dict[int, int] = {}  # rows, by their width

    @torch.no_grad()
    def encode_block(scaled: np.ndarray) -> np.ndarray:
        n_features = scaled.shape[1]
        if n_features not in at_once:
            widest = max(values_per_row(encoder, n_features) or [1])
            at_once[n_features] = max(1, MOST_VALUES // widest)
        parts = torch.tensor(scaled).split(at_once[n_features])
        Z = torch.cat([encoder(part) for part in parts])
        check_finite(Z.numpy())
        return Z.numpy()

    return encode_block


def dense_encoder(encoder: nn.Module) -> DenseEncoder | None:
    """The same without torch; None for an encoder with layers of other kinds than ours."""
    if (
        not isinstance(encoder, nn.Sequential)
        or encoder._forward_hooks
        or encoder._forward_pre_hooks
    ):
        return None
    layers = [layer for layer in encoder if not isinstance(layer, nn.Dropout)]
    linear = [layer for layer in layers[::2] if type(layer) is nn.Linear]
    between = [layer for layer in layers[1::2] if type(layer) is nn.LeakyReLU]
    is_plain = len(linear) + len(between) == len(layers) and len(linear) > len(between)
    has_biases = all(layer.bias is not None for layer in linear)
    is_leaky = all(layer.negative_slope == SLOPE for layer in between)
    hooked = any(layer._forward_hooks or layer._forward_pre_hooks for layer in layers)
    if not (is_plain and has_biases and is_leaky) or hooked:
        return None
    return DenseEncoder(
        tuple(layer.weight.detach().cpu().numpy() for layer in linear),
        tuple(layer.bias.detach().cpu().numpy() for layer in linear),
    )
