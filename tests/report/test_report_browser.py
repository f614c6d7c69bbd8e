"""The report in a real browser. Debian: apt-get install chromium chromium-driver."""

from itertools import pairwise

import numpy as np
import pytest

from deccs.report import write_report
from tests.describing.tables import random_table
from tests.helpers.browser import (
    NASTY,
    NEEDS_BROWSER,
    assert_quiet,
    click,
    drawing,
    emulate,
    opened,
    put,
    text,
)
from tests.helpers.counted import give_count
from tests.helpers.report_stand_in import StandIn, blobs_with_labels

pytestmark = NEEDS_BROWSER


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """A small page with everything in it, one with the least, and one of 70,000 points."""
    folder = tmp_path_factory.mktemp("report")
    X = blobs_with_labels(400, 5, 3)
    model = StandIn(note=NASTY).fit(X, sample_size=150, member_names=("kmeans", NASTY, "fine"))
    write_report(
        model,
        X,
        folder / "small.html",
        title=NASTY,
        ids=[f"p{row}" for row in range(400)],
        columns={NASTY: np.array([NASTY, "plain"] * 200), "weight": X[:, 0]},
    )
    X = blobs_with_labels(200, 3, 3)
    X[:5, -1] = -1  # noise
    write_report(StandIn(plain=True).fit(X), X, folder / "plain.html")
    X = blobs_with_labels(400, 4, 6)
    model = StandIn().fit(X, sample_size=150)
    verdicts = ["very stable", "stable", "dissolves", "doubtful", "stable", "stable"]
    give_count(
        model,
        X[:, :-1],
        [*range(2, 13), 24],
        runners_up=[4, 7],
        verdicts=verdicts,
        reasons=(NASTY, "a reason in words"),
    )
    write_report(model, X, folder / "counted.html")
    columns, labels = random_table(
        1, n=400, names=(NASTY, "orders", "city", "news", "Size", "joined")
    )
    X = np.column_stack([blobs_with_labels(400, 4, 4)[:, :-1], labels])
    model = StandIn().fit(X, sample_size=150)
    give_count(model, X[:, :-1], [*range(2, 7)], runners_up=[3])
    write_report(model, X, folder / "named.html", described=columns)
    X = blobs_with_labels(70_000, 10, 20)
    write_report(StandIn().fit(X, n_rounds=11, sample_size=5_600), X, folder / "large.html")
    return folder


@pytest.fixture
def small(browser, pages):
    return opened(browser, pages / "small.html")


@pytest.fixture
def counted(browser, pages):
    """Six clusters; 2 to 12 and 24 were tried."""
    return opened(browser, pages / "counted.html")


@pytest.mark.slow
def test_70_000_points_open_within_two_seconds_and_a_few_megabytes(browser, pages):
    assert (pages / "large.html").stat().st_size < 4e6
    times = []
    for _ in range(3):  # the machine may be busy with other tests
        opened(browser, pages / "large.html")
        times.append(
            browser.execute_script(
                "return [Number(document.documentElement.dataset.ready), performance.timing.loadEventEnd"
                " - performance.timing.navigationStart]"
            )
        )
    ready, loaded = min(times, key=max)
    print(f"first picture after {ready} ms, page loaded after {loaded} ms")
    assert 0 < ready < 2_000 and loaded < 2_000
    assert "70,000 points" in text(browser, "frame")
    assert_quiet(browser)


def test_without_rounds_members_and_confidence_the_page_works(browser, pages):
    page = opened(browser, pages / "plain.html")
    whole = drawing(page)
    assert text(page, "frame") == "Result, all points (200 points)"
    assert "no label" in text(page, "legend")
    slide = page.find_element("class name", "slide")
    assert not slide.is_displayed()
    put(page, "query", "17", "input")
    click(page, "#find button")
    assert text(page, "description").startswith("row 17, cluster ") and drawing(page) != whole
    assert "confidence" not in text(page, "description")
    assert_quiet(page)


