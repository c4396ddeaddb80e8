"""The page in a real browser: headless Chromium, driven by Selenium. Skipped where they are not installed."""

import base64
import json
import os
import shutil

import numpy as np
import pytest

from errorband.reporting import report

selenium = pytest.importorskip("selenium", reason="pip install selenium")
from selenium import webdriver  # noqa: E402
from selenium.webdriver.common.action_chains import ActionChains  # noqa: E402
from selenium.webdriver.common.by import By  # noqa: E402
from selenium.webdriver.support.ui import WebDriverWait  # noqa: E402

CHROMIUM = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
DRIVER = os.environ.get("CHROMEDRIVER") or shutil.which("chromedriver")
pytestmark = [
    pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed (Debian: apt-get install chromium)"),
    pytest.mark.skipif(
        DRIVER is None, reason="chromedriver is not installed (Debian: apt-get install chromium-driver)"
    ),
]
FLAGS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync --disable-dev-shm-usage"
)
PHONE, DESKTOP = 375, 1280


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for flag in FLAGS.split():
        options.add_argument(flag)
    options.add_argument(f"--user-data-dir={tmp_path_factory.mktemp('profile')}")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER))
    yield driver
    driver.quit()


@pytest.fixture(scope="module")
def pages(tmp_path_factory, sinc, bump, frame, flags):
    """Reports of one, two and four inputs, and of two classes, as files."""
    folder = tmp_path_factory.mktemp("reports")
    for name, case in (("sinc", sinc), ("bump", bump), ("frame", frame), ("flags", flags)):
        made = report(case.model, case.X_test, case.y_test, title=name, data_notes="<script>alert(3)</script>")
        made.save(folder / f"{name}.html")
    return folder


def visit(browser, path, width=DESKTOP, scheme="light"):
    """Open a page with a screen of this width and wait for its plots."""
    screen = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width == PHONE}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", screen)
    use(browser, scheme)
    for log in ("browser", "performance"):
        browser.get_log(log)  # what came before is not of this page
    browser.get(path.as_uri())
    WebDriverWait(browser, 30).until(lambda b: b.execute_script("return document.documentElement.dataset.drawn"))


def use(browser, scheme):
    feature = {"name": "prefers-color-scheme", "value": scheme}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [feature]})


NAMES = ("sinc", "bump", "frame", "flags")
N_PLOTS = {"sinc": 1 + 2 + 3 + 1, "bump": 2 + 2 + 4 + 1 + 2 + 1, "frame": 2 + 6 + 1 + 3 + 1, "flags": 1 + 5 + 1 + 2 + 1}


@pytest.mark.parametrize("name", NAMES)
def test_draws_every_plot_without_errors_or_requests(browser, pages, name):
    path = pages / f"{name}.html"
    visit(browser, path)
    drawn = browser.find_elements(By.CSS_SELECTOR, ".plot.js-plotly-plot")
    assert len(drawn) == N_PLOTS[name]
    asked = json.loads(browser.find_element(By.ID, "figures").get_attribute("textContent"))
    for plot in drawn:
        traces = plot.find_elements(By.CSS_SELECTOR, ".scatterlayer .trace, .barlayer .trace, .heatmaplayer .hm")
        assert len(traces) == len(asked[plot.get_attribute("id")]["data"])
    assert browser.get_log("browser") == []
    events = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    requests = [e["params"]["request"]["url"] for e in events if e["method"] == "Network.requestWillBeSent"]
    assert [r for r in requests if not r.startswith("data:")] == [path.as_uri()]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("width", [320, PHONE, DESKTOP])
def test_nothing_sticks_out(browser, pages, name, width):
    visit(browser, pages / f"{name}.html", width)
    root = "document.documentElement"
    assert browser.execute_script(f"return {root}.scrollWidth") <= browser.execute_script(f"return {root}.clientWidth")
    beyond = browser.execute_script(
        "return [...document.querySelectorAll('main *:not(.hidden)')].filter(e => e.closest('.plot') === null)"
        ".filter(e => e.getBoundingClientRect().right > innerWidth + 1).map(e => e.outerHTML.slice(0, 80))"
    )
    assert beyond == []


