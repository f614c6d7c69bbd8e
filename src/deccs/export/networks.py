"""Networks as graphs, layer by layer, in double precision where the rows are.

Convolutions are products of matrices on patches, since onnxruntime has them in single precision alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import singledispatch
from typing import Any

import numpy as np
import torch
from torch import nn

from deccs.deep.concurl import UnitLength
from deccs.export.graph import ExportError, Tensor
from deccs.inference.encoder import SLOPE, DenseEncoder
from deccs.storage.networks import CHAINS, leaves, shape_after

LEAST_LENGTH = 1e-12  # of torch's normalize


def network(module: nn.Module | DenseEncoder, rows: Tensor, n_inputs: int) -> Tensor:
    """What a network makes of rows (n, n_inputs): (n, n_outputs)."""
    if isinstance(module, DenseEncoder):
        return dense(module, rows)
    values = rows
    shape: tuple[int, ...] = (n_inputs,)
    for layer in leaves(module):
        check_known(layer)
        values = layer_of(layer, values, shape)
        shape = shape_after(layer, shape)
    return values


def dense(encoder: DenseEncoder, rows: Tensor) -> Tensor:
    """The same of a network that was loaded without torch."""
    values = rows
    for place, (weight, bias) in enumerate(zip(encoder.weights, encoder.biases, strict=True)):
        if place:
            values = values.op("Max", values * SLOPE)
        values = values.op("Gemm", weight.astype(float), bias.astype(float), transB=1)
    return values


def check_known(layer: nn.Module) -> None:
    """Raise an ExportError for a layer of the user's own, or one that has been changed."""
    known = layer_of.dispatch(type(layer)) is not layer_of.dispatch(object)
    is_chain = isinstance(layer, nn.Sequential) and CHAINS.get(type(layer).__name__)
    hooked = layer._forward_hooks or layer._forward_pre_hooks
    if (not known or hooked) and not is_chain:
        names = sorted(cls.__name__ for cls in layer_of.registry if cls is not object)
        raise ExportError(
            f"The network has a layer {type(layer).__name__} that cannot be written as ONNX"
            f"{' since hooks change it' if known else ''}. Build it from {', '.join(names)} in nn.Sequential."
        )


@singledispatch
def layer_of(layer: Any, values: Tensor, shape: tuple[int, ...]) -> Tensor:
    """What a layer makes of values (n, *shape)."""
    raise AssertionError(layer)


def array(weights: torch.Tensor) -> np.ndarray:
    """Weights in double precision."""
    return weights.detach().double().cpu().numpy()


def register(*classes: type[nn.Module]) -> Callable[[Any], Any]:
    """``@register(nn.Linear)`` above a function ``(layer, values, shape) -> values``: files can hold these layers."""

    def add(function: Any) -> Any:
        for cls in classes:
            layer_of.register(cls, function)
        return function

    return add


@register(nn.Linear)
def linear(layer: nn.Linear, values: Tensor, shape: tuple[int, ...]) -> Tensor:
    if len(shape) == 1 and layer.bias is not None:
        return values.op("Gemm", array(layer.weight), array(layer.bias), transB=1)
    product = values @ array(layer.weight).T
    return product if layer.bias is None else product + array(layer.bias)


@register(nn.LeakyReLU)
def leaky_relu(layer: nn.LeakyReLU, values: Tensor, shape: tuple[int, ...]) -> Tensor:
    lower = values * float(layer.negative_slope)
    return values.op("Max", lower) if layer.negative_slope <= 1 else values.op("Min", lower)


@register(nn.ReLU)
def relu(layer: nn.ReLU, values: Tensor, shape: tuple[int, ...]) -> Tensor:
    return values.op("Max", 0.0)


@register(nn.ELU)
def elu(layer: nn.ELU, values: Tensor, shape: tuple[int, ...]) -> Tensor:
    below = (values.op("Min", 0.0).op("Exp") - 1.0) * float(layer.alpha)
    return (values > 0.0).where(values, below)


@register(nn.GELU)
def gelu(layer: nn.GELU, values: Tensor, shape: tuple[int, ...]) -> Tensor:
    if layer.approximate == "tanh":
        inner = (values + values * values * values * 0.044715) * math.sqrt(2 / math.pi)
        return values * (inner.op("Tanh") + 1.0) * 0.5
    if values.dtype != np.float32:
        raise ExportError(
            "The network has a layer GELU, which ONNX runtimes have in single precision alone. Use "
            "precision='single', or GELU(approximate='tanh')."
        )
    return values * ((values / math.sqrt(2.0)).op("Erf") + 1.0) * 0.5


@register(nn.Tanh)
def tanh(layer: nn.Tanh, values: Tensor, shape: tuple[int, ...]) -> Tensor:
    return values.op("Tanh")


@register(nn.Sigmoid)
def sigmoid(layer: nn.Sigmoid, values: Tensor, shape: tuple[int, ...]) -> Tensor:
    return values.op("Sigmoid")


@register(nn.Dropout, nn.Identity)
def nothing(layer: nn.Module, values: Tensor, shape: tuple[int, ...]) -> Tensor:
    return values


@register(nn.Flatten, nn.Unflatten)
def reshaped(layer: nn.Module, values: Tensor, shape: tuple[int, ...]) -> Tensor:
    return values.reshape(0, *shape_after(layer, shape))