def test_the_slider_changes_the_drawing_and_comes_back(small):
    last = drawing(small)
    seen = []
    for number in range(4):
        put(small, "round", number, "input")
        seen.append(drawing(small))
        if number < 3:
            assert text(small, "frame").startswith(f"Round {number}") and "150 points" in text(
                small, "frame"
            )
    # The stand-in's rounds draw other samples; the last position is the result.
    assert len(set(seen)) == 4 and seen[-1] == last
    assert text(small, "frame") == "Result, all points (400 points)"
    assert_quiet(small)


def test_each_color_changes_the_drawing_and_the_legend(small):
    choices = small.execute_script(
        "return [...document.getElementById('color').options].map(each => each.value)"
    )
    assert choices == [
        "cluster",
        "confidence",
        "member:0",
        "member:1",
        "member:2",
        "column:0",
        "column:1",
    ]
    seen = {}
    for choice in choices:
        put(small, "color", choice, "change")
        seen[choice] = drawing(small)
    assert (
        seen["cluster"] == seen["member:0"] == seen["member:1"]
    )  # the same clusters, the same colors
    others = [seen[choice] for choice in choices if choice not in ("member:0", "member:1")]
    assert len(set(others)) == 5
    assert text(small, "legend").startswith("-")  # the lowest weight
    put(small, "round", 1, "input")
    put(small, "color", "member:2", "change")
    assert text(small, "frame").endswith("fine was left out") and "no label" in text(
        small, "legend"
    )
    assert_quiet(small)


def test_the_keyboard_goes_from_point_to_point_and_zooms(small):
    from selenium.webdriver.common.keys import Keys

    scatter = small.find_element("id", "over")
    whole = drawing(small)
    described = []
    for key in [Keys.ARROW_RIGHT, Keys.ARROW_LEFT, Keys.ARROW_UP]:
        scatter.send_keys(key)
        described.append(text(small, "description"))
    assert all(
        ", cluster " in each and ", confidence 0." in each and each.startswith("p")
        for each in described
    )
    assert all(before != after for before, after in pairwise(described))
    scatter.send_keys("+")
    assert drawing(small) != whole
    scatter.send_keys("0")
    assert drawing(small) == whole
    scatter.send_keys(Keys.SHIFT + Keys.ARROW_LEFT)
    assert drawing(small) != whole
    assert_quiet(small)


def test_the_pointer_looks_drags_and_zooms(small):
    from selenium.webdriver import ActionChains
    from selenium.webdriver.common.actions.wheel_input import ScrollOrigin

    scatter = small.find_element("id", "over")
    click(small, ".go")  # p399, the least certain, into the middle
    assert text(small, "description").startswith("p399, cluster")
    small.execute_script("document.activeElement.blur()")
    assert text(small, "description") == ""
    for attempt in range(20):  # a busy browser may miss a move
        ActionChains(small).move_to_element_with_offset(scatter, 2, 2 - attempt % 2).perform()
        drawing(small)
        if text(small, "description"):
            break
    assert text(small, "description").startswith("p399, cluster") and "p399" in text(small, "tip")
    before = drawing(small)
    ActionChains(small).click_and_hold(scatter).move_by_offset(60, 30).release().perform()
    dragged = drawing(small)
    assert dragged != before
    ActionChains(small).scroll_from_origin(ScrollOrigin.from_element(scatter), 0, -200).perform()
    assert drawing(small) != dragged
    click(small, "#all")
    assert drawing(small) not in (before, dragged)
    assert_quiet(small)


def test_a_point_is_found_by_its_id(small):
    put(small, "query", "p17", "input")
    click(small, "#find button")
    assert text(small, "description").startswith("p17, ")
    put(small, "query", "nobody", "input")
    click(small, "#find button")
    assert text(small, "description") == "No point drawn is called nobody."


def test_the_legend_shows_some_clusters_only(small):
    whole = drawing(small)
    click(small, "#legend button")
    assert drawing(small) != whole
    assert (
        small.execute_script("return document.querySelector('#legend button').ariaPressed")
        == "true"
    )
    click(small, "#legend button")
    assert drawing(small) == whole


