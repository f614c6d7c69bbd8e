"""Check the built distributions, and use the wheel where the repository is out of reach.

    python tools/check_wheel.py dist                     install the wheel and its dependencies
    python tools/check_wheel.py dist --borrow            take the dependencies from the running Python

The wheel must hold every file of src, and nothing else of the repository. A fresh environment in a temporary
folder then imports all modules, fits a small table from the command line, writes a report and labels the table again.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
import venv
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("deccs", "deccs_paper")

IMPORT_ALL = """
import importlib, pkgutil, sys
from pathlib import Path
import deccs, deccs_paper
for package in (deccs, deccs_paper):
    assert Path(package.__file__).is_relative_to(sys.prefix), package.__file__
    for module in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
"""
MAKE_TABLE = """
from deccs import datasets
X, y = datasets.make_synth(n_per_cluster=25, random_state=0)
with open("table.csv", "w") as file:
    file.write("name,x,y\\n")
    file.writelines(f"p{row},{a},{b}\\n" for row, (a, b) in enumerate(X))
"""
USE_LIBRARY = """
from deccs import DECCS, Pretraining, Rounds, datasets
X, y = datasets.load("synth", return_X_y=True)
model = DECCS(4, pretraining=Pretraining(n_epochs=2), rounds=Rounds(n_rounds=1, n_init=1, n_steps=5), random_state=0)
labels = model.fit_predict(X[:200])
model.save("model")
assert (DECCS.load("model").predict(X[:200]) == labels).all()
"""
CONFIG = """
clusters = 4
rounds = 1
[settings.pretraining]
n_epochs = 2
[settings.rounds]
n_init = 1
n_steps = 5
"""


def source_files() -> set[str]:
    """Every file of the packages, as the wheel names it."""
    src = ROOT / "src"
    return {
        path.relative_to(src).as_posix()
        for package in PACKAGES
        for path in (src / package).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }


def check_contents(wheel: Path, sdist: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        in_wheel = set(archive.namelist())
    metadata = {name for name in in_wheel if name.split("/")[0].endswith(".dist-info")}
    expected = source_files()
    if in_wheel - metadata != expected:
        raise SystemExit(
            f"{wheel.name} lacks {sorted(expected - in_wheel)} "
            f"and should not hold {sorted(in_wheel - metadata - expected)}."
        )
    if not any(name.endswith("licenses/LICENSE") for name in metadata):
        raise SystemExit(f"{wheel.name} has no LICENSE.")
    with tarfile.open(sdist) as archive:
        in_sdist = {name.split("/", 1)[-1] for name in archive.getnames()}
    if absent := {f"src/{name}" for name in expected} - in_sdist:
        raise SystemExit(f"{sdist.name} lacks {sorted(absent)}.")


def outside() -> dict[str, str]:
    """The environment without what leads back to the repository or to a copy of the data."""
    hidden = ("PYTHONPATH", "DECCS_DATA", "VIRTUAL_ENV")
    return {name: value for name, value in os.environ.items() if name not in hidden}


def fresh_environment(folder: Path, wheel: Path, *, borrow: bool) -> Path:
    """The folder of the commands of a new environment with the wheel installed."""
    venv.create(folder, with_pip=True)
    paths = {"base": str(folder), "platbase": str(folder)}
    scripts = Path(sysconfig.get_path("scripts", "venv", vars=paths))
    dependencies = ["--no-deps"] if borrow else ["-c", str(ROOT / "constraints.txt")]
    subprocess.run(
        [str(scripts / "python"), "-m", "pip", "install", "--quiet", *dependencies, str(wheel)],
        check=True,
        env=outside(),
    )
    if borrow:
        # A path in a .pth file comes last in the search, and .pth files in that path are not read: an editable
        # install of deccs in the running Python stays out of the way.
        packages = Path(sysconfig.get_path("purelib", "venv", vars=paths))
        (packages / "borrowed.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return scripts


def use_wheel(scripts: Path, folder: Path) -> None:
    def run(*command: str) -> None:
        print("$", *(part if "\n" not in part else "..." for part in command), flush=True)
        program, *arguments = command
        subprocess.run(
            [str(scripts / program), *arguments],
            check=True,
            cwd=folder,
            env=outside(),
            stdout=subprocess.DEVNULL,
        )

    (folder / "quick.toml").write_text(CONFIG)
    run("deccs", "--help")
    run("deccs", "datasets")
    run("deccs", "info")
    run("deccs", "reproduce", "--help")
    run("python", "-c", IMPORT_ALL)
    run("python", "-c", USE_LIBRARY)
    run("python", "-c", MAKE_TABLE)
    run("deccs", "fit", "table.csv", "--config", "quick.toml", "--id", "name", "--out", "run")
    run("deccs", "report", "run", "--out", "again.html")
    run("deccs", "predict", "run", "table.csv", "--out", "labels.csv")
    if (folder / "labels.csv").read_bytes() != (folder / "run" / "labels.csv").read_bytes():
        raise SystemExit("predict does not give the labels of the fit.")
    for page in ("run/report.html", "again.html"):
        if "<html" not in (folder / page).read_text(encoding="utf-8"):
            raise SystemExit(f"{page} is not a page.")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("dist", type=Path, help="folder with one wheel and one sdist")
    parser.add_argument(
        "--borrow", action="store_true", help="take the dependencies from the running Python"
    )
    arguments = parser.parse_args()
    (wheel,), (sdist,) = arguments.dist.glob("*.whl"), arguments.dist.glob("*.tar.gz")
    check_contents(wheel.resolve(), sdist.resolve())
    with tempfile.TemporaryDirectory(prefix="deccs-wheel-") as name:
        folder = Path(name)
        scripts = fresh_environment(folder / "venv", wheel.resolve(), borrow=arguments.borrow)
        use_wheel(scripts, folder)
    print(f"{wheel.name} and {sdist.name} are complete, and the wheel works by itself.")


if __name__ == "__main__":
    sys.exit(main())
