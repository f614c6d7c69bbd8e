"""Editing clusters in the report, in a real browser: what is drawn, said and downloaded."""

import json
import time

import numpy as np
import pytest

from deccs.edits.editing import names_after
from deccs.edits.steps import Drop, Merge, Pin, Rename, Split
from deccs.report import write_report
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
from tests.helpers.command_line import deccs, rows_of, write_table
from tests.helpers.counted import give_count
from tests.helpers.report_stand_in import StandIn

pytestmark = NEEDS_BROWSER
NAMES = ("poor", NASTY, "many orders", "cluster 3", "students")


@pytest.fixture(scope="module")
def data():
    """(500, 3): five far blobs in the plane; the last column is the label."""
    rng = np.random.default_rng(0)
    label = np.arange(500) % 5
    centers = np.array([[0, 0], [20, 0], [0, 20], [20, 20], [10, 10]])
    return np.column_stack([centers[label] + rng.normal(size=(500, 2)), label])


@pytest.fixture(scope="module")
def path(data, tmp_path_factory):
    path = tmp_path_factory.mktemp("editing") / "report.html"
    model = StandIn().fit(data, sample_size=200)
    give_count(model, data[:, :-1], [2, 3, 5], runners_up=[3])
    write_report(model, data, path, names=NAMES)
    return path


@pytest.fixture
def page(browser, path):
    return edited_page(browser, path)


def edited_page(browser, path):
    """The page, with editing switched on."""
    opened(browser, path)
    where = {"behavior": "allow", "downloadPath": str(path.parent)}
    browser.execute_cdp_cmd("Browser.setDownloadBehavior", where)
    click(browser, "#edit-on")
    browser.execute_script(
        "document.querySelector('.above').scrollIntoView({block: 'start', behavior: 'instant'})"
    )
    return browser


def on_screen(browser, points):
    """Offsets in pixels from the middle of the plot: (n, 2) coordinates of the result -> (n, 2)."""
    low, size, middle, pixel = browser.execute_script("""
        const frame = Page.data.frames.at(-1);
        return [frame.low, frame.size, Page.middle(), Page.pixel()]""")
    offsets = ((np.asarray(points) - low) / size - middle) / pixel
    return (offsets * [1, -1]).round().astype(int)


def around(points, wide=1.0):
    """(12, 2): a line around the middle of a blob, ``wide`` times as far as its points reach."""
    points = np.asarray(points)
    middle = points.mean(axis=0)
    reach = 1.1 * wide * np.linalg.norm(points - middle, axis=1).max()
    angles = np.linspace(0, 2 * np.pi, 12, endpoint=False)
    return middle + reach * np.column_stack([np.cos(angles), np.sin(angles)])


def draw_line(browser, line, key=None):
    """With the pointer, around some points (None: around all), while a key is held."""
    from selenium.webdriver import ActionChains

    scatter = browser.find_element("id", "over")
    if line is None:
        across, down = scatter.size["width"] // 2 - 3, scatter.size["height"] // 2 - 3
        places = [(-across, -down), (across, -down), (across, down), (-across, down)]
    else:
        places = on_screen(browser, line).tolist()
    (first, *others), actions = places, ActionChains(browser, duration=0)
    if key:
        actions.key_down(key)
    actions.move_to_element_with_offset(scatter, *first).click_and_hold()
    for place in others:
        actions.move_to_element_with_offset(scatter, *place)
    actions.release()
    if key:
        actions.key_up(key)
    actions.perform()


def of(data, *clusters):
    return np.flatnonzero(np.isin(data[:, -1], clusters))


def pick(browser, *clusters):
    for cluster in clusters:
        click(browser, f"#legend button:nth-child({cluster + 1})")


def act(browser, name):
    click(browser, f"[data-act={name}]")
    return text(browser, "edit-status")


def legend(browser):
    return browser.execute_script(
        "return [...document.querySelectorAll('#legend button')].map(each =>"
        " [...each.querySelectorAll('span')].map(part => part.textContent))"
    )


def listed(browser):
    return browser.execute_script(
        "return [...document.querySelectorAll('#edit-list span')].map(each => each.textContent)"
    )


