"""What a fit is asked for: on the command line, else in the config file, else the default."""

from __future__ import annotations

import csv
import json
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from sklearn.cluster import HDBSCAN, Birch, BisectingKMeans

from deccs import DECCS, Pretraining
from deccs.app.run_folder import RunError
from deccs.data.tables.missing import MISSING_CHOICES
from deccs.members.default import Member, default_members

SCALES = ("auto", "global", "columns", "none")
OWN_OPTIONS = (
    "n_clusters",
    "members",
    "n_rounds",
    "scale",
    "random_state",
    "autoencoder",
    "verbose",
    "callbacks",
    "checkpoint",
)


@dataclass(frozen=True)
class FitOptions:
    """All of it has a default. ``settings`` are parameters of ``DECCS`` for which there is no option."""

    clusters: int = 8
    members: tuple[str, ...] | None = None
    columns: tuple[str, ...] | None = None
    id: str | None = None
    scale: str = "auto"
    missing: str = "error"
    rounds: int = 10
    seed: int = 0
    encoding: str = "utf-8"
    header: bool | None = None
    settings: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        for name, choices in {"scale": SCALES, "missing": MISSING_CHOICES}.items():
            if getattr(self, name) not in choices:
                raise RunError(
                    f"{name} must be one of {', '.join(choices)}, got {getattr(self, name)!r}."
                )
        for name in ("clusters", "rounds", "seed"):
            value = getattr(self, name)
            if (
                isinstance(value, bool)
                or not isinstance(value, int)
                or value < (name == "clusters")
            ):
                raise RunError(
                    f"{name} must be a whole number of at least {int(name == 'clusters')}, got {value!r}."
                )


def names_in(text: str | Sequence[str]) -> tuple[str, ...]:
    """
    >>> names_in('age,"height, cm"'), names_in(["age"])
    (('age', 'height, cm'), ('age',))
    """
    words = next(csv.reader([text], skipinitialspace=True), []) if isinstance(text, str) else text
    if isinstance(words, str | bytes) or not all(isinstance(word, str) for word in words):
        raise RunError(f"Names are given as a,b,c or as a list of texts, got {text!r}.")
    return tuple(word.strip() for word in words)


def fit_options(config: Path | None, **given: Any) -> FitOptions:
    """The config file's options, and over them those of the command line."""
    options = {} if config is None else read_config(config)
    options |= {name: value for name, value in given.items() if value is not None}
    for name in ("members", "columns"):
        if options.get(name) is not None:
            options[name] = names_in(options[name])
    return FitOptions(**options)


def read_config(path: Path) -> dict[str, Any]:
    """TOML or JSON with the names of the long options, and a table ``settings``."""
    try:
        text = path.read_text(encoding="utf-8")
        options = json.loads(text) if path.suffix.lower() == ".json" else tomllib.loads(text)
    except (OSError, ValueError) as error:
        raise RunError(
            f"The config file {path} cannot be read: {error}. It is TOML, or JSON if its name ends with "
            ".json."
        ) from error
    if not isinstance(options, dict):
        raise RunError(
            f"The config file {path} must hold names and values, got {type(options).__name__}."
        )
    known = {field.name: field for field in fields(FitOptions)}
    check_known(options, known, f"The config file {path}")
    for name, value in options.items():
        kinds = {
            "clusters": int,
            "rounds": int,
            "seed": int,
            "header": bool,
            "settings": dict,
            "members": (list, str),
            "columns": (list, str),
        }.get(name, str)
        if not isinstance(value, kinds):  # type: ignore[arg-type]
            raise RunError(f"The config file {path}: {name} = {value!r} has the wrong type.")
    return options


def check_known(
    given: Mapping[str, Any], known: Sequence[str] | Mapping[str, Any], where: str
) -> None:
    for name in given:
        if name not in known:
            close = get_close_matches(name, known, n=1)
            hint = f" Did you mean {close[0]!r}?" if close else ""
            raise RunError(f"{where}: {name!r} is not known.{hint} There are {', '.join(known)}.")


def members_named(names: Sequence[str] | None, n_clusters: int) -> list[Member] | None:
    """Clusterers by name; None leaves the choice to DECCS."""
    if names is None:
        return None
    wanted = max(2, n_clusters)
    known = dict(default_members(wanted)) | {
        "bisecting": BisectingKMeans(wanted),
        "birch": Birch(n_clusters=wanted),
        "hdbscan": HDBSCAN(copy=True),
    }
    check_known(dict.fromkeys(names), known, "--members")
    return [(name, known[name]) for name in names]


def estimator(options: FitOptions) -> DECCS:
    settings = dict(options.settings or {})
    known = [name for name in DECCS().get_params(deep=False) if name not in OWN_OPTIONS]
    check_known(settings, known, "settings in the config file")
    if isinstance(settings.get("pretraining"), dict):
        check_known(
            settings["pretraining"],
            [field.name for field in fields(Pretraining)],
            "settings.pretraining in the config file",
        )
        settings["pretraining"] = Pretraining(**settings["pretraining"])
    if isinstance(settings.get("layers"), list):
        settings["layers"] = tuple(settings["layers"])
    return DECCS(
        options.clusters,
        members=members_named(options.members, options.clusters),
        n_rounds=options.rounds,
        scale=None if options.scale == "none" else options.scale,
        random_state=options.seed,
        **settings,
    )
