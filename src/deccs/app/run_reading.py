"""What the other commands read of a run folder. Nothing in it is trusted: it may come from anyone."""

from __future__ import annotations

import codecs
import hashlib
import json
import math
import os
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from deccs import predictor, storage
from deccs.app.run_error import RunError
from deccs.app.run_folder import MODEL, SUMMARY, holds_complete_results
from deccs.base import Clusterer
from deccs.data.tables import Table, TableError, read_like
from deccs.data.tables.columnar import files_of
from deccs.data.tables.databases import without_password
from deccs.data.tables.readers import is_pattern, is_zarr

MOST_SUMMARY = 2**24  # bytes, as of model.json: the names of a million columns fit in
MISSING = ("auto", "error", "drop", "mean")


def check_settled(folder: Path) -> None:
    """Refuse a folder whose results a killed fit has not moved into place: it may hold old ones."""
    if holds_complete_results(folder):
        raise RunError(
            f"The last fit into {folder} was killed while its results were moved into place. The "
            "same `deccs fit` command finishes this in a moment."
        )


def read_summary(folder: Path) -> dict[str, Any]:
    """``summary.json`` of a finished run, with the fields that commands use checked."""
    check_settled(folder)
    try:
        summary = json.loads(read_plain(folder / SUMMARY, MOST_SUMMARY))
    except (OSError, ValueError, RecursionError) as error:
        if isinstance(error, RunError):
            raise
        raise RunError(
            f"{folder} is not the folder of a finished run: {SUMMARY} cannot be read ({error}). "
            "Give the folder that was the --out of `deccs fit`."
        ) from error
    check_fields(folder / SUMMARY, summary, SUMMARY_FIELDS)
    check_fields(folder / SUMMARY, summary["data"], DATA_FIELDS, "data.")
    return dict(summary)


def read_plain(path: Path, most: int) -> bytes:
    """The content of a file; a pipe, a device or a huge file is an error."""
    if path.exists() and not path.is_file():
        raise RunError(
            f"{path} is not a plain file. Give the --out of `deccs fit` as it was written."
        )
    with path.open("rb") as file:
        content = file.read(most + 1)
    if len(content) > most:
        raise RunError(f"{path} has more than {most:,} bytes, which `deccs fit` never writes.")
    return content


Rule = tuple[str, Callable[[Any], bool]]  # in words, and as a check


def is_number(value: Any) -> bool:
    """Whether this is a finite number; True and False are none."""
    return type(value) in (int, float) and math.isfinite(value)


def is_list_of(check: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, list) and all(check(part) for part in value)


def is_text(value: Any) -> bool:
    return isinstance(value, str)


