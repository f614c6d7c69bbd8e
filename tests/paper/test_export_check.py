"""The check of exported models."""

import json

import numpy as np
import pytest

pytest.importorskip("onnxruntime", reason="pip install 'deccs[onnx]'")

from deccs_paper import export_check


def test_a_model_is_compared_on_all_rows(fitted, blobs, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(export_check, "SECONDS", 0.0)
    monkeypatch.setattr(export_check, "rows_of", lambda name: (blobs.X, 3))
    fitted.save(tmp_path / "models" / "synth")
    out = tmp_path / "onnx.jsonl"
    code = export_check.main(
        [str(tmp_path / "models"), "--datasets", "synth", "mice", "--out", str(out)]
    )
    assert code == 0 and "no model of mice; --fit makes one" in capsys.readouterr().out
    double, single = (json.loads(line) for line in out.read_text().splitlines())
    assert double["n_rows"] == len(blobs.X) and double["labels_as_fitted"] == 1
    assert double["labels_differ"] == 0 and double["probabilities_apart"] < 1e-9
    assert single["precision"] == "single" and single["n_bytes"] < double["n_bytes"]
    table = export_check.markdown(export_check.of_records(out)).splitlines()
    assert len(table) == 4 and table[2].startswith("| SYNTH | kmeans | double | 180 | 0 |")


def test_differences_are_of_rows_with_equal_labels():
    from deccs.answer import Answer

    answer = Answer(np.zeros((2, 1)), np.array([0, 1]), np.array([[1.0, 0], [0.25, 0.75]]))
    found = {"labels": np.array([0, 0]), "probabilities": np.array([[0.5, 0.5], [1.0, 0]])}
    assert export_check.apart(found, answer, "probabilities") == 0.5
    assert export_check.apart(found, answer, "confidence") is None
