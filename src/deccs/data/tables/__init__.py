"""Files as tables: text, Parquet, spreadsheets, databases, arrays, Zarr, cells, images -> columns, names and ids.

``read_table`` chooses the columns for a fit; ``read_like`` reads another file the way a fitted model needs it.
``@reader(".ending")`` adds a format.
"""

from deccs.data.tables import (  # each registers its endings
    arrays,
    columnar,
    databases,
    delimited,
    h5ad,
    images,
    json_lines,
    spreadsheets,
    zarr_arrays,
)
from deccs.data.tables.raw import RawTable, TableError
from deccs.data.tables.readers import reader
from deccs.data.tables.reading import Table, read_like, read_table

__all__ = ["RawTable", "Table", "TableError", "read_like", "read_table", "reader"]
