"""The commands that rerun the paper, as a plug-in of the command line.

Only words are here. What the commands do is imported when one is run, so that ``deccs --help`` does
not wait for torch.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

PANEL = "The paper"

Jobs = Annotated[
    int, typer.Option(min=1, help="Runs at the same time; each gets its share of the cores.")
]
PoolJobs = Annotated[int, typer.Option(min=1, help="Runs at the same time, one thread each.")]
PoolPage = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        show_default=False,
        help="A Markdown page whose tables are rewritten from the records.",
    ),
]
Backend = Annotated[
    str | None,
    typer.Option(
        metavar="dask|ray",
        show_default=False,
        help="Carry out the runs on a cluster. Its workers must see the folders that are given.",
    ),
]
Address = Annotated[
    str | None,
    typer.Option(
        show_default=False,
        help="Of the cluster: tcp://host:8786 of a Dask scheduler, auto for the Ray that this machine is part of.",
    ),
]
PoolAgain = Annotated[bool, typer.Option("--again", help="Also repeat runs that failed.")]


def add_commands(app: typer.Typer) -> None:
    of_experiments = (confidence, novelty, mixed, months)
    for command in (reproduce, benchmark, yardstick, how_many, *of_experiments, demo):
        app.command(rich_help_panel=PANEL)(command)


@contextmanager
def runs_on(backend: str | None, address: str | None, jobs: int) -> Iterator[None]:
    """The cluster that was asked for; without one, runs stay on this machine."""
    if backend is None:
        if address is not None:
            raise typer.BadParameter("--address is that of a cluster; give --backend, too.")
        yield
        return
    if jobs != 1:
        raise typer.BadParameter(
            "A cluster has as many runs at a time as it has places: no --jobs."
        )
    from deccs.app.output import Output, errors_as_messages
    from deccs_paper.processes import cluster

    with errors_as_messages(Output()), cluster(backend, address):
        yield


def words(metavar: str, text: str) -> Any:
    """An argument of any number of words, with its help."""
    return typer.Argument(metavar=metavar, show_default=False, help=text)


def reproduce(
    what: Annotated[
        list[str] | None,
        words(
            "WHAT...",
            "table1, table2, table3, accuracy, fig1 to fig9, study-ensemble-size, "
            "study-sample-size, study-lambda, claims, or all. (with --page-only: all)",
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
                "Runs of each cell. (default: DECCS 5, others 3; on MNIST, FMNIST "
                "and KMNIST DECCS 3, others and variants 1)"
            ),
        ),
    ] = None,
    jobs: Jobs = 1,
    backend: Backend = None,
    address: Address = None,
    out: Annotated[
        Path,
        typer.Option("--out", "-o", metavar="DIR", help="Folder for records, tables and page."),
    ] = Path("reproduced"),
    cache: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            show_default=False,
            help=(
                "Pretrained autoencoders, shared by all methods of a seed. "
                "(default: autoencoders in --out)"
            ),
        ),
    ] = None,
    again: Annotated[bool, typer.Option("--again", help="Also repeat runs that failed.")] = False,
    fresh: Annotated[
        bool,
        typer.Option(
            "--fresh",
            help="Rerun everything and print each result next to the published one.",
        ),
    ] = False,
    page_only: Annotated[
        bool, typer.Option("--page-only", help="Run nothing; use the records alone.")
    ] = False,
) -> None:
    """Rerun the paper: its tables, figures and studies, next to the published numbers.

    Runs in results/ of a checkout and earlier runs in --out are not repeated, unless --fresh is
    given. Interrupted, the same command resumes.
    """
    from deccs_paper import reproduce

    with runs_on(backend, address, jobs):
        reproduce.command(
            what,
            data,
            methods,
            seeds,
            jobs=jobs,
            out=out,
            cache=cache,
            again=again,
            fresh=fresh,
            page_only=page_only,
        )


def benchmark(
    datasets: Annotated[
        list[str] | None,
        words("DATASET...", "Data sets of the paper. (default: none; only print the table)"),
    ] = None,
    methods: Annotated[str, typer.Option(help="Methods to run: a,b,c.")] = "DECCS",
    seeds: Annotated[int, typer.Option(min=1, help="Runs of each method on each data set.")] = 1,
    jobs: Jobs = 1,
    backend: Backend = None,
    address: Address = None,
    changes: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="NAME=VALUE",
            show_default=False,
            help="Change a setting, such as rounds.n_rounds=5. May be repeated.",
        ),
    ] = None,
    experiment: Annotated[
        str | None,
        typer.Option(show_default=False, help="Name of the records. (default: what --set changes)"),
    ] = None,
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="FILE", help="The file of records.")
    ] = Path("results/deccs.jsonl"),
    cache: Annotated[Path, typer.Option(metavar="DIR", help="Pretrained autoencoders.")] = Path(
        "runs/autoencoders"
    ),
    page: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            show_default=False,
            help="A Markdown page whose table is rewritten from the records.",
        ),
    ] = None,
) -> None:
    """Run methods on the paper's data sets, one JSON line per run, and print a table."""
    from deccs_paper import benchmark

    with runs_on(backend, address, jobs):
        benchmark.command(
            datasets or [],
            methods,
            seeds,
            changes or [],
            jobs=jobs,
            experiment=experiment,
            out=out,
            cache=cache,
            page=page,
        )


