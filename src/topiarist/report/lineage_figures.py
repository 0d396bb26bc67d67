"""The lineage of a network as figures: the tree of its edits, and the accuracy along every branch."""

import math
from collections.abc import Mapping, Sequence
from itertools import cycle
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import PathPatch
from matplotlib.path import Path

from topiarist.errors import DataError
from topiarist.report.canvas import BLUE, DASH_DOTTED, DASHED, DOTTED, FAINT, draw
from topiarist.report.hovering import with_titles
from topiarist.report.lineage import Lineage, Node, read_lineage, story
from topiarist.report.lineage_layout import LABEL_POINTS, ROW_POINTS, Layout, lay_out
from topiarist.report.lineage_looks import (
    BRANCH,
    WINNING,
    add_legend,
    draw_dropped,
    link,
    mark_edits,
    scale_epochs,
    titles_of,
)
from topiarist.report.svg import INK
from topiarist.report.wording import clean

Place = tuple[float, float]

MARGIN_POINTS, PAD_POINTS = 105.0, 9.0
DROPPED_MARKER_POINTS = 3.0


def lineage_tree(record: Mapping[str, Any], *, title: str = "Which edits were tried, and which went on") -> str:
    """Draw the tree of a lineage as an SVG: the winning line straight and bold, other branches beside it.

    Candidates that were dropped at once are stubs at their decision, larger networks above the line and smaller ones
    below it. The edits of the winning line are named on top; all else is told where the pointer rests.
    """
    lineage = read_lineage(record)
    layout = lay_out(lineage)

    def paint(figure: Figure, axes: Axes) -> None:
        scale_epochs(axes, lineage)
        axes.set_yticks([])
        axes.set_ylim(layout.bottom - PAD_POINTS, layout.top + PAD_POINTS + layout.label_points)
        draw_labels(axes, lineage, layout)
        stubs = {n.number: path_of(lineage, layout, n, n.begins + layout.stub_epochs) for n in lineage.dropped}
        draw_dropped(axes, lineage, stubs, layout.marker_points)
        for node in lineage.branches:
            way = path_of(lineage, layout, node, node.ends)
            axes.add_patch(PathPatch(way, url=link(node), fill=False, capstyle="round", **BRANCH))
        for node in lineage.winning:
            axes.plot([node.begins, node.ends], [0.0, 0.0], url=link(node), **WINNING)
        mark_edits(axes, lineage, lambda epoch: 0.0)
        add_legend(figure, lineage)

    height = MARGIN_POINTS + layout.top - layout.bottom + 2 * PAD_POINTS + layout.label_points
    svg = draw(paint, title=title, description=story(lineage), height_inches=height / 72)
    return with_titles(svg, titles_of(lineage))


def draw_labels(axes: Axes, lineage: Lineage, layout: Layout) -> None:
    """Draw a pole at every decision, and at those that changed the winning line a flag with the edit."""
    top = layout.top + PAD_POINTS
    rows = {label.epoch: label.row for label in layout.labels}
    for epoch in sorted({*lineage.decisions, *rows}):
        higher = 0.0 if layout.upright or epoch not in rows else ROW_POINTS * (rows[epoch] + 1)
        axes.vlines(epoch, layout.bottom - PAD_POINTS, top + higher, colors=INK, linewidth=0.7, alpha=FAINT)
    look: dict[str, Any] = {"color": BLUE, "fontsize": LABEL_POINTS, "verticalalignment": "bottom"}
    for label in layout.labels:
        if layout.upright:
            words = " ".join(label.words).strip()
            axes.text(label.epoch, top + 2, words, rotation=90, horizontalalignment="center", **look)
        else:
            offset = 0.4 * LABEL_POINTS
            axes.annotate(
                "\n".join(label.words).strip(),
                (label.epoch, top + ROW_POINTS * label.row),
                xytext=(offset, 1),
                textcoords="offset points",
                linespacing=1.05,
                **look,
            )


def path_of(lineage: Lineage, layout: Layout, node: Node, end: float) -> Path:
    """Give the way from where the parent ended to an epoch, bent where their heights differ."""
    parent, height = lineage.parent_of(node), layout.heights[node.number]
    source = height if parent is None else layout.heights[parent.number]
    if source == height:
        return Path([(node.begins, height), (end, height)])
    bend = min(node.begins + layout.stub_epochs, end)
    places = [(node.begins, source), (node.begins, height), (bend, height), (end, height)]
    return Path(places, [Path.MOVETO, Path.CURVE3, Path.CURVE3, Path.LINETO])


