"""``make bench-serve``: how fast ``deccs serve`` answers, what hostile clients do to it, and how it ends.

Two quick fits of PENDIGITS are served: ``classifier`` takes its labels from a linear classifier of the representation
(``views=None``), ``neighbor`` from the nearest of 10,000 rows (a partition of the views). CPU seconds of the server
alone are told beside requests a second: clients and other programs need the cores, too.
"""

from __future__ import annotations

import argparse
import asyncio
import http.client
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from deccs import DECCS, Network, Pretraining, Rounds, datasets
from deccs.serving.npy import npy_of
from deccs_paper import malformed, records

CONNECTIONS = (1, 16, 64)
ROWS = 10_000  # of a batch
LEAST, PATIENCE = 3, 60.0  # answers for each client, and seconds to wait for them
QUICK: dict[str, Any] = {
    "pretraining": Pretraining(n_epochs=5),
    "rounds": Rounds(n_rounds=1, n_init=1, n_steps=50),
}
# Both with the network that DECCS takes for a table of this size.
MODELS: dict[str, dict[str, Any]] = {
    "classifier": {"views": None, "network": Network(layers=(256, 256, 512, 10))},
    "neighbor": {"views": "auto"},
}
TASKS = ("single", "batch", "malformed", "end")
TICKS = os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 100


@dataclass(frozen=True)
class Running:
    """A service in a process of its own."""

    process: subprocess.Popen[str]
    port: int
    seconds_to_start: float

    @property
    def cpu_seconds(self) -> float:
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / TICKS

    @property
    def memory_mb(self) -> float:
        lines = Path(f"/proc/{self.process.pid}/status").read_text().splitlines()
        (kilobytes,) = (line.split()[1] for line in lines if line.startswith("VmRSS"))
        return round(int(kilobytes) / 1e3, 1)


