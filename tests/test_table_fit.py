"""Every estimator on a frame with numbers, categories, dates and gaps: one contract for all of them.

A new estimator is tested here with no further line.
"""

import warnings

import numpy as np
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from deccs import DECCS, Callback
from deccs.data.scalers import fit_scaler
from deccs.data.tabulate import TableWarning, tabulated
from deccs.deep import ConCURL
from deccs.storage import checkpoints
from deccs.storage.models import estimators, load
from tests.fuzz.victims import quick
from tests.helpers.frames import mixed
from tests.helpers.small import small_deccs

NAMES = [name for name, cls in estimators().items() if cls.__module__.startswith("deccs.")]
FRAME = mixed(n=90, seed=3)

pytestmark = pytest.mark.usefixtures("quick_classifiers")


def build(name, **changes):
    """An estimator that fits a frame in a moment."""
    cls = estimators()[name]
    if "image_shape" in cls().get_params(deep=False):
        changes["image_shape"] = "auto"
    return quick(cls, **changes)


def fit(name, frame=FRAME, **changes):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return build(name, **changes).fit(frame)


@pytest.fixture(scope="module", params=NAMES)
def name(request):
    return request.param


@pytest.fixture(scope="module")
def fitted(name, quick_classifiers):
    return fit(name)


def answers(model, frame=FRAME):
    """Everything a model says of a frame, as arrays by name."""
    asked = ("predict", "transform", "predict_proba", "consensus_confidence", "score")
    return {name: getattr(model, name)(frame) for name in asked if hasattr(model, name)}


def test_predict_gives_the_labels_of_the_fit(fitted):
    assert_array_equal(fitted.predict(FRAME), fitted.labels_)
    assert fitted.labels_.shape == (90,) and fitted.labels_.min() >= 0
    assert fitted.n_features_in_ == 6
    assert fitted.feature_names_in_.tolist() == FRAME.columns
    for name, values in answers(fitted).items():
        assert np.isfinite(values).all(), name


def test_a_row_alone_has_the_label_it_has_among_others(fitted):
    alone = [fitted.predict(FRAME[place])[0] for place in range(12)]
    assert_array_equal(alone, fitted.labels_[:12])


def test_the_same_seed_gives_the_same_bits(name, fitted):
    again = answers(fit(name))
    for asked, values in answers(fitted).items():
        assert_array_equal(again[asked], values, asked)


def test_pandas_and_another_order_of_columns_give_the_same_bits(fitted):
    pytest.importorskip("pandas")
    other = FRAME.select(FRAME.columns[::-1])
    expected = answers(fitted)
    for frame in (other, other.to_pandas(), other.lazy(), other.to_arrow()):
        for asked, values in answers(fitted, frame).items():
            assert_array_equal(values, expected[asked], asked)


def test_a_saved_model_says_the_same(fitted, tmp_path):
    loaded = load(fitted.save(tmp_path / "model") or tmp_path / "model")
    expected = answers(fitted)
    for asked, values in answers(loaded).items():
        assert_array_equal(values, expected[asked], asked)
    assert loaded.coding_ == fitted.coding_
    assert loaded.cluster_names_ == fitted.cluster_names_
    assert str(loaded.describe(FRAME)) == str(fitted.describe(FRAME))


def test_rows_with_unseen_levels_and_without_any_value_have_labels(fitted):
    strange = pl.DataFrame(
        {
            "size": [1e12, None],
            "visits": [None, None],
            "smoker": ["perhaps", None],
            "city": ["Rome", None],
            "shirt": ["XXL", None],
            "born": ["1800-01-01", None],
        },
        schema_overrides={"visits": pl.Int64},
    )
    labels = fitted.predict(strange)
    assert labels.shape == (2,) and 0 <= labels.min() <= labels.max() < fitted.n_clusters_


def test_clusters_have_names_and_are_described(fitted):
    assert len(fitted.cluster_names_) == fitted.n_clusters_ == len(set(fitted.cluster_names_))
    described = fitted.describe(FRAME)
    assert described.names == fitted.cluster_names_
    text = str(described)
    assert all(name in text for name in fitted.cluster_names_)


