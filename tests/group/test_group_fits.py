"""Fits by several processes: everybody gets the same model, and a killed fit goes on."""

import json
import os
import signal
import sys

import numpy as np
import polars as pl
import pytest
from numpy.testing import assert_array_equal

from deccs import DECCS
from deccs.data.rows import Rows
from deccs.data.scalers import fit_scaler
from deccs.data.source import source_of
from deccs.group.group import Group
from deccs.network.autoencoder import Autoencoder
from deccs.seeds import generator_for
from deccs.settings import Pretraining
from deccs.training.batches import hold_out
from deccs.training.pretraining import Reconstruction, share_of_batch
from tests.helpers.processes import run_together, start, wait_for
from tests.helpers.slow import mostly_slow

N_ROWS = 3_000

# Each process makes the same rows, as it would read the same file. Weights are averaged every 20 steps.
FIT = """
    from deccs import training
    import deccs.training.pretraining as pretraining
    pretraining.LEAST_SHARE, pretraining.ROWS_BETWEEN_AVERAGES = 10, 640
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 3_000)
    X = rng.normal(size=(3_000, 6)) + 5 * np.eye(6)[y] - 5 * np.eye(6)[y + 3]
    settings = dict(
        views=None, network=deccs.Network(layers=(8, 2), dropout=0.1), random_state=0,
        pretraining=deccs.Pretraining(n_steps=400, batch_size=64),
        rounds=deccs.Rounds(n_rounds=1, n_init=1, n_steps=20, sample_size=400),
    )
    def digest(*arrays):
        import hashlib
        return hashlib.sha256(b"".join(np.ascontiguousarray(a).tobytes() for a in arrays)).hexdigest()[:12]
"""


class Member(Group):
    """One of several processes, of which no other is there."""

    def __init__(self, rank, size):
        self.rank, self.size = rank, size


@pytest.mark.parametrize(("n_rows", "size"), [(100, 2), (101, 3), (97, 4)])
def test_processes_never_learn_from_the_same_rows(n_rows, size):
    X = np.random.default_rng(0).normal(size=(n_rows, 4))
    rows = Rows(source_of(X), fit_scaler(source_of(X)))
    settings = Pretraining(n_steps=50, batch_size=16)
    train_on, held_out = hold_out(n_rows, settings.held_out, generator_for(0, "held out"))
    seen, steps = [], set()
    for rank in range(size):
        network = Autoencoder.feed_forward(4, (3, 2))
        learner = Reconstruction(
            network,
            [*network.parameters()],
            rows,
            train_on,
            held_out,
            settings,
            0,
            "whole network",
            Member(rank, size),
        )
        steps.add((learner.n_steps, learner.per_pass, learner.average_every))
        seen.append(
            {row for _ in range(learner.batches.per_pass) for row in next(learner.batches).tolist()}
        )
    assert len(steps) == 1  # else they would wait for each other for ever
    assert set.union(*seen) == set(train_on[: len(train_on)].tolist())
    assert sum(map(len, seen)) == len(train_on)


def test_the_work_of_all_steps_is_that_of_one_process():
    assert [share_of_batch(128, size) for size in (1, 2, 4, 8)] == [128, 64, 32, 32]
    assert share_of_batch(20, 4) == 20  # small batches are not made smaller


@pytest.mark.slow
def test_two_processes_get_one_model_twice_with_the_same_bits():
    body = (
        FIT
        + """
    model = deccs.DECCS(3, **settings).fit(X)
    assert deccs.scores.nmi(y, model.labels_) > 0.99
    print(digest(model.labels_, model.transform(X), model.consensus_confidence(X)))
    """
    )
    first, again = run_together(body, 2), run_together(body, 2)
    assert [one.code for one in first + again] == [0] * 4, first[0].err
    assert len({one.out for one in first + again}) == 1


@pytest.mark.slow
def test_starts_are_dealt_to_processes_with_the_bits_of_one():
    """Nothing is pretrained together here, so that starts elsewhere give what they give alone."""
    body = (
        FIT
        + """
    pretraining.LEAST_SHARE = 10_000
    settings["rounds"] = deccs.Rounds(n_rounds=1, n_init=3, n_steps=20, sample_size=400, held_out=0.2)
    told = []
    model = deccs.DECCS(3, **settings, callbacks=[lambda round_: told.append((round_.start, round_.number))]).fit(X)
    print(digest(model.labels_, model.transform(X)))
    print(told if group.is_first else [])
    """
    )
    (one,), both = run_together(body, 1), run_together(body, 2)
    assert [each.code for each in (one, *both)] == [0] * 3, both[0].err + both[1].err
    assert {each.out.splitlines()[0] for each in both} == {one.out.splitlines()[0]}
    assert set(eval(one.out.splitlines()[1])) <= set(eval(both[0].out.splitlines()[1]))


