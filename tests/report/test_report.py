import base64
import json
import os
import re
import tomllib
from html.parser import HTMLParser
from io import BytesIO
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from matplotlib.image import imread
from sklearn.decomposition import PCA

from deccs.data import source
from deccs.data.source import source_of
from deccs.labels import align_labels
from deccs.report import clusters, points, write_report
from deccs.report.page import SCRIPTS, part
from tests.helpers.report_stand_in import StandIn, blobs_with_labels

VOID = {"meta", "link", "input", "img", "br"}
NASTY = "</script><b>bold</b><img src=x onerror='window.harmed=1'>{{data}}"


class Page(HTMLParser):
    """Elements with their attributes, texts by id of the element, and whether every tag is closed in order."""

    def __init__(self, text):
        super().__init__()
        self.elements, self.open, self.texts, self.cells = [], [], {}, []
        self.feed(text)
        self.close()
        assert not self.open, f"left open: {self.open}"

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID and tag != "path":
            self.open.append((tag, dict(attrs).get("id")))

    def handle_endtag(self, tag):
        if tag == "path":
            return
        assert self.open.pop()[0] == tag

    def handle_startendtag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data):
        if self.open and self.open[-1][1]:
            self.texts[self.open[-1][1]] = self.texts.get(self.open[-1][1], "") + data
        if self.open and self.open[-1][0] in ("td", "th", "option", "h1", "button"):
            self.cells.append(data)

    @property
    def data(self):
        return json.loads(self.texts["data"])

    def of(self, tag):
        return [attributes for name, attributes in self.elements if name == tag]


def unpack(array):
    return np.frombuffer(base64.b64decode(array["data"]), f"<{array['type']}")


def places(frame):
    steps = unpack(frame["xy"]).reshape(-1, 2)
    return np.array(frame["low"]) + steps / 65_535 * frame["size"]


def report(tmp_path, model, X, **options):
    write_report(model, X, tmp_path / "report.html", **options)
    return Page((tmp_path / "report.html").read_text(encoding="utf-8"))


@pytest.fixture
def stand_in():
    X = blobs_with_labels(300, 10, 3)
    return StandIn().fit(X, sample_size=100), X


# ---- what the page holds


def test_a_real_model_comes_back_from_its_page(tmp_path, fitted, blobs):
    data = report(tmp_path, fitted, blobs.X).data
    assert (unpack(data["labels"]) == fitted.labels_).all()
    for labels, member in zip(fitted.members_predict(blobs.X), data["members"], strict=True):
        assert (unpack(member["labels"]) == labels).all()
    confidence, scale = fitted.consensus_confidence(blobs.X), data["confidence"]
    read = scale["low"] + unpack(scale["values"]) / 65_534 * (scale["high"] - scale["low"])
    assert read == pytest.approx(confidence, abs=1e-4)

    *rounds, result = data["frames"]
    assert result["places"] is None and result["name"] == "Result, all points"
    assert places(result) == pytest.approx(
        fitted.transform(blobs.X), abs=result["size"] / 65_000
    )  # 2-D: as it is
    for round_, frame in zip(fitted.rounds_, rounds, strict=True):
        assert (unpack(frame["places"]) == round_.sample).all()
        assert places(frame) == pytest.approx(round_.Z, abs=frame["size"] / 65_000)
        for name, partition in zip(round_.member_names, round_.base_partitions, strict=True):
            expected = align_labels(partition, fitted.labels_[round_.sample])
            assert (unpack(frame["members"][name]) == np.where(expected < 0, 255, expected)).all()


def test_ten_dimensions_are_drawn_by_one_pca_for_all_rounds(tmp_path, stand_in):
    model, X = stand_in
    data = report(tmp_path, model, X).data
    pca = PCA(2).fit(X[:, :-1])
    signs = np.where(pca.components_[[0, 1], np.abs(pca.components_).argmax(1)] < 0, -1, 1)
    assert places(data["frames"][-1]) == pytest.approx(pca.transform(X[:, :-1]) * signs, abs=0.01)
    first = model.rounds_[0]
    assert places(data["frames"][0]) == pytest.approx(pca.transform(first.Z) * signs, abs=0.01)


