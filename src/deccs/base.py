"""What all methods share: parameters, checks, scaling, seeds, callbacks, checkpoints, files, answers.

A model that only predicts is made of the same classes. So what a fit needs is imported where it is used, and
:mod:`deccs.estimators` makes scikit-learn's estimators of the methods: both libraries take a second to load.
"""

from __future__ import annotations

import copy
import importlib
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import KW_ONLY, dataclass, field, replace
from os import PathLike
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Self

import numpy as np

from deccs import plots
from deccs.answer import Answer
from deccs.checks import (
    FLAG,
    N_CLUSTERS,
    NONE,
    SEED,
    Parameters,
    Rule,
    check_bounds,
    check_enough_points,
    check_fitted,
    check_parameters,
    check_value,
    instance,
    is_whole,
    k_bounds,
    one_of,
    settings,
    share,
    whole,
)
from deccs.counting.drawn import Drawn
from deccs.counting.records import ClusterStability, Count, KCandidate
from deccs.data.coding import Coding
from deccs.data.inputs import as_source, output_dtype, without_gaps
from deccs.data.kinds import KINDS
from deccs.data.learning_rows import MOST_ROWS, learning_rows
from deccs.data.scalers import fit_scaler
from deccs.data.scaling import Scaler, widths_of
from deccs.data.source import (
    ArrayRows,
    PartRows,
    RowSource,
    SelectedRows,
    each_block,
    fingerprint_of,
    in_order,
    rows_at_once,
)
from deccs.data.table_scaling import TableScaler, check_coding, evenly
from deccs.describing.coded import described_columns
from deccs.describing.columns import Described, nameable
from deccs.describing.description import Description, describe
from deccs.describing.names import cluster_names
from deccs.edits.editing import STATE_OF_EDITS, Editable
from deccs.events import Listeners, Progress
from deccs.group.group import ALONE, Group, check_same
from deccs.group.joining import current_group
from deccs.labeling import PartLabels, by_part, spans_of
from deccs.labels import NOISE, warn_of_empty_clusters
from deccs.loaded import is_module
from deccs.novelty.evidence import LEAST_KEPT
from deccs.novelty.learned import MOST_JUDGED, Novelty, joined_rows, learn_novelty, seen_rows
from deccs.seeds import generator_for, root_seed, seed_for
from deccs.settings import Network, Pretraining, without_steps
from deccs.storage import NO_CHECKPOINT, Checkpoint, FolderCheckpoint, Maybe, wholes
from deccs.storage.checkpoints import FitFacts, as_fact
from deccs.storage.models import ModelFiles
from deccs.watching.sketch import Sketch, rows_to_sketch

if TYPE_CHECKING:
    from deccs.data.rows import Rows
    from deccs.training.start import Start

SCALE = one_of("auto", "global", "columns", "robust", "rows", None)
KINDS_OF_COLUMNS = NONE | Rule(
    f"a dict of column names and kinds ({', '.join(KINDS)})",
    lambda value: (
        isinstance(value, Mapping)
        and all(isinstance(name, str) and kind in KINDS for name, kind in value.items())
    ),
)
CALLBACKS = NONE | instance(list, tuple, words="a list of callbacks")
NETWORK = settings(Network) | Rule(
    "an Autoencoder or a pair (encoder, decoder) of torch modules",
    lambda value: (
        (is_module(value) and hasattr(value, "exact_encoder"))
        or (
            isinstance(value, tuple | list)
            and len(value) == 2
            and all(is_module(part) for part in value)
        )
    ),
)
AUTOENCODER = Rule("an Autoencoder", lambda value: hasattr(value, "exact_encoder"))
CHECKPOINT = NONE | instance(str, PathLike, Checkpoint, words="the path of a folder")
MOST_CLUSTERS = 10_000  # in a file, unless more have points: each takes room in every answer
MOST_FEATURES = 10_000_000  # in a file
MOST_NAMED_FROM = 20_000  # rows
MOST_KEPT = 2**22  # numbers of the representation that a model keeps: 32 MB
MOST_SCORED = 5_000  # rows: their neighbors are found in a second or two
WITHOUT_EFFECT = (
    "checkpoint",
    "callbacks",
    "verbose",
    "n_jobs",
    "member_timeout",
    "random_state",
)


