"""Accuracy against size of all networks of a right-sizing: every point leads to the card of its network."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any
from xml.etree.ElementTree import Element

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from topiarist.report.canvas import BLUE, GREEN, ORANGE, PURPLE, SKY, VERMILLION, draw
from topiarist.report.pareto import Point, front_of, name_points, places, scale_sizes
from topiarist.report.rightsizing_quotes import Record, look_up
from topiarist.report.svg import INK, parse, write
from topiarist.report.wording import as_number, clean

AXES = {
    "parameters": "parameters",
    "file_kb": "KB on disk",
    "macs": "multiply-accumulates",
    "latency_ms": "latency in ms (torch)",
}
LOOKS = {
    "baseline": (INK, "s"),
    "distinctiveness": (BLUE, "o"),
    "genetic": (GREEN, "^"),
    "magnitude": (ORANGE, "D"),
    "surgeon": (PURPLE, "p"),
    "factorisation": (SKY, "v"),
}
OTHER = (INK, "X")
MARKER_POINTS, RING_POINTS, LINK_POINTS = 7.0, 15.0, 9.5


@dataclass(frozen=True, kw_only=True)
class Spot:
    """One network in the figure: its point, its method, whether it keeps the budget, and its card."""

    point: Point
    method: str
    fits: bool
    card: str


def front_figure(record: Record, axis: str) -> str | None:
    """Draw accuracy against one of `AXES` as an SVG with links; None where no network has both."""
    spots = spots_of(record, axis)
    if not spots:
        return None
    least = as_number(look_up(record, "networks.0.judged_accuracy")) - as_number(look_up(record, "settings.max_drop"))

    def paint(figure: Figure, axes: Axes) -> None:
        axes.set(xlabel=AXES[axis], ylabel="accuracy over the folds")
        axes.yaxis.set_major_formatter(FuncFormatter(lambda share, _: f"{100 * share:.4g} %"))
        axes.grid(axis="y")
        axes.margins(0.09, 0.14)
        scale_sizes(axes, [spot.point.size for spot in spots])
        if math.isfinite(least):
            axes.axhline(least, color=VERMILLION, linewidth=1.1, linestyle=(0, (5, 3)), label="least accuracy allowed")
        draw_spots(axes, spots)
        figure.legend(loc="outside lower left", ncols=4, handletextpad=0.5, columnspacing=1.6)
        figure.draw_without_rendering()  # Where a name fits depends on where the axes came to lie.
        name_points(axes, [replace(spot.point, front=spot.point.front and spot.point.knee) for spot in spots])

    names = {f"#{spot.card}": spot.point.name for spot in spots}
    svg = draw(paint, title=f"Accuracy against {AXES[axis]}", description=describe(spots), height_inches=4.6)
    return with_rings(svg, names)


def spots_of(record: Record, axis: str) -> list[Spot]:
    """Give the networks whose size and accuracy are known; the baseline and the chosen one are marked by the knee."""
    chosen = look_up(record, "verdict.chosen")
    spots = [
        Spot(
            point=Point(
                name=str(network["name"]),
                size=as_number(network.get(axis)),
                score=as_number(network.get("judged_accuracy")),
                spread=math.nan,
                front=bool(network.get("front")),
                knee=place == 0 or network["id"] == chosen,
            ),
            method="baseline" if place == 0 else clean(network.get("method") or "other"),
            fits=network.get("fits") is not False,
            card=f"network-{place}",
        )
        for place, network in enumerate(record["networks"])
    ]
    known = [spot for spot in spots if not math.isnan(spot.point.size + spot.point.score)]
    return known if axis == "parameters" else with_front(known)


def with_front(spots: Sequence[Spot]) -> list[Spot]:
    """Mark those that no other is both smaller and better than: the record knows them for parameters alone."""
    best, marked = -math.inf, []
    for spot in sorted(spots, key=lambda spot: (spot.point.size, -spot.point.score)):
        marked.append(replace(spot, point=replace(spot.point, front=spot.point.score > best)))
        best = max(best, spot.point.score)
    return marked


def draw_spots(axes: Axes, spots: Sequence[Spot]) -> None:
    """Draw the step line of the front, then the points of each method, then a ring around the chosen one."""
    front = front_of([spot.point for spot in spots])
    axes.step(*places(front), where="post", color=INK, linewidth=1.2, alpha=0.35, label="front" if front else None)
    named: set[str] = set()
    for spot in sorted(spots, key=lambda spot: (spot.point.knee, [*LOOKS, spot.method].index(spot.method))):
        colour, marker = LOOKS.get(spot.method, OTHER)
        look: dict[str, Any] = {"markersize": MARKER_POINTS, "markeredgecolor": colour, "markeredgewidth": 1.3}
        look |= {"markerfacecolor": colour if spot.fits else (1.0, 1.0, 1.0, 0.0), "linestyle": ""}
        label = None if spot.method in named else spot.method
        axes.plot([spot.point.size], [spot.point.score], marker, url=f"#{spot.card}", label=label, zorder=3, **look)
        named.add(spot.method)
    ringed = [spot.point for spot in spots if spot.point.knee and spot.method != "baseline"]
    ring: dict[str, Any] = {"markersize": RING_POINTS, "markerfacecolor": "none", "markeredgecolor": VERMILLION}
    axes.plot(*places(ringed), "o", linestyle="", label="chosen" if ringed else None, markeredgewidth=1.6, **ring)


def with_rings(svg: str, names: dict[str, str]) -> str:
    """Give every link in a figure a name for those who do not see it, and a ring that shows where it is."""
    root = parse(svg)
    for link in root.iter("a"):
        link.attrib.pop("target", None)  # It would open another window.
        link.attrib["aria-label"] = clean(names[link.attrib["xlink:href"]])
        for use in list(link.iter("use")):
            where = {"cx": use.attrib["x"], "cy": use.attrib["y"], "r": str(LINK_POINTS)}
            link.insert(0, Element("circle", {"class": "ring", "fill-opacity": "0", **where}))
    root.attrib["role"] = "group"
    return write(root)


def describe(spots: Sequence[Spot]) -> str:
    """Name the networks on the front, from small to large; their figures are in the table."""
    front = "; ".join(point.name for point in front_of([spot.point for spot in spots]))
    return f"On the front, from small to large: {front or 'none'}. Every point leads to the card of its network."
