"""Text files, perhaps compressed: opened, checked and read by line, in bounded memory.

No line may be longer than ``MAX_LINE``, so that nothing in a file can make memory grow without bound. polars reads
lines of any length, and has to be told of them before.
"""

from __future__ import annotations

import codecs
import gzip
import io
import re
import zlib
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, TextIO, cast

from deccs.data.tables.raw import TableError

MAX_LINE = 10 * 2**20  # characters
BLOCK = 4 * 2**20  # bytes read at once
MAX_UNPACKED = 100 * 2**30  # bytes of a compressed file after unpacking
MAX_RATIO = 1_000  # of unpacked to packed; gzip cannot do much more, bombs do
ALWAYS_UNPACKED = 64 * 2**20  # bytes that any file may unpack to: a table of one value packs well
OTHER_FORMATS = {
    b"PAR1": "Parquet",
    b"ARROW1": "Feather",
    b"PK\x03\x04": "a zip archive (.npz or .xlsx)",
    b"\x1f\x8b": "gzip",
    b"\x28\xb5\x2f\xfd": "zstd",
    b"\x93NUMPY": ".npy",
    b"\x89PNG": "a PNG image",
    b"\x89HDF": "HDF5 (.h5ad)",
    b"SQLite format 3": "an SQLite database",
    b"\xd0\xcf\x11\xe0": "an old Excel file (.xls)",
}
# A quoted field between delimiters or ends of lines, with doubled quotes in it.
QUOTED = rb'(?:(?<=[\n%s])|\A)"[^"]*+(?:""[^"]*+)*+"(?=[%s\r\n]|\Z)'


class Unpacked(io.RawIOBase):
    """The bytes of a compressed file, with a limit: a few bytes can stand for terabytes."""

    def __init__(self, path: Path, file: Any) -> None:
        self.path, self.file, self.done = path, file, 0
        size = path.stat().st_size
        self.limit = min(MAX_UNPACKED, max(ALWAYS_UNPACKED, MAX_RATIO * size))

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        try:
            block = self.file.read(len(buffer))
        except (OSError, EOFError, zlib.error) as error:
            raise TableError(
                f"{self.path} cannot be unpacked: {error}. It may be cut off; copy or make it again."
            ) from error
        self.done += len(block)
        if self.done > self.limit:
            raise TableError(
                f"{self.path} has {self.path.stat().st_size:,} bytes and unpacks to more than {self.limit:,}. "
                "If you trust it, unpack it yourself and give the unpacked file."
            )
        buffer[: len(block)] = block
        return len(block)

    def close(self) -> None:
        self.file.close()
        super().close()


def open_bytes(path: Path) -> BinaryIO:
    """The bytes of a file, unpacked if its name ends in .gz or .zst."""
    ending = path.suffix.lower()
    if ending == ".gz":
        return cast(BinaryIO, io.BufferedReader(Unpacked(path, gzip.open(path)), BLOCK))
    if ending == ".zst":
        try:
            import pyarrow
        except ImportError as error:
            raise TableError(f'{path} needs pyarrow: pip install "deccs[tables]".') from error
        packed = pyarrow.CompressedInputStream(pyarrow.OSFile(str(path)), "zstd")
        return cast(BinaryIO, io.BufferedReader(Unpacked(path, packed), BLOCK))
    return path.open("rb")


def open_text(path: Path, encoding: str = "utf-8") -> TextIO:
    """Decoded text with the line ends as they are, without the byte order mark."""
    name = "utf-8-sig" if encoding == "utf-8" else encoding
    return io.TextIOWrapper(open_bytes(path), encoding=name, newline="")


def check_head(path: Path, encoding: str) -> str:
    """The encoding's usual name, if the file begins like text in it."""
    try:
        name = codecs.lookup(encoding).name
    except LookupError as error:
        raise TableError(
            f"Unknown --encoding {encoding}. Give one such as utf-8, cp1252 or utf-16."
        ) from error
    with open_bytes(path) as file:
        head = file.read(8192)
    if not head.strip():
        raise TableError(f"{path} is empty. Give a table with one row per line.")
    for magic, file_format in OTHER_FORMATS.items():
        if head.startswith(magic):
            raise TableError(
                f"{path} is {file_format}, not text. Give it the right ending, or unpack it."
            )
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) and name == "utf-8":
        raise TableError(f"{path} is UTF-16. Add --encoding utf-16.")
    if not name.startswith(("utf-16", "utf-32")):
        check_no_zero(path, head, 0)
    return name


def has_mark(path: Path) -> bool:
    """Whether the file begins with UTF-8's byte order mark."""
    with open_bytes(path) as file:
        return file.read(3) == codecs.BOM_UTF8


def check_no_zero(path: Path, block: bytes, start: int) -> None:
    """Raise a TableError if a block that begins at byte ``start`` holds a zero byte."""
    if (place := block.find(b"\0")) >= 0:
        raise TableError(
            f"{path} is not text: there is a zero byte at position {start + place}. Give a CSV or TSV "
            "file; if it is UTF-16 text, add --encoding utf-16."
        )


def transcode(path: Path, encoding: str, target: Path) -> None:
    """Write the text in UTF-8."""
    try:
        with open_text(path, encoding) as text, target.open("wb") as out:
            while block := text.read(BLOCK):
                out.write(block.encode("utf-8"))
    except UnicodeError as error:
        raise wrong_encoding(path, encoding) from error


