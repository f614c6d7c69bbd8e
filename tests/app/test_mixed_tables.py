"""Tables of several kinds on the command line: kinds, databases, formats of labels, new files, names of clusters."""

import json
import shutil
import sqlite3
import zipfile

import numpy as np
import pandas as pd
import polars as pl
import pytest

from deccs import DECCS
from deccs.app import run_folder
from deccs.data.tables import delimited
from deccs.data.tabulate import TableWarning
from deccs.scores import ari
from tests.helpers.command_line import deccs, rows_of

SETTINGS = """
clusters = 3
rounds = 1
id = "key"
[settings]
network.layers = [8, 2]
rounds = {n_init = 1, n_steps = 10, batch_size = 64}
[settings.pretraining]
n_epochs = 15
batch_size = 32
"""
COLUMNS = ["city", "size", "joined", "newsletter", "income", "orders"]


def customers(n=120):
    """Three kinds of customers: (a frame with a column of each kind and gaps, whose row is of which kind)."""
    rng = np.random.default_rng(0)
    kind = rng.permutation(np.arange(n) % 3)
    city = np.array(["Ulm", "Kiel", "Bonn"])[np.where(rng.random(n) < 0.9, kind, 0)]
    days = np.datetime64("2024-01-01") + 100 * kind + rng.integers(60, size=n)
    frame = pl.DataFrame(
        {
            "key": [f"k{row:03d}" for row in range(n)],
            "city": city,
            "size": np.array(["S", "M", "L"])[np.where(rng.random(n) < 0.9, kind, 1)],
            "joined": days.astype("datetime64[ms]"),
            "newsletter": np.where(kind == 1, "yes", "no"),
            "income": (30_000 + 20_000 * kind + rng.normal(0, 2_000, n)).round(2),
            "orders": 5 * kind + rng.integers(4, size=n),
            "zip": rng.choice([89073, 24103, 53111, 50667], n),
            "note": [f"=SUM(A{row}) is what they said in row {row}" for row in range(n)],
        }
    ).with_columns(pl.col("joined").cast(pl.Date))
    gaps = pl.Series(rng.random(n) < 0.1)
    return frame.with_columns(
        pl.when(gaps).then(None).otherwise(pl.col("income")).alias("income"),
        pl.when(gaps.reverse()).then(None).otherwise(pl.col("city")).alias("city"),
    ), kind


@pytest.fixture(scope="module")
def frame():
    return customers()[0]


@pytest.fixture(scope="module")
def place(tmp_path_factory, frame):
    place = tmp_path_factory.mktemp("mixed")
    frame.write_csv(place / "train.csv")
    (place / "fit.toml").write_text(SETTINGS)
    return place


@pytest.fixture(scope="module")
def run(place):
    """The folder of a fit. Do not change it."""
    words = ("fit", place / "train.csv", "--config", place / "fit.toml", "--out", place / "run")
    code, _, err = deccs(*words)
    assert code == 0, err
    (place / "printed.txt").write_text(err)
    return place / "run"


@pytest.fixture
def copy(run, tmp_path):
    """A folder of a fit that may be changed, beside its data."""
    shutil.copytree(run, tmp_path / "run")
    shutil.copy(run.parent / "train.csv", tmp_path)
    return tmp_path / "run"


@pytest.fixture(scope="module")
def labels(run):
    return [int(row[1]) for row in rows_of(run / "labels.csv")[1:]]


def quick(place, *words):
    """A fit of a second, by k-means alone in effect: (exit code, stdout, stderr)."""
    return deccs("fit", place, "--method", "consensus", "--clusters", 3, *words)


def summary_of(run):
    return json.loads((run / "summary.json").read_text())


# ---- what a fit says and writes


