"""Fitted estimators as files, without pickle: parameters, what was learned, and nothing that could be executed."""

from __future__ import annotations

import copy
import importlib
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from inspect import isabstract
from os import PathLike
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np

from deccs._version import __version__
from deccs.checks import Parameters, check_parameters, check_value, rules_of
from deccs.environment import versions
from deccs.storage import container
from deccs.storage.probe import probe
from deccs.storage.schema import check_fields
from deccs.storage.values import ModelFileError, NotKept, Reader, Writer, in_one_line

FORMAT, FORMAT_VERSION = "deccs model", 2

# Filled by the classes themselves: a file says a name of this list, never a module.
ESTIMATORS: dict[str, type[Any]] = {}
HOMES = ("deccs.estimator", "deccs.consensus", "deccs.deep")  # importing them fills the list
# Parameters that belong to one session and one machine, and mean nothing in another.
SESSION = ("callbacks", "checkpoint", "like", "n_jobs")
RANGE = re.compile(r"range\((\d{1,6}), (\d{1,6})\)")
# Parameters whose values a file may hold as their text alone: predictions do not need them.
OBJECTS = ("clusterer", "encoder", "function", "member", "network", "random_state")


def save(
    model: Any, path: str | PathLike[str], *, preprocessing: Mapping[str, Any] | None = None
) -> None:
    """Write a fitted estimator to a folder, or to one file if the path ends in ``.zip``.

    Whatever happens meanwhile, the path holds the whole old model or the whole new one. ``preprocessing`` is
    plain JSON about how the data was made, for :func:`read_preprocessing`.
    """
    from sklearn.utils.validation import check_is_fitted

    check_is_fitted(model)
    names = model._get_param_names()
    learned = model._learned()
    feature_names = learned.pop("feature_names_in_", None)
    writer = Writer()
    settings = {name: None if name in SESSION else getattr(model, name) for name in names}
    document = {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "versions": versions(),
        "class": type(model).__name__,
        "feature_names": None if feature_names is None else [str(name) for name in feature_names],
        "preprocessing": dict(preprocessing or {}),
        "parameters": {
            name: writer.setting(value, f"parameters/{name}") for name, value in settings.items()
        },
        "learned": {name: writer.tree(value, name) for name, value in learned.items()},
    }
    container.write(Path(path), document, writer.arrays)


def load(path: str | PathLike[str], *, kind: type | None = None, network: Any = None) -> Any:
    """The estimator that :func:`save` has written. Nothing of the file is executed or imported.

    A file is checked as a whole: it raises a ModelFileError, or everything the model can say works. What
    belongs to a session (``callbacks``, ``checkpoint``, ``n_jobs``) is not taken from it.

    ``kind`` is the class it should be. ``network=(encoder, decoder)`` are modules of your own, built as for the
    fit, which get the weights of the file; they are copied. Members come back as their text alone: prediction
    does not need them.
    """
    document, arrays = container.read(Path(path), FORMAT, FORMAT_VERSION)
    cls = class_named(document.get("class"), kind, path)
    with only_this_error(path, cls, document):
        model = restored(cls, document, Reader(arrays, from_stranger=True))
    if hasattr(model, "autoencoder_"):
        if network is not None:
            model.set_params(network=network)
        from deccs.storage.networks import put_in

        put_in(copy.deepcopy(sides(network)), model.autoencoder_)
    with only_this_error(path, cls, document):
        model._check_learned()
        probe(model)
    return model


@contextmanager
def only_this_error(
    path: Any,
    cls: type[Any],
    document: dict[str, Any],
    passes: type[Exception] | tuple[type[Exception], ...] = (),
) -> Iterator[None]:
    """Whatever is wrong with a file, it ends in a ModelFileError that says who has written it."""
    try:
        yield
    except passes:
        raise
    except Exception as error:  # a stranger's file can be wrong in any way
        raise ModelFileError(
            f"{path} is no {cls.__name__} that this deccs {__version__} can load: "
            f"{in_one_line(error)}. It says it was written by deccs "
            f"{container.written_by(document)}; with that one it may load, if it is not damaged."
        ) from error


def restored(cls: type[Any], document: Mapping[str, Any], reader: Reader) -> Any:
    """The estimator of a document; each part is checked by itself."""
    parameters = {name: reader.value(tree) for name, tree in document["parameters"].items()}
    parameters = {**cls.ADDED, **parameters, **session_parameters(parameters)}
    parameters = {name: as_range(value) for name, value in parameters.items()}
    model = cls(**parameters) if document["format_version"] > 1 else from_old(cls, parameters)
    check_settings(model)
    hints, is_ours = learned_hints(cls), cls.__module__.startswith("deccs.")
    for name, tree in document["learned"].items():
        if (
            not name.isidentifier()
            or name.startswith("__")
            or name in model.get_params(deep=False)
            or (name not in hints and (is_ours or hasattr(cls, name)))
        ):
            raise ModelFileError(f"{name!r:.60} is nothing that a {cls.__name__} learns")
        setattr(model, name, reader.value(tree))
    reader.finish()
    check_fields(cls.__name__, vars(model), hints, model._sizes())
    if document["feature_names"] is not None:
        model.feature_names_in_ = feature_names(document["feature_names"], model.n_features_in_)
    return model


