"""An anatomy as a table to read, with what the network could lose."""

import textwrap
from collections.abc import Mapping, Sequence

from topiarist.tracing.parameter_sizes import Shapes
from topiarist.tracing.removable import find_removable
from topiarist.tracing.spaces import Place, Space

COLUMNS = 100  # of a terminal that shows code beside it
_HEADINGS = ("space", "units", "written by", "passes through", "read by", "")
_LIST_LENGTH = 16  # of "passes through" and a little more
_MOST_HOLDERS, _REASON_LENGTH = 6, 40  # what is named below the table: enough to see where most of it is


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return one line per row, with the cells of a column below each other."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]


def render(spaces: Mapping[str, Space], shapes: Shapes, notes: Sequence[str] = (), *, columns: int = COLUMNS) -> str:
    """Return one line per space, how many parameters can go and what holds the rest, and notes on the run.

    The table is at most `columns` wide, for which names and lists are shortened.
    """
    rows = [[[heading] for heading in _HEADINGS]]
    for space in spaces.values():
        places = ([_described(place) for place in role] for role in (space.producers, space.passes, space.consumers))
        rows.append([[space.name], [str(space.size)], *places, [f"fixed: {space.reason}" if space.fixed else ""]])
    widths = [max(len(", ".join(cell)) for cell in column) for column in zip(*rows, strict=True)]
    while sum(widths) + 2 * (len(widths) - 1) > columns:  # lists of layers are the first to be shortened
        long = [column for column in (2, 3, 4) if widths[column] > _LIST_LENGTH] or range(len(widths))
        widths[max(long, key=widths.__getitem__)] -= 1
    lines = aligned([[_shortened(cell, width) for cell, width in zip(row, widths, strict=True)] for row in rows])
    below = [_removable(spaces, shapes), *notes]
    return "\n".join([*lines, *(line for note in below for line in textwrap.wrap(note, COLUMNS))])


def _described(place: Place) -> str:
    """Name a layer, with the offset of the units along its axis and the positions per unit, where not plain."""
    offset = f"+{place.offset}" if place.offset else ""
    return f"{place.name}{offset}{f'×{place.repeat}' if place.repeat > 1 else ''}"


def _shortened(names: Sequence[str], width: int) -> str:
    """Return as many names as fit, and how many more there are; of a long name the end stays, of a reason the start."""
    text = ", ".join(names) if names else "-"
    for shown in range(len(names) - 1, 0, -1):
        if len(text) > width:
            text = f"{', '.join(names[:shown])} +{len(names) - shown}"
    if len(text) <= width:
        return text
    return f"{text[: width - 1]}…" if text.startswith("fixed: ") else f"…{text[1 - width :]}"


def _removable(spaces: Mapping[str, Space], shapes: Shapes) -> str:
    """Return how many parameters can go, and what holds most of the rest, in words."""
    found = find_removable(spaces, shapes)
    shown = list(found.held)[:_MOST_HOLDERS]
    reasons = {name: textwrap.shorten(spaces[name].reason or "", _REASON_LENGTH, placeholder="…") for name in shown}
    named = ", ".join(f"'{name}' {found.held[name]:,} ({reasons[name]})" for name in shown)
    more = f" and {len(found.held) - len(shown)} more" if len(found.held) > len(shown) else ""
    rest = f" Held by what is fixed: {named}{more}." if named else ""
    return f"{found.count:,} of {found.parameters:,} parameters can go, with one unit left per space.{rest}"
