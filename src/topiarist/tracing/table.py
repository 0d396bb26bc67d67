"""An anatomy as a table to read, with what the network could lose."""

import textwrap
from collections.abc import Mapping, Sequence

from topiarist.notebooks import html_table
from topiarist.tracing.parameter_sizes import Shapes
from topiarist.tracing.removable import Removable, find_removable
from topiarist.tracing.spaces import Place, Space

COLUMNS = 100  # of a terminal that shows code beside it
_HEADINGS = ("space", "units", "written by", "passes through", "read by", "")
# How far columns are shortened, one step after the other, where a table is too wide; 0: left out. Lists of layers come
# first, names of spaces last: they are what the verbs of surgery take.
_STEPS = (((2, 3, 4), 16), ((5,), 24), ((3,), 0), ((2, 4), 10), ((5,), 14), ((0, 1, 2, 4, 5), 1))
_MOST_HOLDERS = 6  # named below the table, with their whole reasons: enough to see where most of it is


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
    whole = [max(len(", ".join(cell)) for cell in column) for column in zip(*rows, strict=True)]
    widths = _fitting_widths(whole, columns)
    shown = [[_shortened(cell, width) for cell, width in zip(row, widths, strict=True) if width] for row in rows]
    lines, removable = aligned(shown), find_removable(spaces, shapes)
    lines += [line for text in [_count_of(removable), *notes] for line in textwrap.wrap(text, COLUMNS)]
    return "\n".join([*lines, *_holders(spaces, removable)])


def html_of(spaces: Mapping[str, Space], shapes: Shapes, notes: Sequence[str] = ()) -> str:
    """Return the spaces as a table for a notebook, with how many parameters can go and notes on the run."""
    rows = [
        {
            "space": space.name,
            "units": f"{space.size:,}",
            "written by": ", ".join(map(_described, space.producers)),
            "passes through": ", ".join(map(_described, space.passes)),
            "read by": ", ".join(map(_described, space.consumers)),
            "fixed": space.reason or "",
        }
        for space in spaces.values()
    ]
    return html_table(rows, notes=[_count_of(find_removable(spaces, shapes)), *notes])


def _fitting_widths(widths: Sequence[int], columns: int) -> list[int]:
    """Return how wide each column becomes so that a line fits; 0 for one that is left out."""
    found = list(widths)
    for places, least in _STEPS:
        while _line_width(found) > columns and max(found[place] for place in places) > least:
            widest = max(places, key=found.__getitem__)
            found[widest] = found[widest] - 1 if least else 0
    return found


def _line_width(widths: Sequence[int]) -> int:
    """Return how wide a line of columns is, two spaces between those that are there."""
    return sum(width + 2 for width in widths if width) - 2


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


def _count_of(removable: Removable) -> str:
    """Return how many parameters can go, in words."""
    return f"{removable.count:,} of {removable.parameters:,} parameters can go, with one unit left per space."


def _holders(spaces: Mapping[str, Space], removable: Removable) -> list[str]:
    """Return what holds most of the rest, and why, a line or more for each."""
    held = removable.held
    if not held:
        return []
    lines = ["Held by what is fixed:"]
    for name in list(held)[:_MOST_HOLDERS]:
        text = f"{held[name]:,} by '{name}': {spaces[name].reason}"
        lines += textwrap.wrap(text, COLUMNS, initial_indent="  ", subsequent_indent="    ", break_long_words=False)
    return [*lines, f"  and {len(held) - _MOST_HOLDERS} more"] if len(held) > _MOST_HOLDERS else lines
