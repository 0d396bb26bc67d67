"""A table in LaTeX, with the rules of booktabs."""

import re
from collections.abc import Mapping, Sequence

from topiarist.report.cells import format_column, is_numeric
from topiarist.report.wording import clean

MISSING = "--"
ESCAPES = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "$": r"\$",
    "&": r"\&",
    "#": r"\#",
    "%": r"\%",
    "_": r"\_",
    "^": r"\textasciicircum{}",
    "~": r"\textasciitilde{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"\textquotedbl{}",
    # After a line break these would be read as its options, and two hyphens as a dash.
    "[": "{[}",
    "]": "{]}",
    "*": "{*}",
    "-": "-{}",
    "∞": r"$\infty$",
}
SPECIAL = re.compile("|".join(map(re.escape, ESCAPES)))


def escape_latex(text: object) -> str:
    """Give the text so that LaTeX prints it as it is."""
    return SPECIAL.sub(lambda found: ESCAPES[found[0]], clean(text))


def latex_table(columns: Mapping[str, Sequence[object]], *, caption: str | None = None) -> str:
    """Write a table environment; numbers are right-aligned and rounded, a missing cell is an en dash."""
    alignment = "".join("r" if is_numeric(values) else "l" for values in columns.values())
    rows = zip(*(latex_column(values) for values in columns.values()), strict=True)
    lines = [
        r"\begin{table}",
        r"\centering",
        *([rf"\caption{{{escape_latex(caption)}}}"] if caption else []),
        rf"\begin{{tabular}}{{{alignment}}}",
        r"\toprule",
        latex_row([escape_latex(name) for name in columns]),
        r"\midrule",
        *map(latex_row, rows),
        r"\bottomrule",
        r"\end{tabular}",
        r"\end{table}",
    ]
    return "\n".join(lines) + "\n"


def latex_column(values: Sequence[object]) -> list[str]:
    """Write the cells of a column; a minus sign of a number is one, not a hyphen."""
    cells = format_column(values)
    if is_numeric(values):
        return [MISSING if cell is None else cell.replace("-", "$-$").replace("∞", r"$\infty$") for cell in cells]
    return [MISSING if cell is None else escape_latex(cell) for cell in cells]


def latex_row(cells: Sequence[str]) -> str:
    """Write one row of a tabular."""
    return " & ".join(cells) + r" \\"
