"""The server: tools with their parameters, checked paths, and words of progress.

Without ``from __future__ import annotations``: the protocol's library reads the annotations of functions inside a
function, which must be types for that.
"""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

from deccs._version import __version__
from deccs.agents.files import read
from deccs.app.mcp.places import PlaceError, Root
from deccs.app.mcp.workers import WorkError, Workers
from deccs.app.request import McpRequest, RequestError

NOTHING = "none"
INSTRUCTIONS = """\
Cluster tables and images below one folder. All paths are as seen from that folder. Start with `fit` (clusters="auto"
finds their number); then `describe` says what makes each cluster different, `predict` labels other files, `compare`
tells how much two runs agree, `how_many` looks at the number of clusters alone. A fit takes seconds for hundreds of
rows and minutes for tens of thousands; one that was canceled goes on when it is called again with the same arguments.
Numbers of clusters mean nothing by themselves: report names, sizes and confidence, and repeat a `warning` in the
answer. The resource deccs://skill is a guide."""


def mcp(request: McpRequest, output: Any) -> None:
    """Serve on stdin and stdout until stdin ends."""
    if find_spec("mcp") is None:
        raise RequestError('deccs mcp needs the mcp package: pip install "deccs[mcp]".')
    root = Root(request.root)
    server_for(root).run("stdio")


def in_toml(value: Any) -> str:
    """A value as ``--set`` takes it: JSON of numbers, texts and lists is TOML, too.

    >>> in_toml([64, 8]), in_toml(None), in_toml("cpu")
    ('[64, 8]', 'none', '"cpu"')
    """
    return NOTHING if value is None else json.dumps(value)


