"""Reads a page as a browser would: what is quoted from the record, what stands beside it, and what is drawn."""

from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import Any

EMPTY = {"meta", "input", "path", "use", "rect", "circle"}
UNSEEN = {"script", "style", "title", "desc"}


@dataclass
class Quoted:
    """An element with a place in the record."""

    tag: str
    attributes: dict[str, str]
    text: str = ""

    @property
    def path(self) -> str:
        return self.attributes["data-path"]


@dataclass
class Page:
    """What was found."""

    tags: list[tuple[str, dict[str, str]]] = field(default_factory=list)
    quoted: list[Quoted] = field(default_factory=list)
    loose: list[str] = field(default_factory=list)  # visible, outside of figures, and not quoted
    drawn: list[tuple[str, str]] = field(default_factory=list)  # the section of a figure, and a text in it
    headings: list[str] = field(default_factory=list)

    def values(self, name: str) -> list[str]:
        return [attributes[name] for _, attributes in self.tags if name in attributes]

    def count(self, tag: str) -> int:
        return sum(found == tag for found, _ in self.tags)


class Reader(HTMLParser):
    """Fills a `Page`, and checks that whatever opens is closed."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.page = Page()
        self.open: list[str] = []
        self.inside: Quoted | None = None
        self.section = ""
        self.feed(page)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = {name: value or "" for name, value in attrs}
        self.page.tags.append((tag, attributes))
        if tag == "section":
            self.section = attributes["aria-labelledby"]
            self.page.headings.append(self.section)
        if "data-path" in attributes:
            assert self.inside is None
            self.inside = Quoted(tag, attributes)
            self.page.quoted.append(self.inside)
        if tag not in EMPTY:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.page.tags.append((tag, {name: value or "" for name, value in attrs}))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag
        if self.inside is not None and self.inside.tag == tag:
            self.inside = None

    def handle_data(self, data: str) -> None:
        if UNSEEN & set(self.open) or not data.strip():
            return
        if self.inside is not None:
            self.inside.text += data
        elif "svg" in self.open:
            self.page.drawn.append((self.section, data.strip()))
        else:
            self.page.loose.append(data.strip())


def read_page(page: str) -> Page:
    return Reader(page).page


def look_up(written: Any, path: str) -> Any:
    """Return what is at a path such as "networks.2.parameters" in `result.json`; None where there is nothing."""
    for part in path.split("."):
        if isinstance(written, list):
            written = written[int(part)] if int(part) < len(written) else None
        else:
            written = written.get(part) if isinstance(written, dict) else None
    return written


def strictly(written: Any, path: str) -> Any:
    """Return what is at a path, which must exist."""
    for part in path.split("."):
        written = written[int(part)] if isinstance(written, list) else written[part]
    return written
