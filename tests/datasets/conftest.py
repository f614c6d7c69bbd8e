"""Hand-made files in the published formats, and a small web server on this machine."""

from __future__ import annotations

import bz2
import gzip
import io
import struct
import threading
import zipfile
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest


class Formats:
    """Writers for the published formats."""

    @staticmethod
    def idx(shape: tuple[int, ...], values: bytes) -> bytes:
        return gzip.compress(struct.pack(f">4B{len(shape)}I", 0, 0, 8, len(shape), *shape) + values)

    @staticmethod
    def zip(members: dict[str, bytes | str]) -> bytes:
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w") as archive:
            for name, content in members.items():
                archive.writestr(name, content)
        return buffer.getvalue()

    @staticmethod
    def libsvm(*lines: str) -> bytes:
        return bz2.compress("".join(line + "\n" for line in lines).encode())

    def pendigits(self) -> bytes:
        """Two train rows and one test row."""
        first = ",".join(["  0", "100"] * 8) + ", 8\n"
        second = ",".join(["  7"] * 16) + ", 0\n"
        third = ",".join(["100"] * 16) + ", 9\n"
        return self.zip(
            {"pendigits.tra": first + second, "pendigits.tes": third, "pendigits.names": "-"}
        )


@pytest.fixture
def formats() -> Formats:
    return Formats()


@pytest.fixture
def save(tmp_path: Path) -> Callable[[str, bytes], Path]:
    """Write bytes to a file of this test and give its path."""

    def write(name: str, content: bytes) -> Path:
        path = tmp_path / name
        path.write_bytes(content)
        return path

    return write


class Web:
    """Pages by path: ``web.pages["a.zip"] = b"..."``; ``claims`` says a longer body than is sent."""

    def __init__(self) -> None:
        self.pages: dict[str, bytes] = {}
        self.claims: dict[str, int] = {}
        self.requests: list[str] = []
        web = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                name = self.path.lstrip("/")
                web.requests.append(name)
                if name not in web.pages:
                    return self.send_error(404)
                self.send_response(200)
                self.send_header("Content-Length", str(web.claims.get(name, len(web.pages[name]))))
                self.end_headers()
                self.wfile.write(web.pages[name])

            def log_message(self, *args: object) -> None:
                """Quiet."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, args=[0.01], daemon=True).start()

    def url(self, name: str) -> str:
        return f"http://127.0.0.1:{self.server.server_port}/{name}"

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()


@pytest.fixture
def web() -> Iterator[Web]:
    web = Web()
    yield web
    web.close()


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache, and no DECCS_DATA."""
    folder = tmp_path / "cache"
    monkeypatch.setenv("DECCS_CACHE", str(folder))
    monkeypatch.delenv("DECCS_DATA", raising=False)
    return folder