@dataclass(frozen=True, eq=False)
class Fit:
    """A fit under way: what every method needs while it learns."""

    source: RowSource  # the rows to learn from
    all_rows: RowSource  # to be labeled: the same, unless they are too many to learn from
    scaler: Scaler
    root: int  # all seeds are derived from it
    listeners: Listeners
    checkpoint: Checkpoint
    group: Group = ALONE  # the processes that share the work
    helped: dict[str, Rows] = field(
        default_factory=dict
    )  # what a helping process has made of its rows

    @property
    def is_of_sample(self) -> bool:
        return self.source is not self.all_rows

    def rows(self, device: str = "cpu", image_shape: tuple[int, int] | None = None) -> Rows:
        from deccs.data.rows import Rows
        from deccs.network.device import pick_device

        return Rows(self.source, self.scaler, pick_device(device), image_shape, self.group)

    def rows_of(self, facts: tuple[Scaler, str, tuple[int, int] | None]) -> Rows:
        """The rows as the first process sees them, in a process that helps it."""
        scaler, device, image_shape = facts
        name = f"{device} {image_shape}"  # the scaler is the same in all tasks of a fit
        if name not in self.helped:
            from deccs.data.rows import Rows

            self.helped[name] = Rows(self.source, scaler, device, image_shape, self.group)
        return self.helped[name]


class Learned:
    """What fits learn, for type checkers; dataclasses would take these for parameters."""

    n_features_in_: int
    autoencoder_: Any  # of methods that train a network