def test_dark_by_the_system_and_by_the_switch(small):
    ground = "return getComputedStyle(document.body).backgroundColor"
    light, drawn = small.execute_script(ground), drawing(small)
    emulate(small, 1280, 900, prefers_color_scheme="dark")
    dark = small.execute_script(ground)
    assert (light, dark) == ("rgb(255, 255, 255)", "rgb(21, 24, 28)") and drawing(small) != drawn
    click(small, "#theme")
    assert small.execute_script(ground) == light and drawing(small) == drawn
    assert_quiet(small)


def test_a_phone_has_no_sideways_scroll_and_less_motion_is_kept_to(small):
    emulate(small, 390, 844, prefers_reduced_motion="reduce")
    wide, plot = small.execute_script(
        "return [document.documentElement.scrollWidth, document.getElementById('plot').clientWidth]"
    )
    assert plot > 300
    assert wide <= 390, (
        small.execute_script("""
        const inside = (each) => each.closest(".wide") && !each.matches(".wide");
        return [...document.querySelectorAll("main *, header *")].filter((each) => !inside(each)
            && each.getBoundingClientRect().right > 391).map((each) => each.outerHTML.slice(0, 90))""")
    )
    assert (
        small.execute_script("return getComputedStyle(document.documentElement).scrollBehavior")
        == "auto"
    )


def test_strings_from_outside_do_no_harm(small):
    for choice in ("member:1", "column:0"):
        put(small, "color", choice, "change")
    assert NASTY in text(small, "legend")
    assert small.execute_script(
        "return window.harmed === undefined && !document.querySelector('b, main img')"
    )
    assert small.title == NASTY
    assert_quiet(small)


# ---- the slider over the number of clusters


def legend(browser):
    """The numbers of the clusters in the legend."""
    return browser.execute_script(
        "return [...document.querySelectorAll('#legend button span:first-of-type')]"
        ".map(each => Number(each.textContent.split(' ')[1]))"
    )


def test_the_slider_over_k_moves_by_keyboard_and_home_returns_to_the_answer(counted):
    from selenium.webdriver.common.keys import Keys

    slider = counted.find_element("id", "k")
    answer = drawing(counted)
    assert slider.get_attribute("aria-valuetext") == "6 clusters: the answer"
    assert legend(counted) == list(range(6))
    seen = [answer]
    for k in (5, 4, 3):
        slider.send_keys(Keys.ARROW_LEFT)
        seen.append(drawing(counted))
        assert text(counted, "k-value") == str(k) and len(legend(counted)) == k
        assert slider.get_attribute("aria-valuetext").startswith(
            f"{k} clusters: against the answer, it joins "
        )
        assert text(counted, "k-text").startswith(slider.get_attribute("aria-valuetext"))
        assert (
            counted.execute_script("return document.getElementById('k-sizes').children.length") == k
        )
    assert len(set(seen)) == 4
    assert set(legend(counted)) <= set(range(6))  # those that continue keep their numbers
    slider.send_keys(Keys.HOME)
    assert slider.get_attribute("aria-valuetext") == "6 clusters: the answer"
    assert drawing(counted) == answer
    slider.send_keys(Keys.END)
    assert text(counted, "k-value") == "24" and len(legend(counted)) == 24
    assert "splits" in slider.get_attribute("aria-valuetext")
    click(counted, "#k-home")
    assert drawing(counted) == answer
    assert counted.execute_script("return document.activeElement.id") == "k"
    assert_quiet(counted)


