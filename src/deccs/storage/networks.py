"""torch modules as a description of their layers and their weights."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch import nn

from deccs.storage.schema import LARGEST, check_fields
from deccs.storage.values import (
    LONGEST_TEXT,
    Fields,
    ModelFileError,
    as_text,
    in_one_line,
    printable,
    register,
)

# The layers a file may ask for, and the attributes that are the arguments they are made with.
LAYERS: dict[str, tuple[type[nn.Module], tuple[str, ...]]] = {
    "Linear": (nn.Linear, ("in_features", "out_features", "bias")),
    "Conv2d": (
        nn.Conv2d,
        (
            "in_channels",
            "out_channels",
            "kernel_size",
            "stride",
            "padding",
            "dilation",
            "groups",
            "bias",
            "padding_mode",
        ),
    ),
    "BatchNorm1d": (
        nn.BatchNorm1d,
        ("num_features", "eps", "momentum", "affine", "track_running_stats"),
    ),
    "BatchNorm2d": (
        nn.BatchNorm2d,
        ("num_features", "eps", "momentum", "affine", "track_running_stats"),
    ),
    "AdaptiveAvgPool2d": (nn.AdaptiveAvgPool2d, ("output_size",)),
    "Flatten": (nn.Flatten, ("start_dim", "end_dim")),
    "Unflatten": (nn.Unflatten, ("dim", "unflattened_size")),
    "LeakyReLU": (nn.LeakyReLU, ("negative_slope", "inplace")),
    "ReLU": (nn.ReLU, ("inplace",)),
    "ELU": (nn.ELU, ("alpha", "inplace")),
    "GELU": (nn.GELU, ("approximate",)),
    "Tanh": (nn.Tanh, ()),
    "Sigmoid": (nn.Sigmoid, ()),
    "Dropout": (nn.Dropout, ("p", "inplace")),
    "Identity": (nn.Identity, ()),
}
CHAINS: dict[str, type[nn.Sequential]] = {"Sequential": nn.Sequential}
MOST_LAYERS = 1_000
LARGEST_ARGUMENT = 2**31  # of a layer
MOST_PER_ROW = 2**24  # numbers that one layer makes of one row ...
MOST_PER_WEIGHT = 1_000  # ... and for each column and weight; convolutions of images make about 100


def stored_layer(cls: type[nn.Module]) -> type[nn.Module]:
    """Let files hold this module of ours: a layer made without arguments, or a kind of ``Sequential``."""
    if issubclass(cls, nn.Sequential):
        CHAINS[cls.__name__] = cls
    else:
        LAYERS[cls.__name__] = cls, ()
    return cls


class MissingModule(nn.Module):
    """In place of a user's own module until it is given: its text, and the weights that belong into it."""

    def __init__(self, text: str, weights: dict[str, torch.Tensor]) -> None:
        super().__init__()
        self.text, self.weights = text, weights


def take_network(module: nn.Module) -> Fields:
    """Layers (None for modules unknown here), text and weights."""
    return {
        "layers": describe(module),
        "text": as_text(module),
        "weights": dict(module.state_dict()),
    }


def make_network(fields: Fields) -> nn.Module:
    check_fields("a network", fields, {"text": str, "weights": dict[str, torch.Tensor]})
    check_numbers(fields["weights"])
    if fields["layers"] is None:
        return MissingModule(printable(fields["text"], LONGEST_TEXT), fields["weights"])
    if count(fields["layers"]) > MOST_LAYERS:
        raise ModelFileError(f"its network has more than {MOST_LAYERS} layers")
    network = planned(fields["layers"])
    network.load_state_dict(fields["weights"], assign=True)  # names and shapes must fit
    for layer in leaves(network):
        check_variance(layer)
    return network.eval()


def planned(description: dict[str, Any]) -> nn.Module:
    """A network without weights: nothing is allocated, however wide a file says that a layer is."""
    with torch.device("meta"):
        return build(description).eval()


