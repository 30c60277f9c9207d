"""The report in a real browser: Debian's Chromium, without a head, driven by Selenium."""

import shutil
import tempfile
from pathlib import Path

import numpy as np
import pytest

from steelyard.data.recording import Recording
from steelyard.dynamics import inverse_dynamics
from steelyard.evaluation.campaign.campaign import run_campaign
from steelyard.evaluation.campaign.engine import Crew
from steelyard.evaluation.campaign.settings import Study
from steelyard.evaluation.study import Plan, run_study
from steelyard.identification.estimators import OLS, WLS
from steelyard.report.campaign import write_campaign_report
from steelyard.report.identification import write_report
from steelyard.robot.load import load_robot

webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
pytestmark = pytest.mark.skipif(
    not (CHROMIUM and DRIVER), reason="chromium and chromedriver are not installed (Debian: chromium-driver)"
)
# Screenshots to be looked at by people; git ignores the folder.
ARTEFACTS = Path(__file__).parents[1] / "artefacts"
FLAGS = (
    "--headless=new --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync --use-gl=angle --use-angle=swiftshader --enable-unsafe-swiftshader "
    "--hide-scrollbars --window-size=1280,900"
)
HOSTILE = '</script><img src=x onerror="window.pwned=1"><b>&lt;'
# WebGL in software says that it is slow; that is no fault of the page.
HARMLESS = ("GPU stall due to ReadPixels", "willReadFrequently")

MJCF = """
<mujoco><option gravity="0 0 -9.81"/><worldbody>
  <body name="upper"><joint name="{first}" axis="0 1 0" range="-3 3" limited="true"/>
    <inertial pos="0 0 .2" mass="2" diaginertia=".03 .03 .01"/>
    <body name="lower" pos="0 0 .4"><joint name="elbow" axis="0 1 0"/>
      <inertial pos="0 .05 .15" mass="1" diaginertia=".02 .015 .01"/>
    </body></body></worldbody></mujoco>
"""


def arm_report(folder, first="shoulder"):
    """A report of a planar arm that moved for six seconds, with noise on its torques."""
    xml = folder / "arm.xml"
    escaped = first.replace("&", "&amp;").replace("<", "&lt;").replace('"', "&quot;")
    xml.write_text(MJCF.format(first=escaped))
    robot = load_robot(xml)
    t = np.arange(0, 6, 0.004)
    phase = 2 * np.pi * 0.5 * np.outer(t, [1.0, 1.7]) + [0.0, 1.0]
    rate = 2 * np.pi * 0.5 * np.array([1.0, 1.7])
    q, qd, qdd = np.sin(phase), rate * np.cos(phase), -(rate**2) * np.sin(phase)
    noise = 0.05 * np.random.default_rng(3).normal(size=q.shape)
    tau = inverse_dynamics(robot.with_parameters(1.2 * robot.parameters), q, qd, qdd) + noise
    run = Recording(t, q, tau, qd, qdd, robot.dof_names, about={"source": f"{first}%{{y}}.csv"})
    outcome = run_study(robot, [run], Plan((WLS(), OLS()), preprocessing=None, delay=0.0))
    return write_report(outcome, folder / "report.html", command="identify run.csv --model arm.xml")


@pytest.fixture(scope="module")
def browser():
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    profile = tempfile.mkdtemp(prefix="steelyard-chromium-")
    for flag in (*FLAGS.split(), f"--user-data-dir={profile}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER))
    driver.set_script_timeout(60)
    yield driver
    driver.quit()
    shutil.rmtree(profile, ignore_errors=True)


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    return arm_report(tmp_path_factory.mktemp("report"))


@pytest.fixture(scope="module")
def opened(browser, page):
    show(browser, page)
    return browser


def show(browser, page, width=1280):
    browser.get_log("browser")
    browser.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500},
    )
    browser.get(page.as_uri())


def until(browser, condition, *arguments):
    """Wait in the page, by its own frames, until a condition holds."""
    code = (
        "const done = arguments[arguments.length - 1], given = [...arguments].slice(0, -1);"
        f"const holds = function() {{ return ({condition}); }};"
        "const begun = performance.now();"
        "(function look() { if (holds.apply(null, given)) done(true);"
        " else if (performance.now() - begun > 40000) done(false); else setTimeout(look, 30); })();"
    )
    return browser.execute_async_script(code, *arguments)


def see(browser, section):
    """Scroll to a section and wait until all plots that show in it are drawn."""
    browser.execute_script("document.getElementById(arguments[0]).scrollIntoView()", section)
    plots = "[...document.querySelectorAll('#' + arguments[0] + ' .plot')].filter(p => p.offsetParent)"
    assert until(browser, f"{plots}.every(p => p.querySelector('.main-svg') && p.classList.contains('drawn'))", section)


