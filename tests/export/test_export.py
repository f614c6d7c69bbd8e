"""An ONNX file says what the model says: every method, every kind of column, rows of any kind."""

import json
import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

onnx = pytest.importorskip("onnx", reason="pip install 'deccs[onnx]'")
pytest.importorskip("onnxruntime", reason="pip install 'deccs[onnx]'")

from deccs.export import ExportError, NotChecked, checking, onnx_file, onnx_inputs  # noqa: E402
from deccs.export.checking import run, session_of  # noqa: E402

METHODS = (
    *(
        "DECCS",
        "DECCS of a table",
        "DEC",
        "IDEC",
        "DCN",
        "VaDE",
        "DeepECT",
        "SpectralNet",
        "ConCURL",
    ),
    *("IEC", "k-means", "mixture", "diagonal", "tied", "no predict", "AutoencoderConsensus"),
    *("ConsensusClustering", "gaps", "words", "pixels", "unscaled", "huge", "table"),
)
ALL = ("labels", "probabilities", "confidence", "embedding", "members")


def exported(model, **how):
    return session_of(onnx_file.onnx_model(model, **how).SerializeToString(), n_threads=1)


def outputs_of(model, X):
    answer = model.answer(X[:1])
    parts = {**dict(zip(ALL[:3], ALL[:3], strict=True)), "embedding": "Z", "members": "members"}
    return [name for name, part in parts.items() if getattr(answer, part) is not None]


def first_weights(model):
    """Of the unit that sums up to most."""
    weights = model.autoencoder_.encoder[0].weight.detach().numpy()
    return weights[np.abs(weights).sum(axis=1).argmax()]


@pytest.mark.parametrize("name", METHODS)
def test_a_file_says_what_the_model_says(fitted_models, name):
    model, X = fitted_models(name)
    names = outputs_of(model, X)
    session = exported(model, outputs=names)
    found, answer = run(session, onnx_inputs(model, X)), model.answer(X)
    assert_array_equal(found["labels"], answer.labels)
    assert_allclose(found["embedding"], answer.Z, rtol=1e-9, atol=1e-9)
    assert_allclose(found["confidence"], answer.confidence, atol=1e-9)
    if "probabilities" in names:
        assert_allclose(found["probabilities"], answer.probabilities, atol=1e-9)
    if "members" in names:
        assert_array_equal(found["members"].T, answer.members)
    given = onnx_inputs(model, X)
    one, none = (run(session, {key: part[:n] for key, part in given.items()}) for n in (1, 0))
    assert_array_equal(one["labels"], answer.labels[:1])
    assert [len(part) for part in none.values()] == [0] * len(names)


@pytest.mark.parametrize(
    "name", ["DECCS", "DECCS of a table", "DEC", "gaps", "huge", "table", "words"]
)
def test_probe_rows_agree_too(fitted_models, name):
    """Extreme values, gaps, unseen levels."""
    model, _ = fitted_models(name)
    checking.check_same(model, onnx_file.onnx_model(model).SerializeToString(), "double")


@pytest.mark.parametrize("name", ["DECCS", "table", "VaDE"])
def test_single_precision_has_the_same_labels_away_from_borders(fitted_models, name):
    model, X = fitted_models(name)
    found = run(exported(model, precision="single"), onnx_inputs(model, X, precision="single"))
    answer = model.answer(X)
    assert_array_equal(found["labels"], answer.labels)
    assert found["probabilities"].dtype == np.float32
    assert_allclose(found["probabilities"], answer.probabilities, atol=1e-5)


@pytest.mark.parametrize("value", [np.inf, -np.inf])
def test_rows_that_predict_refuses_have_no_label(fitted_models, value):
    model, X = fitted_models("DEC")
    session = exported(model)
    rows = X[:3].copy()
    rows[1, 2] = value
    found = run(session, {"X": rows})
    assert_array_equal(found["labels"], [model.labels_[0], -1, model.labels_[2]])
    assert found["confidence"][1] == 0 and not found["probabilities"][1].any()


def test_rows_that_a_network_overflows_at_have_no_label(fitted_models):
    model, X = fitted_models("unscaled")
    giant = np.copysign(1.7e308, first_weights(model).astype(float))
    rows = np.vstack([X[0], giant])
    assert_array_equal(run(exported(model), {"X": rows})["labels"], [model.labels_[0], -1])


