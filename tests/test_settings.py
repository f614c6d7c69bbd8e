"""Settings: DECCS is small, its settings are nested, and all estimators follow one table of rules."""

import inspect
import re

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.metrics import silhouette_score
from sklearn.mixture import GaussianMixture
from sklearn.model_selection import GridSearchCV

from deccs import DECCS, Network, Pretraining, Rounds
from deccs.checks import ANY, FLAG, check_parameters, rules_of
from deccs.settings import COUNT_OR_SHARE
from deccs.storage.models import estimators
from deccs.storage.values import Reader, Writer
from tests.helpers.small import SMALL

pytestmark = pytest.mark.usefixtures("quick_classifiers")
ALL = {**estimators(), "Network": Network, "Pretraining": Pretraining, "Rounds": Rounds}


def parameters():
    """(class, parameter) for every parameter of the library."""
    return [(cls, name) for cls in ALL.values() for name in cls._get_param_names()]


def id_of(value):
    return value if isinstance(value, str) else value.__name__


every_class = pytest.mark.parametrize("cls", ALL.values(), ids=id_of)


def refusal(cls, name, value):
    """What checking this class with this value of a parameter says."""
    model = cls()
    setattr(model, name, value)
    with pytest.raises(ValueError, match="must be") as error:
        check_parameters(model)
    return str(error.value)


def test_deccs_has_few_parameters():
    assert list(inspect.signature(DECCS).parameters) == [
        "n_clusters",
        "scale",
        "kinds",
        "random_state",
        "verbose",
        "callbacks",
        "device",
        "checkpoint",
        "network",
        "pretraining",
        "members",
        "views",
        "rounds",
        "n_jobs",
        "member_timeout",
        "like",
    ]
    assert len(DECCS._get_param_names()) <= 16


@every_class
def test_only_the_number_of_clusters_is_given_by_place(cls):
    by_place = [
        parameter.name
        for parameter in inspect.signature(cls).parameters.values()
        if parameter.kind is not inspect.Parameter.KEYWORD_ONLY
    ]
    assert by_place in ([], ["n_clusters"])


@every_class
def test_defaults_are_allowed(cls):
    check_parameters(cls())


@every_class
def test_every_parameter_has_a_rule_and_one_wording(cls):
    rules, nonsense = rules_of(cls), object()
    assert set(rules) == set(cls._get_param_names())
    for name, rule in rules.items():
        if rule is ANY:
            assert name in ("members", "weights")  # they are checked with the data
        else:
            assert refusal(cls, name, nonsense) == f"{name} must be {rule.words}, got {nonsense!r}."


@every_class
def test_booleans_are_no_numbers_and_words_are_no_flags(cls):
    for name, rule in rules_of(cls).items():
        wrong = []
        if FLAG.words in rule.words:
            wrong = ["no", "yes", "False", 0, 1]
        elif re.search("number|share|widths", rule.words):
            wrong = [True, False, np.True_, "3", "no", float("nan")]
        for value in wrong:
            assert refusal(cls, name, value).startswith(f"{name} must be ")


NUMBERS = [
    (np.int64, np.uint8, 0),
    (np.int64, np.int32, 1),
    (np.int64, np.uint16, 7),
    (np.float64, np.float32, 0.25),
    (np.float64, np.float16, 1.0),
    (np.float64, np.float32, 2.5),
]


@every_class
def test_numbers_of_numpy_are_numbers(cls):
    for name, rule in rules_of(cls).items():
        allowed = [value for *_, value in NUMBERS if rule.allows(value)]
        others = ("widths", "kinds")  # of numbers, and of which one is "number"
        assert allowed or "number" not in rule.words or any(word in rule.words for word in others)
        for *kinds, value in NUMBERS:
            for kind in kinds:
                assert rule.allows(kind(value)) == rule.allows(value), name


def test_one_thing_has_one_name():
    """scikit-learn's names and spelling, in all signatures."""
    not_these = {
        "tolerance",
        "max_points",
        "n_neighbours",
        "centre",
        "centres",
        "moving_centres",
        "standardise",
        "normalise",
        "gamma",
        "lambda_consensus",
        "epochs",
        "max_iter",
        "seed",
        "lr",
        "autoencoder",
        "layers",
        "dropout",
        "pretraining_grid",
    }
    allowed = {("Network", "layers"), ("Network", "dropout"), ("AGAE", "layers")}
    wrong = {(cls.__name__, name) for cls, name in parameters() if name in not_these} - allowed
    assert not wrong
    british = [name for _, name in parameters() if re.search("our|lise|rdise|isation|centre", name)]
    assert not british


def test_the_same_name_has_the_same_kind_of_values():
    """Booleans are flags everywhere, counts are whole numbers everywhere."""
    for cls, name in parameters():
        default, rule = getattr(cls(), name), rules_of(cls)[name]
        assert (rule.words == FLAG.words) == isinstance(default, bool)
        if name.startswith("n_") and name not in ("n_clusters", "n_jobs"):
            assert not rule.allows(0.5) or rule is COUNT_OR_SHARE, (cls, name)


