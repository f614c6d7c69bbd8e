"""Parts of Markdown pages that a command rewrites."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from deccs.storage.atomic import write_text


@dataclass(frozen=True)
class Block:
    """What is between ``<!-- name: command -->`` and ``<!-- end of name -->``."""

    name: str
    command: str

    @property
    def begin(self) -> str:
        return f"<!-- {self.name}: {self.command} -->"

    @property
    def end(self) -> str:
        return f"<!-- end of {self.name} -->"

    def put_into(self, text: str, content: str) -> str:
        """A page with new content in this block.

        >>> Block("table", "make it").put_into("a <!-- table: make it -->old<!-- end of table --> b", "new")
        'a <!-- table: make it -->\\nnew\\n<!-- end of table --> b'
        """
        if text.count(self.begin) != 1 or self.end not in text.split(self.begin)[1]:
            raise ValueError(f"The page must have {self.begin} and after it {self.end}, once.")
        before, rest = text.split(self.begin)
        return f"{before}{self.begin}\n{content}\n{self.end}{rest.split(self.end, 1)[1]}"

    def rewrite(self, page: Path, content: str) -> None:
        write_text(page, self.put_into(page.read_text(encoding="utf-8"), content))