def lineage_curves(
    record: Mapping[str, Any],
    *,
    title: str = "Accuracy along the lineage",
    y_label: str = "validation accuracy",
    baselines: Mapping[str, Sequence[Place]] | None = None,
) -> str:
    """Draw accuracy against epochs as an SVG: the winning line bold, all others thin, and where decisions fell.

    `baselines` are curves to compare with, by name: epochs and accuracies of networks that no one changed.
    """
    lineage = read_lineage(record)
    places = {number: places_of(node) for number, node in lineage.nodes.items()}
    if not any(places.values()):
        raise DataError(f"cannot draw '{title}': no network has an accuracy")
    winning = sorted(place for node in lineage.winning for place in places[node.number])

    def paint(figure: Figure, axes: Axes) -> None:
        scale_epochs(axes, lineage)
        axes.set_ylabel(clean(y_label))
        axes.grid(axis="y")
        for epoch in lineage.decisions:
            axes.axvline(epoch, color=INK, linewidth=0.7, alpha=FAINT)
        ways = {node.number: way_of(lineage, places, node) for node in lineage.dropped if places[node.number]}
        draw_dropped(axes, lineage, {number: Path(way) for number, way in ways.items()}, DROPPED_MARKER_POINTS)
        for nodes, look in ((lineage.branches, BRANCH | {"linewidth": 1.3}), (lineage.winning, WINNING)):
            for node in nodes:
                if places[node.number]:
                    draw_way(axes, way_of(lineage, places, node), node, look)
        if winning:
            epochs, accuracies = zip(*winning, strict=True)
            mark_edits(axes, lineage, lambda epoch: float(np.interp(epoch, epochs, accuracies)))
        add_legend(figure, lineage, draw_baselines(axes, baselines or {}))

    svg = draw(paint, title=title, description=describe(winning, lineage), height_inches=4.4)
    return with_titles(svg, titles_of(lineage))


def draw_baselines(axes: Axes, baselines: Mapping[str, Sequence[Place]]) -> list[Line2D]:
    """Draw the curves of networks that no one changed, and return what the legend shows of them."""
    handles = []
    for (name, curve), style in zip(baselines.items(), cycle((DASHED, DOTTED, DASH_DOTTED)), strict=False):
        look: dict[str, Any] = {"color": INK, "linestyle": style, "linewidth": 1.6}
        axes.plot(*zip(*sorted(curve), strict=True), marker="o" if len(curve) == 1 else "", markersize=4.5, **look)
        handles.append(Line2D([], [], label=clean(name), **look))
    return handles


def places_of(node: Node) -> list[Place]:
    """Give the epochs of a network at which its accuracy is known, and that accuracy."""
    found = sorted(place for place in node.points if not math.isnan(sum(place)))
    return found or ([] if math.isnan(node.accuracy) else [(node.ends, node.accuracy)])


def way_of(lineage: Lineage, places: Mapping[int, Sequence[Place]], node: Node) -> list[Place]:
    """Give the accuracies of a network, and before them the last known one of its ancestors."""
    ancestor = lineage.parent_of(node)
    while ancestor is not None and not places[ancestor.number]:
        ancestor = lineage.parent_of(ancestor)
    return [*([] if ancestor is None else places[ancestor.number][-1:]), *places[node.number]]


def draw_way(axes: Axes, way: Sequence[Place], node: Node, look: Mapping[str, Any]) -> None:
    """Draw the accuracies of one network; a single one gets a dot."""
    marker = "o" if len(way) == 1 else ""
    axes.plot(*zip(*way, strict=True), marker=marker, markersize=4.5, url=link(node), **look)


def describe(winning: Sequence[Place], lineage: Lineage) -> str:
    """Say in words where the winning line begins and ends."""
    if not winning:
        return f"The winning line has no accuracy. {story(lineage)}"
    (first, low), (last, high) = winning[0], winning[-1]
    return f"The winning line: {low:.4g} at epoch {first:.4g}, {high:.4g} at epoch {last:.4g}. {story(lineage)}"
