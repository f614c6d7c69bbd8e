"""A folder of images as a table: one row per image, one column per pixel, in grayscale."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from deccs.data.tables.raw import RawTable, TableError, as_unicode, listed, pixel_names
from deccs.data.tables.readers import FOLDER, IMAGE_ENDINGS, reader

MAX_PIXELS = 2**17  # of an image, 131,072: every pixel is a column, and no fit takes more
RESIZED_PIXELS = 4_096  # of images that differ in size, 64 x 64
BOX = 4  # Pillow's number for averages over the pixels below
# More than 256 shades of gray: Pillow's conversion would cut them off at 255.
DEEP_MODES = ("I", "F", "I;16", "I;16B", "I;16L")


@reader(FOLDER)
def read_images(folder: Path) -> RawTable:
    """All images below the folder, in the order of their names, which are their ids."""
    paths = sorted(
        path
        for path in folder.rglob("*")
        if not path.is_dir()
        and not any(part.startswith(".") for part in path.relative_to(folder).parts)
    )
    # A pipe or a device may have the name of an image, and reading it may never end.
    images = [path for path in paths if path.suffix.lower() in IMAGE_ENDINGS and path.is_file()]
    is_image = set(images)
    others = [name_of(path, folder) for path in paths if path not in is_image]
    if not images:
        raise TableError(
            f"{folder} has no images, only {listed(others) or 'nothing'}. "
            f"Give a folder of images ({' '.join(sorted(IMAGE_ENDINGS))}) or a table."
        )
    sizes = np.array([size_of(path) for path in images])  # (n_images, 2) width, height
    width, height = common_size(sizes)
    table = np.empty((len(images), height * width), dtype=np.float32)
    for row, path in enumerate(images):
        table[row] = gray(path, (width, height)).ravel()
    parents = np.array([name_of(path.parent, folder) for path in images], dtype=object)
    notes: tuple[str, ...] = (
        (f"{len(others)} files are not images: {listed(others)}.",) if others else ()
    )
    n_resized = int((sizes != (width, height)).any(1).sum())
    if n_resized:
        notes += (
            f"{n_resized} of {len(images)} images had another size and are resized to {width} x {height} pixels "
            f"(width x height), the median size{limit_note(sizes)}.",
        )
    return RawTable(
        array=table,
        names=pixel_names(height, width),
        extras={"folder": parents} if len(set(parents)) > 1 else {},
        image_shape=(height, width),
        notes=notes,
        ids=np.array([name_of(path, folder) for path in images], dtype=object),
        n_rows=len(images),
    )


def common_size(sizes: np.ndarray) -> tuple[int, int]:
    """Width and height for all images: their own if all have one, else the median with at most ``RESIZED_PIXELS``.

    >>> common_size(np.array([[30, 20], [30, 20]])), common_size(np.array([[30, 20], [40, 20], [32, 99]]))
    ((30, 20), (32, 20))
    >>> common_size(np.array([[640, 480], [800, 600]]))
    (73, 55)
    """
    if (sizes == sizes[0]).all():
        return int(sizes[0, 0]), int(sizes[0, 1])
    width, height = np.median(sizes, axis=0)
    shrink = min(1.0, math.sqrt(RESIZED_PIXELS / (width * height)))
    return max(1, int(width * shrink)), max(1, int(height * shrink))


def limit_note(sizes: np.ndarray) -> str:
    """What to add if the median was too large."""
    is_cut = np.prod(np.median(sizes, axis=0)) > RESIZED_PIXELS
    return f" made smaller to {RESIZED_PIXELS:,} pixels" if is_cut else ""


def name_of(path: Path, folder: Path) -> str:
    """The name below the folder, as text that every file can hold.

    >>> name_of(Path("photos/cats/\\udcff.png"), Path("photos"))  # a byte that is not UTF-8
    'cats/\\\\udcff.png'
    """
    return as_unicode(path.relative_to(folder).as_posix())


def size_of(path: Path) -> tuple[int, int]:
    """Width and height; no pixel is decoded."""
    with opened(path) as image:
        check_size(path, *image.size)
        return image.size


def gray(path: Path, size: tuple[int, int]) -> np.ndarray:
    """(height, width) gray values of an image made this wide and high."""
    with opened(path) as image:
        shades = image if image.mode in DEEP_MODES else image.convert("L")
        if shades.size != size:
            # Of 16 bits as floating point numbers: Pillow averages no others.
            shades = (shades.convert("F") if shades.mode in DEEP_MODES else shades).resize(
                size, BOX
            )
        return np.asarray(shades)


@contextmanager
def opened(path: Path) -> Iterator[Any]:
    """The image; whatever is wrong with it is a TableError."""
    try:
        from PIL import Image
    except ImportError as error:
        raise TableError('Images need Pillow: pip install "deccs[tables]".') from error
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", Image.DecompressionBombWarning)  # check_size refuses
            image = Image.open(path)  # reads the size, and no pixel
        with image:
            yield image
    except Image.DecompressionBombError as error:
        raise too_large(path, str(error)) from error
    except TableError:
        raise
    except Exception as error:  # Pillow has no common class for what damaged files lead to
        raise TableError(
            f"{path} cannot be read as an image: {error}. Replace or remove it."
        ) from error


def check_size(path: Path, width: int, height: int) -> None:
    if width * height > MAX_PIXELS:
        raise too_large(path, f"it is {width} x {height}")


def too_large(path: Path, why: str) -> TableError:
    return TableError(
        f"{path} is too large: {why}. Every pixel is a column, and an image may have at most "
        f"{MAX_PIXELS:,} pixels, such as 360 x 360. Make the images smaller; 32 x 32 is often enough."
    )
