"""The paper's experiments as data: methods, settings, data sets, and how many runs of each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from deccs_paper.record_names import record_name
from deccs_paper.runner import Run
from deccs_paper.settings import METHODS, PAPER, RUN_FOR, TOYS

IMAGES = ("mnist", "fmnist", "kmnist", "usps")
LARGE = ("mnist", "fmnist", "kmnist")
STUDIED = ("pendigits", "usps", "mnist")  # the paper: MNIST alone
DEFAULT = "default"


@dataclass(frozen=True)
class Row:
    """A method of the comparison, with changes of its parameters."""

    label: str  # as in the paper, and in paper.json
    method: str  # as in the records
    changes: Mapping[str, Any] = field(default_factory=dict)
    group: str = ""  # the paper draws a line between groups


@dataclass(frozen=True)
class Experiment:
    """Rows by data sets, and the score they are shown by."""

    title: str
    rows: tuple[Row, ...]
    datasets: tuple[str, ...]
    score: str = "nmi"
    head: str = "Method"
    note: str = ""


def named(changes: Mapping[str, Any]) -> str:
    """What was changed, in the words of the records.

    >>> named({"rounds__n_init": 1, "rounds__lambda_rec": 0.0}), named({})
    ('lambda_rec=0, n_init=1', 'default')
    """
    words = {
        record_name(name): f"{value:g}" if isinstance(value, int | float) else f"{value}"
        for name, value in changes.items()
    }
    return ", ".join(f"{name}={word}" for name, word in sorted(words.items())) or DEFAULT


@dataclass(frozen=True)
class Cell:
    """One row on one data set: the name of its runs in the records, and how many there should be."""

    row: Row
    dataset: str
    n_seeds: int

    @property
    def changes(self) -> dict[str, Any]:
        """Without those that are the default for this data set: lambda_cons = 0.1 is that of images."""
        method = RUN_FOR.get(self.row.method)
        if not self.row.changes or method is None:
            return dict(self.row.changes)
        default = METHODS[method].build(self.dataset).get_params(deep=True)
        return {
            name: value
            for name, value in self.row.changes.items()
            if name not in default or default[name] != value
        }

    @property
    def experiment(self) -> str:
        """The name of the records: what was changed. Tables and figures share runs that are the same.

        >>> weights = {"rounds__lambda_cons": 0.1, "rounds__lambda_rec": 0.0}
        >>> Cell(Row("", "DECCS", weights), "usps", 1).experiment
        'lambda_rec=0'
        """
        return named(self.changes)

    @property
    def reason(self) -> str:
        """Why there are no runs at all, if so."""
        method = RUN_FOR.get(self.row.method)
        if method is None:
            return "not in this library yet"
        if METHODS[method].images_only and self.dataset not in IMAGES:
            return "n.a. (needs images)"
        return ""

    def runs(self) -> Iterator[Run]:
        if not self.reason:
            changes, experiment = self.changes, self.experiment
            for repetition in range(self.n_seeds):
                yield Run(experiment, RUN_FOR[self.row.method], self.dataset, repetition, changes)


def seeds_for(row: Row, dataset: str) -> int:
    """How many runs; the paper has ten of everything.

    >>> seeds_for(Row("", "DEC"), "usps"), seeds_for(Row("", "DECCS", NO_REC), "mnist")
    (3, 1)
    """
    if dataset in LARGE:
        return 3 if row.method == "DECCS" and not row.changes else 1
    return 5 if row.method == "DECCS" else 3


def rows_of(group: str, *methods: str) -> tuple[Row, ...]:
    return tuple(Row(method, method, group=group) for method in methods)


CLASSICAL = ("CSPA", "HGPA", "MCLA", "HBGF", "NMF", "LWEA", "RP+EM", "RP+FCM")
DEEP = ("SpectralNet", "DEC", "IDEC", "DCN", "VaDE", "DeepECT", "ConCURL")
OTHERS = (
    *rows_of("consensus", *CLASSICAL),
    *rows_of("consensus on the autoencoder", *(f"AE+{name}" for name in CLASSICAL)),
    *rows_of("deep", *DEEP),
)
NO_REC = {"rounds__lambda_rec": 0.0}
DECCS_ROW = Row("DECCS", "DECCS", group="DECCS")
PRINTED_ONLY = rows_of("deep", "IEC", "AGAE")
ALL = tuple(PAPER)

# Table I: a term that is left out has weight 0.
OFF = {"cons": {"rounds__lambda_cons": 0.0}, "CE": {"rounds__lambda_ce": 0.0}, "rec": NO_REC}
COMBINATIONS = ("cons", "CE", "rec", "cons + rec", "CE + rec", "cons + CE", "cons + CE + rec")


def ablation(label: str) -> Row:
    """The row of an ablation: what its label does not name is switched off.

    >>> ablation("cons + CE").changes
    {'rounds__lambda_rec': 0.0}
    """
    on = label.split(" + ")
    changes = {
        name: value for term, off in OFF.items() if term not in on for name, value in off.items()
    }
    return Row(label, "DECCS", changes, group=f"{len(on)} terms")


LAMBDAS = (0.1, 1.0, 10.0, 100.0)
LAMBDA_ROWS = {
    rec: tuple(
        Row(
            f"lambda_cons = {value:g}, lambda_rec = {rec}",
            "DECCS",
            {"rounds__lambda_cons": value} | (NO_REC if rec == 0 else {}),
            group=f"lambda_rec = {rec}",
        )
        for value in LAMBDAS
    )
    for rec in (0, 1)
}
RATIOS = (0.02, 0.04, 0.06, 0.08)

CHOSEN_WITHOUT = (
    "The paper chose dimension, version and ensemble size of RP+EM and RP+FCM by the NMI with the true "
    "classes; here they are chosen without them. The paper took its numbers for IEC and AGAE from their papers."
)

TRAINING = (
    "DECCS and the deep methods are trained for far fewer steps than in the paper, and the defaults were "
    "tuned on these same data sets (docs/method.md, docs/deep.md)."
)

TABLES: dict[str, Experiment] = {
    "table1": Experiment(
        "Table I: combinations of the loss terms (NMI)",
        tuple(map(ablation, COMBINATIONS)),
        ALL,
        head="Loss terms",
        note="lambda_rec is 1, on SYNTH and MICE 10 (up to 2,000 points); it is "
        f"multiplied by 1 - agreement, as in the authors' program. {TRAINING}",
    ),
    "table2": Experiment(
        "Table II: cluster performance (NMI)",
        (DECCS_ROW, *OTHERS, *PRINTED_ONLY),
        ALL,
        note=f"{CHOSEN_WITHOUT} {TRAINING}",
    ),
    "table3": Experiment(
        "Table III: cluster performance (ARI)",
        (DECCS_ROW, Row("DECCS without reconstruction", "DECCS", NO_REC, "DECCS"), *OTHERS),
        ALL,
        score="ari",
        note=TRAINING,
    ),
    "accuracy": Experiment(
        "Accuracy of the same runs, which the paper does not report",
        (DECCS_ROW, *OTHERS, *PRINTED_ONLY),
        ALL,
        score="accuracy",
    ),
    "study-ensemble-size": Experiment(
        "Ensemble size (NMI)",
        tuple(
            Row(f"{4 * copies} members", "DECCS", {"copies": copies} if copies > 1 else {})
            for copies in (1, 2, 3)
        ),
        STUDIED,
        head="Ensemble",
        note="The paper has 0.87 on MNIST throughout, for 4, 8 and what it counts as 16 members; "
        "its Table II has 0.88.",
    ),
    "study-sample-size": Experiment(
        "Sampling ratio (NMI)",
        tuple(Row(f"{ratio:g}", "DECCS", {"rounds__sample_size": ratio}) for ratio in RATIOS),
        STUDIED,
        head="Ratio",
        note="The paper has 0.87 on MNIST throughout. A share of 0.02 is 220 points on PENDIGITS, 186 on "
        "USPS and 1,400 on MNIST.",
    ),
    "study-lambda": Experiment(
        "Weight of the consensus loss, with and without reconstruction (NMI)",
        LAMBDA_ROWS[0] + LAMBDA_ROWS[1],
        STUDIED,
        head="Weights",
        note="The paper shows a curve for MNIST (Fig. 7) and no numbers.",
    ),
}

# The figures with the runs they need; all but 7 and 8 are drawn from fits of their own.
FIGURES: dict[str, Experiment] = {
    "fig1": Experiment("Figure 1: SYNTH, from the data to the consensus representation", (), ()),
    "fig2": Experiment(
        "Figure 2: the members on the autoencoder's embedding and on the consensus representation",
        (),
        (),
    ),
    "fig3": Experiment("Figure 3: the deep methods' embeddings of SYNTH", (), ()),
    "fig4": Experiment("Figure 4: two rings under CE, cons and both", (), ()),
    "fig5": Experiment("Figure 5: one round explained", (), ()),
    "fig6": Experiment("Figure 6: the classifiers' boundaries over the rounds", (), ()),
    "fig7": Experiment(
        "Figure 7: agreement and NMI by the weight of the consensus loss",
        LAMBDA_ROWS[0] + LAMBDA_ROWS[1],
        STUDIED,
    ),
    "fig8": Experiment(
        "Figure 8: agreement and NMI over the rounds",
        (DECCS_ROW,),
        ("mice", "pendigits", "har", "mnist"),
    ),
    "fig9": Experiment("Figure 9: two clusters that no line separates", (DECCS_ROW,), tuple(TOYS)),
}
EXPERIMENTS = TABLES | FIGURES


def cells(experiment: Experiment, n_seeds: int | None = None) -> Iterator[Cell]:
    """Row by row; ``n_seeds`` overrides the usual number of runs."""
    for row in experiment.rows:
        for dataset in experiment.datasets:
            yield Cell(row, dataset, seeds_for(row, dataset) if n_seeds is None else n_seeds)


def narrowed(
    experiment: Experiment, datasets: Sequence[str] | None, methods: Sequence[str] | None
) -> Experiment:
    """Only these data sets, and only the rows with one of these labels or methods."""
    rows = (
        experiment.rows
        if methods is None
        else tuple(row for row in experiment.rows if row.label in methods or row.method in methods)
    )
    names = (
        experiment.datasets
        if datasets is None
        else tuple(name for name in experiment.datasets if name in datasets)
    )
    return replace(experiment, rows=rows, datasets=names)


def runs_of(experiments: Mapping[str, Experiment], n_seeds: int | None = None) -> list[Run]:
    """All runs, first seeds first, so that the tables fill evenly."""
    runs = [
        run
        for experiment in experiments.values()
        for cell in cells(experiment, n_seeds)
        for run in cell.runs()
    ]
    return sorted(runs, key=lambda run: run.repetition)
