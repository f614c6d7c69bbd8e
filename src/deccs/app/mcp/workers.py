"""The processes that do the work: one for each call at the same time, kept for the next call."""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
from anyio.abc import Process
from anyio.streams.buffered import BufferedByteReceiveStream

COMMAND = (sys.executable, "-m", "deccs.app.mcp.worker")
AT_ONCE = 2  # each has some 400 MB, and fits use all cores
LONGEST_LINE = 2**24  # bytes
HEARTBEAT = 10.0  # seconds: clients give up on calls that say nothing

Tell = Callable[[str], Awaitable[None]]


class WorkError(Exception):
    """What a worker says of a call that cannot be done."""


class Worker:
    """A process that answers one question at a time; see :mod:`deccs.app.mcp.worker`."""

    def __init__(self, process: Process) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self.process, self.questions = process, process.stdin
        self.answers = BufferedByteReceiveStream(process.stdout)

    async def ask(self, question: Mapping[str, Any], tell: Tell) -> dict[str, Any]:
        """The result, after words of progress."""
        words = "starting"
        await tell(words)
        try:
            await self.questions.send(json.dumps(question).encode() + b"\n")
            while True:
                answer: dict[str, Any] | None = None
                with anyio.move_on_after(HEARTBEAT):
                    line = await self.answers.receive_until(b"\n", LONGEST_LINE)
                    answer = json.loads(line)
                if answer is not None and "result" in answer:
                    return dict(answer["result"])
                if answer is not None and "error" in answer:
                    raise WorkError(answer["error"])
                words = words if answer is None else str(answer["progress"])
                await tell(words)
        except (anyio.IncompleteRead, anyio.EndOfStream, anyio.BrokenResourceError) as error:
            raise WorkError(
                "The process that did the work has ended, perhaps for lack of memory. A fit keeps its progress: "
                "call the tool again with the same arguments. Or fit fewer rows."
            ) from error

    async def stop(self) -> None:
        """Kill the process: what it writes is safe at any moment."""
        with anyio.CancelScope(shield=True):
            if self.process.returncode is None:
                self.process.kill()
            await self.process.aclose()


class Workers:
    """All processes of a server; they work in the folder below which all files are."""

    def __init__(self, folder: Path, command: Sequence[str] = COMMAND) -> None:
        self.folder, self.command = folder, command
        self.free: list[Worker] = []
        self.limit = anyio.CapacityLimiter(AT_ONCE)

    async def ask(self, tool: str, options: Mapping[str, Any], tell: Tell) -> dict[str, Any]:
        """What a worker says; it is killed if the call is canceled meanwhile."""
        async with self.limit, self.one() as worker:
            return await worker.ask({"tool": tool, "options": options}, tell)

    @asynccontextmanager
    async def one(self) -> AsyncIterator[Worker]:
        """A process that nobody else asks; only one that has answered is asked again."""
        worker = self.free.pop() if self.free else await self.started()
        try:
            yield worker
        except BaseException as error:
            has_answered = isinstance(error, WorkError) and error.__cause__ is None
            await (self.kept(worker) if has_answered else worker.stop())
            raise
        await self.kept(worker)

    async def kept(self, worker: Worker) -> None:
        """Keep one process for the next call."""
        if self.free:
            await worker.stop()
        else:
            self.free.append(worker)

    async def started(self) -> Worker:
        process = await anyio.open_process(list(self.command), cwd=self.folder, stderr=None)
        return Worker(process)

    async def stop(self) -> None:
        """End all processes that wait for a call."""
        for worker in self.free:
            await worker.stop()
        self.free.clear()