def test_arrays_are_refused_with_the_columns_that_are_needed(fitted):
    with pytest.raises(ValueError, match="fitted on a data frame.*'size', 'visits', 'smoker'"):
        fitted.predict(np.zeros((3, 6)))
    with pytest.raises(ValueError, match="lacks columns the model needs: 'city'"):
        fitted.predict(FRAME.drop("city"))


class Interrupt(Callback):
    """Stop the fit as Ctrl-C would, at this progress."""

    def __init__(self, at):
        self.left = at

    def on_progress(self, progress):
        self.left -= 1
        if self.left == 0:
            raise KeyboardInterrupt


def test_an_interrupted_fit_is_resumed_with_the_same_bits(name, fitted, tmp_path, monkeypatch):
    if "checkpoint" not in fitted.get_params(deep=False):
        pytest.skip("keeps no checkpoint")
    monkeypatch.setattr(checkpoints, "LEAST_PAUSE", 0)
    monkeypatch.setattr(checkpoints, "PAUSE_PER_COST", 0)
    n_interrupted = 0
    for at in (1, 2, 4):
        try:
            resumed = fit(name, checkpoint=tmp_path / "state", callbacks=[Interrupt(at)])
            break
        except KeyboardInterrupt:
            n_interrupted += 1
    else:
        resumed = fit(name, checkpoint=tmp_path / "state")
    assert n_interrupted >= 1
    expected = answers(fitted)
    for asked, values in answers(resumed).items():
        assert_array_equal(values, expected[asked], asked)
    assert not (tmp_path / "state").exists()


# DECCS, and what all share


def small_fit(frame, **changes):
    return small_deccs(pretraining__n_epochs=3, **changes).fit(frame)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("share_of_gaps", [0.0, 0.1, 0.6])
def test_random_frames(seed, share_of_gaps, tmp_path):
    frame = mixed(n=60 + 20 * seed, seed=seed, share_of_gaps=share_of_gaps)
    chosen = np.random.default_rng(seed).permutation(frame.columns)[: 2 + seed].tolist()
    frame = frame.select(chosen)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        model = small_fit(frame)
        assert_array_equal(model.predict(frame), model.labels_)
        model.save(tmp_path / "model")
        assert_array_equal(DECCS.load(tmp_path / "model").predict(frame), model.labels_)


def test_the_kinds_of_the_user_are_taken():
    frame = FRAME.with_columns(level=pl.Series([7, 8, 9] * 30))
    assert small_fit(frame).coding_.columns[-1].kind == "number"
    model = small_fit(frame, kinds={"level": "category", "city": "id"})
    last = model.coding_.columns[-1]
    assert (last.name, last.kind) == ("level", "category")
    assert "city" not in model.coding_.names
    with pytest.raises(ValueError, match="'sity', which is not there. Did you mean 'city'"):
        small_fit(frame, kinds={"sity": "id"})
    with pytest.raises(ValueError, match="kinds must be None or a dict.*got {'city': 'town'}"):
        small_fit(frame, kinds={"city": "town"})
    with pytest.raises(ValueError, match="X has no column names. Give a data frame"):
        small_fit(np.random.default_rng(0).normal(size=(60, 3)), kinds={"a": "id"})


def test_what_is_left_out_is_told():
    frame = FRAME.with_columns(key=pl.Series([f"k{place}" for place in range(90)]))
    with pytest.warns(TableWarning, match=r"Left out: 'key' \(id: named like an id"):
        model = small_fit(frame)
    assert_array_equal(model.labels_, small_fit(FRAME).labels_)  # it has no effect


def test_complete_numbers_in_a_frame_are_fitted_like_an_array():
    pd = pytest.importorskip("pandas")
    X = np.random.default_rng(0).normal(size=(80, 3))
    expected = small_fit(X).labels_
    names = ["a", "b", "c"]
    for frame in (
        pl.DataFrame(X, schema=names),
        pl.DataFrame(X, schema=names).lazy(),
        pl.DataFrame(X, schema=names).to_arrow(),
        pd.DataFrame(X, columns=names),
    ):
        model = small_fit(frame)
        assert_array_equal(model.labels_, expected)
        assert model.feature_names_in_.tolist() == names
        assert_array_equal(model.predict(frame), expected)


