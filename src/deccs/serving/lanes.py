"""Who waits for whom: small requests share passes in one thread, large ones have threads of their own."""

from __future__ import annotations

import asyncio
import sys
import time
from collections import deque
from concurrent.futures import ThreadPoolExecutor

from deccs.serving.answering import CSV, Question, Reply, Served, failed, problem_reply

SMALL = 2**14  # bytes of a body that is answered together with others
TOGETHER = 256  # small requests in one pass at most
MOMENT = 2e-3  # seconds: a pass that takes less is not worth a thread, which costs a third of a millisecond


class Lanes:
    """Questions wait here until they are answered; the event loop is never kept waiting for long.

    While one pass over small requests runs, those that arrive meanwhile wait, and the next pass answers all of
    them. So a single client waits for nobody, and with many clients a request costs a part of a pass. A pass
    runs in a thread, unless the last ones took less than two milliseconds.
    """

    def __init__(self, served: Served, n_threads: int) -> None:
        self.served = served
        self.quick = ThreadPoolExecutor(1, "quick", initializer=one_torch_thread)
        self.wide = ThreadPoolExecutor(n_threads, "wide", initializer=one_torch_thread)
        self.waiting: deque[tuple[Question, asyncio.Future[Reply]]] = deque()
        self.is_running = False
        self.n_passes = 0  # over small requests
        self.seconds = MOMENT  # that such a pass takes, on average of the last ones

    def warm_up(self) -> None:
        """Answer one row in each thread before anybody asks: what is loaded or computed once is there then."""
        nulls = ",".join(["null"] * self.served.reader.n_columns)
        questions = [
            Question(f'{{"row":[{nulls}]}}'.encode(), fields=fields) for fields in ((), ("labels",))
        ]
        for pool in (self.quick, self.wide):
            pool.submit(self.served.replies, questions).result()

    async def reply(self, question: Question) -> Reply:
        """The reply to a question, in time."""
        if question.media != CSV and len(question.body) <= SMALL:
            return await self._together(question)
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(self.served.limits.seconds_to_answer):
                return await loop.run_in_executor(self.wide, self._alone, question)
        except TimeoutError:
            return self._too_late()

    def _give_up(self, reply: asyncio.Future[Reply]) -> None:
        if not reply.done():
            reply.set_result(self._too_late())

    def _too_late(self) -> Reply:
        seconds = self.served.limits.seconds_to_answer
        return problem_reply(503, f"The service is too busy to answer within {seconds:g} seconds.")

    def _alone(self, question: Question) -> Reply:
        return self._replies([question])[0]

    def _replies(self, questions: list[Question]) -> list[Reply]:
        """A reply to each question, whatever happens: else all that come later would wait for ever."""
        try:
            return self.served.replies(questions)
        except BaseException as error:  # noqa: BLE001  polars panics with errors of its own kind
            return [failed(error, self.served.tell)] * len(questions)

    async def _together(self, question: Question) -> Reply:
        loop = asyncio.get_running_loop()
        reply: asyncio.Future[Reply] = loop.create_future()
        self.waiting.append((question, reply))
        if not self.is_running:
            self.is_running = True
            loop.call_soon(self._pass)  # others that have arrived at the same time come first
        seconds = self.served.limits.seconds_to_answer
        clock = loop.call_later(seconds, self._give_up, reply)
        try:
            return await reply
        finally:
            clock.cancel()

    def _pass(self) -> None:
        """Answer what waits: here if that is over in a moment, else in a thread."""
        n_now = min(len(self.waiting), TOGETHER)
        now = [self.waiting.popleft() for _ in range(n_now)]
        now = [(question, reply) for question, reply in now if not reply.done()]  # some have gone
        questions, replies = [one[0] for one in now], [one[1] for one in now]
        self.n_passes += 1
        if self.seconds < MOMENT and sum(len(question.body) for question in questions) < SMALL:
            self._finish(self._timed(questions), replies)
            return
        running = asyncio.get_running_loop().run_in_executor(self.quick, self._timed, questions)
        running.add_done_callback(lambda done: self._finish(done.result(), replies))

    def _timed(self, questions: list[Question]) -> tuple[list[Reply], float]:
        """Replies, and the seconds of a processor that they took."""
        start = time.thread_time()
        return self._replies(questions), time.thread_time() - start

    def _finish(
        self, found: tuple[list[Reply], float], waiting: list[asyncio.Future[Reply]]
    ) -> None:
        """Hand out what a pass has found, and begin the next one."""
        replies, seconds = found
        self.seconds += (seconds - self.seconds) / 8
        for reply, future in zip(replies, waiting, strict=True):
            if not future.done():
                future.set_result(reply)
        if self.waiting:
            asyncio.get_running_loop().call_soon(self._pass)
        else:
            self.is_running = False

    def close(self) -> None:
        """End the threads; passes that run are finished, others are not begun."""
        for pool in (self.quick, self.wide):
            pool.shutdown(wait=False, cancel_futures=True)


def one_torch_thread() -> None:
    """Threads that work at the same time gain nothing from more of torch's threads each, if it is loaded at all."""
    if torch := sys.modules.get("torch"):
        torch.set_num_threads(1)
