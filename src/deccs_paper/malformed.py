"""Requests that a service must survive: ten thousand of many kinds, made from a seed."""

from __future__ import annotations

import json
import socket
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np

from deccs.serving.npy import npy_of

PATIENCE = 30.0  # seconds that a client waits for the answer to a whole request
IMPATIENCE = 0.05  # ... to one that it has not sent as a whole
SILENCE, CLOSED = "no answer", "closed"
Rng = np.random.Generator


@dataclass(frozen=True)
class Sample:
    """Good rows for one model, from which bad requests are made."""

    names: Sequence[str]
    X: np.ndarray  # (n, n_columns)

    def rows(self, rng: Rng) -> list[Any]:
        n = int(rng.integers(1, 6))
        return [list(row) for row in self.X[rng.integers(0, len(self.X), n)].tolist()]

    def body(self, rng: Rng) -> bytes:
        return json.dumps({"rows": self.rows(rng)}).encode()


@dataclass(frozen=True)
class Bad:
    """One request as bytes; ``is_whole`` if a service can see where it ends."""

    kind: str
    content: bytes
    is_whole: bool = True


def post(body: bytes, kind: str = "application/json", query: str = "", more: str = "") -> bytes:
    """A whole request with this body."""
    head = (
        f"POST /v1/predict{query} HTTP/1.1\r\nHost: localhost\r\nContent-Type: {kind}\r\n"
        f"Content-Length: {len(body)}\r\n{more}\r\n"
    )
    return head.encode("latin-1") + body


def noise(rng: Rng, most: int = 200) -> bytes:
    return rng.bytes(int(rng.integers(1, most)))


def random_bytes(rng: Rng, sample: Sample) -> Bad:
    return Bad("random bytes", noise(rng), is_whole=False)


def random_body(rng: Rng, sample: Sample) -> Bad:
    kind = str(rng.choice(["application/json", "application/x-npy", "text/csv"]))
    return Bad("random body", post(noise(rng, 2_000), kind))


def truncated(rng: Rng, sample: Sample) -> Bad:
    body = sample.body(rng)
    return Bad("truncated JSON", post(body[: int(rng.integers(0, len(body)))]))


def changed(rng: Rng, sample: Sample) -> Bad:
    """A good request in which some bytes are others: in its body, or anywhere."""
    body = bytearray(sample.body(rng))
    for place in rng.integers(0, len(body), int(rng.integers(1, 5))):
        body[place] = int(rng.integers(0, 256))
    return Bad("changed bytes", post(bytes(body)))


def changed_head(rng: Rng, sample: Sample) -> Bad:
    request = bytearray(post(sample.body(rng)))
    for place in rng.integers(0, 90, int(rng.integers(1, 4))):
        request[place] = int(rng.integers(0, 256))
    return Bad("changed head", bytes(request), is_whole=False)


def number(rng: Rng, sample: Sample) -> Bad:
    """Numbers that are too large, or none."""
    rows = json.dumps(sample.rows(rng))
    word = str(
        rng.choice(["1e999", "-1e400", "9" * 400, "NaN", "Infinity", "-Infinity", "0x10", "1e308"])
    )
    place = rows.index(",")
    return Bad("huge numbers and NaN", post(f"[[{word}{rows[place:]}".encode()))


def nested(rng: Rng, sample: Sample) -> Bad:
    depth = int(rng.integers(2, 100_000))
    opening, closing = (b"[", b"]") if rng.random() < 0.5 else (b'{"rows":', b"}")
    closed = rng.random() < 0.5
    return Bad("deep nesting", post(opening * depth + (b"1" + closing * depth if closed else b"")))


def wrong_types(rng: Rng, sample: Sample) -> Bad:
    rows = sample.rows(rng)
    odd: list[Any] = ["word", [], {}, [1], {"a": 1}, "\u0000", "\u202e", "x" * 3_000, "<script>"]
    rows[0][int(rng.integers(0, len(rows[0])))] = odd[int(rng.integers(0, len(odd)))]
    return Bad("wrong types", post(json.dumps({"rows": rows}).encode()))


