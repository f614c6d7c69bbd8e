"""Who waits for whom: small requests share passes in one thread, large ones have threads of their own."""

from __future__ import annotations

import asyncio
from collections import deque
from concurrent.futures import ThreadPoolExecutor

from deccs.serving.answering import CSV, Question, Reply, Served, failed
from deccs.serving.limits import Problem

SMALL = 2**14  # bytes of a body that is answered together with others
TOGETHER = 256  # small requests in one pass at most


class Lanes:
    """Questions wait here until a thread is free; the event loop is never kept waiting.

    While one pass over small requests runs, those that arrive meanwhile wait, and the next pass answers all of
    them. So a single client waits for nobody, and with many clients a request costs a part of a pass.
    """

    def __init__(self, served: Served, n_threads: int) -> None:
        self.served = served
        self.quick = ThreadPoolExecutor(1, "quick", initializer=one_torch_thread)
        self.wide = ThreadPoolExecutor(n_threads, "wide", initializer=one_torch_thread)
        self.waiting: deque[tuple[Question, asyncio.Future[Reply]]] = deque()
        self.is_running = False
        self.n_passes = 0  # over small requests

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
        seconds = self.served.limits.seconds_to_answer
        try:
            async with asyncio.timeout(seconds):
                if question.media == CSV or len(question.body) > SMALL:
                    loop = asyncio.get_running_loop()
                    return await loop.run_in_executor(self.wide, self._alone, question)
                return await self._together(question)
        except TimeoutError:
            problem = Problem(503, f"The service is too busy to answer within {seconds:g} seconds.")
            return failed(problem, self.served.tell)

    def _alone(self, question: Question) -> Reply:
        return self.served.replies([question])[0]

    async def _together(self, question: Question) -> Reply:
        reply: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
        self.waiting.append((question, reply))
        self._start()
        return await reply

    def _start(self) -> None:
        """Answer what waits, unless a pass is running."""
        if self.is_running or not self.waiting:
            return
        n_now = min(len(self.waiting), TOGETHER)
        now = [self.waiting.popleft() for _ in range(n_now)]
        questions = [question for question, reply in now if not reply.done()]  # some have gone
        replies = [reply for _, reply in now if not reply.done()]
        self.is_running = True
        self.n_passes += 1
        loop = asyncio.get_running_loop()
        running = loop.run_in_executor(self.quick, self.served.replies, questions)
        running.add_done_callback(lambda done: self._finish(done, replies))

    def _finish(
        self, done: asyncio.Future[list[Reply]], replies: list[asyncio.Future[Reply]]
    ) -> None:
        self.is_running = False
        error = None if done.cancelled() else done.exception()
        for place, reply in enumerate(replies):
            if not reply.done():
                alone = error or (
                    RuntimeError("the pass was cancelled") if done.cancelled() else None
                )
                reply.set_result(failed(alone, self.served.tell) if alone else done.result()[place])
        self._start()

    def close(self) -> None:
        """End the threads; passes that run are finished, others are not begun."""
        for pool in (self.quick, self.wide):
            pool.shutdown(wait=False, cancel_futures=True)


def one_torch_thread() -> None:
    """Threads that work at the same time gain nothing from more of torch's threads each."""
    import torch

    torch.set_num_threads(1)
