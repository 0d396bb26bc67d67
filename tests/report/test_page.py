import base64
import hashlib
import re
import subprocess
import sys
from html.parser import HTMLParser

import pytest

from topiarist import report
from topiarist.errors import DataError
from topiarist.report import Section, Table, learning_curves, render_page

SCRIPT = "<script>alert(1)</script>"
EMPTY_TAGS = {"meta", "path", "use", "rect"}


class Reader(HTMLParser):
    """Collects what a browser would find, and checks that whatever opens is closed."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text: list[str] = []
        self.open: list[str] = []
        self.feed(page)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in EMPTY_TAGS:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text.append(data)

    def values(self, name: str) -> list[str]:
        return [value for _, attributes in self.tags for key, value in attributes.items() if key == name and value]

    def count(self, tag: str) -> int:
        return sum(found == tag for found, _ in self.tags)


def sample(name: str = "network") -> str:
    figure = learning_curves({name: [[0.1, 0.2], [0.3]]}, title=name, y_label=name)
    rows = ((name, 0.5, None), ("b", -2.0, float("inf")))
    table = Table(columns=(name, "score", "size"), rows=rows, caption=name, highlight=frozenset({1}))
    bare = Table(columns=("only",), rows=())
    sections = [
        Section(title=name, text=f"{name}\n\n{name}", figures=(figure, figure), tables=(table, bare)),
        Section(title="second", figures=(figure,)),
    ]
    return render_page(title=name, summary=f"one\n \ntwo {name}", sections=sections, footer={name: name})


def test_the_page_is_well_formed_and_small() -> None:
    page = sample()
    reader = Reader(page)
    assert page.startswith("<!doctype html>")
    assert len(page) < 60_000
    assert sample() == page
    headings = [tag for tag, _ in reader.tags if re.fullmatch("h[1-6]", tag)]
    assert headings == ["h1", "h2", "h2"]
    assert ("html", {"lang": "en"}) in reader.tags
    assert reader.count("svg") == 3 and reader.count("table") == 2


def test_names_are_shown_and_never_run() -> None:
    page = sample(f"{SCRIPT}\"' onload=alert(1) &amp; \x00")
    plain, hostile = Reader(sample()), Reader(page)
    shown = "".join(hostile.text)
    assert shown.count(SCRIPT) >= 12
    assert hostile.count("script") == plain.count("script") == 1
    assert [tag for tag, _ in hostile.tags] == [tag for tag, _ in plain.tags]
    assert [set(attributes) for _, attributes in hostile.tags] == [set(attributes) for _, attributes in plain.tags]
    assert "&amp; \ufffd" in shown and "\x00" not in page


def test_nothing_is_asked_of_the_outside() -> None:
    page = sample()
    reader = Reader(page)
    assert "http://" not in page and "https://" not in page
    assert reader.values("src") == []
    assert all(link.startswith("#") for name in ("href", "xlink:href") for link in reader.values(name))
    assert "@import" not in page and "url(http" not in page
    policy = next(a["content"] for tag, a in reader.tags if tag == "meta" and "http-equiv" in a)
    script = re.search(r"<script>(.*)</script>", page, re.DOTALL)
    assert script is not None and policy is not None
    digest = base64.b64encode(hashlib.sha256(script[1].encode()).digest()).decode()
    assert "default-src 'none'" in policy and f"script-src 'sha256-{digest}'" in policy


def test_ids_are_unique_and_links_lead_somewhere() -> None:
    page = sample()
    reader = Reader(page)
    ids = reader.values("id")
    assert len(ids) == len(set(ids)) > 6
    linked = [link[1:] for name in ("href", "xlink:href") for link in reader.values(name)]
    used = re.findall(r"url\(#([^)]+)\)", page)
    labels = reader.values("aria-labelledby")
    assert linked and used and labels
    assert set(linked + used + labels) <= set(ids)


def test_numbers_are_aligned_sortable_and_readable() -> None:
    reader = Reader(sample())
    cells = [(tag, a) for tag, a in reader.tags if tag in ("td", "th")]
    assert [a.get("scope") for tag, a in cells if tag == "th"] == ["col", "col", "col", "row", "row", "col"]
    assert [(a["class"], a.get("data-value")) for tag, a in cells if tag == "td"] == [
        ("number", "0.5"),
        ("number", None),
        ("number", "-2.0"),
        ("number", "Infinity"),
    ]
    assert {"0.5", "–", "−2.0", "∞"} <= set(reader.text)
    assert [a.get("class") for tag, a in reader.tags if tag == "tr"] == [None, None, "highlight", None]


def test_a_single_section_needs_no_navigation() -> None:
    page = render_page(title="t", summary="", sections=[Section(title="only")], footer={})
    reader = Reader(page)
    assert reader.count("nav") == reader.count("footer") == reader.count("p") == 0
    assert Reader(sample()).count("nav") == 1


def test_tables_that_do_not_fit_are_refused() -> None:
    with pytest.raises(DataError, match="row 1 of a table has 1 cells: it has 2 columns"):
        Table(columns=("a", "b"), rows=((1, 2), (3,)))
    with pytest.raises(DataError, match="cannot highlight row 1 of a table with 1 rows"):
        Table(columns=("a",), rows=((1,),), highlight=frozenset({0, 1}))


@pytest.mark.slow
@pytest.mark.parametrize(
    "statement, loaded",
    [
        ("import topiarist.report", []),
        ("from topiarist.report import Table, render_page", ["jinja2"]),
        ("from topiarist.report import learning_curves, lineage_tree, pareto_figure", ["matplotlib"]),
        ("from topiarist.report import format_table", ["pandas"]),
    ],
)
def test_libraries_are_loaded_where_they_are_used(statement: str, loaded: list[str]) -> None:
    watched = {"jinja2", "matplotlib", "matplotlib.pyplot", "pandas", "topiarist.data", "torch"}
    code = f"import sys\n{statement}\nprint(sorted({watched} & set(sys.modules)))\n"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert found == f"{loaded}\n"


def test_names_of_the_package_are_those_it_lists() -> None:
    assert all(hasattr(report, name) for name in report.__all__)
    with pytest.raises(AttributeError, match="has no attribute 'nonsense'"):
        report.nonsense  # noqa: B018
