"""All that is said of the clusters of a table, and the same as plain text."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from deccs.describing import words
from deccs.describing.columns import Described
from deccs.describing.differences import Difference, differences
from deccs.describing.effects import SMALL, sizes_of
from deccs.describing.names import cluster_names
from deccs.describing.rules import Rule, rules

WIDTH = 100  # of a line
MOST_DIFFERENCES = 6
NO_RULE = "no simple rule finds this cluster"


@dataclass(frozen=True, eq=False)
class Description:
    """What is said of the clusters, each list by cluster."""

    names: tuple[str, ...]
    rules: list[list[Rule]]
    differences: list[list[Difference]]  # most different first
    sizes: np.ndarray  # (n_clusters,)

    def __str__(self) -> str:
        return as_text(self.names, self.rules, self.differences, self.sizes.tolist())


def describe(
    columns: Sequence[Described], labels: np.ndarray, n_clusters: int, random_state: int = 0
) -> Description:
    """Names, rules and differences of the clusters of a table, from one look at its columns."""
    labels = np.asarray(labels)
    found = differences(columns, labels, n_clusters)
    return Description(
        cluster_names(columns, labels, n_clusters, found),
        rules(columns, labels, n_clusters, random_state, found),
        found,
        sizes_of(labels, n_clusters),
    )


def worth_telling(line: Sequence[Difference], most: int = MOST_DIFFERENCES) -> list[Difference]:
    """The largest differences of a cluster, those that are at least small."""
    return [each for each in line if each.effect >= SMALL][:most]


def as_text(
    names: Sequence[str],
    rules: Sequence[Sequence[Rule]],
    differences: Sequence[Sequence[Difference]],
    sizes: Sequence[int],
) -> str:
    """A paragraph for each cluster: name and size, rules, differences."""
    paragraphs = [
        paragraph(cluster, *parts)
        for cluster, parts in enumerate(zip(names, rules, differences, sizes, strict=True))
    ]
    return "\n\n".join(paragraphs) + "\n"


def paragraph(
    cluster: int, name: str, rules: Sequence[Rule], differences: Sequence[Difference], size: int
) -> str:
    """One cluster.

    >>> print(paragraph(3, "high income", [], [], 1))
    3 · high income: 1 row
      Rule: no simple rule finds this cluster
      Differs in: nothing
    """
    lines = [f"{numbered(cluster, name)}: {n_rows(size)}"]
    if not size:
        return lines[0]
    lines += [f"  Rule: {rule_sentence(rule)}" for rule in rules] or [f"  Rule: {NO_RULE}"]
    told = "; ".join(str(each) for each in worth_telling(differences)) or "nothing"
    lines.append(f"  Differs in: {told}")
    return "\n".join(wrapped(line) for line in lines)


def with_names(text: str, names: Sequence[str]) -> str:
    """The text of :func:`as_text` with other names.

    >>> print(with_names("0 · old: 2 rows\\n  Rule: x > 1", ["new"]))
    0 · new: 2 rows
      Rule: x > 1
    """
    paragraphs = text.split("\n\n")
    for cluster, name in enumerate(names[: len(paragraphs)]):
        head = re.match(r".*?(: [\d,]+\s+rows?)$", paragraphs[cluster], re.DOTALL | re.MULTILINE)
        if head:
            size = " ".join(head[1].split())
            first = wrapped(f"{numbered(cluster, name)}{size}")
            paragraphs[cluster] = first + paragraphs[cluster][head.end() :]
    return "\n\n".join(paragraphs)


def wrapped(line: str) -> str:
    """Lines of at most 100 characters, and none that begins with a percent sign."""
    kept = line.replace(" %", "\u00a0%")
    filled = textwrap.fill(
        kept, WIDTH, subsequent_indent="    ", break_long_words=False, break_on_hyphens=False
    )
    return filled.replace("\u00a0%", " %")


def numbered(cluster: int, name: str) -> str:
    """A cluster by its number and name.

    >>> numbered(3, "high income, few orders"), numbered(3, "cluster 3")
    ('3 · high income, few orders', 'cluster 3')
    """
    return name if name == f"cluster {cluster}" else f"{cluster} · {name}"


def n_rows(n: int) -> str:
    return "1 row" if n == 1 else f"{n:,} rows"


def rule_sentence(rule: Rule) -> str:
    """A rule, and how well it finds the cluster."""
    return f"{rule}: {precision_sentence(rule)}"


def precision_sentence(rule: Rule) -> str:
    """How well a rule finds the cluster.

    >>> precision_sentence(Rule((), precision=0.93, coverage=0.8, n=1200))
    'right for 93 % of its 1,200 rows, finds 80 % of the cluster'
    """
    return (
        f"right for {words.share(rule.precision)} of its {n_rows(rule.n)}, "
        f"finds {words.share(rule.coverage)} of the cluster"
    )
