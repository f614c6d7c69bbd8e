"""The files around the code agree with each other: versions, bounds, pins, what goes into the wheel."""

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
TOOLS = (
    "ruff",
    "mypy",
    "import-linter",
    "scipy-stubs",
    "build",
    "twine",
)  # not needed to run tests


def requirements():
    """name -> lower bound, of all dependencies and extras."""
    lines = [*PROJECT["project"]["dependencies"]]
    for extra in PROJECT["project"]["optional-dependencies"].values():
        lines += extra
    bounds = {}
    for requirement in map(Requirement, lines):
        if requirement.name != "deccs":
            (bound,) = requirement.specifier or [None]
            assert bound is None or bound.operator == ">="
            bounds[requirement.name] = Version(bound.version) if bound else None
    return bounds


def pins(name):
    """name -> version, of a file of constraints."""
    lines = (line.split("#")[0].strip() for line in (ROOT / name).read_text().splitlines())
    return {line.split("==")[0]: Version(line.split("==")[1]) for line in lines if line}


def test_the_lowest_versions_are_the_lower_bounds():
    bounds = {name: bound for name, bound in requirements().items() if name not in TOOLS}
    assert pins("constraints-lowest.txt") == bounds


def test_every_tool_and_library_is_pinned_within_its_bound():
    pinned, bounds = pins("constraints.txt"), requirements()
    assert set(pinned) == set(bounds)
    assert all(bound is None or pinned[name] >= bound for name, bound in bounds.items())


def test_pre_commit_formats_with_the_same_ruff():
    config = (ROOT / ".pre-commit-config.yaml").read_text()
    (version,) = re.findall(r"ruff-pre-commit\n\s+rev: v(\S+)", config)
    assert Version(version) == pins("constraints.txt")["ruff"]


@pytest.mark.parametrize(
    "path", sorted((ROOT / ".github" / "workflows").glob("*.yml")), ids=lambda path: path.name
)
def test_actions_are_pinned_to_a_commit_with_the_version_beside_it(path):
    uses = re.findall(r"uses:\s*(.+)", path.read_text())
    assert uses
    for action in uses:
        assert action.startswith("./") or re.fullmatch(r"[\w/-]+@[0-9a-f]{40} # v[\d.]+", action)


def test_every_file_beside_the_code_is_package_data():
    """What is not Python goes into the wheel only if pyproject.toml names it."""
    named = {
        f"{package}/{file}"
        for package, files in PROJECT["tool"]["setuptools"]["package-data"].items()
        for file in files
    }
    src = ROOT / "src"
    files = {
        path.relative_to(src).as_posix()
        for package in ("deccs", "deccs_paper")
        for path in (src / package).rglob("*")
        if path.is_file() and path.suffix not in (".py", ".pyc")
    }
    assert named == files


def test_the_classifiers_are_the_versions_that_are_tested():
    workflow = (ROOT / ".github" / "workflows" / "tests.yml").read_text()
    (matrix,) = re.findall(r"python: \[(.+)\]", workflow)
    tested = re.findall(r"3\.\d+", matrix)
    prefix = "Programming Language :: Python :: 3."
    classifiers = PROJECT["project"]["classifiers"]
    assert [
        f"3.{name.removeprefix(prefix)}" for name in classifiers if name.startswith(prefix)
    ] == tested
    assert PROJECT["project"]["requires-python"] == f">={tested[0]}"
