"""The routes of the service, as a Starlette application.

FastAPI on the same server takes 115 microseconds of CPU time for a request where Starlette takes 47: bodies are read by
:mod:`deccs.serving.rows` in any case, and the OpenAPI document names the model's columns, so it is written here.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, MutableMapping, Sequence
from email.message import Message
from functools import lru_cache
from typing import Any
from urllib.parse import parse_qs

from starlette.exceptions import HTTPException
from starlette.routing import Route, Router

from deccs.serving.answering import (
    CSV,
    JSON,
    NPY,
    Question,
    Reply,
    Served,
    as_json,
    failed,
    problem_reply,
)
from deccs.serving.facts import facts_of
from deccs.serving.hosts import is_known, is_same_site
from deccs.serving.lanes import SMALL, Lanes
from deccs.serving.limits import Budget, Problem
from deccs.serving.openapi import document_for
from deccs.serving.rows import quoted

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Log = Callable[[Scope, Reply, float], object]

BODIES = {
    JSON: JSON,
    CSV: CSV,
    NPY: NPY,
    "application/x-numpy": NPY,
    "application/vnd.numpy": NPY,
    "application/octet-stream": NPY,
}
HEADERS = [(b"x-content-type-options", b"nosniff"), (b"cache-control", b"no-store")]
MOST_QUERY = 4_096  # bytes


class Gone(Exception):
    """The client has closed the connection."""


class Application:
    """One service: a model, and all that its requests share."""

    def __init__(
        self,
        served: Served,
        *,
        n_threads: int,
        hosts: frozenset[str],
        is_stopping: Callable[[], bool] = lambda: False,
        log: Log | None = None,
    ) -> None:
        self.served, self.hosts, self.is_stopping, self.log = served, hosts, is_stopping, log
        self.lanes = Lanes(served, n_threads)
        self.budget = Budget(served.limits.bytes_together)
        facts = facts_of(served)
        self.model = Reply(200, as_json(facts))
        self.openapi = Reply(200, as_json(document_for(served, facts)))
        routes: list[tuple[str, Answerer, list[str]]] = [
            ("/v1/predict", self.predict, ["POST"]),
            ("/v1/model", self.fixed(self.model), ["GET"]),
            ("/openapi.json", self.fixed(self.openapi), ["GET"]),
            ("/health", self.fixed(Reply(200, as_json({"status": "ok"}))), ["GET"]),
            ("/ready", self.ready, ["GET"]),
        ]
        self.paths = [path for path, _, _ in routes]
        self.router = Router(
            [Route(path, Endpoint(answer), methods=methods) for path, answer, methods in routes],
            redirect_slashes=False,
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, whatever it is."""
        if scope["type"] != "http":
            return
        start = time.perf_counter()
        scope["app"], scope["deccs.body"] = self.router, receive
        try:
            self.check_host(scope)
            reply = await self.routed(scope, receive, send)
        except Gone:
            return
        except Problem as problem:
            reply = problem_reply(problem.status, str(problem))
        except Exception as error:  # noqa: BLE001  the client gets a reply, the operator a traceback
            reply = failed(error, self.served.tell)
        await answer_with(reply, send)
        if self.log is not None:
            self.log(scope, reply, time.perf_counter() - start)

    async def routed(self, scope: Scope, receive: Receive, send: Send) -> Reply:
        """What the endpoint of the path says."""
        try:
            await self.router(scope, receive, send)
        except HTTPException as error:
            words = {
                404: f"There is no such page. Try {', '.join(self.paths)}.",
                405: f"This page must be asked with {(error.headers or {}).get('Allow', 'another method')}.",
            }
            raise Problem(error.status_code, words.get(error.status_code, error.detail)) from None
        reply: Reply = scope["deccs.reply"]
        return reply

    def check_host(self, scope: Scope) -> None:
        """Raise a Problem for requests of a page in a browser that only pretends to belong here."""
        hosts = [value for name, value in scope["headers"] if name == b"host"]
        if len(hosts) != 1 or not is_known(hosts[0], self.hosts):
            raise Problem(
                421,
                "The Host header must be an address, or a name that this service knows. Start it with "
                "--allow-host NAME to let it answer to another name.",
            )
        for name, value in scope["headers"]:
            if name == b"origin" and not is_same_site(value, hosts[0]):
                raise Problem(403, "Pages of other sites may not use this service.")

    def fixed(self, reply: Reply) -> Answerer:
        async def answer(_: Scope) -> Reply:
            return reply

        return answer

    async def ready(self, _: Scope) -> Reply:
        if self.is_stopping():
            raise Problem(503, "The service is stopping.")
        return Reply(200, as_json({"status": "ready"}))

    async def predict(self, scope: Scope) -> Reply:
        question = question_of(scope)
        taken: list[int] = []
        try:
            body = await self.body_of(scope, taken)
            return await self.lanes.reply(Question(body, **question))
        finally:
            self.budget.give_back(sum(taken))

    async def body_of(self, scope: Scope, taken: list[int]) -> bytes:
        """The body, if it is not too large; its bytes are taken from the budget as they come."""
        most = self.served.limits.body_bytes
        announced = header(scope, b"content-length")
        if announced is not None and (not announced.isdigit() or int(announced[:20]) > most):
            raise too_large(most)
        if header(scope, b"content-encoding") not in (None, b"identity"):
            raise Problem(415, "Compressed bodies are not read. Send the body as it is.")
        parts, n_bytes, receive = [], 0, scope["deccs.body"]
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise Gone
            part = message.get("body", b"")
            n_bytes += len(part)
            if n_bytes > most:
                raise too_large(most)
            if n_bytes > SMALL:  # small ones have room enough: there are not so many connections
                new = n_bytes - sum(taken)
                self.budget.take(new)
                taken.append(new)
            parts.append(part)
            if not message.get("more_body"):
                return parts[0] if len(parts) == 1 else b"".join(parts)

    def close(self) -> None:
        self.lanes.close()


