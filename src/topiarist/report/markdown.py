"""A table in Markdown, readable also as plain text."""

import re
from collections.abc import Mapping, Sequence

from topiarist.report.cells import format_column, is_numeric
from topiarist.report.wording import clean

MISSING = "–"
SPECIAL = re.compile(r"[\\`*_\[\]<>|&~$#]")


def escape_markdown(text: object) -> str:
    """Give the text so that Markdown shows it as it is."""
    return SPECIAL.sub(r"\\\g<0>", clean(text))


def markdown_table(columns: Mapping[str, Sequence[object]], *, caption: str | None = None) -> str:
    """Write a table with pipes; numbers are right-aligned and rounded, a missing cell is an en dash."""
    blocks = [markdown_column(name, values) for name, values in columns.items()]
    lines = [f"| {' | '.join(cells)} |" for cells in zip(*blocks, strict=True)]
    heading = [f"*{escape_markdown(caption)}*", ""] if caption else []
    return "\n".join([*heading, *lines]) + "\n"


def markdown_column(name: str, values: Sequence[object]) -> list[str]:
    """Write the heading, the rule and the cells of a column, all of one width."""
    cells = [
        escape_markdown(name),
        *(MISSING if cell is None else escape_markdown(cell) for cell in format_column(values)),
    ]
    width = max(3, *map(len, cells))
    if is_numeric(values):
        heading, *body = (cell.rjust(width) for cell in cells)
        return [heading, "-" * (width - 1) + ":", *body]
    heading, *body = (cell.ljust(width) for cell in cells)
    return [heading, "-" * width, *body]
