"""``python -m deccs_paper.rules_table docs/method.md``: write the table of all "auto" rules into a page."""

from __future__ import annotations

import argparse
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

from deccs.rules import RULES
from deccs_paper.blocks import Block
from deccs_paper.table import markdown

FIRST = ("Network.", "Pretraining.", "Rounds.")  # what all autoencoder methods share
RULE_TABLE = Block("rules", "python -m deccs_paper.rules_table docs/method.md")


def rules_markdown() -> str:
    """Settings that follow from the data, the first line of their rule, and its function."""
    settings: dict[Callable[..., Any], list[str]] = {}
    for setting, rule in sorted(RULES.items(), key=lambda item: not item[0].startswith(FIRST)):
        settings.setdefault(rule, []).append(f"`{setting}`")
    rows = [
        [", ".join(names), first_line(rule), f"`rules.{rule.__name__}`"]
        for rule, names in settings.items()
    ]
    return markdown(["setting", 'what "auto" means', "rule"], rows)


def first_line(rule: Callable[..., Any]) -> str:
    """Of its docstring; the table has nothing else to show."""
    words = (inspect.getdoc(rule) or "").splitlines()
    if not words or not words[0]:
        raise ValueError(f"{rule.__name__} needs a docstring whose first line says the rule.")
    return words[0].replace("``", "`").replace("|", "\\|")


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m deccs_paper.rules_table", description='Write the table of "auto" rules.'
    )
    parser.add_argument(
        "page", type=Path, help="a Markdown page with the comments around the table"
    )
    RULE_TABLE.rewrite(parser.parse_args(arguments).page, rules_markdown())
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
