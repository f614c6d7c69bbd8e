"""Short names of clusters in words: "high income, few orders"."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from deccs.describing import words
from deccs.describing.columns import Described, nameable
from deccs.describing.differences import (
    RARER,
    Amount,
    Difference,
    GapShare,
    LevelShare,
    Period,
    differences,
)

MOST_PARTS, USUAL_PARTS = 3, 2
MOST_LETTERS = 40  # of a name
MOST_OF_A_WORD = 18  # letters of a column or a level, so that two parts fit in
VERY = 1.8  # Cohen's d: in 9 of 10 pairs, a row of the cluster is further out than one of all
MOSTLY = 2 / 3  # a level with this share names a cluster by itself
YES = ("yes", "y", "true", "t", "1", "1.0", "on", "ja", "oui", "si", "sí")
NO = ("no", "n", "false", "f", "0", "0.0", "off", "nein", "non")
VAGUE = ("other", "others", "unknown", "none", "other/unknown", "n/a", "missing", "unnamed")
LEAST_OF_A_LEVEL = 3  # letters: "A" or "XL" says nothing without its column
PLURAL = re.compile(r"[a-z]{2,}[b-hj-rtv-z]s")  # not bonus, status, class, basis, gas

UNIT = re.compile(r"\s*(\([^()]*\)|\[[^\[\]]*\])$")

Parts = list[tuple[Difference, str]]  # what is said of a cluster, and how


def cluster_names(
    columns: Sequence[Described],
    labels: np.ndarray,
    n_clusters: int,
    found: Sequence[Sequence[Difference]] | None = None,
) -> tuple[str, ...]:
    """A name for each cluster, different from all others; "cluster 5" where nothing stands out.

    A name has two parts if two things stand out, and a third where two clusters have the same two.
    First comes what is most different and true of the fewest other clusters. ``found`` are the
    differences, if you have them already.

    >>> income = Described("annual_income", "number", np.arange(80.0))
    >>> news = Described("newsletter", "yes/no", np.tile([0.0, 1.0], 40), ("no", "yes"))
    >>> cluster_names([income, news], np.repeat([0, 1], 40), 2)
    ('low annual income', 'high annual income')
    """
    if not nameable(columns):
        return tuple(f"cluster {cluster}" for cluster in range(n_clusters))
    if found is None:
        found = differences(columns, labels, n_clusters)
    say = partial(part, ambiguous=ambiguous_levels(columns))
    filled = [cluster for cluster, line in enumerate(found) if line]
    to_choose = [sayable(line, say) for line in found]
    chosen = [begun(parts, [k for k in filled if k != c]) for c, parts in enumerate(to_choose)]
    names = [joined(parts) for parts in chosen]
    same = Counter(names)
    for cluster, name in enumerate(names):
        if name and same[name] > 1:
            twins = [other for other in filled if names[other] == name and other != cluster]
            chosen[cluster] = extended(chosen[cluster], to_choose[cluster], twins)
    return told_apart([joined(parts) for parts in chosen])


def sayable(line: Sequence[Difference], say: Callable[[Difference], str]) -> Parts:
    """What stands out, in words, most different first; what cannot be said in a few words is left out."""
    parts = [(each, say(each)) for each in line if each.stands_out]
    return [(each, text) for each, text in parts if text and len(text) <= MOST_LETTERS]


def begun(parts: Parts, rivals: list[int]) -> Parts:
    """The first two parts of a name, chosen to tell a cluster from as many others as they can."""
    chosen: Parts = []
    while len(chosen) < USUAL_PARTS:
        fitting = that_fit(chosen, parts)
        if not fitting:
            break
        chosen.append(max(fitting, key=lambda each: worth(each[0], rivals)))
        rivals = sharing(chosen[-1][0], rivals)
    return chosen


def extended(chosen: Parts, parts: Parts, twins: list[int]) -> Parts:
    """A name with one more part, the one that is true of the fewest clusters of the same name."""
    fitting = that_fit(chosen, parts)
    if not fitting or len(chosen) >= MOST_PARTS:
        return chosen
    return [*chosen, max(fitting, key=lambda each: worth(each[0], twins))]


def that_fit(chosen: Parts, parts: Parts) -> Parts:
    """Parts on columns not yet in the name, that keep it short."""
    used = [each.column for each, _ in chosen]
    return [
        (each, text)
        for each, text in parts
        if each.column not in used and len(joined([*chosen, (each, text)])) <= MOST_LETTERS
    ]


def worth(difference: Difference, rivals: Sequence[int]) -> float:
    """The effect times the share of rivals that it tells the cluster from; the cluster counts as one.

    What a cluster is not is worth less.

    >>> column = Described("x", "number", np.zeros(1))
    >>> worth(Difference(column, 0, np.array([2.0, 1.5, 0.2]), 9), [1, 2])
    1.333333333
    """
    n_shared = len(sharing(difference, rivals))
    is_absence = isinstance(difference, LevelShare) and difference.is_rarer
    value = difference.effect * (RARER if is_absence else 1.0)
    return round(value * (1 - n_shared / (len(rivals) + 1)), 9)


def sharing(difference: Difference, clusters: Sequence[int]) -> list[int]:
    """Those clusters of which the claim is at least half as true."""
    return [k for k in clusters if difference.effects[k] >= difference.effect / 2]


def joined(parts: Parts) -> str:
    return ", ".join(text for _, text in parts)


def told_apart(names: Sequence[str]) -> tuple[str, ...]:
    """Names with the number of the cluster where there is none, or where two are the same.

    >>> told_apart(["", "old", "young", "old"])
    ('cluster 0', 'old (cluster 1)', 'young', 'old (cluster 3)')
    >>> told_apart(["old (cluster 1)", "old", "old"])  # a level may be called anything
    ('old (cluster 1) (cluster 0)', 'old (cluster 1) (cluster 1)', 'old (cluster 2)')
    """
    numbered = [name or f"cluster {place}" for place, name in enumerate(names)]
    same = Counter(name.lower() for name in numbered)
    while any(count > 1 for count in same.values()):
        numbered = [
            f"{name} (cluster {place})" if same[name.lower()] > 1 else name
            for place, name in enumerate(numbered)
        ]
        same = Counter(name.lower() for name in numbered)
    return tuple(numbered)


# ---- one part


def ambiguous_levels(columns: Sequence[Described]) -> frozenset[str]:
    """Levels that are found in several columns, or are steps of a scale."""
    counts = Counter(
        level for column in columns for level in {level.lower() for level in column.levels}
    )
    # "high" is not clear without its column, nor is any other place on a scale.
    on_scales = {
        level.lower() for column in columns if column.kind == "ordered" for level in column.levels
    }
    return frozenset({level for level, count in counts.items() if count > 1} | on_scales)


def part(difference: Difference, ambiguous: frozenset[str]) -> str:
    """What a difference adds to a name; empty if it cannot be said in a few words."""
    match difference:
        case Amount():
            return amount_part(difference)
        case Period():
            return f"{column_words(difference.column)} {words.span(*difference.most)}"
        case GapShare():
            return gap_part(difference)
        case LevelShare():
            return level_part(difference, ambiguous)
    return ""


def amount_part(difference: Amount) -> str:
    column = column_words(difference.column)
    if difference.column.kind == "date":
        early = ("", "late", "early")[difference.direction]
        done = column.endswith(("ed", " at", " on"))  # "joined early", but "early order date"
        return early and (f"{column} {early}" if done else f"{early} {column}")
    if difference.direction == 0:
        return f"medium {column}"
    very = "very " if difference.effect >= VERY else ""
    if is_count(difference.column):
        if difference.here.high == 0:
            return f"no {column}"
        return f"{very}{'many' if difference.direction > 0 else 'few'} {column}"
    return f"{very}{'high' if difference.direction > 0 else 'low'} {column}"


def gap_part(difference: GapShare) -> str:
    column = column_words(difference.column)
    if difference.is_rarer:
        return f"{column} given" if difference.here <= 1 - MOSTLY else ""
    return f"no {column} given" if difference.here >= MOSTLY else f"{column} often missing"


def level_part(difference: LevelShare, ambiguous: frozenset[str]) -> str:
    column, levels = column_words(difference.column), difference.levels
    known, here = levels.lower(), difference.here
    if known in YES + NO:
        # Of two levels one is more frequent here, and that one is told.
        is_yes = (known in YES) != difference.is_rarer
        if (1 - here if difference.is_rarer else here) < MOSTLY:
            return f"{column}: often {'yes' if is_yes else 'no'}"
        return f"{column}: yes" if is_yes else f"no {column}"
    text = words.plain(levels, MOST_OF_A_WORD + len(" or more"))
    if difference.is_rarer:
        text = f"not {text}" if here <= 1 - MOSTLY else f"less {text}"
    elif here < MOSTLY:
        text = f"often {text}"
    is_clear = len(difference.codes) == 1 and known not in ambiguous and says_something(known)
    return text if is_clear else f"{column}: {text}"


def says_something(level: str) -> bool:
    """Whether a level is understood without its column.

    >>> [says_something(level) for level in ("berlin", "xl", "2019", "other")]
    [True, False, False, False]
    """
    return level not in VAGUE and len(level) >= LEAST_OF_A_LEVEL and any(map(str.isalpha, level))


def column_words(column: Described) -> str:
    """The name of a column in the name of a cluster: without its unit.

    >>> column_words(Described("Annual_Income (EUR)", "number", np.zeros(1)))
    'annual income'
    """
    full = words.as_words(column.name, MOST_LETTERS)
    name = UNIT.sub("", full) or full
    return words.plain(words.lowered(name), MOST_OF_A_WORD)


def is_count(column: Described) -> bool:
    """Whether a column counts things: whole numbers from 0 on, and a name in the plural.

    >>> [is_count(Described(name, "number", np.zeros(1), whole=True)) for name in ("orders", "age", "status")]
    [True, False, False]
    """
    if not column.whole or np.nanmin(column.values, initial=0.0) < 0:
        return False
    names = words.lowered(column.words).split()
    return any(PLURAL.fullmatch(name) is not None for name in (names[0], names[-1]))
