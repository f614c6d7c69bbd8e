"""llms.txt: every link leads to a page, every page is in it, and the wheel has the same."""

import re
from pathlib import Path

from deccs.agents.files import INDEX, read

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / INDEX).read_text(encoding="utf-8")
LINKS = re.findall(r"^- \[(.+?)\]\((.+?)\): (.+)$", TEXT, re.M)


def test_the_wheel_has_the_same():
    assert read(INDEX) == TEXT


def test_it_has_the_form_of_llms_txt():
    lines = [line for line in TEXT.splitlines() if line]
    assert lines[0] == "# deccs" and lines[1].startswith("> ")
    in_lists = [line for line in lines if line.startswith("- ")]
    assert len(in_lists) == len(LINKS)  # a title, a link and a line of words each
    assert [line for line in lines if line.startswith("## ")] == [
        "## Start",
        "## Guides",
        "## Background",
    ]


def test_every_link_is_a_page_of_markdown_and_every_page_is_linked():
    targets = [target for _, target, _ in LINKS]
    assert len(set(targets)) == len(targets)
    assert all(target.endswith(".md") and (ROOT / target).is_file() for target in targets)
    assert {path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").glob("*.md")} <= {
        *targets
    }
