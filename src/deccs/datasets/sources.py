"""Where each data set comes from. To add one: a row here, and a parser if its format is new.

Checksums of files are as published; the comments say where. ``content`` is our own: the sha256 of the
decoded arrays (see ``content_sha256``), known where this project held the data when the table was written.
A download must match whatever of the two is given.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from numpy.typing import NDArray

from deccs.datasets.generators import Arrays, make_synth
from deccs.datasets.parsers import parse_har, parse_idx, parse_libsvm, parse_mice, parse_pendigits


@dataclass(frozen=True)
class RemoteFile:
    url: str
    checksum: str | None  # "sha256:..." or "md5:...", None where nobody publishes one


@dataclass(frozen=True)
class Source:
    title: str
    page: str  # where a person reads about it
    n: int
    d: int
    k: int
    scaling: Literal["none", "feature", "global"]  # the paper's normalization of this kind of data
    files: tuple[RemoteFile, ...] = ()
    parse: Callable[[Sequence[Path]], Arrays] | None = None
    generate: Callable[[], Arrays] | None = None  # instead of files
    image_shape: tuple[int, int] | None = None
    content: str | None = None


def content_sha256(X: NDArray[Any], y: NDArray[Any]) -> str:
    """sha256 of X in its published dtype, row by row, followed by y as int64 (little endian)."""
    digest = hashlib.sha256(X.astype(X.dtype.newbyteorder("<"), order="C", copy=False).tobytes())
    digest.update(y.astype("<i8").tobytes())
    return digest.hexdigest()


def _idx_files(folder: str, *sha256: str) -> tuple[RemoteFile, ...]:
    stems = ("train-images-idx3", "train-labels-idx1", "t10k-images-idx3", "t10k-labels-idx1")
    pairs = zip(stems, sha256, strict=True)
    return tuple(
        RemoteFile(f"{folder}/{stem}-ubyte.gz", f"sha256:{digest}") for stem, digest in pairs
    )


UCI = "https://archive.ics.uci.edu"
LIBSVM = "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets"

SOURCES: dict[str, Source] = {
    "synth": Source(
        title="SYNTH: two moons and two blobs",
        page="deccs.datasets.make_synth(random_state=0)",
        n=2_000, d=2, k=4, scaling="none",
        generate=make_synth,
    ),
    "mice": Source(
        title="Mice Protein Expression, rows without missing values",
        page=f"{UCI}/dataset/342/mice+protein+expression",
        n=552, d=77, k=8, scaling="feature",
        # No checksum of this csv is published; the content decides.
        files=(RemoteFile(f"{UCI}/static/public/342/data.csv", None),),
        parse=parse_mice,
        content="6288f3fd68ad8e410a0a1320ce3ef2ad1530a0547c7d00884ad3828b61f69598",
    ),
    "pendigits": Source(
        title="Pen-Based Recognition of Handwritten Digits",
        page=f"{UCI}/dataset/81/pen+based+recognition+of+handwritten+digits",
        n=10_992, d=16, k=10, scaling="feature",
        # UCI publishes none; independent projects recorded this one for the archive.
        files=(
            RemoteFile(
                f"{UCI}/static/public/81/pen+based+recognition+of+handwritten+digits.zip",
                "sha256:1e02bea023613c2b11c9492f6f34caf975420455934f3527d270cee9a1f03b64",
            ),
        ),
        parse=parse_pendigits,
        content="dd107a19fca7be37e5ccc45d854108838708b5fa7a3d683a4cec8ac29ec556d4",
    ),
    "har": Source(
        title="Human Activity Recognition Using Smartphones (its readme prohibits commercial use)",
        page=f"{UCI}/dataset/240/human+activity+recognition+using+smartphones",
        n=10_299, d=561, k=6, scaling="feature",
        # As for pendigits. No content: decimal text to float32 may differ in a last bit between readers.
        files=(
            RemoteFile(
                f"{UCI}/static/public/240/human+activity+recognition+using+smartphones.zip",
                "sha256:c00b803081a5c797cd5e4b83700a9810b38d53d9d84e01917e090e1fdbc81031",
            ),
        ),
        parse=parse_har,
    ),
    "mnist": Source(
        title="MNIST",
        page="http://yann.lecun.com/exdb/mnist/",
        n=70_000, d=784, k=10, scaling="global", image_shape=(28, 28),
        # TensorFlow Datasets, url_checksums/mnist.txt
        files=_idx_files(
            "https://storage.googleapis.com/cvdf-datasets/mnist",
            "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
            "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c",
            "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",
            "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6",
        ),
        parse=parse_idx,
        content="b3fe36794a3a345d09632e9d79f122d61ca91a07e5a22f8536973655bacf2a78",
    ),
    "fmnist": Source(
        title="Fashion-MNIST",
        page="https://github.com/zalandoresearch/fashion-mnist",
        n=70_000, d=784, k=10, scaling="global", image_shape=(28, 28),
        # TensorFlow Datasets, url_checksums/fashion_mnist.txt
        files=_idx_files(
            "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com",
            "3aede38d61863908ad78613f6a32ed271626dd12800ba2636569512369268a84",
            "a04f17134ac03560a47e3764e11b92fc97de4d1bfaf8ba1a3aa29af54cc90845",
            "346e55b948d973a97e58d2351dde16a484bd415d4595297633bb08f03db6a073",
            "67da17c76eaffca5446c3361aaab5c3cd6d1c2608764d35dfb1850b086bf8dd5",
        ),
        parse=parse_idx,
        content="75979490032625d6583ff7101de6f9243d07d0a8d33d3c9b3b7e79b4c59382af",
    ),
    "kmnist": Source(
        title="Kuzushiji-MNIST (CC BY-SA 4.0)",
        page="http://codh.rois.ac.jp/kmnist/",
        n=70_000, d=784, k=10, scaling="global", image_shape=(28, 28),
        # TensorFlow Datasets, url_checksums/kmnist.txt
        files=_idx_files(
            "http://codh.rois.ac.jp/kmnist/dataset/kmnist",
            "51467d22d8cc72929e2a028a0428f2086b092bb31cfb79c69cc0a90ce135fde4",
            "e38f9ebcd0f3ebcdec7fc8eabdcdaef93bb0df8ea12bee65224341c8183d8e17",
            "edd7a857845ad6bb1d0ba43fe7e794d164fe2dce499a1694695a792adfac43c5",
            "20bb9a0ef54c7db3efc55a92eef5582c109615df22683c380526788f98e42a1c",
        ),
        parse=parse_idx,
    ),
    "usps": Source(
        title="USPS, the LIBSVM copy",
        page=f"{LIBSVM}/multiclass.html#usps",
        n=9_298, d=256, k=10, scaling="global", image_shape=(16, 16),
        # torchvision, datasets/usps.py; md5 is all that is published
        files=(
            RemoteFile(f"{LIBSVM}/multiclass/usps.bz2", "md5:ec16c51db3855ca6c91edd34d0e9b197"),
            RemoteFile(f"{LIBSVM}/multiclass/usps.t.bz2", "md5:8ea070ee2aca1ac39742fdd1ef5ed118"),
        ),
        parse=parse_libsvm,
    ),
}  # fmt: skip