def test_the_sliders_over_k_and_over_the_rounds_work_together(counted):
    put(counted, "round", 1, "input")
    round_at_answer = drawing(counted)
    put(counted, "k", 1, "input")  # three clusters
    assert drawing(counted) != round_at_answer and len(legend(counted)) == 3
    put(counted, "round", 3, "input")
    assert len(legend(counted)) == 3 and text(counted, "k-value") == "3"
    put(counted, "query", "17", "input")
    click(counted, "#find button")
    assert ", with 3 clusters: " in text(counted, "description")
    put(counted, "color", "confidence", "change")
    confidence = drawing(counted)
    put(counted, "k", 2, "input")  # it colors by cluster again
    assert drawing(counted) != confidence and len(legend(counted)) == 4
    assert counted.execute_script("return document.getElementById('color').value") == "cluster"
    put(counted, "round", 1, "input")
    put(counted, "k", 4, "input")
    assert drawing(counted) != confidence and len(legend(counted)) == 6
    assert_quiet(counted)


def test_without_a_search_for_k_its_slider_is_not_seen(small):
    assert not small.find_element("id", "over-k").is_displayed()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_cluster_that_dissolves_is_seen_and_can_be_read(counted, scheme):
    emulate(counted, 1280, 900, prefers_color_scheme=scheme)
    style = """
        const style = getComputedStyle(document.querySelector(arguments[0]));
        return [style.color, style.backgroundColor].map(
            each => each.match(/[\\d.]+/g).slice(0, 3).map(Number))"""
    ink, ground = counted.execute_script(style, "#tables .chip.dissolves")
    other_ink, other_ground = counted.execute_script(style, "#tables .chip.stable")
    assert (ink, ground) != (other_ink, other_ground)
    assert contrast(np.array(ink), np.array(ground)) >= 4.5


def contrast(a, b):
    def light(color):
        value = color / 255
        line = np.where(value <= 0.04045, value / 12.92, ((value + 0.055) / 1.055) ** 2.4)
        return line @ [0.2126, 0.7152, 0.0722] + 0.05

    dark, bright = sorted((light(a), light(b)))
    return bright / dark


def test_a_phone_shows_the_slider_over_k_without_sideways_scroll(counted):
    emulate(counted, 390, 844)
    wide, slider = counted.execute_script(
        "return [document.documentElement.scrollWidth, document.getElementById('k').clientWidth]"
    )
    assert wide <= 390 and slider > 120
    seen_to = "return document.querySelector(arguments[0]).getBoundingClientRect().right"
    assert counted.execute_script(seen_to, "#tables tr .chip.dissolves") <= 390
    assert_quiet(counted)


# ---- names of clusters


@pytest.fixture
def named(browser, pages):
    """Four clusters with names; a column has a name that would do harm."""
    return opened(browser, pages / "named.html")


def test_names_stand_in_legend_slider_and_hover_and_are_those_of_the_answer_only(named):
    names = named.execute_script(
        "return JSON.parse(document.getElementById('data').textContent).names"
    )
    numbered = [f"{place} \u00b7 {name}" for place, name in enumerate(names)]
    assert all(names) and len(set(names)) == 4
    shown = "return [...document.querySelectorAll('#legend button span:first-of-type')].map(each => each.textContent)"
    assert named.execute_script(shown)[:4] == numbered
    titles = "return [...document.getElementById('k-sizes').children].map(each => each.title)"
    assert [title.rsplit(": ", 1)[0] for title in named.execute_script(titles)] == numbered
    put(named, "query", "17", "input")
    click(named, "#find button")
    label = named.execute_script(
        "return document.querySelector('#tip div:nth-child(2)').textContent"
    )
    assert label in numbered and f"row 17, {label}, confidence" in text(named, "description")
    put(named, "k", 1, "input")  # three clusters: others, so no names
    assert {each.split(" ")[0] for each in named.execute_script(shown)} <= {"cluster", "no"}
    assert not any(name in title for name in names for title in named.execute_script(titles))
    assert named.execute_script("return window.harmed === undefined")
    assert_quiet(named)


def test_cards_of_any_kind_fit_on_a_phone(named):
    emulate(named, 390, 844)
    wide, tables = named.execute_script("""
        const cards = [...document.querySelectorAll(".card .wide")];
        return [document.documentElement.scrollWidth, cards.map(each => each.scrollWidth - each.clientWidth)]""")
    assert wide <= 390 and max(tables) <= 0 and len(tables) == 4
    assert_quiet(named)
