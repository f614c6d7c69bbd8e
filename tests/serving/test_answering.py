"""Replies without HTTP: the same answers as ``predict``, whatever form rows come in, and messages for all else."""

import io
import json

import numpy as np
import orjson
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from deccs import DECCS
from deccs.answer import Answer
from deccs.serving.answering import CSV, JSON, NPY, Question, Served
from deccs.serving.limits import Limits
from deccs.serving.npy import npy_of
from tests.helpers.frames import mixed
from tests.serving.conftest import NAMES


def ask(served, document, **changes):
    """(status, what was said) of a question."""
    body = document if isinstance(document, bytes) else json.dumps(document).encode()
    (reply,) = served.replies([Question(body, **changes)])
    return reply.status, orjson.loads(reply.body)


def said(served, document, **changes):
    status, answer = ask(served, document, **changes)
    assert status == 200, answer
    return answer


def refused(served, document, status=422, **changes):
    got, answer = ask(served, document, **changes)
    assert got == status, answer
    assert [*answer] == ["error"]
    return answer["error"]


def records(X, names=NAMES):
    return [dict(zip(names, row, strict=True)) for row in X.tolist()]


def csv_of(X, names=NAMES):
    lines = [",".join(names), *(",".join(map(repr, row)) for row in X.tolist())]
    return ("\n".join(lines) + "\n").encode()


def test_every_form_of_rows_gets_what_predict_says(named, blobs):
    X = blobs.X[:20]
    expected = named.model.answer(X)
    forms = [
        ({"rows": X.tolist()}, JSON),
        (X.tolist(), JSON),
        ({"rows": records(X)}, JSON),
        ({"rows": records(X[:, ::-1], NAMES[::-1])}, JSON),
        ({"columns": dict(zip(NAMES, X.T.tolist(), strict=True))}, JSON),
        (csv_of(X), CSV),
        (csv_of(X[:, ::-1], NAMES[::-1]), CSV),
        (npy_of(X), NPY),
        (npy_of(np.asfortranarray(X)), NPY),
    ]
    for document, media in forms:
        answer = said(named, document, media=media)
        assert answer["labels"] == expected.labels.tolist()
        assert_allclose(answer["probabilities"], expected.probabilities, rtol=1e-12)
        assert_allclose(answer["confidence"], expected.confidence, rtol=1e-12)
        assert "notes" not in answer


def test_a_row_gets_the_same_alone_and_with_the_rows_of_others(named, blobs):
    X = blobs.X[:12]
    together = said(named, X.tolist())
    alone = [said(named, {"row": row}) for row in X.tolist()]
    questions = [Question(json.dumps([row]).encode()) for row in X.tolist()]
    merged = [orjson.loads(reply.body) for reply in named.replies(questions)]
    assert [one["labels"] for one in merged] == [one["labels"] for one in alone]
    assert [one["labels"][0] for one in alone] == together["labels"]
    for field in (
        "probabilities",
        "confidence",
    ):  # products of other shapes differ in the last digit
        assert_allclose([one[field][0] for one in merged], together[field], rtol=1e-12)
        assert_allclose([one[field][0] for one in alone], together[field], rtol=1e-12)


def test_labels_alone_are_those_of_the_whole_answer(named, blobs):
    X = blobs.X.tolist()
    assert said(named, X, fields=("labels",)) == {"labels": said(named, X)["labels"]}
    (reply,) = named.replies([Question(json.dumps(X).encode(), reply=NPY)])
    assert reply.media == NPY
    assert np.load(io.BytesIO(reply.body)).tolist() == said(named, X)["labels"]


def test_a_table_of_all_kinds_gets_what_predict_says(table):
    frame = mixed(n=40, seed=8)
    expected = table.model.answer(frame)
    rows = json.loads(json.dumps(frame.to_dicts(), default=str))
    columns = {name: [row[name] for row in rows] for name in frame.columns}
    lists = [[row[name] for name in table.reader.names] for row in rows]
    for document in ({"rows": rows}, {"columns": columns}, {"rows": lists}):
        answer = said(table, document)
        assert answer["labels"] == expected.labels.tolist()
        assert_allclose(answer["confidence"], expected.confidence, rtol=1e-12)
        assert answer["names"] == [table.model.cluster_names_[label] for label in answer["labels"]]
    assert said(table, frame.write_csv().encode(), media=CSV)["labels"] == answer["labels"]
    alone = [said(table, {"row": row}) for row in rows[:6]]
    questions = [Question(json.dumps({"row": row}).encode()) for row in rows[:6]]
    merged = [orjson.loads(reply.body) for reply in table.replies(questions)]
    for some in (alone, merged):
        assert [one["labels"][0] for one in some] == answer["labels"][:6]
        assert_allclose(
            [one["confidence"][0] for one in some], answer["confidence"][:6], rtol=1e-12
        )


