"""A document and its arrays on disk, as a folder or one zip file.

They are written completely or not at all, and nothing in a file is trusted when it is read.

    model.json                    the document, with the name, size and sha256 of the other file, and its own sha256
    tensors-<sha256>.safetensors  the arrays

In a folder ``model.json`` is replaced last and names the arrays it belongs to. A crash at any moment
leaves the complete old model or the complete new one.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import stat
import struct
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import safetensors
import safetensors.numpy

from deccs.storage.atomic import LEFTOVER, replacing
from deccs.storage.values import ModelFileError, in_one_line

DOCUMENT = "model.json"
TENSORS = re.compile(r"tensors-[0-9a-f]{16}\.safetensors")
MOST_DOCUMENT = 16 * 2**20  # bytes of JSON
MOST_TENSORS = 4 * 2**30 - 2**20  # bytes of arrays; larger ones would need zip64
MOST_BRACKETS = 400_000  # in the JSON: each becomes a list or a dict, which take far more room
MOST_HEADER = 16 * 2**20  # bytes that name the arrays
MOST_DIRECTORY = 1_000  # bytes of a zip file's list of two names
ZIP64_LOCATOR = 20  # bytes before the end of the list of names, in files of more than 4 GB
NO_CHECKSUM = "0" * 64
SHA256 = re.compile(r"[0-9a-f]{64}")
VERSION = re.compile(r"[0-9][0-9a-z.+]{0,30}")
AGAIN = "Save the model again, or copy the file again."


def write(path: Path, document: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
    """Write a zip file if the path ends in ``.zip``, else a folder; an old one is replaced."""
    tensors = safetensors.numpy.save(arrays)
    if len(tensors) > MOST_TENSORS:
        raise ModelFileError(
            f"The arrays have {len(tensors):,} bytes; a file holds at most {MOST_TENSORS:,}."
        )
    digest = sha256(tensors)
    name = f"tensors-{digest[:16]}.safetensors"
    text = sealed(document | {"files": {name: {"bytes": len(tensors), "sha256": digest}}})
    if len(text) > MOST_DOCUMENT:
        raise ModelFileError(
            f"{DOCUMENT} would have {len(text):,} bytes; at most {MOST_DOCUMENT:,} are allowed."
        )
    if path.suffix == ".zip":
        write_zip(path, {DOCUMENT: text, name: tensors})
    else:
        write_folder(path, text, name, tensors)


def sealed(document: dict[str, Any]) -> bytes:
    """The JSON with its own sha256, which is computed with zeros in its place."""
    try:
        text = json.dumps({**document, "checksum": NO_CHECKSUM}, indent=1, allow_nan=False).encode()
    except (TypeError, ValueError) as error:
        raise ModelFileError(
            f"The preprocessing must be plain JSON (no NaN, no arrays): {error}"
        ) from error
    return sha256(text).encode().join(text.rsplit(NO_CHECKSUM.encode(), 1))


def write_folder(folder: Path, text: bytes, name: str, tensors: bytes) -> None:
    if folder.exists() and not folder.is_dir():
        raise ModelFileError(f"{folder} is a file. Give a folder, or a name that ends in .zip.")
    folder.mkdir(parents=True, exist_ok=True)
    with suppress(FileNotFoundError), (folder / DOCUMENT).open("rb") as existing:
        if b'"format": "deccs' not in existing.read(100):
            raise ModelFileError(
                f"{folder} holds a {DOCUMENT} that is not a model. Give another folder."
            )
    for file, content in ((name, tensors), (DOCUMENT, text)):
        with replacing(folder / file) as out:
            out.write(content)
    for other in folder.iterdir():  # arrays of the old model, and leftovers of crashes
        if (TENSORS.fullmatch(other.name) and other.name != name) or LEFTOVER.fullmatch(other.name):
            other.unlink(missing_ok=True)


def write_zip(path: Path, contents: dict[str, bytes]) -> None:
    if path.is_dir():
        raise ModelFileError(f"{path} is a folder. Give the name of a file.")
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as out, zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as archive:
        for name, content in contents.items():
            archive.writestr(
                zipfile.ZipInfo(name), content
            )  # without the time: same model, same bytes


def read(path: Path, wanted: str, newest: int) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """The document and its arrays, with all checksums checked.

    ``wanted`` is the format, ``newest`` the latest version of it that can be read.
    """
    with only_model_file_errors(path), opened(path) as source:
        document = read_document(source, wanted, newest)
        ((name, facts),) = document["files"].items()
        tensors = source.read(name, MOST_TENSORS, facts["bytes"])
        if sha256(tensors) != facts["sha256"]:
            raise ModelFileError(f"{name} in {path} is damaged: its bytes have changed. {AGAIN}")
        try:
            return document, arrays_in(tensors)
        except safetensors.SafetensorError as error:
            raise ModelFileError(
                f"{name} in {path} is not a safetensors file: {in_one_line(error)}. {AGAIN}"
            ) from error


@contextmanager
def only_model_file_errors(path: Path) -> Iterator[None]:
    """Whatever is wrong with a file, reading it ends in a ModelFileError."""
    try:
        yield
    except ModelFileError:
        raise
    except Exception as error:  # a stranger's file can be wrong in any way
        raise ModelFileError(
            f"{path} cannot be read: {type(error).__name__}: {in_one_line(error)}. {AGAIN}"
        ) from error


def read_document(source: Container, wanted: str, newest: int) -> dict[str, Any]:
    path, text = source.path, source.read(DOCUMENT, MOST_DOCUMENT)
    if text.count(b"[") + text.count(b"{") > MOST_BRACKETS:
        raise ModelFileError(f"{DOCUMENT} in {path} has more than {MOST_BRACKETS:,} brackets.")
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ModelFileError(
            f"{DOCUMENT} in {path} is damaged or not JSON: {in_one_line(error)}. {AGAIN}"
        ) from error
    if not isinstance(document, dict) or document.get("format") != wanted:
        raise ModelFileError(f"{path} is not a {wanted}. Give what save has written.")
    version = document.get("format_version")
    if type(version) is not int or not 1 <= version <= newest:
        writer = written_by(document)
        install = f": pip install 'deccs>={writer}'" if VERSION.fullmatch(writer) else ""
        raise ModelFileError(
            f"{path} has version {version!r:.40} of the format, written by deccs {writer}; this deccs "
            f"reads up to {newest}. Install that version or a later one{install}."
        )
    checksum = document.get("checksum")
    if not isinstance(checksum, str) or not SHA256.fullmatch(checksum):
        raise ModelFileError(f"{DOCUMENT} in {path} has no checksum. {AGAIN}")
    if sha256(NO_CHECKSUM.encode().join(text.rsplit(checksum.encode(), 1))) != checksum:
        raise ModelFileError(f"{DOCUMENT} in {path} is damaged or was changed by hand. {AGAIN}")
    if not isinstance(document.get("preprocessing", {}), dict):
        raise ModelFileError(f"preprocessing in {DOCUMENT} of {path} must be an object. {AGAIN}")
    files = document.get("files")
    if (
        not isinstance(files, dict)
        or len(files) != 1
        or not all(TENSORS.fullmatch(name) and are_facts(facts) for name, facts in files.items())
    ):
        raise ModelFileError(
            f"{DOCUMENT} in {path} must name one file of arrays, tensors-....safetensors. {AGAIN}"
        )
    return document


def are_facts(facts: Any) -> bool:
    """Whether this says how long a file is, and its sha256."""
    return (
        isinstance(facts, dict)
        and type(facts.get("bytes")) is int
        and isinstance(facts.get("sha256"), str)
        and SHA256.fullmatch(facts["sha256"]) is not None
    )


def written_by(document: dict[str, Any]) -> str:
    """The version of deccs that a file names. People may copy it into a shell: no other text will do."""
    versions = document.get("versions")
    writer = versions.get("deccs") if isinstance(versions, dict) else None
    return writer if isinstance(writer, str) and VERSION.fullmatch(writer) else "(unknown version)"


def arrays_in(tensors: bytes) -> dict[str, np.ndarray]:
    """The arrays by name. safetensors checks that shapes and offsets fit the bytes."""
    if int.from_bytes(tensors[:8], "little") > MOST_HEADER:
        raise ModelFileError(f"The head of a safetensors file may have {MOST_HEADER:,} bytes.")
    parts = safetensors.deserialize(tensors)
    arrays = {}
    while parts:  # one after the other, so that there is never a second copy of all
        name, part = parts.pop()
        arrays[name] = as_array(name, part)
    return arrays


def as_array(name: str, part: dict[str, Any]) -> np.ndarray:
    dtypes = {"BOOL": "bool", "F64": "float64", "F32": "float32", "F16": "float16"}
    dtypes |= {
        f"{letter}{bits}": f"{word}{bits}"
        for letter, word in (("I", "int"), ("U", "uint"))
        for bits in (8, 16, 32, 64)
    }
    if part["dtype"] not in dtypes:
        raise ModelFileError(
            f"The array {name!r:.100} has the type {part['dtype']!r:.40}, which model files cannot hold."
        )
    # A copy can be written to and is aligned in memory.
    return np.frombuffer(part["data"], dtype=dtypes[part["dtype"]]).reshape(part["shape"]).copy()


class Container:
    """The files of a model, each read only up to a limit."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def read(self, name: str, most: int, expected: int | None = None) -> bytes:
        """A file of at most so many bytes, or of exactly so many; else nothing is read."""
        raise NotImplementedError

    def check_size(self, name: str, size: int, most: int, expected: int | None) -> None:
        """Raise a ModelFileError for a file that is too large, or not as large as expected."""
        if size > most:
            raise ModelFileError(
                f"{name} in {self.path} has {size:,} bytes; a model file may have at most {most:,}."
            )
        if expected is not None and size != expected:
            raise ModelFileError(
                f"{name} in {self.path} is damaged: it has {size:,} bytes instead of {expected:,}. "
                f"{AGAIN}"
            )


