"""The result of a SQL query, read-only."""

from __future__ import annotations

import re
import socket
import sqlite3
from collections.abc import Collection
from contextlib import closing
from pathlib import Path
from urllib.parse import quote, unquote, urlsplit

import polars as pl

from deccs.data.tables.column_types import typed_texts
from deccs.data.tables.frames import POLARS_ERRORS, finished, reason
from deccs.data.tables.raw import RawTable, TableError, listed
from deccs.data.tables.readers import DATABASE, reader

PORTS = {"postgresql": 5432, "postgres": 5432}  # of servers, by scheme
SECONDS = 5.0  # to wait for a server, or for a lock of SQLite
READ_ONLY = "SET default_transaction_read_only = on"
ALLOWED = (
    sqlite3.SQLITE_SELECT,
    sqlite3.SQLITE_READ,
    sqlite3.SQLITE_FUNCTION,
    sqlite3.SQLITE_RECURSIVE,
)


@reader(DATABASE)
def read_database(
    address: str, *, query: str | None = None, as_text: Collection[str] = ()
) -> RawTable:
    """All rows of a query. They must fit into memory."""
    scheme = address.split("://", 1)[0].lower()
    shown = without_password(address)
    if scheme != "sqlite" and scheme not in PORTS:
        raise TableError(
            f"{shown} is no file and no known database. Addresses begin with sqlite:///, postgresql:// or postgres://."
        )
    if not query or not query.strip():
        what = f" It has the tables {listed(tables_of(address))}." if scheme == "sqlite" else ""
        raise TableError(f'{shown} needs a query, such as "select * from customers".{what}')
    frame = ask_sqlite(address, query) if scheme == "sqlite" else ask_server(address, query)
    if frame.height == 0:
        raise TableError(f"{shown}: the query returns no rows. Ask for at least two.")
    texts = [name for name, dtype in frame.schema.items() if dtype == pl.String]
    columns, notes = typed_texts(
        frame.lazy(), texts, as_text, only_dates=True, place=lambda row: f"row {row + 1:,}"
    )
    return finished(shown, frame.lazy().with_columns(columns), as_text=as_text, notes=notes)


def ask_sqlite(address: str, query: str) -> pl.DataFrame:
    """By the standard library: its connections can refuse everything but reading, connectorx's cannot."""
    try:
        with closing(read_only(address)) as connection:
            return pl.read_database(query, connection, infer_schema_length=None)
    except (sqlite3.Error, *POLARS_ERRORS, UnicodeError) as error:
        if "not authorized" in str(error) or "authorization denied" in str(error):
            raise TableError(
                f"{address}: the query does more than read. Give a single SELECT."
            ) from None
        raise failed(address, error) from None


def read_only(address: str) -> sqlite3.Connection:
    """A connection that reads one file: no writing, no other database, no PRAGMA, no extension."""
    path = sqlite_path(address)
    if not path.is_file():
        raise TableError(f"There is no file {path}. Give the address of a database that exists.")
    connection = sqlite3.connect(f"file:{quote(str(path))}?mode=ro", uri=True, timeout=SECONDS)
    connection.execute(
        "PRAGMA trusted_schema = OFF"
    )  # views of the file call no functions with effects
    connection.set_authorizer(
        lambda action, *_: sqlite3.SQLITE_OK if action in ALLOWED else sqlite3.SQLITE_DENY
    )
    return connection


def sqlite_path(address: str) -> Path:
    """The file, named from here or (with four slashes) from the root.

    >>> sqlite_path("sqlite:///shop.db").as_posix(), sqlite_path("sqlite:////data/my%20shop.db").as_posix()
    ('shop.db', '/data/my shop.db')
    """
    _, slash, name = address.partition(":///")
    if not (slash and name):
        raise TableError(
            f"{address} names no file. Write sqlite:///shop.db, or sqlite:////data/shop.db from the root."
        )
    return Path(unquote(name))


def tables_of(address: str) -> list[str]:
    frame = ask_sqlite(address, "select name from sqlite_master where type in ('table', 'view')")
    return [] if frame.height == 0 else frame["name"].to_list()


def ask_server(address: str, query: str) -> pl.DataFrame:
    """By connectorx, in a session that can only read."""
    check_answers(address)
    try:
        return pl.read_database_uri(
            query, address, engine="connectorx", pre_execution_query=READ_ONLY
        )
    except ImportError as error:
        raise TableError(
            f'{without_password(address)} needs connectorx: pip install "deccs[tables]".'
        ) from error
    except (RuntimeError, ValueError, *POLARS_ERRORS) as error:
        raise failed(address, error) from None


def check_answers(address: str) -> None:
    """Raise a TableError if nothing listens there: connectorx would try for half a minute."""
    try:
        parts = urlsplit(address)
        host, port = parts.hostname or "localhost", parts.port or PORTS[parts.scheme]
    except ValueError as error:
        raise failed(address, error) from None
    try:
        socket.create_connection((host, port), SECONDS).close()
    except (OSError, UnicodeError) as error:
        raise TableError(
            f"No server answers at {host}, port {port}: {error}. Check the address, and that the server runs."
        ) from None


def failed(address: str, error: BaseException) -> TableError:
    """An error with the database's own words, but no password in them."""
    words = reason(error)
    for secret in secrets_of(address):
        words = words.replace(secret, "***")
    return TableError(f"{without_password(address)}: {words}. Check the address and the query.")


def secrets_of(address: str) -> list[str]:
    """What must not be shown: the address, the password as it is written and as it is meant, options."""
    rest = address.split("://", 1)[-1]
    login = rest.rpartition("@")[0]
    password = login.partition(":")[2]
    values = re.findall(r"[?&][^=&]*=([^&#]+)", rest)
    found = (address, rest, password, unquote(password), *values, *map(unquote, values))
    return sorted({text for text in found if text}, key=len, reverse=True)


def without_password(address: str) -> str:
    """The address as messages show it.

    >>> without_password("postgresql://ann:secret@host/shop?password=secret")
    'postgresql://host/shop'
    """
    scheme, mark, rest = address.partition("://")
    return f"{scheme}://{rest.rpartition('@')[2].partition('?')[0]}" if mark else address