def test_every_kind_takes_part_and_is_told(run, place, labels):
    data = summary_of(run)["data"]
    kinds = dict(
        zip(COLUMNS, ["category", "ordered", "date", "yes/no", "number", "number"], strict=True)
    )
    assert data["kinds"] == kinds and data["columns"] == COLUMNS
    assert set(data["columns_left_out"]) == {"zip", "note"}
    assert set(data["missing"]) == {"city", "income"} and data["rows_without_label"] == 0
    printed = (place / "printed.txt").read_text()
    for name, words in (
        ("city", "category"),
        ("zip", "code, left out"),
        ("note", "text, left out"),
    ):
        assert any(line.split()[:1] == [name] and words in line for line in printed.splitlines())
    assert "Missing:" in printed and "city" in printed
    assert ari(customers()[1], labels) > 0.9


def test_clusters_have_names_and_are_described(run, labels):
    names = [cluster["name"] for cluster in summary_of(run)["clusters"]]
    assert len(set(names)) == 3 and not any(name.startswith("cluster ") for name in names)
    rows = rows_of(run / "labels.csv")
    assert rows[0] == ["id", "label", "name", "confidence"]
    assert [row[2] for row in rows[1:]] == [names[label] for label in labels]
    paragraphs = (run / "clusters.txt").read_text().split("\n\n")
    for cluster, (name, paragraph) in enumerate(zip(names, paragraphs, strict=True)):
        assert paragraph.startswith(f"{cluster} · {name}: {labels.count(cluster)} rows\n")
        assert "Rule: " in paragraph and "Differs in: " in paragraph
    assert all(name in (run / "report.html").read_text() for name in names)


def test_the_report_written_again_is_the_same(run, tmp_path):
    assert deccs("report", run, "--out", tmp_path / "again.html")[0] == 0
    assert (tmp_path / "again.html").read_bytes() == (run / "report.html").read_bytes()


def test_a_kind_can_be_given(place, tmp_path):
    words = (
        "--kind",
        "zip=category",
        "--kind",
        "size=id",
        "--id",
        "key",
        "--out",
        tmp_path / "run",
    )
    code, _, err = quick(place / "train.csv", *words)
    assert code == 0, err
    data = summary_of(tmp_path / "run")["data"]
    assert data["kinds"]["zip"] == "category" and "size" not in data["columns"]
    assert summary_of(tmp_path / "run")["options"]["kind"] == {"zip": "category", "size": "id"}
    predict = deccs("predict", tmp_path / "run", place / "train.csv")
    assert predict[1] == (tmp_path / "run" / "labels.csv").read_text()


def test_columns_can_take_no_part(place, tmp_path):
    code, _, err = quick(
        place / "train.csv", "--exclude", "city,joined,key", "-o", tmp_path / "run"
    )
    assert code == 0, err
    data = summary_of(tmp_path / "run")["data"]
    assert data["columns"] == ["size", "newsletter", "income", "orders"]
    assert data["columns_left_out"]["city"] == "not asked for"


# ---- the model and other files


def test_predict_of_the_training_file_is_the_labels_file(run, place):
    assert deccs("predict", run, place / "train.csv", "-q")[1] == (run / "labels.csv").read_text()


def in_pandas(frame):
    columns = {name: frame[name].to_list() for name in frame.columns}
    return pd.DataFrame(columns).astype({"joined": "datetime64[ns]"})


@pytest.mark.parametrize("change", [lambda frame: frame, in_pandas, lambda frame: frame.lazy()])
def test_the_model_in_python_gives_raw_frames_the_same_labels(run, frame, labels, change):
    model = DECCS.load(run / "model")
    assert model.predict(change(frame)).tolist() == labels
    assert model.predict(change(frame[7:8])).tolist() == labels[7:8]


