"""What each command can be asked: a dataclass per command, an option per field.

A field declares everything about its option: type, default, help, and the parameter of the
estimator that it sets. The command line, config files and the error messages are made from it::

    rounds: Annotated[int | None, Option("Rounds after round 0.", sets="rounds__n_rounds")] = None

Only the standard library is imported here: ``deccs --help`` must not wait for torch.
"""

from __future__ import annotations

import csv
import json
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from difflib import SequenceMatcher
from functools import cache
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, ClassVar, Self, get_args, get_origin, get_type_hints

MOST_CONFIG = 2**24  # bytes
MOST_SHOWN = 200  # characters of a value in a message
LEAST_LIKENESS = 0.6  # of a name that a typo may have meant


class RequestError(ValueError):
    """A command cannot do what it was asked; the message says why, and what to do."""


@dataclass(frozen=True)
class Argument:
    """A field that is given by its position."""

    help: str
    metavar: str
    optional: bool = False


@dataclass(frozen=True)
class Option:
    """A field that is given by name; ``--name-of-the-field`` unless ``names`` says otherwise."""

    help: str
    names: tuple[str, ...] = ()
    metavar: str | None = None
    default: str = ""  # the default in words, where the field's default does not show it
    choices: tuple[str, ...] = ()
    sets: str = ""  # the parameter of the estimator that it sets
    in_config: bool = True  # may be given in a config file
    numbers: bool = False  # a config file may give a whole number instead of its text


@dataclass(frozen=True)
class Entry:
    """A field of a request with its parts taken apart."""

    name: str
    kind: type  # without None: int, str, bool, Path, tuple, Mapping
    optional: bool
    words: Argument | Option
    default: Any
    inner: type = str  # of a tuple

    @property
    def label(self) -> str:
        """What users call it."""
        if isinstance(self.words, Argument):
            return self.words.metavar
        return self.words.names[0] if self.words.names else "--" + self.name.replace("_", "-")


@dataclass(frozen=True)
class Request:
    """The base of all requests: ``class FitRequest(Request, command="fit")`` adds a command.

    The docstring of the class is the help of the command, and the function of that name in
    :mod:`deccs.app.commands`, or where ``cli.HOMES`` says, carries it out.
    """

    COMMANDS: ClassVar[dict[str, type[Request]]] = {}

    def __init_subclass__(cls, command: str | None = None, **options: Any) -> None:
        super().__init_subclass__(**options)
        if command:
            Request.COMMANDS[command] = cls

    @classmethod
    @cache
    def entries(cls) -> dict[str, Entry]:
        """The fields by name."""
        hints = get_type_hints(cls, include_extras=True)
        return {item.name: entry(item, hints[item.name]) for item in fields(cls)}

    @classmethod
    def config_names(cls) -> list[str]:
        """The options that a config file may hold."""
        return [
            name
            for name, item in cls.entries().items()
            if isinstance(item.words, Option) and item.words.in_config
        ]

    @classmethod
    def read(cls, given: Mapping[str, Any]) -> Self:
        """The request made of options as they were typed; they override those of a config file."""
        path = given.get("config")
        settled = {} if path is None else read_config(cls, Path(path))
        entries = cls.entries()
        for name, value in given.items():
            value = parsed(entries[name], value)
            if entries[name].kind is Mapping:  # single settings override those of the file
                value = {**settled.get(name, {}), **value}
            settled[name] = value
        for name, value in settled.items():
            words = entries[name].words
            choices = words.choices if isinstance(words, Option) else ()
            if choices and value not in choices:
                raise RequestError(
                    f"{entries[name].label} must be one of {', '.join(choices)}, got {shown(value)}."
                )
        return cls(**settled)


def entry(item: Any, hint: Any) -> Entry:
    kind, words = get_args(hint)
    optional = isinstance(kind, UnionType)
    if optional:
        (kind,) = (part for part in get_args(kind) if part is not type(None))
    inner = get_args(kind)[0] if get_origin(kind) is tuple else str
    kind = get_origin(kind) or kind
    return Entry(item.name, kind, optional, words, item.default, inner)


def parsed(item: Entry, value: Any) -> Any:
    """An option's text, as typed, as a value of the field's type."""
    if item.kind is tuple and not isinstance(value, list | tuple):
        return split_names(value)
    if item.kind is Mapping:
        return dict((kind_in if item.name == "kind" else setting_in)(text) for text in value)
    return tuple(value) if item.kind is tuple else value