def check_numbers(weights: dict[str, torch.Tensor]) -> None:
    """Raise a ModelFileError for weights that are not finite, or too large to calculate with."""
    for name, weight in weights.items():
        largest = weight.abs().max().item() if weight.is_floating_point() and weight.numel() else 0
        if not largest <= LARGEST:  # or NaN
            raise ModelFileError(f"the weights {name!r:.100} of its network are not finite")


def check_variance(layer: nn.Module) -> None:
    """Raise a ModelFileError for a normalization that divides by nothing, or by what a batch has."""
    if not isinstance(layer, nn.BatchNorm1d | nn.BatchNorm2d):
        return
    if layer.running_var is None or not bool(
        (layer.running_var.double() + layer.eps > 1e-60).all()
    ):
        raise ModelFileError("its network has a normalization without a positive variance")


def leaves(module: nn.Module) -> Iterator[nn.Module]:
    """The layers of a chain of chains, in their order."""
    if not isinstance(module, nn.Sequential):
        yield module
        return
    for part in module:
        yield from leaves(part)


def check_width(network: nn.Module, n_features: int) -> int | None:
    """The width of what a network of known layers makes of a row; None for a user's own module.

    Raises a ModelFileError where rows do not stay rows, or become far larger than a file with so few
    weights can ask for.
    """
    widths = values_per_row(network, n_features)
    if widths is None:
        return None
    n_weights = sum(weight.numel() for weight in network.state_dict().values())
    if max(widths) > min(MOST_PER_ROW, MOST_PER_WEIGHT * (n_features + n_weights)):
        raise ModelFileError(
            f"its network makes {max(widths):,} numbers of a row of {n_features:,}, with only "
            f"{n_weights:,} weights"
        )
    return widths[-1]


def values_per_row(network: nn.Module, n_features: int) -> list[int] | None:
    """How many numbers each layer makes of one row, last what comes out; None for unknown layers."""
    shape: tuple[int, ...] = (n_features,)
    widths = [n_features]
    for layer in leaves(network):
        cls, _ = LAYERS.get(type(layer).__name__, (None, ()))
        if cls is not type(layer) or layer._forward_hooks or layer._forward_pre_hooks:
            return None
        before, shape = shape, shape_after(layer, shape)
        if isinstance(layer, nn.Conv2d):  # it copies every patch of the image
            patches = layer.groups * layer.weight[0].numel() * math.prod(shape[1:])
            widths.append(patches + math.prod(before))
        widths.append(math.prod(shape))
    if len(shape) != 1:
        raise ModelFileError(f"its network makes arrays of shape {shape} of rows")
    return widths


def shape_after(layer: Any, shape: tuple[int, ...]) -> tuple[int, ...]:
    """The shape of what a layer makes of one row or image of this shape.

    >>> shape_after(nn.Conv2d(1, 16, 3, stride=2, padding=1), (1, 28, 28))
    (16, 14, 14)
    """
    if isinstance(layer, nn.Linear) and shape[-1] == layer.in_features:
        return (*shape[:-1], layer.out_features)
    if isinstance(layer, nn.Conv2d) and len(shape) == 3 and shape[0] == layer.in_channels:
        return (layer.out_channels, *(convolved(layer, axis, shape[axis + 1]) for axis in (0, 1)))
    if isinstance(layer, nn.AdaptiveAvgPool2d) and len(shape) == 3:
        size = layer.output_size
        pair = size if isinstance(size, tuple | list) else (size, size)
        height, width = (given or was for given, was in zip(pair, shape[1:], strict=True))
        return shape[0], height, width
    # The row itself is the first dimension, number 0.
    if isinstance(layer, nn.Flatten) and layer.start_dim >= 1:
        last = layer.end_dim % (len(shape) + 1)
        first, inside, rest = np.split(shape, [layer.start_dim - 1, last])
        return (*map(int, first), math.prod(map(int, inside)), *map(int, rest))
    if isinstance(layer, nn.Unflatten) and 1 <= layer.dim <= len(shape):
        before, size, after = shape[: layer.dim - 1], shape[layer.dim - 1], shape[layer.dim :]
        if math.prod(layer.unflattened_size) == size and min(layer.unflattened_size) > 0:
            return (*before, *layer.unflattened_size, *after)
    if (
        isinstance(layer, nn.BatchNorm1d)
        and len(shape) in (1, 2)
        and shape[0] == layer.num_features
    ):
        return shape
    if isinstance(layer, nn.BatchNorm2d) and len(shape) == 3 and shape[0] == layer.num_features:
        return shape
    if isinstance(layer, SHAPED):
        raise ModelFileError(f"its network has a {layer!r:.100} for rows of shape {shape}")
    return shape


