"""deccs mcp: a client fits, predicts, describes and compares; hostile paths; what is canceled or crashes."""

import json
import os
import sys
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from deccs.app.mcp import workers as workers_module
from deccs.app.mcp.places import PlaceError, Root
from tests.helpers.command_line import write_table
from tests.helpers.small import far_blobs

pytest.importorskip("mcp")
anyio = pytest.importorskip("anyio")
from mcp import Client  # noqa: E402
from mcp.client.stdio import StdioServerParameters  # noqa: E402

from deccs.app.mcp.server import server_for  # noqa: E402
from deccs.app.mcp.workers import WorkError, Workers  # noqa: E402

SOURCE = Path(workers_module.__file__).parents[3]
QUICK = {
    "views": None,
    "network.layers": [4, 2],
    "pretraining.n_epochs": 1,
    "rounds.n_rounds": 0,
    "rounds.n_init": 1,
}
# Answers at once what it was asked, or does what the name of a file says.
STAND_IN = """
import json, os, sys, time
for line in sys.stdin:
    options = json.loads(line)["options"]
    say = lambda **words: print(json.dumps(words), flush=True)
    say(progress=f"{os.getpid()}")
    if "hang" in line: time.sleep(60)
    if "crash" in line: os._exit(9)
    say(**({"error": "not today"} if "refuse" in line else {"result": {"pid": os.getpid(), **options}}))
"""


@pytest.fixture
def folder(tmp_path):
    """The root of a server, with a table, beside a file that is out of bounds."""
    root = tmp_path / "root"
    root.mkdir()
    write_table(root / "data.csv", far_blobs().X[:60])
    (tmp_path / "secret.csv").write_text("a\n1\n2\n")
    return root


def test_a_client_fits_predicts_describes_and_compares(folder):
    """Over stdio, as agents do it; one process does all the work."""
    words = []

    async def progress(done, total, message):
        words.append((done, message))

    async def session():
        path = os.pathsep.join([str(SOURCE), os.environ.get("PYTHONPATH", "")])
        server = StdioServerParameters(
            command=sys.executable,
            args=["-m", "deccs", "mcp", "--root", str(folder)],
            env={"PYTHONPATH": path, "OMP_NUM_THREADS": "1"},
        )
        async with Client(server) as client:
            answers = {"tools": [tool.name for tool in (await client.list_tools()).tools]}
            fit = {
                "file": "data.csv",
                "out": "run",
                "clusters": "3",
                "id": "key",
                "settings": QUICK,
            }
            calls = {
                "fit": fit,
                "predict": {"run": "run", "file": "data.csv"},
                "describe": {"run": "run"},
                "compare": {"runs": ["run", "run"]},
            }
            for tool, options in calls.items():
                answers[tool] = await client.call_tool(tool, options, progress_callback=progress)
            answers["again"] = await client.call_tool("fit", fit)
            answers["column"] = await client.call_tool("fit", {**fit, "out": "b", "id": "age"})
            answers["skill"] = await client.read_resource("deccs://skill")
        return answers

    answers = anyio.run(session)
    assert answers["tools"] == ["fit", "predict", "describe", "compare", "how_many"]
    fitted, predicted, described, compared = (
        answers[tool].structured_content for tool in ("fit", "predict", "describe", "compare")
    )
    assert fitted["out"] == "run" and fitted["n_rows"] == 60 and fitted["n_clusters"] == 3
    assert sum(cluster["size"] for cluster in fitted["clusters"]) == 60
    assert "labels.csv" in fitted["files"] and (folder / "run" / "labels.csv").is_file()
    assert sorted(one["size"] for one in predicted["clusters"]) == sorted(
        one["size"] for one in fitted["clusters"]
    )
    assert (folder / predicted["out"]).read_text() == (folder / "run" / "labels.csv").read_text()
    assert described["text"] == (folder / "run" / "clusters.txt").read_text()
    assert compared["pairs"][0]["nmi"] == 1.0 and compared["pairs"][0]["rows_in_common"] == 60
    for tool in ("fit", "predict", "describe", "compare"):
        assert len(json.dumps(answers[tool].structured_content)) < 10_000
    assert answers["again"].is_error and "already holds results" in answers["again"].content[0].text
    assert answers["column"].is_error and "no column 'age'" in answers["column"].content[0].text
    numbers = [done for done, _ in words]
    assert any("pretraining" in message for _, message in words)
    assert all(later > earlier or later == 1 for earlier, later in pairwise(numbers))
    assert "name: deccs" in answers["skill"].contents[0].text


# Paths