def wrong_encoding(path: Path, encoding: str) -> TableError:
    """An error with the position in the file: the decoder knows only the position in its buffer."""
    decoder = codecs.getincrementaldecoder(encoding)()
    done, line = 0, 1
    with open_bytes(path) as file:
        while True:
            block = file.read(2**20)
            pending = len(decoder.getstate()[0])
            try:
                line += decoder.decode(block, final=not block).count("\n")
            except UnicodeDecodeError as error:
                line += error.object[: error.start].count(b"\n")
                return TableError(
                    f"{path} is not {encoding}: byte 0x{error.object[error.start]:02x} at position "
                    f"{done - pending + error.start} (line {line}). Give its encoding, e.g. --encoding cp1252."
                )
            done += len(block)
            if not block:
                return TableError(
                    f"{path} is not {encoding}. Give its encoding, e.g. --encoding cp1252."
                )


def whole_lines(path: Path, file: BinaryIO, *, quotes: bool = True) -> Iterator[bytes]:
    """Blocks of UTF-8 text that end with a line; text in quotes is not cut."""
    rest, line, done = b"", 1, 0
    while True:
        read = file.read(BLOCK)
        check_no_zero(path, read, done)
        done += len(read)
        block = rest + read
        if not read:
            end = len(block)
        else:
            end = last_end(block) if quotes else block.rfind(b"\n") + 1
        if end == 0 and len(block) > MAX_LINE:
            if quotes and b'"' in block and b"\n" in block:
                raise unclosed(path, line)
            raise too_long(path, line)
        if end:
            yield block[:end]
            line += block.count(b"\n", 0, end)
        rest = block[end:]
        if not read:
            return


def last_end(block: bytes) -> int:
    """Where the last line ends that does not end within quotes; 0 if there is none.

    >>> last_end(b'a,b\\n1,"x\\ny'), last_end(b"abc")
    (4, 0)
    """
    end = block.rfind(b"\n") + 1
    if block.count(b'"', 0, end) % 2 == 0:
        return end
    end = block.rfind(b"\n", 0, block.rfind(b'"', 0, end)) + 1
    return end if block.count(b'"', 0, end) % 2 == 0 else 0


def too_long(path: Path, line: int) -> TableError:
    return TableError(
        f"{path}: line {line} is longer than {MAX_LINE // 2**20} MB. Give a file with one row per line."
    )


def unclosed(path: Path, line: int) -> TableError:
    return TableError(
        f"{path}: after line {line} there is a text in quotes longer than {MAX_LINE // 2**20} MB. Look for an "
        "unclosed quote."
    )


@dataclass(frozen=True)
class Survey:
    """What a look at all bytes of a delimited file shows."""

    is_plain: bool  # polars and the csv module find the same records
    n_records: int  # with the header
    n_bytes: int
    has_quotes: bool


def survey_of(path: Path, delimiter: str, width: int | None = None) -> Survey:
    """Whether quotes are in their place, no line is blank but the last, and (with ``width``) none short or long.

    polars takes short lines and blank lines for gaps, and does not always notice a quote within a field. What is not
    plain is left to the csv module, which names the line.
    """
    mark = delimiter.encode()
    quoted = re.compile(QUOTED % (re.escape(mark), re.escape(mark)))
    n_records, n_bytes, has_quotes, ended = 0, 0, False, False
    with open_bytes(path) as file:
        for block in whole_lines(path, file):
            if not block.isascii():
                check_utf_8(path, block)
            if n_bytes == 0:
                block = block.removeprefix(codecs.BOM_UTF8)
            n_bytes += len(block)
            if b'"' in block:
                has_quotes = True
                block = quoted.sub(b"q", block)
            if b"\r" in block:
                block = block.replace(b"\r\n", b"\n")
            rows = block.rstrip(b"\n")
            n_rows = rows.count(b"\n") + 1 if rows else 0
            is_plain = not (
                (ended and rows)  # after blank lines
                or rows.startswith(b"\n")
                or b"\n\n" in rows
                or b'"' in rows
                or b"\r" in rows
                or (width is not None and rows.count(mark) != n_rows * (width - 1))
            )
            if not is_plain:
                return Survey(False, 0, n_bytes, has_quotes)
            n_records += n_rows
            ended = ended or len(block) - len(rows) != 1
    return Survey(True, n_records, n_bytes, has_quotes)


def check_utf_8(path: Path, block: bytes) -> None:
    try:
        block.decode("utf-8")
    except UnicodeDecodeError as error:
        raise wrong_encoding(path, "utf-8") from error


class Lines:
    """The lines of a file, none longer than ``MAX_LINE``; lines read ahead can be put back."""

    def __init__(self, path: Path, file: TextIO) -> None:
        self.path, self.file = path, file
        self.number = 0  # of the line read last, from 1
        self.put_aside = deque[str]()

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        line = self.put_aside.popleft() if self.put_aside else self.file.readline(MAX_LINE + 1)
        if not line:
            raise StopIteration
        self.number += 1
        if len(line) > MAX_LINE:
            raise too_long(self.path, self.number)
        if "\0" in line:
            raise TableError(
                f"{self.path} is not text: there is a zero byte in line {self.number}."
            )
        return line

    def ahead(self, n_lines: int, n_characters: int) -> list[str]:
        """The next lines, as many as these bounds allow; at least two if there are any."""
        lines: list[str] = []
        left = n_characters
        for line in islice(self, n_lines):
            lines.append(line)
            left -= len(line)
            if left <= 0 and len(lines) > 1:
                break
        return lines

    def put_back(self, lines: Sequence[str]) -> None:
        self.put_aside.extendleft(reversed(lines))
        self.number -= len(lines)
