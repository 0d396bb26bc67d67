"""A report as one page: no request to the outside, light and dark, on a phone and on paper."""

import base64
import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

import pandas
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from topiarist.errors import DataError
from topiarist.report.cells import format_column, is_missing, is_number, is_numeric
from topiarist.report.svg import embed
from topiarist.report.wording import replace_forbidden

PARAGRAPHS = re.compile(r"\n\s*\n")


@dataclass(frozen=True, kw_only=True)
class Table:
    """Rows of numbers and texts; `highlight` has the numbers, from 0, of the rows that matter most."""

    columns: tuple[str, ...]
    rows: tuple[tuple[object, ...], ...]
    caption: str = ""
    highlight: frozenset[int] = frozenset()

    def __post_init__(self) -> None:
        for number, row in enumerate(self.rows):
            if len(row) != len(self.columns):
                raise DataError(f"row {number} of a table has {len(row)} cells: it has {len(self.columns)} columns")
        beyond = self.highlight - set(range(len(self.rows)))
        if beyond:
            raise DataError(f"cannot highlight row {min(beyond)} of a table with {len(self.rows)} rows")


def table_of(frame: pandas.DataFrame, caption: str = "") -> Table:
    """Give a tidy table as a page shows it."""
    rows = tuple(tuple(None if pandas.isna(value) else value for value in row) for row in frame.to_numpy(dtype=object))
    return Table(columns=tuple(str(name) for name in frame.columns), rows=rows, caption=caption)


@dataclass(frozen=True, kw_only=True)
class Section:
    """A heading, paragraphs parted by empty lines, figures as SVG, and tables."""

    title: str
    text: str = ""
    figures: tuple[str, ...] = ()
    tables: tuple[Table, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One cell as shown, and the number by which it is sorted."""

    text: str
    value: str | None


def render_page(*, title: str, summary: str, sections: Sequence[Section], footer: Mapping[str, str]) -> str:
    """Give the whole page as HTML; every text in it is shown as it is, never run."""
    return render(
        "page.html.j2",
        scripts=("sort.js", "scroll.js"),
        title=title,
        summary=summary,
        sections=sections,
        figures=numbered_figures(sections),
        footer=footer,
    )


def render(template: str, *, scripts: Sequence[str], **context: object) -> str:
    """Give a template filled in, with the scripts that alone may run in it."""
    folder = files(__package__).joinpath("templates")
    script = "".join(folder.joinpath(name).read_text(encoding="utf-8") for name in scripts)
    script_hash = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    page = environment().get_template(template).render(**context, script=Markup(script), script_hash=script_hash)
    return replace_forbidden(page)


@cache
def environment() -> Environment:
    """Give the templates, which escape whatever they are given."""
    loaded = Environment(
        loader=PackageLoader("topiarist.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    loaded.filters["paragraphs"] = paragraphs
    loaded.filters["cells"] = cells
    loaded.filters["alignments"] = alignments
    return loaded


def numbered_figures(sections: Sequence[Section]) -> list[list[Markup]]:
    """Give the figures of each section, the names inside them distinct over the whole page."""
    return [
        [Markup(embed(svg, prefix=f"figure-{place}-{number}-")) for number, svg in enumerate(section.figures, start=1)]
        for place, section in enumerate(sections, start=1)
    ]


def paragraphs(text: str) -> list[str]:
    """Give the paragraphs of a text, which empty lines part."""
    return [part.strip() for part in PARAGRAPHS.split(text) if part.strip()]


def alignments(table: Table) -> list[str]:
    """Say for each column whether it holds numbers."""
    return ["number" if is_numeric(column_of(table, place)) else "text" for place in range(len(table.columns))]


def cells(table: Table) -> list[list[Cell]]:
    """Give the rows of a table as they are shown."""
    columns = [column_of(table, place) for place in range(len(table.columns))]
    shown = [[as_cell(text, value) for text, value in zip(format_column(c), c, strict=True)] for c in columns]
    return [list(row) for row in zip(*shown, strict=True)]


def column_of(table: Table, place: int) -> list[object]:
    """Give the values of one column."""
    return [row[place] for row in table.rows]


def as_cell(text: str | None, value: object) -> Cell:
    """Give one cell; numbers get a true minus sign, a missing one is an en dash."""
    if text is None or is_missing(value):
        return Cell(text="–", value=None)
    if is_number(value):
        return Cell(text=text.replace("-", "−"), value=repr(float(value)).replace("inf", "Infinity"))  # type: ignore[arg-type]
    return Cell(text=text, value=None)