def split_names(text: str) -> tuple[str, ...]:
    """The names in a comma-separated text; names with commas are quoted.

    >>> split_names('age,"height, cm"')
    ('age', 'height, cm')
    """
    words = next(csv.reader([text], skipinitialspace=True), [])
    return tuple(word.strip() for word in words)


def setting_in(text: str) -> tuple[str, Any]:
    """The name and the value of ``--set NAME=VALUE``; the value as in TOML, else text.

    >>> setting_in("network.layers=[64, 8]"), setting_in("rounds.tol=none"), setting_in("device=cpu")
    (('network.layers', [64, 8]), ('rounds.tol', None), ('device', 'cpu'))
    """
    name, equals, value = (part.strip() for part in text.partition("="))
    if not (name and equals):
        raise RequestError(f"--set needs NAME=VALUE, such as rounds.n_rounds=5, got {text!r}.")
    if value.lower() == "none":
        return name, None
    try:
        return name, tomllib.loads(f"value = {value}")["value"]
    except tomllib.TOMLDecodeError:
        return name, value


def kind_in(text: str) -> tuple[str, str]:
    """The column and the kind of ``--kind COLUMN=KIND``; names of columns may have an equals sign.

    >>> kind_in("zip=category"), kind_in("a=b = date")
    (('zip', 'category'), ('a=b', 'date'))
    """
    name, _, kind = (part.strip() for part in text.rpartition("="))
    if not (name and kind):
        raise RequestError(f"--kind needs COLUMN=KIND, such as zip=category, got {text!r}.")
    return name, kind


def read_config(request: type[Request], path: Path) -> dict[str, Any]:
    """The options in a TOML or JSON file, by the names of the fields."""
    if path.exists() and (not path.is_file() or path.stat().st_size > MOST_CONFIG):
        raise RequestError(  # reading a pipe or a device may never end
            f"--config {path} is not a plain file of at most {MOST_CONFIG:,} bytes. Give a file."
        )
    try:
        text = path.read_text(encoding="utf-8")
        options = json.loads(text) if path.suffix.lower() == ".json" else tomllib.loads(text)
    except (OSError, ValueError, RecursionError) as error:  # the last for endless brackets
        raise RequestError(
            f"The config file {path} cannot be read: {error}. It must be TOML, or JSON if its name "
            "ends with .json."
        ) from error
    if not isinstance(options, dict):
        raise RequestError(
            f"The config file {path} must hold names and values, got a {type(options).__name__}."
        )
    check_known(options, request.config_names(), f"The config file {path}", "option")
    entries = request.entries()
    for name, value in options.items():
        words = entries[name].words
        if isinstance(words, Option) and words.numbers and type(value) is int:
            options[name] = value = str(value)
        if not fits(entries[name], value):
            number = "a whole number or " if isinstance(words, Option) and words.numbers else ""
            raise RequestError(
                f"The config file {path}: {name} must be {number}{KINDS[entries[name].kind]}, "
                f"got {shown(value)}."
            )
        if entries[name].kind is tuple and value is not None:
            options[name] = split_names(value) if isinstance(value, str) else tuple(value)
    return options


KINDS = {
    int: "a whole number",
    float: "a number",
    str: "a text",
    bool: "true or false",
    Path: "a path",
    tuple: "a list of names",
    Mapping: "a table of names and values",
}


def shown(value: Any) -> str:
    """A value as Python writes it, cut where it is long.

    >>> shown([1, "a"]), shown("x" * 1000)[-4:]
    ("[1, 'a']", 'xxx…')
    """
    text = repr(value)
    return text if len(text) <= MOST_SHOWN else f"{text[:MOST_SHOWN]}…"


def fits(item: Entry, value: Any) -> bool:
    """Whether a value of a config file has the type of the field."""
    if value is None:
        return item.optional
    if isinstance(value, bool):  # which Python takes for a number
        return item.kind is bool
    if item.kind is tuple:
        return isinstance(value, str) or (
            isinstance(value, list) and all(isinstance(name, str) for name in value)
        )
    if item.kind is Path:
        return isinstance(value, str)
    return isinstance(value, int | float if item.kind is float else item.kind)


