"""The page in a real browser: nothing runs or is loaded that should not, and all that should answer does."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from selenium.webdriver import ActionChains, Chrome, ChromeOptions
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.remote.webelement import WebElement

from tests.report import rightsizing_record as records
from tests.report.rightsizing_reader import look_up
from topiarist.report import rightsizing_page

CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
SWITCHES = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
)
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None or DRIVER is None, reason="needs chromium and chromedriver on the PATH"),
]
SECONDS = 10
RECORD = records.record()
POINT = '.front:not([hidden]) a[aria-label="genetic-8"]'


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chrome]:
    assert CHROMIUM is not None
    options = ChromeOptions()
    options.binary_location = CHROMIUM
    for switch in (*SWITCHES, f"--user-data-dir={tmp_path_factory.mktemp('profile')}"):
        options.add_argument(switch)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = Chrome(options=options, service=Service(executable_path=DRIVER))
    driver.set_page_load_timeout(SECONDS)
    driver.set_script_timeout(SECONDS)
    yield driver
    driver.quit()


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> str:
    path: Path = tmp_path_factory.mktemp("page") / "report.html"
    path.write_text(rightsizing_page(RECORD), encoding="utf-8")
    return path.as_uri()


@pytest.fixture
def page(browser: Chrome, address: str) -> Chrome:
    resize(browser, 1100)
    browser.get("about:blank")
    browser.get(address)
    return browser


def resize(browser: Chrome, width: int) -> None:
    metrics = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)


def one(page: Chrome, selector: str) -> WebElement:
    return page.find_element(By.CSS_SELECTOR, selector)


def answer(page: Chrome, script: str) -> Any:
    return page.execute_script(f"return {script}")


def logged(page: Chrome, kind: str) -> list[dict[str, Any]]:
    entries: list[dict[str, Any]] = page.get_log(kind)  # type: ignore[no-untyped-call]
    return entries


def told(page: Chrome) -> dict[str, Any]:
    """Return the figures of the tooltip by their places in the record."""
    found = page.find_elements(By.CSS_SELECTOR, "#tooltip data")
    return {str(data.get_attribute("data-path")): json.loads(data.get_attribute("value") or "null") for data in found}


def hover(page: Chrome, selector: str) -> None:
    answer(page, f"document.querySelector('{selector}').scrollIntoView({{block: 'center'}})")
    ActionChains(page).move_to_element(one(page, selector)).perform()


def is_open(page: Chrome, card: str) -> bool:
    return bool(answer(page, f"document.getElementById('{card}').open"))


def test_nothing_goes_wrong_and_nothing_is_asked_of_the_outside(page: Chrome, address: str) -> None:
    logged(page, "performance")  # what the browser itself opened at its start
    page.get(address)
    assert logged(page, "browser") == []
    messages = [json.loads(entry["message"])["message"] for entry in logged(page, "performance")]
    asked = [m["params"]["request"]["url"] for m in messages if m["method"] == "Network.requestWillBeSent"]
    assert asked and all(url.startswith(("file:", "data:")) for url in asked)


def test_names_are_shown_as_they_are(page: Chrome) -> None:
    assert one(page, ".eyebrow bdi").text == RECORD.data.name
    assert len(page.find_elements(By.TAG_NAME, "script")) == 1
    assert page.find_elements(By.TAG_NAME, "b") == []
    assert answer(page, "document.querySelector('[data-path=\"task.names.1\"]').textContent") == records.EVIL


def test_hovering_tells_the_figures_of_a_network(page: Chrome) -> None:
    tooltip = one(page, "#tooltip")
    assert not tooltip.is_displayed()
    hover(page, POINT)
    assert tooltip.is_displayed() and tooltip.text.startswith("genetic-8")
    figures = told(page)
    assert len(figures) == 5 and figures["networks.5.parameters"] == 2186
    assert all(look_up(RECORD.to_json(), path) == value for path, value in figures.items())
    assert "97.43 %" in tooltip.text and "10.4 KB" in tooltip.text
    hover(page, POINT.replace("genetic-8", "surgeon-8"))  # its neighbour, which it touches
    assert told(page)["networks.7.parameters"] == 2220
    hover(page, "#front")
    assert not tooltip.is_displayed()


def test_a_click_opens_the_card(page: Chrome) -> None:
    assert not is_open(page, "network-5")
    hover(page, POINT)
    ActionChains(page).click().perform()
    assert is_open(page, "network-5") and not is_open(page, "network-4")
    assert 0 <= one(page, "#network-5").rect["y"] - answer(page, "scrollY") < 900
    one(page, 'table a[href="#network-4"]').click()
    assert is_open(page, "network-4")


def test_the_keyboard_does_what_the_pointer_does(page: Chrome) -> None:
    answer(page, f"document.querySelector('{POINT}').focus()")
    assert one(page, "#tooltip").is_displayed() and told(page)["networks.5.judged_score"] == 0.9743
    ActionChains(page).send_keys(Keys.ESCAPE).perform()
    assert not one(page, "#tooltip").is_displayed()
    ActionChains(page).send_keys(Keys.ENTER).perform()
    assert is_open(page, "network-5")
    ActionChains(page).send_keys(Keys.TAB).perform()
    assert answer(page, "document.activeElement.closest('#network-5') !== null")


def test_a_link_to_a_card_opens_it(page: Chrome, address: str) -> None:
    page.get("about:blank")
    page.get(f"{address}#network-7")
    assert is_open(page, "network-7")


def test_the_size_can_be_another_one(page: Chrome) -> None:
    one(page, 'input[value="macs"]').click()
    shown = [figure for figure in page.find_elements(By.CSS_SELECTOR, ".front") if figure.is_displayed()]
    assert [figure.get_attribute("data-axis") for figure in shown] == ["macs"]
    hover(page, POINT)
    assert told(page)["networks.5.macs"] == 1984


def test_a_click_on_a_heading_sorts_by_number(page: Chrome) -> None:
    table = 'table[aria-labelledby="networks"]'
    for column, field in ((3, "judged_score"), (4, "parameters"), (7, "latency_ms")):
        cells = f"[...document.querySelectorAll('{table} tbody tr')].map(row => row.cells[{column}].firstChild.value)"
        values = sorted(getattr(network, field) for network in RECORD.networks)
        header = one(page, f"{table} thead th:nth-child({column + 1})")
        button = header.find_element(By.TAG_NAME, "button")
        steps = (("ascending", values), ("descending", values[::-1]), ("ascending", values))
        for press, (direction, expected) in zip((Keys.ENTER, Keys.SPACE, None), steps, strict=True):
            button.click() if press is None else button.send_keys(press)
            assert header.get_attribute("aria-sort") == direction
            assert [float(value) for value in answer(page, cells)] == expected
    assert len(page.find_elements(By.CSS_SELECTOR, f"{table} [aria-sort]")) == 1


def test_a_narrow_page_does_not_scroll_sideways(page: Chrome) -> None:
    answer(page, "document.querySelectorAll('details').forEach(card => { card.open = true; })")
    for width in (380, 800):
        resize(page, width)
        assert answer(page, "document.documentElement.clientWidth") <= width
        assert answer(page, "document.documentElement.scrollWidth") <= width


def test_dark_is_dark_and_light_is_light(page: Chrome) -> None:
    def brightness(scheme: str) -> int:
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        page.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
        colour: str = answer(page, "getComputedStyle(document.body).backgroundColor")
        return sum(int(part) for part in colour.removeprefix("rgb(").removesuffix(")").split(","))

    assert brightness("dark") < 150 < 600 < brightness("light")
