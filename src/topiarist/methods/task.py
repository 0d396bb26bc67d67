"""What a method is given, and what it gives: it decides, and never cuts."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from torch import nn

from topiarist.data import Part
from topiarist.surgery import Edit
from topiarist.surgery.calibration import Calibration
from topiarist.surgery.choice.costs import Measure
from topiarist.tracing import Inputs

Score = Callable[[nn.Module], float]
Limits = Mapping[Measure, int]


@dataclass(frozen=True, kw_only=True)
class Task:
    """A network to shape, and what is known of its work.

    `calibration` are inputs without labels; `score(model)`, larger is better, never looks at the test part. `training`
    and `held_out` are labelled samples in memory, where there are any. `limits` on parameters and multiply-accumulates
    come from a budget; without them the method's own settings say where to stop. `share` is how much of the way that is
    left to go: below 1 in all rounds but the last. `widths` are those of the spaces before the first round. `memory` is
    for what a method need not find out twice about one network, whatever the limits.
    """

    model: nn.Module
    example_input: Inputs
    calibration: Calibration
    score: Score
    training: Part | None = None
    held_out: Part | None = None
    limits: Limits = field(default_factory=dict)
    share: float = 1.0
    widths: Mapping[str, int] = field(default_factory=dict)
    seed: int = 0
    memory: dict[str, Any] = field(default_factory=dict, compare=False, repr=False)


@dataclass(frozen=True)
class Proposal:
    """Edits to make, in order, and in a line each why."""

    edits: tuple[Edit, ...]
    reasons: tuple[str, ...] = field(default=())


class Method(Protocol):
    """Whatever decides what a network should become."""

    @property
    def rounds(self) -> int:
        """Give how often it is asked, with retraining between."""
        ...

    @property
    def stops_itself(self) -> bool:
        """Say whether its own settings, rather than a budget, say where to stop."""
        ...

    def propose(self, task: Task) -> Proposal:
        """Decide."""
        ...
