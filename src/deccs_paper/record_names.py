"""Settings as records name them.

A record identifies its run by its settings. Published records have the names of the first version:
all on one level but for the pretraining, some in British spelling. New records keep them, so that
no published run has to be repeated because a setting was renamed.
"""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from deccs.checks import Parameters

# What cannot change a result, or (the network of a comparison) is recorded elsewhere.
NOT_RECORDED = (
    "verbose",
    "callbacks",
    "n_jobs",
    "member_timeout",
    "device",
    "random_state",
    "network",
    "checkpoint",
    "like",
)
IN_RECORDS = {
    "rounds__tol": "tolerance",
    "rounds__center": "centre",
    "rounds__moving_centers": "moving_centres",
    "rounds__standardize": "standardise",
    "pretraining__n_epochs": "pretraining.epochs",
}
BY_CLASS = {
    "DECCS": {"pretraining__grid": "pretraining_grid"},
    "IDEC": {"lambda_cluster": "gamma"},
    "ConCURL": {"lambda_cons": "lambda_consensus"},
    "AGAE": {"n_neighbors": "n_neighbours"},
    "ConsensusClustering": {"sample_size": "max_points"},
    "AutoencoderClustering": {"sample_size": "max_points"},
}
# Settings that published records do not have: recorded only where they differ from their default.
LATER = (
    "rounds__rec_by_disagreement",
    "rounds__held_out",
    "rounds__patience",
    "rounds__lambda_pairs",
    "pretraining__n_steps",
    "pretraining__grid",
)

# What the paper's method does not have: runs without it are recorded as before it was there.
SWITCHES = ("views", "network__image_shape", "kinds")


def record_name(setting: str, kind: str = "") -> str:
    """The name a setting has in records; ``kind`` is the class of the estimator.

    >>> record_name("rounds__tol"), record_name("rounds__n_init"), record_name("network__layers")
    ('tolerance', 'n_init', 'layers')
    >>> record_name("pretraining__n_epochs"), record_name("lambda_cluster", "IDEC")
    ('pretraining.epochs', 'gamma')
    """
    given = IN_RECORDS | BY_CLASS.get(kind, {})
    if setting in given:
        return given[setting]
    part, nested, name = setting.partition("__")
    if not nested:
        return setting
    return f"pretraining.{name}" if part == "pretraining" else name


def settings_record(model: Any) -> dict[str, Any]:
    """All parameters of an estimator that its result depends on, as plain JSON."""
    kind = type(model).__name__
    record: dict[str, Any] = {}
    defaults = flat_parameters(type(model)())
    for setting, value in flat_parameters(model).items():
        later = setting in LATER and setting not in BY_CLASS.get(kind, {})
        switched_off = setting in SWITCHES and value is None
        if setting in NOT_RECORDED or switched_off or (later and value == defaults[setting]):
            continue
        part, nested, name = record_name(setting, kind).partition(".")
        if nested:
            record.setdefault(part, {})[name] = in_record(setting, value)
        else:
            record[part] = in_record(setting, value)
    return record


def flat_parameters(model: Any) -> dict[str, Any]:
    """Parameters by name, those of the settings classes as ``rounds__n_rounds``."""
    values: dict[str, Any] = {}
    classes = model._settings_classes()
    for name, value in model.get_params(deep=False).items():
        if name in classes and (value is None or isinstance(value, Parameters)):
            settings = model.settings_for(name)
            values |= {
                f"{name}__{field.name}": getattr(settings, field.name)
                for field in fields(settings)  # in this order, on which keys of caches depend
            }
        else:
            values[name] = value
    return values


def in_record(setting: str, value: Any) -> Any:
    if setting == "members" and value is not None:
        return [[name, in_words(member)] for name, member in value]
    if setting == "pretraining__n_epochs":
        return "auto" if value is None else value
    return value


def in_words(member: Any) -> str:
    return repr(member).replace("NeighborSpectral", "NeighbourSpectral")