def test_words_of_one_client_do_not_change_what_others_are_told(table):
    good = {
        "size": 0.5,
        "visits": 3,
        "smoker": "yes",
        "city": "Oslo",
        "shirt": "M",
        "born": "2021-05-06",
    }
    odd = [
        good | {"size": "0.5", "visits": "3", "smoker": True},
        good | {"city": 7},
        good | {"city": "Rome", "shirt": 5},
        good | {"born": "06.05.2021"},
        good | {"born": 5},
        good | {"size": "wide"},
        dict.fromkeys(good),
    ]
    questions = [Question(json.dumps({"row": row}).encode()) for row in [good, *odd, good]]
    together = [orjson.loads(reply.body) for reply in table.replies(questions)]
    alone = [orjson.loads(table.replies([question])[0].body) for question in questions]
    assert [{**one, "probabilities": 0, "confidence": 0} for one in together] == [
        {**one, "probabilities": 0, "confidence": 0} for one in alone
    ]
    assert together[1] == {**together[0]} and together[0] == together[-1]
    assert together[2]["notes"] == ["Values the model has not seen count as missing: city 1."]
    assert together[4]["error"] == (
        "Column 'born' must be dates such as 2024-01-31, got '06.05.2021'."
    )
    assert "'wide'" in together[6]["error"]


def test_a_failing_question_does_not_harm_the_others(named, blobs):
    good = Question(json.dumps(blobs.X[:2].tolist()).encode())
    bad = Question(b"[[1, 2]]")
    too_large = Question(b"[[1e308, -1e308, 1e308, 1e308]]")
    first, second, third, fourth = named.replies([good, bad, too_large, good])
    assert first == fourth == named.replies([good])[0]
    assert second.status == 422
    assert third == named.replies([too_large])[0]


def test_an_unexpected_error_is_told_to_the_operator_alone(named, blobs):
    class Broken:
        def __getattr__(self, name):
            return getattr(named.model, name)

        def _answers(self, source):
            if source.shape[0] > 1:
                raise RuntimeError("secret")
            return named.model._answers(source)

    told = []
    served = Served(Broken(), named.preprocessing, tell=told.append)
    one, two = (Question(json.dumps(blobs.X[:n].tolist()).encode()) for n in (1, 2))
    first, second, third = served.replies([one, two, one])
    assert first == third == named.replies([one])[0]
    assert second.status == 500
    assert b"secret" not in second.body and b"Traceback" not in second.body
    (text,) = told
    assert "RuntimeError: secret" in text and second.body.decode()[-11:-3] in text


def test_missing_values_are_null(named, table, blobs):
    row = blobs.X[0].tolist()
    gap = [*row[:3], None]
    mean = [*row[:3], float(np.broadcast_to(named.model.scaler_.mean, 4)[3])]
    answer = said(named, [gap, row])
    assert answer["notes"] == [
        "Missing values: 1. The data of the fit had none; each counts as the mean of its column."
    ]
    assert answer["labels"] == said(named, [mean, row])["labels"]
    assert "notes" not in said(table, {"row": [None] * table.reader.n_columns})


@pytest.mark.parametrize(("missing", "labels"), [("drop", [None]), ("mean", [0]), ("error", None)])
def test_missing_values_are_treated_as_in_the_fit(plain_model, blobs, missing, labels):
    row = blobs.X[0].tolist()
    how = {"feature_names": NAMES, "missing": missing, "means": row}
    served = Served(plain_model, how, tell=print)
    whole = said(served, [row])["labels"]
    if labels is None:
        assert "--missing error" in refused(served, [[*row[:3], None], row])
        return
    answer = said(served, [[*row[:3], None], row])
    assert answer["labels"] == (labels if missing == "drop" else whole) + whole
    assert said(served, [[None] * 4])["labels"] == (labels if missing == "drop" else whole)


