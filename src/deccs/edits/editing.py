"""Editing a fitted model: each edit gives a new model, whose answers, names, confidence and files follow."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar, Self

import numpy as np

from deccs.answer import Answer
from deccs.checks import check_fitted, is_whole, whole
from deccs.counting.drawn import Drawn
from deccs.counting.records import ClusterStability
from deccs.counting.trust import Trust
from deccs.data.source import SelectedRows
from deccs.data.table_scaling import evenly
from deccs.edits.documents import as_dict
from deccs.edits.splitting import rows_of, split_of
from deccs.edits.steps import (
    AnyStep,
    Drop,
    Merge,
    Pin,
    Rename,
    Renumber,
    Split,
    Step,
    apply,
    are_pinned,
    live_numbers,
    lookup_of,
    n_numbers,
)
from deccs.labels import NOISE
from deccs.storage import Maybe, reals, stored, wholes

STATE_OF_EDITS = ("_edits", "_renumber", "_unedited", "_n_learned_clusters")  # attributes
MOST_LETTERS = 100  # of a name that a user gives to a cluster
MOST_EDITS = 10_000  # in a file
MOST_NUMBERS = 10_000  # of clusters, in a file
MOST_LOOKED_AT = 20_000  # rows of a cluster that is split


@stored
@dataclass(frozen=True, eq=False)
class Unedited:
    """What edits have changed of a model, as it was before the first one."""

    labels: Annotated[np.ndarray, wholes("n_points")]
    n_clusters: Annotated[int, whole(at_least=1)]
    names: tuple[str, ...] | None
    trust: Trust | None
    drawn: Drawn | None
    stability: list[ClusterStability] | None

    @classmethod
    def of(cls, model: Any) -> Self:
        return cls(
            model.labels_,
            n_clusters_of(model),
            getattr(model, "cluster_names_", None),
            getattr(model, "trust_", None),
            getattr(model, "_drawn", None),
            getattr(model, "_stability", None),
        )

    def put_into(self, model: Any) -> None:
        """Give a model what it had."""
        model.labels_, model.n_clusters_ = self.labels, self.n_clusters
        if hasattr(model, "trust_"):
            model.trust_ = self.trust
        names = {"cluster_names_": self.names, "_drawn": self.drawn, "_stability": self.stability}
        for name, value in names.items():
            model.__dict__.pop(name, None)
            if value is not None:
                setattr(model, name, value)


class Editable:
    """Merge, split, pin, drop and rename clusters; undo. For all estimators."""

    LEARNED: ClassVar[Mapping[str, Any]] = {
        "embedding_": Maybe(reals("n_kept", "n_latent")),
        "_edits": Maybe(tuple[AnyStep, ...]),
        "_renumber": Maybe(Renumber),
        "_unedited": Maybe(Unedited),
        "_n_learned_clusters": Maybe(Annotated[int, whole(at_least=1)]),
    }

    # What edits change, and what they need to be undone.
    labels_: np.ndarray
    n_clusters_: int
    trust_: Any
    _edits: tuple[AnyStep, ...]
    _unedited: Unedited
    _n_learned_clusters: int

    def merge(self, clusters: Iterable[int]) -> Self:
        """A model in which these clusters are one. It keeps the first number; the others are retired."""
        return self._with(Merge(tuple(whole_numbers(clusters))))

    def split(self, cluster: int, into: int = 2, *, rows: Any = None, X: Any = None) -> Self:
        """A model in which a cluster is split.

        Parameters
        ----------
        cluster : int
        into : int, default=2
            The number of parts. The largest keeps the number of the cluster, the others get new ones.
        rows : row numbers of the fit, or a mask
            Rows of the cluster that shall be a part of their own, instead of what plain clusterers find.
        X : the data of the fit
            Needed where the model does not keep the representation of its rows (``embedding_``).

        Notes
        -----
        The parts are told apart by a linear classifier of the representation, so new rows are labeled
        alike. Rows that it cannot tell apart do not follow ``rows``.
        """
        self._check_live(cluster)
        if not is_whole(into) or into < 2:
            raise ValueError(f"into must be a whole number from 2 on, got {into!r}.")
        if rows is not None and into != 2:
            raise ValueError(f"rows make two parts, so into must be 2, got {into!r}.")
        inside = np.flatnonzero(self.labels_ == cluster)
        chosen = None
        if rows is not None:
            wanted = rows_of(rows, len(self.labels_))
            inside = np.union1d(evenly_from(inside), np.intersect1d(inside, wanted))
            chosen = np.isin(inside, wanted)
            if not 0 < chosen.sum() < len(inside):
                raise ValueError(
                    f"{chosen.sum():,} of the {len(inside):,} rows of cluster {cluster} are among the "
                    f"{len(wanted):,} rows given. Give some of its rows, but not all."
                )
        else:
            inside = evenly_from(inside)
        Z = self._points(inside, X)
        weight, bias = split_of(Z, int(into), chosen, seed=len(self.edits_))
        first = n_clusters_of(self)
        numbers = (int(cluster), *range(first, first + len(bias) - 1))
        return self._with(Split(int(cluster), numbers, weight, bias), X)

    def pin(self, rows: Any, cluster: int, X: Any = None) -> Self:
        """A model in which rows of the fit, given by number or as a mask, belong to a cluster.

        Rows with the same representation do, too. ``X`` is as for :meth:`split`.
        """
        points = self._points(rows_of(rows, len(self.labels_)), X)
        return self._with(Pin(whole_number(cluster), points.astype(np.float64)), X)

    def drop(self, cluster: int) -> Self:
        """A model in which a cluster is none: its rows get -1."""
        return self._with(Drop(whole_number(cluster)))

    def rename(self, cluster: int, name: str) -> Self:
        """A model in which a cluster has another name."""
        self._check_live(cluster)
        name = " ".join(str(name).split())
        if not name or len(name) > MOST_LETTERS or not name.isprintable():
            raise ValueError(
                f"A name has 1 to {MOST_LETTERS} letters in one line, got {name!r:.100}."
            )
        for other in self.clusters_:
            if other != cluster and self._names()[other] == name:
                raise ValueError(f"Cluster {other} is named {name!r} already.")
        return self._with(Rename(int(cluster), name))

    def undo(self, X: Any = None) -> Self:
        """A model without the last edit. ``X`` is as for :meth:`split`."""
        if not self.edits_:
            raise ValueError("There is no edit to undo.")
        return self._replayed(self._edits[:-1], X)

    def edit(self, edits: Sequence[Mapping[str, Any]], X: Any = None) -> Self:
        """A model with several edits, such as those of a report: see :mod:`deccs.edits.documents`."""
        model = self
        for number, one in enumerate(edits, start=1):
            try:
                model = model._with_one(one, X)
            except ValueError as error:
                raise ValueError(
                    f"Edit {number} of {len(edits)} cannot be made: {error}"
                ) from error
        return model

    @property
    def edits_(self) -> tuple[dict[str, Any], ...]:
        """The history: what was edited, in order."""
        return tuple(as_dict(step) for step in getattr(self, "_edits", ()))

    @property
    def clusters_(self) -> tuple[int, ...]:
        """The numbers that clusters have. Without edits these are 0 to ``n_clusters_`` - 1."""
        check_fitted(self)
        return tuple(sorted(live_numbers(self._steps, self._n_found)))

    @property
    def _steps(self) -> tuple[Step, ...]:
        """All that happens to the numbers a method has learned."""
        renumber = getattr(self, "_renumber", None)
        edits: tuple[Step, ...] = getattr(self, "_edits", ())
        return edits if renumber is None else (renumber, *edits)

    @property
    def _n_found(self) -> int:
        """How many clusters the method has learned, before any step."""
        return int(getattr(self, "_n_learned_clusters", n_clusters_of(self)))

    def _as_edited(self, answer: Answer) -> Answer:
        """What a method has learned of some rows, after all steps."""
        if not self._steps:
            return answer
        edited = apply(self._steps, answer.labels, answer.Z, answer.probabilities)
        confidence = answer.confidence
        if edited.probabilities is not None and confidence is not None:
            rows = np.arange(len(edited.labels))
            confidence = edited.probabilities[rows, edited.labels]
        members = None if answer.members is None else self._renumbered(answer.members)
        return self._settled(
            replace(
                answer,
                labels=edited.labels,
                probabilities=edited.probabilities,
                confidence=confidence,
                members=members,
            )
        )

    def _settled(self, answer: Answer) -> Answer:
        """The answer with what is known of confidence: a row is pinned, or in no cluster."""
        if answer.confidence is None or not self._steps:
            return answer
        confidence = np.where(answer.labels == NOISE, 0.0, answer.confidence)
        confidence = np.where(are_pinned(self._steps, answer.Z), 1.0, confidence)
        return replace(answer, confidence=confidence)

    def _renumbered(self, members: np.ndarray) -> np.ndarray:
        """Labels of members in the numbers after all steps; clusters of their own get numbers behind them."""
        table = lookup_of(self._steps, self._n_found)
        n_beyond = max(0, int(members.max(initial=0)) + 1 - self._n_found)
        beyond = n_clusters_of(self) + np.arange(n_beyond)
        return np.asarray(np.concatenate([table[:-1], beyond, [NOISE]])[members])

    def _edited_blocks(
        self, learned: Callable[[], Iterable[np.ndarray]], answers: Callable[[], Iterable[Answer]]
    ) -> Iterable[np.ndarray]:
        """Labels after all steps: most steps look numbers up, some must know where rows are."""
        if any(step.NEEDS_POINTS for step in self._steps):
            return (answer.labels for answer in answers())
        if not self._steps:
            return learned()
        table = lookup_of(self._steps, self._n_found)
        return (table[labels] for labels in learned())

    def _with_one(self, one: Mapping[str, Any], X: Any) -> Self:
        """The model with one edit, as in a file of edits."""
        given = {key: value for key, value in one.items() if key != "edit"}
        if one["edit"] in ("split", "pin"):
            given["X"] = X
        edit: Callable[..., Self] = getattr(self, one["edit"])
        return edit(**given)

    def _with(self, step: AnyStep, X: Any = None) -> Self:
        """A copy of the model with one more edit."""
        check_fitted(self)
        model = copy.copy(self)
        if not self.edits_:
            model._unedited = Unedited.of(self)
            model._n_learned_clusters = self._n_found
        model._make(step, X)
        return model

    def _replayed(self, steps: Sequence[AnyStep], X: Any) -> Self:
        """A copy of the model as it was before all edits, with some of them made again."""
        model = copy.copy(self)
        self._unedited.put_into(model)
        model._edits = ()
        for step in steps:
            model._make(step, X)
        if not steps:
            del model._edits, model._unedited
            if not hasattr(model, "_renumber"):
                del model._n_learned_clusters
        return model

    def _make(self, step: AnyStep, X: Any) -> None:
        """Make an edit, in place."""
        step.check(frozenset(self.clusters_))
        before, names = n_clusters_of(self), self._names()
        if step.NEEDS_POINTS:
            self.labels_ = self._labels_after(step, X)
        else:
            self.labels_ = step.lookup(before)[self.labels_]
        self._edits = (*getattr(self, "_edits", ()), step)
        self.n_clusters_ = step.n_numbers(before)
        if hasattr(self, "cluster_names_") or isinstance(step, Rename):
            self.cluster_names_ = names_after(names, step, before)
        self._judge_again(step, before)

    def _labels_after(self, step: Step, X: Any) -> np.ndarray:
        """The labels of all rows of the fit after a step that must know where they are."""
        points = getattr(self, "embedding_", None)
        if points is not None:
            return step.parts(self.labels_, points)[0]
        answers = self._answers(self._checked(self._of_fit(X)))  # type: ignore[attr-defined]
        return np.concatenate([step.parts(one.labels, one.Z)[0] for one in answers])

    def _points(self, rows: np.ndarray, X: Any) -> np.ndarray:
        """The representation of some rows of the fit: (n_chosen, n_latent)."""
        points: np.ndarray | None = getattr(self, "embedding_", None)
        if points is not None:
            return points[rows]
        source = self._checked(self._of_fit(X))  # type: ignore[attr-defined]
        answers = self._learned_answers(SelectedRows(source, rows))  # type: ignore[attr-defined]
        return np.concatenate([answer.Z for answer in answers])

    def _of_fit(self, X: Any) -> Any:
        """X, if it can be the data of the fit."""
        if X is None:
            raise ValueError(
                f"This {type(self).__name__} does not keep the representation of its rows. Give the "
                "data of the fit as X."
            )
        n_rows = X.shape[0] if hasattr(X, "shape") else len(X)
        if n_rows != len(self.labels_):
            raise ValueError(
                f"X must be the data of the fit, with {len(self.labels_):,} rows; got {n_rows:,}."
            )
        return X

    def _judge_again(self, step: Step, before: int) -> None:
        """How real the clusters are after an edit, from the same sample of rows."""
        if isinstance(step, Rename):
            return
        trust: Trust | None = getattr(self, "trust_", None)
        drawn: Drawn | None = trust.drawn if trust else getattr(self, "_drawn", None)
        if drawn is None:
            return
        if drawn.rows is not None:
            learned = getattr(self, "learning_rows_", np.arange(len(self.labels_)))
            labels = self.labels_[learned[drawn.rows]]
        elif step.NEEDS_POINTS:
            raise ValueError(
                "This model was saved by an earlier deccs, and cannot be split. Fit it again."
            )
        else:
            labels = step.lookup(before)[drawn.labels]
        drawn = replace(drawn, labels=labels)
        if trust is None:
            self._drawn = drawn
            self.__dict__.pop("_stability", None)  # found again when somebody asks
            return
        if isinstance(step, Merge | Split):
            # Imported here: an edited model answers without what an edit needs.
            from deccs.counting.cluster_stability import stability_of
            from deccs.counting.judging import trust_in

            self._stability = stability_of(drawn)
            self.trust_ = trust_in(
                drawn,
                n_clusters_of(self),
                trust.components,
                trust.signs,
                self._stability,
                trust.untrained,
            )
        else:  # the clusters that are left are as stable as they were
            live = self.clusters_
            known = getattr(self, "_stability", [])
            self._stability = [each for each in known if each.cluster in live]
            self.trust_ = replace(trust, drawn=drawn)

    def _names(self) -> tuple[str, ...]:
        """A name for each number; "cluster 3" where columns have given none."""
        numbered = tuple(f"cluster {number}" for number in range(n_clusters_of(self)))
        return tuple(getattr(self, "cluster_names_", numbered))

    def _check_live(self, cluster: Any) -> None:
        Rename(whole_number(cluster), "").check(frozenset(self.clusters_))

    def _check_edits(self) -> None:
        """Raise a ValueError where the history of a loaded model does not fit the rest of it."""
        steps, n = getattr(self, "_edits", ()), self._n_found
        if not self._steps:
            return
        if len(steps) > MOST_EDITS or n_numbers(self._steps, n) != n_clusters_of(self):
            raise ValueError("_edits must lead to n_clusters_ clusters, in 10,000 steps at most")
        if n_clusters_of(self) > MOST_NUMBERS:
            raise ValueError(f"its clusters have more than {MOST_NUMBERS:,} numbers")
        renumber: Renumber | None = getattr(self, "_renumber", None)
        if renumber is not None and len(renumber.numbers) < n:
            raise ValueError("_renumber must have a number for each learned cluster")
        if bool(steps) != hasattr(self, "_unedited"):
            raise ValueError("_unedited must be there if something was edited")
        done: tuple[Step, ...] = () if renumber is None else (renumber,)
        for step in steps:
            before = n_numbers(done, n)
            step.check(live_numbers(done, n))
            if isinstance(step, Split) and step.numbers[1:] != tuple(
                range(before, before + len(step.numbers) - 1)
            ):
                raise ValueError("the parts of a Split must have the next numbers")
            done = (*done, step)


def evenly_from(rows: np.ndarray) -> np.ndarray:
    """At most 20,000 of some row numbers, at even distances."""
    return np.asarray(rows[evenly(len(rows), MOST_LOOKED_AT)])


def n_clusters_of(model: Any) -> int:
    """One more than the highest number of a cluster; older models do not say it."""
    known = getattr(model, "n_clusters_", None)
    return int(model.labels_.max()) + 1 if known is None else int(known)


def names_after(names: Sequence[str], step: Step, before: int) -> tuple[str, ...]:
    """The name of each number after an edit.

    >>> names_after(("young", "old", "rich"), Merge((2, 0)), 3)
    ('cluster 0, merged into 2', 'old', 'rich / young')
    >>> names_after(("young", "old"), Drop(1), 2)
    ('young', 'cluster 1, dropped')
    """
    after = list(names)
    if isinstance(step, Rename):
        after[step.cluster] = step.name
    elif isinstance(step, Merge):
        first, *others = step.clusters
        joined = " / ".join(names[cluster] for cluster in step.clusters)
        if len(joined) <= MOST_LETTERS and not joined.startswith("cluster "):
            after[first] = joined
        for other in others:
            after[other] = f"cluster {other}, merged into {first}"
    elif isinstance(step, Drop):
        after[step.cluster] = f"cluster {step.cluster}, dropped"
    elif isinstance(step, Split):
        whole_name = names[step.cluster]
        after += [f"cluster {number}" for number in range(before, step.n_numbers(before))]
        if whole_name != f"cluster {step.cluster}":
            for place, number in enumerate(step.numbers, start=1):
                after[number] = f"{whole_name[: MOST_LETTERS - 10]}, part {place}"
    return unique(after)


def unique(names: Sequence[str]) -> tuple[str, ...]:
    """The same names; one that is there already gets a number.

    >>> unique(["a", "b", "a"])
    ('a', 'b', 'a (2)')
    """
    found: list[str] = []
    for name in names:
        free, number = name, 2
        while free in found:
            free, number = f"{name} ({number})", number + 1
        found.append(free)
    return tuple(found)


def whole_number(cluster: Any) -> int:
    """A number of a cluster as a plain int."""
    if not is_whole(cluster):
        raise ValueError(f"A cluster is given by its number, got {cluster!r:.100}.")
    return int(cluster)


def whole_numbers(clusters: Any) -> list[int]:
    try:
        given = list(clusters)
    except TypeError as error:
        raise ValueError(f"Give the numbers of several clusters, got {clusters!r:.100}.") from error
    return [whole_number(cluster) for cluster in given]