def test_numbers_of_any_type_are_fitted():
    """Decimals, durations and numbers written as text are complete numbers, and no array of them is one."""
    values = np.random.default_rng(0).normal(size=(60, 3)).round(3)
    frame = pl.DataFrame(values, schema=["a", "b", "c"])
    expected = small_fit(frame).labels_
    other = frame.with_columns(
        pl.col("a").cast(pl.Decimal(12, 3)),
        pl.col("b").cast(pl.String),
        (pl.col("c") * 1e6).round().cast(pl.Int64).cast(pl.Duration("us")),
    )
    assert_array_equal(small_fit(other).labels_, expected)
    if pytest.importorskip("pandas"):
        assert_array_equal(small_fit(other.to_pandas()).labels_, expected)


def test_arrays_with_gaps_are_fitted():
    X = np.random.default_rng(0).normal(size=(80, 3)) + np.repeat(
        [[0], [9], [18], [27]], 20, axis=0
    )
    X[np.random.default_rng(1).random(X.shape) < 0.2] = np.nan
    model = small_fit(X, n_clusters=4)
    assert_array_equal(model.predict(X), model.labels_)
    assert model.coding_ is None and not hasattr(model, "cluster_names_")


def test_new_gaps_in_a_model_of_complete_numbers_are_told():
    X = np.random.default_rng(0).normal(size=(80, 3))
    model = small_fit(X)
    with pytest.warns(TableWarning, match="1 missing values .columns 1.*had none"):
        labels = model.predict(np.array([[0.5, np.nan, 1.0]]))
    assert_array_equal(labels, model.predict(np.array([[0.5, X[:, 1].mean(), 1.0]])))


def test_rows_without_any_value_are_told():
    frame = pl.concat([FRAME, FRAME.clear(1)])
    with pytest.warns(
        TableWarning, match="1 rows have no value in any column, the first is row 90"
    ):
        small_fit(frame)


def test_a_second_fit_forgets_the_frame_of_the_first():
    model = small_fit(FRAME)
    model.fit(np.random.default_rng(0).normal(size=(60, 2)))
    assert model.coding_ is None and model.n_features_in_ == 2
    assert not hasattr(model, "cluster_names_") and not hasattr(model, "feature_names_in_")
    assert model.predict(np.zeros((1, 2))).shape == (1,)


@pytest.fixture(scope="module")
def of_array(quick_classifiers):
    """A model of an array, whose clusters have only numbers. Do not change it."""
    return small_fit(np.random.default_rng(0).normal(size=(60, 3)))


def test_clusters_are_renamed_in_this_model_and_in_its_files(tmp_path):
    model = small_fit(FRAME)
    first, second = model.cluster_names_[:2]
    old, model = model, model.rename(0, "  young\n smokers ")
    assert old.cluster_names_[0] == first  # each edit gives a new model
    assert model.cluster_names_[:2] == ("young smokers", second)
    assert model.describe(FRAME).names == model.cluster_names_
    model.save(tmp_path / "model")
    assert DECCS.load(tmp_path / "model").cluster_names_ == model.cluster_names_
    assert small_fit(FRAME).cluster_names_[0] == first
    assert model.fit(FRAME).cluster_names_[0] == first  # a new fit has new clusters


@pytest.mark.parametrize(
    ("cluster", "given", "words"),
    [
        (3, "a", "There is no cluster 3; the clusters are 0 to 2"),
        (-1, "a", "There is no cluster -1"),
        (True, "a", "A cluster is given by its number, got True"),
        (0, " ", "A name has 1 to 100 letters"),
        (0, "a" * 101, "A name has 1 to 100 letters"),
        (0, "\x1b[31m", "A name has 1 to 100 letters in one line"),
    ],
)
def test_wrong_names_are_refused(of_array, cluster, given, words):
    with pytest.raises(ValueError, match=words):
        of_array.rename(cluster, given)


