"""A folder of images as a table: one row per image, one column per pixel, in grayscale."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from deccs.data.tables.raw import RawTable, TableError, listed, pixel_names
from deccs.data.tables.readers import FOLDER, reader

IMAGE_ENDINGS = frozenset(
    (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".tif", ".tiff", ".webp", ".pgm", ".ppm")
)
# More than 256 shades of gray: Pillow's conversion would cut them off at 255.
DEEP_MODES = ("I", "F", "I;16", "I;16B", "I;16L")


@reader(FOLDER)
def read_images(folder: Path) -> RawTable:
    """All images below the folder, in the order of their names, which are their ids."""
    files = sorted(
        path
        for path in folder.rglob("*")
        if path.is_file()
        and not any(part.startswith(".") for part in path.relative_to(folder).parts)
    )
    images = [path for path in files if path.suffix.lower() in IMAGE_ENDINGS]
    others = [
        path.relative_to(folder) for path in files if path.suffix.lower() not in IMAGE_ENDINGS
    ]
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
    names = [path.relative_to(folder) for path in images]
    parents = np.array([name.parent.as_posix() for name in names], dtype=object)
    notes = (f"{len(others)} files are not images: {listed(others)}.",) if others else ()
    height, width = first.shape
    return RawTable(
        pixel_names(height, width),
        table,
        extras={"folder": parents} if len(set(parents)) > 1 else {},
        image_shape=(height, width),
        all_features=True,
        notes=notes,
        ids=np.array([name.as_posix() for name in names], dtype=object),
    )


def gray(path: Path) -> Any:
    """(height, width) gray values."""
    try:
        from PIL import Image
    except ImportError as error:
        raise TableError('Images need Pillow: pip install "deccs[tables]".') from error
    try:
        with Image.open(path) as image:
            return np.asarray(image if image.mode in DEEP_MODES else image.convert("L"))
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError) as error:
        raise TableError(
            f"{path} cannot be read as an image: {error}. Replace or remove it."
        ) from error


def size(image: np.ndarray) -> str:
    return f"{image.shape[1]} x {image.shape[0]}"