def or_none(check: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: value is None or check(value)


def is_encoding(value: Any) -> bool:
    """Whether Python knows an encoding of text by this name."""
    try:
        return isinstance(value, str) and codecs.lookup(value)._is_text_encoding
    except (LookupError, ValueError):
        return False


SUMMARY_FIELDS: dict[str, Rule] = {
    "data": ("a table of names and values", lambda value: isinstance(value, dict)),
    "options": ("a table of names and values", or_none(lambda value: isinstance(value, dict))),
    "agreement": ("a number", or_none(is_number)),
    "clusters": (
        "a list of tables",
        or_none(is_list_of(lambda cluster: isinstance(cluster, dict))),
    ),
}
DATA_FIELDS: dict[str, Rule] = {
    "file": ("a path", lambda value: is_text(value) and value != "" and "\0" not in value),
    "sha256": ("a text", or_none(is_text)),
    "bytes": ("a number", or_none(is_number)),
}
PREPROCESSING_FIELDS: dict[str, Rule] = {
    "feature_names": ("a list of names", is_list_of(is_text)),
    "id_column": ("a text", or_none(is_text)),
    "missing": (f"one of {', '.join(MISSING)}", lambda value: value in MISSING),
    "means": ("a list of numbers", is_list_of(is_number)),
    "image_shape": (
        "a height and a width",
        or_none(is_list_of(lambda size: type(size) is int and 0 < size < 10**6)),
    ),
    "encoding": ("an encoding of text", or_none(is_encoding)),
    "header": ("true or false", or_none(lambda value: isinstance(value, bool))),
}
OPTIONAL: dict[str, Any] = {"missing": "error", "means": []}


def check_fields(path: Path, document: Any, fields: Mapping[str, Rule], inside: str = "") -> None:
    """Raise a RunError that names the first field that is not what it should be."""
    if not isinstance(document, dict):
        raise RunError(f"{path} must hold names and values, got a {type(document).__name__}.")
    for name, (words, check) in fields.items():
        value = document.get(name, OPTIONAL.get(name))
        if not check(value):
            raise RunError(
                f"{path}: {inside}{name} must be {words}, got {value!r:.100}. Give the --out of "
                "`deccs fit` as it was written."
            )


def load_model(folder: Path) -> tuple[Clusterer, dict[str, Any]]:
    """The model of a run (or a model folder or .zip itself), and how its data was read."""
    return loaded_by(storage.load, folder)


def load_predictor(folder: Path) -> tuple[Clusterer, dict[str, Any]]:
    """The same to answer for rows: without what a fit needs, where the model allows it."""
    return loaded_by(predictor.load, folder)


def load_any(folder: Path) -> tuple[Clusterer, dict[str, Any]]:
    """The same for any saved model; {} for one that was fitted in Python, without a file."""
    return loaded_by(predictor.load, folder, needs_columns=False)


def loaded_by(
    load: Callable[[Path], Any], folder: Path, *, needs_columns: bool = True
) -> tuple[Clusterer, dict[str, Any]]:
    """The model of a run, and how its data was read; both are checked."""
    check_settled(folder)
    path = folder / MODEL if (folder / MODEL).is_dir() else folder
    if not path.exists():
        raise RunError(f"{folder} does not exist. Give the --out of `deccs fit`.")
    model = load(path)
    preprocessing = storage.read_preprocessing(path)
    if not isinstance(preprocessing.get("feature_names"), list):
        if not needs_columns:
            return model, {}
        raise RunError(
            f"{path} does not say which columns it needs: it was not saved by `deccs fit`. Load it "
            f"in Python with deccs.load."
        )
    check_preprocessing(path, preprocessing, model)
    return model, preprocessing


def check_preprocessing(path: Path, preprocessing: Mapping[str, Any], model: Clusterer) -> None:
    """Raise a RunError where a model and how its data was read do not fit each other."""
    check_fields(path, preprocessing, PREPROCESSING_FIELDS, "preprocessing.")
    names, means = preprocessing["feature_names"], preprocessing.get("means")
    shape = preprocessing.get("image_shape")
    n_features = model.n_features_in_
    if means:
        if len(means) != model._n_cells:
            raise RunError(f"{path}: preprocessing.means is for {len(means)} numbers of a row.")
        means = None
    sizes = {"feature_names": len(names), "means": len(means or names)}
    sizes["image_shape"] = math.prod(shape) if shape else n_features
    for name, size in sizes.items():
        if size != n_features or (name == "image_shape" and shape and len(shape) != 2):
            raise RunError(
                f"{path}: preprocessing.{name} is for {size} columns, but the model has {n_features}."
            )
    if len(set(names)) < len(names):
        raise RunError(f"{path}: preprocessing.feature_names has a name twice.")
    coding = getattr(model, "coding_", None)
    if coding is not None and tuple(names) != coding.names:
        raise RunError(f"{path}: preprocessing.feature_names are not the columns of the model.")


def training_table(
    folder: Path,
    data: str | None,
    preprocessing: Mapping[str, Any],
    model: Clusterer,
    query: str | None = None,
) -> Table:
    """The data of the fit, from where it was or where it is now; it must not have changed."""
    summary = read_summary(folder)
    source = summary["data"]
    query = query or (summary.get("options") or {}).get("query")
    coding = getattr(model, "coding_", None)
    place = data or source["file"]
    if "://" in place:
        return read_like(place, preprocessing, coding, query=query)
    path = Path(data) if data else data_path(folder, source["file"])
    files = files_at(path)
    if not (files or os.path.exists(path)):  # Path.exists raises an error for very long names
        raise RunError(
            f"The data of {folder}, {source['file']}, is not at {path}. Say with --data where it is."
        )
    known = {name: source[name] for name in ("sha256", "bytes") if name in source}
    is_same = identity(path, is_large="bytes" in known) == known
    if data is None and files and not is_same:
        raise RunError(
            f"{path} has changed since the fit of {folder}. Give the original file with --data."
        )
    return read_like(path, preprocessing, coding)


def data_path(folder: Path, file: str) -> Path:
    """Where the data is: a summary says it as seen from the run folder; older ones have the whole path."""
    return Path(os.path.normpath(folder.resolve() / file))


def place_from(folder: Path, file: str) -> str:
    """A file as seen from the run folder, or the address of a database without its password."""
    return without_password(file) if "://" in file else path_from(folder, Path(file))


def path_from(folder: Path, file: Path) -> str:
    """A path as seen from the run folder. Where both have nothing in common, the name alone is kept.

    The whole path would tell everyone who gets the folder how the user's disk is laid out.
    """
    folder, file = folder.resolve(), file.resolve()
    try:
        common = Path(os.path.commonpath([folder, file]))
    except ValueError:  # on other disks
        return file.name
    if common == Path(common.anchor):
        return file.name
    return Path(os.path.relpath(file, folder)).as_posix()


def identity(path: Path, *, is_large: bool) -> dict[str, Any]:
    """What tells whether the data are still the same: reading large files once more would take too long."""
    files = files_at(path)
    if not files:
        return {"sha256": None}
    if is_large:
        return {"sha256": None, "bytes": sum(file.stat().st_size for file in files)}
    return {"sha256": files_sha256(files)}


def files_at(path: Path) -> list[Path]:
    """The files that a table was read from; none for databases and folders of images."""
    if os.path.isfile(path):  # Path.is_file raises an error for very long names
        return [path]
    if is_zarr(path):
        return sorted(file for file in path.rglob("*") if file.is_file())
    is_address = re.match(r"\w{2,}:/", str(path)) is not None
    if is_address or not (is_pattern(path) or os.path.isdir(path)):
        return []
    try:
        return files_of(path)
    except TableError:
        return []


def files_sha256(files: Sequence[Path]) -> str:
    """That of a file, or of all files one after the other."""
    digest = hashlib.sha256()
    for path in files:
        with path.open("rb") as file:
            while block := file.read(2**20):
                digest.update(block)
    return digest.hexdigest()
