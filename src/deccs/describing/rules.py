"""Rules in words that find the rows of a cluster: "income > 52,000 and city is Berlin or Bonn"."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import TYPE_CHECKING

import numpy as np

from deccs.describing.columns import Described
from deccs.describing.conditions import (
    Condition,
    OneOf,
    anything,
    date_between,
    limit_between,
)
from deccs.describing.differences import Difference, differences

if TYPE_CHECKING:
    from sklearn.tree import DecisionTreeClassifier

MOST_ROWS = 20_000  # that a tree is grown on: half from the cluster, if it has as many
MOST_COLUMNS = 20  # that a tree sees: those in which the cluster differs most
MOST_LEVELS = 30  # of a column that are told apart; all others go together
MOST_CONDITIONS, MOST_RULES = 3, 3
LEAST_PRECISION = 0.5
LEAST_GAIN = 0.25  # of the way from the cluster's share of all rows to 1, or the rule says nothing
LEAST_EVIDENCE = 10.0  # in nats; a tree tries so many conditions that chance alone reaches 5
LEAST_ADDED = 0.2  # share of the cluster that a rule must find beyond those before
SIMPLER = 0.02  # of the score that one condition less is worth


@dataclass(frozen=True, eq=False)
class Rule:
    """Conditions that all must hold, and how well they find the cluster, counted over all rows."""

    conditions: tuple[Condition, ...]
    precision: float  # share of the rows that meet it which are in the cluster
    coverage: float  # share of the cluster's rows that meet it
    n: int  # rows that meet it

    @property
    def holds(self) -> np.ndarray:
        """(n_rows,) mask of the rows that meet it."""
        return reduce(np.logical_and, (each.holds for each in self.conditions))

    @property
    def score(self) -> float:
        """F0.5 of precision and coverage, in which precision counts double; less for each condition.

        "Or missing" is half a condition.

        >>> Rule((), precision=0.8, coverage=0.5, n=10).score
        0.7142857142857143
        """
        if not self.precision * self.coverage:
            return 0.0
        f = 1.25 * self.precision * self.coverage / (0.25 * self.precision + self.coverage)
        n_words = len(self.conditions) + sum(each.or_missing for each in self.conditions) / 2
        return f - SIMPLER * n_words

    def __str__(self) -> str:
        if len(self.conditions) == 1:
            return str(self.conditions[0])
        texts = [
            f"({each})" if each.or_missing and not each.is_empty else str(each)
            for each in self.conditions
        ]
        return " and ".join(texts)


def counted(conditions: Sequence[Condition], inside: np.ndarray) -> Rule:
    """A rule with its precision and coverage; ``inside`` (n_rows,) are the cluster's rows."""
    rule = Rule(tuple(conditions), 0.0, 0.0, 0)
    met = rule.holds
    n, found = int(met.sum()), int((met & inside).sum())
    return Rule(rule.conditions, found / max(n, 1), found / max(int(inside.sum()), 1), n)


def rules(
    columns: Sequence[Described],
    labels: np.ndarray,
    n_clusters: int,
    random_state: int = 0,
    found: Sequence[Sequence[Difference]] | None = None,
) -> list[list[Rule]]:
    """Per cluster up to three rules, the best first; none where no rule is good.

    Each comes from a decision tree of depth 3 for one cluster against the rest. The tree sees the 20
    columns in which the cluster differs most and at most 20,000 rows; what is said of a rule is
    counted over all rows. ``found`` are the differences, if you have them already.

    >>> income = Described("income", "number", np.arange(100.0), whole=True)
    >>> _, (rule,) = rules([income], np.repeat([0, 1], [60, 40]), 2)
    >>> str(rule), rule.precision, rule.coverage, rule.n
    ('income > 59', 1.0, 1.0, 40)
    """
    labels = np.asarray(labels)
    if found is None:
        found = differences(columns, labels, n_clusters)
    return [
        rules_of(labels == cluster, most_different(line), [random_state, cluster])
        for cluster, line in enumerate(found)
    ]