def test_the_order_and_the_types_of_columns_do_not_matter(run, frame, tmp_path):
    other = frame.select(
        pl.lit(3).alias("shoe"),
        pl.col("orders").cast(pl.Float64),
        pl.col("income").cast(pl.Float64),
        pl.col("newsletter") == "yes",
        pl.col("joined").cast(pl.Datetime("us")),
        pl.col("size").cast(pl.Enum(["S", "M", "L"])),
        pl.col("city").cast(pl.Categorical),
        pl.col("key"),
    )
    other.write_parquet(tmp_path / "other.parquet")
    code, out, err = deccs("predict", run, tmp_path / "other.parquet")
    assert code == 0 and out == (run / "labels.csv").read_text()
    assert "Not in the model, ignored: shoe" in err
    code, out, err = deccs("predict", run, as_excel(frame, tmp_path / "other.xlsx"))
    assert code == 0 and out == (run / "labels.csv").read_text()


def as_excel(frame, path):
    frame.drop("note").write_excel(path)
    return path


def test_levels_the_model_has_not_seen_get_a_label_and_a_note(run, frame, tmp_path):
    new = frame.with_columns(pl.lit("Rome").alias("city"), pl.lit("maybe").alias("newsletter"))
    new.write_csv(tmp_path / "new.csv")
    code, out, err = deccs("predict", run, tmp_path / "new.csv")
    assert code == 0 and all(row[1] for row in rows_of(out)[1:])
    told = " ".join(err.split())
    assert "Values the model has not seen count as missing: city 120, newsletter 120." in told


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda frame: frame.drop("city", "orders"), "lacks columns the model needs: city, orders"),
        (
            lambda frame: frame.with_columns(pl.lit("much").alias("income")),
            "'income' must be numbers",
        ),
        (
            lambda frame: frame.with_columns(pl.lit("soon").alias("joined")),
            "'joined' must be dates",
        ),
        (lambda frame: frame.with_columns(pl.lit(np.inf).alias("income")), "infinite"),
        (lambda frame: frame.head(0), "no rows"),
    ],
)
def test_files_that_do_not_fit_the_model_leave_nothing(run, frame, tmp_path, change, told):
    change(frame).write_csv(tmp_path / "new.csv")
    code, out, err = deccs("predict", run, tmp_path / "new.csv", "--out", tmp_path / "labels.csv")
    assert code == 2 and out == "" and told in " ".join(err.split())
    assert [path.name for path in tmp_path.iterdir()] == ["new.csv"]


def test_gaps_can_be_refused_dropped_or_filled(run, place, frame, tmp_path):
    n_gaps = frame.select(pl.any_horizontal(pl.col("city", "income").is_null()).sum()).item()
    words = ("--id", "key", "--out", tmp_path / "run")
    code, _, err = quick(place / "train.csv", *words, "--missing", "error")
    assert code == 2 and f"missing values in {n_gaps} of 120 rows" in " ".join(err.split())
    assert not (tmp_path / "run").exists()
    for choice, n_empty in (("drop", n_gaps), ("mean", 0)):
        code, _, err = quick(place / "train.csv", *words, "--missing", choice, "--overwrite")
        assert code == 0, err
        rows = rows_of(tmp_path / "run" / "labels.csv")[1:]
        assert len(rows) == 120 and sum(row[1] == "" for row in rows) == n_empty
        again = deccs("predict", tmp_path / "run", place / "train.csv", "-q")[1]
        assert again == (tmp_path / "run" / "labels.csv").read_text()
        assert deccs("report", tmp_path / "run")[0] == 0


def test_a_file_that_stays_on_the_disk_gives_the_same_labels(place, tmp_path, monkeypatch):
    words = ("--id", "key", "--out")
    assert quick(place / "train.csv", *words, tmp_path / "small")[0] == 0
    monkeypatch.setattr(delimited, "LARGE", 1_000)
    code, _, err = quick(place / "train.csv", *words, tmp_path / "large")
    assert code == 0, err
    small, large = (tmp_path / name / "labels.csv" for name in ("small", "large"))
    assert large.read_text() == small.read_text()
    code, out, _ = deccs("predict", tmp_path / "large", place / "train.csv", "-q", "--with-columns")
    assert code == 0 and len(rows_of(out)) == 121


# ---- databases


