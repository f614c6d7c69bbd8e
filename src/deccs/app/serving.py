"""``deccs serve``: what was asked for, checked, and handed to :mod:`deccs.serving`."""

from __future__ import annotations

from collections.abc import Callable

from deccs.app.output import Output, print_at_once, warnings_as_notes
from deccs.app.request import RequestError, ServeRequest
from deccs.app.run_reading import load_any
from deccs.data.learning_rows import MOST_ROWS
from deccs.serving.answering import Served
from deccs.serving.extra import check_installed
from deccs.serving.hosts import is_loopback
from deccs.serving.limits import Limits
from deccs.serving.request_log import RequestLog


def serve(request: ServeRequest, output: Output) -> None:
    with warnings_as_notes(output):
        serve_run(request, output)


def serve_run(request: ServeRequest, output: Output) -> None:
    """Serve the model of a run until the process is told to stop."""
    check_installed()
    from deccs.serving.server import Service, bound_socket

    limits = limits_of(request)
    listening = bound_socket(request.host, request.port)
    if not is_loopback(listening.getsockname()[0]):
        output.note(
            f"Warning: everyone who reaches {request.host} can ask this service, and nothing is encrypted. Put "
            "a proxy with TLS and a login before it, or serve on 127.0.0.1."
        )
    with listening:
        model, preprocessing = load_any(request.run)
        log = RequestLog(output.note) if not output.quiet else None
        tell: Callable[[str], object] = log or (lambda text: None)
        try:
            Service(
                Served(model, preprocessing, limits, tell),
                listening,
                host=request.host,
                more_hosts=request.allow_host,
                n_threads=request.threads,
                log=log,
                is_ready=print_at_once,
            ).run()
        finally:
            if log is not None:
                log.close()
    output.note("Stopped.")


def limits_of(request: ServeRequest) -> Limits:
    """The limits that were asked for, if they can be kept."""
    bounds: dict[str, tuple[int | None, int, int]] = {
        "--port": (request.port, 0, 65_535),
        "--most-rows": (request.most_rows, 1, MOST_ROWS),
        "--most-bytes": (request.most_bytes, 1_000, 2**30),
        "--threads": (request.threads, 1, 1_024),
    }
    for name, (value, least, most) in bounds.items():
        if value is not None and not least <= value <= most:
            raise RequestError(f"{name} must be from {least:,} to {most:,}, got {value:,}.")
    together = max(Limits.bytes_together, 2 * request.most_bytes)
    return Limits(body_bytes=request.most_bytes, rows=request.most_rows, bytes_together=together)