SHAPED = (
    nn.Linear,
    nn.Conv2d,
    nn.AdaptiveAvgPool2d,
    nn.Flatten,
    nn.Unflatten,
    nn.BatchNorm1d,
    nn.BatchNorm2d,
)


def convolved(layer: nn.Conv2d, axis: int, size: int) -> int:
    """The height (axis 0) or width (axis 1) of an image after a convolution."""
    if layer.padding == "same":
        return size
    padding = 0 if isinstance(layer.padding, str) else layer.padding[axis]
    reach = layer.dilation[axis] * (layer.kernel_size[axis] - 1) + 1
    after = (size + 2 * padding - reach) // layer.stride[axis] + 1
    if padding < 0 or after < 1:
        raise ModelFileError(f"its network has a {layer!r:.100} for images of {size} pixels")
    return after


def describe(module: nn.Module) -> Any:
    """Name and arguments of every layer, None where one is unknown or has been tampered with."""
    name = type(module).__name__
    if module._forward_hooks or module._forward_pre_hooks:
        return None
    if CHAINS.get(name) is type(module):
        parts = [describe(part) for part in module.children()]
        in_order = [key for key, _ in module.named_children()] == [
            str(number) for number in range(len(parts))
        ]
        return {"layer": name, "parts": parts} if in_order and None not in parts else None
    cls, arguments = LAYERS.get(name, (None, ()))
    if cls is not type(module):
        return None
    return {"layer": name, **{argument: argument_of(module, argument) for argument in arguments}}


def argument_of(module: nn.Module, name: str) -> Any:
    value = getattr(module, name)
    if name == "bias":
        return value is not None
    return tuple(value) if isinstance(value, tuple) else value


def count(description: dict[str, Any]) -> int:
    return 1 + sum(count(part) for part in description.get("parts", ()))


def build(description: dict[str, Any]) -> nn.Module:
    name = description["layer"]
    if name in CHAINS:
        return CHAINS[name](*(build(part) for part in description["parts"]))
    if name not in LAYERS:
        raise ModelFileError(
            f"its network has a layer {name!r:.60}, which this deccs does not know"
        )
    cls, arguments = LAYERS[name]
    given = {argument: description[argument] for argument in arguments}
    for argument, value in given.items():
        for part in value if isinstance(value, tuple | list) else (value,):
            if not isinstance(part, str | None) and not abs(part) <= LARGEST_ARGUMENT:
                raise ModelFileError(f"{argument} of a {name} in its network is {part!r:.60}")
    return cls(**given)


def put_in(given: Any, autoencoder: Any) -> None:
    """Put the weights of a loaded autoencoder into copies of the user's own encoder and decoder, if they are given."""
    for number, side in enumerate(("encoder", "decoder")):
        loaded = getattr(autoencoder, side)
        own = given[number] if given is not None else None
        if own is None and isinstance(loaded, MissingModule):
            raise ModelFileError(
                f"The model was trained with modules of your own, and a file holds only their weights. Build the "
                f"{side} again and load with load(path, network=(encoder, decoder)). It was: {loaded.text}"
            )
        if own is not None:
            weights = loaded.weights if isinstance(loaded, MissingModule) else loaded.state_dict()
            try:
                own.load_state_dict(weights)
            except RuntimeError as error:
                raise ModelFileError(
                    f"The {side} given is not the one that was saved: {in_one_line(error)}"
                ) from error
            setattr(autoencoder, side, own.eval())


register(nn.Sequential, take_network, make_network)
