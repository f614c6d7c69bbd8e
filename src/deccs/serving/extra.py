"""What the service needs beyond what deccs itself needs."""

from __future__ import annotations

from importlib.util import find_spec

PACKAGES = ("starlette", "uvicorn", "httptools", "orjson")


def check_installed() -> None:
    """Raise an ImportError that names the extra where something is missing."""
    if absent := [name for name in PACKAGES if find_spec(name) is None]:
        raise ImportError(
            f"deccs serve needs {', '.join(absent)}. Install it with `pip install deccs[serve]`."
        )
