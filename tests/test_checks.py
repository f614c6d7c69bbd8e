"""Parameters: one table of rules, one wording, nested names through scikit-learn's tools."""

import re
from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated

import numpy as np
import pytest
import torch
from sklearn.base import clone

from deccs.checks import (
    ANY,
    AUTO,
    CALLABLE,
    FLAG,
    N_JOBS,
    NONE,
    SEED,
    WIDTHS,
    check_enough_points,
    check_parameters,
    check_value,
    instance,
    number,
    one_of,
    rules_of,
    settings,
    share,
    whole,
)
from deccs.settings import Settings

NAN, INF = float("nan"), float("inf")


@pytest.mark.parametrize(
    ("rule", "words", "allowed", "refused"),
    [
        (
            whole(at_least=1),
            "a whole number of at least 1",
            [1, 7, np.int64(1), np.uint8(3), 2**63 - 1],
            [
                2**63,
                10**400,
                0,
                -1,
                1.0,
                np.float64(2),
                True,
                np.True_,
                "1",
                None,
                [1],
                NAN,
                1j,
                torch.tensor(1),
            ],
        ),
        (
            number(at_least=0),
            "a number of at least 0",
            [0, 0.5, 3, np.float32(0.5), np.int8(2), Fraction(1, 3), 1e300],
            [
                10**400,
                -1e-9,
                True,
                False,
                np.False_,
                "0",
                None,
                NAN,
                np.float64("nan"),
                INF,
                1j,
                [0.5],
            ],
        ),
        (number(above=0), "a number above 0", [1e-300, 1], [0, 0.0, -1, False]),
        (number(), "a number", [-3, 2.5, np.float16(1)], ["1", True, None, NAN, -INF]),
        (share(), "a share in (0, 1)", [0.5, np.float32(0.1)], [0, 0.0, 1, 1.0, "0.5", True, NAN]),
        (share(zero=True), "a share in [0, 1)", [0, 0.0, 0.99, np.int64(0)], [1.0, 1, -0.1, False]),
        (share(one=True), "a share in (0, 1]", [1.0, 0.5], [1, 0.0, 1.01, True]),  # 1 is a count
        (one_of("a", "b"), "'a' or 'b'", ["a", np.str_("b")], ["c", "", None, 1, ["a"]]),
        (one_of("a", None), "'a' or None", ["a", None], ["None", False, 0]),
        (FLAG, "True or False", [True, False, np.True_], ["no", "yes", 0, 1, None, "True"]),
        (AUTO, "'auto'", ["auto"], ["Auto", None, 0]),
        (NONE, "None", [None], [0, False, "None"]),
        (ANY, "anything", [None, 0, object()], []),
        (CALLABLE, "a function", [len, print], ["len", None]),
        (
            WIDTHS,
            "a tuple of layer widths, each a whole number of at least 1",
            [(8, 2), [5], np.array([3, 2]), (np.int64(4),)],
            [
                (),
                8,
                "82",
                b"82",
                (8, 0),
                (2.5,),
                (True,),
                {8: 2},
                None,
                np.array(3),
                np.array([[3]]),
            ],
        ),
        (
            N_JOBS,
            "None, -1 for all cores, or a whole number of at least 1",
            [None, -1, 1, np.int32(4)],
            [0, 1.0, True, "2"],
        ),
        (
            SEED,
            "None, a whole number of at least 0 or a numpy.random.RandomState",
            [None, 0, np.int64(3), np.random.RandomState(0)],
            [-1, 1.5, "zero", True, np.random.default_rng(0)],
        ),
        (
            AUTO | whole(at_least=2) | NONE,
            "'auto' or a whole number of at least 2 or None",
            ["auto", 2, None],
            [1, "none", False],
        ),
        (instance(dict, list, words="a dict"), "a dict", [{}, []], [(), None]),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_a_rule_allows_and_says(rule, words, allowed, refused):
    assert rule.words == words
    for value in allowed:
        assert rule.allows(value), value
    for value in refused:
        assert not rule.allows(value), value


def test_no_other_negative_number_of_jobs_is_described():
    """joblib takes -2 for all cores but one; so do we."""
    assert N_JOBS.allows(-2)


@dataclass(repr=False, kw_only=True)
class Inner(Settings):
    depth: Annotated[int, whole(at_least=1)] = 3
    rate: Annotated[float, number(at_least=0)] = 0.1


@dataclass(repr=False)
class Outer(Settings):
    size: Annotated[int, whole(at_least=1)] = 4
    inner: Annotated[Inner | None, settings(Inner)] = None
    free: int = 0  # no rule


def test_rules_stand_beside_the_parameters():
    assert list(rules_of(Outer)) == ["size", "inner"]
    assert rules_of(Outer)["size"].words == "a whole number of at least 1"
    assert rules_of(Outer)["inner"].words == "a deccs.Inner(...) or None"


def test_rules_are_inherited_and_can_be_changed():
    @dataclass(repr=False)
    class Wider(Outer):
        size: Annotated[int, whole(at_least=0)] = 0

    check_parameters(Wider())
    with pytest.raises(ValueError, match="inner must be"):
        check_parameters(Wider(inner=3))
    assert not rules_of(Outer)["size"].allows(0)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"size": 0}, "size must be a whole number of at least 1, got 0."),
        ({"size": True}, "size must be a whole number of at least 1, got True."),
        ({"inner": "deep"}, "inner must be a deccs.Inner(...) or None, got 'deep'."),
        ({"inner": Inner}, "inner must be a deccs.Inner(...) or None, got <class "),
        ({"inner__depth": 0}, "inner.depth must be a whole number of at least 1, got 0."),
        ({"inner__rate": "0"}, "inner.rate must be a number of at least 0, got '0'."),
    ],
)
def test_one_wording(changes, message):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}"):
        check_parameters(Outer().set_params(**changes))


