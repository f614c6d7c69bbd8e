"""Files as tables: CSV, TSV, Parquet, Feather, .npy, .npz and folders of images -> numbers, names and ids.

``read_table`` chooses the columns for a fit; ``read_like`` reads another file the way a fitted model needs it.
``@reader(".ending")`` adds a format.
"""

from deccs.data.tables import (  # each registers its endings
    arrays,
    columnar,
    delimited,
    images,
)
from deccs.data.tables.raw import RawTable, TableError
from deccs.data.tables.readers import reader
from deccs.data.tables.reading import Table, read_like, read_table

__all__ = ["RawTable", "Table", "TableError", "read_like", "read_table", "reader"]
