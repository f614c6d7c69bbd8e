"""What the report shows of the number of clusters, and of how stable each cluster is."""

import numpy as np
import pytest

from deccs.labels import align_labels
from deccs.report import over_k, sections
from tests.helpers.counted import count_of, give_count, stability_of
from tests.helpers.report_stand_in import StandIn, blobs_with_labels
from tests.report.test_report import NASTY, report, unpack

VERDICTS = ["very stable", "stable", "dissolves", "doubtful", "very stable"]


@pytest.fixture
def counted():
    X = blobs_with_labels(300, 4, 5)
    model = StandIn().fit(X, sample_size=100)
    return give_count(model, X[:, :-1], range(2, 10), runners_up=[4], verdicts=VERDICTS), X


def labels_of(ks, place):
    """What the page makes of one step of the slider."""
    return unpack(ks["steps"][place]["labels"])[unpack(ks["codes"])]


# ---- the slider


def test_labels_of_each_k_come_back_from_the_page(tmp_path, counted):
    model, X = counted
    ks = report(tmp_path, model, X).data["ks"]
    assert [step["k"] for step in ks["steps"]] == list(range(2, 10))
    assert ks["steps"][ks["answer"]]["k"] == 5
    assert (labels_of(ks, ks["answer"]) == model.labels_).all()
    for way in (range(2, -1, -1), range(4, 8)):  # from the answer, at place 3, down and up
        before = model.labels_
        for place in way:
            before = align_labels(model.labels_at(ks["steps"][place]["k"]), before)
            assert (labels_of(ks, place) == before).all()
            sizes = np.bincount(before)
            expected = [[number, size] for number, size in enumerate(sizes.tolist()) if size]
            assert ks["steps"][place]["sizes"] == expected


def test_what_changes_is_said_in_the_numbers_of_the_page():
    final = np.array([2, 2, 0, 0, 1, 1])
    tried = {2: np.array([0, 0, 1, 1, 1, 1]), 3: final, 4: np.array([0, 1, 2, 2, 3, 3])}
    data = over_k.slider_data(count_of(tried, 3), tried.__getitem__, final, np.arange(6))
    changes = [step["change"] for step in data["steps"]]
    assert changes == ["joins 0 and 1", "", "splits 2 into 2 and 3"]


def test_points_drawn_get_their_labels_and_sizes_count_all(tmp_path, counted):
    model, X = counted
    data = report(tmp_path, model, X, max_points=120).data
    rows, ks = unpack(data["rows"]), data["ks"]
    assert (labels_of(ks, ks["answer"]) == model.labels_[rows]).all() and len(rows) == 120
    assert all(sum(size for _, size in step["sizes"]) == 300 for step in ks["steps"])


def test_noise_has_no_label_and_no_size():
    final = np.array([0, 0, 1, 1, -1])
    tried = {2: final, 3: np.array([0, 0, 1, -1, 2])}
    data = over_k.slider_data(count_of(tried, 2), tried.__getitem__, final, np.arange(5))
    assert labels_of(data, 0).tolist() == [0, 0, 1, 1, 255]
    assert labels_of(data, 1).tolist() == [0, 0, 1, 255, 2]
    assert data["steps"][0]["sizes"] == [[0, 2], [1, 2]]


def test_at_most_thirty_steps_and_few_bytes_for_many_points():
    n = 20_000
    fine = np.random.default_rng(0).integers(100, size=n)
    tried = {k: np.minimum(fine, k - 1) for k in range(2, 101)}
    count = count_of({k: labels[:50] for k, labels in tried.items()}, 12, supports={12: 1, 77: 0.9})
    data = over_k.slider_data(count, tried.__getitem__, tried[12], np.arange(n))
    ks = [step["k"] for step in data["steps"]]
    assert len(ks) == 30 and {12, 77} <= set(ks)
    n_bytes = len(data["codes"]["data"]) + sum(
        len(each["labels"]["data"]) for each in data["steps"]
    )
    assert n_bytes < 3 * n  # each k by itself would take 40 for each point


def test_one_cluster_can_be_the_answer(tmp_path):
    X = np.column_stack([np.random.default_rng(0).normal(size=(60, 2)), np.zeros(60)])
    model = give_count(StandIn(plain=True).fit(X), X[:, :-1], [2, 3], answer=1)
    page = report(tmp_path, model, X)
    text = (tmp_path / "report.html").read_text()
    assert "No clusters: the data looks like one group." in text
    assert [step["k"] for step in page.data["ks"]["steps"]] == [1, 2, 3]
    assert page.data["ks"]["answer"] == 0


