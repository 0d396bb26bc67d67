"""Size against quality: which networks are worth having, and where more size stops paying."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator
from matplotlib.transforms import Bbox

from topiarist.errors import DataError
from topiarist.report.canvas import BLUE, VERMILLION, Drawing, Look, draw
from topiarist.report.svg import INK
from topiarist.report.wording import as_number, clean, shorten

_LOG_FROM_FACTOR = 10  # Within one decade, a logarithmic axis has but three numbers: 1, 2 and 5.
_FEW_DECADES = 100  # In more than two, 1, 2 and 5 of each would stand too close.
_MARKERS: Look = {"markersize": 5.0, "linestyle": "", "markeredgewidth": 0}
_RING: Look = {"markersize": 13, "markerfacecolor": "none", "markeredgecolor": VERMILLION}
# Where a name may stand beside its point, best first: points to the right and up.
_SIDES = ((-6, 5), (-6, -5), (6, -5), (6, 5), (0, 10), (0, -10), (0, 20), (0, -20))


@dataclass(frozen=True, kw_only=True)
class Point:
    """A network in a figure: its size, its score ± spread, and whether no other is both smaller and better."""

    name: str
    size: float
    score: float
    spread: float = math.nan
    front: bool = False
    knee: bool = False


def pareto_figure(points: Sequence[Point], *, size_label: str, score_label: str, title: str) -> Drawing:
    """Return an SVG of sizes and scores: the front as a step line, the knee marked, spreads as bars.

    Parameters
    ----------
    points : sequence of Point
        One without a finite size and score is left out; if none is left, a DataError is raised.
    size_label, score_label, title : str
        Sizes that span more than a factor of ten are drawn on a logarithmic axis.
    """
    drawable = [point for point in points if not math.isnan(as_number(point.size) + as_number(point.score))]
    if not drawable:
        raise DataError(f"cannot draw '{title}': no point has a size and a score")

    def paint(figure: Figure, axes: Axes) -> None:
        axes.set(xlabel=clean(size_label), ylabel=clean(score_label))
        axes.grid(axis="y")
        axes.margins(0.08, 0.12)
        scale_sizes(axes, [point.size for point in drawable])
        _draw_points(axes, drawable)
        figure.legend(loc="outside lower left", ncols=3, handletextpad=0.4)
        figure.draw_without_rendering()  # Where a name fits depends on where the axes came to lie.
        name_points(axes, drawable)

    count = f"{len(drawable)} point{'' if len(drawable) == 1 else 's'}"
    listed = [f"{p.name}: {p.size:,.6g}, {p.score:.4g}{' (knee)' if p.knee else ''}" for p in front_of(drawable)]
    description = f"{count}. Size and score on the front: {'; '.join(listed) or 'none'}."
    return draw(paint, title=title, description=description, height_inches=4.2)


def front_of(points: Sequence[Point]) -> list[Point]:
    """Return the points of the front, from small to large."""
    return sorted((point for point in points if point.front), key=lambda point: point.size)


def places(points: Sequence[Point]) -> tuple[list[float], list[float]]:
    """Return sizes and scores."""
    return [point.size for point in points], [point.score for point in points]


def scale_sizes(axes: Axes, sizes: Sequence[float]) -> None:
    """Choose a linear or a logarithmic axis, with plain numbers at its ticks."""
    smallest, largest = min(sizes), max(sizes)
    if smallest > 0 and largest / smallest > _LOG_FROM_FACTOR:
        axes.set_xscale("log")
        axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5) if largest / smallest < _FEW_DECADES else (1,)))
        axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda size, _: f"{size:,.10g}"))


def _draw_points(axes: Axes, points: Sequence[Point]) -> None:
    """Draw the step line of the front, then the points, then the ring around the knee."""
    front, others, knees = front_of(points), [p for p in points if not p.front], [p for p in points if p.knee]
    axes.step(*places(front), where="post", color=BLUE, linewidth=1.4, alpha=0.7)
    for chosen, colour, strength in ((others, INK, 0.4), (front, BLUE, 1.0)):
        spreads = [point.spread if point.spread >= 0 else math.nan for point in chosen]
        axes.errorbar(*places(chosen), yerr=spreads, fmt="none", ecolor=colour, elinewidth=0.9, alpha=0.6 * strength)
    axes.plot(*places(front), "o", color=BLUE, label="on the front" if front else None, **_MARKERS)
    axes.plot(*places(others), "D", color=INK, alpha=0.45, label="not on the front" if others else None, **_MARKERS)
    axes.plot(*places(knees), "o", linestyle="", label="knee" if knees else None, markeredgewidth=1.7, **_RING)


def name_points(axes: Axes, points: Sequence[Point]) -> None:
    """Write the names of the knee and of the front beside their points, where there is room."""
    front = front_of(points)
    corners = [  # of what a name must not cover: points, their bars and the line of the front
        *((point.size, point.score, point.size, point.score) for point in points),
        *((p.size, p.score - p.spread, p.size, p.score + p.spread) for p in points if p.spread > 0),
        *((here.size, here.score, after.size, here.score) for here, after in pairwise(front)),
        *((after.size, here.score, after.size, after.score) for here, after in pairwise(front)),
    ]
    taken = [Bbox(axes.transData.transform([(a, b), (c, d)])).padded(2) for a, b, c, d in corners]
    for point in sorted(points, key=lambda point: (not point.knee, point.size)):
        if point.front or point.knee:
            _name_point(axes, point, taken)


def _name_point(axes: Axes, point: Point, taken: list[Bbox]) -> None:
    """Write one name at the first side that is free, or not at all."""
    far, weight = (1.6, "bold") if point.knee else (1.0, "normal")
    for right, up in _SIDES:
        look: Look = {"fontsize": 8.5, "fontweight": weight, "textcoords": "offset points"}
        look["horizontalalignment"] = "right" if right < 0 else "left" if right else "center"
        look["verticalalignment"] = "bottom" if up > 0 else "top"
        note = axes.annotate(shorten(point.name, 24), (point.size, point.score), xytext=(right * far, up * far), **look)
        box = note.get_window_extent()
        if not any(box.overlaps(other) for other in taken) and axes.bbox.padded(4).count_contains(box.corners()) == 4:
            taken.append(box)
            return
        note.remove()
