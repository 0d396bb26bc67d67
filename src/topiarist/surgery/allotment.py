"""Free allotment: how wide each space should be, so that the whole network keeps within a budget.

Greedy: a unit goes where the smallest share of what its readers need is lost for each parameter, or for each
multiply-accumulate, that is freed; what is left of the budget at the end is filled up where it explains most.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from torch import nn

from topiarist.errors import ModelError, SettingsError
from topiarist.surgery.calibration import Batches, Calibration, count_inputs
from topiarist.surgery.costs import Costs, Measure
from topiarist.surgery.evidence import gather_evidence
from topiarist.surgery.rounding import round_up
from topiarist.surgery.selection import eliminate
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
    measure: Measure = "macs" if parameters is None else "parameters"
    budget = macs if parameters is None else parameters
    assert budget is not None
    batches = Batches(calibration, model, count_inputs(example_input))
    lost = lost_shares(model, found, batches)
    smallest = {name: min(round_up(1, multiple_of), size) for name, size in costs.widths.items()}
    fewest = getattr(costs, measure)(smallest)
    if fewest > budget:
        what = "parameters" if macs is None else "multiply-accumulates"
        raise ModelError(f"a budget of {budget:,} {what} cannot be met: {fewest:,} are the fewest possible")
    allotment = Allotment(costs, measure, lost, budget, multiple_of)
    return allotment.fill_up(allotment.shrink())


@dataclass(frozen=True)
class Allotment:
    """Widths that change step by step, from one multiple to the next."""

    costs: Costs
    measure: Measure
    lost: Mapping[str, list[float]]
    budget: int
    multiple_of: int

    def shrink(self) -> Widths:
        """Give widths within the budget, from the full ones down."""
        widths = dict(self.costs.widths)
        cost = getattr(self.costs, self.measure)(widths)
        prices = {name: self.price(name, widths, self.below(widths[name])) for name in widths}
        while cost > self.budget:
            name = min((name for name in widths if self.below(widths[name])), key=prices.__getitem__)
            narrow = {**widths, name: self.below(widths[name])}
            cost -= self.costs.difference(self.measure, name, widths, narrow)
            widths = narrow
            prices |= {near: self.price(near, widths, self.below(widths[near])) for near in self.near(name)}
        return widths

    def near(self, name: str) -> set[str]:
        """Give the spaces whose price a change of one space touches: those that a layer meets together with it."""
        return {
            other for layer in self.costs.meeting[name].values() for other in (*layer.rows.units, *layer.columns.units)
        }

    def fill_up(self, widths: Widths) -> Widths:
        """Give widths that use what is left of the budget."""
        while True:
            left = self.budget - getattr(self.costs, self.measure)(widths)
            steps = {name: {**widths, name: self.above(name, width)} for name, width in widths.items()}
            fitting = {
                name: wider
                for name, wider in steps.items()
                if wider != widths and self.costs.difference(self.measure, name, wider, widths) <= left
            }
            if not fitting:
                return widths
            widths = max(fitting.items(), key=lambda step: self.price(step[0], step[1], widths[step[0]]))[1]

    def price(self, name: str, wide: Widths, lower: int) -> float:
        """Give what a step of one space down to a width loses for each parameter, or MAC, that it frees."""
        lost = self.lost[name][lower] - self.lost[name][wide[name]]
        return lost / max(self.costs.difference(self.measure, name, wide, {**wide, name: lower}), 1)

    def below(self, width: int) -> int:
        """Give the next multiple below a width; 0 is none."""
        return (width - 1) // self.multiple_of * self.multiple_of

    def above(self, name: str, width: int) -> int:
        """Give the next multiple above a width, or the full width."""
        return min(round_up(width + 1, self.multiple_of), self.costs.widths[name])


def lost_shares(model: nn.Module, found: Anatomy, batches: Batches) -> Mapping[str, list[float]]:
    """Give, for each free space, the share of what its readers need that is lost with so many units left."""
    shares = {}
    for name, space in found.free.items():
        evidence = gather_evidence(model, model, found, found, name, batches)
        if evidence is not None and evidence.total > 0:
            shares[name] = (eliminate(evidence, 0)[1] / evidence.total).tolist()
        else:
            shares[name] = [0.0] * (space.size + 1)
    return shares