def test_no_two_clusters_have_one_name(of_array):
    model = of_array.rename(0, "few")
    assert model.cluster_names_ == ("few", "cluster 1", "cluster 2")
    with pytest.raises(ValueError, match="Cluster 0 is named 'few' already"):
        model.rename(1, "few")
    model.rename(0, "few")  # its own name is no other's


def test_clusters_of_an_array_are_described_by_number(of_array):
    assert len(of_array.describe(np.random.default_rng(1).normal(size=(60, 3))).names) == 3


def test_images_with_missing_pixels_are_refused_by_convolutions():
    X = np.random.default_rng(0).normal(size=(60, 16))
    X[3, 3] = np.nan
    with pytest.raises(ValueError, match=r"image_shape=\(4, 4\) needs rows without missing values"):
        ConCURL(3, image_shape=(4, 4), n_steps=2).fit(X)


HOSTILE = {
    "no columns": (pl.DataFrame(), "no columns"),
    "no rows": (FRAME[:0], "0 row"),
    "one row": (FRAME[:1], "1 row"),
    "nothing but gaps": (pl.DataFrame({"a": [None] * 9, "b": [None] * 9}), "a: no values"),
    "nothing but ids": (pl.DataFrame({"a": [f"{i}x" for i in range(60)]}), "a: almost every value"),
    "infinity": (FRAME.with_columns(size=pl.lit(float("inf"))).with_columns(
        size=pl.when(pl.int_range(pl.len()) > 3).then("size").otherwise(0.5)), "'size' has infinite"),
    "a day that is none": (FRAME.with_columns(born=pl.Series(["2024-02-30", "2024-01-01"] * 45)),
                           "'born' must be dates.*2024-02-30"),
    "too few rows": (FRAME[:2], "n_clusters"),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("case", HOSTILE)
def test_hostile_frames_end_with_an_error_that_says_why(case):
    frame, words = HOSTILE[case]
    for given in (frame, frame.lazy(), frame.to_pandas()):
        with pytest.raises(ValueError, match=words):
            small_fit(given)


@pytest.mark.parametrize(
    "values",
    [
        ["x" * 10_000 + letter for letter in "abc"] * 30,
        ["other", "(other)", "rare"] * 30,
        [None, 2.5, None] * 30,
        [[1], [2], None] * 30,
        [b"\xff", b"b", None] * 30,
        [{"u": 1}, {"u": 2}, None] * 30,
        ["\x1b[31m", "\x00", "a\nb"] * 30,
        ["S\u00e3o\u00a0Paulo", "zero\u200bwidth", "soft\u00adhyphen"] * 30,
        [1e300, -1e300, 1e-300] * 30,
        [2**63, 5, 7] * 30,
    ],
    ids=lambda values: str(values[0])[:12],
)
def test_strange_columns_do_no_harm(values, tmp_path):
    frame = FRAME.with_columns(strange=pl.Series(values, strict=False))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = small_fit(frame)
        assert_array_equal(model.predict(frame), model.labels_)
        model.save(tmp_path / "model")
        loaded = DECCS.load(tmp_path / "model")
        assert_array_equal(loaded.predict(frame), model.labels_)
    assert loaded.coding_ == model.coding_ and loaded.cluster_names_ == model.cluster_names_
    assert "\x1b" not in str(model.describe(frame)) and "\x1b" not in repr(model.cluster_names_)


def test_a_hundred_thousand_levels_are_scaled():
    n = 100_000
    frame = pl.DataFrame({"x": [f"level {place}" for place in range(n)]})
    frame = frame.with_columns(y=pl.Series(np.random.default_rng(0).normal(size=n)))
    rows = tabulated(frame, {"x": "category"}).rows()
    scaler = fit_scaler(rows)
    assert scaler.n_levels.tolist() == [1_001, 0]
    assert_allclose(scaler(rows.X[:5])[:, :1_001].sum(axis=1), scaler.weight[0])
