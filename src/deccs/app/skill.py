"""``deccs skill``: the guide for coding agents, printed or put where an agent looks for it."""

from __future__ import annotations

from deccs.agents.files import SKILL, read
from deccs.app.output import Output, print_at_once
from deccs.app.request import RequestError, SkillRequest


def skill(request: SkillRequest, output: Output) -> None:
    """Print the skill, or write it to a folder."""
    if request.out is None:
        print_at_once(read(SKILL).removesuffix("\n"))
        return
    path = request.out / SKILL
    if path.exists() and not request.overwrite:
        raise RequestError(f"{path} exists. Give another --out, or add --overwrite.")
    request.out.mkdir(parents=True, exist_ok=True)
    path.write_text(read(SKILL), encoding="utf-8")
    output.note(f"Wrote {path}.")
