"""An anatomy as a table to read."""

from collections.abc import Mapping, Sequence

from topiarist.tracing.spaces import Place, Space

HEADINGS = ("space", "units", "written by", "passes through", "read by", "")


def render(spaces: Mapping[str, Space], opaque: Sequence[str] = ()) -> str:
    """Give one line a space, and below them what was not understood."""
    rows = [HEADINGS, *(row(space) for space in spaces.values())]
    widths = [max(len(line[column]) for line in rows) for column in range(len(HEADINGS))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in rows]
    return "\n".join([*lines, *(f"not understood: {text}" for text in opaque)])


def row(space: Space) -> tuple[str, ...]:
    """Give the cells of one space."""
    roles = (space.producers, space.passes, space.consumers)
    cells = (", ".join(map(describe, places)) or "-" for places in roles)
    return space.name, str(space.size), *cells, f"fixed: {space.reason}" if space.fixed else ""


def describe(place: Place) -> str:
    """Name a layer, with the offset of the units along its axis and the positions that each takes, where not plain."""
    offset = f"+{place.offset}" if place.offset else ""
    repeat = f"×{place.repeat}" if place.repeat > 1 else ""
    return f"{place.name}{offset}{repeat}"