def test_good_parameters_pass():
    check_parameters(Outer(size=np.int64(2), inner=Inner(rate=np.float32(0.5))))


def test_functions_check_single_values():
    check_value("k", 3, whole(at_least=1))
    with pytest.raises(ValueError, match=r"^k must be a whole number of at least 1, got 0\.$"):
        check_value("k", 0, whole(at_least=1))


def test_more_clusters_than_points():
    check_enough_points(3, 3)
    check_enough_points(None, 0)
    with pytest.raises(
        ValueError, match="n_clusters=4 is more than the number of points, n_samples=3"
    ):
        check_enough_points(4, 3)


# Nested names


def test_none_stands_for_the_defaults():
    outer = Outer()
    assert outer.get_params(deep=False) == {"size": 4, "inner": None, "free": 0}
    assert outer.get_params()["inner__depth"] == 3
    assert outer.settings_for("inner") == Inner()
    assert outer.inner is None  # asking changes nothing
    given = Inner(depth=9)
    assert Outer(inner=given).settings_for("inner") is given
    assert Outer(inner=given).get_params()["inner__depth"] == 9


def test_nested_names_can_be_set():
    outer = Outer().set_params(inner__depth=7, size=2, inner__rate=0.5)
    assert (outer.size, outer.inner) == (2, Inner(depth=7, rate=0.5))
    assert outer.set_params(inner=None).inner is None
    assert outer.set_params(inner=None, inner__depth=1).inner == Inner(depth=1)
    assert outer.set_params(inner=Inner(rate=9.0), inner__depth=2).inner == Inner(depth=2, rate=9.0)
    assert outer.set_params() is outer


@pytest.mark.parametrize("name", ["nothing", "inner__nothing", "size__depth"])
def test_a_name_that_is_none_is_refused(name):
    with pytest.raises((ValueError, AttributeError), match=r"nothing|no parameter .depth."):
        Outer().set_params(**{name: 1})


def test_a_refused_name_leaves_the_others_alone():
    outer = Outer()
    with pytest.raises(ValueError, match="nothing"):
        outer.set_params(nothing=1, inner__depth=2)
    assert outer.size == 4


def test_clones_share_nothing():
    outer = Outer(inner=Inner(depth=5))
    twin = clone(outer).set_params(inner__depth=6)
    assert (outer.inner.depth, twin.inner.depth) == (5, 6)
    assert clone(Outer()).inner is None


def test_repr_shows_what_differs_from_the_defaults():
    assert repr(Outer()) == "Outer()"
    assert repr(Outer(size=1, inner=Inner(depth=2))) == "Outer(inner=Inner(depth=2), size=1)"
