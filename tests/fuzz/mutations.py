"""Changes to a saved model: of bytes, of the JSON tree, of the arrays; resealed as a stranger would, or not."""

from __future__ import annotations

import copy
import hashlib
import io
import json
import struct
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import safetensors.numpy

from tests.fuzz.victims import Victim

STRANGE = [
    None,
    True,
    False,
    0,
    -1,
    1,
    2,
    3,
    7,
    40,
    255,
    4096,
    34_641,
    10**6,
    2**31,
    2**53 + 1,
    2**63,
    10**30,
    -(10**9),
    0.5,
    -0.0,
    1e-320,
    1e-30,
    1e38,
    1e99,
    1e308,
    -1e308,
    float("nan"),
    float("inf"),
    "",
    "x",
    "auto",
    "1-99999999999",
    "none",
    "rows",
    "\x1b[31mred",
    "../../etc/passwd",
    "\ud800",
    "a" * 5_000,
    [],
    [[]],
    [1, 2],
    ["a"],
    {},
    {"kind": "tuple", "items": []},
    {"kind": "tuple", "items": [3, 3]},
    {"kind": "dict", "items": []},
    {"kind": "dict", "items": [["a", 1], ["a", 2]]},
    {"kind": "dict", "items": [[2**61 - 1, 1], [2 * (2**61 - 1), 2]]},
    {"kind": "float", "text": "nan"},
    {"kind": "float", "text": "-inf"},
    {"kind": "scalar", "dtype": "float64", "value": 1e300},
    {"kind": "scalar", "dtype": "int8", "value": -1},
    {"kind": "not kept", "text": "KMeans(n_clusters=3)"},
    {"kind": "range", "fields": {"start": 0, "stop": 10**15, "step": 1}},
    {"kind": "range", "fields": {"start": 2, "stop": 5, "step": 1}},
    {"kind": "Network", "fields": {}},
    {"kind": "Scaler", "fields": {"kind": "none", "mean": 0.0, "deviation": 1.0}},
    {"kind": "strings", "items": ["a", "b"]},
]
FLOATS = [np.nan, np.inf, -np.inf, 1e300, -1e300, 1e150, 1e38, 1e20, -1e20, 1e-300, 0, -1, 1]
WHOLES = [-(2**62), -(2**31), -129, -2, -1, 0, 1, 2, 3, 39, 40, 127, 2_000, 34_640, 2**31, 2**62]
DTYPES = ["bool", "int8", "int16", "int32", "int64", "uint8", "uint64", "float16", "float32"]
DTYPES += ["float64"]


@dataclass(frozen=True)
class Files:
    """A model on disk, to be: a document, arrays, and whether they are put into one zip file."""

    text: bytes
    name: str
    tensors: bytes
    as_zip: bool
    whole: bytes | None = None  # the zip file itself, where its bytes were changed

    def write(self, folder: Path) -> Path:
        """Write a folder or a zip file; its path."""
        if self.as_zip:
            path = folder / "model.zip"
            path.write_bytes(self.whole or zipped(self.text, self.name, self.tensors))
            return path
        path = folder / "model"
        path.mkdir()
        (path / "model.json").write_bytes(self.text)
        (path / self.name).write_bytes(self.tensors)
        return path


def zipped(text: bytes, name: str, tensors: bytes) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr(zipfile.ZipInfo("model.json"), text)
        archive.writestr(zipfile.ZipInfo(name), tensors)
    return out.getvalue()


def sealed(document: dict[str, Any], tensors: bytes, reseal: bool = True) -> Files:
    """Files with right checksums, or with those of the document as they are."""
    name, digest = "", hashlib.sha256(tensors).hexdigest()
    if reseal:
        name = f"tensors-{digest[:16]}.safetensors"
        if document.get("files") is not None:
            document["files"] = {name: {"bytes": len(tensors), "sha256": digest}}
        document["checksum"] = "0" * 64
    elif isinstance(document.get("files"), dict) and document["files"]:
        name = str(next(iter(document["files"])))
    text = json.dumps(document).encode()
    if reseal:
        text = hashlib.sha256(text).hexdigest().encode().join(text.rsplit(b"0" * 64, 1))
    safe = name if name.startswith("tensors-") and "/" not in name else "tensors-0.safetensors"
    return Files(text, safe, tensors, as_zip=False)