@pytest.fixture
def shop(tmp_path, frame):
    """The address of a database with the customers, and another table."""
    with sqlite3.connect(tmp_path / "shop.db") as base:
        in_pandas(frame).to_sql("customers", base, index=False)
        base.execute("create table other (x)")
    base.close()
    return f"sqlite:///{tmp_path / 'shop.db'}"


def test_a_query_of_a_database(shop, tmp_path, monkeypatch):
    query = "select key, city, orders, income from customers order by key"
    code, _, err = quick(shop, "--query", query, "--id", "key", "--out", tmp_path / "run")
    assert code == 0, err
    run = tmp_path / "run"
    assert summary_of(run)["data"]["file"] == shop and summary_of(run)["options"]["query"] == query
    code, out, _ = deccs("predict", run, shop, "--query", query, "-q")
    assert code == 0 and out == (run / "labels.csv").read_text()
    some = deccs(
        "predict", run, shop, "-q", "--query", f"select * from ({query}) where key < 'k003'"
    )
    assert some[1].splitlines() == out.splitlines()[:4]
    assert deccs("report", run, "--out", tmp_path / "again.html")[0] == 0  # it knows the query
    assert (tmp_path / "again.html").read_bytes() == (run / "report.html").read_bytes()


@pytest.mark.parametrize(
    ("query", "told"),
    [
        (None, "customers"),  # which of the two tables?
        ("select nothing from customers", "nothing"),
        ("delete from customers", "SELECT"),
    ],
)
def test_bad_queries_are_exit_code_2_and_leave_all_as_it_was(shop, tmp_path, query, told):
    before = (tmp_path / "shop.db").read_bytes()
    words = () if query is None else ("--query", query)
    code, out, err = quick(shop, *words, "--out", tmp_path / "run")
    assert code == 2 and out == "" and told.lower() in err.lower()
    assert [path.name for path in tmp_path.iterdir()] == ["shop.db"]
    assert (tmp_path / "shop.db").read_bytes() == before


def test_a_password_is_neither_printed_nor_kept(tmp_path):
    address = "postgresql://me:secret@127.0.0.1:1/shop"
    code, out, err = quick(address, "--query", "select 1", "--out", tmp_path / "run")
    assert code == 2 and "secret" not in out + err and not (tmp_path / "run").exists()


# ---- formats of labels


def formulas_in(path):
    """Whether any cell of a spreadsheet is a formula."""
    with zipfile.ZipFile(path) as book:
        sheets = [name for name in book.namelist() if name.startswith("xl/worksheets/")]
        return any(b"<f>" in book.read(name) for name in sheets)


def read_table(path):
    """Labels of any format, as words."""
    if path.suffix == ".csv":
        frame = pl.read_csv(path, infer_schema=False)
    else:
        frame = (pl.read_parquet if path.suffix == ".parquet" else pl.read_excel)(path)
    return frame.cast(pl.String)


@pytest.mark.parametrize("form", ["parquet", "xlsx"])
def test_labels_as_parquet_and_excel(place, run, labels, tmp_path, form):
    out = tmp_path / "run"
    words = ("--config", place / "fit.toml", "--labels", form, "--out", out, "-q")
    assert deccs("fit", place / "train.csv", *words) == (0, "", "")
    path = out / f"labels.{form}"
    assert {path.name for path in out.iterdir()} & set(run_folder.LABELS_NAMES) == {path.name}
    expected = pl.read_csv(run / "labels.csv", infer_schema=False)
    found = read_table(path)
    assert found.columns == expected.columns
    assert found.drop("confidence").equals(expected.drop("confidence"))
    sure = (pl.col("confidence").cast(pl.Float64),)
    np.testing.assert_array_equal(found.select(sure), expected.select(sure))
    code, printed, _ = deccs("compare", run, out, "--json")
    assert code == 0 and json.loads(printed)["pairs"][0]["ari"] == 1
    again = tmp_path / f"again.{form}"
    assert deccs("predict", out, place / "train.csv", "--out", again, "-q")[0] == 0
    assert read_table(again).equals(found)
    code, _, err = deccs("fit", place / "train.csv", *words)
    assert code == 2 and path.name in err  # results are not written over