def test_a_member_left_out_or_without_labels_and_other_names_of_the_same_clusters(
    tmp_path, stand_in
):
    model, X = stand_in
    frames = report(tmp_path, model, X).data["frames"]
    assert [list(frame["members"]) for frame in frames[:-1]] == [
        ["kmeans", "ward", "fine"],
        ["kmeans", "ward"],
        ["kmeans", "ward", "fine"],
    ]
    sample = model.rounds_[0].sample
    assert (
        unpack(frames[0]["members"]["kmeans"]) == model.labels_[sample]
    ).all()  # was numbered otherwise
    assert (unpack(frames[0]["members"]["ward"])[:2] == 255).all()  # -1: no label
    assert unpack(frames[0]["members"]["fine"]).max() == 3  # four clusters, the others 3


def test_one_cluster_and_one_dimension(tmp_path):
    X = np.column_stack([np.arange(20.0), np.zeros(20)])
    page = report(tmp_path, StandIn().fit(X), X)
    assert set(unpack(page.data["labels"])) == {0}
    assert places(page.data["frames"][-1]) == pytest.approx(
        np.column_stack([np.arange(20), np.zeros(20)]), abs=0.01
    )
    assert "In no column does its mean differ" in (tmp_path / "report.html").read_text()


def test_more_points_than_may_be_drawn(tmp_path):
    X = blobs_with_labels(1_000, 2, 3)
    model = StandIn().fit(X, sample_size=200)
    page = report(tmp_path, model, X, max_points=300, ids=[f"n{row}" for row in range(1_000)])
    rows = unpack(page.data["rows"])
    assert page.data["points"] == len(rows) == 300 and (np.diff(rows.astype(int)) > 0).all()
    assert page.data["ids"] == [f"n{row}" for row in rows]
    assert (unpack(page.data["labels"]) == model.labels_[rows]).all()
    for round_, frame in zip(model.rounds_, page.data["frames"], strict=False):
        drawn = rows[unpack(frame["places"])]
        assert len(drawn) == 50 and set(drawn) <= set(round_.sample)  # half of 300 for three rounds
        assert places(frame) == pytest.approx(X[drawn, :2] * (round_.number + 1), abs=0.01)
    text = (tmp_path / "report.html").read_text()
    assert "300 of 1,000 points are drawn" in text and "1,000</dd>" in text


def test_tsne_is_of_the_result_only(tmp_path, monkeypatch):
    monkeypatch.setattr(points, "MOST_TSNE", 40)
    X = blobs_with_labels(60, 4, 2)
    page = report(tmp_path, StandIn().fit(X), X, projection="tsne")
    shown = unpack(page.data["frames"][-1]["places"])
    assert len(shown) == 40 == len(places(page.data["frames"][-1]))
    go = {int(button["data-point"]) for button in page.of("button") if "data-point" in button}
    assert go <= set(shown.tolist())  # no way to what is not there


def test_the_least_certain_points_come_first(tmp_path, stand_in):
    model, X = stand_in
    cells = report(tmp_path, model, X, ids=[f"person {row}" for row in range(300)]).cells
    named = [cell for cell in cells if cell.startswith("person")]
    assert named == [f"person {row}" for row in range(299, 279, -1)]


def test_columns_to_color_by(tmp_path, stand_in):
    model, X = stand_in
    words = np.array(["b", "a", None] * 100, dtype=object)
    words[0] = "a"
    numbers = np.where(np.arange(300) == 7, np.nan, np.arange(300.0))
    data = report(
        tmp_path,
        model,
        X,
        columns={
            "words": words,
            "numbers": numbers,
            "codes": np.arange(300) % 3 * 10,
            "many": np.arange(300).astype(str),
        },
    ).data
    by_name = {column["name"]: column for column in data["columns"]}
    assert by_name["words"]["names"] == ["a", "b"]  # 101 and 99 of them
    assert unpack(by_name["words"]["labels"])[:6].tolist() == [0, 0, 255, 1, 0, 255]
    codes = unpack(by_name["numbers"]["values"])
    assert codes[7] == 65_535 and (codes[0], codes[-1]) == (0, 65_534)
    assert by_name["codes"]["names"] == ["0", "10", "20"]
    assert len(by_name["many"]["names"]) == 48 and by_name["many"]["names"][-1] == "253 others"