def mutated(victim: Victim, others: list[Victim], rng: np.random.Generator) -> tuple[str, Files]:
    """One changed model, and what was done to it."""
    kind = rng.choice(["bytes", "tree", "arrays", "both", "head"], p=[0.1, 0.4, 0.38, 0.1, 0.02])
    as_zip, reseal = bool(rng.random() < 0.4), bool(rng.random() < 0.9)
    document = json.loads(victim.text)
    if kind == "bytes":
        return change_bytes(sealed(document, victim.tensors), as_zip, rng)
    done, tensors = [], victim.tensors
    if kind in ("tree", "both"):
        done += [change_tree(document, others, rng) for _ in range(rng.geometric(0.7))]
    if kind in ("arrays", "both"):
        arrays = dict(victim.arrays)
        done += [change_arrays(document, arrays, rng) for _ in range(rng.geometric(0.7))]
        tensors = safetensors.numpy.save(
            {name: np.ascontiguousarray(array) for name, array in arrays.items()}
        )
    if kind == "head":
        tensors = change_head(tensors, rng)
        done.append("head of the arrays")
    files = sealed(document, tensors, reseal)
    words = f"{'; '.join(done)}{'' if reseal else ', not resealed'}{', zip' if as_zip else ''}"
    return words, Files(files.text, files.name, files.tensors, as_zip)


# Bytes


def change_bytes(files: Files, as_zip: bool, rng: np.random.Generator) -> tuple[str, Files]:
    """Flipped, cut, added or repeated bytes of one of the files."""
    if as_zip:
        whole = spoiled(zipped(files.text, files.name, files.tensors), rng)
        return "bytes of the zip", Files(files.text, files.name, files.tensors, True, whole)
    if rng.random() < 0.5:
        text = spoiled(files.text, rng)
        return "bytes of model.json", Files(text, files.name, files.tensors, False)
    return "bytes of the arrays", Files(files.text, files.name, spoiled(files.tensors, rng), False)


def spoiled(content: bytes, rng: np.random.Generator) -> bytes:
    changed, place = bytearray(content), int(rng.integers(len(content)))
    if rng.random() < 0.3:  # the end of a zip file and the head of the arrays say most
        place = len(content) - 1 - int(rng.integers(min(len(content), 200)))
    way = rng.integers(5)
    if way == 0:
        changed[place] ^= int(rng.integers(1, 256))
    elif way == 1:
        del changed[place:]
    elif way == 2:
        del changed[place : place + int(rng.integers(1, 50))]
    elif way == 3:
        changed[place:place] = rng.bytes(int(rng.integers(1, 50)))
    else:
        for other in rng.integers(len(content), size=8):
            changed[other] = int(rng.integers(256))
    return bytes(changed)


def change_head(tensors: bytes, rng: np.random.Generator) -> bytes:
    """The JSON that names the arrays, changed like any tree."""
    size = struct.unpack("<Q", tensors[:8])[0]
    head = json.loads(tensors[8 : 8 + size])
    change_tree(head, [], rng)
    text = json.dumps(head).encode()
    return struct.pack("<Q", len(text)) + text + tensors[8 + size :]


# The tree

ACTIONS = ["replaced"] * 3 + ["dropped", "number", "swapped", "of another", "doubled", "listed"]


def a_place(tree: Any, rng: np.random.Generator, stop: float = 0.2) -> tuple[Any, Any, str]:
    """A place in a tree: what holds it, its key there, and the way to it."""
    way, holder, key = [], None, None
    while isinstance(tree, dict | list) and tree and (not way or rng.random() > stop):
        keys = list(tree) if isinstance(tree, dict) else range(len(tree))
        holder, key = tree, keys[int(rng.integers(len(keys)))]
        way.append(str(key))
        tree = holder[key]
    return holder, key, "/".join(way)