def downloaded(browser, folder):
    path = folder / "edits.json"
    path.unlink(missing_ok=True)
    click(browser, "#download")
    for _ in range(200):
        if path.exists() and path.stat().st_size:
            return json.loads(path.read_text())
        time.sleep(0.05)
    raise AssertionError("nothing was downloaded")


def sizes_shown(browser):
    """The number in the legend of each cluster; -1 for "no label"."""

    def number(name):
        word = name.removeprefix("cluster ").split()[0]
        return int(word) if word.isdigit() else -1

    return {number(name): int(size) for name, size in legend(browser)}


def test_a_lasso_a_merge_a_name_and_an_undo_become_a_file(page, data, path):
    sizes = [100] * 5
    before = drawing(page)
    draw_line(page, around(data[of(data, 2), :2]))
    assert text(page, "edit-status") == f"{sizes[2]} points selected in cluster 2"
    assert drawing(page) != before
    assert act(page, "off") == "These are all points of cluster 2."
    draw_line(page, around(data[of(data, 2), :2], wide=0.25))
    inside = page.execute_script("return [...Page.mask].flatMap((is, row) => is ? [row] : [])")
    assert 0 < len(inside) < 50 and set(inside) < set(of(data, 2))
    assert act(page, "off") == f"Done: Split {len(inside)} points off 2: they are 5 now."
    assert drawing(page) != before
    assert sizes_shown(page)[5] == len(inside)
    assert sizes_shown(page)[2] == sizes[2] - len(inside)

    # The larger part keeps the number, whichever was drawn around.
    draw_line(page, around(data[of(data, 4), :2], wide=0.6))
    assert act(page, "off").endswith("off 4: the others are 6 now.")
    assert sizes_shown(page)[4] > sizes_shown(page)[6] > 0
    click(page, "#undo")

    pick(page, 0, 3)
    assert text(page, "edit-status") == f"{sizes[0] + sizes[3]} points in clusters 0 and 3"
    assert act(page, "merge") == "Done: Merge 0 and 3 into 0."
    assert sizes_shown(page)[0] == sizes[0] + sizes[3] and 3 not in sizes_shown(page)
    assert f"0: {sizes[0] + sizes[3]}" in text(page, "edit-sizes-text")
    assert text(page, "k-text").startswith(
        "5 clusters: the answer; 5 after your edits. Sizes: 0: 200"
    )

    pick(page, 1)
    put(page, "name", f"  loyal \n {NASTY} ", "input")
    assert act(page, "rename") == f"Done: Rename 1 to “loyal {NASTY}”."
    assert legend(page)[1][0] == f"1 · loyal {NASTY}"
    pick(page, 1)
    act(page, "drop")
    assert sizes_shown(page)[-1] == 100 and 1 not in sizes_shown(page)
    click(page, "#undo")
    assert text(page, "edit-status") == "The last change is undone."
    assert sizes_shown(page)[1] == sizes[1] and len(listed(page)) == 3
    click(page, "#redo")
    assert len(listed(page)) == 4
    click(page, "#undo")

    assert downloaded(page, path.parent) == {
        "format": "deccs edits",
        "version": 1,
        "n_rows": 500,
        "edits": [
            {"edit": "split", "cluster": 2, "rows": inside},
            {"edit": "merge", "clusters": [0, 3]},
            {"edit": "rename", "cluster": 1, "name": f"loyal {NASTY}"},
        ],
    }
    assert page.execute_script("return window.harmed === undefined && !document.querySelector('b')")
    assert page.get_log("browser") == []


SETTINGS = """
method = "ae+k-means"
clusters = 3
[settings]
network.layers = [8, 2]
pretraining = {n_epochs = 15, batch_size = 32}
"""


