"""What an earlier model says of new rows, and which clusters a fit of them should have."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from deccs.data.inputs import as_source
from deccs.data.learning_rows import needs_survey, survey
from deccs.data.sampling import draw_rows
from deccs.data.source import RowSource, SelectedRows, each_block
from deccs.edits.editing import unique
from deccs.edits.steps import Renumber
from deccs.group.group import Group
from deccs.inference.nearest import NearestInSample
from deccs.labels import NOISE, canonical
from deccs.refit.changes import Pooled, gone_clusters, spread_groups
from deccs.refit.matching import match_clusters
from deccs.seeds import generator_for


@dataclass(frozen=True, eq=False)
class Earlier:
    """The clusters of an earlier model in new rows."""

    labels: np.ndarray  # (n_rows,) its numbers, without clusters that are gone; -1 for no cluster
    groups: np.ndarray  # (n_rows,) which new cluster a row is in; -1 for none
    live: tuple[int, ...]  # the clusters it had
    gone: tuple[int, ...]
    n_before: int  # numbers it has ever given
    names: tuple[str, ...] | None

    @property
    def n_clusters(self) -> int:
        """How many clusters there are now."""
        return max(1, len(self.live) - len(self.gone) + self.n_born)

    @property
    def n_born(self) -> int:
        return int(self.groups.max(initial=NOISE)) + 1

    @property
    def partition(self) -> np.ndarray:
        """(n_rows,) earlier numbers, and numbers behind them for new clusters."""
        return np.where(self.groups == NOISE, self.labels, self.n_before + self.groups)

    def partition_of(self, sample: np.ndarray, points: np.ndarray) -> np.ndarray:
        """The partition of a sample, numbered without gaps; rows in no cluster join their neighbors.

        sample is (n_sample,), row numbers, points is (n_sample, n_components).
        """
        partition = self.partition[sample]
        known = partition != NOISE
        if not known.any() or known.all():
            return canonical(partition)
        return canonical(NearestInSample(points[known], partition[known])(points))

    def renumber(self, labels: np.ndarray, n_learned: int) -> Renumber:
        """The numbers that clusters of a fit of these rows get: labels are (n_rows,)."""
        known = np.where(self.groups == NOISE, self.labels, NOISE)
        return match_clusters(labels, known, n_learned, self.n_before)

    def named(self, names: Sequence[str] | None) -> tuple[str, ...] | None:
        """The names of all numbers: earlier ones stay, ``names`` are those of the new fit."""
        if names is None or self.names is None:
            return None if names is None else tuple(names)
        found = list(names)
        found[: self.n_before] = self.names[: self.n_before]
        return unique(found)


def earlier_model(like: Any) -> Any:
    """The fitted model that a fit should be like: as given, or from its file or run folder."""
    if not isinstance(like, str | PathLike):
        check_is_fitted(like, "labels_")
        return like
    from deccs.storage import load

    inside = Path(like) / "model"
    model = load(inside if inside.is_dir() else like)
    if type(model).__name__ != "DECCS":
        raise ValueError(f"like={str(like)!r} is a {type(model).__name__}; it must be a DECCS.")
    return model


def source_like(model: Any, earlier: Any, X: Any, group: Group) -> RowSource:
    """The rows of a fit, with columns that are coded and scaled as in the earlier one."""
    for name in ("n_features_in_", "feature_names_in_", "coding_", "scaler_"):
        model.__dict__.pop(name, None)
        if hasattr(earlier, name):
            setattr(model, name, getattr(earlier, name))
    source = as_source(model, X, reset=False)
    if needs_survey(source):
        source.survey = survey(source, group)  # type: ignore[attr-defined]
    return source


def look_back(model: Any, source: RowSource, root: int) -> Earlier:
    """The clusters of an earlier model in the rows of a source."""
    labels = np.concatenate(list(model._label_blocks(source)))
    groups, gone = changes(model, source, root)
    labels = np.where(np.isin(labels, gone), NOISE, labels)
    names = getattr(model, "cluster_names_", None)
    return Earlier(labels, groups, model.clusters_, gone, int(model.n_clusters_), names)


def changes(model: Any, source: RowSource, root: int) -> tuple[np.ndarray, tuple[int, ...]]:
    """The group of each row that makes a new cluster, (n_rows,), and the clusters that are gone."""
    n_rows = source.shape[0]
    trust = getattr(model, "trust_", None)
    if trust is None:  # of a single cluster, or a model that keeps no rows to compare with
        return np.full(n_rows, NOISE), ()
    drawn = trust.drawn

    def seen(rows: RowSource) -> np.ndarray:
        blocks = (trust.components(model.scaler_(block)) for _, block in each_block(rows))
        return np.concatenate(list(blocks))

    sample = draw_rows(n_rows, len(drawn.labels), generator_for(root, "earlier")).numpy()
    new = seen(SelectedRows(source, sample))  # (n_sample, n_components)
    some = draw_rows(len(drawn.labels), len(new), generator_for(root, "pooled")).numpy()
    of_earlier, of_new = Pooled(drawn.points[some], new).alone()
    gone = gone_clusters(of_earlier, drawn.labels[some])
    groups = spread_groups(of_new, new)
    if (groups == NOISE).all():
        return np.full(n_rows, NOISE), gone
    nearest = NearestInSample(new, groups)
    return np.concatenate(
        [nearest(trust.components(model.scaler_(block))) for _, block in each_block(source)]
    ), gone
