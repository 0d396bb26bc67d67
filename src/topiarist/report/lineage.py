"""The lineage of a network: which networks came from which by an edit, which went on, and which line won.

Drawn after figures 3 and 5 of the Surgeon's paper, which show the winning line alone.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from topiarist.errors import DataError
from topiarist.report.wording import as_number, clean, required, shorten

GROUPS = {
    "start": "identity",
    "identity": "identity",
    "widen": "grow",
    "grow": "grow",
    "renew": "grow",
    "deepen": "grow",
    "remove": "shrink",
    "merge": "shrink",
    "project": "shrink",
    "fold": "shrink",
    "factorise": "shrink",
}


@dataclass(frozen=True, kw_only=True)
class Node:
    """A network between two decisions; NaN stands for what is not known."""

    number: int
    parent: int | None
    edit: str
    kind: str
    begins: float
    ends: float
    fate: str
    parameters: float
    widths: tuple[tuple[str, int], ...]
    accuracy: float
    score: float
    reason: str
    points: tuple[tuple[float, float], ...]

    @property
    def group(self) -> str:
        """Say whether its edit makes a network grow, shrink, or stay as it is."""
        return GROUPS.get(self.kind, "other")


@dataclass(frozen=True, kw_only=True)
class Lineage:
    """All networks by their numbers, the epochs of the decisions, and the numbers that a decision kept."""

    epochs: float
    nodes: Mapping[int, Node]
    decisions: tuple[float, ...]
    kept: frozenset[int]

    @cached_property
    def winning(self) -> tuple[Node, ...]:
        """Give the line from the start to the best network; without a best one, to the one that came farthest."""
        best = [node for node in self.nodes.values() if node.fate == "best"]
        node = max(best or self.nodes.values(), key=lambda node: (node.ends, known(node.accuracy), -node.number))
        line = [node]
        while node.parent is not None:
            node = self.nodes[node.parent]
            line.append(node)
        return tuple(reversed(line))

    @cached_property
    def branches(self) -> tuple[Node, ...]:
        """Give the networks that went on for a while but are not on the winning line."""
        parents = {node.parent for node in self.nodes.values()}
        return tuple(
            node
            for node in self.off_the_winning_line
            if node.number in parents
            or (node.ends > node.begins and (node.number in self.kept or node.fate in ("kept", "best", "replaced")))
        )

    @cached_property
    def dropped(self) -> tuple[Node, ...]:
        """Give the candidates that were dropped at once."""
        went_on = {node.number for node in self.branches}
        return tuple(node for node in self.off_the_winning_line if node.number not in went_on)

    @property
    def off_the_winning_line(self) -> list[Node]:
        """Give every network that did not lead to the best one."""
        won = {node.number for node in self.winning}
        return [node for number, node in self.nodes.items() if number not in won]

    @property
    def last_epoch(self) -> float:
        """Give the epoch up to which a figure reaches."""
        return max(self.epochs, *(node.ends for node in self.nodes.values()), 1e-9)

    def parent_of(self, node: Node) -> Node | None:
        """Give the network that an edit made this one from."""
        return None if node.parent is None else self.nodes[node.parent]


def read_lineage(record: Mapping[str, Any]) -> Lineage:
    """Read a record, and refuse one in which a network has no known parent."""
    nodes = sorted(map(read_node, required(record, "nodes")), key=lambda node: node.number)
    if not nodes:
        raise DataError("cannot draw a lineage without a network")
    numbered: dict[int, Node] = {}
    for node in nodes:
        if node.number in numbered:
            raise DataError(f"two networks of a lineage have the number {node.number}")
        if node.parent is not None and node.parent not in numbered:
            raise DataError(
                f"network {node.number} of a lineage comes from {node.parent}: no network before it is that"
            )
        numbered[node.number] = node
    decisions = required(record, "decisions")
    return Lineage(
        epochs=known(as_number(required(record, "epochs"))),
        nodes=numbered,
        decisions=tuple(sorted({finite(required(decision, "epoch"), "the epoch") for decision in decisions})),
        kept=frozenset(int(number) for decision in decisions for number in required(decision, "kept")),
    )


def read_node(record: Mapping[str, Any]) -> Node:
    """Read one network."""
    parent, points = required(record, "parent"), record.get("points") or ()
    begins = finite(required(record, "begins"), "the beginning")
    return Node(
        number=int(required(record, "number")),
        parent=None if parent is None else int(parent),
        edit=clean(required(record, "edit")),
        kind=str(required(record, "kind")),
        begins=begins,
        ends=max(begins, finite(required(record, "ends"), "the end")),
        fate=str(required(record, "fate")),
        parameters=as_number(required(record, "parameters")),
        widths=tuple((clean(name), int(width)) for name, width in required(record, "widths")),
        accuracy=as_number(record.get("accuracy")),
        score=as_number(record.get("score")),
        reason=clean(record.get("reason") or ""),
        points=tuple((as_number(epoch), as_number(accuracy)) for epoch, accuracy in points),
    )


def finite(value: Any, what: str) -> float:
    """Give a number without which nothing can be placed."""
    number = as_number(value)
    if math.isnan(number):
        raise DataError(f"{what} of a network's life must be a number: found {value!r}")
    return number


def known(value: float) -> float:
    """Give the value, or 0 where it is not known."""
    return 0.0 if math.isnan(value) else value


def changed(before: Node | None, after: Node) -> bool:
    """Say whether an edit changed the topology."""
    return before is not None and (before.widths != after.widths or after.group != "identity")


def short_edit(before: Node, after: Node) -> tuple[str, str]:
    """Say in two short words how the topology changed: ("+10", "hidden0") or ("−1", "layer")."""
    deeper = len(after.widths) - len(before.widths)
    if deeper:
        return signed(deeper), "layer" if abs(deeper) == 1 else "layers"
    earlier = dict(before.widths)
    wider = {name: width - earlier.get(name, width) for name, width in after.widths}
    changes = [(name, change) for name, change in wider.items() if change]
    if len(changes) == 1:
        return signed(changes[0][1]), shorten(changes[0][0], 14)
    if changes:
        return signed(sum(change for _, change in changes)), f"in {len(changes)} layers"
    return shorten(after.edit, 14), ""


def signed(number: int) -> str:
    """Write a change with its sign."""
    return f"{number:+,}".replace("-", "−")


def title_of(node: Node) -> str:
    """Say on a few lines what a network is: its edit, its size, its worth, and why it met its fate."""
    accuracy, score = (f"{value:.4f}" if math.isfinite(value) else "–" for value in (node.accuracy, node.score))
    lines = [
        f"{node.edit} (epoch {node.begins:.4g} to {node.ends:.4g}, {clean(node.fate)})",
        f"{count(node.parameters)} parameters, accuracy {accuracy}, score {score}",
        node.reason,
    ]
    return "\n".join(line for line in lines if line)


def count(number: float) -> str:
    """Write a count with commas, an en dash where it is not known."""
    return "–" if math.isnan(number) else f"{number:,.0f}"


def story(lineage: Lineage) -> str:
    """Tell the winning line in words."""
    first, last = lineage.winning[0], lineage.winning[-1]
    steps = [
        f"epoch {node.begins:.4g}: {node.edit}" for node in lineage.winning if changed(lineage.parent_of(node), node)
    ]
    return (
        f"Epochs with a decision: {len(lineage.decisions)}; candidates: {len(lineage.nodes) - 1}."
        f" The winning line goes from {count(first.parameters)} to {count(last.parameters)} parameters."
        f" {'; '.join(steps) or 'No change'}."
    )