def test_the_file_is_applied_to_the_run_and_its_files_follow(browser, tmp_path, blobs):
    write_table(tmp_path / "data.csv", blobs.X)
    (tmp_path / "fit.toml").write_text(SETTINGS)
    run = tmp_path / "run"
    fit = ("fit", tmp_path / "data.csv", "--id", "key", "--config", tmp_path / "fit.toml")
    assert deccs(*fit, "--out", run)[0] == 0
    Z, before = np.load(run / "embedding.npy"), labels_of(run)
    page = edited_page(browser, run / "report.html")

    of_two = np.flatnonzero(before == 2)
    left = of_two[Z[of_two, 0] < np.quantile(Z[of_two, 0], 0.3)]
    low, high = Z[left].min(axis=0) - 1e-3, Z[left].max(axis=0) + 1e-3
    pick(page, 2)  # points of others within the line do not count
    draw_line(page, [low, [high[0], low[1]], high, [low[0], high[1]]])
    assert text(page, "edit-status") == f"{len(left)} points selected in cluster 2"
    assert act(page, "off").startswith("Done: Split ")
    pick(page, 0, 1)
    assert act(page, "merge") == "Done: Merge 0 and 1 into 0."
    pick(page, 0)
    put(page, "name", NASTY, "input")
    act(page, "rename")
    few = page.execute_script("""
        const points = [...Page.fitted.labels].flatMap((label, point) => (label === 2 ? [point] : [])).slice(-3);
        const mask = new Uint8Array(Page.data.points);
        for (const point of points) mask[point] = 1;
        Page.select(mask);
        return points""")
    put(page, "pin-to", "0", "change")
    assert act(page, "pin") == "Done: Pin 3 points to 0."
    downloaded(page, run)

    code, _, said = deccs("edit", run, "--from", run / "edits.json")
    assert code == 0, said
    after = labels_of(run)
    assert (after[np.isin(before, [0, 1])] == 0).all() and (after[few] == 0).all()
    others = np.setdiff1d(of_two, few)
    assert (after[others] == np.where(np.isin(others, left), 3, 2)).mean() > 0.9
    names = {int(row[1]): row[2] for row in rows_of(run / "labels.csv")[1:]}
    assert names[0] == NASTY

    # The report is that of the edited model; what comes next goes on from there.
    page = edited_page(browser, run / "report.html")
    assert sizes_shown(page) == {cluster: (after == cluster).sum() for cluster in (0, 2, 3)}
    assert legend(page)[0][0] == f"0 · {NASTY}"
    assert "cluster 1" not in text(page, "tables")
    pick(page, 0)
    assert act(page, "split").startswith("Done: Split 0 into 0 and 4; preview: ")
    assert page.execute_script("return window.harmed === undefined")


def labels_of(run):
    return np.array([int(row[1]) for row in rows_of(run / "labels.csv")[1:]])


def test_shift_adds_alt_removes_escape_clears_and_the_legend_limits(page, data):
    from selenium.webdriver.common.keys import Keys

    middle = around(data[of(data, 4), :2])
    draw_line(page, around(data[of(data, 0), :2]))
    draw_line(page, middle, Keys.SHIFT)
    assert text(page, "edit-status") == "200 points selected: 100 in 0 and 100 in 4"
    draw_line(page, middle, Keys.ALT)
    assert text(page, "edit-status") == "100 points selected in cluster 0"
    pick(page, 1, 4)
    draw_line(page, None)
    assert text(page, "edit-status") == "200 points selected: 100 in 1 and 100 in 4"
    assert act(page, "pin") == "Done: Pin 200 points to 0."
    assert sizes_shown(page) == {0: 300, 2: 100, 3: 100}
    click(page, "#edit-bar input[value=add]")  # what Shift does, for those without a keyboard
    draw_line(page, around(data[of(data, 2), :2]))
    draw_line(page, around(data[of(data, 3), :2]))
    assert text(page, "edit-status") == "200 points selected: 100 in 2 and 100 in 3"
    click(page, "#edit-bar input[value=move]")
    before = drawing(page)
    draw_line(page, [[10, 10], [14, 10]])
    assert drawing(page) != before  # it moved
    assert text(page, "edit-status") == "200 points selected: 100 in 2 and 100 in 3"
    page.find_element("id", "over").send_keys(Keys.ESCAPE)
    assert text(page, "edit-status").startswith("Draw around points")
    assert "No" in act(page, "pin") or "Draw around" in act(page, "pin")
    assert listed(page) == ["Pin 200 points to 0"]
    assert page.get_log("browser") == []