def test_what_a_method_does_not_have_is_left_out(tmp_path):
    X = blobs_with_labels(60, 3, 2)
    X[5, -1] = -1  # noise
    page = report(tmp_path, StandIn(plain=True).fit(X), X)
    text = (tmp_path / "report.html").read_text()
    assert page.data["confidence"] is None and page.data["members"] == []
    assert len(page.data["frames"]) == 1 and unpack(page.data["labels"])[5] == 255
    assert [option["value"] for option in page.of("option")] == ["cluster"]
    names = {section["aria-labelledby"] for section in page.of("section")}
    assert names == {"scatter-head", "sizes-head", "different-head", "settings-head"}
    (slide,) = (each for each in page.of("div") if each.get("class") == "slide")
    assert "hidden" in slide and "{{" not in text
    assert (
        "<dt>points without a cluster</dt><dd>1</dd>" in text
        and "confidence" not in text.split("<script")[0].split("</style>")[1]
    )


def test_an_answer_at_hand_is_not_computed_again(tmp_path, stand_in, monkeypatch):
    model, X = stand_in
    answer = model.answer(X)
    write_report(model, X, tmp_path / "expected.html")
    monkeypatch.delattr(StandIn, "answer")
    write_report(model, X, tmp_path / "report.html", answer=answer)
    assert (tmp_path / "report.html").read_bytes() == (tmp_path / "expected.html").read_bytes()


def test_settings_are_listed_by_their_nested_names(tmp_path, fitted, blobs):
    report(tmp_path, fitted, blobs.X)
    text = (tmp_path / "report.html").read_text()
    rows = dict(re.findall(r'<th scope="row">([a-z_.]+)</th><td><code>(.*?)</code></td>', text))
    assert rows["rounds.n_rounds"] == "2" and rows["network.layers"] == "(8, 2)"
    assert "rounds" not in rows and "checkpoint" not in rows
    given = dict(re.findall(r'<th scope="row">([a-z_.]+)</th><td><code>.*?</td><td>(\w+)', text))
    assert given["rounds.n_rounds"] == "set" and given["rounds.center"] == "default"
    assert list(given.values()) == sorted(given.values(), reverse=True)  # those set come first


def test_more_labels_than_a_byte_can_tell():
    labels = np.array([-1, 0, 254, 300])
    assert unpack(points.packed_labels(labels)).tolist() == [65_535, 0, 254, 300]
    assert unpack(points.packed_labels(labels[:3])).tolist() == [255, 0, 254]


def test_the_page_knows_rows_and_cluster_numbers_of_the_fit(tmp_path, stand_in):
    model, X = stand_in
    page = report(tmp_path, model, X)
    assert page.data["editing"] == {"n_rows": 300, "rows": None, "clusters": [0, 1, 2], "next": 3}
    rows = np.arange(300) * 2 + 1
    page = report(tmp_path, model, X, max_points=60, sample_of=(rows, 700))
    editing = page.data["editing"]
    assert editing["n_rows"] == 700
    assert (unpack(editing["rows"]) == rows[unpack(page.data["rows"])]).all()