@dataclass(eq=False, repr=False)
class Clusterer(Learned, Editable, ModelFiles, Parameters, ABC):
    """The base of all estimators.

    A method says what it checks beyond its parameters' rules (``_check``), how it learns
    (``_learn``) and what it says of rows, block by block (``_answers``).
    """

    ADDED: ClassVar[Mapping[str, Any]] = {"kinds": None}
    LEARNS_FROM_A_SAMPLE: ClassVar[bool] = False  # of more rows than learning can use
    TELLS_NOVELTY: ClassVar[bool] = False  # whether a fit learns what is unusual
    KEEPS_EMBEDDING: ClassVar[bool] = False  # so that clusters can be split without the data
    LEARNED: ClassVar[Mapping[str, Any]] = {
        "n_features_in_": Annotated[int, whole(at_least=1)],
        "coding_": Maybe(Coding | None),
        "scaler_": Scaler,
        "labels_": wholes("n_points"),
        "learning_rows_": Maybe(Annotated[np.ndarray, wholes("n_learned", least=0)]),
        "n_clusters_": Maybe(Annotated[int, whole(at_least=1)]),
        "cluster_names_": Maybe(tuple[str, ...]),
        "count_": Maybe(Count),
        "_sample_places": Maybe(wholes("n_counted", least=0, small=True)),
        "_drawn": Maybe(Drawn),
        "_stability": Maybe(list[ClusterStability]),
        "novelty_": Maybe(Novelty | None),
        "sketch_": Maybe(Sketch | None),
    }

    n_clusters: Annotated[int | str | range, N_CLUSTERS] = 8
    _: KW_ONLY
    scale: Annotated[str | None, SCALE] = "auto"
    kinds: Annotated[Mapping[str, str] | None, KINDS_OF_COLUMNS] = None
    random_state: Annotated[int | np.random.RandomState | None, SEED] = None
    verbose: Annotated[bool, FLAG] = False
    callbacks: Annotated[Sequence[Any] | None, CALLBACKS] = None

    def fit(self, X: Any, y: object = None) -> Self:
        """Learn the clustering of X. ``y`` is ignored."""
        from deccs.spreading import jobs_for_us_alone

        group = current_group()
        check_parameters(self)  # first: it says what kinds are, by which X is read
        source = self._source_to_fit(X, group)
        self._check_rows(source.shape[0])
        for name in (
            "count_",
            "n_clusters_",
            "cluster_names_",
            "_sample_places",
            "_drawn",
            "_stability",
            "learning_rows_",
            "novelty_",
            "sketch_",
            "embedding_",
            *STATE_OF_EDITS,
        ):  # of an earlier fit
            self.__dict__.pop(name, None)
        if self._bounds() is not None:
            check_bounds(self.n_clusters, source.shape[0])
        learned = learning_rows(source, group) if self.LEARNS_FROM_A_SAMPLE else None
        if learned is not None:
            self.learning_rows_ = learned.index
        rows = source if learned is None else learned.source
        self._check(rows.shape[0])
        if group.size > 1:
            facts = {**self._facts(), "rows": str(source.shape[0]), "data": fingerprint_of(rows)}
            check_same(group, {"method": type(self).__name__, **facts})
        with jobs_for_us_alone(), self._fitting(source, rows, group) as fit:
            fit.listeners.tell("on_fit_start", self)
            self.__dict__.update(group.lead(lambda: self._learn_all(fit), fit))
            if fit.is_of_sample:
                self.labels_ = self._labeled_in_parts(fit)
            if group.is_first:
                warn_of_empty_clusters(self.labels_, len(self.clusters_))
            fit.listeners.tell("on_fit_end", self)
            # Whoever opens a checkpoint removes it: one that was given as an object stays.
            if group.is_first and fit.checkpoint is not getattr(self, "checkpoint", None):
                fit.checkpoint.remove()
        return self

    def _learn_all(self, fit: Fit) -> dict[str, Any]:
        """Learn all but the labels of rows outside a sample; what the other processes must know of it."""
        self._count_clusters(fit)
        self._learn(fit)
        if fit.is_of_sample:
            # Answers are written with names, which follow from the labels of the sample.
            self._finish(fit, np.concatenate(list(self._label_blocks(fit.source))))
        else:
            self.labels_ = self._labeled(fit)
            self._finish(fit, self.labels_)
        parameters = self.get_params(deep=False)
        return {name: value for name, value in vars(self).items() if name not in parameters}

    def _labeled(self, fit: Fit) -> np.ndarray:
        """The labels of all rows: (n_points,). Listeners are told the answers while they are made."""
        labels, kept, n_rows = [], [], fit.all_rows.shape[0]
        for answer in self._training_answers(fit):
            labels.append(answer.labels)
            if self.KEEPS_EMBEDDING and n_rows * answer.Z.shape[1] <= MOST_KEPT:
                kept.append(answer.Z)
            fit.listeners.tell("on_answer", answer)
        if kept:
            self.embedding_ = np.concatenate(kept)
        return np.concatenate(labels)

    def _labeled_in_parts(self, fit: Fit) -> np.ndarray:
        """The same for more rows than were learned from, each process its own; parts done before a kill are kept."""
        group, source = fit.group, fit.all_rows
        if not hasattr(self.scaler_, "n_scaled"):
            source = without_gaps(self, source)  # the sample has none
        fit.checkpoint.owner = group.once(lambda: fit.checkpoint.owner)
        labels = PartLabels(source.shape[0], group, fit.checkpoint)
        n_known = sum(group.each(lambda: len(labels.known)))
        if group.is_first:
            fit.listeners.tell("on_parts", n_known)
        group.each(int)  # what an earlier fit has left is removed by now
        if not group.is_first:
            fit.listeners.tell("on_parts", n_known)
        for part in labels.known:
            fit.listeners.tell("on_part", part)
        unknown = labels.unknown
        n_done, n_all = 0, sum(map(len, unknown))
        for span in spans_of(unknown):
            rows = PartRows(source, span[0].start, span[-1].stop)
            of_part: list[np.ndarray] = []
            for part, answer in by_part(self._fast_answers(rows), span):
                group.check()
                of_part.append(answer.labels)
                n_done += len(answer)
                fit.listeners.tell("on_answer", answer)
                fit.listeners.tell("on_progress", Progress("labeling", n_done, n_all))
                if sum(map(len, of_part)) == len(part):
                    fit.listeners.tell("on_part", part)
                    labels.keep(part, np.concatenate(of_part))
                    of_part = []
        return group.joined(labels.joined()).astype(np.int64)

    def _finish(self, fit: Fit, labels: np.ndarray) -> None:
        """What is learned from the labels of the rows that the fit learned from: (n_learned,)."""
        if not hasattr(self, "_stability"):  # a method may have judged its clusters already
            from deccs.counting.cluster_stability import draw

            self._drawn = draw(fit.source, self.scaler_, labels, fit.root)
        if not hasattr(self, "n_clusters_"):
            self.n_clusters_ = max(int(labels.max()) + 1, self.n_wanted or 1)
        self._name_clusters(fit.source, labels)
        self.sketch_: Sketch | None = self._sketched(fit.source)
        if self.TELLS_NOVELTY:
            self.novelty_: Novelty | None = self._learned_novelty(fit)

    def answer(self, X: Any, *, novelty: bool = False) -> Answer:
        """All the model says of X, from one pass over its rows; the other methods are views of it.

        ``novelty=True`` also tells how unusual each row is, see :meth:`novelty`.
        """
        return Answer.joined(self.answers(X, novelty=novelty))

    def answers(self, X: Any, *, novelty: bool = False) -> Iterator[Answer]:
        """The answer for X block by block, in the order of the rows."""
        source = self._checked(X)
        if novelty:
            return self._answers_with_novelty(source)
        is_many = source.shape[0] > MOST_ROWS
        return self._fast_answers(source) if is_many else self._answers(source)

    def predict(self, X: Any, *, reject: float | None = None) -> np.ndarray:
        """The cluster of each point, new or old: (n_points,).

        ``reject=0.01`` gives -1 to rows that are more unusual than 99 of 100 new rows of the fit's kind,
        see :meth:`novelty`.
        """
        source = self._checked(X)
        check_value("reject", reject, NONE | share())
        if reject is None:
            return np.concatenate(list(self._label_blocks(source)))
        answer = Answer.joined(self._answers_with_novelty(source))
        assert answer.novelty is not None
        return np.where(answer.novelty > 1 - reject, NOISE, answer.labels)

    def novelty(self, X: Any) -> np.ndarray:
        """How unusual each row is: (n_points,), the share of new rows of the fit's kind that are less so.

        Judged by the distance to the nearest rows of a sample of the fit, in the columns and in the
        representation, compared with what is usual there; see docs/watching.md. One in a hundred rows of
        the same kind has a novelty above .99, a row like no other nearly 1.
        """
        answers = self._answers_with_novelty(self._checked(X))
        return np.concatenate([answer.novelty for answer in answers])

    def describe(self, X: Any) -> Description:
        """What makes each cluster different, in words: names, rules and differences of columns.

        X are the data of the fit, or others, as a data frame; of an array without names of columns little
        can be said. ``str(model.describe(X))`` is a text for people.
        """
        source = self._checked(X)
        labels = np.concatenate([answer.labels for answer in self._answers(source)])
        n_clusters = max(len(self._numbered_names()), int(labels.max()) + 1)
        described = describe(self._described(source), labels, n_clusters)
        names = getattr(self, "cluster_names_", ())
        return replace(described, names=names) if len(names) == n_clusters else described

    def export(
        self,
        path: str | PathLike[str],
        *,
        precision: str = "double",
        outputs: Sequence[str] | None = None,
        check: Any = True,
    ) -> None:
        """Write the model to one ONNX file, which answers without Python: from raw columns to labels.

        The file is run by onnxruntime, where it is installed, and compared with the model: an ExportError tells of
        any difference, and nothing is written.

        Parameters
        ----------
        path : where to; an existing file is replaced
        precision : "double" or "single"
            "double": all labels are those of ``predict``. "single": half the size, and rows that are on a border
            may get the label of the other side.
        outputs : list of names, default=None
            What the file says: "labels", "probabilities", "confidence", "novelty", "embedding", "members"; None for
            those of the first four that the method has.
        check : bool or rows, default=True
            Rows to compare on, beside those near the rows that the model keeps, and extreme ones. False: do not.
        """
        # By name, as in storage: what methods share must not import what knows all of them.
        onnx_file = importlib.import_module("deccs.export.onnx_file")
        onnx_file.export(self, path, precision=precision, outputs=outputs, check=check)

    def _numbered_names(self) -> tuple[str, ...]:
        n_clusters = getattr(
            self, "n_clusters_", int(self.labels_.max()) + 1
        )  # not in older models
        return tuple(f"cluster {cluster}" for cluster in range(n_clusters))

    def _name_clusters(self, source: RowSource, labels: np.ndarray) -> None:
        """Names in words, where the columns have names."""
        if getattr(self, "coding_", None) is None and not hasattr(self, "feature_names_in_"):
            return
        rows = evenly(source.shape[0], MOST_NAMED_FROM)
        columns = self._described(SelectedRows(source, rows))
        if nameable(columns):
            self.cluster_names_ = cluster_names(columns, labels[rows], self.n_clusters_)

    def _described(self, source: RowSource) -> list[Described]:
        """The columns of rows, with the values that people know."""
        numbered = [f"column {place + 1}" for place in range(source.shape[1])]
        names = getattr(self, "feature_names_in_", numbered)
        coding: Coding | None = getattr(self, "coding_", None)  # older models were fitted on arrays
        return described_columns(source.read(slice(0, source.shape[0])), coding, names)

    @property
    def n_wanted(self) -> Any:
        """The number of clusters of the fit: as asked for, or as counted; None where members decide.

        Before the count it is the least number there may be.
        """
        bounds = self._bounds()
        if bounds is None:
            return self.n_clusters
        count: Count | None = getattr(self, "count_", None)
        return bounds[0] if count is None else count.n_clusters

    @property
    def k_candidates_(self) -> tuple[KCandidate, ...]:
        """Numbers of clusters, ranked, with what speaks for them; after a fit with n_clusters="auto"."""
        return self._counted().candidates

    @property
    def k_curves_(self) -> dict[str, np.ndarray]:
        """The evidence for each number tried, "k"; after a fit with n_clusters="auto"."""
        count = self._counted()
        return {"k": count.ks, **count.curves}

    def labels_at(self, k: int) -> np.ndarray:
        """The labels for another number of clusters: (n_points,), without a new fit.

        After a fit with n_clusters="auto", for every number in ``k_curves_["k"]`` and for 1.
        """
        count = self._counted()
        if hasattr(self, "learning_rows_"):
            raise AttributeError(
                f"The fit learned from {len(self.learning_rows_):,} of {len(self.labels_):,} rows, and other "
                "numbers of clusters are known for these alone. Use predict_at(X, k)."
            )
        if k == self.n_clusters_ and not self.edits_:
            return self.labels_
        return count.sample_labels(k)[self._sample_places]

    def predict_at(self, X: Any, k: int) -> np.ndarray:
        """The labels of X for another number of clusters, as for :meth:`labels_at`: (n_points,)."""
        count = self._counted()
        if k == self.n_clusters_ and not self.edits_:
            return self.predict(X)
        blocks = each_block(self._checked(X))
        return np.concatenate([count.labels(self.scaler_(block), k) for _, block in blocks])

    @property
    def cluster_stability_(self) -> list[ClusterStability]:
        """Whether each cluster is real: what becomes of it when the data are drawn again.

        Computed when it is first asked for, on a sample of at most 1,000 rows; this takes seconds.
        """
        check_fitted(self)
        if not hasattr(self, "_stability"):
            drawn: Drawn | None = getattr(self, "_drawn", None)
            from deccs.counting.cluster_stability import stability_of

            self._stability = [] if drawn is None else stability_of(drawn)
        return self._stability

    def plot_k(self, ax: Any = None) -> Any:
        """The evidence for each number of clusters, as matplotlib axes."""
        self._counted()
        return plots.plot_k(self, ax)

    def plot_cluster_tree(self, ax: Any = None) -> Any:
        """Which cluster splits into which as their number grows, as matplotlib axes."""
        self._counted()
        return plots.plot_cluster_tree(self, ax)

    def _bounds(self) -> tuple[int, int | None] | None:
        """The least and the most clusters to choose from; None where their number is given."""
        return k_bounds(self.n_clusters)

    def _count_clusters(self, fit: Fit) -> None:
        """Find the number of clusters if it is not given; a resumed fit remembers it."""
        bounds = self._bounds()
        if bounds is None:
            return
        known = fit.checkpoint.restore("count", lambda state: self._placed(fit, state["count"]))
        if known is None:
            from deccs.counting.count import count_clusters_of

            count = count_clusters_of(fit.source, self.scaler_, bounds, fit.root, fit.listeners)
            fit.checkpoint.save("count", {"count": count})
            known = self._placed(fit, count)
        self.count_: Count = known[0]
        self._sample_places = known[1]
        self._check(fit.source.shape[0])

    def _placed(self, fit: Fit, count: Count) -> tuple[Count, np.ndarray]:
        """A count with the place in its sample of each row's nearest neighbor, if it is one of the data."""
        count.check(fit.source.shape[0])
        blocks = (self.scaler_(block) for _, block in each_block(fit.source))
        return count, np.concatenate([count.places(block) for block in blocks])

    def _sizes(self) -> dict[str, int]:
        sizes = {"n_features": self._widths[0], "n_wanted": self.n_wanted}
        sizes["n_clusters"] = getattr(self, "n_clusters_", None)
        return {name: size for name, size in sizes.items() if is_whole(size)}

    @property
    def _n_cells(self) -> int:
        """How many numbers a row is coded as."""
        coding: Coding | None = getattr(self, "coding_", None)
        return int(self.n_features_in_) if coding is None else len(coding.cells)

    @property
    def _widths(self) -> tuple[int, int]:
        """How many numbers members and networks see of a row."""
        return widths_of(getattr(self, "scaler_", None), self._n_cells)

    @property
    def _n_learned(self) -> int:
        """How many rows the fit learned from."""
        return len(getattr(self, "learning_rows_", self.labels_))

    def _of_learning_rows(self, source: RowSource) -> Self:
        """A copy of the model for which the rows it learned from are all rows: for reports and the like."""
        model = copy.copy(self)
        model.labels_ = np.concatenate(list(self._label_blocks(source)))
        model.__dict__.pop("learning_rows_", None)
        return model

    def _check_learned(self) -> None:
        index: np.ndarray | None = getattr(self, "learning_rows_", None)
        if index is not None and not (
            2 <= len(index) <= len(self.labels_)
            and index[-1] < len(self.labels_)
            and (np.diff(index) > 0).all()
        ):
            raise ValueError("learning_rows_ must be row numbers of labels_, in order")
        coding: Coding | None = getattr(self, "coding_", None)
        if coding is not None and len(coding.names) != self.n_features_in_:
            raise ValueError("coding_ must have n_features_in_ columns")
        check_coding(self.scaler_, coding, self._n_cells)
        used = np.unique(self.labels_)
        most = max(MOST_CLUSTERS, len(used))
        wanted = self.n_wanted if is_whole(self.n_wanted) else 1
        if not len(used) or max(used[-1] + 1, wanted, getattr(self, "n_clusters_", 1)) > most:
            raise ValueError(f"labels_ must have 1 to {most:,} clusters")
        names = getattr(self, "cluster_names_", None)
        n_clusters = max(int(used[-1]) + 1, getattr(self, "n_clusters_", 1))
        if names is not None and (len(names) != n_clusters or len(set(names)) < len(names)):
            raise ValueError("cluster_names_ must have a name for each cluster, each once")
        if len(getattr(self, "embedding_", self.labels_)) != len(self.labels_):
            raise ValueError("embedding_ must have a row for each of labels_")
        self._check_edits()
        if self.n_features_in_ > MOST_FEATURES:
            raise ValueError(f"n_features_in_ must be at most {MOST_FEATURES:,}")
        novelty: Novelty | None = getattr(self, "novelty_", None)
        if novelty is not None and not novelty.is_of(self._widths[0], self._n_found):
            raise ValueError("novelty_ is not of a fit with n_features_in_ and so many clusters")
        if hasattr(self, "count_"):
            self.count_.check(self._n_learned)
            if not hasattr(self, "n_clusters_"):
                raise ValueError("n_clusters_ is missing beside count_")
            if len(self._sample_places) != self._n_learned:
                raise ValueError(
                    "_sample_places must have a place for each row that was learned from"
                )
            if self._sample_places.max(initial=0) >= len(self.count_.sample):
                raise ValueError("_sample_places names rows that are not in the sample")

    def _counted(self) -> Count:
        check_fitted(self)
        if not hasattr(self, "count_"):
            raise AttributeError(
                f"n_clusters={self.n_clusters!r} was given, so no other number was tried. "
                "Fit with n_clusters='auto'."
            )
        return self.count_

    def score(self, X: Any, y: object = None) -> float:
        """How well clusters keep neighbors together: from 0 to 1, higher is better. ``y`` is ignored.

        Of the ties between the 10 nearest neighbors of the scaled rows, the share that stays inside
        a cluster, mean over clusters; that is 1 less the normalized cut of ``predict(X)``. A cluster
        that no row belongs to counts 0, so a single cluster scores ``1 / n_clusters``. Rows labeled
        as noise belong to no cluster, and the score is multiplied by the share of the others. At most
        5,000 rows are used, always the same ones.

        No true labels are needed, so ``GridSearchCV(model, settings)`` works without ``scoring``. Use
        it to compare settings with each other on the same data, not to choose ``n_clusters`` (more
        clusters cut more ties) or ``scale`` (it changes who is a neighbor). A high score does not
        mean that clusters are the wanted ones: it knows gaps between rows, and nothing of classes.
        """
        from deccs.data.sampling import draw_rows
        from deccs.members.neighbors import kept_share, neighbor_graph

        source = self._checked(X)
        drawn = draw_rows(source.shape[0], MOST_SCORED, generator_for(0, "score")).numpy()
        rows = SelectedRows(source, drawn)
        labels = np.concatenate([answer.labels for answer in self._answers(rows)])  # (n_drawn,)
        graph = neighbor_graph(self.scaler_(rows.read(slice(0, len(drawn)))))
        return kept_share(graph, labels, self.n_wanted or 1)

    def _check_rows(self, n_rows: int) -> None:
        """Raise a ValueError where what was given beside X does not fit all of its rows."""

    def _check(self, n_points: int) -> None:
        """Raise a ValueError where parameters do not fit the data or each other."""
        check_enough_points(self.n_wanted, n_points)

    @abstractmethod
    def _learn(self, fit: Fit) -> None:
        """Learn from the rows of a fit, and keep what was learned."""

    @abstractmethod
    def _learned_answers(self, source: RowSource) -> Iterator[Answer]:
        """The answers for rows, block by block, in their order."""

    def _learned_fast_answers(self, source: RowSource) -> Iterator[Answer]:
        """The same with all but the labels in single precision, where a method knows a faster way."""
        return self._learned_answers(source)

    def _learned_label_blocks(self, source: RowSource) -> Iterator[np.ndarray]:
        """The labels of rows alone, block by block."""
        return (answer.labels for answer in self._learned_answers(source))

    def _learned_training_answers(self, fit: Fit) -> Iterator[Answer]:
        """The answers for the rows of the fit; a method that knows them already need not compute them."""
        return self._learned_answers(fit.all_rows)

    # What was learned, as users see it: after the edits of the model.

    def _answers(self, source: RowSource) -> Iterator[Answer]:
        return map(self._as_edited, self._learned_answers(source))

    def _fast_answers(self, source: RowSource) -> Iterator[Answer]:
        return map(self._as_edited, self._learned_fast_answers(source))

    def _training_answers(self, fit: Fit) -> Iterator[Answer]:
        return map(self._as_edited, self._learned_training_answers(fit))

    def _label_blocks(self, source: RowSource) -> Iterable[np.ndarray]:
        return self._edited_blocks(
            lambda: self._learned_label_blocks(source), lambda: self._answers(source)
        )

    def _sketched(self, source: RowSource) -> Sketch | None:
        """What the columns look like, for later data to be compared with."""
        rows = evenly(source.shape[0], rows_to_sketch(*source.shape))
        return Sketch.of(self._described(SelectedRows(source, rows)))

    def _learned_novelty(self, fit: Fit) -> Novelty | None:
        """What is unusual, learned from a sample of the rows that the fit learned from."""
        from deccs.counting.evidence import affordable
        from deccs.data.sampling import draw_rows

        n_rows, n_features = fit.source.shape
        most = affordable(MOST_JUDGED, n_features)
        index = draw_rows(n_rows, most, generator_for(fit.root, "novelty")).numpy()
        parts = [
            seen_rows(answer, scaled)
            for answer, scaled in self._answers_and_rows(SelectedRows(fit.source, index))
        ]
        return learn_novelty(joined_rows(parts), self._n_found, seed_for(fit.root, "novelty"))

    def _answers_with_novelty(self, source: RowSource) -> Iterator[Answer]:
        novelty: Novelty | None = getattr(self, "novelty_", None)
        if novelty is None:
            raise AttributeError(self._why_no_novelty())
        for answer, scaled in self._answers_and_rows(source):
            # Judged before the edits: they change the names of clusters, not what the fit has seen.
            unusual = novelty(seen_rows(answer, scaled))
            yield self._as_edited(replace(answer, novelty=unusual))

    def _answers_and_rows(self, source: RowSource) -> Iterator[tuple[Answer, np.ndarray]]:
        """What was learned of rows with the rows, scaled, block by block."""
        for _, block in each_block(source, self._widths[1]):
            answer = Answer.joined(self._learned_answers(ArrayRows(block)))
            yield answer, self.scaler_(block)

    def _why_no_novelty(self) -> str:
        if not self.TELLS_NOVELTY:
            return (
                f"{type(self).__name__} has no network and does not tell how unusual rows are. "
                "DECCS and the methods of deccs.deep do."
            )
        if hasattr(self, "novelty_"):
            return (
                f"The fit had {len(self.labels_)} rows, and {LEAST_KEPT} are needed to tell how "
                "unusual others are. Fit with more rows."
            )
        return (
            "This model was fitted by an older deccs and does not know how unusual rows are. "
            "Fit it again."
        )

    def _source_to_fit(self, X: Any, group: Group) -> RowSource:
        """The rows of a fit."""
        return as_source(self, X, reset=True, group=group)

    def _scaler_for(self, rows: RowSource) -> Scaler:
        """What is learned about the columns' scale."""
        return fit_scaler(rows, self.scale)

    def _checked(self, X: Any) -> RowSource:
        check_fitted(self)
        return as_source(self, X, reset=False)

    @contextmanager
    def _fitting(self, source: RowSource, rows: RowSource, group: Group) -> Iterator[Fit]:
        """Seeds, scaler, listeners and checkpoint of a fit; a live display meanwhile, if wanted.

        Of several processes the first one decides on the seed and the scaler, and has the display.
        """
        from deccs.network.device import single_precision

        seed, by_chance = root_seed(self.random_state), self.random_state is None
        with ExitStack() as stack:
            stack.enter_context(single_precision())
            checkpoint = self._opened_checkpoint()
            if group.is_first:
                stack.enter_context(checkpoint.in_use())
            root, scaler = group.once(
                lambda: (
                    self._claimed(checkpoint, rows, seed, by_chance, group.size),
                    self._scaler_for(rows),
                )
            )
            self.scaler_ = scaler
            callbacks = list(self.callbacks or ())
            if self.verbose and group.is_first:
                from deccs.display import Display  # the only use of a terminal library in a fit

                callbacks.append(stack.enter_context(Display()))
            yield Fit(rows, source, scaler, root, Listeners(callbacks), checkpoint, group)

    def _opened_checkpoint(self) -> Checkpoint:
        given = getattr(self, "checkpoint", None)
        if given is None:
            return NO_CHECKPOINT
        return given if isinstance(given, Checkpoint) else FolderCheckpoint(given)

    def _claimed(
        self,
        checkpoint: Checkpoint,
        source: RowSource,
        seed: int,
        by_chance: bool,
        n_processes: int,
    ) -> int:
        """The seed of the fit, after a look at the states of an earlier one."""
        if checkpoint is NO_CHECKPOINT:  # reading all rows for their fingerprint takes time
            return seed
        facts = {"method": type(self).__name__, **self._facts(), "data": fingerprint_of(source)}
        fit = FitFacts(facts, seed, by_chance, self._facts_of_version_1, n_processes)
        return checkpoint.claim(fit)

    def _facts_of_version_1(self, facts: Mapping[str, str]) -> dict[str, str]:
        """What a checkpoint without the name of its method knows of a fit, in today's names.

        Only DECCS had checkpoints then.
        """
        return dict(facts)

    def _facts(self) -> dict[str, str]:
        """The parameters that a result depends on, in words."""
        values = self.get_params(deep=False)
        for name in self._settings_classes():
            if isinstance(self.settings_for(name), Parameters):  # not a network of the user's own
                inner = self.settings_for(name).get_params(deep=False)
                values |= {f"{name}__{key}": value for key, value in inner.items()}
                del values[name]
        # A parameter that does what fits did before it was added is no fact: older checkpoints lack it.
        values = {
            name: value
            for name, value in values.items()
            if name not in WITHOUT_EFFECT and not (name in self.ADDED and value == self.ADDED[name])
        }
        if "device" in values:
            from deccs.network.device import pick_device

            values["device"] = pick_device(values["device"])
        return {name: as_fact(value) for name, value in values.items()}


