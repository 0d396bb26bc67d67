"""The topology of the winning line over time: a column whenever it changed, in it a box for every layer."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch, Patch

from topiarist.report.canvas import draw
from topiarist.report.hovering import with_titles
from topiarist.report.lineage import Lineage, Node, count, read_lineage, story, title_of
from topiarist.report.lineage_looks import COLOURS
from topiarist.report.svg import INK

MOST_COLUMNS = 12
ACROSS_POINTS, LEFT_POINTS, WIDEST_COLUMN_POINTS = 520.0, 58.0, 66.0
TALLEST_POINTS, MOST_POINTS_A_DOUBLING = 270.0, 9.0
LOWEST_BOX_POINTS, END_POINTS, REMOVED_POINTS = 12.0, 15.0, 2.5
GAP_POINTS, ROW_POINTS, HEADER_POINTS, MARGIN_POINTS = 4.0, 13.0, 34.0, 66.0
FONT_POINTS, LETTER = 8.0, 0.6
FILLS = {"grow": 0.25, "shrink": 0.3, "identity": 0.07}
EDGES = {"grow": 1.0, "shrink": 1.0, "identity": 0.5}
MEANINGS = {"grow": "wider or new", "shrink": "narrower or removed"}
CENTRED: dict[str, Any] = {"horizontalalignment": "center", "verticalalignment": "center", "fontsize": FONT_POINTS}


@dataclass(frozen=True, kw_only=True)
class Box:
    """A layer: what is told of it, its width (0 once removed), whether it grew; input and output have a letter."""

    title: str
    width: int = 0
    group: str = "identity"
    letter: str = ""

    def points(self, scale: float) -> float:
        """Give its height, which goes with the logarithm of its width as far as a number still fits in."""
        if self.letter:
            return END_POINTS
        return max(LOWEST_BOX_POINTS, scale * math.log2(1 + self.width)) if self.width else REMOVED_POINTS


@dataclass(frozen=True, kw_only=True)
class Column:
    """The topology from an epoch on, from input to output."""

    epoch: float
    node: Node
    boxes: tuple[Box, ...]

    def points(self, scale: float) -> float:
        """Give the height of all boxes and the gaps between them."""
        return sum(box.points(scale) + GAP_POINTS for box in self.boxes)


def topology_over_time(record: Mapping[str, Any], *, title: str = "Topology of the winning line") -> str:
    """Draw the layers of the winning line as an SVG, from input (I) to output (O), each time that they changed.

    The height of a box goes with the logarithm of its width. Of more than twelve columns those in the middle are left
    out.
    """
    lineage = read_lineage(record)
    columns = columns_of(lineage)
    shown = without_middle(columns)
    scale = points_a_doubling(columns)
    depth = HEADER_POINTS + max(column.points(scale) for column in shown if column is not None)
    titles: dict[str, str] = {}

    def paint(figure: Figure, axes: Axes) -> None:
        axes.set_axis_off()
        axes.set(xlim=(0, ACROSS_POINTS), ylim=(depth, 0))
        across = min(WIDEST_COLUMN_POINTS, (ACROSS_POINTS - LEFT_POINTS) / len(shown))
        for row, name in enumerate(("epoch", "parameters")):
            axes.text(0, ROW_POINTS * (row + 0.5), name, fontsize=FONT_POINTS, verticalalignment="center", alpha=0.75)
        for place, column in enumerate(shown):
            middle = LEFT_POINTS + across * (place + 0.5)
            if column is None:
                left_out = f"{len(columns) - MOST_COLUMNS} more"
                axes.text(middle, HEADER_POINTS + END_POINTS, f"…\n{left_out}", alpha=0.75, **CENTRED)
            else:
                draw_column(axes, column, middle, across, scale, titles)
        add_legend(figure, columns)

    height = (depth + MARGIN_POINTS) / 72
    svg = draw(paint, title=title, description=describe(columns, lineage), height_inches=height)
    return with_titles(svg, titles)


def columns_of(lineage: Lineage) -> list[Column]:
    """Give the topology at the start, after every change, and at the end."""
    columns: list[Column] = []
    for node in lineage.winning:
        before = columns[-1].node.widths if columns else node.widths
        if not columns or node.widths != before:
            columns.append(Column(epoch=node.begins, node=node, boxes=boxes_of(before, node.widths)))
    last = lineage.winning[-1]
    if last.ends > columns[-1].epoch:
        columns.append(Column(epoch=last.ends, node=last, boxes=boxes_of(last.widths, last.widths)))
    return columns


def without_middle(columns: Sequence[Column]) -> list[Column | None]:
    """Give the first and the last columns with None for what is left out between them."""
    half = MOST_COLUMNS // 2
    return list(columns) if len(columns) <= MOST_COLUMNS else [*columns[:half], None, *columns[-half:]]


def boxes_of(before: Sequence[tuple[str, int]], after: Sequence[tuple[str, int]]) -> tuple[Box, ...]:
    """Compare the layers of two topologies by their names; one that is removed keeps its place, without a width."""
    earlier = dict(before)
    boxes = [(name, box_of(name, width, earlier.get(name, 0))) for name, width in after]
    for place, (name, width) in enumerate(before):
        if name not in dict(after):
            ahead = {other for other, _ in before[:place]}
            where = max((rank for rank, (other, _) in enumerate(boxes, start=1) if other in ahead), default=0)
            boxes.insert(where, (name, box_of(name, 0, width)))
    return Box(title="input", letter="I"), *(box for _, box in boxes), Box(title="output", letter="O")


def box_of(name: str, width: int, earlier: int) -> Box:
    """Say of one layer what became of it."""
    if width == earlier:
        return Box(width=width, title=f"{name}: {width:,}")
    was = f"{earlier:,} before" if earlier else "new"
    title = f"{name}: {width:,} ({was})" if width else f"{name}: removed ({was})"
    return Box(width=width, title=title, group="grow" if width > earlier else "shrink")


def points_a_doubling(columns: Sequence[Column]) -> float:
    """Give the height of a box for every doubling of its width, such that the tallest column is not too tall."""
    doublings = max(sum(math.log2(1 + box.width) for box in column.boxes) for column in columns)
    return min(MOST_POINTS_A_DOUBLING, TALLEST_POINTS / max(doublings, 1.0))


def draw_column(axes: Axes, column: Column, middle: float, across: float, scale: float, titles: dict[str, str]) -> None:
    """Draw one topology, and above it since when it is, and how many parameters it has."""
    link = add_title(titles, title_of(column.node))
    axes.text(middle, 0.5 * ROW_POINTS, f"{column.epoch:.4g}", fontweight="bold", url=link, **CENTRED)
    axes.text(middle, 1.5 * ROW_POINTS, compact(column.node.parameters, across - 4), url=link, **CENTRED)
    top, wide = HEADER_POINTS, 0.82 * across
    for box in column.boxes:
        points = box.points(scale)
        edge = (COLOURS[box.group], EDGES[box.group])
        fill = "none" if box.letter else (COLOURS[box.group], FILLS[box.group])
        look: dict[str, Any] = {"facecolor": fill, "edgecolor": edge, "linewidth": 0.9}
        shape = f"round,pad=0,rounding_size={min(2.5, points / 2):g}"
        link = add_title(titles, box.title)
        axes.add_patch(FancyBboxPatch((middle - wide / 2, top), wide, points, boxstyle=shape, url=link, **look))
        if box.letter or box.width:
            text = box.letter or compact(box.width, wide - 3)
            axes.text(middle, top + points / 2, text, url=link, **CENTRED)
        top += points
        if box.letter != "O":
            axes.plot([middle, middle], [top, top + GAP_POINTS], color=INK, linewidth=0.8, alpha=0.6)
            top += GAP_POINTS


def add_title(titles: dict[str, str], text: str) -> str:
    """Remember what is told of a part of the figure, and give the name by which it is found."""
    link = f"#{len(titles)}"
    titles[link] = text
    return link


def compact(number: float, points: float) -> str:
    """Write a count in full where that fits into so many points, with a k, an M or a G where it does not."""
    whole = count(number)
    if FONT_POINTS * LETTER * len(whole) <= points or math.isnan(number):
        return whole
    power = min(3, int(math.log10(max(number, 1)) // 3))
    return f"{number / 1000**power:.3g}{('', 'k', 'M', 'G')[power]}"


def add_legend(figure: Figure, columns: Sequence[Column]) -> None:
    """Say what the colours mean, of which only those in use."""
    used = {box.group for column in columns for box in column.boxes}
    handles = [
        Patch(facecolor=(COLOURS[group], FILLS[group]), edgecolor=COLOURS[group], linewidth=0.9, label=label)
        for group, label in MEANINGS.items()
        if group in used
    ]
    if handles:
        figure.legend(handles=handles, loc="outside lower left", ncols=2, fontsize=8.5, handlelength=1.4)


def describe(columns: Sequence[Column], lineage: Lineage) -> str:
    """Say the columns in words."""
    said = [
        f"epoch {column.epoch:.4g}: " + ("; ".join(f"{name} {width:,}" for name, width in column.node.widths) or "none")
        for column in columns
    ]
    return f"Layers and their widths. {'. '.join(said)}. {story(lineage)}"