def wrong_shape(rng: Rng, sample: Sample) -> Bad:
    values: list[Any] = [None, 5, "rows", True, [], {}, [1, 2], {"a": 1}, [[]], [[], {}], [None]]
    value = values[int(rng.integers(0, len(values)))]
    name = str(rng.choice(["row", "rows", "columns", "data", ""]))
    return Bad("wrong shapes", post(json.dumps({name: value}).encode()))


def wrong_lengths(rng: Rng, sample: Sample) -> Bad:
    rows = sample.rows(rng)
    size = int(rng.integers(0, 3 * len(rows[0])))
    rows[-1] = (rows[-1] * 3)[: size + (size == len(rows[0]))]
    return Bad("wrong lengths", post(json.dumps({"rows": rows}).encode()))


def wrong_columns(rng: Rng, sample: Sample) -> Bad:
    row = dict(zip(sample.names, sample.rows(rng)[0], strict=True))
    for name in rng.choice(list(sample.names), 2):
        row.pop(str(name), None)
    row[noise(rng, 80).decode("latin-1")] = 1
    return Bad("missing columns", post(json.dumps({"row": row}).encode()))


def wrong_media(rng: Rng, sample: Sample) -> Bad:
    kinds = ["text/plain", "", "application/xml", "application/json; charset=utf-7", "a" * 500]
    kinds += ["multipart/form-data; boundary=x", "application/vnd.apache.parquet", "\xff/\xff"]
    return Bad("wrong content types", post(sample.body(rng), str(rng.choice(kinds))))


def wrong_query(rng: Rng, sample: Sample) -> Bad:
    queries = [
        "?fields=%00",
        "?fields=secret",
        "?x=1",
        "?" + "&" * 3_000,
        "?fields=labels&fields=x",
    ]
    queries += ["?" + "a" * 5_000, "?fields=" + "labels," * 500 + "no"]
    return Bad("wrong queries", post(sample.body(rng), query=str(rng.choice(queries))))


def wrong_page(rng: Rng, sample: Sample) -> Bad:
    method = str(rng.choice(["GET", "PUT", "DELETE", "OPTIONS", "TRACE", "PATCH"]))
    paths = ["/v1/predict", "/../../etc/passwd", "/%2e%2e/%00", "//", "/v1/predict/", "/a" * 500]
    line = f"{method} {rng.choice(paths)} HTTP/1.1\r\nHost: localhost\r\n\r\n"
    return Bad("wrong pages", line.encode())


def wrong_head(rng: Rng, sample: Sample) -> Bad:
    lines = [
        "Content-Length: 5\r\n",
        "Transfer-Encoding: chunked\r\n",
        "Host: evil.example\r\n",
        "Origin: http://evil.example\r\n",
        "Content-Encoding: gzip\r\n",
        "X: " + "a" * 70_000 + "\r\n",
        "A: b\r\n" * 20_000,
        ": \r\n",
        "Expect: 200-maybe\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n",
    ]
    more = str(rng.choice(lines))
    return Bad("wrong heads", post(sample.body(rng), more=more), is_whole=False)


def wrong_chunks(rng: Rng, sample: Sample) -> Bad:
    head = (
        b"POST /v1/predict HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        b"Transfer-Encoding: chunked\r\n\r\n"
    )
    chunks = [
        b"zz\r\n",
        b"-1\r\n[]\r\n",
        b"fffffffffffffffff\r\n",
        b"5;" + b"x" * 70_000,
        b"2\r\n[[",
    ]
    return Bad("wrong chunks", head + chunks[int(rng.integers(0, len(chunks)))], is_whole=False)


def wrong_array(rng: Rng, sample: Sample) -> Bad:
    """A .npy file that is cut, changed, of another shape or type, or with values that are no numbers."""
    n_columns = len(sample.names)
    arrays = [
        sample.X[:5, :-1],
        np.full((3, n_columns), np.inf),
        np.zeros((2, 2, 2, 2)),
        np.zeros((2, n_columns), complex),
        np.zeros(n_columns),
        np.array([["a"] * n_columns]),
        np.float64(5),
    ]
    content = bytearray(npy_of(np.asarray(arrays[int(rng.integers(0, len(arrays)))])))
    if rng.random() < 0.5:
        content = bytearray(npy_of(sample.X[:5]))
        for place in rng.integers(0, 100, 3):
            content[place] = int(rng.integers(0, 256))
    if rng.random() < 0.3:
        content = content[: int(rng.integers(0, len(content)))]
    return Bad("wrong arrays", post(bytes(content), "application/x-npy"))


