"""The metric against size of all networks of a rightsizing: every point leads to the card of its network."""

import math
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from xml.etree.ElementTree import Element

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator

from topiarist.report.canvas import (
    BLUE,
    GREEN,
    ORANGE,
    PURPLE,
    SKY,
    VERMILLION,
    WIDTH_INCHES,
    Drawing,
    Look,
    draw,
)
from topiarist.report.pareto import Point, front_of, name_points, places, scale_sizes
from topiarist.report.svg import INK, parse, write
from topiarist.report.wording import as_number, capitalised, clean
from topiarist.rightsizing.record import RightsizingRecord
from topiarist.rightsizing.wording import value_words

AXES = {
    "parameters": "parameters",
    "file_kb": "KB on disk",
    "macs": "multiply-accumulates",
    "latency_ms": "latency in ms (torch)",
}
_BASELINE = "baseline"
_MARKERS = {
    "circle": "o",
    "square": "s",
    "triangle": "^",
    "inverted": "v",
    "diamond": "D",
    "pentagon": "p",
    "cross": "X",
    "plus": "P",
}
_OTHER = "h"  # of networks that no method made: unlike the crosses of simple models
_CHARACTERS, _NARROW_CHARACTERS = 95, 40  # of a line below the axes
_NARROW_TICKS = 3  # numbers such as 30,000 stand side by side on a phone
_COLOURS = (BLUE, GREEN, ORANGE, PURPLE, SKY)
_MARKER_POINTS, _RING_POINTS, _LINK_POINTS = 7.0, 15.0, 9.5
_BEHIND_POINTS = 4.5  # by which a marker is larger for each other one in front of it
_SAME_PLACE = 0.012  # of the width and the height of the axes
NARROW_INCHES = 3.9  # at 390 pixels, 9.5 points are 12 pixels
_BELOW = 1.0  # times the height of all networks that a simple model may lie below them and still be drawn


@dataclass(frozen=True, kw_only=True)
class FrontSpot:
    """One network in the figure: its point, its method, whether it keeps the budget, and its card."""

    point: Point
    method: str
    fits: bool
    card: str


def front_figure(record: RightsizingRecord, axis: str, *, narrow: bool = False) -> str | None:
    """Return the metric against one of `AXES` as an SVG with links, better networks higher; None without any.

    A narrow one fits a phone.
    """
    spots = spots_of(record, axis)
    if not spots:
        return None
    names = {f"#{spot.card}": spot.point.name for spot in spots}
    return _with_rings(front_drawing(record, axis, spots, narrow=narrow), names)


def front_drawing(record: RightsizingRecord, axis: str, spots: Sequence[FrontSpot], *, narrow: bool = False) -> Drawing:
    """Return the metric of networks against one of `AXES`, better networks higher."""
    metric, least = record.metric, least_allowed(record)
    allowed = f"{'least' if metric.higher_is_better else 'most'} {metric.title} allowed"

    def paint(figure: Figure, axes: Axes) -> None:
        axes.set(ylabel=f"{metric.title} over the folds")
        if metric.share:
            axes.yaxis.set_major_formatter(FuncFormatter(lambda share, _: f"{100 * share:.4g} %"))
        if not metric.higher_is_better:
            axes.yaxis.set_inverted(True)
        axes.grid(axis="y")
        axes.margins(0.09, 0.14)
        scale_sizes(axes, [spot.point.size for spot in spots])
        if narrow and axes.get_xscale() == "linear":
            axes.xaxis.set_major_locator(MaxNLocator(_NARROW_TICKS))
        if math.isfinite(least):
            axes.axhline(least, color=VERMILLION, linewidth=1.1, linestyle=(0, (5, 3)), label=allowed)
        _draw_spots(axes, spots, _looks(record))
        lines = textwrap.wrap(_draw_references(axes, record, axis), _NARROW_CHARACTERS if narrow else _CHARACTERS)
        axes.set_xlabel("\n".join((AXES[axis], *lines)))
        figure.legend(loc="outside lower left", ncols=2 if narrow else 4, handletextpad=0.5, columnspacing=1.6)
        figure.draw_without_rendering()  # Where a name fits depends on where the axes came to lie.
        name_points(axes, [replace(spot.point, front=spot.point.front and spot.point.knee) for spot in spots])

    listed = "; ".join(point.name for point in front_of([spot.point for spot in spots])) or "none"
    description = f"On the front, from small to large: {listed}. Every point leads to the card of its network."
    return draw(
        paint,
        title=f"{capitalised(metric.title)} against {AXES[axis]}",
        description=description,
        height_inches=4.6,
        width_inches=NARROW_INCHES if narrow else WIDTH_INCHES,
    )


def least_allowed(record: RightsizingRecord) -> float:
    """Return what the baseline's metric may become at worst; NaN where it is not known, or is compared otherwise."""
    if record.compared != record.metric:
        return math.nan
    baseline, margin = as_number(record.networks[0].judged_score), record.settings.max_drop
    return baseline - record.metric.direction * margin * (abs(baseline) if record.metric.relative else 1.0)


def spots_of(record: RightsizingRecord, axis: str) -> list[FrontSpot]:
    """Return the networks whose size and metric are known; the baseline and the chosen one are marked as knees."""
    spots = [
        FrontSpot(
            point=Point(
                name=network.name,
                size=as_number(getattr(network, axis)),
                score=as_number(network.judged_score),
                front=network.front,
                knee=place == 0 or network.id == record.verdict.chosen,
            ),
            method=_BASELINE if place == 0 else clean(network.method or "other"),
            fits=network.fits,
            card=f"network-{place}",
        )
        for place, network in enumerate(record.networks)
    ]
    known = [spot for spot in spots if not math.isnan(spot.point.size + spot.point.score)]
    return known if axis == "parameters" else _with_front(known, record.metric.direction)


