"""Figures of a Surgeon's lineage, after figures 3 and 5 of its paper, which show the winning line alone."""

import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from itertools import chain, count, cycle
from typing import TYPE_CHECKING, NamedTuple

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter, MaxNLocator

from topiarist.errors import DataError
from topiarist.report.canvas import BLUE, FAINT, GREEN, LINE_STYLES, PURPLE, VERMILLION, Drawing, Look, draw
from topiarist.report.svg import INK
from topiarist.report.wording import capitalised, clean, shorten

if TYPE_CHECKING:
    from topiarist.evolution.lineage import Lineage, Node

Place = tuple[float, float]

WINNING, BRANCH = "winning line", "other branch"
LARGER, SMALLER, SAME_SIZE = "dropped: larger", "dropped: smaller", "dropped: same size"
LOOKS: dict[str, Look] = {
    WINNING: {"color": BLUE, "linewidth": 3.2},
    BRANCH: {"color": VERMILLION, "linewidth": 1.9},
    LARGER: {"color": GREEN, "linewidth": 0.9, "marker": "^"},
    SMALLER: {"color": PURPLE, "linewidth": 0.9, "marker": "v"},
    SAME_SIZE: {"color": INK, "linewidth": 0.9, "marker": "o", "alpha": 0.55},
}
AXES_POINTS = 500.0  # About how wide the axes come to be: text and markers are placed before they are laid out.
ROW_POINTS, STUB_POINTS, LABEL_POINTS = 7.0, 17.0, 7.5
# With the one for what is left out, 13 columns are 34 points wide: 99,999 takes 29 points of them.
MOST_COLUMNS, COLUMN_POINTS, NAMES_POINTS, BOX_POINTS, REMOVED_POINTS, GAP_POINTS = 12, 66.0, 58.0, 12.0, 2.5, 4.0
STACK_POINTS, DOUBLING_POINTS = 270.0, 9.0  # of all layers of a column, and for every doubling of a width


class LineageView:
    """A lineage as figures show it: the winning line, and the role of every network, which is one of `LOOKS`."""

    def __init__(self, lineage: "Lineage") -> None:
        if not lineage.nodes:
            raise DataError("cannot draw a lineage without a network")
        for place, node in enumerate(lineage.nodes):
            if node.number != place or node.parent not in (range(place) if place else (None,)):
                found = f"found {node.number} at place {place}, made from {node.parent}"
                raise DataError(f"networks of a lineage must be numbered from 0 and made from earlier ones: {found}")
        self.nodes = lineage.nodes
        self.last_epoch = max(lineage.epochs, *(node.ends for node in self.nodes), 1e-9)
        self.decisions = sorted({decision.epoch for decision in lineage.decisions})
        best = [node for node in self.nodes if node.fate == "best"] or self.nodes
        self.winning = [max(best, key=lambda node: (node.ends, node.accuracy or 0.0, -node.number))]
        while (parent := self.winning[0].parent) is not None:
            self.winning.insert(0, self.nodes[parent])
        self.roles = {node.number: self.size_of(node) for node in self.nodes}
        self.roles |= {node.parent: BRANCH for node in self.nodes if node.parent is not None}
        self.roles |= {number: BRANCH for decision in lineage.decisions for number in decision.kept}
        self.roles |= {node.number: WINNING for node in self.winning}
        self.titles = {f"network-{node.number}": _title(node, lineage.measure) for node in self.nodes}
        edits = [f"epoch {node.begins:.4g}: {node.edit}" for node in self.winning if self.is_changed(node)]
        sizes = f"from {self.winning[0].parameters:,} to {self.winning[-1].parameters:,} parameters"
        counts = f"Epochs with a decision: {len(self.decisions)}; candidates: {len(self.nodes) - 1}."
        self.story = f"{counts} The winning line goes {sizes}. {'; '.join(edits) or 'No change'}."

    def parent_of(self, node: "Node") -> "Node":
        """Return the network that an edit made this one from; of the first, itself."""
        return self.nodes[node.parent or 0]

    def size_of(self, node: "Node") -> str:
        """Return the role of a dropped network, by its size beside its parent's."""
        more = node.parameters - self.parent_of(node).parameters
        return LARGER if more > 0 else SMALLER if more < 0 else SAME_SIZE

    def is_changed(self, node: "Node") -> bool:
        """Return whether the edit that made a network changed its topology."""
        return node.widths != self.parent_of(node).widths or node.kind not in ("start", "identity")


