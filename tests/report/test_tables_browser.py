"""The tables of a page in a real browser: none is cut off, and one that goes on beyond its box says so."""

import shutil
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from selenium.webdriver import Chrome, ChromeOptions
from selenium.webdriver.chrome.service import Service

from tests.report import rightsizing_record as records
from tests.report.test_rightsizing_browser import CHROMIUM, DRIVER, SECONDS, SWITCHES, resize
from topiarist.report import Section, Table, render_page, rightsizing_page

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None or DRIVER is None, reason="needs chromium and chromedriver on the PATH"),
]

# Tables as the reproductions make them: few columns, long texts, a dozen columns, and more than any window holds.
HEADINGS = ("model", "pruned", "runs", "micro", "macro", "sd", "macro (paper, its own data)", "log loss", "p, micro")
FEW = Table(columns=("alternative", "verdict"), rows=(("a", "helped"), ("b", "hurt")))
LONG = Table(
    columns=("practice", "what the paper recommends", "what we measured", "verdict"),
    rows=tuple(
        (f"practice {n}", "a sentence of many words " * 4, "+0.1234 [-0.1, 0.3] " * 3, "held") for n in range(3)
    ),
)
MANY = Table(
    columns=(*HEADINGS, "p, macro", "p (paper, its own data)", "macro, 8 bits"),
    rows=tuple(("V(2,2,3,3), mixed", "no", 10, *[0.12345 * n for n in range(1, 10)]) for _ in range(4)),
    caption="Accuracy",
)
TEXT_LAST = Table(
    columns=("alternative", *(f"figure {n}" for n in range(7)), "verdict, log loss", "verdict, accuracy"),
    rows=(("patience 20, by accuracy", *[0.1234] * 7, "no difference shown", "no difference shown"),),
)
ENDLESS = Table(columns=tuple(f"column{n}" for n in range(40)), rows=(tuple(0.5 + n for n in range(40)),))
MEASURE = """
return [...document.querySelectorAll("table")].filter(table => table.offsetWidth).map(table => {
  const box = table.closest(".scroll"), inside = box.getBoundingClientRect();
  const hint = box.previousElementSibling;
  return {
    needed: box.scrollWidth, given: box.clientWidth, overflow: getComputedStyle(box).overflowX,
    left: inside.left, right: inside.right, window: document.documentElement.clientWidth,
    said: Boolean(hint) && hint.classList.contains("hint") && getComputedStyle(hint).display !== "none",
  };
});
"""


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chrome]:
    options = ChromeOptions()
    options.binary_location = str(shutil.which("chromium"))
    for switch in (*SWITCHES, f"--user-data-dir={tmp_path_factory.mktemp('profile')}"):
        options.add_argument(switch)
    driver = Chrome(options=options, service=Service(executable_path=DRIVER))
    driver.set_page_load_timeout(SECONDS)
    yield driver
    driver.quit()


@cache
def drawn(name: str) -> str:
    if name == "rightsizing":
        return rightsizing_page(records.record())
    tables = Section(title="All", tables=(FEW, LONG, MANY, TEXT_LAST, ENDLESS))
    return render_page(title="Tables", summary="Some tables.", sections=[tables], footer={"Data": "none"})


@pytest.mark.parametrize("width", [1100, 800, 390])
@pytest.mark.parametrize("name", ["page", "rightsizing"])
def test_no_table_is_cut_off(browser: Chrome, tmp_path: Path, name: str, width: int) -> None:
    place = tmp_path / "page.html"
    place.write_text(drawn(name), encoding="utf-8")
    resize(browser, width)
    browser.get(place.as_uri())
    browser.execute_script("document.querySelectorAll('details').forEach(card => { card.open = true; })")
    browser.execute_async_script("requestAnimationFrame(() => requestAnimationFrame(arguments[0]))")
    measured: list[dict[str, Any]] = browser.execute_script(MEASURE)
    assert measured
    for table in measured:
        assert table["left"] >= 0 and table["right"] <= table["window"]
        assert table["overflow"] == "auto"
        assert table["said"] == (table["needed"] > table["given"] + 1)
    assert browser.execute_script("return document.documentElement.scrollWidth") <= width
    if name == "page":
        few, long, many, text_last, endless = (table["said"] for table in measured)
        assert endless and not few
        assert not long or width < 800
        assert not (many or text_last) or width < 1100