def yardstick(
    folder: Annotated[
        Path | None,
        typer.Argument(
            metavar="FOLDER",
            exists=True,
            file_okay=False,
            show_default=False,
            help="Data sets: *.npz with X and y. Needed without --timed.",
        ),
    ] = None,
    methods: Annotated[
        str | None, typer.Option(show_default=False, help="Only these methods: a,b,c.")
    ] = None,
    data: Annotated[
        str | None, typer.Option(show_default=False, help="Only these data sets: a,b,c.")
    ] = None,
    seeds: Annotated[int, typer.Option(min=1, help="Runs of each method on each data set.")] = 3,
    jobs: PoolJobs = 1,
    backend: Backend = None,
    address: Address = None,
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="FILE", help="The file of records.")
    ] = Path("results/pool.jsonl"),
    page: PoolPage = None,
    again: PoolAgain = False,
    timed: Annotated[
        bool,
        typer.Option(
            "--timed",
            help="Instead of a folder: the speed of DECCS and of UMAP with a mixture on six data sets.",
        ),
    ] = False,
) -> None:
    """Compare our methods and their rivals over a folder of labeled data sets.

    One JSON line per run. Runs that have one are not repeated: interrupted, the same command
    resumes. Every method is told the number of classes; no fit sees the classes.
    """
    from deccs_paper.yardstick import command

    if timed:
        if folder or methods or page:
            raise typer.BadParameter("--timed has its own data sets and methods, and no page.")
        with runs_on(backend, address, jobs):
            command.timed_command(data, seeds, jobs=jobs, out=out, again=again)
        return
    if folder is None:
        raise typer.BadParameter("Give a FOLDER of data sets, or --timed.")
    with runs_on(backend, address, jobs):
        command.command(folder, methods, data, seeds, jobs=jobs, out=out, page=page, again=again)


def how_many(
    folders: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="FOLDER...",
            exists=True,
            file_okay=False,
            show_default=False,
            help="Data sets: *.npz with X and y. (default: none; only print the tables)",
        ),
    ] = None,
    seeds: Annotated[int, typer.Option(min=1, help="Runs of each rule on each data set.")] = 3,
    rules: Annotated[
        str | None, typer.Option(show_default=False, help="Only these rules: a,b,c.")
    ] = None,
    no_clusters: Annotated[
        bool,
        typer.Option(
            "--no-clusters",
            help="Instead of folders: data without clusters, and the rules that can answer 1.",
        ),
    ] = False,
    fits: Annotated[
        bool,
        typer.Option("--fits", help='Also fit DECCS(n_clusters="auto") on every data set.'),
    ] = False,
    jobs: PoolJobs = 1,
    backend: Backend = None,
    address: Address = None,
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="FILE", help="The file of records.")
    ] = Path("results/how-many.jsonl"),
    page: PoolPage = None,
    again: PoolAgain = False,
    learn: Annotated[
        bool, typer.Option("--learn", help="Learn the weights of our rule from the records.")
    ] = False,
) -> None:
    """Compare rules for the number of clusters over folders of labeled data sets.

    One JSON line per run. Runs that have one are not repeated: interrupted, the same command
    resumes. No rule sees the classes or their number.
    """
    from deccs_paper.how_many import command

    if no_clusters and (folders or fits):
        raise typer.BadParameter("--no-clusters has its own data, and no fits.")
    with runs_on(backend, address, jobs):
        command.command(
            folders or [],
            rules,
            seeds,
            without_clusters=no_clusters,
            fits=fits,
            jobs=jobs,
            out=out,
            page=page,
            again=again,
            learn=learn,
        )