def session_parameters(parameters: Mapping[str, Any]) -> dict[str, None]:
    """None for parameters that no file may set: a refit would call, delete or start what it names."""
    return {name: None for name in SESSION if name in parameters}


def as_range(value: Any) -> Any:
    """A range that an older file holds as its text; other values as they are."""
    numbers = RANGE.fullmatch(value.text) if isinstance(value, NotKept) else None
    return value if numbers is None else range(*(int(number) for number in numbers.groups()))


def check_settings(model: Any) -> None:
    """Raise a ValueError for a parameter that no fit would have taken."""
    for name, rule in rules_of(type(model)).items():
        value = getattr(model, name)
        if not (name in OBJECTS and any_not_kept(value)):
            check_value(name, value, rule)
        if isinstance(value, Parameters):
            check_parameters(value, f"{name}.")


def any_not_kept(value: Any) -> bool:
    """Whether this is a text in place of an object, or a pair with one."""
    parts = value if isinstance(value, tuple | list) else (value,)
    return any(isinstance(part, NotKept) for part in parts)


def feature_names(names: Any, n_features: int) -> np.ndarray:
    """The names of the columns as scikit-learn keeps them."""
    if not isinstance(names, list) or len(names) != n_features:
        raise ModelFileError(f"feature_names must be {n_features} names")
    check_fields("", {"feature_names": names}, {"feature_names": list[str]})
    return np.array(names, dtype=object)


def learned_hints(cls: type[Any]) -> dict[str, Any]:
    """What an estimator learns, by name; a class may change what its bases say."""
    hints: dict[str, Any] = {}
    for base in reversed(cls.__mro__):
        hints |= vars(base).get("LEARNED", {})
    return hints


def from_old(cls: type[Any], parameters: Mapping[str, Any]) -> Any:
    """An estimator with the parameters of a file of version 1, which had other names for some."""
    model = cls()
    known = model.get_params(deep=True)
    values = {cls.RENAMED.get(name, name): value for name, value in parameters.items()}
    network = values.pop(
        "network", None
    )  # modules of the user's own take the place of its settings
    model.set_params(**{name: value for name, value in values.items() if name in known})
    return model if network is None else model.set_params(network=network)


def sides(autoencoder: Any) -> tuple[Any, Any] | None:
    """Encoder and decoder of what users give as an autoencoder."""
    if autoencoder is None:
        return None
    if hasattr(autoencoder, "encoder") and hasattr(autoencoder, "decoder"):
        return autoencoder.encoder, autoencoder.decoder
    encoder, decoder = autoencoder
    return encoder, decoder


def read_preprocessing(path: str | PathLike[str]) -> dict[str, Any]:
    """What was given to :func:`save` as ``preprocessing``, {} if nothing was."""
    with container.only_model_file_errors(Path(path)), container.opened(Path(path)) as source:
        document = container.read_document(source, FORMAT, FORMAT_VERSION)
        return document.get("preprocessing", {})


def estimators() -> dict[str, type[Any]]:
    """Every estimator by name, without the base classes, which cannot be instantiated."""
    for home in HOMES:
        importlib.import_module(home)
    return {name: cls for name, cls in ESTIMATORS.items() if not isabstract(cls)}


def class_named(name: Any, kind: type | None, path: object) -> type[Any]:
    if kind is not None and kind.__name__ == name:
        return kind
    known = estimators()
    if not isinstance(name, str) or name not in known:
        raise ModelFileError(
            f"{path} holds a {name!r:.60}, which is no estimator of deccs {__version__}. For a class "
            "of your own call its load: YourClass.load(path)."
        )
    cls = known[name]
    if kind is not None and not issubclass(cls, kind):
        raise ModelFileError(
            f"{path} holds a {name}, not a {kind.__name__}. Load it with {name}.load(path)."
        )
    return cls


class ModelFiles:
    """``model.save(path)`` and ``Class.load(path)``."""

    RENAMED: ClassVar[Mapping[str, str]] = {}  # parameters in files of version 1 -> their names now
    ADDED: ClassVar[Mapping[str, Any]] = {}  # parameters older files lack -> what fits did then
    # What a fit learns -> what it must be, see deccs.storage.schema. Files hold nothing else.
    LEARNED: ClassVar[Mapping[str, Any]] = {}

    def __init_subclass__(cls, in_files: bool = True, **options: Any) -> None:
        super().__init_subclass__(**options)
        if in_files:
            ESTIMATORS.setdefault(cls.__name__, cls)

    def _learned(self) -> dict[str, Any]:
        """What a fit has learned, in a form that files can hold."""
        names = self._get_param_names()  # type: ignore[attr-defined]
        return {name: value for name, value in vars(self).items() if name not in names}

    def _sizes(self) -> dict[str, int]:
        """What words in the shapes of ``LEARNED`` stand for."""
        return {}

    def _check_learned(self) -> None:
        """Raise a ValueError where parts of a loaded model do not fit each other."""

    def save(self, path: str | PathLike[str]) -> None:
        """Write the fitted model to a folder, or to one file if the path ends in ``.zip``; no pickle."""
        save(self, path)

    @classmethod
    def load(cls, path: str | PathLike[str], *, network: Any = None) -> Self:
        """The model that ``save`` has written. ``network`` are your own modules, if you gave some."""
        return load(path, kind=cls, network=network)