def most_different(line: Sequence[Difference]) -> list[Described]:
    """The first columns of a list of differences, each once."""
    return list(dict.fromkeys(each.column for each in line))[:MOST_COLUMNS]


def rules_of(inside: np.ndarray, columns: Sequence[Described], seed: list[int]) -> list[Rule]:
    """Rules for the rows of a mask against all others."""
    n_inside = int(inside.sum())
    if not columns or n_inside in (0, len(inside)):
        return []
    paths = candidate_paths(inside, columns, drawn(inside, seed))
    candidates = [simplified(counted(path, inside), inside) for path in paths]
    base = n_inside / len(inside)
    least = max(LEAST_PRECISION, base + LEAST_GAIN * (1 - base))
    good = [
        rule
        for rule in candidates
        if rule.precision >= least and evidence(rule.precision, base, rule.n) >= LEAST_EVIDENCE
    ]
    chosen: list[Rule] = []
    covered = np.zeros(len(inside), dtype=bool)
    for rule in sorted(good, key=lambda each: (-round(each.score, 9), str(each))):
        # What it adds must be good, too: the first rule with one condition less adds little else.
        added = rule.holds & ~covered
        n_right = (added & inside).sum()
        if n_right >= max(LEAST_ADDED * n_inside, least * added.sum()):
            chosen.append(rule)
            covered |= added
    return chosen[:MOST_RULES]


def evidence(precision: float, base: float, n: int) -> float:
    """n times the divergence of a precision from the share of the cluster among all rows.

    Drawing n rows at random does as well with a chance of at most exp(-evidence) (Chernoff's bound).

    >>> evidence(1.0, 0.5, 20)  # 20 times a coin: 2^-20
    13.862943611198906
    """
    from scipy.special import rel_entr  # loaded when rules are looked for: predictions need none

    return n * float(rel_entr(precision, base) + rel_entr(1 - precision, 1 - base))


def simplified(rule: Rule, inside: np.ndarray) -> Rule:
    """The rule without the conditions, and without the "or missing", that are not worth their words."""
    for place in reversed(range(len(rule.conditions))):
        before, after = rule.conditions[:place], rule.conditions[place + 1 :]
        condition = rule.conditions[place]
        fewer = [(*before, *after)] if before or after else []
        if condition.or_missing and not condition.is_empty:
            fewer.append((*before, replace(condition, or_missing=False), *after))
        options = [rule, *(counted(conditions, inside) for conditions in fewer)]
        rule = max(options, key=lambda each: round(each.score, 9))
    return rule


# ---- from a tree to conditions