def _title(node: "Node", measure: str) -> str:
    accuracy, score = ("–" if value is None else f"{value:.4f}" for value in (node.accuracy, node.score))
    life = f"{node.edit} (epoch {node.begins:.4g} to {node.ends:.4g}, {node.fate})"
    return f"{life}\n{node.parameters:,} parameters, {measure} {accuracy}, score {score}\n{node.reason}".rstrip()


def lineage_tree(lineage: "Lineage", *, title: str = "Which edits were tried, and which were kept") -> Drawing:
    """Return the tree of a lineage as an SVG: the winning line straight and bold, other branches beside it.

    Candidates that were dropped at once are stubs at their decision, larger networks above the line and others below
    it. The edits of the winning line are named on top; all else is shown where the pointer rests.

    Parameters
    ----------
    lineage : Lineage
    title : str
    """
    view = LineageView(lineage)
    stub = view.last_epoch * min(STUB_POINTS / AXES_POINTS, 0.5 / (1 + len(view.decisions)))
    rows, paths, labels = rows_of(view, stub), dict[int, list[Place]](), dict[float, str]()
    top, bottom = max(rows.values()) + 1.5, min(rows.values()) - 1.5
    for node in view.nodes:
        end = node.ends if view.roles[node.number] in (WINNING, BRANCH) else node.begins + stub
        before, row = rows[view.parent_of(node).number], rows[node.number]
        paths[node.number] = [(node.begins, before), (min(node.begins + stub, end), row), (end, row)]
    for node in view.winning:  # Labels at 45° touch where they are closer than √2 of their height.
        apart = (node.begins - max(labels, default=-math.inf)) / view.last_epoch
        if view.is_changed(node) and apart > 1.5 * LABEL_POINTS / AXES_POINTS:
            labels[node.begins] = shorten(node.edit, 26)

    def paint(figure: Figure, axes: Axes) -> None:
        axes.set(yticks=[], ylim=(bottom, top))
        _draw_networks(figure, axes, view, paths)
        for x, edit in labels.items():
            axes.text(x, top + 1, edit, color=BLUE, fontsize=LABEL_POINTS, rotation=45, rotation_mode="anchor")

    height = 120 + ROW_POINTS * (top - bottom) + 0.42 * LABEL_POINTS * max(map(len, labels.values()), default=0)
    return draw(paint, title=title, description=view.story, height_inches=height / 72, hover=view.titles)


def rows_of(view: LineageView, stub: float) -> dict[int, int]:
    """Return the row of every network: 0 for the winning line; for others, one that is free while they last.

    Dropped candidates fan out from their parent, the best nearest to it; branches run beyond the fans.
    """
    rows, taken = {node.number: 0 for node in view.winning}, defaultdict(list, {0: [(-math.inf, math.inf)]})
    branches = [node for node in view.nodes if view.roles[node.number] == BRANCH]
    dropped = [node for node in view.nodes if view.roles[node.number] not in (WINNING, BRANCH)]
    fan = max(Counter((node.parent, node.begins, view.size_of(node)) for node in dropped).values(), default=0)
    for node in [*branches, *sorted(dropped, key=lambda node: -(node.score or 0.0))]:
        home, side = rows[view.parent_of(node).number], 1 if view.size_of(node) == LARGER else -1
        goes_on = view.roles[node.number] == BRANCH
        begin, end = node.begins + 1e-6 * view.last_epoch, node.ends if goes_on else node.begins + stub
        steps = chain([0], (sign * step for step in count(2 * fan + 2) for sign in (1, -1))) if goes_on else count(1)
        for row in (home + side * step for step in steps):
            rest = 0.0 if row == home else stub  # If one branch ends where another begins, they look like one.
            if all(until + rest <= begin or end <= since for since, until in taken[row]):
                break
        rows[node.number] = row
        taken[row].append((node.begins, end))
    return rows