def server_for(root: Root, workers: Workers | None = None) -> Any:
    """The server of the Model Context Protocol for the files below a folder."""
    from mcp.server.mcpserver import Context, MCPServer
    from mcp.server.mcpserver.exceptions import ToolError
    from mcp_types import ToolAnnotations
    from pydantic import Field

    workers = workers or Workers(root.folder)

    @asynccontextmanager
    async def lifespan(server: Any) -> AsyncIterator[None]:
        try:
            yield
        finally:
            await workers.stop()

    server: Any = MCPServer(
        "deccs",
        title="deccs: clustering",
        version=__version__,
        instructions=INSTRUCTIONS,
        lifespan=lifespan,
        log_level="WARNING",
    )
    reads = ToolAnnotations(read_only_hint=True, open_world_hint=False)
    writes = ToolAnnotations(read_only_hint=False, open_world_hint=False)

    async def ask(tool: str, context: Any, options: dict[str, Any]) -> dict[str, Any]:
        """What a worker says; its words are those of the tool."""
        n_told = 0

        async def tell(words: str) -> None:
            nonlocal n_told
            n_told += 1
            await context.report_progress(n_told, None, words)

        given = {name: value for name, value in options.items() if value is not None}
        try:
            return await workers.ask(tool, given, tell)
        except WorkError as error:
            raise ToolError(str(error)) from error

    def placed(check: Any, text: str) -> str:
        try:
            return str(check(text))
        except PlaceError as error:
            raise ToolError(str(error)) from error

    File = Annotated[
        str,
        Field(
            description="CSV, Excel, JSON lines, Parquet, Feather, .npy, .npz, .h5ad or a folder of images"
        ),
    ]
    Run = Annotated[str, Field(description="Folder that fit has written: its `out`")]
    Clusters = Annotated[
        str, Field(description="Number of clusters, a range such as 3-20, or auto")
    ]
    Columns = Annotated[
        list[str] | None, Field(description="Columns to cluster; all that can be if left out")
    ]
    Id = Annotated[str | None, Field(description="Column that names the rows")]

    @server.tool(title="Cluster a file", annotations=writes)
    async def fit(
        file: File,
        context: Context,
        out: Annotated[
            str | None, Field(description="Folder for the results; the file's name with -run")
        ] = None,
        clusters: Clusters = "auto",
        columns: Columns = None,
        exclude: Annotated[
            list[str] | None, Field(description="Columns that take no part, such as known classes")
        ] = None,
        kind: Annotated[
            dict[str, str] | None,
            Field(
                description="What columns are, if their data do not tell: number, category, ordered, yes/no, date, "
                "text, or id to leave one out"
            ),
        ] = None,
        id: Id = None,
        method: Annotated[str, Field(description="deccs, consensus, or such as idec")] = "deccs",
        members: Annotated[
            list[str] | None, Field(description="Clusterers of the ensemble, such as kmeans")
        ] = None,
        scale: Annotated[
            str | None, Field(description="auto, global, columns, robust, rows or none")
        ] = None,
        missing: Annotated[
            str, Field(description="Missing values: auto, error, drop or mean")
        ] = "auto",
        rounds: Annotated[int | None, Field(description="Most rounds after round 0")] = None,
        seed: Annotated[int, Field(description="The same seed gives the same result")] = 0,
        like: Annotated[
            str | None,
            Field(description="Folder of an earlier run, whose numbers and names clusters keep"),
        ] = None,
        settings: Annotated[
            dict[str, Any] | None,
            Field(description="Other parameters of the method: {'rounds.lambda_cons': 2}"),
        ] = None,
        overwrite: Annotated[bool, Field(description="Replace existing results")] = False,
    ) -> dict[str, Any]:
        """Cluster the rows of a file; labels, a model and a report go to a folder.

        Returns the clusters with names, sizes and confidence, how their number was found, a warning where the data look
        like one group, and the files.
        """
        file = placed(root.existing, file)
        out = placed(root.new, out or f"{Path(file).name.partition('.')[0] or 'data'}-run")
        options = {
            "file": file,
            "out": out,
            "clusters": clusters,
            "columns": columns,
            "exclude": exclude,
            "id": id,
            "method": method,
            "members": members,
            "scale": scale,
            "missing": missing,
            "rounds": rounds,
            "seed": seed,
            "like": placed(root.existing, like) if like else None,
            "overwrite": overwrite,
            "kind": [f"{name}={what}" for name, what in (kind or {}).items()],
            "settings": [f"{name}={in_toml(value)}" for name, value in (settings or {}).items()],
        }
        return await ask("fit", context, options)

    @server.tool(title="Label a file with a model", annotations=writes)
    async def predict(
        run: Run,
        file: File,
        context: Context,
        out: Annotated[
            str | None,
            Field(description="File for the labels, .csv or .parquet; FILE-labels.csv in the run"),
        ] = None,
        overwrite: Annotated[bool, Field(description="Replace an existing file")] = False,
    ) -> dict[str, Any]:
        """Label another file with the model of a run; columns are found by name, scaled as in the fit.

        Returns the sizes of the clusters, the mean confidence and the file with all labels.
        """
        run, file = placed(root.existing, run), placed(root.existing, file)
        out = out or f"{run}/{Path(file).name.partition('.')[0] or 'data'}-labels.csv"
        options = {
            "run": run,
            "file": file,
            "out": placed(root.new, out),
            "overwrite": overwrite,
        }
        return await ask("predict", context, options)

    @server.tool(title="What the clusters are", annotations=reads)
    async def describe(run: Run, context: Context) -> dict[str, Any]:
        """The clusters of a run: names, sizes, confidence, stability, and in `text` rules and differences."""
        return await ask("describe", context, {"run": placed(root.existing, run)})

    @server.tool(title="How much runs agree", annotations=reads)
    async def compare(
        runs: Annotated[list[str], Field(description="Two or more folders that fit has written")],
        context: Context,
    ) -> dict[str, Any]:
        """Compare the labels of runs row by row: NMI and ARI of every two, 1 for the same clusters."""
        options = {"runs": [placed(root.existing, run) for run in runs]}
        return await ask("compare", context, options)

    @server.tool(title="How many clusters", annotations=reads)
    async def how_many(
        file: File,
        context: Context,
        clusters: Clusters = "auto",
        columns: Columns = None,
        exclude: Annotated[list[str] | None, Field(description="Columns that take no part")] = None,
        id: Id = None,
        seed: int = 0,
    ) -> dict[str, Any]:
        """How many clusters the rows of a file have, with reasons and runners-up; nothing is fitted or written."""
        options = {
            "file": placed(root.existing, file),
            "clusters": clusters,
            "columns": columns,
            "exclude": exclude,
            "id": id,
            "seed": seed,
        }
        return await ask("how_many", context, options)

    @server.resource("deccs://skill", title="How to use deccs", mime_type="text/markdown")
    def skill() -> str:
        """When to use deccs, and how."""
        return read("SKILL.md")

    return server