@register(nn.BatchNorm1d, nn.BatchNorm2d)
def normalized(
    layer: nn.BatchNorm1d | nn.BatchNorm2d, values: Tensor, shape: tuple[int, ...]
) -> Tensor:
    """With the mean and variance of training."""
    if layer.running_mean is None or layer.running_var is None:
        raise ExportError(
            "The network has a normalization that looks at the rows of a batch, so that a row's label depends on "
            "others. Use track_running_stats=True."
        )
    factor = 1 / np.sqrt(array(layer.running_var) + layer.eps)
    shift = np.zeros_like(factor)
    if layer.affine:
        factor, shift = factor * array(layer.weight), array(layer.bias)
    shift = shift - array(layer.running_mean) * factor
    along = (-1, *(1 for _ in shape[1:]))  # the first dimension behind the rows
    return values * factor.reshape(along) + shift.reshape(along)


@register(nn.Conv2d)
def convolved(layer: nn.Conv2d, values: Tensor, shape: tuple[int, ...]) -> Tensor:
    """A product of the patches and the weights: (n, channels, height, width) -> (n, channels_out, ...)."""
    n_pixels = math.prod(shape)
    places = patches(layer, shape)  # (n_positions, n_in_patch), n_pixels outside of the image
    flat = values.reshape(0, n_pixels)
    outside = flat.take([0], axis=1) * 0.0
    padded = values.graph.concat([flat, outside])  # (n, n_pixels + 1)
    weights = whole_weights(layer).reshape(layer.out_channels, -1)
    product = padded.take(places, axis=1) @ weights.T  # (n, n_positions, channels_out)
    if layer.bias is not None:
        product = product + array(layer.bias)
    return product.op("Transpose", perm=[0, 2, 1]).reshape(0, *shape_after(layer, shape))


def patches(layer: nn.Conv2d, shape: tuple[int, ...]) -> np.ndarray:
    """The numbers of the pixels that each place of the result sees: (n_positions, channels * kernel pixels).

    Pixels outside of the image have the number behind the last one.

    >>> patches(nn.Conv2d(1, 1, 2, padding=(0, 1)), (1, 2, 1))  # an image of two pixels, one above the other
    array([[2, 0, 2, 1],
           [0, 2, 1, 2]])
    """
    pixels = np.arange(math.prod(shape)).reshape(shape)
    modes: dict[str, Any] = {"reflect": "reflect", "replicate": "edge", "circular": "wrap"}
    (top, bottom), (left, right) = padding_of(layer)
    around = ((0, 0), (top, bottom), (left, right))
    if layer.padding_mode == "zeros":
        pixels = np.pad(pixels, around, constant_values=math.prod(shape))
    else:
        pixels = np.pad(pixels, around, mode=modes[layer.padding_mode])
    (height, width), (down, across) = layer.kernel_size, layer.dilation
    _, n_down, n_across = shape_after(layer, shape)
    rows = np.arange(n_down)[:, None] * layer.stride[0] + np.arange(height) * down
    columns = np.arange(n_across)[:, None] * layer.stride[1] + np.arange(width) * across
    seen = pixels[:, rows[:, None, :, None], columns[None, :, None, :]]  # (c, down, across, h, w)
    return seen.transpose(1, 2, 0, 3, 4).reshape(n_down * n_across, -1)


def padding_of(layer: nn.Conv2d) -> list[tuple[int, int]]:
    """Pixels around an image: (above, below) and (left, right)."""
    if layer.padding == "same":
        reach = [d * (k - 1) for d, k in zip(layer.dilation, layer.kernel_size, strict=True)]
        return [(total // 2, total - total // 2) for total in reach]
    if isinstance(layer.padding, str):
        return [(0, 0), (0, 0)]
    return [(int(size), int(size)) for size in layer.padding]


def whole_weights(layer: nn.Conv2d) -> np.ndarray:
    """Weights for all channels, 0 for those of other groups: (channels_out, channels, height, width)."""
    weights = array(layer.weight)
    out = np.zeros((layer.out_channels, layer.in_channels, *layer.kernel_size))
    n_out, n_in = layer.out_channels // layer.groups, layer.in_channels // layer.groups
    for group in range(layer.groups):
        to = slice(group * n_out, (group + 1) * n_out)
        out[to, group * n_in : (group + 1) * n_in] = weights[to]
    return out


@register(nn.AdaptiveAvgPool2d)
def pooled(layer: nn.AdaptiveAvgPool2d, values: Tensor, shape: tuple[int, ...]) -> Tensor:
    """Means over parts of an image, as a product: (n, channels, height, width) -> (n, channels, ...)."""
    channels, *size = shape
    out = shape_after(layer, shape)
    down, across = (means(was, now) for was, now in zip(size, out[1:], strict=True))
    both = np.kron(down, across)  # (pixels out, pixels)
    return (values.reshape(0, channels, math.prod(size)) @ both.T).reshape(0, *out)


def means(size: int, parts: int) -> np.ndarray:
    """Which pixels of a line each part is the mean of, as torch divides it: (parts, size).

    >>> means(3, 2)
    array([[0.5, 0.5, 0. ],
           [0. , 0.5, 0.5]])
    """
    matrix = np.zeros((parts, size))
    for part in range(parts):
        start, end = part * size // parts, -(-(part + 1) * size // parts)
        matrix[part, start:end] = 1 / (end - start)
    return matrix


@register(UnitLength)
def unit_length(layer: UnitLength, values: Tensor, shape: tuple[int, ...]) -> Tensor:
    length = values.square().sum(-1, keepdims=True).op("Sqrt")
    return values / length.op("Max", LEAST_LENGTH)