def test_gaps_of_a_model_that_has_seen_none_count_as_means(fitted_models):
    model, X = fitted_models("DEC")
    rows = X[:5].copy()
    rows[:, 1] = np.nan
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = model.predict(rows)
    assert_array_equal(run(exported(model), {"X": rows})["labels"], expected)


def test_columns_are_inputs_by_name(fitted_models, table):
    """A column named like an output gets another name; texts may be written in several ways."""
    import polars as pl

    model, _ = fitted_models("table")
    session = exported(model)
    types = {each.name: each.type for each in session.get_inputs()}
    assert types["income"] == "tensor(double)" and types["color"] == "tensor(string)"
    assert "_labels" in types and "labels" not in types
    told = json.loads(session.get_modelmeta().custom_metadata_map["columns"])
    assert [(each["column"], each["input"]) for each in told][-1] == ("labels", "_labels")
    odd = table.with_columns(
        pl.lit("purple").alias("color"), pl.lit("LARGE").alias("size"), pl.lit("Ja").alias("member")
    )
    assert_array_equal(run(session, onnx_inputs(model, odd))["labels"], model.predict(odd))


def test_dates_are_days_since_1970(fitted_models):
    model, X = fitted_models("table")
    days = onnx_inputs(model, X)["since"][:, 0]
    known = X["since"].is_not_null().to_numpy()
    assert_array_equal(np.isnan(days), ~known)
    first = X["since"].drop_nulls()[0]
    assert days[known][0] == pytest.approx(first.timestamp() / 86_400, abs=1)


def test_the_file_tells_what_it_is(fitted_models, tmp_path):
    model, _ = fitted_models("DEC")
    model.export(tmp_path / "m.onnx", check=False)
    told = {each.key: each.value for each in onnx.load(tmp_path / "m.onnx").metadata_props}
    assert told["class"] == "DEC" and told["precision"] == "double"
    assert json.loads(told["cluster_names"]) == ["cluster 0", "cluster 1", "cluster 2"]


def test_a_file_holds_what_was_asked_for(fitted_models):
    model, _ = fitted_models("DECCS")
    labels_alone = onnx_file.onnx_model(model, outputs=["labels"])
    everything = onnx_file.onnx_model(model, outputs=ALL)
    assert len(labels_alone.SerializeToString()) < 0.5 * len(everything.SerializeToString())
    with pytest.raises(ExportError, match=r"some of labels, .*members for DECCS, got 'colors'"):
        onnx_file.onnx_model(model, outputs=["colors"])


def test_a_model_that_was_loaded_without_torch_is_exported_alike(fitted_models, tmp_path):
    import deccs

    model, X = fitted_models("DECCS")
    model.save(tmp_path / "model")
    light = deccs.load(tmp_path / "model")
    assert type(light).__name__ == "Predictor"
    ours, theirs = (run(exported(each), {"X": X}) for each in (model, light))
    for name, part in ours.items():
        assert_array_equal(part, theirs[name])


def test_a_method_of_a_graph_says_why_it_cannot(fitted_models, tmp_path):
    with pytest.raises(ExportError, match=r"its links to all rows of the fit"):
        fitted_models("AGAE")[0].export(tmp_path / "m.onnx")
    assert not list(tmp_path.iterdir())


def test_a_clusterer_of_the_users_own_says_why_it_cannot(blobs, fitted_models):
    import copy

    model = copy.copy(fitted_models("k-means")[0])

    class Mine:
        def predict(self, Z):
            return np.zeros(len(Z), dtype=int)

    model.clusterer_ = Mine()
    with pytest.raises(ExportError, match="The clusterer Mine labels new rows by code of its own"):
        onnx_file.onnx_model(model)


def test_free_text_says_why_it_cannot(table, fitted_models):
    import copy
    from dataclasses import replace

    model = copy.copy(fitted_models("table")[0])
    text = replace(model.coding_.columns[0], kind="text")
    model.coding_ = replace(model.coding_, columns=(text, *model.coding_.columns[1:]))
    with pytest.raises(ExportError, match=r"'income' is free text.*kinds=\{'income': 'id'\}"):
        onnx_file.onnx_model(model)


def test_another_answer_is_an_error_and_nothing_is_written(fitted_models, tmp_path, monkeypatch):
    model, _ = fitted_models("DEC")
    other, _ = fitted_models("IDEC")
    content = onnx_file.onnx_model(other).SerializeToString()
    with pytest.raises(ExportError, match="onnxruntime gives"):
        checking.check_same(model, content, "double")
    real = checking.run

    def wrong(session, inputs):
        found = real(session, inputs)
        return {**found, "labels": found["labels"] + 1}

    monkeypatch.setattr(checking, "run", wrong)
    with pytest.raises(ExportError, match="another label than the model; the first is"):
        model.export(tmp_path / "m.onnx")
    assert not list(tmp_path.iterdir())