def test_plots_fill_their_place_and_follow_the_window(browser, pages):
    visit(browser, pages / "sinc.html", DESKTOP)
    width = "return document.querySelector('.main-svg').getBoundingClientRect().width"
    wide = browser.execute_script(width)
    screen = {"width": 600, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", screen)
    WebDriverWait(browser, 10).until(lambda b: b.execute_script(width) < 600)
    assert wide > 900


def test_pointer_shows_a_label(browser, pages):
    visit(browser, pages / "frame.html")
    plot = browser.find_element(By.CSS_SELECTOR, "#predictions .plot")
    browser.execute_script("arguments[0].scrollIntoView({block: 'center', behavior: 'instant'})", plot)
    point = plot.find_element(By.CSS_SELECTOR, ".scatterlayer .points path")
    ActionChains(browser).move_to_element(point).perform()
    WebDriverWait(browser, 10).until(lambda b: plot.find_elements(By.CSS_SELECTOR, ".hoverlayer .hovertext"))
    label = plot.find_element(By.CSS_SELECTOR, ".hoverlayer .hovertext").text
    assert "row " in label
    assert "95 % band" in label


def test_hostile_names_are_shown_as_they_are(browser, pages):
    visit(browser, pages / "frame.html")
    titles = [e.text for e in browser.find_elements(By.CSS_SELECTOR, "#effects .xtitle, #residuals .xtitle")]
    assert "<script>alert(1)</script>" in titles
    assert "50 % of %{x}" in titles
    assert browser.execute_script("return document.scripts.length") == 3


def test_plots_follow_the_theme(browser, pages):
    visit(browser, pages / "sinc.html")
    ink = "return getComputedStyle(document.querySelector('#function .xtitle')).fill"
    page = "return getComputedStyle(document.body).backgroundColor"
    light = browser.execute_script(ink), browser.execute_script(page)
    use(browser, "dark")
    WebDriverWait(browser, 10).until(lambda b: b.execute_script(ink) != light[0])
    dark = browser.execute_script(ink), browser.execute_script(page)

    def brightness(colour):
        return np.mean([int(part) for part in colour.strip("rgb()").split(",")])

    assert brightness(light[0]) < 80 < 200 < brightness(light[1])
    assert brightness(dark[1]) < 80 < 200 < brightness(dark[0])
    assert browser.get_log("browser") == []


def test_prints_in_light_colours_and_returns(browser, pages):
    visit(browser, pages / "frame.html", scheme="dark")
    ink = "return getComputedStyle(document.querySelector('#relevance .xtitle')).fill"
    before = browser.execute_script(ink)
    browser.execute_script("addEventListener('beforeprint', () => { window.printed = (() => {%s})(); })" % ink)  # noqa: UP031
    pdf = base64.b64decode(browser.execute_cdp_cmd("Page.printToPDF", {"printBackground": False})["data"])
    assert pdf.startswith(b"%PDF")
    assert browser.execute_script("return window.printed") == "rgb(27, 36, 48)"
    assert browser.execute_script(ink) == before


def test_every_plot_has_an_accessible_name(browser, pages):
    visit(browser, pages / "frame.html")
    nodes = browser.execute_cdp_cmd("Accessibility.getFullAXTree", {})["nodes"]
    images = [n["name"]["value"] for n in nodes if n.get("role", {}).get("value") == "image" and not n.get("ignored")]
    labels = [p.get_attribute("aria-label") for p in browser.find_elements(By.CSS_SELECTOR, ".plot")]
    assert set(labels) <= set(images)
    assert len(labels) == N_PLOTS["frame"]


def test_readable_without_scripts(browser, pages):
    browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    try:
        browser.get((pages / "frame.html").as_uri())
        text = browser.find_element(By.TAG_NAME, "body").text
    finally:
        browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})
    assert "The plots of this page need JavaScript" in text
    assert "RMSE" in text
