"""One look for all figures of a lineage: colours, markers, the axis of epochs and the legend."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import PathPatch
from matplotlib.path import Path
from matplotlib.ticker import MaxNLocator

from topiarist.report.canvas import BLUE, GREEN, PURPLE, SKY, VERMILLION
from topiarist.report.lineage import Lineage, Node, changed, title_of
from topiarist.report.svg import INK

WINNING: dict[str, Any] = {"color": BLUE, "linewidth": 3.2}
BRANCH: dict[str, Any] = {"color": VERMILLION, "linewidth": 1.9}
STUB: dict[str, Any] = {"linewidth": 0.9}
MARKER: dict[str, Any] = {"linestyle": "", "markeredgewidth": 0, "clip_on": False}
LARGE_MARKER, SMALL_MARKER = 9.0, 5.0
MARKED_POINTS = 330.0  # For the markers of the winning line together, so that none hides the next.
COLOURS = {"grow": GREEN, "shrink": PURPLE, "identity": INK, "other": SKY}
STRENGTHS = {"grow": 1.0, "shrink": 1.0, "identity": 0.55, "other": 1.0}
MARKERS = {"grow": "^", "shrink": "v", "identity": "o", "other": "D"}
DROPPED = {
    "grow": "dropped: larger",
    "shrink": "dropped: smaller",
    "identity": "dropped: unchanged",
    "other": "dropped: another edit",
}


def scale_epochs(axes: Axes, lineage: Lineage) -> None:
    """Let epochs run from the start to the last one."""
    axes.set(xlabel="epoch", xlim=(-0.01 * lineage.last_epoch, 1.01 * lineage.last_epoch))
    axes.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1, steps=[1, 2, 5, 10]))


def mark_edits(axes: Axes, lineage: Lineage, height_at: Callable[[float], float]) -> None:
    """Mark the decisions on the winning line, and there what grew and what shrank."""
    most = MARKED_POINTS / len(lineage.winning)
    for node in lineage.winning[1:]:
        edited = changed(lineage.parent_of(node), node)
        marker, size = (MARKERS[node.group], LARGE_MARKER) if edited else ("o", SMALL_MARKER)
        axes.plot(
            [node.begins],
            [height_at(node.begins)],
            marker,
            color=BLUE,
            markersize=min(size, most),
            url=link(node),
            zorder=4,
            **MARKER,
        )


def draw_dropped(axes: Axes, lineage: Lineage, ways: Mapping[int, Path], marker_points: float) -> None:
    """Draw the ways of candidates that were dropped at once, one path a group, each with a marker at its end."""
    for group, colour in COLOURS.items():
        nodes = [node for node in lineage.dropped if node.group == group and node.number in ways]
        if nodes:
            look: dict[str, Any] = {"color": colour, "alpha": STRENGTHS[group]}
            together = Path.make_compound_path(*(ways[node.number] for node in nodes))
            axes.add_patch(PathPatch(together, fill=False, **STUB, **look))
            for node in nodes:
                across, up = np.asarray(ways[node.number].vertices)[-1]
                axes.plot([across], [up], MARKERS[group], markersize=marker_points, url=link(node), **MARKER, **look)


def add_legend(figure: Figure, lineage: Lineage, others: Sequence[Line2D] = ()) -> None:
    """Say what lines and markers mean, of which only those in use."""
    handles = [Line2D([], [], label="winning line", **WINNING)]
    if lineage.branches:
        handles.append(Line2D([], [], label="other branch", **BRANCH))
    used = {node.group for node in lineage.dropped}
    for group in [group for group in DROPPED if group in used]:
        look = STUB | {"color": COLOURS[group], "marker": MARKERS[group], "alpha": STRENGTHS[group]}
        handles.append(Line2D([], [], label=DROPPED[group], markersize=4.6, markeredgewidth=0, **look))
    handles[1:1] = others
    spacing = {"handlelength": 1.6, "handletextpad": 0.5, "columnspacing": 1.3}
    figure.legend(handles=handles, loc="outside lower left", ncols=5, fontsize=8.5, **spacing)


def link(node: Node) -> str:
    """Give the name by which a part of a figure finds its title."""
    return f"#{node.number}"


def titles_of(lineage: Lineage) -> dict[str, str]:
    """Give what is told where the pointer rests."""
    return {link(node): title_of(node) for node in lineage.nodes.values()}