def test_all_of_it_by_keyboard(page, data):
    from selenium.webdriver.common.keys import Keys

    scatter = page.find_element("id", "over")
    scatter.send_keys(Keys.ARROW_RIGHT)  # the point in the middle
    scatter.send_keys(" ")
    assert text(page, "edit-status") == "1 point selected in cluster 4"
    assert text(page, "description").endswith(", selected")
    scatter.send_keys(" ")
    assert text(page, "edit-status").startswith("Draw around points")
    scatter.send_keys("0", "r")
    assert text(page, "edit-status").startswith("Rectangle around")
    scatter.send_keys(*[Keys.SHIFT + Keys.ARROW_RIGHT] * 12)
    scatter.send_keys(*[Keys.SHIFT + Keys.ARROW_UP] * 12)
    said = text(page, "edit-status")
    scatter.send_keys(Keys.ENTER)
    n = page.execute_script("return Page.mask.reduce((sum, each) => sum + each)")
    assert said.startswith(f"Rectangle around {n} points.") and n >= 100
    assert text(page, "edit-status").startswith(f"{n} points selected")
    merge = page.find_element("css selector", "[data-act=merge]")
    merge.send_keys(Keys.ENTER)
    assert text(page, "edit-status").startswith("Done: Merge")
    assert page.execute_script("return document.activeElement.dataset.act") == "merge"
    merge.send_keys(Keys.CONTROL + "z")
    assert listed(page) == [] and sizes_shown(page) == dict.fromkeys(range(5), 100)
    merge.send_keys(Keys.CONTROL + Keys.SHIFT + "z")
    assert len(listed(page)) == 1
    page.find_element("css selector", "#edit-list button").send_keys(Keys.ENTER)
    assert listed(page) == [] and text(page, "edit-status").startswith("Removed “Merge")
    assert page.execute_script("return document.activeElement.id") == "undo"
    unnamed = page.execute_script("""
        const named = (each) => each.textContent || each.getAttribute("aria-label") || each.labels?.length;
        const parts = document.querySelectorAll(":is(#edit-bar, #edit) :is(button, input, select)");
        return [...parts].filter((each) => !named(each)).map((each) => each.outerHTML)""")
    assert unnamed == []
    assert page.get_log("browser") == []


def test_edits_are_for_the_answer_and_seen_in_every_round(page, data):
    pick(page, 0, 4)
    act(page, "merge")
    put(page, "round", 1, "input")
    assert sum(sizes_shown(page).values()) == 200 and 4 not in sizes_shown(page)
    draw_line(page, None)
    assert text(page, "edit-status").startswith("200 points selected: ")
    put(page, "round", 3, "input")
    assert text(page, "edit-status").startswith("200 points selected: ")
    put(page, "k", 1, "input")
    said = "Edits are for the 5 clusters of the fit, not for other numbers of clusters."
    assert text(page, "edit-status") == said and act(page, "merge") == said
    assert len(legend(page)) == 3 and len(listed(page)) == 1
    before = drawing(page)
    draw_line(page, [[0, 10], [10, 10]])
    assert drawing(page) != before and text(page, "edit-status") == said
    click(page, "#edit-home")
    assert 4 not in sizes_shown(page) and len(legend(page)) == 4
    assert text(page, "edit-status").startswith("200 points selected: ")
    assert page.get_log("browser") == []


def test_without_an_edit_later_numbers_move_up_and_what_needs_it_goes(page):
    edits = [
        {"edit": "split", "cluster": 0, "into": 3},  # opens 5 and 6
        {"edit": "split", "cluster": 1, "points": [1, 6]},  # opens 7
        {"edit": "rename", "cluster": 7, "name": "new"},
        {"edit": "merge", "clusters": [6, 2]},
        {"edit": "pin", "points": [3], "cluster": 7},
    ]
    left = page.execute_script(
        """
        const [edits, picture] = [arguments[0], Page.picture()];
        for (let i = 0, state = Page.fitted; i < edits.length; i++) {
            if (Edits.problem(edits[i], state)) throw new Error(Edits.problem(edits[i], state));
            state = Edits.applied(state, edits[i], picture);
        }
        return edits.map((_, place) => Edits.without(Page.fitted, edits, place, picture))""",
        edits,
    )
    assert left[0] == [  # 5 is what was 7; without 6 nothing is merged
        {"edit": "split", "cluster": 1, "points": [1, 6]},
        {"edit": "rename", "cluster": 5, "name": "new"},
        {"edit": "pin", "points": [3], "cluster": 5},
    ]
    assert left[1] == [edits[0], edits[3]]
    assert left[2] == [edits[0], edits[1], edits[3], edits[4]]
    assert left[3] == [*edits[:3], edits[4]] and left[4] == edits[:4]


