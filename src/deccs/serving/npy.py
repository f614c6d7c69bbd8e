"""Arrays in NumPy's file format, read without its parser: a header is matched, not evaluated.

NumPy's own reader evaluates a header as Python's literals, and makes room for what it says before it looks
whether the data are there.
"""

from __future__ import annotations

import io
import math
import re

import numpy as np

from deccs.serving.limits import Problem

MAGIC = b"\x93NUMPY"
LONGEST_HEADER = 10_000  # bytes
HEADER = re.compile(
    rb"\{'descr': ?'([<>|=]?[biuf][1248])', ?'fortran_order': ?(True|False), "
    rb"?'shape': ?\(((?:[0-9]{1,12},? ?){1,3})\),? ?\} *\n?"
)
WHAT_IT_IS = "The body must be a .npy file with a table of numbers, as numpy.save writes it"


def array_of(body: bytes) -> np.ndarray:
    """(n, n_columns) the array, of the type it was written with; images (n, h, w) are flattened.

    >>> array_of(npy_of(np.array([[1.5, 2.0]])))
    array([[1.5, 2. ]])
    """
    if body[:6] != MAGIC or len(body) < 12 or body[6] not in (1, 2, 3):
        raise Problem(400, f"{WHAT_IT_IS}. It does not begin like one.")
    n_length = 2 if body[6] == 1 else 4
    start = 8 + n_length
    n_header = int.from_bytes(body[8:start], "little")
    header = HEADER.fullmatch(body[start : start + min(n_header, LONGEST_HEADER)])
    if header is None or len(body) < start + n_header:
        raise Problem(
            400, f"{WHAT_IT_IS}. Its header is not that of an array of whole or real numbers."
        )
    shape = tuple(int(size) for size in re.findall(rb"[0-9]+", header[3]))
    try:
        dtype = np.dtype(header[1].decode())
    except TypeError:
        raise Problem(400, f"{WHAT_IT_IS}. There is no such type of numbers.") from None
    n_expected, n_given = math.prod(shape) * dtype.itemsize, len(body) - start - n_header
    if n_expected != n_given:
        raise Problem(
            400,
            f"{WHAT_IT_IS}. Its header asks for {n_expected:,} bytes, and {n_given:,} follow.",
        )
    if len(shape) < 2:
        raise Problem(
            422,
            f"The array has the shape {shape}, but rows and columns are needed: (n, n_columns).",
        )
    values = np.frombuffer(body, dtype, offset=start + n_header)
    order: str = "F" if header[2] == b"True" else "C"
    return values.reshape(shape, order=order).reshape(shape[0], math.prod(shape[1:]))  # type: ignore[call-overload]


def npy_of(values: np.ndarray) -> bytes:
    """An array as the content of a file."""
    file = io.BytesIO()
    np.save(file, values, allow_pickle=False)
    return file.getvalue()