def test_rows_of_the_user_are_compared_too(fitted_models, tmp_path, monkeypatch):
    model, X = fitted_models("DEC")
    seen = []
    monkeypatch.setattr(checking, "compare", lambda model, session, X, precision: seen.append(X))
    model.export(tmp_path / "m.onnx", check=X)
    assert seen[-1] is X and len(seen) > 1


def test_without_onnxruntime_a_file_is_written_with_a_warning(fitted_models, tmp_path, monkeypatch):
    monkeypatch.setattr(onnx_file, "find_spec", lambda name: None)
    with pytest.warns(NotChecked, match=r"not compared with the model.*deccs\[onnx\]"):
        fitted_models("DEC")[0].export(tmp_path / "m.onnx")
    assert (tmp_path / "m.onnx").exists()


def test_an_unknown_precision_is_refused(fitted_models, tmp_path):
    with pytest.raises(ValueError, match="precision must be 'double' or 'single', got 'half'"):
        fitted_models("DEC")[0].export(tmp_path / "m.onnx", precision="half")


def edited_models(model):
    """A model with each kind of edit, and with all of them."""
    rows = np.flatnonzero(model.labels_ == model.labels_[0])[:3]
    other = int(next(label for label in model.labels_ if label != model.labels_[0]))
    yield model.merge([2, 0])
    yield model.drop(1)
    yield model.pin(rows, other)
    split = model.split(int(np.bincount(model.labels_).argmax()))
    yield split
    yield split.merge([1, 3]).pin(rows, 1).drop(1).rename(2, "last")


@pytest.mark.parametrize("name", ["DECCS", "DECCS of a table", "DEC", "k-means"])
def test_edits_are_in_the_file(fitted_models, name):
    model, X = fitted_models(name)
    names = outputs_of(model, X)
    inputs = onnx_inputs(model, X)
    for edited in edited_models(model):
        found = run(exported(edited, outputs=names), inputs)
        answer = edited.answer(X)
        assert_array_equal(found["labels"], answer.labels)
        assert_allclose(found["confidence"], answer.confidence, atol=1e-9)
        assert_allclose(found["probabilities"], answer.probabilities, atol=1e-9)
        if "members" in names:
            assert_array_equal(found["members"].T, answer.members)
    told = json.loads(onnx_file.metadata(edited, [], "double")["clusters"])
    assert told == list(edited.clusters_) and 1 not in told


def test_numbers_of_an_earlier_model_are_in_the_file(fitted_models):
    """As a refit gives them: ``DECCS(like=...)``."""
    import copy

    from deccs.edits.steps import Renumber

    model, X = fitted_models("DEC")
    refit = copy.copy(model)
    refit._n_learned_clusters, refit.n_clusters_ = 3, 5
    refit._renumber = Renumber(np.array([4, 0, 2]), 5)
    found, answer = run(exported(refit), onnx_inputs(refit, X)), refit.answer(X)
    assert set(found["labels"]) <= {0, 2, 4}
    assert_array_equal(found["labels"], answer.labels)
    assert_allclose(found["probabilities"], answer.probabilities, atol=1e-9)


@pytest.mark.parametrize("name", ["DECCS", "DECCS of a table", "DEC", "ConCURL"])
def test_novelty_is_in_the_file(fitted_models, name):
    """Of rows of the fit, and of rows unlike them."""
    model, X = fitted_models(name)
    inputs = onnx_inputs(model, X)
    found = run(exported(model), inputs)["novelty"]
    assert_allclose(found, model.novelty(X), atol=1e-6)
    if "X" in inputs:
        strange = 9 * X[:5] + 7
        assert_allclose(
            run(exported(model), {"X": strange})["novelty"], model.novelty(strange), atol=1e-6
        )
        assert run(exported(model), {"X": np.full((1, X.shape[1]), np.inf)})["novelty"] == 1


def test_novelty_is_that_of_the_fit_after_edits(fitted_models):
    model, X = fitted_models("DEC")
    found = run(exported(model.drop(1)), {"X": X})
    assert_allclose(found["novelty"], model.novelty(X), atol=1e-6)
