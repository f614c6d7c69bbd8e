"""Parameters: declared once, checked by one table with one wording.

A parameter, its default and its rule stand on one line of the class that has it::

    tol: Annotated[float, number(at_least=0)] = 1e-3

The class is a dataclass, so this line is also the signature. ``check_parameters`` reads the rules.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from inspect import Parameter, signature
from numbers import Integral, Real
from typing import Any, Self, get_type_hints

import numpy as np

TOO_LARGE = 2**63  # a whole number that no step, row or seed needs, and that overflows elsewhere


@dataclass(frozen=True)
class Rule:
    """Which values a parameter may have, and the words for them."""

    words: str
    allows: Callable[[Any], bool]
    settings: type | None = None  # the class of settings that None stands for

    def __or__(self, other: Rule) -> Rule:
        return Rule(
            f"{self.words} or {other.words}",
            lambda value: self.allows(value) or other.allows(value),
            self.settings or other.settings,
        )


def is_whole(value: object) -> bool:
    """Whether this is a whole number that machines can count to; True and False are not."""
    return (
        isinstance(value, Integral)
        and not isinstance(value, bool | np.bool_)
        and abs(int(value)) < TOO_LARGE
    )


def is_number(value: object) -> bool:
    """Whether this is a number; NaN, infinity, True and False are not."""
    if isinstance(value, Integral):
        return is_whole(value)
    return isinstance(value, Real) and math.isfinite(value)


def whole(at_least: int) -> Rule:
    """A whole number; true and false are not numbers.

    >>> rule = whole(at_least=1)
    >>> rule.words, rule.allows(np.int64(1)), rule.allows(True), rule.allows(0)
    ('a whole number of at least 1', True, False, False)
    """
    return Rule(
        f"a whole number of at least {at_least}",
        lambda value: is_whole(value) and bool(value >= at_least),
    )


def number(at_least: float | None = None, above: float | None = None) -> Rule:
    """A finite number; true and false are not numbers.

    >>> number(above=0).words, number(at_least=0).allows(np.float32(0.5)), number().allows("1")
    ('a number above 0', True, False)
    """
    if above is not None:
        return Rule(
            f"a number above {above}", lambda value: is_number(value) and bool(value > above)
        )
    if at_least is not None:
        return Rule(
            f"a number of at least {at_least}",
            lambda value: is_number(value) and bool(value >= at_least),
        )
    return Rule("a number", is_number)


def share(*, zero: bool = False, one: bool = False) -> Rule:
    """A number between 0 and 1; ``zero`` and ``one`` say whether the ends are allowed.

    >>> share(zero=True).words, share(one=True).allows(1.0), share(one=True).allows(1)
    ('a share in [0, 1)', True, False)
    """
    low, high = "[" if zero else "(", "]" if one else ")"

    def allows(value: Any) -> bool:
        if is_whole(value) and not (
            zero and value == 0
        ):  # 1 is a number of points, 1.0 is all of them
            return False
        above = is_number(value) and (value >= 0 if zero else value > 0)
        return bool(above and (value <= 1 if one else value < 1))

    return Rule(f"a share in {low}0, 1{high}", allows)


def one_of(*choices: str | None) -> Rule:
    """One of a few words, or None if it is among them.

    >>> one_of("mean", "median").words, one_of("mean", None).allows(None)
    ("'mean' or 'median'", True)
    """
    return Rule(
        " or ".join(repr(choice) for choice in choices),
        lambda value: (value is None or isinstance(value, str)) and value in choices,
    )


def instance(*kinds: type, words: str) -> Rule:
    return Rule(words, lambda value: isinstance(value, kinds))


def settings(kind: type) -> Rule:
    """An object of a settings class, or None for its defaults."""
    return Rule(
        f"a deccs.{kind.__name__}(...) or None",
        lambda value: value is None or isinstance(value, kind),
        kind,
    )


def is_widths(value: Any) -> bool:
    """Whether this is a sequence of layer widths."""
    widths = value.tolist() if isinstance(value, np.ndarray) else value
    if not isinstance(widths, list | tuple) or not widths:
        return False
    return all(is_whole(width) and width >= 1 for width in widths)


MANY_CLUSTERS = 500  # up to here any number can be asked for, and the slow members take part
AUTO = one_of("auto")
NONE = Rule("None", lambda value: value is None)
FLAG = Rule("True or False", lambda value: isinstance(value, bool | np.bool_))
WIDTHS = Rule("a tuple of layer widths, each a whole number of at least 1", is_widths)
CALLABLE = Rule("a function", callable)
ANY = Rule("anything", lambda value: True)
N_JOBS = Rule(
    "None, -1 for all cores, or a whole number of at least 1",
    lambda value: value is None or (is_whole(value) and value != 0),
)
TIMEOUT = number(above=0) | NONE
SEED = Rule(
    "None, a whole number of at least 0 or a numpy.random.RandomState",
    lambda value: (
        value is None
        or isinstance(value, np.random.RandomState)
        or (is_whole(value) and value >= 0)
    ),
)


def k_bounds(n_clusters: object) -> tuple[int, int | None] | None:
    """The least and the most clusters that may be chosen; None where a number is given, not chosen.

    >>> k_bounds("auto"), k_bounds("3-20"), k_bounds(range(3, 21)), k_bounds(8)
    ((1, None), (3, 20), (3, 20), None)
    """
    if isinstance(n_clusters, range):
        ends = (n_clusters[0], n_clusters[-1]) if len(n_clusters) else (0, 0)
        return min(ends), max(ends)
    if not isinstance(n_clusters, str):
        return None
    if n_clusters == "auto":
        return 1, None
    low, dash, high = n_clusters.partition("-")
    return (int(low), int(high)) if dash and low.isdecimal() and high.isdecimal() else None


def check_bounds(n_clusters: object, n_points: int) -> None:
    """Raise a ValueError for a range of numbers that cannot be tried."""
    low, high = k_bounds(n_clusters) or (1, None)
    if high is None:
        return
    if low < 1 or high < low:
        turned = f" Did you mean '{high}-{low}'?" if 1 <= high < low else ""
        raise ValueError(
            f"The range of n_clusters must begin at 1 or more and not end before that, got "
            f"{n_clusters!r}.{turned}"
        )
    if high > n_points:
        raise ValueError(
            f"The range of n_clusters ends at {high}, above the number of points, "
            f"n_samples={n_points}. End it at {n_points} or below."
        )


N_CLUSTERS = Rule(
    "a whole number of at least 1, 'auto' or a range such as '3-20'",
    lambda value: whole(at_least=1).allows(value) or k_bounds(value) is not None,
)


RULES_OF: dict[type, dict[str, Rule]] = {}  # evaluating annotations takes milliseconds a class


def rules_of(cls: type) -> dict[str, Rule]:
    """The rule of every parameter that has one."""
    if cls not in RULES_OF:
        hints = get_type_hints(cls, include_extras=True)
        RULES_OF[cls] = {
            name: rule
            for name, hint in hints.items()
            for rule in getattr(hint, "__metadata__", ())
            if isinstance(rule, Rule)
        }
    return RULES_OF[cls]


def check_parameters(owner: Any, place: str = "") -> None:
    """Raise a ValueError for the first parameter whose value its rule does not allow."""
    for name, rule in rules_of(type(owner)).items():
        value = getattr(owner, name)
        check_value(f"{place}{name}", value, rule)
        if isinstance(value, Parameters):
            check_parameters(value, f"{place}{name}.")


def check_value(name: str, value: Any, rule: Rule) -> None:
    """Raise a ValueError for a value that the rule does not allow; for functions, which have no fields."""
    if not rule.allows(value):
        raise ValueError(f"{name} must be {rule.words}, got {value!r:.300}.")


def check_fitted(model: Any) -> None:
    """Raise scikit-learn's NotFittedError for a model without labels."""
    if not hasattr(model, "labels_"):
        from sklearn.utils.validation import check_is_fitted

        check_is_fitted(model, "labels_")