def check_known(names: Iterable[str], known: Iterable[str], where: str, what: str) -> None:
    """Raise for the first name that is not known, with the closest one that is."""
    known = list(known)
    for name in names:
        if name not in known:
            raise RequestError(
                f"{where}: there is no {what} {shown(name)}.{did_you_mean(name, known)} "
                f"Choose from {', '.join(known)}."
            )


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """A hint with the names that are most like this one, as a whole or by their last part.

    >>> did_you_mean("n_step", ["rounds", "rounds.n_steps", "pretraining.n_steps"])
    " Did you mean 'rounds.n_steps' or 'pretraining.n_steps'?"
    >>> did_you_mean("xyz", ["rounds.tol"])
    ''
    """

    def likeness(other: str) -> float:
        pairs = [(name, other), (name.rpartition(".")[2], other.rpartition(".")[2])]
        return max(SequenceMatcher(None, *pair).ratio() for pair in pairs)

    scores = {other: likeness(other) for other in known}
    highest = max(scores.values(), default=0.0)
    if highest < LEAST_LIKENESS:
        return ""
    close = [repr(other) for other, score in scores.items() if score == highest]
    return f" Did you mean {' or '.join(close)}?"


FILE = Argument(
    "CSV, Excel, JSON lines, Parquet, Feather, .npy, .npz (array X), .h5ad, a folder of images, or the "
    "address of a database such as sqlite:///shop.db. `deccs info` lists all endings.",
    "FILE",
)
QUERY = Option("What to ask a database.", metavar="SQL", in_config=True, default="its only table")
WITH_COLUMNS = Option("Write the columns of the file beside the labels.")
RUN = Argument("Folder that `deccs fit` has written.", "DIR")
AS_JSON = Option("Print one JSON object on stdout.", ("--json",), in_config=False)
QUIET = Option("Print errors only.", ("--quiet", "-q"), in_config=False)
OVERWRITE = Option("Replace existing results.", in_config=False)
RAW_IDS = Option(
    "Write ids such as =A1 as they are. Without it they get an apostrophe, so that a spreadsheet "
    "does not take them for formulas."
)
OUT = ("--out", "-o")
HEADER = ("--header/--no-header",)