def keep(browser, name):
    ARTEFACTS.mkdir(exist_ok=True)
    browser.save_screenshot(str(ARTEFACTS / f"{name}.png"))


def complaints(browser):
    return [e["message"] for e in browser.get_log("browser") if not any(word in e["message"] for word in HARMLESS)]


def test_the_page_opens_without_a_complaint_and_draws_every_plot(opened):
    sections = opened.execute_script("return [...document.querySelectorAll('section')].map(s => s.id)")
    assert sections[0] == "verdict"
    assert set(sections) >= {"data", "excitation", "torque", "parameters", "residuals", "methods", "scene"}
    for name in sections:
        see(opened, name)
        keep(opened, f"desktop-{name}")
    # Lines have points, or a plot would count as drawn that is empty.
    points = opened.execute_script(
        "return [...document.querySelectorAll('#torque .plot.drawn')].map(p => p.data.map(t => t.y.length))"
    )
    assert len(points) == 2
    assert all(count > 100 for plot in points for count in plot)
    assert not complaints(opened)


def test_nothing_is_fetched_and_nothing_may_be(opened):
    assert opened.execute_script("return performance.getEntriesByType('resource').length") == 0
    blocked = opened.execute_async_script(
        "const done = arguments[0]; fetch('http://127.0.0.1:9/').then(() => done(false), () => done(true));"
    )
    assert blocked
    assert any("Content Security Policy" in e["message"] for e in opened.get_log("browser"))


def test_hiding_a_joint_hides_it_everywhere_and_brings_it_back(opened):
    for name in ("excitation", "torque", "residuals"):
        see(opened, name)
    shown = (
        "return [...document.querySelectorAll('.plot.drawn')].flatMap(p => p.data)"
        ".filter(t => t.meta && t.meta.joint === 0).map(t => t.visible !== false)"
    )
    chip = opened.find_element("css selector", '.chip[data-joint="0"]')
    assert len(opened.execute_script(shown)) >= 5
    assert all(opened.execute_script(shown))
    chip.click()
    assert not any(opened.execute_script(shown))
    assert not opened.find_element("css selector", '#torque .joint[data-joint="0"]').is_displayed()
    assert opened.find_element("css selector", '#torque .joint[data-joint="1"]').is_displayed()
    keep(opened, "joint-hidden")
    chip.click()
    assert all(opened.execute_script(shown))


def test_a_tab_shows_its_panel_alone_and_draws_what_is_in_it(opened):
    tabs = opened.find_elements("css selector", "#residuals .tabs button")
    panels = opened.find_elements("css selector", "#residuals .panel")
    assert [panel.is_displayed() for panel in panels] == [True] + [False] * (len(panels) - 1)
    opened.execute_script("document.querySelector('#residuals').scrollIntoView()")
    tabs[2].click()
    assert [panel.is_displayed() for panel in panels] == [k == 2 for k in range(len(panels))]
    see(opened, "residuals")
    assert opened.execute_script("return arguments[0].querySelectorAll('.scatterlayer path.js-line').length", panels[2])
    keep(opened, "tab-autocorrelation")
    tabs[0].click()


def test_zooming_shows_more_of_what_was_recorded(opened):
    see(opened, "torque")
    zoomed = opened.execute_async_script(
        "const done = arguments[0], p = document.querySelector('#torque .plot.drawn');"
        "const dense = () => { const x = p.data[0].x; return x.length / (x[x.length - 1] - x[0]); };"
        "const before = dense();"
        "Plotly.relayout(p, {'xaxis.range[0]': 1, 'xaxis.range[1]': 1.5}).then(() => setTimeout(() => {"
        "  const x = p.data[0].x; done([before, dense(), x[0], x[x.length - 1]]);"
        "  Plotly.relayout(p, {'xaxis.autorange': true}); }, 300));"
    )
    before, after, first, last = zoomed
    assert after >= before
    assert 0.9 < first <= 1.0
    assert 1.5 <= last < 1.6