def test_clusters_that_edits_have_retired_are_not_shown(tmp_path):
    X = blobs_with_labels(60, 2, 3)
    X[X[:, -1] == 1, -1] = 0  # 1 was merged into 0
    model = StandIn(plain=True).fit(X)
    model.n_clusters_, model.clusters_ = 4, (0, 2)  # and 3 was dropped
    names = ["both", "cluster 1, merged into 0", "cluster 2", "cluster 3, dropped"]
    page = report(tmp_path, model, X, names=names)
    assert page.data["editing"]["clusters"] == [0, 2] and page.data["editing"]["next"] == 4
    text = (tmp_path / "report.html").read_text().split('<script type="application/json"')[0]
    assert "<dt>clusters</dt><dd>2</dd>" in text
    assert text.count('<article class="card">') == 2 and text.count("0 · both") == 2  # sizes, cards
    assert "merged into" not in text and "dropped" not in text


# ---- numbers by hand


def test_standardized_differences_by_hand():
    # Column 0: mean 3, deviations -3 -1 1 3, variance 20/4 = 5. Means of the halves 1 and 5: -2 and 2 over sqrt(5).
    # Column 1 never changes; cluster 2 has no point.
    X = np.array([[0, 7.3], [2, 7.3], [4, 7.3], [6, 7.3]])
    found = clusters.differences(source_of(X), np.array([0, 0, 1, 1]), 3)
    step = 2 / np.sqrt(5)
    assert found.standardized == pytest.approx(np.array([[-step, 0], [step, 0], [0, 0]]))
    assert found.sizes.tolist() == [2, 2, 0] and (found.lowest, found.highest) == (0, 7.3)


def test_differences_in_one_pass_are_those_of_all_rows_at_once(monkeypatch):
    X = np.random.default_rng(0).poisson(0.5, (50, 4)) + np.array([0, 1e8, -1e8, 5])
    labels = np.arange(50) % 3
    labels[7] = -1  # noise counts among all points, but in no cluster
    expected = [(X[labels == k].mean(0) - X.mean(0)) / X.std(0) for k in range(3)]
    for size in (64, 7, 1):
        monkeypatch.setattr(source, "rows_at_once", lambda width, size=size: size)
        for rows in (X, sp.csr_array(X)):
            found = clusters.differences(source_of(rows), labels, 3)
            assert found.standardized == pytest.approx(np.array(expected), rel=1e-6)
            assert found.sizes.tolist() == [17, 16, 16]
            assert (found.lowest, found.highest) == (X.min(), X.max())


def test_the_features_named_are_those_that_differ(tmp_path):
    X = np.column_stack(
        [np.tile([0.0, 1.0], 20), np.repeat([0.0, 10.0], 20), np.repeat([0, 1], 20)]
    )
    page = report(tmp_path, StandIn().fit(X), X, feature_names=["noise", "height", "group"])
    text = (tmp_path / "report.html").read_text()
    cards = text.split('<article class="card">')[1:]
    assert len(cards) == 2
    assert "height" in cards[0] and "noise" not in cards[0]  # no difference, no row
    assert "-1.00" in cards[0] and "+1.00" in cards[1]  # mean 0 of 5, deviation 5
    assert "height" in page.cells


def test_images_are_shown_by_mean_and_nearest(tmp_path):
    X = np.array(
        [[0, 0, 0, 0], [0, 2, 0, 0], [0, 1, 0, 0], [9, 10, 8, 1], [9, 10, 8, 1]], dtype=float
    )
    model = StandIn().fit(X)  # labels 0 0 0 1 1
    images = report(tmp_path, model, X, image_shape=(2, 2)).of("img")
    assert [image["alt"] for image in images[:4]] == [
        "Mean image of cluster 0",
        *(f"row {row}, near the center of cluster 0" for row in (2, 0, 1)),
    ]
    mean = imread(BytesIO(base64.b64decode(images[0]["src"].split(",")[1])))
    assert np.round(mean * 255) == pytest.approx(
        np.array([[0, 26], [0, 0]])
    )  # 1 of 10 in 255 gray steps


def test_large_images_are_made_small():
    image = imread(BytesIO(clusters.as_png(np.arange(200.0 * 100).reshape(200, 100), 0, 20_000)))
    assert image.shape == (50, 25)
    assert image[0, 1] == pytest.approx(round(4 / 20_000 * 255) / 255)


