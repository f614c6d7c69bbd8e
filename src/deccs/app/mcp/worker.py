"""The process that does the work of tools: a line of JSON asks, lines of JSON answer.

::

    {"tool": "fit", "options": {"file": "data.csv"}}
    {"progress": "pretraining: 120 of 400"}
    {"result": {...}}        or        {"error": "There is no column 'age'. ..."}
"""

from __future__ import annotations

import io
import json
import os
import traceback
from collections.abc import Iterable
from typing import Any, TextIO


def main() -> None:
    """Answer until stdin ends. What tools and their libraries print goes to stderr."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    asked = io.TextIOWrapper(os.fdopen(os.dup(0), "rb"), encoding="utf-8")
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    work(asked, answers)


def work(asked: Iterable[str], answers: TextIO) -> None:
    """Answer each line."""
    from deccs.app.mcp.tools import TOOLS, Failure, Teller

    def tell(**message: Any) -> None:
        print(json.dumps(message, allow_nan=False), file=answers, flush=True)

    for line in asked:
        question = json.loads(line)
        teller = Teller(lambda words: tell(progress=words))
        try:
            tell(result=TOOLS[question["tool"]](question["options"], teller))
        except Failure as failure:
            tell(error=str(failure))
        except Exception as error:  # noqa: BLE001  it is told, and the process goes on
            traceback.print_exc()
            tell(error=f"Unexpected error: {type(error).__name__}: {error}")


if __name__ == "__main__":
    main()