@dataclass(frozen=True)
class FitRequest(Request, command="fit"):
    """Cluster a file. Labels, confidence, embedding, model and a report go to a folder.

    Interrupted with Ctrl-C or killed, the same command resumes where it stopped.
    """

    file: Annotated[str, FILE]
    method: Annotated[
        str,
        Option(
            "Clustering method: deccs, consensus, or a deep method such as idec. "
            "`deccs info` lists all.",
            ("--method", "-m"),
        ),
    ] = "deccs"
    clusters: Annotated[
        str,
        Option(
            "Number of clusters, a range to choose from such as 3-20, or auto.",
            ("--clusters", "-k"),
            metavar="N|LOW-HIGH|auto",
            numbers=True,
        ),
    ] = "auto"
    out: Annotated[
        Path | None,
        Option(
            "Folder for the results.",
            OUT,
            metavar="DIR",
            default="the file's name with -run",
            in_config=False,
        ),
    ] = None
    like: Annotated[
        str | None,
        Option(
            "An earlier run: its columns and scale are used, and clusters that are still there keep their numbers "
            "and names.",
            metavar="DIR",
            sets="like",
        ),
    ] = None
    members: Annotated[
        tuple[str, ...] | None,
        Option(
            "Clusterers of the ensemble: a,b,c. `deccs info` lists all.",
            default="kmeans, spectral, agglomerative, mixture",
            sets="members",
        ),
    ] = None
    columns: Annotated[
        tuple[str, ...] | None,
        Option("Columns to cluster: a,b,c.", default="all that can be"),
    ] = None
    exclude: Annotated[tuple[str, ...], Option("Columns that take no part: a,b,c.")] = ()
    kind: Annotated[
        Mapping[str, Any],
        Option(
            "What a column is, if its data do not tell: number, category, ordered, yes/no, date, text, or "
            "id to leave it out. May be repeated.",
            ("--kind",),
            metavar="COLUMN=KIND",
        ),
    ] = field(default_factory=dict)
    id: Annotated[
        str | None, Option("Column that names the rows.", metavar="COLUMN", default="row numbers")
    ] = None
    partial: Annotated[
        str | None,
        Option(
            "Column with a few labels, empty or -1 where they are not known. It is left out of the clustering; "
            "clusters follow the labels. For the method deccs.",
            metavar="COLUMN",
        ),
    ] = None
    must_link: Annotated[
        str | None,
        Option(
            "CSV file with two columns: ids (or row numbers from 0) of rows that belong into one cluster. For the "
            "method deccs.",
            metavar="FILE",
        ),
    ] = None
    cannot_link: Annotated[
        str | None,
        Option(
            "The same of rows that belong into different clusters.",
            metavar="FILE",
        ),
    ] = None
    scale: Annotated[
        str | None,
        Option(
            "How to scale: auto, global (one scale for all columns, for pixels), columns, robust (columns, long "
            "tails drawn in), rows (to one length, for words) or none.",
            default="auto",
            choices=("auto", "global", "columns", "robust", "rows", "none"),
            sets="scale",
        ),
    ] = None
    missing: Annotated[
        str,
        Option(
            "Missing values: auto (the method deals with them), error, drop (such rows get no label) or mean.",
            choices=("auto", "error", "drop", "mean"),
        ),
    ] = "auto"
    query: Annotated[str | None, QUERY] = None
    rounds: Annotated[
        int | None, Option("Most rounds after round 0.", default="10", sets="rounds__n_rounds")
    ] = None
    seed: Annotated[
        int | None, Option("The same seed gives the same result.", default="0", sets="random_state")
    ] = None
    settings: Annotated[
        Mapping[str, Any],
        Option(
            "Any other parameter of the method, such as rounds.lambda_cons=2. May be repeated.",
            ("--set",),
            metavar="NAME=VALUE",
        ),
    ] = field(default_factory=dict)
    config: Annotated[
        Path | None,
        Option(
            "TOML or JSON file with options. The command line wins.",
            metavar="FILE",
            in_config=False,
        ),
    ] = None
    encoding: Annotated[str, Option("Of text files.")] = "utf-8"
    header: Annotated[
        bool | None,
        Option("Whether the file begins with column names.", HEADER, default="detected"),
    ] = None
    labels: Annotated[
        str,
        Option(
            "Format of the file of labels: csv, parquet or xlsx.",
            choices=("csv", "parquet", "xlsx"),
        ),
    ] = "csv"
    with_columns: Annotated[bool, WITH_COLUMNS] = False
    raw_ids: Annotated[bool, RAW_IDS] = False
    overwrite: Annotated[bool, OVERWRITE] = False
    as_json: Annotated[bool, AS_JSON] = False
    quiet: Annotated[bool, QUIET] = False

    @property
    def folder(self) -> Path:
        """Where the results go."""
        return self.out or Path(f"{stem_of(self.file)}-run")


def stem_of(file: str) -> str:
    """The name of a file or a database without folders and endings.

    >>> stem_of("data/pens.csv.gz"), stem_of("sqlite:///shop.db"), stem_of("postgresql://h/shop?ssl=1")
    ('pens', 'shop', 'shop')
    """
    name = file.partition("?")[0] if "://" in file else Path(file).resolve().name
    return name.rpartition("/")[2].partition(".")[0] or "data"


AS_IN_FIT = "as in the fit"


@dataclass(frozen=True)
class PredictRequest(Request, command="predict"):
    """Label another file with the model of a run. Its columns are found by name."""

    run: Annotated[Path, RUN]
    file: Annotated[str, FILE]
    out: Annotated[
        Path | None,
        Option(
            "File for the labels; .csv, .parquet or .xlsx.", OUT, metavar="FILE", default="stdout"
        ),
    ] = None
    missing: Annotated[
        str | None,
        Option("Missing values: auto, error, drop or mean (of the fit).", default=AS_IN_FIT),
    ] = None
    query: Annotated[str | None, QUERY] = None
    encoding: Annotated[str | None, Option("Of text files.", default=AS_IN_FIT)] = None
    header: Annotated[
        bool | None,
        Option("Whether the file begins with column names.", HEADER, default=AS_IN_FIT),
    ] = None
    reject: Annotated[
        str | None,
        Option(
            "Give -1 to rows more unusual than all but this share of rows like those of the fit: 0.01.",
            metavar="RATE",
        ),
    ] = None
    novelty: Annotated[bool, Option("Write how unusual each row is beside its label.")] = False
    drift: Annotated[
        Path | None,
        Option("Write what has changed since the fit to this HTML file.", metavar="FILE"),
    ] = None
    with_columns: Annotated[bool, WITH_COLUMNS] = False
    raw_ids: Annotated[bool, RAW_IDS] = False
    overwrite: Annotated[bool, OVERWRITE] = False
    quiet: Annotated[bool, QUIET] = False


