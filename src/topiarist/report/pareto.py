"""Size against quality: which networks are worth having, and where more size stops paying."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

from topiarist.errors import DataError
from topiarist.report.canvas import BLUE, VERMILLION, draw
from topiarist.report.naming import name_points
from topiarist.report.points import Point, front_of, places, read_point
from topiarist.report.svg import INK
from topiarist.report.wording import clean

LOG_FROM_FACTOR = 10
FEW_DECADES = 100
MARKER_POINTS = 5.0


def pareto_figure(points: Sequence[Mapping[str, Any]], *, size_label: str, score_label: str, title: str) -> str:
    """Draw sizes and scores as an SVG: the front as a step line, the knee marked, spreads as bars.

    Each point has `name`, `size`, `score`, `front`, `knee` and perhaps `spread`; one without a finite size and score is
    left out. Sizes that span more than a factor of ten are drawn on a logarithmic axis.
    """
    drawable = [point for point in map(read_point, points) if not math.isnan(point.size + point.score)]
    if not drawable:
        raise DataError(f"cannot draw '{title}': no point has a size and a score")

    def paint(figure: Figure, axes: Axes) -> None:
        axes.set(xlabel=clean(size_label), ylabel=clean(score_label))
        axes.grid(axis="y")
        axes.margins(0.08, 0.12)
        scale_sizes(axes, [point.size for point in drawable])
        draw_points(axes, drawable)
        figure.legend(loc="outside lower left", ncols=3, handletextpad=0.4)
        figure.draw_without_rendering()  # Where a name fits depends on where the axes came to lie.
        name_points(axes, drawable)

    return draw(paint, title=title, description=describe(drawable), height_inches=4.2)


def scale_sizes(axes: Axes, sizes: Sequence[float]) -> None:
    """Choose a linear or a logarithmic axis, with plain numbers at its ticks."""
    smallest, largest = min(sizes), max(sizes)
    if smallest > 0 and largest / smallest > LOG_FROM_FACTOR:
        axes.set_xscale("log")
        axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5) if largest / smallest < FEW_DECADES else (1,)))
        axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda size, _: f"{size:,.10g}"))


def draw_points(axes: Axes, points: Sequence[Point]) -> None:
    """Draw the step line of the front, then the points, then the ring around the knee."""
    front = front_of(points)
    others = [point for point in points if not point.front]
    knees = [point for point in points if point.knee]
    axes.step(*places(front), where="post", color=BLUE, linewidth=1.4, alpha=0.7)
    for chosen, colour, strength in ((others, INK, 0.4), (front, BLUE, 1.0)):
        spreads = [point.spread if point.spread >= 0 else math.nan for point in chosen]
        axes.errorbar(*places(chosen), yerr=spreads, fmt="none", ecolor=colour, elinewidth=0.9, alpha=0.6 * strength)
    markers: dict[str, Any] = {"markersize": MARKER_POINTS, "linestyle": "", "markeredgewidth": 0}
    axes.plot(*places(front), "o", color=BLUE, label="on the front" if front else None, **markers)
    axes.plot(*places(others), "D", color=INK, alpha=0.45, label="not on the front" if others else None, **markers)
    ring: dict[str, Any] = {
        "markersize": 13,
        "markerfacecolor": "none",
        "markeredgecolor": VERMILLION,
        "markeredgewidth": 1.7,
    }
    axes.plot(*places(knees), "o", linestyle="", label="knee" if knees else None, **ring)


def describe(points: Sequence[Point]) -> str:
    """Say in words what the front is and where its knee lies."""
    count = f"{len(points)} point{'' if len(points) == 1 else 's'}"
    listed = [f"{p.name}: {p.size:,.6g}, {p.score:.4g}{' (knee)' if p.knee else ''}" for p in front_of(points)]
    return f"{count}. Size and score on the front: {'; '.join(listed) or 'none'}."