def lineage_curves(
    lineage: "Lineage", *, title: str = "", baselines: Mapping[str, Sequence[Place]] | None = None
) -> Drawing:
    """Return accuracy against epochs as an SVG: the winning line bold, all others thin, and where decisions fell.

    Parameters
    ----------
    lineage : Lineage
    title : str
    baselines : mapping of names to epochs and accuracies, optional
        Curves to compare with, of networks that no one changed.

    Raises
    ------
    DataError
        If no network has an accuracy.
    """
    title = title or f"{capitalised(lineage.measure)} by epoch"
    view = LineageView(lineage)
    paths: dict[int, list[Place]] = {}
    last: dict[int | None, list[Place]] = {None: []}  # the last accuracy of every network, or of its ancestors
    for node in view.nodes:
        paths[node.number] = [*last[node.parent], *node.points] if node.points else []
        last[node.number] = paths[node.number][-1:] or last[node.parent]
    if not any(paths.values()):
        raise DataError(f"cannot draw '{title}': no network has an accuracy")

    def paint(figure: Figure, axes: Axes) -> None:
        axes.set_ylabel(f"validation {lineage.measure}")
        axes.grid(axis="y")
        for (name, curve), style in zip((baselines or {}).items(), cycle(LINE_STYLES[1:]), strict=False):
            look: Look = {"color": INK, "linewidth": 1.6, "marker": "o", "markersize": 4.5, "markevery": [-1]}
            axes.plot(*zip(*sorted(curve), strict=True), label=clean(name), linestyle=style, **look)
        _draw_networks(figure, axes, view, paths)

    line = [f"{accuracy:.4g} at epoch {epoch:.4g}" for node in view.winning for epoch, accuracy in node.points]
    ends = ", ".join([*line[:1], *line[1:][-1:]]) or "unknown"
    description = f"{capitalised(lineage.measure)} of the winning line: {ends}. {view.story}"
    return draw(paint, title=title, description=description, height_inches=4.4, hover=view.titles)


def _draw_networks(figure: Figure, axes: Axes, view: LineageView, paths: Mapping[int, Sequence[Place]]) -> None:
    """Draw the path of every network, the winning line on top, with a marker where each of its networks begins."""
    axes.set(xlabel="epoch", xlim=(-0.01 * view.last_epoch, 1.01 * view.last_epoch))
    axes.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1, steps=[1, 2, 5, 10]))
    for epoch in view.decisions:
        axes.axvline(epoch, color=INK, linewidth=0.7, alpha=FAINT)
    room = 0.66 * AXES_POINTS / (1 + len(view.decisions))  # for a marker that does not hide the next
    for role in reversed(LOOKS):
        drawn = [node for node in view.nodes if view.roles[node.number] == role and paths[node.number]]
        look = {"markersize": min(4.6, room), "markevery": [-1], "markeredgewidth": 0, "clip_on": False, **LOOKS[role]}
        for node in drawn:
            if role == WINNING:
                size = min(room, 9.0 if view.is_changed(node) else 5.0)
                look |= {"marker": LOOKS[view.size_of(node)]["marker"], "markersize": size, "markevery": [0]}
            label = role if node is drawn[0] else ""
            axes.plot(*zip(*paths[node.number], strict=True), label=label, gid=f"network-{node.number}", **look)
    handles = axes.get_legend_handles_labels()[0][::-1]
    figure.legend(handles=handles, loc="outside lower left", ncols=5, fontsize=8.5, handlelength=1.6, columnspacing=1.3)


class _Box(NamedTuple):
    title: str
    text: str
    points: float = BOX_POINTS
    role: str = ""  # whose colour its frame has; without one, there is no frame