Answerer = Callable[[Scope], Awaitable[Reply]]


class Endpoint:
    """What Starlette calls for a route; the reply is sent by the application."""

    def __init__(self, answer: Answerer) -> None:
        self.answer = answer

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope["deccs.reply"] = await self.answer(scope)


def header(scope: Scope, wanted: bytes) -> bytes | None:
    """A header that occurs at most once."""
    values = [value for name, value in scope["headers"] if name == wanted]
    if len(values) > 1:
        raise Problem(400, f"The header {wanted.decode()} must be there once, got {len(values)}.")
    return values[0] if values else None


def question_of(scope: Scope) -> dict[str, Any]:
    """What the headers and the query of a request say of it."""
    kind = header(scope, b"content-type") or b""
    accept = header(scope, b"accept") or b"*/*"
    return question_in(kind, accept, scope["query_string"])


@lru_cache(maxsize=256)
def question_in(kind: bytes, accept: bytes, query: bytes) -> dict[str, Any]:
    """The parts of a question, as keywords."""
    given = Message()
    given["content-type"] = kind.decode("latin-1") or "none/none"
    media = BODIES.get(given.get_content_type())
    if media is None:
        raise Problem(415, f"The Content-Type must be one of {', '.join(dict.fromkeys(BODIES))}.")
    charset = given.get_param("charset")
    if charset is not None and str(charset).lower() not in ("utf-8", "utf8", "us-ascii"):
        raise Problem(415, "The body must be UTF-8.")
    if len(query) > MOST_QUERY:
        raise Problem(414, "The address is too long.")
    asked = parse_qs(query.decode("latin-1"), keep_blank_values=True)
    if unknown := sorted(asked.keys() - {"fields"}):
        raise Problem(
            400, f"There is no parameter {quoted(unknown)}. Give fields=labels,names, or none."
        )
    fields = ",".join(asked.get("fields", ())).split(",")
    return {
        "media": media,
        "has_header": str(given.get_param("header")).lower() != "absent",
        "fields": tuple(dict.fromkeys(name.strip() for name in fields if name.strip())),
        "reply": NPY if wants_npy(accept) else JSON,
    }


def wants_npy(accept: bytes) -> bool:
    """Whether a client asks for an array and not for JSON.

    >>> wants_npy(b"application/x-npy"), wants_npy(b"*/*")
    (True, False)
    """
    kinds: Sequence[bytes] = [
        part.partition(b";")[0].strip().lower() for part in accept.split(b",")
    ]
    is_npy = {name.encode() for name, media in BODIES.items() if media == NPY}
    return bool(is_npy & set(kinds)) and JSON.encode() not in kinds


def too_large(most: int) -> Problem:
    return Problem(
        413,
        f"The body is larger than {most:,} bytes. Send the rows in parts, or start the service with a larger "
        "--most-bytes.",
    )


async def answer_with(reply: Reply, send: Send) -> None:
    """Send a reply. After an error the connection is closed: the rest of a body may still be coming."""
    headers = [
        (b"content-type", reply.media.encode()),
        (b"content-length", b"%d" % len(reply.body)),
        *HEADERS,
    ]
    if reply.status >= 400:
        headers.append((b"connection", b"close"))
        if reply.status == 503:
            headers.append((b"retry-after", b"1"))
    await send({"type": "http.response.start", "status": reply.status, "headers": headers})
    await send({"type": "http.response.body", "body": reply.body})
