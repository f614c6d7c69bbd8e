"""The command line: from a file to labels, and on to next month's file.

Only words are here. What the commands do is loaded when one is run: ``--help`` and the shell's completion, which asks
at every press of the key, need not wait for torch.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from deccs._version import __version__

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
def reproduce(
    what: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="WHAT...",
            show_default=False,
            help=(
                "table1, table2, table3, accuracy, fig1 to fig9, study-ensemble-size, "
                "study-sample-size, study-lambda, claims, or all. (with --page-only all)"
            ),
        ),
    ] = None,
    data: Annotated[
        str | None, typer.Option(show_default=False, help="Only these data sets: a,b,c.")
    ] = None,
    methods: Annotated[
        str | None, typer.Option(show_default=False, help="Only these rows: a,b,c.")
    ] = None,
    seeds: Annotated[
        int | None,
        typer.Option(
            show_default=False,
            help=(
                "At least so many runs of each cell. (default: DECCS 5, others 3; on MNIST, FMNIST "
                "and KMNIST DECCS 3, others and variants 1)"
            ),
        ),
    ] = None,
    jobs: Annotated[
        int, typer.Option(min=1, help="Runs at the same time; each gets its share of the cores.")
    ] = 1,
    out: Annotated[
        Path,
        typer.Option("--out", "-o", metavar="DIR", help="Folder for records, tables and page."),
    ] = (Path("reproduced")),
    cache: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            show_default=False,
            help=(
                "Pretrained autoencoders, shared by all methods of a seed. (default: autoencoders in --out)"
            ),
        ),
    ] = None,
    again: Annotated[bool, typer.Option("--again", help="Also repeat runs that failed.")] = False,
    fresh: Annotated[
        bool,
        typer.Option(
            "--fresh",
            help=(
                "Leave the published runs out and make all anew, each told beside the published one."
            ),
        ),
    ] = False,
    page_only: Annotated[
        bool, typer.Option("--page-only", help="Run nothing: from the records alone.")
    ] = False,
) -> None:
    """The paper's tables, figures and studies with our numbers beside the printed ones.

    Runs in results/ of a checkout and those made before are not repeated, unless --fresh asks for it. Stopped or
    killed, the same command goes on.
    """
    from deccs.app import commands

    commands.reproduce(
        what=what,
        data=data,
        methods=methods,
        seeds=seeds,
        jobs=jobs,
        out=out,
        cache=cache,
        again=again,
        fresh=fresh,
        page_only=page_only,
    )


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


@app.command("demo")
def demo_command(
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="DIR", help="Folder to write to.")
    ] = Path("out"),
    seed: Annotated[int, typer.Option(help="Same seed, same result.")] = 0,
) -> None:
    """DECCS on the paper's SYNTH: labels, representation and a picture."""
    from deccs.app import commands

    commands.run_demo(out=out, seed=seed)


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