@dataclass(frozen=True)
class ServeRequest(Request, command="serve"):
    """Answer HTTP requests with the model of a run, until Ctrl-C or SIGTERM: POST rows to /v1/predict.

    The address is printed when it is ready. Only programs on this machine can reach it, unless --host says
    otherwise. /openapi.json describes it.
    """

    run: Annotated[
        Path, Argument("Folder that `deccs fit` has written, or any saved model.", "DIR|MODEL")
    ]
    host: Annotated[str, Option("Address to listen on; 0.0.0.0 for all of this machine.")] = (
        "127.0.0.1"
    )
    port: Annotated[int, Option("Port; 0 for any that is free.", default="8000")] = 8000
    allow_host: Annotated[
        tuple[str, ...],
        Option(
            "Names by which clients may call it, such as clusters.lan,clusters; * for any.",
            default="localhost and addresses",
        ),
    ] = ()
    most_rows: Annotated[int, Option("Rows of a request.", default="100,000")] = 100_000
    most_bytes: Annotated[int, Option("Bytes of the body of a request.", default="16,777,216")] = (
        2**24
    )
    threads: Annotated[
        int | None, Option("Large requests at a time.", default="the number of cores")
    ] = None
    quiet: Annotated[bool, QUIET] = False


@dataclass(frozen=True)
class WatchRequest(Request, command="watch"):
    """Compare files with the data of a fit, and keep a history of them in the folder of the run.

    Exit code 3: --fail-on-drift was given, and one of the files has drifted.
    """

    run: Annotated[Path, RUN]
    files: Annotated[tuple[str, ...], Argument(FILE.help, "[FILE ...]", True)] = ()
    page: Annotated[Path | None, Option("Write the history to this HTML file.", metavar="FILE")] = (
        None
    )
    fail_on_drift: Annotated[
        bool, Option("End with exit code 3 if a file has drifted.", in_config=False)
    ] = False
    missing: Annotated[
        str | None,
        Option("Missing values: auto, error, drop or mean (of the fit).", default=AS_IN_FIT),
    ] = None
    query: Annotated[str | None, QUERY] = None
    as_json: Annotated[bool, AS_JSON] = False
    quiet: Annotated[bool, QUIET] = False


@dataclass(frozen=True)
class ReportRequest(Request, command="report"):
    """Write the report of a run again: one HTML file that needs no network."""

    run: Annotated[Path, RUN]
    out: Annotated[
        Path | None, Option("HTML file.", OUT, metavar="FILE", default="report.html in DIR")
    ] = None
    data: Annotated[
        str | None,
        Option("The data of the fit.", metavar="FILE", default="where it was during the fit"),
    ] = None
    query: Annotated[
        str | None, Option("What to ask a database.", metavar="SQL", default=AS_IN_FIT)
    ] = None
    quiet: Annotated[bool, QUIET] = False


@dataclass(frozen=True)
class ExportRequest(Request, command="export"):
    """Write the model of a run as one ONNX file, which labels rows without Python.

    It is compared with the model where onnxruntime is installed.
    """

    run: Annotated[Path, RUN]
    out: Annotated[
        Path | None,
        Option("ONNX file.", OUT, metavar="FILE", default="the folder's name with .onnx"),
    ] = None
    precision: Annotated[
        str,
        Option(
            "Numbers: double (the labels of predict) or single (half the size; rows on a border may differ).",
            choices=("double", "single"),
        ),
    ] = "double"
    outputs: Annotated[
        tuple[str, ...] | None,
        Option(
            "What the file says: labels, probabilities, confidence, novelty, embedding, members.",
            default="the first four, as far as the method has them",
        ),
    ] = None
    overwrite: Annotated[bool, OVERWRITE] = False
    quiet: Annotated[bool, QUIET] = False


@dataclass(frozen=True)
class RenameRequest(Request, command="rename"):
    """Give a cluster of a run another name: in its model, labels, summary and report."""

    run: Annotated[Path, RUN]
    cluster: Annotated[int, Argument("Number of the cluster.", "CLUSTER")]
    name: Annotated[str, Argument("Its new name.", "NAME")]
    quiet: Annotated[bool, QUIET] = False