def change_tree(document: dict[str, Any], others: list[Victim], rng: np.random.Generator) -> str:
    """Another value, a missing or doubled one, two that are exchanged, or part of another model."""
    stop = float(rng.choice([0.05, 0.2, 0.4]))
    part = str(rng.choice(["learned", "parameters", ""], p=[0.65, 0.2, 0.15]))
    holder, key, way = a_place(document.get(part) or document, rng, stop)
    if holder is None:
        return "nothing"
    value, action = holder[key], rng.integers(9)
    if action <= 2:
        holder[key] = copy.deepcopy(STRANGE[int(rng.integers(len(STRANGE)))])
    elif action == 3:
        del holder[key]
    elif action == 4 and isinstance(value, int | float) and not isinstance(value, bool):
        change = rng.choice([1, -1, 10, -10, 1000])
        holder[key] = value * int(change) if rng.random() < 0.5 else value + int(change)
    elif action == 5:
        other, there, _ = a_place(document.get(part) or document, rng, stop)
        holder[key], other[there] = copy.deepcopy(other[there]), copy.deepcopy(value)
    elif action == 6 and others:
        source = others[int(rng.integers(len(others)))].document
        other, there, _ = a_place(source.get(part) or source, rng, stop)
        holder[key] = copy.deepcopy(other[there])
    elif action == 7 and isinstance(holder, dict):
        name = str(rng.choice([*map(str, holder), "later", "__class__", "_known_labels"]))
        holder[name] = copy.deepcopy(value)
        if rng.random() < 0.5:
            del holder[key]
    elif action == 8 and isinstance(holder, list):
        holder[:] = holder[::-1] if rng.random() < 0.5 else [*holder, copy.deepcopy(value)]
    else:
        holder[key] = [value] if rng.random() < 0.5 else {"kind": "tuple", "items": [value]}
    return f"{way}: {ACTIONS[action]}"


# Arrays


def nodes_of(tree: Any) -> dict[str, dict[str, Any]]:
    """The nodes of the document that ask for arrays, by the arrays' names."""
    if isinstance(tree, list):
        return {name: node for part in tree for name, node in nodes_of(part).items()}
    if not isinstance(tree, dict):
        return {}
    if tree.get("kind") in ("array", "tensor") and isinstance(tree.get("name"), str):
        return {tree["name"]: tree}
    return {name: node for part in tree.values() for name, node in nodes_of(part).items()}


def change_arrays(
    document: dict[str, Any], arrays: dict[str, np.ndarray], rng: np.random.Generator
) -> str:
    """Other numbers, another type or another shape; the document is told, mostly."""
    names = sorted(arrays)
    top = sorted({name.split("/")[0] for name in names})
    chosen = top[int(rng.integers(len(top)))]  # networks have many arrays, other things few
    inside = [name for name in names if name.split("/")[0] == chosen]
    name = inside[int(rng.integers(len(inside)))]
    action, array = changed_array(arrays[name], rng)
    arrays[name] = array
    node = nodes_of(document).get(name)
    if node is not None and rng.random() < 0.9:
        node["dtype"], node["shape"] = str(array.dtype), list(array.shape)
    return f"{name}: {action}"


def changed_array(array: np.ndarray, rng: np.random.Generator) -> tuple[str, np.ndarray]:
    """What was done, and the changed array."""
    action = str(rng.choice(["some", "all", "type", "shape", "rows", "order", "scale", "empty"]))
    pool = FLOATS if array.dtype.kind == "f" else WHOLES
    value = pool[int(rng.integers(len(pool)))]
    with np.errstate(all="ignore"):
        new = np.array(value).astype(array.dtype)
    array = array.copy()
    if action == "some" and array.size:
        places = rng.integers(array.size, size=int(rng.choice([1, 1, 3])))
        array.reshape(-1)[places] = new
        return f"{action} {value}", array
    if action == "all":
        return f"{action} {value}", np.full_like(array, new)
    if action == "type":
        dtype = str(rng.choice(DTYPES))
        with np.errstate(all="ignore"):
            return f"{action} {dtype}", array.astype(dtype)
    if action == "shape":
        shapes = [(-1,), (1, *array.shape), array.shape[::-1], (*array.shape, 1)]
        return action, array.reshape(shapes[int(rng.integers(4))])
    if action == "rows" and array.ndim:
        axis = int(rng.integers(array.ndim))
        keep = rng.integers(max(array.shape[axis], 1), size=int(rng.integers(0, 8)))
        return action, (array.take(keep, axis) if array.shape[axis] else array)
    if action == "order":
        return action, rng.permutation(array.reshape(-1)).reshape(array.shape)
    if action == "scale":
        with np.errstate(all="ignore"):
            return action, (array * 10.0 ** int(rng.integers(-30, 31))).astype(array.dtype)
    return "empty", array[:0] if array.ndim else array
