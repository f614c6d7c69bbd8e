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

import uvicorn

from deccs.seeds import one_thread_each
from deccs.serving.answering import Served
from deccs.serving.application import Application
from deccs.serving.hosts import names_for
from deccs.serving.protocol import PatientProtocol
from deccs.serving.request_log import RequestLog


class ServiceError(OSError):
    """The service cannot be started; the message says why."""


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
            f"The service cannot listen on {host} port {port}: {error.strerror or error}. Give another "
            "--host or --port; 0 is any port that is free."
        ) from error
    listening.setblocking(False)
    return listening


def address_of(listening: socket.socket) -> str:
    """The address of a service, for people and programs, such as http://127.0.0.1:8000."""
    host, port = listening.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


class Service:
    """A model that answers requests on a socket, from ``run`` to ``stop``."""

    def __init__(
        self,
        served: Served,
        listening: socket.socket,
        *,
        host: str = "127.0.0.1",
        more_hosts: Collection[str] = (),
        n_threads: int | None = None,
        log: RequestLog | None = None,
        is_ready: Callable[[str], object] = lambda address: None,
    ) -> None:
        self.listening = listening
        limits = served.limits
        self.application = Application(
            served,
            n_threads=n_threads or os.cpu_count() or 1,
            hosts=names_for(host, more_hosts),
            is_stopping=lambda: self.server.should_exit,
            log=None if log is None else log.request,
        )
        protocol: Any = type("Connection", (PatientProtocol,), {"limits": limits})
        config = uvicorn.Config(
            self.application,
            http=protocol,
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            timeout_keep_alive=max(1, round(limits.seconds)),
            timeout_graceful_shutdown=max(1, round(limits.seconds_to_stop)),
        )
        report_to(served.tell)
        self.server = Server(config, lambda: is_ready(address_of(listening)))

    def run(self) -> None:
        """Answer requests until the process is told to stop, by SIGTERM, by Ctrl-C or by ``stop``."""
        try:
            with one_thread_each():
                self.application.lanes.warm_up()
                self.server.run(sockets=[self.listening])
        finally:
            self.application.close()

    def stop(self) -> None:
        """Take no more requests, and end when those that run are answered."""
        self.server.stop()


class Server(uvicorn.Server):
    """uvicorn's, which ends with exit code 0 when it was told to stop, and at once when it is told twice."""

    def __init__(self, config: uvicorn.Config, is_ready: Callable[[], object]) -> None:
        super().__init__(config)
        self.is_ready = is_ready

    async def startup(self, *args: Any, **kwargs: Any) -> None:
        await super().startup(*args, **kwargs)
        self.is_ready()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        with signals_as(self.stop):
            yield

    def stop(self, *_: Any) -> None:
        self.force_exit = self.should_exit
        self.should_exit = True


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


def report_to(tell: Callable[[str], object]) -> None:
    """Errors that uvicorn finds are told to the operator; what clients do wrong is its warnings, and is not."""

    class Teller(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            tell(self.format(record))

    logger = logging.getLogger("uvicorn.error")
    logger.handlers, logger.propagate = [Teller(logging.ERROR)], False