def test_a_model_that_was_told_the_number_shows_no_slider(tmp_path):
    X = blobs_with_labels(60, 3, 2)
    page = report(tmp_path, StandIn().fit(X), X)
    (slider,) = (each for each in page.of("div") if each.get("id") == "over-k")
    assert "hidden" in slider and page.data["ks"] is None
    text = (tmp_path / "report.html").read_text()
    assert "How many clusters" not in text and "stable clusters" not in text


# ---- the section


def test_the_section_has_the_sentence_the_reasons_and_a_chart_for_each_curve(tmp_path, counted):
    model, X = counted
    page = report(tmp_path, model, X)
    text = (tmp_path / "report.html").read_text()
    section = text.split('id="count-head"')[1].split("</section>")[0]
    assert "5 clusters; 4 would also be defensible: it joins" in section
    assert text.split('class="lead">')[1].startswith("5 clusters; 4 would")
    assert "a reason" in section and section.count("<figure>") == 5
    assert section.count('class="reference"') == 3 and section.count('class="answer"') == 5
    assert section.count('class="other"') == 5
    labels = [svg["aria-label"] for svg in page.of("svg") if "aria-label" in svg]
    curve = model.count_.curves["agreement"]
    assert labels[0].startswith("agreement: from ")
    assert labels[0].endswith(f"; {curve[3]:.3f} at the answer")
    assert f"<td>{curve[0]:.3f}</td>" in section  # the numbers as a table
    assert "2 to 3" in section


def test_the_scale_of_k_is_logarithmic_for_large_numbers():
    linear, log = over_k.k_scale([2, 11, 20]), over_k.k_scale([2, 20, 200])
    for scale, middle in ((linear, 11), (log, 20)):
        assert scale(middle) == pytest.approx((over_k.LEFT + over_k.RIGHT) / 2)
    assert over_k.k_scale([3])(3) == over_k.LEFT + 10


@pytest.mark.parametrize("seed", range(20))
def test_ranges_hold_all_values_and_zero(seed):
    rng = np.random.default_rng(seed)
    values = rng.normal(size=5) * 10.0 ** rng.integers(-6, 6) + rng.normal()
    low, high = over_k.value_range(values)
    assert low <= min(values.min(), 0) and high >= max(values.max(), 0)
    assert high - low <= 3 * (max(values.max(), 0) - min(values.min(), 0))


def test_unknown_numbers_and_a_single_k_do_no_harm():
    for curves in ({"new": np.full(1, np.nan), "new reference": np.zeros(1)}, {}):
        count = count_of({2: np.array([0, 1])}, 2, curves=curves)
        html = "".join(
            over_k.chart(count, name, values, None) for name, values in count.curves.items()
        )
        assert "nan" not in html
        assert "nan" not in over_k.numbers(count)


# ---- stability


def test_each_cluster_has_its_stability_and_those_that_dissolve_stand_out(tmp_path, counted):
    model, X = counted
    page = report(tmp_path, model, X)
    text = (tmp_path / "report.html").read_text()
    assert "<dt>stable clusters</dt><dd>3 of 5</dd>" in text
    assert "Cluster 2 dissolves when the data are drawn again; 3 is doubtful." in text
    sizes = text.split('id="sizes-head"')[1].split("</section>")[0]
    assert "0.30 " + sections.badge("dissolves") in sizes
    cards = text.split('<article class="card">')[1:]
    assert [("dissolves" in card, "doubtful" in card) for card in cards] == [
        (False, False),
        (False, False),
        (True, False),
        (False, True),
        (False, False),
    ]
    assert "Stability" in page.cells


def test_stability_is_shown_without_a_search_for_k(tmp_path):
    X = blobs_with_labels(60, 3, 2)
    model = StandIn(plain=True).fit(X)
    model.cluster_stability_ = stability_of(["stable"])  # of the second nothing is known
    report(tmp_path, model, X)
    text = (tmp_path / "report.html").read_text()
    assert (
        "0.80 " + sections.badge("stable") in text
        and '<td><span class="first">-</span></td>' in text
    )
    assert 'class="lead' not in text.split("</style>")[1]  # nothing to warn of


def test_strings_from_outside_do_no_harm(tmp_path, counted):
    model, X = counted
    give_count(model, X[:, :-1], [2, 3, 5], runners_up=[3], reasons=(NASTY,), verdicts=[NASTY] * 5)
    for name in (NASTY, f"{NASTY} reference"):
        model.count_.curves[name] = np.ones(3)
    page = report(tmp_path, model, X)
    assert page.of("b") == [] and page.of("img") == [] and len(page.of("script")) == 2
    assert all(not name.startswith("on") for _, attributes in page.elements for name in attributes)