# Nested names through scikit-learn's tools


def test_get_params_shows_the_settings_where_none_are_given():
    values = DECCS(10).get_params()
    assert values["rounds"] is None and values["rounds__n_rounds"] == 10
    assert values["network__layers"] == "auto" and values["pretraining__batch_size"] == 128
    own = {f"rounds__{name}" for name in Rounds().get_params()}
    assert own < set(values)
    assert DECCS(rounds=Rounds(n_rounds=3)).get_params()["rounds__n_rounds"] == 3


def test_set_params_and_repr():
    model = DECCS(10).set_params(rounds__lambda_cons=0.1, network__layers=(8, 2))
    assert model.rounds == Rounds(lambda_cons=0.1)
    assert model.network == Network(layers=(8, 2))
    words = "".join(repr(model).split())
    assert (
        words == "DECCS(n_clusters=10,network=Network(layers=(8,2)),rounds=Rounds(lambda_cons=0.1))"
    )
    assert repr(DECCS()) == "DECCS()"
    assert model.set_params(rounds=None).rounds is None
    with pytest.raises(ValueError, match="Invalid parameter 'lambda' for estimator Rounds"):
        model.set_params(rounds__lambda=1)


def test_clone_copies_the_settings():
    model = DECCS(3, rounds=Rounds(n_rounds=2), pretraining=Pretraining(n_epochs=1))
    twin = clone(model)
    assert twin.rounds == model.rounds and twin.rounds is not model.rounds
    twin.set_params(rounds__n_rounds=7)
    assert model.rounds.n_rounds == 2


def test_settings_are_equal_by_value():
    assert Rounds() == Rounds() != Rounds(tol=0.1)
    assert Network(layers=(8, 2)) != Network(layers=(8, 3))


def test_grid_search_over_nested_names_with_none_given():
    """As in the documentation: nothing but n_clusters is given."""
    search = GridSearchCV(DECCS(10), {"rounds__lambda_cons": [0.1, 1, 10]})
    assert search.estimator.rounds is None
    candidates = [clone(search.estimator).set_params(rounds__lambda_cons=v) for v in (0.1, 1, 10)]
    assert [model.rounds.lambda_cons for model in candidates] == [0.1, 1, 10]
    assert search.estimator.rounds is None


def test_a_grid_search_over_settings(blobs):
    members = [("km", KMeans(3, n_init=1)), ("gm", GaussianMixture(3))]
    search = GridSearchCV(
        DECCS(**SMALL).set_params(members=members),
        {"rounds__lambda_cons": [0.1, 10.0], "pretraining__n_epochs": [1]},
        scoring=lambda model, X, y=None: silhouette_score(model.transform(X), model.predict(X)),
        cv=2,
        error_score="raise",
    ).fit(blobs.X)
    scores = search.cv_results_["mean_test_score"]
    assert np.isfinite(scores).all() and scores[0] != scores[1]
    best = search.best_estimator_
    assert best.rounds.lambda_cons == search.best_params_["rounds__lambda_cons"]
    assert best.pretraining.n_epochs == 1 and best.rounds.n_steps == 10


def test_a_wrong_setting_is_named_with_its_place(small, blobs):
    for changes, words in (
        ({"rounds__n_rounds": -1}, "rounds.n_rounds must be a whole number of at least 0, got -1."),
        ({"network__dropout": 1.0}, "network.dropout must be a share in [0, 1), got 1.0."),
        ({"pretraining": {"n_epochs": 3}}, "pretraining must be a deccs.Pretraining(...) or None"),
        ({"rounds": 5}, "rounds must be a deccs.Rounds(...) or None, got 5."),
        ({"rounds__ramp_up": "no"}, "rounds.ramp_up must be True or False, got 'no'."),
        ({"rounds__center": "mode"}, "rounds.center must be 'mean' or 'median', got 'mode'."),
        ({"network": "deep"}, "network must be a deccs.Network(...) or None or an Autoencoder"),
        ({"verbose": 1}, "verbose must be True or False, got 1."),
    ):
        with pytest.raises(ValueError, match=f"^{re.escape(words)}"):
            small().set_params(**changes).fit(blobs.X)


# Files


@pytest.mark.parametrize(
    "value",
    [
        Network(layers=(8, 2), dropout=0.25),
        Pretraining(n_epochs=3, grid={"layers": [(8, 2), (4, 2)]}),
        Rounds(n_rounds=2, tol=0.01, sample_size=0.5),
    ],
    ids=lambda value: type(value).__name__,
)
def test_settings_come_back_from_files(value):
    assert Reader({}).value(Writer().tree(value, "value")) == value


def test_settings_of_version_1_come_back():
    """``epochs`` was the name, and "auto" its default."""
    for epochs, expected in (
        ("auto", Pretraining(batch_size=32)),
        (5, Pretraining(n_epochs=5, batch_size=32)),
    ):
        old = {"kind": "Pretraining", "fields": {"epochs": epochs, "batch_size": 32}}
        assert Reader({}).value(old) == expected
