"""Work in forks of a process that has imported everything, and done nothing.

Not in forks of the process of the tests: the threads of polars, once they have started, do not come along
with a fork, and whatever needs them there waits forever.
"""

import multiprocessing
import os
import traceback

CONTEXT = multiprocessing.get_context("forkserver" if hasattr(os, "fork") else "spawn")
CONTEXT.set_forkserver_preload(["deccs.app.commands", "tests.fuzz.run_folders"])


def in_fork(function, *arguments):
    """What a function of a module returns in such a process."""
    receiver, sender = CONTEXT.Pipe(duplex=False)
    process = CONTEXT.Process(target=answer, args=(sender, function, arguments))
    process.start()
    sender.close()
    try:
        result, error = receiver.recv()
    except EOFError:
        result, error = None, "it ended without an answer"
    process.join()
    assert not error, error
    return result


def answer(sender, function, arguments):
    try:
        sender.send((function(*arguments), ""))
    except BaseException:
        sender.send((None, traceback.format_exc()))
