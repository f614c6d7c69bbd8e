"""How far labels can be trusted: the parts by hand, noise, strange rows, files."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.preprocessing import scale

from deccs import DECCS, ConsensusClustering, Network, OneGroupWarning, Pretraining, Rounds
from deccs.counting import judging, trust
from deccs.counting.drawn import Drawn
from deccs.counting.judging import signs_for, trust_in
from deccs.counting.one_group import columns_permuted
from deccs.counting.records import ClusterStability
from deccs.counting.signs import Signs
from deccs.counting.trust import (
    WITHOUT_SIGNS,
    Trust,
    about_neighbors_of,
    neighbors_of,
    share_of,
)
from deccs.counting.untrained import Untrained
from deccs.data.source import source_of
from deccs.inference.seen import Components
from deccs.report import write_report
from tests.helpers.command_line import deccs, write_table
from tests.helpers.quick_count import quick_counts

CLEAR = Signs(2.0, 0.0, 3, 3, 1.0, 1.0)
NONE = Signs(-1.0, 0.0, 1, 1, 0.0, 0.0)


@pytest.fixture(scope="module", autouse=True)
def quick():
    with quick_counts():
        yield


def drawn(n=30):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2 * n, 2)) + np.repeat([[0, 0], [20, 0]], n, axis=0)
    return Drawn(X, np.repeat([0, 1], n), 0)


def stability(jaccard=(0.9, 0.6), reference=0.5, depth=1.0):
    return [
        ClusterStability(cluster, 30, value, reference, 1.0, depth, "stable")
        for cluster, value in enumerate(jaccard)
    ]


def trust_of(signs=CLEAR, n_clusters=2, **given):
    """What is known where a member finds the clusters again in each of two resamples."""
    sample = drawn()
    resamples = np.stack(
        [np.where(np.arange(60) % 5 == left, -1, sample.labels) for left in (0, 1)]
    )
    untrained = Untrained(resamples.astype(np.int16))
    parts = Components(np.zeros(2), None), signs, stability(**given), untrained
    return trust_in(sample, n_clusters, *parts)


# ---- by hand


def test_neighbors_equal_a_slow_loop():
    sample = drawn()
    rng = np.random.default_rng(1)
    points, labels = rng.uniform(-5, 25, size=(40, 2)), rng.integers(0, 2, 40)
    for look in (neighbors_of, about_neighbors_of):
        places, distance = look(points, sample)
        share = share_of(sample.labels[places] == labels[:, None])
        for point, label, one, far in zip(points, labels, share, distance, strict=True):
            distances = np.linalg.norm(sample.points - point, axis=1)
            order = np.argsort(distances)
            assert one == (np.sum(sample.labels[order[:10]] == label) + 0.5) / 11
            assert far == pytest.approx(distances[order[19]], rel=1e-2)


def test_a_row_is_not_its_own_neighbor():
    sample = Drawn(np.arange(30.0)[:, None], np.arange(30) % 2, 0)
    places, distance = neighbors_of(np.array([[0.0]]), sample)
    assert distance == [20.0]  # 1, 2, ... 20
    assert_array_equal(places, [range(1, 11)])


def test_alone_or_among_thousands_a_row_has_the_same_bits():
    points = np.random.default_rng(0).normal(size=(2_500, 2))
    labels = np.zeros(2_500, dtype=int)
    made = trust_of()
    support = np.full(2_500, 0.9)
    whole = made.confidence(points, labels, support)
    for row in (0, 999, 1_000, 2_499):
        alone = made.confidence(points[row : row + 1], labels[:1], support[:1])
        assert_array_equal(alone, whole[row : row + 1])


def test_each_part_counts():
    made = trust_of()
    center, edge = np.array([[0.0, 0.0]]), np.array([[8.0, 0.0]])

    def sure(point=center, label=0, support=0.9, trust=made):
        return float(trust.confidence(point, np.array([label]), np.array([support]))[0])

    assert sure() > 0.8
    assert sure(support=0.2) < sure()
    assert sure(edge) < sure() - 0.05  # far from all other rows
    assert sure(label=1) < sure() - 0.03  # the neighbors say otherwise, and its rows are elsewhere
    flat = trust_of(depth=-0.5)
    assert sure(trust=flat) < sure() - 0.1
    assert sure(trust=trust_of(depth=-2)) == sure(trust=trust_of(depth=-1))
    mixed = np.tile(np.arange(60) % 2, (2, 1)).astype(np.int16)  # resamples find other clusters
    lost = replace(made, untrained=Untrained(mixed))
    assert sure(trust=lost) < sure() - 0.01
    without = trust_of(signs=NONE)
    assert sure(trust=without) == pytest.approx(WITHOUT_SIGNS * sure())


def test_together_by_hand():
    # The cluster 0 of four rows: three of them with row 0 in the first resample, two of three in the second.
    labels = np.array([0, 0, 0, 0, 1])
    untrained = Untrained(np.array([[0, 0, 0, 1, 1], [0, -1, 0, 1, 1]]))
    table = untrained.togetherness(labels, 2)
    assert_allclose(table[0], [(3 / 4 + 2 / 3) / 2, 0], rtol=1e-6)
    assert_allclose(table[1], [3 / 4, 0])  # it was left out once
    assert_allclose(table[4], [(1 / 4 + 1 / 3) / 2, 1], rtol=1e-6)


def test_a_model_of_before_is_judged_by_the_old_weights():
    old = replace(trust_of(), untrained=None, valleys=None)
    points, labels, support = np.zeros((2, 2)), np.array([0, 1]), np.array([0.9, 0.9])
    terms = old.terms(points, labels, support)
    assert set(terms) == set(trust.OLD_WEIGHTS)
    expected = trust.sigmoid(trust.weighed(trust.OLD_WEIGHTS, terms))
    assert_array_equal(old.confidence(points, labels, support), expected)
    with pytest.raises(ValueError, match="both untrained and valleys"):
        replace(old, valleys=np.zeros(2)).check_stored()


def test_edited_labels_are_judged_by_the_same_resamples():
    made = trust_of()
    merged = replace(made, drawn=replace(made.drawn, labels=np.zeros(60, int)))
    assert_allclose(merged.untrained.togetherness(merged.drawn.labels, 2)[:, 0], 0.5)


def test_rows_far_out_of_range_have_no_confidence_and_no_warning():
    made = trust_of()
    far = np.array([[1e9, -5], [1e160, 0], [1e308, -1e308]])
    with warnings.catch_warnings(action="error"):
        confidence = made.confidence(far, np.zeros(3, int), np.ones(3))
    assert np.isfinite(confidence).all() and (confidence < 1e-6).all()


def test_clusters_that_are_too_small_to_judge_get_the_mean():
    made = trust_of(n_clusters=4, jaccard=(0.9, 0.7))
    assert_allclose(made.stability, [0.4, 0.2, 0.3, 0.3])
    assert len(made.usual) == 4
    support = np.ones(4)
    assert np.isfinite(made.confidence(np.zeros((4, 2)), np.arange(4), support)).all()


@pytest.mark.parametrize("n", [1, 2, 3, 5])
def test_a_few_rows_are_enough(n):
    sample = Drawn(np.arange(float(n))[:, None], np.zeros(n, int), 0)
    places, distance = neighbors_of(np.array([[0.5]]), sample)
    assert 0 < share_of(sample.labels[places] == 0)[0] < 1 and distance[0] > 0


def test_copies_of_one_row_are_not_infinitely_dense():
    sample = Drawn(np.zeros((40, 2)), np.repeat([0, 1], 20), 0)
    made = trust_in(sample, 2, Components(np.zeros(2), None), CLEAR, [])
    confidence = made.confidence(np.zeros((2, 2)), np.array([0, 1]), np.ones(2))
    assert np.isfinite(confidence).all()


# ---- fits


def quick_model(k=3, **settings):
    return DECCS(
        k,
        network=Network(layers=(8, 3)),
        pretraining=Pretraining(n_epochs=2),
        rounds=Rounds(n_rounds=1, n_steps=20, n_init=1),
        random_state=0,
        **settings,
    )


NOISE = {
    "uniform": np.random.default_rng(0).uniform(size=(150, 10)),
    "normal": np.random.default_rng(0).normal(size=(150, 20)),
    "permuted": columns_permuted(load_wine().data, np.random.default_rng(0)),
}


@pytest.mark.parametrize("views", ["auto", None])
@pytest.mark.parametrize("kind", NOISE)
def test_noise_has_low_confidence_and_a_warning(kind, views):
    with pytest.warns(OneGroupWarning, match="Nothing speaks for clusters"):
        model = quick_model(5, views=views).fit(NOISE[kind])
    assert model.consensus_confidence(NOISE[kind]).mean() < 0.3


@pytest.mark.parametrize("load", [load_wine, load_breast_cancer])
def test_real_tables_have_no_warning(load):
    X = load().data
    with warnings.catch_warnings():
        warnings.simplefilter("error", OneGroupWarning)
        model = quick_model().fit(X)
    assert model.consensus_confidence(X).mean() > 0.5


def test_an_absurd_customer_is_not_sure():
    """The finding: a spend of 1e9 and an age of -5 had a confidence of 1.000."""
    rng = np.random.default_rng(0)
    ages = np.repeat([25.0, 60.0], 80) + rng.normal(0, 3, 160)
    spends = np.repeat([100.0, 900.0], 80) + rng.normal(0, 30, 160)
    model = quick_model(2).fit(np.column_stack([ages, spends]))
    usual, absurd = model.consensus_confidence(np.array([[25.0, 100.0], [-5.0, 1e9]]))
    assert usual > 0.7 and absurd < 1e-3


def test_one_cluster_has_nothing_to_doubt():
    X = NOISE["normal"]
    with warnings.catch_warnings():
        warnings.simplefilter("error", OneGroupWarning)
        model = quick_model(1).fit(X)
    assert model.trust_ is None


def test_saved_and_loaded_it_gives_the_same_confidence(tmp_path):
    X = load_wine().data
    model = quick_model().fit(X)
    model.save(tmp_path / "model.zip")
    loaded = DECCS.load(tmp_path / "model.zip")
    assert_array_equal(loaded.consensus_confidence(X), model.consensus_confidence(X))
    assert loaded.trust_.signs == model.trust_.signs


def test_a_model_of_before_has_the_support_as_its_confidence():
    model = quick_model().fit(load_wine().data)
    del model.trust_
    answer = model.answer(load_wine().data)
    assert_array_equal(answer.confidence, answer.support)


def test_a_count_has_the_signs_already(monkeypatch):
    X = scale(load_wine().data)
    monkeypatch.setattr(judging, "signs_of", lambda *_: pytest.fail("the signs were known"))
    model = quick_model("auto").fit(X)
    assert model.n_clusters_ > 1 and model.trust_.signs is model.count_.signs


def test_signs_of_a_method_that_does_not_look_for_them():
    X = NOISE["normal"]
    model = ConsensusClustering(3, random_state=0).fit(X)
    assert signs_for(model, source_of(X)).of_one_group
    alone = ConsensusClustering(1, random_state=0).fit(X)
    assert signs_for(alone, source_of(X)) is None


# ---- what users see


@pytest.mark.parametrize("method", ["deccs", "consensus"])
def test_the_command_line_and_the_report_say_it(method, tmp_path):
    X = NOISE["normal"][:, :4]
    table = write_table(tmp_path / "noise.csv", X)
    quick = ["--set", "pretraining.n_epochs=1", "--rounds", "0"] if method == "deccs" else []
    out = tmp_path / "run"
    code, text, _ = deccs("fit", table, "-k", 3, "-m", method, "-o", out, *quick)
    assert code == 0 and "Nothing speaks for clusters" in text
    assert "Nothing speaks for clusters" in (out / "summary.json").read_text()
    assert "Nothing speaks for clusters" in (out / "report.html").read_text()


def test_agreement_before_and_after_training_stand_side_by_side(tmp_path):
    X = load_wine().data
    model = quick_model().fit(X)
    write_report(model, X, tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text()
    before, after = model.rounds_[0].agreement, model.agreement_
    assert f"{before:.2f} \u2192 {after:.2f}" in page
    assert "Nothing speaks for clusters" not in page


def test_trust_in_a_file_must_fit():
    made = trust_of()
    with pytest.raises(ValueError, match="nothing is known of"):
        Trust(made.components, made.drawn, np.zeros(1), np.zeros(1), CLEAR).check_stored()
    with pytest.raises(ValueError, match="different columns"):
        Trust(Components(np.zeros(3), None), made.drawn, *[np.zeros(2)] * 2, CLEAR).check_stored()
    assert made.is_of(2, 2) and not made.is_of(3, 2) and not made.is_of(2, 3)