def test_the_robot_is_seen_and_moves(opened):
    see(opened, "scene")
    assert until(opened, "document.querySelector('#scene canvas')")
    spread = (
        "const done = arguments[0], p = document.querySelector('#scene .plot');"
        "Plotly.toImage(p, {format: 'png'}).then(url => {"
        " const image = new Image(); image.onload = () => { const c = document.createElement('canvas');"
        " c.width = image.width; c.height = image.height; const g = c.getContext('2d'); g.drawImage(image, 0, 0);"
        " const d = g.getImageData(0, 0, c.width, c.height).data; const seen = new Set();"
        " for (let k = 0; k < d.length; k += 4)"
        "  if (d[k + 3] > 128) seen.add((d[k] << 16) | (d[k + 1] << 8) | d[k + 2]);"
        " done(seen.size); }; image.src = url; });"
    )
    assert opened.execute_async_script(spread) > 100  # shaded ellipsoids, not an empty frame
    tip = "return document.querySelector('#scene .plot').data[2].x[0]"
    before = opened.execute_script(tip)
    opened.execute_script(
        "const s = document.querySelector('#scene input'); s.value = Math.floor(s.max / 3);"
        "s.dispatchEvent(new Event('input'));"
    )
    assert until(opened, "document.querySelector('#scene .plot').data[2].x[0] !== arguments[0]", before)
    keep(opened, "robot-moved")


def test_a_table_is_copied_as_csv_with_all_digits(opened):
    text = opened.execute_script("return tableAsCsv(document.querySelector('#parameters table'))")
    head, *rows = text.strip().split("\n")
    assert head.startswith("parameter,value,95 % from,to")
    assert len(rows) > 5
    assert any(len(row.split(",")[1]) > 12 for row in rows)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_a_phone_reads_it_without_scrolling_sideways(browser, page, theme):
    media = {"features": [{"name": "prefers-color-scheme", "value": theme}]}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
    try:
        show(browser, page, width=390)
        for name in ("verdict", "torque", "parameters", "scene"):
            see(browser, name)
            keep(browser, f"phone-{theme}-{name}")
        assert browser.execute_script("return document.documentElement.scrollWidth") <= 390
        assert browser.execute_script("return document.documentElement.dataset.theme") == theme
        browser.execute_script("document.querySelector('.theme').click()")
        assert browser.execute_script("return document.documentElement.dataset.theme") != theme
        assert not complaints(browser)
    finally:
        browser.execute_script("localStorage.clear()")
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})


def test_names_of_joints_and_files_are_text_whatever_they_hold(browser, tmp_path):
    page = arm_report(tmp_path, HOSTILE)
    show(browser, page)
    for name in ("data", "excitation", "torque", "residuals", "methods", "scene"):
        see(browser, name)
    assert browser.execute_script("return window.pwned") is None
    assert not browser.find_elements("css selector", "img[src='x']")
    chip = browser.find_element("css selector", '.chip[data-joint="0"] span')
    assert chip.get_attribute("textContent") == HOSTILE
    keep(browser, "hostile-names")
    assert not complaints(browser)


def test_the_page_of_a_benchmark_opens_without_a_complaint_and_fits_a_phone(browser, tmp_path):
    study = Study.model_validate(
        {
            "robots": [{"model": "two_link", "name": HOSTILE[:40]}],
            "noise": {"position_deg": [0.0, 1e-3], "torque": [0.05]},
            "estimators": ["OLS", "WLS", "TLS", {"OLS": {"preprocessing": ["none"]}}],
            "converged": {"torque_error": 3e-4},  # so strict that maps have marks
            "guesses": 2,
            "seeds": 3,
            "trajectory": {"period": 3.0, "harmonics": 2, "rounds": 1},
        }
    )
    campaign = run_campaign(study, tmp_path / "out", Crew(1))
    assert {"wrong"} <= set(campaign.table["status"])
    write_campaign_report(campaign, tmp_path / "report.html")
    for width in (1280, 390):
        show(browser, tmp_path / "report.html", width)
        sections = browser.execute_script("return [...document.querySelectorAll('section')].map(s => s.id)")
        assert sections[0] == "short"
        count = browser.execute_script("return document.querySelectorAll('.plot').length")
        for k in range(count):  # a section is longer than the screen, and a plot is drawn when it comes into view
            browser.execute_script("document.querySelectorAll('.plot')[arguments[0]].scrollIntoView()", k)
            assert until(browser, "document.querySelectorAll('.plot')[arguments[0]].querySelector('.main-svg')", k)
            keep(browser, f"benchmark-{width}-{k}")
        traces = browser.execute_script(
            "return [...document.querySelectorAll('.plot.drawn')].map(p => p.data.map(t => t.type))"
        )
        assert [len(plot) for plot in traces[:3]] == [6, 2, 6]  # three panels, two levels
        assert {"heatmap", "scatter"} == set(traces[3])
        assert browser.execute_script("return document.documentElement.scrollWidth <= window.innerWidth")
        assert browser.execute_script("return window.pwned === undefined")
        assert not complaints(browser)
