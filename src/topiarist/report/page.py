"""A report as one page: no request to the outside, light and dark, on a phone and on paper."""

import base64
import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, NamedTuple

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from topiarist.errors import DataError
from topiarist.report.cells import format_column, is_missing, is_number, is_numeric
from topiarist.report.svg import embed
from topiarist.report.wording import replace_forbidden

if TYPE_CHECKING:
    import pandas


@dataclass(frozen=True, kw_only=True)
class Table:
    """A table of a page; a cell that is None, NaN or NA is shown as a dash.

    `highlight` has the numbers, from 0, of the rows that matter most. A DataError is raised if a row has more or fewer
    cells than there are columns, or if there is no row to highlight.
    """

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


def table_of(frame: "pandas.DataFrame", caption: str = "") -> Table:
    """Return the columns of a frame, without its index, as a table of a page."""
    rows = tuple(tuple(None if is_missing(value) else value for value in row) for row in frame.to_numpy(dtype=object))
    return Table(columns=tuple(str(name) for name in frame.columns), rows=rows, caption=caption)


@dataclass(frozen=True, kw_only=True)
class Section:
    """A section of a page: a heading, paragraphs parted by empty lines, figures as SVG, and tables."""

    title: str
    text: str = ""
    figures: tuple[str, ...] = ()
    tables: tuple[Table, ...] = ()


class TableCell(NamedTuple):
    """One cell as shown, and the number by which it is sorted."""

    text: str
    value: str | None


def render_page(*, title: str, summary: str, sections: Sequence[Section], footer: Mapping[str, str]) -> str:
    """Return a whole page as HTML; every text in it is shown as it is, never run.

    Parameters
    ----------
    title, summary : str
        The heading, and paragraphs parted by empty lines below it.
    sections : sequence of Section
    footer : mapping of names to texts

    Raises
    ------
    DataError
        If a figure is not SVG.
    """
    figures = [
        [Markup(embed(svg, prefix=f"figure-{place}-{number}-")) for number, svg in enumerate(section.figures, start=1)]
        for place, section in enumerate(sections, start=1)
    ]
    context = {"title": title, "summary": summary, "sections": sections, "figures": figures, "footer": footer}
    return render("page.html.j2", scripts=("sort.js", "scroll.js"), **context)


def render(template: str, *, scripts: Sequence[str], **context: object) -> str:
    """Return a template filled in, with the scripts that alone may run in it."""
    folder = files(__package__).joinpath("templates")
    script = "".join(folder.joinpath(name).read_text(encoding="utf-8") for name in scripts)
    script_hash = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    page = _environment().get_template(template).render(**context, script=Markup(script), script_hash=script_hash)
    return replace_forbidden(page)


@cache
def _environment() -> Environment:
    loaded = Environment(
        loader=PackageLoader("topiarist.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    loaded.filters["paragraphs"] = lambda text: [part for part in re.split(r"\s*\n\s*\n\s*", text.strip()) if part]
    loaded.filters["shown"] = _shown
    return loaded


def _shown(table: Table) -> tuple[list[str], list[tuple[TableCell, ...]]]:
    """Return the kind of each column, "number" or "text", and the rows as they are shown."""
    columns = [[row[place] for row in table.rows] for place in range(len(table.columns))]
    cells = [[_cell(*both) for both in zip(format_column(column), column, strict=True)] for column in columns]
    return ["number" if is_numeric(column) else "text" for column in columns], list(zip(*cells, strict=True))


def _cell(text: str | None, value: object) -> TableCell:
    if text is None or not is_number(value):
        return TableCell(text="–" if text is None else text, value=None)
    return TableCell(text=text.replace("-", "−"), value=repr(float(value)).replace("inf", "Infinity"))  # type: ignore[arg-type]
