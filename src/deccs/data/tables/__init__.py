"""Files as tables: CSV, TSV, Parquet, Feather, .npy, .npz and folders of images -> numbers, names and ids.

``read_table`` chooses the columns for a fit; ``read_like`` reads another file the way a fitted model needs it.
"""

from deccs.data.tables.reading import Table, read_like, read_table
from deccs.data.tables.source import TableError

__all__ = ["Table", "TableError", "read_like", "read_table"]