def topology_over_time(lineage: "Lineage", *, title: str = "Topology of the winning line") -> Drawing:
    """Return the layers of the winning line as an SVG, from input (I) to output (O), each time that they changed.

    The height of a box goes with the logarithm of its width. Of many columns those in the middle are left out.

    Parameters
    ----------
    lineage : Lineage
    title : str
    """
    view = LineageView(lineage)
    columns = columns_of(view)
    across = min(COLUMN_POINTS, (AXES_POINTS - NAMES_POINTS) / (len(columns) - 1))
    depth = max(sum(box.points + GAP_POINTS for box in boxes) for boxes in columns)
    hover = {f"box-{place}-{row}": box.title for place, boxes in enumerate(columns) for row, box in enumerate(boxes)}
    labels = {LARGER: "wider or new", SMALLER: "narrower or removed"}

    def paint(figure: Figure, axes: Axes) -> None:
        axes.set_axis_off()
        axes.set(xlim=(0, AXES_POINTS), ylim=(depth, 0))
        for place, boxes in enumerate(columns):
            middle, top = NAMES_POINTS + across * (place - 0.5) if place else NAMES_POINTS / 2, 0.0
            for row, box in enumerate(boxes):
                gid = f"box-{place}-{row}"
                if box.role:
                    colour, fill = LOOKS[box.role]["color"], 0.07 if box.role == SAME_SIZE else 0.25
                    look: Look = {"facecolor": (colour, fill), "edgecolor": (colour, 0.4 + 2.4 * fill)}
                    look |= {"linewidth": 0.9, "label": labels.pop(box.role, "")}
                    axes.bar(middle, box.points, 0.82 * across, top, gid=gid, **look)
                axes.text(middle, top + box.points / 2, box.text, fontsize=8, ha="center", va="center", gid=gid)
                top += box.points + GAP_POINTS
        if len(labels) < 2:
            figure.legend(loc="outside lower left", ncols=2, fontsize=8.5, handlelength=1.4)

    layers = [(boxes[0].text, "; ".join(box.title for box in boxes[3:-1])) for boxes in columns if len(boxes) > 2]
    said = " ".join(f"Epoch {epoch}: {titles or 'none'}." for epoch, titles in layers)
    description = f"Layers and their widths. {said} {view.story}"
    return draw(paint, title=title, description=description, height_inches=(depth + 66) / 72, hover=hover)


def columns_of(view: LineageView) -> list[list[_Box]]:
    """Return the names of rows, then a column for the start, for every change of the winning line, and for its end."""
    line = [(node.begins, node, view.parent_of(node).widths) for node in view.winning]
    moments = [line[0], *(moment for moment in line if moment[1].widths != moment[2])]
    last = view.winning[-1]
    if last.ends > moments[-1][0]:
        moments.append((last.ends, last, last.widths))
    doublings = max(sum(math.log2(1 + width) for _, width in node.widths) for _, node, _ in moments)
    scale = min(DOUBLING_POINTS, STACK_POINTS / max(doublings, 1.0))
    columns = [[_Box("", "epoch"), _Box("", "parameters")]]
    for epoch, node, before in moments:
        title = view.titles[f"network-{node.number}"]
        head = _Box(title, f"{epoch:.4g}"), _Box(title, _compact(node.parameters))
        columns.append([*head, *boxes_of(before, node.widths, scale)])
    if len(moments) > MOST_COLUMNS:
        middle = slice(1 + MOST_COLUMNS // 2, -MOST_COLUMNS // 2)
        columns[middle] = [[_Box("", "…"), _Box("", f"{len(moments) - MOST_COLUMNS} more")]]
    return columns


def boxes_of(before: Sequence[tuple[str, int]], after: Sequence[tuple[str, int]], scale: float) -> list[_Box]:
    """Compare the layers of two topologies by their names; one that was removed keeps its place, without a width."""
    names = [name for name, _ in after]
    for place, (name, _) in enumerate(before):
        if name not in names:
            names.insert(1 + names.index(before[place - 1][0]) if place else 0, name)
    boxes = [_Box("input", "I", role=SAME_SIZE)]
    for name in names:
        width, earlier = dict(after).get(name, 0), dict(before).get(name, 0)
        was = "" if width == earlier else f" ({earlier:,} before)" if earlier else " (new)"
        role = LARGER if width > earlier else SMALLER if width < earlier else SAME_SIZE
        points = max(BOX_POINTS, scale * math.log2(1 + width)) if width else REMOVED_POINTS
        title = f"{name}: {f'{width:,}' if width else 'removed'}{was}"
        boxes.append(_Box(title, _compact(width) if width else "", points, role))
    return [*boxes, _Box("output", "O", role=SAME_SIZE)]


def _compact(number: int) -> str:
    return f"{number:,}" if number < 100_000 else EngFormatter(sep="")(float(f"{number:.3g}"))
