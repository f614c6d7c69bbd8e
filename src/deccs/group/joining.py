"""Joining the processes that a launcher has started."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from datetime import timedelta
from typing import Any

from deccs.group.group import ALONE, Group, ProcessGroup
from deccs.group.watch import BEAT, GroupError, Watch

NEEDED = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")  # what torchrun and others set
PATIENCE = 60.0  # seconds to wait for the other processes at the start
NO_LIMIT = timedelta(days=30)  # others may have to wait for hours; the watch notices who is gone
LAST_WORDS = 2.5 * BEAT  # seconds for the others to hear why the first process ends

_groups: list[Group] = [ALONE]


def current_group() -> Group:
    """The group that fits of this process are done by."""
    return _groups[-1]


def is_launched() -> bool:
    """Whether a launcher has started this process as one of several."""
    return all(name in os.environ for name in NEEDED) and os.environ["WORLD_SIZE"] != "1"


@contextmanager
def distributed(patience: float = PATIENCE) -> Iterator[Group]:
    """Fit models together with the other processes that torchrun, or another launcher, has started.

    Inside the block every process must call the same ``fit`` with the same parameters and the same data. Each reads
    and labels its own part of the rows; all get the same model. The first process leads: its seed, checkpoint and
    callbacks count. If a process ends, the others end within a minute, with a message that says which one it was.

    Where torch.distributed is set up already, its processes are used; else the variables of torchrun are read.

    Parameters
    ----------
    patience : float
        Seconds to wait for the other processes.

    Examples
    --------
    In a file ``fit.py``, started by ``torchrun --nproc-per-node 2 fit.py``::

        with deccs.distributed() as group:
            model = deccs.DECCS(10, random_state=0).fit("sales/*.parquet")
        if group.rank == 0:
            model.save("model")
    """
    import torch.distributed as dist

    if len(_groups) > 1:
        raise GroupError(
            "This process is in a deccs.distributed() block already. Leave that first."
        )
    if not dist.is_available():
        raise GroupError("This build of torch has no torch.distributed. Install another one.")
    is_ours = not dist.is_initialized()
    if is_ours:
        join_by_environment(patience)
    if dist.get_world_size() == 1:
        group: Group = ALONE
        handle = None
    else:
        handle = dist.new_group(backend="gloo", timeout=NO_LIMIT)
        rank, size = dist.get_rank(), dist.get_world_size()
        group = ProcessGroup(handle, rank, size, watch_over(handle, rank, size, patience))
    _groups.append(group)
    try:
        with group.watch.ending_in_words() if isinstance(group, ProcessGroup) else nullcontext():
            yield group
            group.each(int)  # nobody leaves before the others are done
            if isinstance(group, ProcessGroup):
                group.watch.stop()
                group.each(int)  # the store is there until nobody uses it any more
    except BaseException as error:
        say_goodbye(group, error)
        raise
    finally:
        _groups.pop()
        if isinstance(group, ProcessGroup):
            group.watch.stop()
        if is_ours:
            dist.destroy_process_group()


def say_goodbye(group: Group, error: BaseException) -> None:
    """Tell the others why this process ends, unless they have raised the same error."""
    if isinstance(group, ProcessGroup) and error is not group.watch.known:
        group.watch.tell(error)
        if group.is_first:  # it keeps the store that the others hear it by
            time.sleep(LAST_WORDS)


def join_by_environment(patience: float) -> None:
    """Set up torch.distributed from the variables that launchers set, or say what is wrong with them."""
    from torch.distributed import PrefixStore, TCPStore, init_process_group  # type: ignore[attr-defined]

    absent = [name for name in NEEDED if not os.environ.get(name)]
    if absent:
        raise GroupError(
            f"No launcher has started this process: {', '.join(absent)} are not set. Start the program with "
            "torchrun, such as: torchrun --standalone --nproc-per-node 2 fit.py"
        )
    try:
        rank, size, port = (int(os.environ[name]) for name in ("RANK", "WORLD_SIZE", "MASTER_PORT"))
    except ValueError as error:
        raise GroupError(
            f"RANK, WORLD_SIZE and MASTER_PORT must be whole numbers: {error}."
        ) from None
    if not 0 <= rank < size:
        raise GroupError(
            f"RANK must be from 0 to WORLD_SIZE - 1, got RANK={rank}, WORLD_SIZE={size}."
        )
    place = f"{os.environ['MASTER_ADDR']}:{port}"
    keeps_store = rank == 0 and os.environ.get("TORCHELASTIC_USE_AGENT_STORE") != "True"
    try:
        store: Any = TCPStore(
            os.environ["MASTER_ADDR"],
            port,
            is_master=keeps_store,
            timeout=timedelta(seconds=patience),
            wait_for_workers=False,
        )
    except RuntimeError as error:
        if keeps_store:
            message = (
                f"Process 0 cannot listen at {place}: {first_line(error)}. Another run may use the port: give "
                "each a MASTER_PORT of its own (torchrun: --master-port, or --standalone)."
            )
        else:
            message = (
                f"Process {rank} of {size} on {socket.gethostname()} cannot reach process 0 at {place} within "
                f"{patience:.0f} seconds. Check MASTER_ADDR and MASTER_PORT (torchrun: --rdzv-endpoint), and that "
                "process 0 runs and no firewall is between the machines."
            )
        raise GroupError(message) from error
    store = PrefixStore(f"deccs/{os.environ.get('TORCHELASTIC_RESTART_COUNT', '0')}", store)
    wait_for_all(store, rank, size, patience, place)
    try:
        init_process_group("gloo", store=store, rank=rank, world_size=size, timeout=NO_LIMIT)
    except RuntimeError as error:
        raise GroupError(
            f"The processes have met at {place} but cannot connect to each other: {first_line(error)}. Where a "
            "machine has several networks, set GLOO_SOCKET_IFNAME to the name of the one to use, such as eth0."
        ) from error


def wait_for_all(store: Any, rank: int, size: int, patience: float, place: str) -> None:
    """Wait until every process has come; one of them that comes twice or not at all is named."""
    if store.add(f"here/{rank}", 1) > 1:
        raise GroupError(
            f"Two processes at {place} have RANK={rank}: two runs may use one port, or the launcher numbers "
            "processes wrongly. Give each run a MASTER_PORT of its own."
        )
    try:
        store.wait([f"here/{other}" for other in range(size)], timedelta(seconds=patience))
    except RuntimeError as error:
        absent = [str(other) for other in range(size) if not store.check([f"here/{other}"])]
        raise GroupError(
            f"Of {size} processes, {len(absent)} have not come to {place} within {patience:.0f} seconds: number "
            f"{', '.join(absent)}. Check that all were started, with the same WORLD_SIZE."
        ) from error


def watch_over(handle: Any, rank: int, size: int, patience: float) -> Watch:
    """The watch of this process. The first process keeps a store for all of them, at a port that is free."""
    import torch.distributed as dist
    from torch.distributed import TCPStore  # type: ignore[attr-defined]

    timeout = timedelta(seconds=patience)
    place: list[Any] = [None]
    store: Any = None
    own_host = os.environ.get("MASTER_ADDR")  # where process 0 is, as this process sees it
    if rank == 0:
        host = own_host or socket.gethostname()
        store = TCPStore(host, 0, is_master=True, timeout=timeout, wait_for_workers=False)
        place = [(host, store.port)]
    dist.broadcast_object_list(place, dist.get_global_rank(handle, 0), group=handle)
    if rank:
        host, port = place[0]
        store = TCPStore(own_host or host, port, is_master=False, timeout=timeout)
    watch = Watch(store, rank, size)
    watch.start()
    return watch


def first_line(error: BaseException) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0].rstrip(".")
