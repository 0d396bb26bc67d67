"""What shaping a network came to."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from torch import nn

from topiarist.measurement import Measurement
from topiarist.surgery import Plan
from topiarist.tracing import Anatomy
from topiarist.training import History


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """The new network, the edits that made it, what it was and is worth, and what was decided and why.

    `units` has, for each space that could be cut, its width before and after. Measurements are on the test part, which
    no decision ever saw; `score` is what decisions went by. `histories` has one training for each round; `lineage` is
    the record of an evolution, where there was one.
    """

    model: nn.Module
    plan: Plan
    before: Measurement
    after: Measurement
    units: Mapping[str, tuple[int, int]]
    score: tuple[float, float]
    reasons: tuple[str, ...]
    histories: tuple[History, ...] = ()
    lineage: Mapping[str, Any] | None = None

    def to_json(self) -> dict[str, Any]:
        """Give plain lists and numbers."""
        return {
            "before": self.before.to_json(),
            "after": self.after.to_json(),
            "units": {name: {"before": before, "after": after} for name, (before, after) in self.units.items()},
            "score": {"before": self.score[0], "after": self.score[1]},
            "plan": self.plan.to_record(),
            "reasons": list(self.reasons),
            "histories": [history.to_json() for history in self.histories],
            "lineage": None if self.lineage is None else dict(self.lineage),
        }


def widths(before: Anatomy, after: Anatomy) -> dict[str, tuple[int, int]]:
    """Give the width of each space that could be cut, before and after."""
    return {name: (space.size, after.spaces[name].size) for name, space in before.free.items() if name in after.spaces}
