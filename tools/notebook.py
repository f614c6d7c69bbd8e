"""Run a script of cells and write it as a Jupyter notebook, with what it printed and drew.

    python -m tools.notebook docs/notebooks/scanpy.py

Cells begin with ``# %%`` (code) or ``# %% [markdown]`` (text in comments), as editors know them. Nothing of Jupyter is
needed. Where only texts have changed, the outputs are kept and nothing is run.
"""

from __future__ import annotations

import argparse
import ast
import base64
import contextlib
import io
import json
import re
from pathlib import Path
from typing import Any

DPI = 64  # a picture should be readable, and the file small


def cells_of(script: str) -> list[tuple[str, str]]:
    """(kind, text) of each cell.

    >>> cells_of("# %% [markdown]\\n# # Title\\n#\\n# Words.\\n\\n# %%\\nx = 1\\nx\\n")
    [('markdown', '# Title\\n\\nWords.'), ('code', 'x = 1\\nx')]
    """
    parts = re.split(r"^# %%( \[markdown\])?\n", script, flags=re.MULTILINE)[1:]
    cells = []
    for mark, text in zip(parts[::2], parts[1::2], strict=True):
        if mark:
            text = re.sub(r"^# ?", "", text, flags=re.MULTILINE)
        cells.append(("markdown" if mark else "code", text.strip()))
    return cells


def outputs_of(code: str, names: dict[str, Any], number: int) -> list[dict[str, Any]]:
    """What a cell prints, the value of its last line, and its pictures."""
    import matplotlib.pyplot as plt

    tree = ast.parse(code)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    printed, value = io.StringIO(), None
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(io.StringIO()):
        exec(compile(tree, f"cell {number}", "exec"), names)
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), f"cell {number}", "eval"), names)
    outputs: list[dict[str, Any]] = []
    if printed.getvalue():
        outputs.append(
            {"output_type": "stream", "name": "stdout", "text": lines(printed.getvalue())}
        )
    pictures = [plt.figure(place) for place in plt.get_fignums()]
    for figure in pictures:
        content = io.BytesIO()
        figure.savefig(content, format="png", dpi=DPI, bbox_inches="tight")
        data = {"image/png": base64.b64encode(content.getvalue()).decode() + "\n"}
        outputs.append({"output_type": "display_data", "data": data, "metadata": {}})
    plt.close("all")
    if value is not None and not pictures:
        data = {"text/plain": lines(repr(value))}
        if hasattr(value, "_repr_html_"):
            data["text/html"] = lines(
                re.sub(r"<style.*?</style>\s*", "", value._repr_html_(), flags=re.S)
            )
        result = {"output_type": "execute_result", "execution_count": number}
        outputs.append({**result, "data": data, "metadata": {}})
    return outputs


def lines(text: str) -> list[str]:
    return text.splitlines(keepends=True)


def notebook_of(cells: list[tuple[str, str]], known: list[list[dict[str, Any]]]) -> dict[str, Any]:
    """The notebook, format 4.5; ``known`` are the outputs of the code cells if they need not be run."""
    import matplotlib

    matplotlib.use("Agg")
    names: dict[str, Any] = {"__name__": "__main__"}
    made: list[dict[str, Any]] = []
    number = 0
    for place, (kind, text) in enumerate(cells):
        cell = {"cell_type": kind, "id": f"cell-{place}", "metadata": {}, "source": lines(text)}
        if kind == "code":
            number += 1
            print(f"cell {number}", flush=True)
            outputs = known[number - 1] if known else outputs_of(text, names, number)
            cell |= {"execution_count": number, "outputs": outputs}
        made.append(cell)
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    about = {"kernelspec": kernel, "language_info": {"name": "python"}}
    return {"cells": made, "metadata": about, "nbformat": 4, "nbformat_minor": 5}


def known_outputs(path: Path, cells: list[tuple[str, str]]) -> list[list[dict[str, Any]]]:
    """The outputs of a notebook that was made of the same code."""
    if not path.exists():
        return []
    made = [cell for cell in json.loads(path.read_text())["cells"] if cell["cell_type"] == "code"]
    code = [text for kind, text in cells if kind == "code"]
    is_same = ["".join(cell["source"]) for cell in made] == code
    return [cell["outputs"] for cell in made] if is_same else []


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("script", type=Path)
    parser.add_argument("--fresh", action="store_true", help="run it even if no code has changed")
    options = parser.parse_args()
    path = options.script.with_suffix(".ipynb")
    cells = cells_of(options.script.read_text(encoding="utf-8"))
    notebook = notebook_of(cells, [] if options.fresh else known_outputs(path, cells))
    path.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    print(f"Wrote {path}, {path.stat().st_size / 1000:.0f} KB.")


if __name__ == "__main__":
    main()