def test_names_and_labels_are_those_the_model_will_have(page, data):
    """Beside the steps of deccs.edits; a split by rows is checked for its names alone."""
    edits = [
        {"edit": "merge", "clusters": [2, 0]},  # both have names
        {"edit": "merge", "clusters": [3, 4]},  # the first has none
        {"edit": "split", "cluster": 2, "points": of(data, 0)[:7].tolist()},
        {"edit": "split", "cluster": 3, "points": of(data, 4).tolist()[:-1]},
        {"edit": "rename", "cluster": 6, "name": "many orders / poor, part 1 (2)"},
        {"edit": "split", "cluster": 2, "points": of(data, 2).tolist()[:9]},
        {"edit": "pin", "points": [1, 6, 4], "cluster": 5},
        {"edit": "drop", "cluster": 3},
        {"edit": "rename", "cluster": 1, "name": "b" * 100},
        {"edit": "merge", "clusters": [1, 6]},  # too long for one name
    ]
    found = page.execute_script(
        """
        let state = Page.fitted;
        return arguments[0].map((edit) => {
            if (Edits.problem(edit, state)) throw new Error(Edits.problem(edit, state));
            state = Edits.applied(state, edit, Page.picture());
            return [state.names, Array.from(state.labels, (label) => (label === Edits.NONE ? -1 : label)), state.live];
        })""",
        edits,
    )
    names, labels, live = NAMES, data[:, -1].astype(int), frozenset(range(5))
    for edit, (its_names, its_labels, its_live) in zip(edits, found, strict=True):
        before = len(names)
        given = {key: value for key, value in edit.items() if key not in ("edit", "points")}
        step = {"merge": Merge, "drop": Drop, "rename": Rename}.get(edit["edit"])
        if step:
            step = step(**given)
            expected = step.lookup(before)[labels]
        elif edit["edit"] == "pin":
            step, expected = Pin(edit["cluster"], data[:0, :2]), labels.copy()
            expected[edit["points"]] = edit["cluster"]
        else:
            halves = np.zeros((2, 2)), np.zeros(2)
            step, expected = (
                Split(edit["cluster"], (edit["cluster"], before), *halves),
                labels.copy(),
            )
            inside, named = labels == edit["cluster"], np.isin(np.arange(500), edit["points"])
            small = named if 2 * named.sum() <= inside.sum() else inside & ~named
            expected[small] = before
        step.check(live)
        names, labels = names_after(names, step, before), expected
        live = (live | set(range(before, len(names)))) & set(labels.tolist())
        assert its_names == list(names)
        assert its_labels == labels.tolist()
        assert set(its_live) == live


def test_a_name_that_python_refuses_is_refused(page):
    names = [
        "",
        " ",
        "a" * 100,
        "a" * 101,
        "\U0001f600" * 100,
        "a\u200bb",
        "a\u202eb",
        "a\x00b",
        "a\nb",
    ]
    names += [
        f"{NAMES[0]} ",
        "ok",
        "a\u2028b",
        "a\ufeffb",
        "\u3000a",
        "a\u00a0b",
        "\ud7a3 \u0628",
        "cluster 3",
    ]
    said = page.execute_script(
        """return arguments[0].map((name) => Edits.problem(
            { edit: "rename", cluster: 1, name: Edits.tidy(name) }, Page.fitted))""",
        names,
    )
    for name, problem in zip(names, said, strict=True):
        tidy = " ".join(name.split())
        good = 1 <= len(tidy) <= 100 and tidy.isprintable() and tidy not in (NAMES[0], "cluster 3")
        assert good == (problem == ""), (name, problem)


# ---- geometry, beside slow references


def winding(line, points):
    """How often a closed line goes around each point, from the angles of its corners: (n,)."""
    corners = line[None] - points[:, None]
    angles = np.unwrap(np.arctan2(corners[..., 1], corners[..., 0]), axis=1)
    closed = np.concatenate([angles, angles[:, :1]], axis=1)
    return np.rint(np.unwrap(closed, axis=1)[:, [0, -1]] @ [-1, 1] / (2 * np.pi))


