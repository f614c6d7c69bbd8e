"""Chromium, and what tests do with it. Debian: apt-get install chromium chromium-driver."""

import json
import shutil
import tempfile
from contextlib import contextmanager
from importlib.util import find_spec

import pytest

CHROMIUM = (
    shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
)
DRIVER = shutil.which("chromedriver")
NEEDS_BROWSER = pytest.mark.skipif(
    not (CHROMIUM and DRIVER and find_spec("selenium")),
    reason="no browser: the report is not tried in one (selenium, chromium and chromedriver)",
)

SWITCHES = [
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    "--disable-dev-shm-usage",
    "--window-size=1280,900",
]
NASTY = "</script><b>x</b><img src=x onerror='window.harmed=1'>"


@contextmanager
def new_browser():
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    profile = tempfile.mkdtemp()
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for switch in [*SWITCHES, f"--user-data-dir={profile}"]:
        options.add_argument(switch)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(DRIVER))
    # A window without a screen has no focus, and then no event tells that an element has lost it.
    driver.execute_cdp_cmd("Emulation.setFocusEmulationEnabled", {"enabled": True})
    yield driver
    driver.quit()
    shutil.rmtree(profile, ignore_errors=True)


def opened(browser, path):
    browser.get("about:blank")  # a page with unsaved edits has a word to say when it is left
    for kind in ("browser", "performance"):
        browser.get_log(kind)  # what was before
    emulate(browser, 1280, 900)
    browser.get(path.as_uri())
    return browser


def emulate(browser, width, height, **media):
    browser.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500},
    )
    features = {
        "prefers-color-scheme": "light",
        "prefers-reduced-motion": "no-preference",
        **{name.replace("_", "-"): value for name, value in media.items()},
    }
    browser.execute_cdp_cmd(
        "Emulation.setEmulatedMedia",
        {"features": [{"name": name, "value": value} for name, value in features.items()]},
    )


def drawing(browser):
    """The picture as drawn, when all that was asked for has been."""
    return browser.execute_async_script("""
        const done = arguments[0], url = () => document.getElementById("points").toDataURL();
        requestAnimationFrame(() => requestAnimationFrame(() => done(url())));""")


def put(browser, element, value, event):
    browser.execute_script(
        """
        const element = document.getElementById(arguments[0]);
        element.value = arguments[1];
        element.dispatchEvent(new Event(arguments[2]));""",
        element,
        value,
        event,
    )


def text(browser, element):
    return browser.execute_script(
        "return document.getElementById(arguments[0]).textContent", element
    )


def click(browser, selector):
    browser.execute_script("document.querySelector(arguments[0]).click()", selector)


def assert_quiet(browser):
    """No word on the console, and nothing asked of any network."""
    assert browser.get_log("browser") == []
    assert (
        browser.execute_script(
            "return performance.getEntriesByType('resource').map(each => each.name)"
        )
        == []
    )
    events = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    asked = [
        event["params"]["request"]["url"]
        for event in events
        if event["method"] == "Network.requestWillBeSent"
    ]
    # A browser may still be loading its own start page, whose addresses begin with chrome.
    asked = [url for url in asked if not url.startswith("chrome")]
    assert asked and all(url.startswith(("file:", "data:")) for url in asked)
