"""The service itself: a socket, uvicorn, signals, and an orderly end."""

from __future__ import annotations

import logging
import os
import signal
import socket
import threading
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from typing import Any

from deccs.serving.answering import JSON, Question, Served
from deccs.serving.hosts import is_loopback, names_for
from deccs.serving.request_log import RequestLog

MISSING = (
    "deccs serve needs Starlette, uvicorn, httptools and orjson. Install them with `pip install deccs[serve]`."
)


class ServiceError(OSError):
    """The service cannot be started; the message says why."""


def check_installed() -> None:
    """Raise an ImportError that names the extra where it is missing."""
    try:
        import httptools  # noqa: F401
        import orjson  # noqa: F401
        import starlette  # noqa: F401
        import uvicorn  # noqa: F401
    except ImportError as error:
        raise ImportError(f"{MISSING} ({error})") from error


def bound_socket(host: str, port: int) -> socket.socket:
    """A socket that listens, so that a port in use is told before anything is loaded."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listening = socket.socket(family, kind, protocol)
        try:
            if os.name == "posix":  # elsewhere it would let two services share a port
                listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listening.bind(address)
            listening.listen(1024)
        except OSError:
            listening.close()
            raise
    except OSError as error:
        raise ServiceError(
            f"The service cannot listen on {host} port {port}: {error.strerror or error}. Give another --port, "
            "or 0 for any that is free."
        ) from error
    listening.setblocking(False)
    return listening


def address_of(listening: socket.socket) -> str:
    """The address of a service, for people and programs: http://127.0.0.1:8000."""
    host, port = listening.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def serve(
    served: Served,
    listening: socket.socket,
    *,
    host: str = "127.0.0.1",
    more_hosts: Collection[str] = (),
    n_threads: int | None = None,
    log: RequestLog | None = None,
    is_ready: Callable[[str], object] = print,
) -> None:
    """Answer requests until SIGTERM or Ctrl-C; ``is_ready`` is given the address when the first may come."""
    check_installed()
    import uvicorn

    from deccs.serving.application import Application
    from deccs.serving.protocol import PatientProtocol

    limits = served.limits

    class Server(uvicorn.Server):
        """It ends with exit code 0 when it was told to stop, and at once when it is told twice."""

        async def startup(self, *args: Any, **kwargs: Any) -> None:
            await super().startup(*args, **kwargs)
            is_ready(address)

        @contextmanager
        def capture_signals(self) -> Iterator[None]:
            with signals_as(self.stop):
                yield

        def stop(self, *_: Any) -> None:
            self.force_exit = self.should_exit
            self.should_exit = True

    address = address_of(listening)
    application = Application(
        served,
        n_threads=n_threads or os.cpu_count() or 1,
        hosts=names_for(host, more_hosts),
        is_stopping=lambda: server.should_exit,
        **({} if log is None else {"log": log.request}),  # type: ignore[arg-type]
    )
    protocol: Any = type("Connection", (PatientProtocol,), {"limits": limits})
    config = uvicorn.Config(
        application,
        http=protocol,
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=round(limits.seconds),
        timeout_graceful_shutdown=round(limits.seconds_to_stop),
    )
    quiet_uvicorn(served.tell if log is not None else None)
    warm_up(served)
    server = Server(config)
    try:
        server.run(sockets=[listening])
    finally:
        application.close()


@contextmanager
def signals_as(stop: Callable[..., None]) -> Iterator[None]:
    """Call ``stop`` on SIGTERM and Ctrl-C. Only the main thread can be told."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    kept = {number: signal.signal(number, stop) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for number, handler in kept.items():
            signal.signal(number, handler)


def quiet_uvicorn(tell: Callable[[str], object] | None) -> None:
    """What uvicorn reports goes to the log of the service; of what clients do wrong, the log says enough."""

    class ToLog(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if tell is not None:
                tell(self.format(record))

    logger = logging.getLogger("uvicorn.error")
    logger.handlers, logger.propagate = [ToLog(logging.ERROR)], False


def warm_up(served: Served) -> None:
    """Answer one row before anybody asks: what is loaded or computed once is there by then."""
    columns = ",".join(["null"] * served.reader.n_columns)
    for fields in ((), ("labels",)):
        served.replies([Question(f'{{"row":[{columns}]}}'.encode(), JSON, fields=fields)])