@contextmanager
def started(model: Path, port: int = 0) -> Iterator[Running]:
    """``deccs serve`` with this model, killed at the end if it still runs."""
    start = time.perf_counter()
    command = [sys.executable, "-m", "deccs", "serve", str(model), "--port", str(port), "--quiet"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            address = process.stdout.readline()
            seconds = round(time.perf_counter() - start, 2)
            yield Running(process, int(address.rpartition(":")[2]), seconds)
        finally:
            process.kill()


def ask(
    port: int, body: bytes, kind: str = "application/json", query: str = ""
) -> tuple[int, bytes]:
    """(status, body) of one request."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
    try:
        connection.request("POST", f"/v1/predict{query}", body, {"Content-Type": kind})
        response = connection.getresponse()
        return response.status, response.read()
    finally:
        connection.close()


class Client(asyncio.Protocol):
    """Sends requests one after the other on one connection, and counts the answers."""

    def __init__(self, requests: list[bytes], place: int) -> None:
        self.requests, self.place = requests, place
        self.n_answers, self.n_bad, self.left = 0, 0, 0
        self.latencies: list[float] = []
        self.head = b""

    def connection_made(self, transport: Any) -> None:
        self.transport = transport
        self.send()

    def send(self) -> None:
        self.place += 1
        self.sent = time.perf_counter()
        self.transport.write(self.requests[self.place % len(self.requests)])

    def data_received(self, data: bytes) -> None:
        if not self.left:
            self.head += data
            end = self.head.find(b"\r\n\r\n")
            if end < 0:
                return
            head, data = self.head[:end].lower(), self.head[end + 4 :]
            self.n_bad += not head.startswith(b"http/1.1 200")
            self.left = int(head.partition(b"content-length:")[2].partition(b"\r\n")[0])
            self.head = b""
        self.left -= len(data)
        if not self.left:
            self.n_answers += 1
            self.latencies.append(time.perf_counter() - self.sent)
            self.send()


async def load(
    port: int, requests: list[bytes], n_connections: int, seconds: float
) -> dict[str, Any]:
    """Keep so many connections busy for some seconds."""
    loop = asyncio.get_running_loop()
    clients: list[Client] = []
    for place in range(n_connections):
        make = partial(Client, requests, place * 97)
        _, client = await loop.create_connection(make, "127.0.0.1", port)
        clients.append(client)
    start, n_answers, elapsed = time.perf_counter(), 0, 0.0
    while elapsed < seconds or (n_answers < LEAST * n_connections and elapsed < PATIENCE):
        await asyncio.sleep(min(seconds, 0.2))
        elapsed = time.perf_counter() - start
        n_answers = sum(client.n_answers for client in clients)
    latencies = (
        np.array([each for client in clients for each in client.latencies] or [np.nan]) * 1_000
    )
    for client in clients:
        client.transport.abort()
    return {
        "connections": n_connections,
        "requests": n_answers,
        "failed": sum(client.n_bad for client in clients),
        "requests_per_second": round(n_answers / elapsed, 1),
        "median_ms": round(float(np.median(latencies)), 2),
        "p99_ms": round(float(np.quantile(latencies, 0.99)), 2),
    }


def measured(
    service: Running, requests: list[bytes], n_connections: int, seconds: float, n_rows: int
) -> dict[str, Any]:
    """The load, and the CPU time of the server for it: the best of three times, after one that does not count.

    Where other programs share the cores and their caches, every request takes longer.
    """
    asyncio.run(load(service.port, requests, n_connections, min(1.0, seconds)))
    times = [one_load(service, requests, n_connections, seconds, n_rows) for _ in range(3)]
    return min(times, key=lambda found: found["server_cpu_us_per_request"] or np.inf)


def one_load(
    service: Running, requests: list[bytes], n_connections: int, seconds: float, n_rows: int
) -> dict[str, Any]:
    before = service.cpu_seconds
    found = asyncio.run(load(service.port, requests, n_connections, seconds))
    used, n_answers = service.cpu_seconds - before, found["requests"]
    return found | {
        "rows_per_request": n_rows,
        "rows_per_second": round(found["requests_per_second"] * n_rows),
        "server_cpu_us_per_request": round(used / n_answers * 1e6) if n_answers else None,
        "rows_per_server_cpu_second": round(n_answers * n_rows / used) if used else None,
    }


def single_rows(service: Running, X: np.ndarray, seconds: float) -> Iterator[dict[str, Any]]:
    """One row a request, by 1, 16 and 64 clients."""
    for query in ("?fields=labels", ""):
        requests = [
            malformed.post(json.dumps({"rows": [row]}).encode(), query=query)
            for row in X[:2_000].tolist()
        ]
        for n_connections in CONNECTIONS:
            found = measured(service, requests, n_connections, seconds, 1)
            yield {"fields": query.partition("=")[2] or "all", "body": "json"} | found


def batches(service: Running, X: np.ndarray, seconds: float) -> Iterator[dict[str, Any]]:
    """10,000 rows a request, by two clients."""
    X = X[np.arange(ROWS) % len(X)]
    names = ",".join(names_of(X))
    csv = "\n".join([names, *(",".join(map(str, row)) for row in X.tolist())]).encode()
    accept = "Accept: application/x-npy\r\n"
    ways = {
        ("npy", "labels"): malformed.post(npy_of(X), "application/x-npy", more=accept),
        ("npy, single precision", "labels"): malformed.post(
            npy_of(X.astype(np.float32)), "application/x-npy", more=accept
        ),
        ("json", "labels"): malformed.post(json.dumps(X.tolist()).encode(), query="?fields=labels"),
        ("csv", "labels"): malformed.post(csv, "text/csv", query="?fields=labels"),
        ("npy", "all"): malformed.post(npy_of(X), "application/x-npy"),
    }
    for (body, fields), request in ways.items():
        yield {"fields": fields, "body": body} | measured(service, [request], 2, seconds, ROWS)


def hostile(service: Running, X: np.ndarray, n_requests: int, seed: int) -> dict[str, Any]:
    """Malformed requests; memory before and after, and whether good ones still get the same answers."""
    sample = malformed.Sample(names_of(X), X)
    good = [json.dumps(X[start : start + 5].tolist()).encode() for start in range(0, 200, 5)]
    malformed.send_all(
        service.port, n_requests // 10, seed + 1, sample
    )  # what stays after the first ones
    before, memory = [ask(service.port, body) for body in good], service.memory_mb
    start = time.perf_counter()
    outcomes = malformed.send_all(service.port, n_requests, seed, sample)
    seconds = time.perf_counter() - start
    middle = service.memory_mb
    malformed.send_all(service.port, n_requests, seed + 2, sample)
    return {
        "requests": 2 * n_requests,
        "seed": seed,
        "seconds_for_half": round(seconds, 1),
        "survived": malformed.is_survived(outcomes) and service.process.poll() is None,
        "same_answers": before == [ask(service.port, body) for body in good],
        "memory_mb_before": memory,
        "memory_mb_after_half": middle,
        "memory_mb_after": service.memory_mb,
        "outcomes": {kind: dict(counts) for kind, counts in outcomes.items()},
    }


def ends(model: Path, X: np.ndarray) -> dict[str, Any]:
    """A kill and a restart on the same port; a stop while a request runs."""
    body = json.dumps(X[:50].tolist()).encode()
    with started(model) as service:
        port, first = service.port, ask(service.port, body)
        service.process.kill()
        service.process.wait()
    with started(model, port) as service:
        is_same = ask(port, body) == first
        large = npy_of(X[np.arange(60_000) % len(X)])
        answers: list[tuple[int, bytes]] = []
        asking = threading.Thread(
            target=lambda: answers.append(ask(port, large, "application/x-npy"))
        )
        asking.start()
        time.sleep(0.15)
        runs = asking.is_alive()
        service.process.send_signal(signal.SIGTERM)
        time.sleep(0.3)
        is_refused = not is_open(port)
        asking.join()
        code = service.process.wait(60)
    status, answer = answers[0]
    return {
        "same_answer_after_kill": is_same,
        "seconds_to_start": service.seconds_to_start,
        "request_ran_at_sigterm": runs,
        "its_status": status,
        "its_rows": len(json.loads(answer)["labels"]),
        "new_connections_refused": is_refused,
        "exit_code": code,
    }


def is_open(port: int) -> bool:
    try:
        ask(port, b"[]")
    except OSError:
        return False
    return True


def names_of(X: np.ndarray) -> list[str]:
    return [f"x{place}" for place in range(X.shape[1])]


def quick_model(name: str, X: np.ndarray, path: Path) -> None:
    """A fit of some seconds, saved as ``deccs fit`` does it."""
    from deccs import storage

    model = DECCS(10, random_state=0, **QUICK, **MODELS[name]).fit(X)
    storage.save(model, path, preprocessing={"feature_names": names_of(X), "missing": "auto"})


def measurements(
    name: str, path: Path, X: np.ndarray, tasks: list[str], seconds: float, n_bad: int, seed: int
) -> Iterator[dict[str, Any]]:
    """Each result as it comes."""
    speeds: dict[str, Callable[..., Iterator[dict[str, Any]]]] = {
        "single": single_rows,
        "batch": batches,
    }
    with started(path) as service:
        for task in tasks:
            if task in speeds:
                for found in speeds[task](service, X, seconds):
                    yield {"task": task, "model": name} | found
        if "malformed" in tasks:
            yield {"task": "malformed", "model": name} | hostile(service, X, n_bad, seed)
    if "end" in tasks:
        yield {"task": "end", "model": name} | ends(path, X)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m deccs_paper.serving_speed", description=__doc__
    )
    parser.add_argument("--tasks", nargs="+", default=list(TASKS), choices=TASKS)
    parser.add_argument("--models", nargs="+", default=list(MODELS), choices=list(MODELS))
    parser.add_argument("--seconds", type=float, default=5.0, help="of each load")
    parser.add_argument("--malformed", type=int, default=10_000, help="requests, sent twice")
    parser.add_argument("--seed", type=int, default=0, help="of the malformed requests")
    parser.add_argument("--keep", type=Path, help="a folder for the models, which are used again")
    parser.add_argument("--out", type=Path, help="a file to which a JSON line per result is added")
    given = parser.parse_args(arguments)
    X = datasets.load("pendigits", return_X_y=True)[0].astype(np.float64)  # (10992, 16)
    with tempfile.TemporaryDirectory(prefix="deccs-serving-") as folder:
        for name in given.models:
            path = (given.keep or Path(folder)) / name
            if not path.exists():
                quick_model(name, X, path)
            for found in measurements(
                name, path, X, given.tasks, given.seconds, given.malformed, given.seed
            ):
                print(" ".join(f"{key} {value}" for key, value in found.items()), flush=True)
                if given.out:
                    records.append(
                        given.out, {"experiment": "serving"} | found | records.made_with()
                    )
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
