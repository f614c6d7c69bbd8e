"""A reader: a text file, a row per line, with the number of letters and of spaces as columns."""

import numpy as np

from deccs.data.tables import RawTable, TableError, reader


@reader(".prose")
def read_prose(path):
    try:
        lines = path.read_text(encoding="ascii").splitlines()
    except UnicodeDecodeError as error:
        raise TableError(f"{path} is not plain text: {error}. Give a text file.") from error
    if not lines or not all(line.replace(" ", "").isalpha() for line in lines):
        raise TableError(f"{path} has other characters than letters and spaces. Remove them.")
    counts = [[len(line) - line.count(" "), line.count(" ")] for line in lines]
    array = np.array(counts, dtype=float)
    return RawTable(array=array, names=("letters", "spaces"), n_rows=len(array))