# ---- no harm, no network, for all readers


def test_strings_from_outside_do_no_harm(tmp_path):
    X = blobs_with_labels(40, 2, 2)
    model = StandIn(note=NASTY).fit(X, member_names=(NASTY, "ward", "fine"))
    page = report(
        tmp_path,
        model,
        X,
        title=NASTY,
        ids=[NASTY] * 40,
        feature_names=[NASTY, "x", "y"],
        columns={NASTY: np.array([NASTY, "plain"] * 20)},
    )
    assert page.of("b") == [] and page.of("img") == []
    assert len(page.of("script")) == 2
    assert page.data["ids"][0] == NASTY and page.data["columns"][0]["name"] == NASTY
    assert page.cells.count(NASTY) >= 4  # seen as they were written
    assert all(not name.startswith("on") for _, attributes in page.elements for name in attributes)


def test_nothing_is_fetched_and_only_the_page_s_own_script_may_run(tmp_path, stand_in):
    page = report(tmp_path, *stand_in)
    links = [
        value
        for _, attributes in page.elements
        for name, value in attributes.items()
        if name in ("src", "href")
    ]
    assert all(link.startswith(("data:", "#")) for link in links)
    policy = next(meta["content"] for meta in page.of("meta") if "http-equiv" in meta)
    assert "default-src 'none'" in policy and "script-src 'sha256-" in policy
    for name in ("page.html", "page.css", *SCRIPTS):
        assert not re.search(
            r"https?://(?!www\.w3\.org/2000/svg)|@import|url\(|fetch\(|XMLHttp", part(name)
        )


def test_everything_has_a_name_for_those_who_cannot_see_it(tmp_path, stand_in):
    page = report(tmp_path, *stand_in)
    ids = [attributes["id"] for _, attributes in page.elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    for _, attributes in page.elements:
        for name in ("aria-labelledby", "aria-describedby", "for"):
            assert attributes.get(name) is None or attributes[name] in ids
    assert page.of("section") and all("aria-labelledby" in each for each in page.of("section"))
    assert all(svg.get("aria-hidden") or svg.get("aria-label") for svg in page.of("svg"))
    assert all("scope" in head for head in page.of("th"))
    assert len(page.of("caption")) == len(page.of("table")) > 5
    assert page.of("html") == [{"lang": "en"}]
    assert any(attributes.get("aria-live") == "polite" for attributes in page.of("p"))


def test_two_reports_are_the_same(tmp_path, stand_in):
    for name in ("a", "b"):
        write_report(*stand_in, tmp_path / name)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


@pytest.mark.parametrize("theme", [0, 1])
def test_colors_stand_out_and_stay_apart_for_the_color_blind(theme):
    pairs = dict(re.findall(r"--(\w+): light-dark\((#\w+, #\w+)\)", part("page.css")))
    colors = {name: linear(pair.split(", ")[theme]) for name, pair in pairs.items()}
    ground = colors["ground"]
    palette = [colors[f"c{place}"] for place in range(8)]
    assert min(contrast(each, ground) for each in palette) >= 3  # graphics, WCAG 1.4.11
    for name in ("ink", "soft", "accent"):
        assert min(contrast(colors[name], colors[under]) for under in ("ground", "surface")) >= 4.5
    for vision in VISIONS:
        assert (
            min(
                np.linalg.norm(lab(vision @ a) - lab(vision @ b))
                for a, b in combinations(palette, 2)
            )
            > 18
        )


# Machado, Oliveira and Fernandes 2009: full sight, and none of one kind of cone.
VISIONS = [
    np.eye(3),
    np.array([[0.152, 1.053, -0.205], [0.115, 0.786, 0.099], [-0.004, -0.048, 1.052]]),
    np.array([[0.367, 0.861, -0.228], [0.280, 0.673, 0.047], [-0.012, 0.043, 0.969]]),
    np.array([[1.256, -0.077, -0.179], [-0.078, 0.931, 0.148], [0.005, 0.691, 0.304]]),
]


def linear(color):
    value = np.array([int(color[at : at + 2], 16) for at in (1, 3, 5)]) / 255
    return np.where(value <= 0.04045, value / 12.92, ((value + 0.055) / 1.055) ** 2.4)


def contrast(a, b):
    dark, light = sorted(color @ [0.2126, 0.7152, 0.0722] for color in (a, b))
    return (light + 0.05) / (dark + 0.05)


def lab(color):
    xyz = np.array(
        [[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]
    ) @ color.clip(0, 1)
    f = np.cbrt(np.maximum(xyz / [0.9505, 1, 1.089], 0.008856))
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


# ---- bad input


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"ids": [1, 2]}, "ids must name each of the 300 points, got 2"),
        (
            {"columns": {"age": [1, 2, 3]}},
            r"'age' must have one value per point, shape \(300,\); got shape \(3,\)",
        ),
        ({"feature_names": ["a"]}, "each of the 11 columns, got 1"),
        ({"image_shape": (3, 4)}, r"height x width = 11 columns, got \(3, 4\)"),
        ({"max_points": 0}, "max_points must be a whole number of at least 1, got 0"),
        ({"projection": "umap"}, "projection must be 'pca' or 'tsne', got 'umap'"),
    ],
)
def test_wrong_arguments_are_named_and_nothing_is_written(tmp_path, stand_in, options, message):
    with pytest.raises(ValueError, match=message):
        write_report(*stand_in, tmp_path / "report.html", **options)
    assert list(tmp_path.iterdir()) == []


