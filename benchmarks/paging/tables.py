"""Figures as Markdown tables."""

from collections.abc import Callable, Mapping, Sequence

from benchmarks.paging.records import MEASURES, Cell, Figure, Grid, Sheet

MISSING = "–"
Shown = Callable[[Figure], str]


def markdown(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table; all columns but the first are aligned to the right where their cells are numbers."""
    aligned = ["---:" if place and _is_number(rows, place) else "---" for place in range(len(head))]
    lines = [list(head), aligned, *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _is_number(rows: Sequence[Sequence[str]], place: int) -> bool:
    cells = [row[place].lstrip("*+−-~≤≥ ") for row in rows if row[place] not in ("", MISSING)]
    return bool(cells) and all(cell[:1].isdigit() for cell in cells)


def written(grid: Grid) -> str:
    """Return a table as it was recorded."""
    return markdown(grid.head, [[_cell(cell) for cell in row] for row in grid.rows])


def _cell(cell: Cell) -> str:
    if cell is None:
        return ""
    return cell if isinstance(cell, str) else f"{cell:,}" if isinstance(cell, int) else f"{cell:g}"


def shown(figure: Figure, digits: int) -> str:
    """Return a mean with its standard deviation, or the best of rounds."""
    text = f"{figure.value:,.{digits}f}"
    deviation = figure.deviation
    averaged = MEASURES[figure.measure].summary not in (min, max)
    if averaged and deviation is not None:
        text += f" ± {deviation:.{digits}f}"
    return f"**{text}**" if figure.role == "ours" else text


def by_case(
    sheet: Sheet, measure: str, *, table: str = "", digits: int = 2, corner: str = "", leave: Sequence[str] = ()
) -> str:
    """Return a line per contender and a column per case, but for cases that are left out."""
    found = [
        each for each in sheet.figures if (each.table, each.measure) == (table, measure) and each.case not in leave
    ]
    cases = list(dict.fromkeys(each.case for each in found))
    known = {(each.case, each.contender): each for each in found}
    rows = [
        [name, *(shown(known[case, name], digits) if (case, name) in known else MISSING for case in cases)]
        for name in dict.fromkeys(each.contender for each in found)
    ]
    return markdown([corner, *cases], rows)


def by_contender(sheet: Sheet, measure: str, *, table: str = "", digits: int = 2, corner: str = "") -> str:
    """Return a line per case and a column per contender."""
    found = [each for each in sheet.figures if (each.table, each.measure) == (table, measure)]
    names = list(dict.fromkeys(each.contender for each in found))
    known = {(each.case, each.contender): each for each in found}
    rows = [
        [case, *(shown(known[case, name], digits) if (case, name) in known else MISSING for name in names)]
        for case in dict.fromkeys(each.case for each in found)
    ]
    return markdown([corner, *names], rows)


def by_measure(
    sheet: Sheet, digits: Mapping[str, int], *, table: str = "", times: str = "", beside: str = "", corner: str = ""
) -> str:
    """Return a line per case and contender, and a column per measure.

    `times` names a measure of which a last column has the ratio to ours, with that of single rounds in turn; its
    heading is `beside`.
    """
    found = [each for each in sheet.figures if each.table == table]
    known = {(each.case, each.contender, each.measure): each for each in found}
    rows = []
    for case, name in dict.fromkeys((each.case, each.contender) for each in found):
        label = f"{case}: {name}" if case else name
        cells = [known.get((case, name, measure)) for measure in digits]
        row = [label, *(MISSING if each is None else shown(each, digits[each.measure]) for each in cells)]
        rows.append([*row, _ratio(found, known.get((case, name, times)))] if times else row)
    return markdown([corner, *digits, *([beside] if times else [])], rows)


def ratio(sheet: Sheet, case: str, one: str, other: str, measure: str) -> str:
    """Return how many times as much one contender is as another, with the least and the most of rounds in turn."""
    first, second = (sheet.find(case, name, measure) for name in (one, other))
    return _times(first, second, digits=2)


def largest(sheet: Sheet, measure: str, table: str = "") -> float:
    """Return the largest value of a measure in a table."""
    return max(each.value for each in sheet.figures if (each.table, each.measure) == (table, measure))


def _ratio(found: Sequence[Figure], figure: Figure | None) -> str:
    """Return how many times ours a figure is, with the least and the most of rounds in turn."""
    if figure is None or figure.role == "ours":
        return ""
    key = (figure.case, figure.measure, "ours")
    own = next((each for each in found if (each.case, each.measure, each.role) == key), None)
    return MISSING if own is None else _times(figure, own, digits=1)


def _times(one: Figure, other: Figure, *, digits: int) -> str:
    rounds = [first / second for first, second in zip(one.values, other.values, strict=False)]
    several = f" ({min(rounds):.{digits}f} to {max(rounds):.{digits}f})" if len(rounds) > 1 else ""
    return f"{one.value / other.value:.{digits}f} ×{several}"
