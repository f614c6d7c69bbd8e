"""The house keeps its order: folders, layers, public names, and what the documentation points to."""

import ast
import importlib
import inspect
import re
import tomllib
from pathlib import Path

import pytest

import deccs

ROOT = Path(__file__).parents[1]
SRC = Path(deccs.__file__).parent
TOP_LEVEL = sorted(
    path.stem
    for path in SRC.iterdir()
    if path.suffix == ".py" or (path.is_dir() and (path / "__init__.py").exists())
)
ARCHITECTURE = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
ALL_PAGES = [*PAGES, *(ROOT / name for name in ("ARCHITECTURE.md", "CONTRIBUTING.md"))]
every_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)


def section(title):
    """A section of ARCHITECTURE.md."""
    return ARCHITECTURE.split(f"\n## {title}\n")[1].split("\n## ")[0]


PUBLIC_MODULES = re.findall(r"`(deccs[\w.]*)`", section("Public names"))
every_public_module = pytest.mark.parametrize("name", PUBLIC_MODULES)


# Folders and layers


def test_tests_are_in_the_folders_of_the_code():
    folders = {path.name for path in (ROOT / "tests").iterdir() if (path / "__init__.py").exists()}
    packages = {path.name for path in SRC.iterdir() if (path / "__init__.py").exists()}
    assert folders == packages | {"paper", "helpers", "fuzz"}  # paper: src/deccs_paper


def test_every_module_has_its_layer_and_nothing_is_left_out_of_the_contract():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    layers, *_ = project["tool"]["importlinter"]["contracts"]
    assert layers["type"] == "layers" and layers["exhaustive"] and "ignore_imports" not in layers
    named = [name for layer in layers["layers"] for name in re.split(r"\W+", layer)]
    assert sorted(named) == [name for name in TOP_LEVEL if name != "__init__"]


def test_the_architecture_page_names_every_module_and_no_other():
    rows = re.findall(r"^\| (.+?) \| (.+) \|$", section("Data flow"), flags=re.MULTILINE)
    named = {name for where, _ in rows for name in re.findall(r"`(\w+)/?`", where)}
    assert named - {"deccs_paper"} == {name for name in TOP_LEVEL if not name.startswith("_")}
    for where, what in rows:
        for folder in re.findall(r"`(\w+)/`", where):
            for module in re.findall(r"`(\w+)/?`", what):
                path = SRC / folder / module
                known = path.with_suffix(".py").exists() or path.is_dir() or module[0].isupper()
                assert known or module in public_names(f"deccs.{folder}"), (folder, module)


def test_only_reexports_are_in_the_packages_themselves():
    """Logic in an ``__init__`` is hard to find."""
    for path in SRC.rglob("*/__init__.py"):
        body = ast.parse(path.read_text(encoding="utf-8")).body
        lazy = [node for node in body if getattr(node, "name", "") == "__getattr__"]
        kinds = {type(node) for node in body if node not in lazy}
        allowed = {ast.Expr, ast.Import, ast.ImportFrom, ast.Assign, ast.AugAssign}
        # What is loaded when it is first used is named for type checkers.
        assert kinds <= (allowed | {ast.If} if lazy else allowed), path


# Public names


def public_names(name):
    try:
        return set(getattr(importlib.import_module(name), "__all__", ()))
    except ModuleNotFoundError:
        return set()


def test_public_modules_are_those_with_a_list_of_names():
    with_names = {
        ".".join(("deccs", *path.relative_to(SRC).with_suffix("").parts)).removesuffix(".__init__")
        for path in SRC.rglob("*.py")
        if re.search(r"^__all__ = ", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
    }
    assert set(PUBLIC_MODULES) == with_names
    assert len(PUBLIC_MODULES) == len(with_names)


@every_public_module
def test_public_names_exist_are_listed_once_and_explained(name):
    module = importlib.import_module(name)
    assert module.__doc__
    assert len(set(module.__all__)) == len(module.__all__)
    for public in module.__all__:
        value = getattr(module, public)
        if inspect.isroutine(value) or inspect.isclass(value) or inspect.ismodule(value):
            assert value.__doc__, public
            assert not value.__doc__.startswith(f"{public}("), (
                public
            )  # the signature of a dataclass


@every_public_module
def test_public_methods_of_public_classes_are_explained(name):
    module = importlib.import_module(name)
    for public in module.__all__:
        cls = getattr(module, public)
        if inspect.isclass(cls) and cls.__module__.startswith("deccs"):
            for method, value in inspect.getmembers(cls, inspect.isroutine):
                ours = (getattr(value, "__module__", None) or "").startswith("deccs")
                if ours and not method.startswith("_"):
                    assert inspect.getdoc(value), f"{public}.{method}"


# What the documentation points to


def code_in(page):
    """The Python examples of a page."""
    return re.findall(r"^```python\n(.*?)^```", page.read_text(encoding="utf-8"), re.M | re.S)


def names_used(code):
    """(module, name) for everything the code takes from deccs, in any form of import or by attribute."""
    tree, homes = ast.parse(code), {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "deccs":
            for alias in node.names:
                yield node.module, alias.name
                homes[alias.asname or alias.name] = f"{node.module}.{alias.name}"
        elif isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.split(".")[0] == "deccs":
                    homes[alias.asname or "deccs"] = alias.name if alias.asname else "deccs"
                    yield alias.name, None
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name | ast.Attribute):
            home = homes.get(ast.unparse(node.value)) or (
                ast.unparse(node.value) if ast.unparse(node.value) in PUBLIC_MODULES else None
            )
            if home in PUBLIC_MODULES:
                yield home, node.attr


def test_names_used_by_hand():
    code = (
        "import deccs\nfrom deccs import deep, DECCS as D\nfrom deccs.rules import x\n"
        "deep.DEC()\ndeccs.scores.nmi()\nD.load('x')\n"
    )
    assert set(names_used(code)) == {
        ("deccs", None),
        ("deccs", "deep"),
        ("deccs", "DECCS"),
        ("deccs.rules", "x"),
        ("deccs.deep", "DEC"),
        ("deccs", "scores"),
        ("deccs.scores", "nmi"),
    }


@every_page
def test_examples_use_public_names_only(page):
    for code in code_in(page):
        for module, name in names_used(code):
            assert module in PUBLIC_MODULES, f"{module} is not public"
            assert name is None or name in public_names(module), f"{module}.{name} is not public"


@pytest.mark.parametrize("page", ALL_PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page):
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if not re.match(r"\w+:", target):
            path, _, anchor = target.partition("#")
            file = page.parent / path if path else page
            assert file.exists(), target
            if anchor and file.suffix == ".md":
                titles = re.findall(r"^#+ (.+)$", file.read_text(encoding="utf-8"), flags=re.M)
                anchors = [
                    re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles
                ]
                assert anchor in anchors, target
