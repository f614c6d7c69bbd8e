"""The estimator that a fit asks for, by the names of its method, members and settings."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any

from deccs import DECCS
from deccs.app.given import OPTIONS
from deccs.app.request import FitRequest, Option, RequestError, check_known, did_you_mean, shown
from deccs.base import Clusterer
from deccs.checks import check_bounds, check_parameters, k_bounds
from deccs.consensus import ConsensusClustering
from deccs.deep import METHODS
from deccs.members.default import MEMBERS

# Parameters that belong to the command line itself, or that are no plain values.
NOT_SETTINGS = ("members", "verbose", "callbacks", "checkpoint")


def methods() -> dict[str, type[Clusterer]]:
    """The estimators that ``--method`` knows, by name in lower case."""
    deep = {name.lower(): method for name, method in METHODS.items()}
    return {"deccs": DECCS, "consensus": ConsensusClustering, **deep}


def estimator_for(request: FitRequest) -> Clusterer:
    """The method with its defaults, the settings over them, and the options over both."""
    name, known = request.method.lower(), methods()
    check_known([name], known, "--method", "method")
    model = known[name](random_state=0)
    names = [name for name in model.get_params(deep=True) if name not in NOT_SETTINGS]
    settings = flattened(request.settings, names)
    for setting in settings:
        if setting not in names:
            dotted = [name.replace("__", ".") for name in names]
            setting = setting.replace("__", ".")
            raise RequestError(
                f"{type(model).__name__} has no setting {shown(setting)}."
                f"{did_you_mean(setting, dotted)} It has {', '.join(dotted)}."
            )
    model.set_params(**settings)
    model.set_params(**parameters_set_by(request, model))
    check_parameters(model)
    given = [name for name in OPTIONS if getattr(request, name) is not None]
    if given and not isinstance(model, DECCS):
        option = request.entries()[given[0]].label
        raise RequestError(
            f"{option} has no effect on {type(model).__name__}: only the method deccs knows labels and pairs. "
            "Leave it out, or choose --method deccs."
        )
    return model


def flattened(settings: Mapping[str, Any], names: Sequence[str], above: str = "") -> dict[str, Any]:
    """Settings by scikit-learn's names.

    >>> names = ["rounds", "rounds__tol", "pretraining", "pretraining__grid"]
    >>> flattened({"rounds": {"tol": 0.1}, "pretraining.grid": {"learning_rate": [1.0]}}, names)
    {'rounds__tol': 0.1, 'pretraining__grid': {'learning_rate': [1.0]}}
    """
    flat: dict[str, Any] = {}
    for key, value in settings.items():
        name = above + key.replace(".", "__")
        has_inner = any(other.startswith(f"{name}__") for other in names)
        if isinstance(value, Mapping) and has_inner:
            flat |= flattened(value, names, f"{name}__")
        elif has_inner and value is not None:
            example = next(other for other in names if other.startswith(f"{name}__"))
            raise RequestError(
                f"The setting {name.replace('__', '.')} must be a table of settings, such as "
                f"{example.replace('__', '.')}, got {shown(value)}."
            )
        else:
            flat[name] = value
    return flat


def parameters_set_by(request: FitRequest, model: Clusterer) -> dict[str, Any]:
    """The parameters that the options of a request set."""
    values: dict[str, Any] = {}
    possible = model.get_params(deep=True)
    for entry in request.entries().values():
        value = getattr(request, entry.name)
        if value is None or not isinstance(entry.words, Option) or not entry.words.sets:
            continue
        if entry.words.sets not in possible:
            raise RequestError(
                f"{entry.label} has no effect on {type(model).__name__}. Leave it out, or choose "
                "another --method."
            )
        values[entry.words.sets] = value
    if values.get("scale") == "none":
        values["scale"] = None
    if "members" in values:
        check_known(values["members"], MEMBERS, "--members", "member")
        values["members"] = list(values["members"])
    if request.clusters != "auto" or "n_clusters" not in request.settings:
        values["n_clusters"] = number_or_range(request.clusters)
    return values


def number_or_range(clusters: str) -> int | str:
    """What ``--clusters`` says, as the estimators take it.

    >>> number_or_range("10"), number_or_range("3-20"), number_or_range("auto")
    (10, '3-20', 'auto')
    """
    text = clusters.strip()
    if text.isdecimal():
        return int(text)
    if k_bounds(text) is None:
        raise RequestError(
            f"--clusters must be a whole number, a range such as 3-20, or auto; got {shown(clusters)}."
        )
    try:
        check_bounds(text, sys.maxsize)  # whether there are enough rows shows later
    except ValueError as error:
        raise RequestError(f"--clusters: {error}") from error
    return text