def wrong_csv(rng: Rng, sample: Sample) -> Bad:
    lines = [",".join(sample.names), *(",".join(map(str, row)) for row in sample.rows(rng))]
    texts = [
        lines[0].replace(sample.names[0], "other"),
        "\n".join([lines[0], lines[0]]),
        "\n".join([lines[0], lines[1] + ",9,9"]),
        "\n".join([lines[0], '"' + lines[1]]),
        "\n".join([lines[0], lines[1].replace(",", ",\x00", 1)]),
        "\n" * 3_000,
        "," * 3_000,
        ",".join([sample.names[0]] * 2),
        "\ufeff",
    ]
    text = texts[int(rng.integers(0, len(texts)))]
    return Bad("wrong CSV", post(text.encode(), "text/csv"))


def oversized(rng: Rng, sample: Sample) -> Bad:
    """More than one request may have: announced, in lists, in rows, in columns; now and then in bytes."""
    row = json.dumps(sample.X[0].tolist())
    place = int(rng.integers(0, 40))
    if place == 0:
        return Bad("oversized", post(b"[" + b" " * 17_000_000), is_whole=False)
    if place == 1:
        return Bad("oversized", post(f"[{','.join([row] * 100_001)}]".encode()))
    if place < 15:
        return Bad("oversized", post(b"[" + b"[]," * 150_000 + b"[]]"))
    if place < 25:
        many = {f"c{number}": 0 for number in range(2_000)}
        return Bad("oversized", post(json.dumps([dict.fromkeys(sample.names, 0) | many]).encode()))
    more = "POST /v1/predict HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    return Bad(
        "oversized", f"{more}Content-Length: {10 ** int(rng.integers(8, 30))}\r\n\r\n".encode()
    )


def slow(rng: Rng, sample: Sample) -> Bad:
    request = post(sample.body(rng))
    return Bad("slow", request[: int(rng.integers(1, len(request)))], is_whole=False)


KINDS: tuple[Callable[[Rng, Sample], Bad], ...] = (
    random_bytes,
    random_body,
    truncated,
    changed,
    changed_head,
    number,
    nested,
    wrong_types,
    wrong_shape,
    wrong_lengths,
    wrong_columns,
    wrong_media,
    wrong_query,
    wrong_page,
    wrong_head,
    wrong_chunks,
    wrong_array,
    wrong_csv,
    oversized,
    slow,
)


def bad_request(seed: int, place: int, sample: Sample) -> Bad:
    """The request at this place; each is made by itself."""
    rng = np.random.default_rng([seed, place])
    return KINDS[place % len(KINDS)](rng, sample)


def outcome(port: int, bad: Bad) -> str:
    """The status that a service answers a request with, or that it has closed the connection without one."""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE) as client:
            client.sendall(bad.content)
            client.settimeout(PATIENCE if bad.is_whole else IMPATIENCE)
            answer = client.recv(64)
    except TimeoutError:
        return SILENCE
    except ConnectionError:
        return CLOSED
    return answer[9:12].decode("latin-1") if answer.startswith(b"HTTP/1.1 ") else CLOSED


def send_all(
    port: int, n_requests: int, seed: int, sample: Sample, n_clients: int = 8
) -> dict[str, Counter[str]]:
    """Kind -> how often each outcome has come of it. Whole requests that get no answer are "no answer!"."""

    def send(place: int) -> tuple[str, str]:
        bad = bad_request(seed, place, sample)
        found = outcome(port, bad)
        return bad.kind, f"{found}!" if found == SILENCE and bad.is_whole else found

    outcomes: dict[str, Counter[str]] = {}
    with ThreadPoolExecutor(n_clients) as pool:
        for kind, found in pool.map(send, range(n_requests)):
            outcomes.setdefault(kind, Counter())[found] += 1
    return outcomes


def is_survived(outcomes: dict[str, Counter[str]]) -> bool:
    """Whether no request has led to an error of the service itself, or to silence."""
    return not any(
        found.endswith("!") or (found.startswith("5") and found != "503")
        for counts in outcomes.values()
        for found in counts
    )
