"""Scaling: one scale for pixels and components, rows of one length for words, else per column."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_breast_cancer, load_digits, load_wine
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.feature_extraction.text import TfidfTransformer

from deccs.data.scalers import fit_scaler as fit_source_scaler
from deccs.data.scaling import fit_number_scaler, mean_cosine, order_of, share_one_range
from deccs.data.source import source_of


def fit_scaler(X, scale="auto"):
    return fit_source_scaler(source_of(X), scale)


def pixels(n=50, d=9, seed=0):
    X = np.random.default_rng(seed).integers(0, 256, (n, d))
    X[0], X[1] = 0, 255  # every pixel is black once and white once
    return X


def mixed(n=50, seed=0):
    """Age, income and a share: three columns on three scales."""
    return np.random.default_rng(seed).uniform(size=(n, 3)) * [80, 1e5, 1] + [0, 1e4, 0]


def test_pixels_get_one_mean_and_deviation():
    X = pixels()
    scaler = fit_scaler(X)
    assert scaler.kind == "global"
    assert_allclose([scaler.mean, scaler.deviation], [X.mean(), X.std()])
    assert_allclose([scaler(X).mean(), scaler(X).std()], [0, 1], atol=1e-12)


def test_pixels_with_black_borders_are_still_pixels():
    X = pixels()
    X[:, :3] = 0
    scaler = fit_scaler(X)
    assert scaler.kind == "global"
    assert_allclose([scaler.mean, scaler.deviation], [X.mean(), X.std()])


def test_mixed_columns_get_their_own():
    X = mixed()
    scaler = fit_scaler(X)
    assert scaler.kind == "columns"
    assert_allclose(scaler(X).mean(axis=0), 0, atol=1e-12)
    assert_allclose(scaler(X).std(axis=0), 1)


def test_standardized_data_is_left_alone():
    for X, scale in ((mixed(), "columns"), (pixels(), "global")):
        standard = fit_scaler(X, scale)(X)
        again = fit_scaler(standard)
        assert again.kind == "none"
        assert again(standard) is standard


def test_the_user_decides():
    assert fit_scaler(pixels(), "columns").kind == "columns"
    assert fit_scaler(mixed(), "global").kind == "global"
    assert fit_scaler(mixed(), "rows").kind == "rows"
    assert fit_scaler(mixed(), None).kind == "none"


def test_share_one_range():
    assert share_one_range(np.array([0, 0, 0]), np.array([1, 1, 0.96]))
    assert not share_one_range(np.array([0, 0, 0]), np.array([1, 1, 9]))  # one column sticks out
    assert not share_one_range(np.array([0, 0]), np.array([1, 1]))  # two columns are a coincidence


def test_a_constant_column_is_centered_and_not_blown_up():
    X = mixed()
    X[:, 1] = 1e6 / 3
    scaled = fit_scaler(X, "columns")(X)
    assert_allclose(scaled[:, 1], 0, atol=1e-6)
    assert np.isfinite(fit_scaler(np.full((4, 3), 5.0))(np.full((4, 3), 5.0))).all()


def test_a_column_with_a_large_mean_keeps_its_digits():
    """Seconds since 1970, an hour apart: the mean is a million deviations."""
    steps = np.random.default_rng(0).normal(size=(6_000, 1))
    scaler = fit_scaler(np.hstack([1.7e9 + 1000 * steps, steps]), "columns")
    scaled = scaler(np.hstack([1.7e9 + 1000 * steps, steps]))
    assert_allclose(scaled[:, 0], scaled[:, 1], atol=1e-8)


@pytest.mark.parametrize("unit", [1e-12, 1e-6, 1e6, 1e12])
def test_the_unit_of_a_column_changes_nothing(unit):
    X = mixed()
    assert_allclose(fit_scaler(X * unit, "columns")(X * unit), fit_scaler(X, "columns")(X))


def test_moments_over_many_blocks_equal_numpy():
    X = np.random.default_rng(0).normal(3, 2, (8_199, 2)) * [1, 10]
    scaler = fit_scaler(X, "columns")
    assert_allclose(scaler.mean, X.mean(axis=0))
    assert_allclose(scaler.deviation, X.std(axis=0))
    assert_allclose(fit_scaler(X, "global").deviation, X.std())


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_values_that_are_missing_or_infinite_are_named(value):
    X = mixed()
    X[7, 2] = value
    with pytest.raises(ValueError, match="Column 2 has values that are missing or infinite"):
        fit_number_scaler(source_of(X))


def test_columns_with_gaps_are_scaled_by_what_is_known():
    X = mixed()
    X[7, 2] = np.nan
    scaler = fit_scaler(X)
    known = np.delete(X, 7, axis=0)
    expected = (known - np.nanmean(X, axis=0)) / np.nanstd(X, axis=0)
    assert_allclose(scaler(X)[np.arange(50) != 7], expected)
    with pytest.raises(ValueError, match="scale='rows' needs rows of numbers without gaps"):
        fit_scaler(X, "rows")


@pytest.mark.parametrize("mean", [1e12, 1.7e15, 1e18, -1e18])
def test_a_column_far_from_zero_is_scaled(mean):
    """Order numbers, clocks in microseconds, 64-bit keys: a mean of 1e9 deviations and more."""
    steps = np.arange(1000.0) * (1024 if abs(mean) > 1e17 else 1)  # exact as float64
    X = np.column_stack([mean + steps, steps])
    scaled = fit_scaler(X, "columns")(X)
    assert_allclose(scaled.std(axis=0), 1, rtol=1e-9)
    assert_allclose(scaled[:, 0], scaled[:, 1], atol=1e-2)  # the mean is rounded to float64


def test_a_first_row_far_from_the_others_costs_no_digits():
    X = np.r_[0.0, 1e12 + np.random.default_rng(0).normal(size=5000)].reshape(-1, 1)
    assert_allclose(fit_scaler(X, "columns").deviation, X.std(axis=0), rtol=1e-9)


def test_rounding_is_no_variation():
    rounded = np.array([0.1 + 0.2, 0.3, 0.3, 0.15 + 0.15])
    X = np.column_stack([rounded, 1e9 * rounded, np.arange(4.0)])
    assert_allclose(fit_scaler(X, "columns").deviation, [1, 1, np.arange(4).std()])


# Columns whose size is their importance


def measured():
    return {
        "wine": load_wine().data,
        "cancer": load_breast_cancer().data,
        "digits": load_digits().data,
    }


def documents(n=300, n_words=400, n_topics=4, seed=0):
    """Word counts of documents of different lengths: common words, and those of a topic."""
    rng = np.random.default_rng(seed)
    common = 1 / np.arange(1, n_words + 1)
    topics = rng.dirichlet(np.full(n_words, 0.05), size=n_topics)
    chance = 0.7 * common / common.sum() + 0.3 * topics[rng.integers(n_topics, size=n)]
    return np.array([rng.multinomial(rng.integers(10, 80), row) for row in chance]).astype(float)


def standardized(X):
    return fit_scaler(X, "columns")(X)


@pytest.mark.parametrize("name", ["wine", "cancer", "digits"])
def test_measured_tables_are_scaled_as_before(name):
    X = measured()[name]
    kind = "global" if name == "digits" else "columns"
    assert fit_scaler(X).kind == kind
    if kind == "columns":
        falling = np.argsort(-X.std(axis=0))
        assert fit_scaler((X - X.mean(axis=0))[:, falling]).kind == "columns"  # not orthogonal


@pytest.mark.parametrize("name", ["wine", "cancer", "digits"])
@pytest.mark.parametrize("n_components", [2, 3, 10])
def test_principal_components_keep_their_proportions(name, n_components):
    components = PCA(n_components).fit_transform(5 * standardized(measured()[name]))
    for dtype in (np.float64, np.float32):
        scaler = fit_scaler(components.astype(dtype))
        assert (scaler.kind, scaler.deviation.shape) == ("global", ())


def test_principal_components_of_other_rows_are_recognized():
    X = 5 * standardized(load_digits().data)
    pca = PCA(20).fit(X[:900])
    assert fit_scaler(pca.transform(X[900:])).kind == "global"


@pytest.mark.parametrize("n_components", [10, 40])
def test_components_without_centering_are_compared_by_angle(n_components):
    X = TfidfTransformer().fit_transform(documents())
    lsa = TruncatedSVD(n_components, random_state=0).fit_transform(X)
    scaler = fit_scaler(lsa)
    assert scaler.kind == "rows"
    assert_allclose(np.square(scaler(lsa)).mean(), 1)


def test_noise_of_any_size_is_measured():
    for seed in range(20):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(400, 3 + seed)) * rng.lognormal(size=3 + seed)
        assert fit_scaler(X).kind == "columns"


@pytest.mark.parametrize("of", [lambda X: X, np.log1p, lambda X: (X > 0).astype(float)])
def test_words_are_weighted_by_rarity(of):
    X = of(documents())
    scaler = fit_scaler(X)
    assert scaler.kind == "rows"
    in_rows = (X > 0).sum(axis=0)
    frequent, rare = in_rows.argmax(), np.flatnonzero(in_rows == 1)[0]
    assert_allclose(1 / scaler.deviation[frequent], np.log(301 / in_rows[frequent]))
    assert_allclose(1 / scaler.deviation[rare], np.log(301))
    assert_allclose(scaler.deviation[in_rows == 0], 1)


def test_unit_vectors_stay_as_they_are_but_for_one_factor():
    tfidf = TfidfTransformer().fit_transform(documents()).toarray()
    embedding = np.random.default_rng(0).normal(0.3, 1, (200, 16))
    embedding /= np.linalg.norm(embedding, axis=1, keepdims=True)
    for X in (tfidf, embedding):
        scaler = fit_scaler(X)
        assert scaler.kind == "rows"
        assert_allclose(scaler(X), X * np.sqrt(X.shape[1]))


def test_a_large_constant_does_not_make_rows_of_one_length():
    X = np.hstack([np.full((50, 1), 1e6), mixed() / [1, 1e3, 1]])
    assert fit_scaler(X).kind == "columns"


def test_measurements_beside_one_hot_columns_are_measurements():
    """Nine of ten values are 0 and all are whole, but each row has as many."""
    rng = np.random.default_rng(0)
    one_hot = np.hstack([np.eye(25)[rng.integers(25, size=400)] for _ in range(5)])
    gains = np.where(rng.random((400, 1)) < 0.1, rng.integers(1, 99_999, (400, 1)), 0)
    X = np.hstack([rng.integers(17, 90, (400, 1)), gains, one_hot])
    assert (X == 0).mean() > 0.9
    assert fit_scaler(X).kind == "columns"
    assert fit_scaler(one_hot).kind == "global"


def test_rows_work_block_by_block_and_for_sparse_input():
    X = documents()
    X[7] = 0  # an empty document has no direction
    dense, sparse = fit_scaler(X), fit_scaler(sp.csr_array(X))
    assert type(dense) is type(sparse)
    assert_array_equal(dense.deviation, sparse.deviation)
    scaled = dense(X)
    assert_array_equal(np.vstack([dense(X[row : row + 1]) for row in range(len(X))]), scaled)
    assert_allclose(np.linalg.norm(scaled, axis=1), np.where(np.arange(300) == 7, 0, np.sqrt(400)))


def test_mean_cosine_by_hand():
    X = np.array([[1.0, 1.0], [1.0, 0.0]])  # at an angle of 45 degrees
    lengths = np.sqrt(np.square(X).mean(axis=0))
    assert_allclose(mean_cosine(source_of(X), np.arange(2), lengths), np.sqrt(0.5))
    assert order_of(np.arange(5.0)) == 1


@pytest.mark.parametrize("unit", [1e300, 8e307, 1e200, 1e-200, 1e-290, 1e-310])
@pytest.mark.filterwarnings("error")
def test_columns_of_any_size_are_scaled(unit):
    X = np.random.default_rng(0).uniform(-2, 2, (50, 3))
    X[0], X[1] = -2, 2
    digits = 1e-9 if unit > 1e-300 else 1e-3  # denormal numbers have fewer
    for scale in ("columns", "global"):
        expected = fit_scaler(X, scale)(X)
        assert_allclose(fit_scaler(X * unit, scale)(X * unit), expected, rtol=digits, atol=digits)
    assert fit_scaler(X * unit).kind == "global"  # the columns share one range
    assert_allclose(fit_scaler(X * unit)(X * unit), expected, rtol=digits, atol=digits)


@pytest.mark.filterwarnings("error")
def test_columns_of_1e_200_and_1e200_are_scaled_side_by_side():
    X = np.random.default_rng(0).normal(size=(50, 4)) + 5
    units = np.array([1e-200, 1e200, 1.0, 0.0])
    scaler = fit_scaler(X * units)
    assert scaler.kind == "columns"
    assert_allclose(scaler(X * units)[:, :3], fit_scaler(X, "columns")(X)[:, :3], atol=1e-9)
    assert_array_equal(scaler(X * units)[:, 3], 0)


@pytest.mark.filterwarnings("error")
def test_an_outlier_is_far_away_and_finite():
    X = mixed()
    for scale in ("columns", "global", "rows"):
        scaler = fit_scaler(X, scale)
        for value in (1e9, 1e300, -1.7e308, 5e-324):
            row = np.full((1, 3), value)
            assert np.isfinite(scaler(row)).all() and np.abs(scaler(row)).max() <= 1e9
    assert_allclose(np.linalg.norm(fit_scaler(X, "rows")(np.full((1, 3), 1e300))), np.sqrt(3))
    assert_allclose(np.linalg.norm(fit_scaler(X, "rows")(np.full((1, 3), 1e-300))), np.sqrt(3))


@pytest.mark.filterwarnings("error")
def test_rows_with_one_huge_value_do_not_spoil_the_scale():
    X = mixed()
    X[7, 1] = -1e300
    scaled = fit_scaler(X)(X)
    assert np.isfinite(scaled).all() and abs(scaled[7, 1]) == pytest.approx(7, abs=0.1)


def test_keys_that_doubles_cannot_tell_apart_are_not_larger_than_other_columns():
    steps = np.random.default_rng(0).integers(0, 5_000, (200, 1))
    for keys in (2**60 + steps, 2**62 + steps, (2**63 + steps.astype(np.uint64))):
        scaled = fit_scaler(np.hstack([keys.astype(np.float64), mixed(200)]))(
            np.hstack([keys.astype(np.float64), mixed(200)])
        )
        assert np.abs(scaled[:, 0]).max() < 1e-3