@pytest.mark.slow
def test_three_processes_give_a_result_with_every_estimator():
    ended = run_together(
        FIT
        + """
    rounds = settings.pop("rounds"), settings.pop("views")
    for model in (
        deccs.ConsensusClustering(3, random_state=0),
        deccs.deep.IDEC(3, n_steps=50, **settings),
        deccs.AutoencoderConsensus(3, **settings),
        deccs.DECCS("auto", random_state=0, rounds=rounds[0], pretraining=settings["pretraining"]),
    ):
        model.fit(X)
        print(type(model).__name__, deccs.scores.nmi(y, model.labels_) > 0.9, digest(model.labels_, model.predict(X)))
    """,
        3,
    )
    assert [one.code for one in ended] == [0] * 3, ended[0].err
    assert len({one.out for one in ended}) == 1 and ended[0].out.count("True") == 4


def test_bad_input_is_an_error_of_all_processes():
    ended = run_together(
        """
    X = np.full((30, 3), np.inf)
    try:
        deccs.DECCS(3).fit(X)
    except ValueError as error:
        print("infinity" in str(error))
    try:
        deccs.DECCS(3 + group.rank, random_state=0).fit(np.random.default_rng(0).normal(size=(50, 3)))
    except deccs.GroupError as error:
        print(error)
    try:
        deccs.DECCS(3, random_state=0).fit(np.random.default_rng(group.rank).normal(size=(50, 3)))
    except deccs.GroupError as error:
        print(error)
    """,
        2,
    )
    assert [one.code for one in ended] == [0, 0], ended[0].err
    for one in ended:
        first, settings, data = one.out.splitlines()
        assert first == "True"
        assert "n_clusters (4 there, 3 in process 0)" in settings
        assert "what differs: data (" in data


KILLED = (
    FIT
    + """
    class Kill(deccs.Callback):
        steps = 0
        def on_progress(self, progress):
            Kill.steps += progress.stage == "pretraining"
            if Kill.steps == 3:
                if os.environ["WHO"] == "0":
                    os.kill(os.getpid(), signal.SIGKILL)
                group.each(int)
    from deccs.storage import checkpoints
    checkpoints.LEAST_PAUSE = 0.0
    killed = os.environ.get("WHO") is not None
    if killed and group.rank == int(os.environ["WHO"]) != 0:
        import deccs.training.engine as engine
        before, checks = engine.Run.one_check, []
        def one_check(run, *arguments):
            checks.append(1)
            if len(checks) == 3:
                os.kill(os.getpid(), signal.SIGKILL)
            return before(run, *arguments)
        engine.Run.one_check = one_check
    callbacks = [Kill()] if os.environ.get("WHO") == "0" else None
    model = deccs.DECCS(3, **settings, checkpoint=os.environ["FOLDER"], callbacks=callbacks).fit(X)
    print(digest(model.labels_, model.transform(X)))
"""
)


@pytest.mark.slow
@pytest.mark.parametrize("who", [0, 1])
def test_a_killed_process_ends_all_and_the_same_command_goes_on(tmp_path, who):
    """With the same number of processes the bits are those of a fit that was not disturbed."""
    straight = run_together(KILLED, 2, FOLDER=tmp_path / "straight")
    ended = run_together(KILLED, 2, FOLDER=tmp_path / "state", WHO=who)
    assert ended[who].code == -signal.SIGKILL
    other = ended[1 - who]
    assert f"Process {who} of 2" in other.err and other.code == 1 and other.seconds < 30
    states = {path.name for path in (tmp_path / "state").glob("*.state.zip")}
    assert "whole-network-training.state.zip" in states
    resumed = run_together(KILLED, 2, FOLDER=tmp_path / "state")
    assert [one.code for one in resumed] == [0, 0], resumed[0].err
    assert {one.out for one in resumed} == {one.out for one in straight}
    assert not (tmp_path / "state").exists()


@pytest.mark.slow
def test_another_number_of_processes_goes_on_with_a_warning(tmp_path):
    run_together(KILLED, 2, FOLDER=tmp_path / "state", WHO=1)
    (one,) = run_together(KILLED, 1, FOLDER=tmp_path / "state")
    assert one.code == 0, one.err
    assert "holds the checkpoint of a fit by 2 process(es), and 1 go on with it" in one.err


# Large tables on the command line.

LOW = """
import deccs.data.learning_rows, deccs.base, deccs.labeling, deccs.app.labels_file, deccs.app.run_folder
from deccs.data.tables import columnar
from deccs.app.cli import main
for module in (deccs.data.learning_rows, deccs.base):
    module.MOST_ROWS = 500
for module in (deccs.labeling, deccs.app.labels_file, deccs.app.run_folder):
    module.ROWS_OF_PART = 256
columnar.LARGE = 1_000
columnar.isolated = lambda function, *arguments, seconds: getattr(columnar, function.partition(":")[2])(*arguments)
main()
"""


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    path = tmp_path_factory.mktemp("group") / "x.parquet"
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, N_ROWS)
    X = rng.normal(size=(N_ROWS, 6)) + 5 * np.eye(6)[y] - 5 * np.eye(6)[y + 3]
    X[rng.random(X.shape) < 0.02] = np.nan
    columns = dict(zip("abcdef", X.T, strict=True))
    pl.DataFrame({"key": [f"row {row}" for row in range(N_ROWS)], **columns}).write_parquet(
        path, row_group_size=700
    )
    return path, y


