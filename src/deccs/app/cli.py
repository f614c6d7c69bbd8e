"""The command line: from a file to labels, and on to next month's file.

Only words are here. What the commands do is loaded when one is run: ``--help`` and the shell's completion, which asks
at every press of the key, need not wait for torch.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from deccs._version import __version__
from deccs.app.plugins import add_plugin_commands

app = typer.Typer(
    help="Consensus clustering of tables and images: labels, how far to trust them, and a model for the next file.",
    no_args_is_help=True,
    pretty_exceptions_show_locals=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def main() -> None:
    app(prog_name="deccs")


File = Annotated[
    Path,
    typer.Argument(
        metavar="FILE",
        help="CSV, TSV, Parquet, Feather, .npy, .npz (array X), or a folder of images of one size.",
        show_default=False,
    ),
]
Run = Annotated[
    Path,
    typer.Argument(metavar="DIR", help="Folder that `deccs fit` has written.", show_default=False),
]
AsJson = Annotated[
    bool, typer.Option("--json", help="One JSON object on stdout and nothing else there.")
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Say nothing but errors.")]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace results that are there.")]
Encoding = Annotated[
    str | None, typer.Option(help="Of CSV and TSV. (default: utf-8)", show_default=False)
]
Header = Annotated[
    bool | None,
    typer.Option(
        "--header/--no-header",
        show_default=False,
        help=(
            "Whether CSV and TSV begin with names. (default: found out; in predict as in the fit)"
        ),
    ),
]


@app.command()
def fit(
    file: File,
    clusters: Annotated[
        int | None,
        typer.Option("--clusters", "-k", help="How many. (default: 8)", show_default=False),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            metavar="DIR",
            show_default=False,
            help=("Folder for the results. (default: the file's name with -run)"),
        ),
    ] = None,
    members: Annotated[
        str | None,
        typer.Option(
            show_default=False,
            help=(
                "Clusterers that must agree: a,b,c of kmeans, spectral, agglomerative, mixture, "
                "bisecting, birch, hdbscan. (default: the first four)"
            ),
        ),
    ] = None,
    columns: Annotated[
        str | None,
        typer.Option(
            show_default=False, help=("Columns to cluster: a,b,c. (default: all numeric ones)")
        ),
    ] = None,
    id: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            show_default=False,
            help=("Column that names the rows. (default: row numbers)"),
        ),
    ] = None,
    scale: Annotated[
        str | None,
        typer.Option(
            show_default=False,
            help=(
                "One of auto, global (one scale for all, for pixels), columns, none. (default: auto)"
            ),
        ),
    ] = None,
    missing: Annotated[
        str | None,
        typer.Option(
            show_default=False,
            help=("Missing values: error, drop (such rows get no label) or mean. (default: error)"),
        ),
    ] = None,
    rounds: Annotated[
        int | None,
        typer.Option(help="At most so many after round 0. (default: 10)", show_default=False),
    ] = None,
    seed: Annotated[
        int | None, typer.Option(help="Same seed, same result. (default: 0)", show_default=False)
    ] = None,
    config: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            show_default=False,
            help=(
                "TOML or JSON with options for data and clusters, and settings of DECCS. The command line wins."
            ),
        ),
    ] = None,
    encoding: Encoding = None,
    header: Header = None,
    overwrite: Overwrite = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Cluster a file: labels, confidence, embedding, model and a report go to a folder.

    Stopped with Ctrl-C or killed, the same command goes on where it was.
    """
    from deccs.app import commands

    commands.fit(
        file=file,
        clusters=clusters,
        out=out,
        members=members,
        columns=columns,
        id=id,
        scale=scale,
        missing=missing,
        rounds=rounds,
        seed=seed,
        config=config,
        encoding=encoding,
        header=header,
        overwrite=overwrite,
        as_json=as_json,
        quiet=quiet,
    )


@app.command()
def predict(
    run: Run,
    file: File,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            metavar="FILE",
            show_default=False,
            help=("CSV file for the labels. (default: stdout)"),
        ),
    ] = None,
    missing: Annotated[
        str | None,
        typer.Option(
            show_default=False,
            help=("Missing values: error, drop or mean (the fit's). (default: as in the fit)"),
        ),
    ] = None,
    encoding: Annotated[
        str | None,
        typer.Option(help="Of CSV and TSV. (default: as in the fit)", show_default=False),
    ] = None,
    header: Header = None,
    overwrite: Overwrite = False,
    quiet: Quiet = False,
) -> None:
    """Label another file with the model of a run: columns by name, scaled and filled as in the fit."""
    from deccs.app import commands

    commands.predict(
        run=run,
        file=file,
        out=out,
        missing=missing,
        encoding=encoding,
        header=header,
        overwrite=overwrite,
        quiet=quiet,
    )


@app.command()
def report(
    run: Run,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            metavar="FILE",
            show_default=False,
            help=("HTML file. (default: report.html in DIR)"),
        ),
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            show_default=False,
            help=("The data of the fit, if it is not where it was."),
        ),
    ] = None,
    quiet: Quiet = False,
) -> None:
    """Write the report of a run anew: one HTML file that needs no network."""
    from deccs.app import commands

    commands.report(run=run, out=out, data=data, quiet=quiet)


@app.command()
def compare(
    folders: Annotated[
        list[Path],
        typer.Argument(
            metavar="DIR DIR ...", help="Folders that `deccs fit` has written.", show_default=False
        ),
    ],
    as_json: AsJson = False,
) -> None:
    """How far the labels of runs agree, row by row (NMI and ARI; rows are matched by id)."""
    from deccs.app import commands

    commands.compare(folders=folders, as_json=as_json)


@app.command()
def datasets(as_json: AsJson = False) -> None:
    """The eight data sets of the paper: their sizes, whether they are here, where they come from."""
    from deccs.app import commands

    commands.list_datasets(as_json=as_json)


@app.command()
def info(as_json: AsJson = False) -> None:
    """Versions, cores, device and folders: what to write into a bug report."""
    from deccs.app import commands

    commands.info(as_json=as_json)


def say_version(wanted: bool) -> None:
    if wanted:
        print(f"deccs {__version__}")
        raise typer.Exit


@app.callback()
def common(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=say_version, is_eager=True, help="Say the version and stop."
        ),
    ] = False,
) -> None:
    pass


add_plugin_commands(app)
