"""The notebook of docs/scanpy.md is that of its script, was executed, and is small."""

import json
from pathlib import Path

import pytest
from tools.notebook import cells_of, known_outputs, notebook_of

FOLDER = Path(__file__).parents[1] / "docs" / "notebooks"
SCRIPT, NOTEBOOK = FOLDER / "scanpy.py", FOLDER / "scanpy.ipynb"


def test_the_notebook_is_that_of_the_script_and_was_executed():
    made = json.loads(NOTEBOOK.read_text(encoding="utf-8"))
    cells = cells_of(SCRIPT.read_text(encoding="utf-8"))
    assert [(cell["cell_type"], "".join(cell["source"])) for cell in made["cells"]] == cells
    code = [cell for cell in made["cells"] if cell["cell_type"] == "code"]
    assert [cell["execution_count"] for cell in code] == list(range(1, len(code) + 1))
    assert all(cell["outputs"] for cell in code)
    kinds = [kind for cell in code for output in cell["outputs"] for kind in output.get("data", ())]
    assert kinds.count("image/png") >= 2 and "text/html" in kinds
    assert NOTEBOOK.stat().st_size < 400_000


def test_cells_that_print_draw_and_end_in_a_value(tmp_path, capsys):
    plt = pytest.importorskip("matplotlib.pyplot")
    script = (
        "# %% [markdown]\n# # Title\n\n# %%\nx = 2\nprint(x)\nx + 1\n\n"
        "# %%\nimport matplotlib.pyplot as plt\nplt.plot([x])\n"
    )
    cells = cells_of(script)
    assert [kind for kind, _ in cells] == ["markdown", "code", "code"]
    made = notebook_of(cells, [])
    printed, value = made["cells"][1]["outputs"]
    assert printed["text"] == ["2\n"] and value["data"]["text/plain"] == ["3"]
    (picture,) = made["cells"][2]["outputs"]  # and not the list of lines
    assert picture["data"]["image/png"].startswith("iVBOR") and not plt.get_fignums()
    path = tmp_path / "made.ipynb"
    path.write_text(json.dumps(made))
    kept = known_outputs(path, cells)
    assert (
        notebook_of([("markdown", "Other words"), *cells[1:]], kept)["cells"][1:]
        == made["cells"][1:]
    )
    assert known_outputs(path, [*cells[:1], ("code", "x = 3"), cells[2]]) == []
