"""Excel and OpenDocument spreadsheets: the first sheet, by calamine (fastexcel) in a process of its own."""

from __future__ import annotations

from collections.abc import Collection
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import polars as pl

from deccs.data.tables.column_types import typed_texts
from deccs.data.tables.dialect import has_header
from deccs.data.tables.frames import POLARS_ERRORS, finished, reason
from deccs.data.tables.isolated import IsolatedError, isolated
from deccs.data.tables.raw import RawTable, TableError, check_names, listed, position_names
from deccs.data.tables.readers import reader
from deccs.data.tables.scratch import scratch

SAMPLE = 1_000  # rows that hold the header, and that it is guessed from
ROW = "row of the sheet"
ZIP, OLD = b"PK", b"\xd0\xcf\x11\xe0"  # first bytes


@reader(".xlsx", ".xls", ".xlsb", ".ods")
def read_spreadsheet(
    path: Path, *, header: bool | None = None, as_text: Collection[str] = ()
) -> RawTable:
    """The first sheet, with the values that formulas had when it was saved."""
    if find_spec("fastexcel") is None:
        raise TableError(
            f'{path} needs fastexcel: pip install "deccs[tables]". Or save the sheet as CSV.'
        )
    check_kind(path)
    with scratch() as files:
        target = files.file("sheet.arrow")
        try:
            found = isolated(
                f"{__name__}:extract", str(path.absolute()), str(target), header, list(as_text)
            )
            rows = pl.read_ipc(target.read_bytes())
        except (IsolatedError, *POLARS_ERRORS) as error:
            raise TableError(
                f"{path} cannot be read as a spreadsheet: {reason(error)}. Open it in a spreadsheet program and "
                "save it as .xlsx or as CSV."
            ) from error
    sheets, names = found["sheets"], tuple(found["names"])
    if rows.height == 0:
        raise TableError(
            f"{path}: the sheet {sheets[0]!r} has no rows of data. Put the table into it."
        )
    check_names(path, names)
    numbers = rows[ROW]
    rows = rows.drop(ROW).rename(dict(zip(rows.columns[1:], names, strict=True)))
    texts = [name for name, dtype in rows.schema.items() if dtype == pl.String]
    columns, notes = typed_texts(
        rows.lazy(),
        texts,
        as_text,
        padded_is_text=True,
        place=lambda row: f"row {numbers[row]:,}",
    )
    if others := sheets[1:]:
        notes = (f"Only the first sheet is read, {sheets[0]!r}; not {listed(others)}.", *notes)
    frame = rows.lazy().with_columns(columns)
    return finished(path, frame, has_names=found["has_names"], notes=notes)


def check_kind(path: Path) -> None:
    """Raise a TableError for what only has the name of a spreadsheet: many programs save web pages as .xls."""
    with path.open("rb") as file:
        head = file.read(200)
    if head.startswith(OLD if path.suffix.lower() == ".xls" else ZIP):
        return
    if head.lstrip().startswith(b"<"):
        what = "a web page or XML, not a spreadsheet"
    elif head.startswith(OLD):
        what = "an old .xls file, or has a password"
    elif head.startswith(ZIP):
        what = "a newer spreadsheet or another zip archive, not .xls"
    else:
        what = "not a spreadsheet"
    raise TableError(
        f"{path} is {what}. Open it in a spreadsheet program and save it as .xlsx or as CSV."
    )


def extract(
    path: str, target: str, header: bool | None, as_text: Collection[str]
) -> dict[str, Any]:
    """Write the first sheet to an Arrow file, in the other process. The columns are numbered there.

    Types are those of all rows: calamine's guess from the first thousand would turn words further down into gaps.
    """
    import fastexcel

    book = fastexcel.read_excel(path)
    if not book.sheet_names:
        raise ValueError("it has no sheet")
    facts: dict[str, Any] = {"sheets": book.sheet_names, "names": [], "has_names": True}
    # With 0 rows to skip, rows are those of the sheet; without that, blank ones at its top do not count.
    head = book.load_sheet(
        0, header_row=None, skip_rows=0, n_rows=SAMPLE, dtypes="string"
    ).to_polars()
    sample = [["" if cell is None else cell for cell in row] for row in head.rows() if any(row)]
    if not sample:
        pl.DataFrame({ROW: []}).write_ipc(target)
        return facts
    with_names = has_header(sample) if header is None else header
    names = list(position_names(head.width))
    first = next(place for place, row in enumerate(head.rows()) if any(row))
    if with_names:
        names = [cell.strip() or name for cell, name in zip(sample[0], names, strict=True)]
        first += 1
    numbered = [str(place) for place in range(head.width)]
    written: dict[str | int, Any] = {
        place: "string" for place, name in enumerate(names) if name in as_text
    }
    rows = book.load_sheet(
        0,
        header_row=None,
        column_names=numbered,
        skip_rows=first,
        schema_sample_rows=None,
        dtypes=written or None,
    ).to_polars()
    is_filled = pl.any_horizontal(pl.all().exclude(ROW).is_not_null())
    rows.with_row_index(ROW, first + 1).filter(is_filled).with_columns(
        days_of(column) for column in rows if column.dtype == pl.Datetime
    ).write_ipc(target)
    return {**facts, "names": names, "has_names": with_names}


def days_of(column: pl.Series) -> pl.Series:
    """Dates, if no value has a time: spreadsheets have no type for them."""
    days = column.dt.date()
    return days if (days.cast(column.dtype) == column).all() else column