@dataclass(frozen=True)
class EditRequest(Request, command="edit"):
    """Merge, split, rename, pin or drop clusters of a run; its model, labels, summary and report follow.

    deccs edit run/ merge 3 5, split 2, split 2 3 (into 3 parts), rename 4 "loyal customers", pin 3 --rows a,b,
    drop 7, undo. Without an edit: what was edited so far.
    """

    run: Annotated[Path, RUN]
    words: Annotated[
        tuple[str, ...],
        Argument("One of merge, split, rename, pin, drop and undo, and of what.", "EDIT ...", True),
    ] = ()
    rows: Annotated[
        tuple[str, ...],
        Option(
            "Rows to pin, or to split off: ids as in the file of labels, a,b,c.", in_config=False
        ),
    ] = ()
    edits: Annotated[
        Path | None,
        Option("Edits that were downloaded from the report.", ("--from",), metavar="FILE"),
    ] = None
    data: Annotated[
        str | None,
        Option("The data of the fit.", metavar="FILE", default="where it was during the fit"),
    ] = None
    query: Annotated[
        str | None, Option("What to ask a database.", metavar="SQL", default=AS_IN_FIT)
    ] = None
    as_json: Annotated[bool, AS_JSON] = False
    quiet: Annotated[bool, QUIET] = False


@dataclass(frozen=True)
class CompareRequest(Request, command="compare"):
    """Compare the labels of two or more runs row by row: NMI, ARI, and who moved where. Rows are matched by id."""

    folders: Annotated[
        tuple[Path, ...], Argument("Folders that `deccs fit` has written.", "DIR DIR ...")
    ]
    picture: Annotated[
        Path | None,
        Option(
            "A picture of who moved where, from run to run; .svg, .png or .pdf.",
            metavar="FILE",
            in_config=False,
        ),
    ] = None
    as_json: Annotated[bool, AS_JSON] = False


@dataclass(frozen=True)
class PlanRequest(Request, command="plan"):
    """Estimate time, memory and disk of a fit of a large table, from the rules of fits and a measurement here.

    Nothing is fitted. The measurement takes a second or two; the other machines count as equally fast.
    """

    rows: Annotated[float | None, Option("Rows of the table, such as 1e9. Needed.")] = None
    columns: Annotated[int | None, Option("Columns to cluster. Needed.")] = None
    processes: Annotated[
        int, Option("Processes that fit it together, on any number of machines.", default="1")
    ] = 1
    threads: Annotated[
        int | None, Option("Threads of each process.", default="what torch uses here")
    ] = None
    network: Annotated[
        float, Option("Gbit/s between the processes.", metavar="GBIT", default="1")
    ] = 1.0
    bytes_per_value: Annotated[float, Option("Of a value in the file.", default="4")] = 4.0
    as_json: Annotated[bool, AS_JSON] = False


@dataclass(frozen=True)
class McpRequest(Request, command="mcp"):
    """Serve fit, predict, describe, compare and how_many to an agent, over the Model Context Protocol on stdio.

    The agent names files below one folder, and no others. Fits run in processes of their own.
    """

    root: Annotated[
        Path,
        Option("Folder below which all files are.", metavar="DIR", default="the current folder"),
    ] = Path()


@dataclass(frozen=True)
class SkillRequest(Request, command="skill"):
    """Print a guide to deccs for coding agents (SKILL.md), or write it where an agent looks for skills."""

    out: Annotated[
        Path | None,
        Option(
            "Folder for SKILL.md, such as .claude/skills/deccs.",
            OUT,
            metavar="DIR",
            default="stdout",
        ),
    ] = None
    overwrite: Annotated[bool, OVERWRITE] = False
    quiet: Annotated[bool, QUIET] = False


@dataclass(frozen=True)
class DatasetsRequest(Request, command="datasets"):
    """List the eight data sets of the paper, their sizes and sources, and which are downloaded."""

    as_json: Annotated[bool, AS_JSON] = False


@dataclass(frozen=True)
class InfoRequest(Request, command="info"):
    """Show versions, machine, folders, methods and members. Include it in bug reports."""

    as_json: Annotated[bool, AS_JSON] = False