def test_paths_below_the_root(folder):
    root = Root(folder)
    assert root.existing("data.csv") == "data.csv"
    assert root.existing(str(folder / "data.csv")) == "data.csv"
    assert root.existing("./x/../data.csv") == "data.csv"
    assert root.new("deep/run") == "deep/run"


@pytest.mark.parametrize(
    "path",
    [
        "../secret.csv",
        "x/../../secret.csv",
        "/etc/passwd",
        "link.csv",
        "linked/secret.csv",
        "sqlite:///../secret.db",
        "file:///etc/passwd",
        "*.csv",
        "..",
        "",
        " ",
        "a\0b",
        "a" * 5000,
    ],
)
def test_paths_that_lead_elsewhere_are_refused(folder, path):
    root = Root(folder)
    (folder / "link.csv").symlink_to(folder.parent / "secret.csv")
    (folder / "linked").symlink_to(folder.parent)
    for check in (root.existing, root.new):
        with pytest.raises(PlaceError):
            check(path)


@pytest.mark.parametrize("path", ["circle", "a" * 300, "\ud800", "missing.csv"])
def test_paths_that_lead_nowhere_are_told(folder, path):
    (folder / "circle").symlink_to(folder / "circle")
    with pytest.raises(PlaceError):
        Root(folder).existing(path)


def test_a_link_inside_a_folder_may_not_lead_elsewhere_either(folder):
    root = Root(folder)
    (folder / "run" / "model").mkdir(parents=True)
    (folder / "run" / "same").symlink_to(folder / "data.csv")
    assert root.existing("run") == "run"
    (folder / "run" / "model" / "model.json").symlink_to(folder.parent / "secret.csv")
    for check in (root.existing, root.new):
        with pytest.raises(PlaceError, match=r"run/model/model.json is a link that leads out"):
            check("run")


def test_results_need_a_place_of_their_own(folder):
    with pytest.raises(PlaceError, match="of their own"):
        Root(folder).new(".")
    with pytest.raises(PlaceError, match="is not a folder"):
        Root(folder / "data.csv")


def test_tools_refuse_such_paths_before_any_work(folder):
    async def session():
        server = server_for(Root(folder), Workers(folder, ("never-started",)))
        async with Client(server) as client:
            calls = [
                ("fit", {"file": "../secret.csv"}),
                ("fit", {"file": "data.csv", "out": "../elsewhere"}),
                ("predict", {"run": "..", "file": "data.csv"}),
                ("predict", {"run": ".", "file": "data.csv", "out": "/tmp/labels.csv"}),
                ("describe", {"run": "../root/.."}),
                ("compare", {"runs": [".", ".."]}),
                ("how_many", {"file": "../secret.csv"}),
            ]
            return [await client.call_tool(tool, options) for tool, options in calls]

    for answer in anyio.run(session):
        assert answer.is_error and "not below the root" in answer.content[0].text


# Processes


async def quiet(words):
    pass


def stand_ins(folder):
    return Workers(folder, (sys.executable, "-c", STAND_IN))


def test_a_process_is_kept_unless_it_crashes(folder):
    async def session():
        workers = stand_ins(folder)
        first = (await workers.ask("fit", {}, quiet))["pid"]
        with pytest.raises(WorkError, match="not today"):
            await workers.ask("fit", {"file": "refuse"}, quiet)
        assert (await workers.ask("fit", {}, quiet))["pid"] == first
        with pytest.raises(WorkError, match="has ended, perhaps for lack of memory"):
            await workers.ask("fit", {"file": "crash"}, quiet)
        assert (await workers.ask("fit", {}, quiet))["pid"] != first
        await workers.stop()
        assert not workers.free

    anyio.run(session)


def test_the_server_answers_while_a_fit_runs_and_a_canceled_fit_is_killed(folder, monkeypatch):
    monkeypatch.setattr(workers_module, "HEARTBEAT", 0.02)
    write_table(folder / "hang.csv", np.eye(4))
    told = []

    async def progress(done, total, message):
        told.append(message)

    async def session():
        workers = stand_ins(folder)
        async with Client(server_for(Root(folder), workers)) as client:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(
                    lambda: client.call_tool("fit", {"file": "hang.csv"}, None, progress)
                )
                while (
                    sum(message.isdecimal() for message in told) < 3
                ):  # it says so again and again
                    await anyio.sleep(0.01)
                other = await client.call_tool("describe", {"run": "."})
                assert other.structured_content["run"] == "."
                tasks.cancel_scope.cancel()
            pid = int(told[-1])
            assert other.structured_content["pid"] != pid
            with anyio.fail_after(20):
                while Path(f"/proc/{pid}").exists() and sys.platform == "linux":
                    await anyio.sleep(0.01)
            assert not (await client.call_tool("describe", {"run": "."})).is_error

    anyio.run(session)
