"""Two hosts in network namespaces of this machine: a real connection, and what happens when it is cut."""

import os
import shutil
import subprocess
import time

import pytest

from tests.helpers.processes import environment, program, wait_for

ADDRESSES = ["10.99.7.1", "10.99.7.2"]


def ip(*words):
    subprocess.run(["ip", *words], check=True, capture_output=True)


@pytest.fixture
def hosts():
    """The names of two namespaces that are joined by a cable."""
    if os.name != "posix" or not shutil.which("ip") or os.geteuid():
        pytest.skip("needs root and the program ip")
    names = [f"deccs{os.getpid()}h{number}" for number in range(2)]
    ends = ["deccs-v0", "deccs-v1"]
    made = []
    try:
        for name in names:
            ip("netns", "add", name)
            made.append(name)
        ip(
            "link",
            "add",
            ends[0],
            "netns",
            names[0],
            "type",
            "veth",
            "peer",
            "name",
            ends[1],
            "netns",
            names[1],
        )
        for name, end, address in zip(names, ends, ADDRESSES, strict=True):
            for words in (
                f"addr add {address}/24 dev {end}",
                f"link set {end} up",
                "link set lo up",
            ):
                ip("-n", name, *words.split())
        yield list(zip(names, ends, strict=True))
    except subprocess.CalledProcessError as error:
        pytest.skip(f"no network namespaces here: {error.stderr!r}")
    finally:
        for name in made:
            ip("netns", "del", name)


@pytest.mark.slow
def test_a_cut_network_ends_both_processes_within_a_minute(hosts):
    command = program(
        """
        print(sum(group.each(lambda: group.rank + 1)), flush=True)
        group.each(lambda: time.sleep(100 * group.rank))
        """
    )
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "encoding": "utf-8"}
    processes = [
        subprocess.Popen(
            ["ip", "netns", "exec", name, *command],
            env=environment(rank, 2, 29_517, MASTER_ADDR=ADDRESSES[0], GLOO_SOCKET_IFNAME=end),
            **pipes,
        )
        for rank, (name, end) in enumerate(hosts)
    ]
    for process in processes:
        assert process.stdout.readline() == "3\n"  # they have talked to each other
    ip("-n", hosts[1][0], "link", "set", hosts[1][1], "down")
    began = time.monotonic()
    ended = wait_for(processes)
    assert time.monotonic() - began < 60
    assert [one.code for one in ended] == [75, 75]
    assert "Process 1 of 2" in ended[0].err and "has said nothing for" in ended[0].err
    assert "Process 0 of 2" in ended[1].err and "has not answered for" in ended[1].err