@pytest.mark.parametrize("form", ["csv", "parquet", "xlsx"])
def test_the_columns_of_the_file_beside_the_labels(run, place, frame, tmp_path, form):
    path = tmp_path / f"all.{form}"
    words = ("predict", run, place / "train.csv", "--with-columns", "--out", path, "-q")
    assert deccs(*words)[0] == 0
    found = read_table(path)
    assert found.columns == ["id", "label", "name", "confidence", *frame.columns]
    expected = pl.read_csv(run / "labels.csv", infer_schema=False)
    assert found["label"].to_list() == expected["label"].to_list()
    assert found["id"].to_list() == found["key"].to_list() == frame["key"].to_list()
    assert found["city"].to_list() == frame["city"].to_list()
    income = found["income"].cast(pl.Float64)
    assert income.to_list() == frame["income"].to_list()
    mark = "'" if form == "csv" else ""  # cells of other formats say that they are text
    assert found["note"][0] == f"{mark}=SUM(A0) is what they said in row 0"
    if form == "xlsx":
        assert not formulas_in(path)
    if form == "csv":
        assert deccs(*words, "--overwrite", "--raw-ids")[0] == 0
        assert read_table(path)["note"][0].startswith("=SUM(A0)")


def test_columns_beside_labels_of_rows_that_were_dropped(place, frame, tmp_path):
    words = ("--missing", "drop", "--with-columns", "--id", "key", "--out", tmp_path / "run")
    assert quick(place / "train.csv", *words)[0] == 0
    found = read_table(tmp_path / "run" / "labels.csv")
    is_complete = frame.select(pl.all_horizontal(pl.col("city", "income").is_not_null()))
    assert found["label"].is_not_null().to_list() == is_complete.to_series().to_list()
    assert found["key"].to_list() == frame["key"].to_list()


@pytest.mark.parametrize("form", ["csv", "parquet", "xlsx"])
def test_names_of_columns_that_labels_have_too(tmp_path, form):
    rows = "".join(f"=k{row},{row % 3},{'abc'[row % 3]},{row % 3 * 9}.5\n" for row in range(30))
    (tmp_path / "t.csv").write_text(f"id,label,name,x\n{rows}")
    words = ("--id", "id", "--with-columns", "--labels", form, "--out", tmp_path / "run")
    code, _, err = quick(tmp_path / "t.csv", *words)
    assert code == 0, err
    found = read_table(tmp_path / "run" / f"labels.{form}")
    first = ["id", "label", "name"]
    assert [name for name in found.columns if name != "confidence"] == [
        *first,
        "label (file)",
        "name (file)",
        "x",
    ]
    assert found["id"][1] == ("'=k1" if form == "csv" else "=k1")
    assert found["name (file)"].to_list() == list("abc") * 10
    code, out, err = deccs("compare", tmp_path / "run", tmp_path / "run", "--json")
    assert code == 0 and json.loads(out)["pairs"][0]["rows_in_common"] == 30, err


def test_an_array_has_no_columns_to_write(tmp_path, blobs):
    np.save(tmp_path / "x.npy", blobs.X)
    code, _, err = quick(tmp_path / "x.npy", "--with-columns", "--out", tmp_path / "run")
    assert code == 2 and "arrays and images have none" in " ".join(err.split())
    assert not (tmp_path / "run").exists()


# ---- other names


