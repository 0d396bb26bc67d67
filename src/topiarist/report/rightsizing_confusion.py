"""Confusion matrices before and after: as heat maps, or for many classes as the pairs that are confused most."""

from collections.abc import Sequence
from dataclasses import dataclass

from topiarist.report.page import TableCell
from topiarist.report.rightsizing_quotes import Record, look_up, quoted_cell
from topiarist.report.rightsizing_tables import Grid

MOST_CLASSES = 30
MOST_PAIRS = 15

Counts = Sequence[Sequence[int]]


@dataclass(frozen=True, kw_only=True)
class Square:
    """One count: its place in the record, its share of the true class, and whether it is of right answers."""

    path: str
    count: int
    share: float
    right: bool


def heat_map(record: Record, side: str) -> list[list[Square]] | None:
    """Give the squares of a matrix, a row for each true class; None where there is no matrix, or too large a one."""
    counts: Counts | None = look_up(record, f"confusion.{side}")
    if not counts or len(counts) > MOST_CLASSES:
        return None
    return [
        [
            Square(
                path=f"confusion.{side}.{true}.{given}",
                count=count,
                share=count / max(sum(row), 1),
                right=true == given,
            )
            for given, count in enumerate(row)
        ]
        for true, row in enumerate(counts)
    ]


def confused_pairs(record: Record) -> Grid | None:
    """Give the pairs of classes that are confused most, before and after together; None where all fit in a matrix."""
    sides = [side for side in ("before", "after") if look_up(record, f"confusion.{side}")]
    matrices: list[Counts] = [look_up(record, f"confusion.{side}") for side in sides]
    if not matrices or len(matrices[0]) <= MOST_CLASSES:
        return None
    classes = range(len(matrices[0]))
    pairs = [(true, given) for true in classes for given in classes if true != given]
    together = {(true, given): sum(matrix[true][given] for matrix in matrices) for true, given in pairs}
    most = sorted([pair for pair in pairs if together[pair]], key=lambda pair: -together[pair])[:MOST_PAIRS]
    return Grid(
        columns=("true class", "taken for", *sides),
        kinds=("text", "text", *["number"] * len(sides)),
        rows=tuple(row_of(record, pair, sides) for pair in most),
        caption="The pairs of classes that are confused most",
    )


def row_of(record: Record, pair: tuple[int, int], sides: Sequence[str]) -> tuple[TableCell, ...]:
    """Give the row of one pair."""
    true, given = pair
    names = [quoted_cell(record, f"data.classes.{place}") for place in pair]
    return *names, *(quoted_cell(record, f"confusion.{side}.{true}.{given}", "count") for side in sides)