def _with_front(spots: Sequence[FrontSpot], direction: int) -> list[FrontSpot]:
    """Mark those that no other is both smaller and better than: the record has them for parameters alone."""
    best, marked = -math.inf, []
    for spot in sorted(spots, key=lambda spot: (spot.point.size, -direction * spot.point.score)):
        score = direction * spot.point.score
        marked.append(replace(spot, point=replace(spot.point, front=score > best)))
        best = max(best, score)
    return marked


def _looks(record: RightsizingRecord) -> dict[str, tuple[str, str]]:
    """Return colour and marker of the baseline and of each method, in the order in which they were asked."""
    markers = {network.method: network.marker for network in record.networks if network.method is not None}
    names = dict.fromkeys((*record.settings.methods, *markers))
    looks = {
        clean(name): (_COLOURS[number % len(_COLOURS)], _MARKERS.get(markers.get(name) or "", "o"))
        for number, name in enumerate(names)
    }
    return {_BASELINE: (INK, "s"), **looks}


def _draw_spots(axes: Axes, spots: Sequence[FrontSpot], looks: Mapping[str, tuple[str, str]]) -> None:
    """Draw the step line of the front, then the points of each method, then a ring around the chosen one."""
    front = front_of([spot.point for spot in spots])
    axes.step(*places(front), where="post", color=INK, linewidth=1.2, alpha=0.35, label="front" if front else None)
    named: set[str] = set()
    ordered = sorted(spots, key=lambda spot: (spot.point.knee, [*looks, spot.method].index(spot.method)))
    for spot, size in zip(ordered, _marker_sizes(axes, ordered), strict=True):
        colour, marker = looks.get(spot.method, (INK, _OTHER))
        look: Look = {"markersize": size, "markeredgecolor": colour, "markeredgewidth": 1.3}
        look |= {"markerfacecolor": colour if spot.fits else (1.0, 1.0, 1.0, 0.0), "linestyle": ""}
        label = None if spot.method in named else spot.method
        axes.plot([spot.point.size], [spot.point.score], marker, url=f"#{spot.card}", label=label, zorder=3, **look)
        named.add(spot.method)
    ringed = [spot.point for spot in spots if spot.point.knee and spot.method != _BASELINE]
    ring: Look = {"markersize": _RING_POINTS, "markerfacecolor": "none", "markeredgecolor": VERMILLION}
    axes.plot(*places(ringed), "o", linestyle="", label="chosen" if ringed else None, markeredgewidth=1.6, **ring)


def _marker_sizes(axes: Axes, spots: Sequence[FrontSpot]) -> list[float]:
    """Return how large each marker is: one that others are drawn over is larger, so that its rim is seen."""
    logarithmic = axes.get_xscale() == "log"
    across = [math.log(spot.point.size) if logarithmic else spot.point.size for spot in spots]
    up = [spot.point.score for spot in spots]
    wide, high = (max(values) - min(values) or 1.0 for values in (across, up))

    def near(one: int, other: int) -> bool:
        return abs(across[one] - across[other]) < _SAME_PLACE * wide and abs(up[one] - up[other]) < _SAME_PLACE * high

    after = [sum(near(one, other) for other in range(one + 1, len(spots))) for one in range(len(spots))]
    return [_MARKER_POINTS + _BEHIND_POINTS * number for number in after]


def _draw_references(axes: Axes, record: RightsizingRecord, axis: str) -> str:
    """Draw the simple models of known size as crosses with their names, unless they lie far below all networks.

    Return what is to be said of the others, and of the best constant answer where there are no simple models.
    """
    low, high = sorted(axes.get_ylim())
    direction = record.metric.direction
    worst = (low if direction > 0 else high) - direction * _BELOW * (high - low)
    guess = record.decision.guess
    others = {} if record.references else {guess.answer: as_number(guess.score)}
    for reference in record.references:
        size, score = as_number(getattr(reference, axis, None)), as_number(reference.score)
        if not size > 0 or direction * score < direction * worst:
            others[clean(reference.name)] = score
        else:
            axes.plot([size], [score], "x", color=INK, alpha=0.7, markersize=6, markeredgewidth=1.4)
            axes.annotate(clean(reference.name), (size, score), xytext=(6, -9), textcoords="offset points", fontsize=8)
    known = {name: score for name, score in others.items() if not math.isnan(score)}
    said = [f"{name} {value_words(record.metric, score, decimals=1)}" for name, score in known.items()]
    return f"not drawn: {', '.join(said)}" if said else ""


def _with_rings(svg: str, names: dict[str, str]) -> str:
    """Add to every link in a figure a name for those who do not see it, and a ring that shows where it is."""
    root = parse(svg)
    for link in root.iter("a"):
        link.attrib.pop("target", None)  # It would open another window.
        link.attrib["aria-label"] = clean(names[link.attrib["xlink:href"]])
        for use in list(link.iter("use")):
            where = {"cx": use.attrib["x"], "cy": use.attrib["y"], "r": str(_LINK_POINTS)}
            link.insert(0, Element("circle", {"class": "ring", "fill-opacity": "0", **where}))
    root.attrib |= {"role": "group"}
    return write(root)
