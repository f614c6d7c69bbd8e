"""A folder of images as a table: one row per image, one column per pixel, in grayscale."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np

from deccs.data.tables.raw import RawTable, TableError, as_unicode, listed, pixel_names
from deccs.data.tables.readers import FOLDER, reader

IMAGE_ENDINGS = frozenset(
    (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".tif", ".tiff", ".webp", ".pgm", ".ppm")
)
MAX_PIXELS = 2**17  # of an image, 131,072: every pixel is a column, and no fit takes more
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
    first = gray(images[0])
    table = np.empty((len(images), first.size), dtype=np.float32)
    for row, path in enumerate(images):
        image = gray(path)
        if image.shape != first.shape:
            raise TableError(
                f"The images in {folder} differ in size: {images[0].name} is {size(first)}, {path.name} "
                f"is {size(image)} (width x height). Resize them."
            )
        table[row] = image.ravel()
    parents = np.array([name_of(path.parent, folder) for path in images], dtype=object)
    notes = (f"{len(others)} files are not images: {listed(others)}.",) if others else ()
    height, width = first.shape
    return RawTable(
        pixel_names(height, width),
        table,
        extras={"folder": parents} if len(set(parents)) > 1 else {},
        image_shape=(height, width),
        all_features=True,
        notes=notes,
        ids=np.array([name_of(path, folder) for path in images], dtype=object),
    )


def name_of(path: Path, folder: Path) -> str:
    """The name below the folder, as text that every file can hold.

    >>> name_of(Path("photos/cats/\\udcff.png"), Path("photos"))  # a byte that is not UTF-8
    'cats/\\\\udcff.png'
    """
    return as_unicode(path.relative_to(folder).as_posix())


def gray(path: Path) -> Any:
    """(height, width) gray values."""
    try:
        from PIL import Image
    except ImportError as error:
        raise TableError('Images need Pillow: pip install "deccs[tables]".') from error
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", Image.DecompressionBombWarning)  # refused below
            image = Image.open(path)  # reads the size, and no pixel
        with image:
            check_size(path, *image.size)
            return np.asarray(image if image.mode in DEEP_MODES else image.convert("L"))
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


def size(image: np.ndarray) -> str:
    return f"{image.shape[1]} x {image.shape[0]}"
