"""Processes that work together: what they share, and what becomes of them when one of them ends."""

import numpy as np
import pytest
import torch

from deccs.group.group import ALONE, Group, attempt, can_be_sent, check_same, share
from deccs.group.joining import distributed
from deccs.group.watch import GroupError
from tests.helpers.processes import free_port, program, run_together, start, wait_for
from tests.helpers.slow import mostly_slow


@pytest.mark.parametrize("n", [0, 1, 2, 5, 100, 101])
@pytest.mark.parametrize("size", [1, 2, 3, 7])
def test_every_thing_is_in_one_share(n, size):
    shares = [range(n)[share(n, rank, size)] for rank in range(size)]
    assert [thing for part in shares for thing in part] == list(range(n))
    sizes = [len(part) for part in shares]
    assert max(sizes) - min(sizes) <= 1


def test_a_process_alone_does_everything_itself():
    rows, tensor = np.arange(6).reshape(3, 2), torch.ones(2)
    ALONE.average([tensor])
    assert (ALONE.once(lambda: 3), ALONE.each(lambda: 4), ALONE.lead(lambda: 5)) == (3, [4], 5)
    assert ALONE.joined(rows) is rows and tensor.tolist() == [1, 1]
    assert ALONE.deal(lambda items, context: [item + context for item in items], [1, 2], 10) == [
        11,
        12,
    ]


def test_errors_that_cannot_be_sent_are_told_in_words():
    class Local(Exception):  # nobody else knows the class
        pass

    def fail():
        raise Local("row 7")

    assert not can_be_sent(Local("row 7"))
    error = attempt(fail).error
    assert type(error) is GroupError and str(error) == "Local: row 7"


class Two(Group):
    size = 2

    def __init__(self, other):
        self.other = other

    def each(self, work):
        return [work(), self.other]


def test_processes_with_different_settings_are_told_so():
    check_same(Two({"k": "3"}), {"k": "3"})
    with pytest.raises(
        GroupError, match=r"Process 1 fits something else.*k \(4 there, 3 in process 0\)"
    ):
        check_same(Two({"k": "4"}), {"k": "3"})
    with pytest.raises(GroupError, match=r"rows \(None there, 10 in process 0\)"):
        check_same(Two({}), {"rows": "10"})


def test_three_processes_share_and_exchange():
    ended = run_together(
        """
        import torch
        rank = group.rank
        assert group.size == 3 and group.each(lambda: rank * 2) == [0, 2, 4]
        assert group.once(lambda: rank + 7) == 7
        rows = group.joined(np.full((rank, 2), rank, dtype=np.int16))   # the first has none
        assert rows.tolist() == [[1, 1], [2, 2], [2, 2]] and rows.dtype == np.int16
        tensors = [torch.tensor([float(rank), 1.0]), torch.tensor(3 * rank), torch.tensor(3.0 * rank)]
        group.average(tensors)
        assert tensors[0].tolist() == [1, 1] and tensors[1] == 3 * rank and tensors[2] == 3
        doubled = lambda: group.deal(np.multiply, [1, 2, 3, 4], 2)    # by the first process: its context is 2
        assert group.lead(doubled, context=10 * rank) == [2, 20, 60, 8]
        assert group.lead(lambda: group.deal(np.multiply, [5], 2)) == [10]
        own = lambda items, context: [item for item in items]         # cannot be sent
        assert group.lead(lambda: group.deal(own, [1, 2])) == [1, 2]
        for work in (group.once, group.each):
            try:
                work(lambda: 1 / (2 - rank) if work == group.each else 1 / 0)
                raise AssertionError
            except ZeroDivisionError as error:
                assert group.all_know(error)
        try:
            group.lead(lambda: [][1])
        except IndexError as error:
            assert group.all_know(error)
        print(rank, group.own(7), group.hosts == [__import__("socket").gethostname()])
        """,
        3,
    )
    assert [(one.code, one.err) for one in ended] == [(0, "")] * 3
    assert ended[2].out == "2 slice(4, 7, None) True\n"


ENDINGS = {
    "error": ("raise ValueError('row 7 is bad')", "has ended: ValueError: row 7 is bad"),
    "kill": ("os.kill(os.getpid(), signal.SIGKILL)", "has ended without a word"),
    "exit": ("os._exit(0)", "has ended without a word"),
}


@pytest.mark.parametrize("ending", mostly_slow(ENDINGS, ("kill",)))
@pytest.mark.parametrize("who", [pytest.param(0, marks=pytest.mark.slow), 1])
def test_the_others_hear_of_a_process_that_ends(ending, who):
    """Whether they wait for it or compute; the program itself need not look."""
    act, words = ENDINGS[ending]
    ended = run_together(
        f"""
        group.each(int)
        if group.rank == {who}:
            time.sleep(0.5)
            {act}
        if group.rank == 2:
            for _ in range(100):     # computes
                time.sleep(0.5)
                group.check()
        group.each(int)              # waits
        """,
        3,
    )
    for rank, one in enumerate(ended):
        if rank != who:
            assert one.code != 0 and one.seconds < 30
            assert f"Process {who} of 3 (" in one.err
            told = words in one.err or (who == 0 and "has ended" in one.err)
            assert told, one.err