def drawn(inside: np.ndarray, seed: list[int]) -> np.ndarray:
    """Row numbers for a tree: all, or half of them from the cluster, so that a small one is seen."""
    if len(inside) <= MOST_ROWS:
        return np.arange(len(inside))
    rng = np.random.default_rng(seed)
    ours, others = np.flatnonzero(inside), np.flatnonzero(~inside)
    n_ours = min(len(ours), max(MOST_ROWS // 2, MOST_ROWS - len(others)))
    n_others = min(len(others), MOST_ROWS - n_ours)
    picked = [rng.choice(ours, n_ours, replace=False), rng.choice(others, n_others, replace=False)]
    return np.sort(np.concatenate(picked))


def places_of(column: Described, rows: np.ndarray, inside: np.ndarray) -> np.ndarray:
    """(n_rows,) place of each value among all values of these rows, NaN for a gap.

    Levels are ordered by how much of each is in the cluster: the best way to split them in two is
    then a threshold, among all sets of levels (Breiman et al. 1984, theorem 4.5). Trees compute in
    single precision, which keeps the order of any numbers only if they see places.
    """
    values = column.values[rows]
    known = ~np.isnan(values)
    places = np.full(len(values), np.nan)
    if not known.any():
        return places
    if not column.has_levels or column.kind == "ordered":
        places[known] = np.unique(values[known], return_inverse=True)[1]
        return places
    codes = values[known].astype(np.int64)
    counts = np.bincount(codes, minlength=len(column.levels))
    ours = np.bincount(codes[inside[rows][known]], minlength=len(column.levels))
    rare = np.argsort(-counts, kind="stable")[MOST_LEVELS:]
    ours[rare], counts[rare] = ours[rare].sum(), counts[rare].sum()
    share = ours / np.maximum(counts, 1)
    places[known] = np.unique(share, return_inverse=True)[1].reshape(-1)[codes]
    return places


def candidate_paths(
    inside: np.ndarray, columns: Sequence[Described], rows: np.ndarray
) -> list[list[Condition]]:
    """The conditions on the way to every node of a tree, those of one column in one."""
    X = np.column_stack([places_of(column, rows, inside) for column in columns])
    # In an order of its own, a tree does not depend on the order of the rows.
    order = np.lexsort((inside[rows], *X.T))
    rows, X = rows[order], X[order]
    n_inside = int(inside[rows].sum())
    leaf = max(min(5, n_inside // 2), n_inside // 10, 1)
    from sklearn.tree import DecisionTreeClassifier

    tree = DecisionTreeClassifier(
        max_depth=MOST_CONDITIONS, min_samples_leaf=leaf, class_weight="balanced", random_state=0
    ).fit(X, inside[rows])
    grown = Grown(tree, X, rows, columns)
    return list(grown.paths(0, {}))


class Grown:
    """A tree of scikit-learn as conditions on columns."""

    def __init__(
        self,
        tree: DecisionTreeClassifier,
        X: np.ndarray,
        rows: np.ndarray,
        columns: Sequence[Described],
    ) -> None:
        self.nodes, self.X, self.rows, self.columns = tree.tree_, X, rows, columns
        self.members = tree.decision_path(X).tocsc()  # (n_rows, n_nodes)

    def paths(self, node: int, before: dict[int, Condition]) -> Iterator[list[Condition]]:
        """The conditions of all nodes below a node that is reached by those before."""
        if self.nodes.children_left[node] < 0:
            return
        place = self.nodes.feature[node]
        here = before.get(place, anything(self.columns[place]))
        left, right = self.split(node, place, here)
        for child, condition in (
            (self.nodes.children_left[node], left),
            (self.nodes.children_right[node], right),
        ):
            conditions = {**before, place: condition}
            needed = [each for each in conditions.values() if not each.is_free]
            if needed:
                yield needed
            yield from self.paths(child, conditions)

    def split(self, node: int, place: int, here: Condition) -> tuple[Condition, Condition]:
        """Both sides of a node, with its gaps on the side where the tree puts them.

        A column without gaps here says nothing of them, so they are on no side.
        """
        reached = self.members.indices[self.members.indptr[node] : self.members.indptr[node + 1]]
        X, column = self.X[reached, place], self.columns[place]
        has_gaps = bool(np.isnan(X).any())
        gaps_left = has_gaps and bool(self.nodes.missing_go_to_left[node])
        gaps_right = has_gaps and not gaps_left
        is_left = self.nodes.threshold[node] >= X
        is_right = self.nodes.threshold[node] < X
        values = column.values[self.rows[reached]]
        if isinstance(here, OneOf):
            # By their places among all rows: few levels may be left here, and rare ones nowhere.
            right = self.X[:, place] > self.nodes.threshold[node]
            codes = frozenset(column.values[self.rows[right]].astype(int).tolist())
            return here.among(here.codes - codes, gaps_left), here.among(codes, gaps_right)
        if not is_left.any():
            limit = -math.inf
        elif not is_right.any():
            limit = math.inf
        else:
            between = date_between if column.kind == "date" else limit_between
            limit = between(float(values[is_left].max()), float(values[is_right].min()))
        return here.up_to(limit, gaps_left), here.beyond(limit, gaps_right)