def test_columns_are_found_by_name(named):
    row = dict.fromkeys(NAMES, 0.0)
    assert said(named, [row | {"z": 1, "y": "x"}])["notes"] == [
        "Not in the model, ignored: 'y', 'z'."
    ]
    message = refused(named, [row, {"a": 1, "c": 2, "d": None}])
    assert message.startswith("Row 1 (counted from 0) lacks columns the model needs: 'b'.")
    message = refused(named, {"columns": {"a": [1], "c": [2]}})
    assert message == "The columns 'b', 'd' are missing; the model needs them."
    message = refused(named, b"a,b,c\n1,2,3\n", media=CSV)
    assert "'d'" in message or " d." in message
    message = refused(named, b"a,b,c,d\n1\n2\n", media=CSV)
    assert message.startswith("The body: line 2 has 1 fields, the first line has 4.")


def test_columns_without_names_cannot_be_asked_by_name(unnamed, blobs):
    assert (
        said(unnamed, blobs.X[:3].tolist())["labels"] == unnamed.model.predict(blobs.X[:3]).tolist()
    )
    assert "no names" in refused(unnamed, [dict.fromkeys(NAMES, 0.0)])


def test_numbers_may_be_written_as_text(named):
    assert said(named, [["1", " 2.5", 3, None]]) == said(named, [[1, 2.5, 3, None]])
    message = refused(named, [["1", "2", "three", 4]])
    assert message == "Column 'c' must be numbers, got the text 'three'."


def test_no_rows_are_no_error(named):
    empty = {name: [] for name in named.fields}
    for document in ([], {"rows": []}, {"columns": {name: [] for name in NAMES}}):
        assert said(named, document) == empty


@pytest.mark.parametrize(
    ("body", "status", "words"),
    [
        (b"", 400, "no valid JSON"),
        (b"[[1, 2, 3, NaN]]", 400, "no valid JSON"),
        (b"[[1e999, 2, 3, 4]]", 400, "infinity"),
        (b'{"rows": [[1, 2, 3, 4]', 400, "no valid JSON"),
        (b"[" * 900, 400, "no valid JSON"),
        (b"[" * 900 + b"]" * 900, 422, "4 values"),
        (b"\xff\xfe\x00", 400, "no valid JSON"),
        (b"5", 422, '"rows"'),
        (b"{}", 422, '"rows"'),
        (b'{"rows": 5}', 422, "'rows' is a number"),
        (b'{"rows": [1, 2]}', 422, "a number"),
        (b'{"rows": [[1, 2, 3, 4], {"a": 1}]}', 422, "a list, an object"),
        (b'{"rows": [], "row": []}', 422, '"rows"'),
        (b'{"columns": {"a": 1}}', 422, '"rows"'),
        (b'{"columns": {"a": [1], "b": [], "c": [], "d": []}}', 422, "one length"),
        (b"[[1, 2, 3]]", 422, "Each row must have 4 values"),
        (b"[[1, 2, 3, [4]]]", 422, "got a list"),
        (b'[[1, 2, 3, {"a": 1}]]', 422, "got an object"),
        (b'{"row": null}', 422, "holds null"),
        (b'{"columns": {"a": [[1]], "b": [1], "c": [1], "d": [1]}}', 422, "got a list"),
    ],
)
def test_malformed_json_ends_in_a_message(named, body, status, words):
    assert words in refused(named, body, status)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"", "does not begin like one"),
        (b"\x93NUMPY\x01\x00\xff\xff{}", "header"),
        (npy_of(np.zeros((3, 4)))[:-1], "96 bytes, and 95 follow"),
        (npy_of(np.zeros((3, 4))) + b"\0", "96 bytes, and 97 follow"),
        (npy_of(np.array([["a"]])), "header"),
        (npy_of(np.zeros((1, 4), complex)), "header"),
        (npy_of(np.zeros((1, 1, 2, 2))), "header"),
        (npy_of(np.zeros(4)), "rows and columns"),
        (npy_of(np.zeros((2, 3))), "the model needs 4"),
        (npy_of(np.full((2, 4), np.inf)), "infinite values in 'a', 'b', 'c', 'd'"),
        (
            npy_of(np.zeros((1, 4))).replace(b"(1, 4), ", b"(99999999999, 4)")[:200],
            "header",
        ),
    ],
)
def test_malformed_arrays_end_in_a_message(named, body, words):
    status, answer = ask(named, body, media=NPY)
    assert status in (400, 422)
    assert words in answer["error"]