def test_a_process_that_only_computes_is_ended():
    ended = run_together(
        """
        import deccs.group.watch as watch
        watch.GRACE = 2
        group.each(int)
        if group.rank == 1:
            os._exit(3)
        while True:
            sum(range(1000))
        """,
        2,
    )
    assert ended[0].code == 75 and "deccs: Process 1 of 2" in ended[0].err
    assert ended[0].seconds < 30


@pytest.mark.slow
def test_a_silent_process_counts_as_ended_and_a_slow_one_does_not():
    body = """
        import deccs.group.watch as watch
        watch.SILENT, watch.BROKEN, watch.GRACE = 5, 2, 1
        group.each(int)
        if group.rank == 1:
            if os.fork() == 0:      # somebody who wakes it up again
                time.sleep({seconds})
                os.kill(os.getppid(), signal.SIGCONT)
                os._exit(0)
            os.kill(os.getpid(), signal.SIGSTOP)
        group.each(int)
        print("together")
        """
    slow = run_together(body.format(seconds=2), 2)
    assert [one.out for one in slow] == ["together\n"] * 2
    silent = run_together(body.format(seconds=20), 2)
    assert silent[0].code == 75 and "has said nothing for" in silent[0].err


def test_sigterm_of_a_launcher_ends_with_the_reason():
    processes = start(program("group.each(int)\nprint('up', flush=True)\ntime.sleep(60)"), 2)
    for process in processes:
        assert process.stdout.readline() == "up\n"
    processes[1].kill()
    processes[0].terminate()
    ended = wait_for(processes)
    assert "GroupError: Process 1 of 2" in ended[0].err and ended[0].seconds < 30


def test_without_a_launcher_the_message_says_what_to_do(monkeypatch):
    for name in ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"):
        monkeypatch.delenv(name, raising=False)
    with (
        pytest.raises(
            GroupError, match=r"No launcher has started.*RANK, WORLD_SIZE.*torchrun --standalone"
        ),
        distributed(),
    ):
        pass
    monkeypatch.setenv("MASTER_ADDR", "127.0.0.1")
    for rank, size, port, words in [
        ("one", "2", "1", "must be whole numbers"),
        ("2", "2", "1", "RANK must be from 0 to WORLD_SIZE - 1"),
    ]:
        for name, value in {"RANK": rank, "WORLD_SIZE": size, "MASTER_PORT": port}.items():
            monkeypatch.setenv(name, value)
        with pytest.raises(GroupError, match=words), distributed():
            pass


def test_processes_that_do_not_come_are_named():
    (one,) = wait_for(start(program("pass"), 3, ranks=[0], PATIENCE=2))
    assert "Of 3 processes, 2 have not come to 127.0.0.1:" in one.err and "number 1, 2" in one.err


def test_a_wrong_address_is_named():
    (one,) = wait_for(start(program("pass"), 2, ranks=[1], PATIENCE=2))
    assert "Process 1 of 2" in one.err and "cannot reach process 0 at 127.0.0.1:" in one.err


@pytest.mark.slow
def test_two_runs_at_one_port_are_told_apart():
    port = free_port()
    both = start(program("group.each(int)"), 2, ranks=[0, 0], port=port, PATIENCE=3)
    ended = wait_for(both)
    assert all(one.code for one in ended)
    messages = " ".join(one.err for one in ended)
    assert f"Process 0 cannot listen at 127.0.0.1:{port}" in messages
    twice = wait_for(
        start(program("group.each(int)"), 3, ranks=[0, 1, 1], port=free_port(), PATIENCE=3)
    )
    assert any("Two processes at 127.0.0.1:" in one.err and "RANK=1" in one.err for one in twice)


def test_blocks_are_not_nested_and_one_process_is_alone():
    (one,) = run_together(
        """
        assert group.size == 1
        try:
            with deccs.distributed():
                pass
        except deccs.GroupError as error:
            print(error)
        """,
        1,
    )
    assert one.out.startswith("This process is in a deccs.distributed() block already"), one.err


def test_processes_that_another_launcher_has_set_up_are_used():
    body = """
    import torch.distributed as dist
    assert dist.get_world_size() == 2
    print(group.each(lambda: group.rank))
    """
    command = program(body)
    command[-1] = (
        "import torch.distributed as dist\ndist.init_process_group('gloo')\n" + command[-1]
    )
    command[-1] += "\nprint(dist.is_initialized())"
    ended = wait_for(start(command, 2))
    assert [one.out for one in ended] == ["[0, 1]\nTrue\n"] * 2, ended