def check_enough_points(n_clusters: int | None, n_points: int) -> None:
    """Raise a ValueError where there are more clusters than points."""
    if n_clusters is not None and n_clusters > n_points:
        raise ValueError(
            f"n_clusters={n_clusters} is more than the number of points, n_samples={n_points}. "
            "Ask for fewer."
        )
    if n_clusters is not None and n_clusters > max(MANY_CLUSTERS, n_points / 2):
        raise ValueError(
            f"n_clusters={n_clusters} is more than half of the number of points, n_samples={n_points}: "
            f"most clusters would be a single point. Ask for at most {n_points // 2}. To find copies, use "
            "scikit-learn's AgglomerativeClustering with a distance_threshold."
        )


class Parameters:
    """scikit-learn's parameters, where None stands for the defaults of a settings class.

    ``DECCS(10).set_params(rounds__n_rounds=5)`` works although ``rounds`` is None, and so do
    ``GridSearchCV`` and ``clone``. They are not those of scikit-learn's ``BaseEstimator``: a model that only
    predicts has parameters, too, and scikit-learn takes a second to load.
    """

    @classmethod
    def _get_param_names(cls) -> list[str]:
        """The names, in alphabetical order, as scikit-learn has them."""
        given = signature(cls.__init__).parameters.values()
        several = (Parameter.VAR_KEYWORD, Parameter.VAR_POSITIONAL)
        return sorted(one.name for one in given if one.name != "self" and one.kind not in several)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Names and values; ``deep`` adds those of the settings, as ``rounds__n_rounds``."""
        values = {name: getattr(self, name) for name in self._get_param_names()}
        if deep:
            kinds = self._settings_classes()
            for name, value in list(values.items()):
                inner = kinds[name]() if value is None and name in kinds else value
                if hasattr(inner, "get_params") and not isinstance(inner, type):
                    parts = inner.get_params(deep=True).items()
                    values |= {f"{name}__{key}": part for key, part in parts}
        return values

    def set_params(self, **values: Any) -> Self:
        """Change parameters; those of the settings as ``rounds__n_rounds``."""
        kinds, nested = self._settings_classes(), dict[str, dict[str, Any]]()
        known = self.get_params(deep=False)
        for key, value in values.items():
            name, dots, rest = key.partition("__")
            if name not in known:
                raise ValueError(
                    f"Invalid parameter {name!r} for estimator {self!r:.300}. Valid parameters are: {list(known)}."
                )
            if dots:
                nested.setdefault(name, {})[rest] = value
            else:
                setattr(self, name, value)
        for name, parts in nested.items():
            if getattr(self, name) is None and name in kinds:
                setattr(self, name, kinds[name]())
            inner = getattr(self, name)
            if not hasattr(inner, "set_params"):
                raise ValueError(
                    f"{name} of {type(self).__name__} is {inner!r:.100}, which has no parameter {next(iter(parts))!r}."
                )
            inner.set_params(**parts)
        return self

    def settings_for(self, name: str) -> Any:
        """The settings under this name: the user's, or the defaults."""
        value = getattr(self, name)
        return self._settings_classes()[name]() if value is None else value

    @classmethod
    def _settings_classes(cls) -> dict[str, type[Parameters]]:
        return {
            name: rule.settings for name, rule in rules_of(cls).items() if rule.settings is not None
        }
