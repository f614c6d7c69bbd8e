"""torch modules as a description of their layers and their weights."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from deccs.storage.values import Fields, ModelFileError, as_text, register

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
    if fields["layers"] is None:
        return MissingModule(str(fields["text"]), fields["weights"])
    if count(fields["layers"]) > MOST_LAYERS:
        raise ModelFileError(f"its network has more than {MOST_LAYERS} layers")
    with torch.device("meta"):  # nothing is allocated, however wide a file says that a layer is
        network = build(fields["layers"])
    network.load_state_dict(fields["weights"], assign=True)  # names and shapes must fit
    return network.eval()


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
        raise ModelFileError(f"its network has a layer {name!r}, which this deccs does not know")
    cls, arguments = LAYERS[name]
    return cls(**{argument: description[argument] for argument in arguments})


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
                    f"The {side} given is not the one that was saved: {error}"
                ) from error
            setattr(autoencoder, side, own.eval())


register(nn.Sequential, take_network, make_network)