def fit_together(size, path, out, *words, **changes):
    command = [
        sys.executable,
        "-c",
        LOW,
        "fit",
        str(path),
        "--clusters",
        "3",
        "--out",
        str(out),
        "--id",
        "key",
    ]
    command += ["--rounds", "1", "--set", "pretraining.n_steps=100", "--set", "views=none"]
    return start([*command, *words], size, **changes)


@pytest.mark.parametrize("size", mostly_slow([2, 3, 4], ()))
def test_a_large_table_is_labeled_in_parts(table, tmp_path, size):
    """12 parts of 256 rows; with 4 processes 3 each."""
    from deccs.scores import nmi

    path, y = table
    ended = wait_for(fit_together(size, path, tmp_path / "run"))
    assert [one.code for one in ended] == [0] * size, ended[0].err
    assert f"{size} processes on " in ended[0].err and [one.err for one in ended[1:]] == [""] * (
        size - 1
    )
    parts = sorted((tmp_path / "run" / "labels").iterdir())
    assert len(parts) == 12
    labels = pl.read_parquet(parts)
    assert labels["id"].to_list() == [f"row {row}" for row in range(N_ROWS)]
    assert nmi(y, labels["label"].to_numpy()) > 0.95
    model = DECCS.load(tmp_path / "run" / "model")
    assert_array_equal(model.labels_, labels["label"].to_numpy())
    assert_array_equal(model.predict(pl.read_parquet(path)), model.labels_)
    assert json.loads((tmp_path / "run" / "summary.json").read_text())["data"]["rows"] == N_ROWS
    assert not [name for name in os.listdir(tmp_path / "run") if name.startswith(".")]


@pytest.mark.slow
def test_more_processes_than_parts(table, tmp_path):
    """Two parts for three processes: the first one has none."""
    path = tmp_path / "few.parquet"
    pl.read_parquet(table[0]).head(510).write_parquet(path)
    ended = wait_for(fit_together(3, path, tmp_path / "run"))
    assert [one.code for one in ended] == [0] * 3, ended[0].err
    assert len(list((tmp_path / "run" / "labels").iterdir())) == 2


@pytest.mark.slow
def test_errors_of_the_command_line_are_told_once(table, tmp_path):
    ended = wait_for(fit_together(2, tmp_path / "none.parquet", tmp_path / "run"))
    assert "There is no file" in ended[0].err and ended[1].err == ""
    (tmp_path / "bad.parquet").write_bytes(table[0].read_bytes()[:-2000])
    ended = wait_for(fit_together(2, tmp_path / "bad.parquet", tmp_path / "run"))
    assert "bad.parquet cannot be read" in ended[0].err and ended[1].err == ""
    assert {one.code for one in ended} == {2} and not (tmp_path / "run").exists()


@pytest.mark.slow
def test_a_command_killed_while_labeling_goes_on_with_the_same_files(table, tmp_path):
    """Process 1 is killed after its second part; the parts that are done stay as they are."""
    path, _ = table
    straight, out = tmp_path / "straight", tmp_path / "run"
    wait_for(fit_together(2, path, straight))
    slow = LOW.replace(
        "main()\n",
        """
from deccs.app.parts import PartsWriter
import os, signal
finish, n_done = PartsWriter.finish, []
def killed(self, part):
    finish(self, part)
    n_done.append(part)
    if os.environ["RANK"] == "1" and len(n_done) == 3:
        os.kill(os.getpid(), signal.SIGKILL)
PartsWriter.finish = killed
main()
""",
    )
    words = fit_together(2, path, out)
    for process in words:
        process.kill()
    wait_for(words)
    command = words[0].args
    command[2] = slow
    ended = wait_for(start(command, 2))
    assert ended[1].code == -signal.SIGKILL and "Process 1 of 2" in ended[0].err
    assert "the same command resumes" in ended[0].err
    command[2] = LOW
    ended = wait_for(start(command, 2))
    assert [one.code for one in ended] == [0, 0], ended[0].err
    for name in os.listdir(straight / "labels"):
        assert (straight / "labels" / name).read_bytes() == (out / "labels" / name).read_bytes()


@pytest.mark.slow
def test_torchrun_starts_the_command_line(table, tmp_path):
    command = [
        sys.executable,
        "-m",
        "torch.distributed.run",
        "--standalone",
        "--nproc-per-node",
        "2",
    ]
    command += [
        "-m",
        "deccs",
        "fit",
        str(table[0]),
        "--clusters",
        "3",
        "--out",
        str(tmp_path / "run"),
        "--rounds",
        "1",
    ]
    (one,) = start(
        command, 1, ranks=[0], RANK=None, WORLD_SIZE=None, MASTER_ADDR=None, MASTER_PORT=None
    )
    (one,) = wait_for([one])
    assert one.code == 0, one.err
    assert (tmp_path / "run" / "labels.csv").exists()