class SoftClusterer(Clusterer):
    """A method that gives every cluster a probability for each point."""

    def predict_proba(self, X: Any) -> np.ndarray:
        """The probability of each cluster for each point: (n_points, n_clusters), rows sum to 1."""
        answers = self._answers(self._checked(X))
        return np.concatenate([answer.probabilities for answer in answers])


class Embedder(Clusterer):
    """A method that clusters a representation of the data.

    A method says how it represents rows (``_embedded``) and what it says of represented points
    (``_answer``).
    """

    KEEPS_EMBEDDING: ClassVar[bool] = True

    def transform(self, X: Any) -> np.ndarray:
        """The representation of X: (n_points, n_latent)."""
        source = self._checked(X)
        return np.concatenate(list(self._embedded(source))).astype(output_dtype(source), copy=False)

    def _learned_answers(self, source: RowSource) -> Iterator[Answer]:
        return (self._answer(Z) for Z in self._embedded(source))

    @abstractmethod
    def _embedded(self, source: RowSource) -> Iterator[np.ndarray]:
        """(n_block, n_latent) doubles, block by block; each row by itself."""

    def _answer(self, Z: np.ndarray) -> Answer:
        """The answer for represented points."""
        raise NotImplementedError


@dataclass(eq=False, repr=False, kw_only=True)
class TrainedEmbedder(Embedder):
    """A method that trains a network: it has a device, and can be interrupted and resumed.

    The representation is the output of the encoder in ``autoencoder_``.
    """

    LEARNS_FROM_A_SAMPLE: ClassVar[bool] = True
    TELLS_NOVELTY: ClassVar[bool] = True
    LEARNED: ClassVar[Mapping[str, Any]] = {"autoencoder_": Annotated[Any, AUTOENCODER]}

    device: Annotated[str, instance(str, words="'auto' or the name of a device of torch")] = "auto"
    checkpoint: Annotated[str | PathLike[str] | Checkpoint | None, CHECKPOINT] = None

    def _check_learned(self) -> None:
        super()._check_learned()
        autoencoder = getattr(self, "autoencoder_", None)  # AGAE has none
        if autoencoder is not None:
            autoencoder.check_width(self._widths[1])

    def _rows_to_train_on(self, fit: Fit) -> Rows:
        """The rows the network is trained on."""
        return fit.rows(self.device)

    def _embedded(self, source: RowSource) -> Iterator[np.ndarray]:
        encode = self.autoencoder_.exact_encoder()
        for block in in_order(source, rows_at_once(source.shape[1]) // 4):
            yield encode(self.scaler_.inputs(block))

    @property
    def _n_features_out(self) -> int:
        return int(self.autoencoder_.exact_encoder()(np.zeros((2, self._widths[1]))).shape[1])


@dataclass(eq=False, repr=False, kw_only=True)
class AutoencoderEmbedder(TrainedEmbedder):
    """A method that starts from a pretrained autoencoder."""

    RENAMED: ClassVar[dict[str, str]] = {
        "autoencoder": "network",
        "layers": "network__layers",
        "dropout": "network__dropout",
    }

    network: Annotated[Any, NETWORK] = None
    pretraining: Annotated[Pretraining | None, settings(Pretraining)] = None

    def _rows_to_train_on(self, fit: Fit) -> Rows:
        from deccs.data.images import image_shape_of

        network = self.settings_for("network")
        if isinstance(fit.scaler, TableScaler):
            return fit.rows(self.device)
        # Whoever brings modules of their own decides what they are trained with.
        given = network.image_shape if isinstance(network, Network) else None
        return fit.rows(self.device, image_shape_of(fit.source, given))

    def _start(self, fit: Fit, rows: Rows) -> Start:
        """The pretrained autoencoder the method begins with; untrained where one cluster is asked for."""
        from deccs.training.start import starting_autoencoder

        pretraining = self.settings_for("pretraining")
        return starting_autoencoder(
            rows,
            self.settings_for("network"),
            without_steps(pretraining) if self.n_clusters == 1 else pretraining,
            fit.root,
            fit.listeners,
            fit.checkpoint,
        )
