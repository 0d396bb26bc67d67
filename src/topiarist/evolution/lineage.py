"""The record of an evolution: every network that was tried, where it came from, what it was worth, and its fate."""

from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal, Self

from pydantic import TypeAdapter

from topiarist.files import JsonObject

Fate = Literal["running", "kept", "dropped", "best"]
Point = tuple[float, float]


@dataclass(frozen=True, kw_only=True)
class Node:
    """One network from the decision that made it to the one that ended it; `points` are epochs and accuracies."""

    number: int
    parent: int | None
    kind: str
    edit: str
    decision: int
    begins: float
    ends: float
    parameters: int
    widths: tuple[tuple[str, int], ...]
    accuracy: float | None = None
    score: float | None = None
    fate: Fate = "running"
    reason: str = ""
    points: tuple[Point, ...] = ()

    def grown(self, *, epoch: float, accuracy: float, score: float) -> Self:
        """Return the node after more training."""
        return replace(self, ends=epoch, accuracy=accuracy, score=score, points=(*self.points, (epoch, accuracy)))


@dataclass(frozen=True, kw_only=True)
class Decision:
    """What was chosen among which networks, at which epoch, and why; `draw` counts tries from 0."""

    number: int
    epoch: float
    draw: int
    candidates: tuple[int, ...]
    kept: tuple[int, ...]
    reason: str


@dataclass
class Lineage:
    """All networks and decisions so far, in the order in which they came, and what all training took.

    `trained_epochs` and `sample_macs` are summed over all networks that were trained, candidates and their recuperation
    included: epochs of the training part, and samples times the multiply-accumulates of one forward pass.
    """

    epochs: int
    nodes: list[Node] = field(default_factory=list)
    decisions: list[Decision] = field(default_factory=list)
    trained_epochs: float = 0.0
    sample_macs: float = 0.0
    measure: str = "accuracy"

    def add(self, **known: Any) -> Node:
        """Record a new network."""
        self.nodes.append(Node(number=len(self.nodes), **known))
        return self.nodes[-1]

    def update(self, node: int, **known: Any) -> None:
        """Record what became of a network."""
        self.nodes[node] = replace(self.nodes[node], **known)

    def add_work(self, *, epochs: float, sample_macs: float) -> None:
        """Record what some training took."""
        self.trained_epochs += epochs
        self.sample_macs += sample_macs

    @property
    def next_decision(self) -> int:
        """The number of the decision that comes next, from 1."""
        return self.decisions[-1].number + 1 if self.decisions else 1

    def to_record(self) -> JsonObject:
        """Return plain lists and numbers; what is measured only where it is not accuracy."""
        record = asdict(self)
        if self.measure == "accuracy":
            del record["measure"]
        return record

    @classmethod
    def from_record(cls, record: JsonObject) -> "Lineage":
        """Read what `to_record` returned, or what JSON made of it."""
        return TypeAdapter(cls).validate_python(dict(record))
