"""Names beside the points of a figure, where there is room for them."""

from collections.abc import Sequence
from itertools import pairwise

from matplotlib.axes import Axes
from matplotlib.transforms import Bbox

from topiarist.report.points import Point, front_of
from topiarist.report.wording import shorten

# Where a name may stand beside its point, best first: offsets in points, then the edges that touch.
PLACES = (
    (-6, 5, "right", "bottom"),
    (-6, -5, "right", "top"),
    (6, -5, "left", "top"),
    (6, 5, "left", "bottom"),
    (0, 10, "center", "bottom"),
    (0, -10, "center", "top"),
    (0, 20, "center", "bottom"),
    (0, -20, "center", "top"),
)


def name_points(axes: Axes, points: Sequence[Point]) -> None:
    """Write the names of the knee and of the front beside their points, where there is room."""
    taken = drawn_boxes(axes, points)
    for point in sorted(points, key=lambda point: (not point.knee, point.size)):
        if point.front or point.knee:
            name_point(axes, point, taken)


def drawn_boxes(axes: Axes, points: Sequence[Point]) -> list[Bbox]:
    """Give what a name must not cover: the points, their bars and the line of the front."""
    front = front_of(points)
    corners = [
        *((point.size, point.score, point.size, point.score) for point in points),
        *((p.size, p.score - p.spread, p.size, p.score + p.spread) for p in points if p.spread > 0),
        *((here.size, here.score, after.size, here.score) for here, after in pairwise(front)),
        *((after.size, here.score, after.size, after.score) for here, after in pairwise(front)),
    ]
    return [Bbox(axes.transData.transform([(a, b), (c, d)])).padded(2) for a, b, c, d in corners]


def name_point(axes: Axes, point: Point, taken: list[Bbox]) -> None:
    """Write one name at the first place that is free, or not at all."""
    far = 1.6 if point.knee else 1.0
    for right, up, horizontal, vertical in PLACES:
        note = axes.annotate(
            shorten(point.name, 24),
            (point.size, point.score),
            xytext=(right * far, up * far),
            textcoords="offset points",
            horizontalalignment=horizontal,
            verticalalignment=vertical,
            fontsize=8.5,
            fontweight="bold" if point.knee else "normal",
        )
        box = note.get_window_extent()
        if not any(box.overlaps(other) for other in taken) and axes.bbox.padded(4).count_contains(box.corners()) == 4:
            taken.append(box)
            return
        note.remove()