def test_other_data_than_that_of_the_fit_is_refused(tmp_path, stand_in):
    model, X = stand_in
    with pytest.raises(ValueError, match="fitted on, 300 rows; got shape"):
        write_report(model, X[:10], tmp_path / "report.html")
    with pytest.raises(ValueError, match=r"in the same order: \d\d% of the rows"):
        write_report(model, X[::-1], tmp_path / "report.html")
    with pytest.raises(ValueError, match="in the same order"):
        write_report(model, X, tmp_path / "report.html", answer=model.answer(X[::-1]))
    with pytest.raises(FileNotFoundError, match="there is no folder"):
        write_report(model, X, tmp_path / "nowhere" / "report.html")


@pytest.mark.parametrize("function", ["replace", "fsync"])
def test_a_report_that_fails_leaves_the_old_one(tmp_path, stand_in, monkeypatch, function):
    (tmp_path / "report.html").write_text("old")
    monkeypatch.setattr(os, function, lambda *_: (_ for _ in ()).throw(OSError("disk full")))
    with pytest.raises(OSError, match="disk full"):
        write_report(*stand_in, tmp_path / "report.html")
    assert (tmp_path / "report.html").read_text() == "old" and len(list(tmp_path.iterdir())) == 1


def test_the_page_s_files_are_in_the_package():
    with (Path(__file__).parents[2] / "pyproject.toml").open("rb") as file:
        listed = tomllib.load(file)["tool"]["setuptools"]["package-data"]["deccs"]
    assert {f"report/{name}" for name in ("page.html", "page.css", *SCRIPTS)} <= set(listed)


@pytest.mark.filterwarnings("error")
def test_differences_of_columns_of_any_size():
    labels = np.arange(60) % 3
    X = np.random.default_rng(0).normal(size=(60, 4)) + labels[:, None]
    expected = clusters.differences(source_of(X), labels, 3)
    units = np.array([1e300, 1e-300, 1.0, 1e-200])
    found = clusters.differences(source_of(X * units), labels, 3)
    np.testing.assert_allclose(found.standardized, expected.standardized, rtol=1e-9)
    np.testing.assert_allclose(found.cluster_means, expected.cluster_means * units, rtol=1e-9)
    far = clusters.differences(source_of(np.round(1000 * X) + 1e15), labels, 3)  # order numbers
    np.testing.assert_allclose(far.standardized, expected.standardized, atol=1e-2)
