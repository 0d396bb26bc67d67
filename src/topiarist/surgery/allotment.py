"""Free allotment: how wide each space should be, so that the whole network keeps within a budget.

Greedy: a unit goes where the smallest share of what its readers need is lost for each parameter, or for each
multiply-accumulate, that is freed; what is left of the budget at the end is filled up where it explains most.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from topiarist.errors import ModelError, SettingsError
from topiarist.surgery.calibration import Batches, Calibration, count_inputs
from topiarist.surgery.costs import Costs
from topiarist.surgery.evidence import gather_evidence
from topiarist.surgery.selection import eliminate
from topiarist.surgery.widths import round_up
from topiarist.tracing import Anatomy, Inputs, anatomy

Widths = dict[str, int]


def allot_widths(
    model: nn.Module,
    example_input: Inputs,
    *,
    calibration: Calibration,
    parameters: int | None = None,
    macs: int | None = None,
    multiple_of: int = 1,
) -> Widths:
    """Give a width for each free space, such that the network has at most so many parameters, or does so many MACs."""
    if (parameters is None) == (macs is None):
        raise SettingsError("give either parameters or macs as the budget")
    found = anatomy(model, example_input, partial=True)
    costs = Costs(model, found)
    cost, budget = (costs.macs, macs) if parameters is None else (costs.parameters, parameters)
    assert budget is not None
    batches = Batches(calibration, model, count_inputs(example_input))
    lost = lost_shares(model, found, batches)
    smallest = {name: min(round_up(1, multiple_of), size) for name, size in costs.widths.items()}
    if cost(smallest) > budget:
        what = "parameters" if macs is None else "multiply-accumulates"
        raise ModelError(f"a budget of {budget:,} {what} cannot be met: {cost(smallest):,} are the fewest possible")
    allotment = Allotment(costs.widths, lost, cost, budget, multiple_of)
    return allotment.fill_up(allotment.shrink())


@dataclass(frozen=True)
class Allotment:
    """Widths that change step by step, from one multiple to the next."""

    full: Widths
    lost: Mapping[str, Tensor]
    cost: Callable[[Widths], int]
    budget: int
    multiple_of: int

    def shrink(self) -> Widths:
        """Give widths within the budget, from the full ones down."""
        widths = dict(self.full)
        while self.cost(widths) > self.budget:
            steps = {name: {**widths, name: lower} for name in widths if (lower := self.below(widths[name]))}
            widths = min(steps.items(), key=lambda step: self.price(step[0], widths, step[1]))[1]
        return widths

    def fill_up(self, widths: Widths) -> Widths:
        """Give widths that use what is left of the budget."""
        while True:
            steps = {name: {**widths, name: self.above(name, width)} for name, width in widths.items()}
            steps = {
                name: wider for name, wider in steps.items() if wider != widths and self.cost(wider) <= self.budget
            }
            if not steps:
                return widths
            widths = max(steps.items(), key=lambda step: self.price(step[0], step[1], widths))[1]

    def price(self, name: str, wide: Widths, narrow: Widths) -> float:
        """Give what a step loses for each parameter (or multiply-accumulate) that it frees."""
        lost = float(self.lost[name][narrow[name]] - self.lost[name][wide[name]])
        return lost / max(self.cost(wide) - self.cost(narrow), 1)

    def below(self, width: int) -> int:
        """Give the next multiple below a width; 0 is none."""
        return (width - 1) // self.multiple_of * self.multiple_of

    def above(self, name: str, width: int) -> int:
        """Give the next multiple above a width, or the full width."""
        return min(round_up(width + 1, self.multiple_of), self.full[name])


def lost_shares(model: nn.Module, found: Anatomy, batches: Batches) -> Mapping[str, Tensor]:
    """Give, for each free space, the share of what its readers need that is lost with so many units left."""
    shares = {}
    for name, space in found.free.items():
        evidence = gather_evidence(model, model, found, found, name, batches)
        if evidence is not None and evidence.total > 0:
            shares[name] = eliminate(evidence, 0)[1] / evidence.total
        else:
            shares[name] = torch.zeros(space.size + 1)
    return shares