@pytest.mark.parametrize("form", ["csv", "parquet", "xlsx"])
def test_a_new_name_is_in_all_files_of_the_run(copy, place, form):
    if form != "csv":
        path = copy / f"labels.{form}"
        assert deccs("predict", copy, place / "train.csv", "--out", path, "-q")[0] == 0
        (copy / "labels.csv").unlink()
    before = read_table(copy / f"labels.{form}")
    old = summary_of(copy)["clusters"][1]["name"]
    for new in ("good, old customers: " + "ä" * 70, "big spenders, 5 rows"):
        assert deccs("rename", copy, 1, new)[0] == 0
        after = read_table(copy / f"labels.{form}")
        is_it = after["label"] == "1"
        assert set(after.filter(is_it)["name"]) == {new}
        assert after.filter(~is_it).equals(before.filter(~is_it))
        assert after.drop("name").equals(before.drop("name"))
        clusters = summary_of(copy)["clusters"]
        assert clusters[1]["name"] == new and clusters[0]["name"] not in (old, new)
        text = " ".join((copy / "clusters.txt").read_text().split())
        assert f"1 · {new}: {int(is_it.sum())} rows Rule:" in text and f"· {old}:" not in text
        assert DECCS.load(copy / "model").cluster_names_[1] == new
    _, out, _ = deccs("predict", copy, place / "train.csv", "-q")
    assert {row[2] for row in rows_of(out)[1:] if row[1] == "1"} == {new}
    assert deccs("report", copy)[0] == 0 and new in (copy / "report.html").read_text()


def test_rename_leaves_other_columns_as_they_are(place, tmp_path):
    words = ("--with-columns", "--id", "key", "--out", tmp_path / "run")
    assert quick(place / "train.csv", *words)[0] == 0
    before = rows_of(tmp_path / "run" / "labels.csv")
    assert deccs("rename", tmp_path / "run", 0, "first")[0] == 0
    after = rows_of(tmp_path / "run" / "labels.csv")
    place_of_name = before[0].index("name")
    for old, new in zip(before[1:], after[1:], strict=True):
        assert new[place_of_name] == ("first" if old[1] == "0" else old[place_of_name])
        assert [*new[:place_of_name], *new[place_of_name + 1 :]] == [
            *old[:place_of_name],
            *old[place_of_name + 1 :],
        ]


@pytest.mark.parametrize(
    ("cluster", "name", "told"),
    [
        (3, "x", "There is no cluster 3; the clusters are 0 to 2."),
        (-1, "x", "no cluster -1"),
        (0, " ", "1 to 100 letters"),
        (0, "x" * 101, "1 to 100 letters"),
        (0, "a\x1b[2J", "1 to 100 letters"),
        ("one", "x", "integer"),
    ],
)
def test_bad_names_change_nothing(copy, cluster, name, told):
    before = {path: path.read_bytes() for path in copy.rglob("*") if path.is_file()}
    code, _, err = deccs("rename", copy, "--", cluster, name)
    assert code == 2 and told in " ".join(err.split())
    assert {path: path.read_bytes() for path in copy.rglob("*") if path.is_file()} == before


def test_two_clusters_do_not_get_one_name(copy):
    taken = summary_of(copy)["clusters"][2]["name"]
    code, _, err = deccs("rename", copy, 0, taken)
    assert code == 2 and "Cluster 2 is named" in " ".join(err.split())
    assert deccs("rename", copy, 2, taken)[0] == 0  # its own


@pytest.mark.parametrize("labels", ["id,label,name\na,x,b\n", "id,label,name\na,99,b\n", "", "\0"])
def test_rename_of_a_folder_with_strange_labels_ends_with_a_sentence(copy, labels):
    (copy / "labels.csv").write_text(labels)
    code, _, err = deccs("rename", copy, 0, "first")
    assert code in (0, 2) and "Traceback" not in err


# ---- in Python


def test_columns_that_are_left_out_are_told_once(frame):
    model = DECCS(3, views=None).set_params(rounds__n_rounds=0, pretraining__n_steps=2)
    with pytest.warns(TableWarning, match=r"'zip' \(code: .*'note' \(text: ") as told:
        model.fit(frame.drop("key"))
    assert len([one for one in told if one.category is TableWarning]) == 1