def test_an_array_is_read_as_numpy_reads_it():
    rng = np.random.default_rng(0)
    from deccs.serving.npy import array_of

    for dtype in ("<f8", ">f8", "<f4", "<f2", "<i8", "|u1", "|b1", ">i2"):
        for order in ("C", "F"):
            X = np.asarray(rng.normal(0, 9, (5, 3)).astype(dtype), order=order)
            assert_array_equal(array_of(npy_of(X)), np.load(io.BytesIO(npy_of(X))))
    images = rng.normal(size=(4, 2, 3))
    assert_array_equal(array_of(npy_of(images)), images.reshape(4, 6))


def test_limits(named):
    small = Served(named.model, named.preprocessing, Limits(rows=3, cells=14), tell=print)
    row = [0.0] * 4
    assert len(said(small, [row] * 3)["labels"]) == 3
    assert "4 rows are more than the 3" in refused(small, [row] * 4, 413)
    assert "4 rows" in refused(small, npy_of(np.zeros((4, 4))), 413, media=NPY)
    assert "4 rows" in refused(small, csv_of(np.zeros((4, 4))), 413, media=CSV)
    tight = Served(named.model, named.preprocessing, Limits(cells=11), tell=print)
    assert "8 values" not in refused(tight, [row] * 3, 413)
    assert "more lists" in refused(small, b"[" + b"[]," * 2_000 + b"[]]", 413)
    many = {f"x{place}": 0 for place in range(2_000)}
    assert "1,000 columns" in refused(named, [dict.fromkeys(NAMES, 0) | many], 413)


def test_only_fields_that_the_model_has_can_be_asked(named):
    message = refused(named, [[0.0] * 4], fields=("labels", "novelties"))
    assert message.startswith("This model has no 'novelties'. Ask for some of labels, ")


def test_messages_hold_nothing_that_a_terminal_would_obey(named):
    for document in (
        [["\x1b[2J", "b", "c", "d" * 5_000]],
        [dict.fromkeys(NAMES, 0) | {"\x1b[31m\u202e" * 400: 1}],
        {"rows": [[1, 2, 3, 4]], "\x1b": 1},
    ):
        _, answer = ask(named, document)
        text = "".join([answer.get("error", ""), *answer.get("notes", ())])
        assert text.isprintable() and len(text) < 1_100


def test_noise_has_no_name(plain_model):
    class Noisy:
        def __getattr__(self, name):
            return getattr(plain_model, name)

        def _label_blocks(self, source):
            yield np.array([-1, 0])

    Noisy.cluster_names_ = ("first", "second", "third")
    answer = said(Served(Noisy(), {}, tell=print), [[0] * 4] * 2, fields=("labels", "names"))
    assert answer == {"labels": [-1, 0], "names": [None, "first"]}


def test_novelty_is_told_where_the_model_has_it(plain_model, blobs):
    class Novel:
        def __getattr__(self, name):
            return getattr(plain_model, name)

        def _answers(self, source):
            for answer in plain_model._answers(source):
                whole = {**vars(answer), "novelty": np.linspace(0, 1, len(answer))}
                yield Answer(**whole)

    assert said(Served(Novel(), {}, tell=print), blobs.X[:3].tolist())["novelty"] == [0, 0.5, 1]


def test_a_loaded_model_gives_the_same_replies(named, blobs, tmp_path):
    named.model.save(tmp_path / "model.zip")
    loaded = Served(DECCS.load(tmp_path / "model.zip"), named.preprocessing, tell=print)
    question = Question(json.dumps(blobs.X[:5].tolist()).encode())
    assert loaded.replies([question]) == named.replies([question])


def test_images_are_flattened(named, blobs):
    images = blobs.X[:6].reshape(6, 2, 2)
    assert said(named, npy_of(images), media=NPY) == said(named, npy_of(blobs.X[:6]), media=NPY)
