"""Where the networks of a lineage lie: every branch on a lane of its own, below and above the winning line in turn.

Across in epochs, upwards in points. Candidates that were dropped at once fan out from where their parent ended: those
that grew upwards, those that shrank downwards, the best of them nearest to the line.
"""

import math
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise

from topiarist.report.lineage import Lineage, Node, changed, short_edit

STUB_POINTS = 7.0
FAN_POINTS = 84.0
GAP_POINTS = 16.0
ACROSS_POINTS = 500.0  # Of the axes, about: they are laid out when the height of the figure is known.
LONGEST_STUB_POINTS = 17.0
LARGEST_MARKER = 4.6
LABEL_POINTS = 7.5
LETTER = 0.6
ROW_POINTS = 2.7 * LABEL_POINTS
MOST_ROWS = 3

Fans = Mapping[tuple[int, float], Sequence[tuple[Node, int]]]


@dataclass(frozen=True, kw_only=True)
class Label:
    """Two words that stand like a flag at the epoch of an edit, `row` rows up."""

    epoch: float
    words: tuple[str, str]
    row: int


@dataclass(frozen=True, kw_only=True)
class Layout:
    """The height of every network, how far a stub reaches, and the labels; where they are dense they stand upright."""

    heights: Mapping[int, float]
    stub_epochs: float
    marker_points: float
    top: float
    bottom: float
    labels: tuple[Label, ...]
    upright: bool

    @property
    def label_points(self) -> float:
        """Give the height of the labels above the lanes."""
        if self.upright:
            return LABEL_POINTS * (1 + LETTER * max(letters(" ".join(label.words)) for label in self.labels))
        return ROW_POINTS * max((label.row + 1 for label in self.labels), default=0)


def lay_out(lineage: Lineage) -> Layout:
    """Give every network its place."""
    lanes, fans = lanes_of(lineage), fans_of(lineage)
    farthest = max((abs(place) for fan in fans.values() for _, place in fan), default=1)
    spacing = min(STUB_POINTS, FAN_POINTS / farthest)
    levels, top, bottom = levels_of(lanes, fans, spacing)
    heights = {number: levels[lane] for number, lane in lanes.items()}
    for (parent, _), fan in fans.items():
        heights |= {node.number: heights[parent] + spacing * place for node, place in fan}
    length = stub_epochs(lineage)
    labels = labels_of(lineage)
    upright = any(label.row >= MOST_ROWS for label in labels)
    return Layout(
        heights=heights,
        stub_epochs=length,
        marker_points=min(LARGEST_MARKER, 0.75 * spacing, 0.75 * length * ACROSS_POINTS / lineage.last_epoch),
        top=top,
        bottom=bottom,
        labels=apart(labels, lineage) if upright else labels,
        upright=upright,
    )


def lanes_of(lineage: Lineage) -> dict[int, int]:
    """Give the lane of every network that went on: 0 for the winning line, its parent's or a free one for others."""
    lanes = {node.number: 0 for node in lineage.winning}
    taken_until, moment = [math.inf], 1e-6 * lineage.last_epoch
    for node in sorted(lineage.branches, key=lambda node: (node.begins, node.number)):
        lane = 0 if node.parent is None else lanes[node.parent]
        if taken_until[lane] > node.begins + moment:
            # A lane on which another branch ends just now would look as if that branch went on.
            free = [place for place, end in enumerate(taken_until) if end < node.begins - moment]
            lane = min(free or [len(taken_until)], key=partial(distance, lane))
        lanes[node.number] = lane
        taken_until[lane : lane + 1] = [node.ends]
    return lanes


def distance(lane: int, other: int) -> float:
    """Give how many lanes two lie apart: odd ones are below the winning line, even ones above it."""
    here, there = (place / 2 if place % 2 == 0 else -(place + 1) / 2 for place in (lane, other))
    return abs(here - there)


def fans_of(lineage: Lineage) -> Fans:
    """Give the dropped candidates of every parent at every decision, each with its place above or below the line."""
    fans: dict[tuple[int, float], list[Node]] = {}
    for node in lineage.dropped:
        parent = lineage.winning[0].number if node.parent is None else node.parent
        fans.setdefault((parent, round(node.begins, 6)), []).append(node)
    return {place: fan_out(nodes) for place, nodes in fans.items()}


def fan_out(nodes: Sequence[Node]) -> list[tuple[Node, int]]:
    """Number candidates away from the line: what grew upwards, what shrank downwards, the rest where there is room."""
    ranked = sorted(nodes, key=lambda node: (math.isnan(node.score), -node.score, node.number))
    above = [node for node in ranked if node.group == "grow"]
    below = [node for node in ranked if node.group == "shrink"]
    for node in [node for node in ranked if node.group not in ("grow", "shrink")][::-1]:
        (above if len(above) < len(below) else below).insert(0, node)
    return [*((node, place) for place, node in enumerate(above, 1)), *((n, -place) for place, n in enumerate(below, 1))]


def levels_of(lanes: Mapping[int, int], fans: Fans, spacing: float) -> tuple[dict[int, float], float, float]:
    """Give the height of every lane, odd ones below 0 and even ones above, then the top and the bottom of all fans."""
    above, below = ([0.0] * (1 + max(lanes.values())) for _ in range(2))
    for (parent, _), fan in fans.items():
        lane = lanes[parent]
        above[lane] = max(above[lane], *(spacing * place for _, place in fan))
        below[lane] = max(below[lane], *(-spacing * place for _, place in fan))
    levels, top, bottom = {0: 0.0}, above[0], -below[0]
    for lane in range(1, len(above)):
        levels[lane] = bottom - GAP_POINTS - above[lane] if lane % 2 else top + GAP_POINTS + below[lane]
        top, bottom = max(top, levels[lane] + above[lane]), min(bottom, levels[lane] - below[lane])
    return levels, top, bottom


def stub_epochs(lineage: Lineage) -> float:
    """Give the length of a stub, which ends well before the next decision."""
    places = [*lineage.decisions, *(node.begins for node in lineage.nodes.values()), lineage.last_epoch]
    gaps = [after - before for before, after in pairwise(sorted(set(places)))]
    most = lineage.last_epoch * LONGEST_STUB_POINTS / ACROSS_POINTS
    return min([most, *(0.5 * gap for gap in gaps if gap > 0.1 * most)])


def labels_of(lineage: Lineage) -> tuple[Label, ...]:
    """Name the edits of the winning line, each above those after it that it would cover."""
    labels: list[Label] = []
    for before, after in reversed(list(pairwise(lineage.winning))):
        if changed(before, after):
            words = short_edit(before, after)
            points = LABEL_POINTS * (1 + LETTER * max(map(letters, words)))
            end = after.begins + points * lineage.last_epoch / ACROSS_POINTS
            row = max((label.row + 1 for label in labels if label.epoch < end), default=0)
            labels.append(Label(epoch=after.begins, words=words, row=row))
    return tuple(reversed(labels))


def apart(labels: Sequence[Label], lineage: Lineage) -> tuple[Label, ...]:
    """Leave out upright labels that would touch the one before."""
    least = 1.05 * LABEL_POINTS * lineage.last_epoch / ACROSS_POINTS
    chosen: list[Label] = []
    for label in labels:
        if not chosen or label.epoch - chosen[-1].epoch >= least:
            chosen.append(label)
    return tuple(chosen)


def letters(text: str) -> int:
    """Give how many letters wide a text is, where a wide one counts twice."""
    return sum(2 if unicodedata.east_asian_width(letter) in "WF" else 1 for letter in text)
