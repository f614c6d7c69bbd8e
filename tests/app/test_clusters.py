"""``--clusters``: a number, a range or auto, on the command line and in a config file."""

import json

import numpy as np
import pytest

from deccs import DECCS
from deccs.app.methods import estimator_for, number_or_range
from deccs.app.request import FitRequest, RequestError
from tests.helpers.command_line import deccs, rows_of, write_table
from tests.helpers.quick_count import quick_counts

pytestmark = pytest.mark.usefixtures("quick_classifiers")

SETTINGS = """
rounds = 1
[settings]
network.layers = [8, 2]
rounds = {n_init = 1, n_steps = 5, batch_size = 64}
[settings.pretraining]
n_epochs = 5
batch_size = 32
"""


@pytest.fixture(scope="module", autouse=True)
def quick():
    with quick_counts():
        yield


@pytest.fixture(scope="module")
def table(tmp_path_factory, blobs):
    return write_table(tmp_path_factory.mktemp("clusters") / "blobs.csv", blobs.X[:90])


def fit(table, out, *words, config=""):
    """(exit code, the summary, what was printed beside it) of a quick consensus."""
    (out.parent / "fit.toml").write_text(config)
    given = ["fit", table, "--config", out.parent / "fit.toml", "--out", out, "--json"]
    code, printed, err = deccs(*given, "--method", "consensus", *words)
    return code, json.loads(printed), err


def test_auto_is_the_default(table, tmp_path, blobs):
    assert FitRequest(table).clusters == "auto"
    code, summary, err = fit(table, tmp_path / "run")
    assert code == 0, err
    assert summary["options"]["clusters"] == "auto"
    labels = np.array([int(row[1]) for row in rows_of(tmp_path / "run" / "labels.csv")[1:]])
    np.testing.assert_array_equal(labels[:, None] == labels, blobs.y[:90, None] == blobs.y[:90])
    assert len(summary["clusters"]) == 3
    # the report has every k tried
    assert b"<html" in (tmp_path / "run" / "report.html").read_bytes()[:500]


def test_a_fit_of_deccs_with_auto(table, tmp_path):
    (tmp_path / "fit.toml").write_text(SETTINGS)
    words = ["--config", tmp_path / "fit.toml", "--set", "views=none", "--out", tmp_path / "run"]
    code, out, err = deccs("fit", table, *words)
    assert code == 0, err
    model = DECCS.load(tmp_path / "run" / "model")
    assert model.n_clusters == "auto" and model.n_clusters_ == 3
    assert "3 clusters" in " ".join((out + err).split())


@pytest.mark.parametrize(
    ("words", "config"), [(("--clusters", "4-6"), ""), ((), 'clusters = "4-6"')]
)
def test_a_range_is_kept(table, tmp_path, words, config):
    code, summary, err = fit(table, tmp_path / "run", *words, config=config)
    assert code == 0, err
    assert summary["options"]["clusters"] == "4-6" and 4 <= len(summary["clusters"]) <= 6


def test_a_number_in_a_config_file_and_the_command_line_wins(table, tmp_path):
    code, summary, err = fit(table, tmp_path / "four", config="clusters = 4")
    assert code == 0 and len(summary["clusters"]) == 4, err
    code, summary, err = fit(table, tmp_path / "two", "-k", "2", config="clusters = 4")
    assert code == 0 and len(summary["clusters"]) == 2, err


def test_members_by_name_with_auto(table, tmp_path):
    code, summary, err = fit(table, tmp_path / "run", "--members", "kmeans,hdbscan")
    assert code == 0, err
    assert summary["members"] == ["kmeans", "hdbscan"] and len(summary["clusters"]) == 3


@pytest.mark.parametrize(
    ("clusters", "told"),
    [
        ("20-3", "--clusters: The range of n_clusters must begin at 1 or more"),
        ("20-3", "Did you mean '3-20'?"),
        ("0-3", "must begin at 1 or more and not end before that, got '0-3'"),
        ("x", "--clusters must be a whole number, a range such as 3-20, or auto; got 'x'"),
        ("3-x", "or auto; got '3-x'"),
        ("3.5", "or auto; got '3.5'"),
        ("", "or auto; got ''"),
        ("2-500", "ends at 500, above the number of points, n_samples=90. End it at 90 or below"),
    ],
)
@pytest.mark.parametrize("method", ["deccs", "consensus", "idec"])
def test_bad_ranges_are_exit_code_2_and_leave_nothing(table, tmp_path, clusters, told, method):
    words = ["--clusters", clusters, "--method", method, "--out", tmp_path / "run"]
    code, out, err = deccs("fit", table, *words)
    assert code == 2 and out == "" and told in " ".join(err.split())
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("given", "expected"),
    [("7", 7), (" 7 ", 7), ("3-20", "3-20"), (" 3-20", "3-20"), ("auto", "auto"), ("1-1", "1-1")],
)
def test_numbers_and_ranges(given, expected):
    assert number_or_range(given) == expected
    assert type(number_or_range(given)) is type(expected)


def test_the_option_wins_over_a_setting_unless_it_was_not_given(table):
    given = FitRequest(table, settings={"n_clusters": 5})
    assert estimator_for(given).n_clusters == 5
    both = FitRequest(table, clusters="4", settings={"n_clusters": 5})
    assert estimator_for(both).n_clusters == 4
    assert estimator_for(FitRequest(table)).n_clusters == "auto"
    with pytest.raises(RequestError, match="got 'many'"):
        estimator_for(FitRequest(table, clusters="many"))


def test_one_cluster_ends_at_once_with_a_note(tmp_path, blobs):
    file = write_table(tmp_path / "train.csv", blobs.X)
    settings = ("--set", "pretraining.n_epochs=100000", "--out", tmp_path / "run")
    code, _, err = deccs("fit", file, "--clusters", 1, *settings)
    assert code == 0 and "One cluster is asked for" in err
    assert {row[1] for row in rows_of(tmp_path / "run" / "labels.csv")[1:]} == {"0"}