def confidence(
    folders: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="[FOLDER ...]", help="Folders of .npz files with X and y.", show_default=False
        ),
    ] = None,
    seeds: Annotated[int, typer.Option(min=1, help="Fits of each data set.")] = 1,
    no_clusters: Annotated[
        bool, typer.Option("--no-clusters", help="Also data without clusters: noise.")
    ] = False,
    jobs: PoolJobs = 1,
    backend: Backend = None,
    address: Address = None,
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="FILE", help="The file of records.")
    ] = Path("results/confidence.jsonl"),
    page: PoolPage = None,
    again: PoolAgain = False,
    learn: Annotated[
        bool, typer.Option("--learn", help="Learn the weights of confidence from --terms.")
    ] = False,
    terms: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            show_default=False,
            help="Keep what confidence is weighed from, of 1,000 rows of each data set.",
        ),
    ] = None,
    picture: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", show_default=False, help="Draw the reliability plot as a .png."
        ),
    ] = None,
) -> None:
    """Measure what the confidence of DECCS is worth, on labeled data sets and on noise.

    One JSON line per run. Runs that have one are not repeated: interrupted, the same command
    resumes. No fit sees the classes.
    """
    from deccs_paper.confidence import command

    with runs_on(backend, address, jobs):
        command.command(
            folders or [],
            seeds,
            without_clusters=no_clusters,
            jobs=jobs,
            out=out,
            page=page,
            again=again,
            learn=learn,
            terms=terms,
            picture=picture,
        )


def months(
    names: Annotated[
        list[str], typer.Argument(metavar="NAME ...", help="Data sets: NAME.npz in a --folder.")
    ],
    folder: Annotated[
        list[Path] | None,
        typer.Option("--folder", metavar="DIR", help="Where data sets are; may be repeated."),
    ] = None,
    seeds: Annotated[int, typer.Option(min=1, help="Years of each data set.")] = 1,
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="FILE", help="The file of records.")
    ] = Path("results/months.jsonl"),
    page: PoolPage = None,
) -> None:
    """Fit twelve months of drifting data, each like the month before or by itself.

    One JSON line per month; months that have one are not repeated.
    """
    from deccs_paper.months import command

    folders = folder or [Path("../shared/data"), Path("../shared/pool")]
    command.command(names, folders, seeds, out, page)


def novelty(
    folders: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="[FOLDER ...]", help="Folders of .npz files with X and y.", show_default=False
        ),
    ] = None,
    data: Annotated[
        str | None,
        typer.Option(show_default=False, help="These data sets: a,b,c. Else six of the paper's."),
    ] = None,
    classes: Annotated[int, typer.Option(min=1, help="Classes left out of each data set.")] = 3,
    jobs: PoolJobs = 1,
    backend: Backend = None,
    address: Address = None,
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="FILE", help="The file of records.")
    ] = Path("results/novelty.jsonl"),
    page: PoolPage = None,
    again: PoolAgain = False,
) -> None:
    """Measure what novelty is worth: leave classes out, and look whether their rows are found.

    One JSON line per run. Runs that have one are not repeated: interrupted, the same command
    resumes. No fit sees the classes.
    """
    from deccs_paper.novelty import command

    with runs_on(backend, address, jobs):
        command.command(folders or [], data, classes, jobs=jobs, out=out, page=page, again=again)


def mixed(
    folder: Annotated[
        Path | None,
        typer.Argument(
            metavar="FOLDER",
            exists=True,
            file_okay=False,
            show_default=False,
            help="Where the .npz files of the tables are. (default: none; only print the tables)",
        ),
    ] = None,
    methods: Annotated[
        str | None, typer.Option(show_default=False, help="Only these methods: a,b,c.")
    ] = None,
    data: Annotated[
        str | None, typer.Option(show_default=False, help="Only these tables: a,b,c.")
    ] = None,
    seeds: Annotated[
        int, typer.Option(min=1, help="Runs on complete tables and with 20 % missing.")
    ] = 3,
    jobs: PoolJobs = 1,
    backend: Backend = None,
    address: Address = None,
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="FILE", help="The file of records.")
    ] = Path("results/mixed.jsonl"),
    page: PoolPage = None,
    again: PoolAgain = False,
) -> None:
    """Compare ways to cluster tables with categories, dates and gaps, on tables with known classes.

    One JSON line per run. Runs that have one are not repeated: interrupted, the same command
    resumes. Every method is told the number of classes; no fit sees the classes.
    """
    from deccs_paper.mixed import command

    with runs_on(backend, address, jobs):
        command.command(folder, methods, data, seeds, jobs=jobs, out=out, page=page, again=again)


def demo(
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="DIR", help="Folder to write to.")
    ] = Path("out"),
    seed: Annotated[int, typer.Option(help="The same seed gives the same result.")] = 0,
) -> None:
    """Run DECCS on the paper's SYNTH: labels, representation and a picture."""
    from deccs_paper import demo

    demo.command(out, seed)