class Folder(Container):
    """A model as a folder."""

    def read(self, name: str, most: int, expected: int | None = None) -> bytes:
        path = self.path / name
        if not path.is_file():  # a pipe would make us wait
            raise ModelFileError(
                f"{self.path} has no file {name}. Give the whole folder that save has written."
            )
        try:
            with path.open("rb") as file:
                size = os.fstat(file.fileno()).st_size
                self.check_size(name, size, most, expected)
                return file.read(size)
        except OSError as error:
            raise ModelFileError(f"{path} cannot be read: {error}.") from error


class Zip(Container):
    """Two files with the expected names, not compressed, so that none is larger than the zip file."""

    def __init__(self, path: Path, file: BinaryIO) -> None:
        super().__init__(path)
        size = os.fstat(file.fileno()).st_size
        # Checked before zipfile reads the whole list of names, which could be gigabytes.
        file.seek(max(0, size - 22 - ZIP64_LOCATOR))
        tail = file.read()
        before, end = tail[:-22], tail[-22:]
        if len(end) < 22 or not end.startswith(b"PK\5\6"):
            raise ModelFileError(
                f"{path} is not a zip file that save has written, or it is truncated. {AGAIN}"
            )
        _, _, _, n_names, n_bytes, _, _ = struct.unpack("<4H2LH", end[4:])
        if n_names != 2 or n_bytes > MOST_DIRECTORY:
            raise ModelFileError(
                f"{path} holds {n_names} files; the zip file of a model holds two."
            )
        # The record of zip64 would take the place of these numbers.
        if before.startswith(b"PK\6\7"):
            raise ModelFileError(f"{path} is a zip64 file, which save never writes.")
        try:
            self.archive = zipfile.ZipFile(file)
        except (zipfile.BadZipFile, NotImplementedError, ValueError, OSError) as error:
            raise ModelFileError(
                f"{path} is a damaged zip file: {in_one_line(error)}. {AGAIN}"
            ) from error
        names = sorted(part.filename for part in self.archive.infolist())
        if len(names) != 2 or names[0] != DOCUMENT or not TENSORS.fullmatch(names[1]):
            raise ModelFileError(
                f"{path} holds {names}; a model has {DOCUMENT} and tensors-....safetensors."
            )
        for part in self.archive.infolist():
            plain = (
                part.compress_type == zipfile.ZIP_STORED and part.compress_size == part.file_size
            )
            if not plain or part.flag_bits & 1 or stat.S_ISLNK(part.external_attr >> 16):
                raise ModelFileError(
                    f"{part.filename} in {path} is compressed, encrypted or a link, which save never writes."
                )
            if part.file_size > size:
                raise ModelFileError(
                    f"{part.filename} in {path} claims to be larger than the whole file. {AGAIN}"
                )

    def read(self, name: str, most: int, expected: int | None = None) -> bytes:
        try:
            size = self.archive.getinfo(name).file_size
            self.check_size(name, size, most, expected)
            return self.archive.read(name)
        except KeyError as error:
            raise ModelFileError(f"{self.path} has no {name}. {AGAIN}") from error
        except (zipfile.BadZipFile, EOFError, NotImplementedError, OSError, ValueError) as error:
            if isinstance(error, ModelFileError):
                raise
            raise ModelFileError(
                f"{name} in {self.path} is damaged: {in_one_line(error)}. {AGAIN}"
            ) from error


@contextmanager
def opened(path: Path) -> Iterator[Container]:
    if path.is_dir():
        yield Folder(path)
    elif path.is_file():
        with path.open("rb") as file:
            yield Zip(path, file)
    else:
        raise ModelFileError(
            f"There is no model at {path}. Give the folder or the .zip file that save has written."
        )


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