def test_points_inside_a_line_are_those_it_goes_around(page):
    rng = np.random.default_rng(0)
    for n_corners in (3, 4, 9, 40):  # most of them cross themselves
        line, points = rng.random((n_corners, 2)), rng.random((300, 2)) * 1.2 - 0.1
        found = page.execute_script(
            "return [...Geometry.inside(arguments[0], arguments[1], arguments[2])]",
            line.tolist(),
            *points.T.tolist(),
        )
        assert found == (winding(line, points) != 0).astype(int).tolist()
    assert page.execute_script("return [...Geometry.inside([[0, 0]], [0], [0])]") == [0]


def test_parts_are_those_of_k_means_and_the_largest_is_first(page):
    rng = np.random.default_rng(1)
    centers, sizes = np.array([[0, 0], [9, 2], [3, 9]]), [20, 50, 30]
    truth = np.repeat([0, 1, 2], sizes)
    points = centers[truth] + rng.normal(size=(100, 2))
    part = "return [...Geometry.parts(arguments[0], arguments[1], arguments[2])]"
    found = page.execute_script(part, *points.T.tolist(), 3)
    assert found == np.array([2, 0, 1])[truth].tolist()
    assert page.execute_script(part, [1, 1, 1], [2, 2, 2], 2) == [0, 0, 0]  # nothing to tell apart
    two = np.array(page.execute_script(part, *points.T.tolist(), 2))
    means = np.array([points[two == k].mean(axis=0) for k in (0, 1)])
    nearest = np.linalg.norm(points[:, None] - means, axis=2).argmin(axis=1)
    assert (nearest == two).all() and (two == 0).sum() >= (two == 1).sum()


# ---- a sample, a phone


def test_a_sample_names_the_rows_of_the_fit(browser, tmp_path, data):
    rows = np.arange(500) * 7 + 3
    write_report(
        StandIn().fit(data, sample_size=100),
        data,
        tmp_path / "report.html",
        max_points=200,
        sample_of=(rows, 4_000),
    )
    page = opened(browser, tmp_path / "report.html")
    click(page, "#edit-on")
    assert "Only 200 of the 4,000 rows of the fit are on this page" in text(page, "edit-keys")
    drawn, known = page.execute_script("""
        const points = Array.from({ length: Page.data.points }, (_, point) => point);
        const edits = [{ edit: "pin", points, cluster: 0 }];
        return [Edits.file(edits, Page.editing.n_rows, Page.rowOf).edits[0].rows, Page.editing]""")
    assert len(set(drawn)) == 200 and set(drawn) <= set(rows.tolist()) and known["n_rows"] == 4_000
    labels = page.execute_script("return [...Page.fitted.labels]")
    assert labels == [(row - 3) // 7 % 5 for row in drawn]
    pick(page, 0, 1)
    act(page, "merge")
    assert "These are the points on this page." in text(page, "edit-sizes-text")


def test_a_phone_draws_with_a_finger_and_has_no_sideways_scroll(page, data):
    emulate(page, 390, 844, prefers_color_scheme="dark")
    page.execute_script("""
        document.querySelector('.above').scrollIntoView({block: 'start', behavior: 'instant'})""")
    drawing(page)
    box = page.execute_script("""
        const box = document.getElementById("over").getBoundingClientRect();
        return [box.x + box.width / 2, box.y + box.height / 2]""")
    places = on_screen(page, around(data[of(data, 4), :2])) + box
    for kind, place in [("touchStart", places[0]), *[("touchMove", each) for each in places[1:]]]:
        touch = [{"x": int(place[0]), "y": int(place[1])}]
        page.execute_cdp_cmd("Input.dispatchTouchEvent", {"type": kind, "touchPoints": touch})
    page.execute_cdp_cmd("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
    assert text(page, "edit-status") == "100 points selected in cluster 4"
    bottom, wide = page.execute_script("""
        return [document.getElementById("edit-bar").getBoundingClientRect().bottom,
                document.documentElement.scrollWidth]""")
    assert bottom <= 844 and wide <= 390
    act(page, "split")
    assert len(listed(page)) == 1
    assert page.execute_script("return document.documentElement.scrollWidth") <= 390
    print(page.get_log("browser"))
    assert_quiet(page)
