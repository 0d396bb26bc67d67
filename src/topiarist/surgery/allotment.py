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
WORDS: dict[Measure, str] = {"parameters": "parameters", "macs": "multiply-accumulates"}


class LimitError(ModelError):
    """A limit is below the fewest that there can be."""

    def __init__(self, measure: Measure, limit: int, fewest: int, word: str = "possible") -> None:
        what = WORDS[measure]
        super().__init__(f"a budget of {limit:,} {what} cannot be met: {fewest:,} are the fewest {word}")
        self.measure, self.fewest = measure, fewest


def allot_widths(
    model: nn.Module,
    example_input: Inputs,
    *,
    calibration: Calibration,
    parameters: int | None = None,
    macs: int | None = None,
    multiple_of: int = 1,
) -> Widths:
    """Give a width for each free space, such that the network has at most so many parameters and does so many MACs."""
    found = anatomy(model, example_input, partial=True)
    batches = Batches(calibration, model, count_inputs(example_input))
    losses = Losses(Costs(model, found), lost_shares(model, found, batches), multiple_of)
    return losses.within(parameters=parameters, macs=macs)


@dataclass(frozen=True)
class Losses:
    """What a network's spaces would lose at any width, and what they would cost: enough for budgets of any size."""

    costs: Costs
    lost: Mapping[str, list[float]]
    multiple_of: int = 1

    def within(self, *, parameters: int | None = None, macs: int | None = None) -> Widths:
        """Give widths that keep within limits, and use them up."""
        given: dict[Measure, int | None] = {"parameters": parameters, "macs": macs}
        limits = {measure: limit for measure, limit in given.items() if limit is not None}
        if not limits:
            raise SettingsError("give parameters, macs or both as the budget")
        for measure, limit in limits.items():
            fewest = self.fewest(measure)
            if fewest > limit:
                raise LimitError(measure, limit, fewest)
        allotment = Allotment(self.costs, self.lost, limits, self.multiple_of)
        return allotment.fill_up(allotment.shrink())

    def fewest(self, measure: Measure) -> int:
        """Give the cost of the smallest network there can be."""
        smallest = {name: min(round_up(1, self.multiple_of), size) for name, size in self.costs.widths.items()}
        cost: int = getattr(self.costs, measure)(smallest)
        return cost


@dataclass(frozen=True)
class Allotment:
    """Widths that change step by step, from one multiple to the next."""

    costs: Costs
    lost: Mapping[str, list[float]]
    limits: Mapping[Measure, int]
    multiple_of: int

    def shrink(self) -> Widths:
        """Give widths within the budget, from the full ones down."""
        widths = dict(self.costs.widths)
        left = self.left(widths)
        prices = {name: self.price(name, widths, self.below(widths[name])) for name in widths}
        while min(left.values()) < 0:
            name = min((name for name in widths if self.below(widths[name])), key=prices.__getitem__)
            narrow = {**widths, name: self.below(widths[name])}
            left = {measure: room + self.saved(measure, name, widths, narrow) for measure, room in left.items()}
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
            left = self.left(widths)
            steps = {name: {**widths, name: self.above(name, width)} for name, width in widths.items()}
            fitting = {
                name: wider
                for name, wider in steps.items()
                if wider != widths
                and all(self.saved(measure, name, wider, widths) <= left[measure] for measure in left)
            }
            if not fitting:
                return widths
            widths = max(fitting.items(), key=lambda step: self.price(step[0], step[1], widths[step[0]]))[1]

    def price(self, name: str, wide: Widths, lower: int) -> float:
        """Give what a step of one space down to a width loses for each part of the budget that it frees."""
        lost = self.lost[name][lower] - self.lost[name][wide[name]]
        narrow = {**wide, name: lower}
        freed = sum(self.saved(measure, name, wide, narrow) / limit for measure, limit in self.limits.items())
        return lost / max(freed, 1e-12)

    def left(self, widths: Widths) -> dict[Measure, int]:
        """Give what is left of each limit; below 0 where it is exceeded."""
        return {measure: limit - getattr(self.costs, measure)(widths) for measure, limit in self.limits.items()}

    def saved(self, measure: Measure, name: str, wide: Widths, narrow: Widths) -> int:
        """Give what is saved where the width of one space alone changes."""
        return self.costs.difference(measure, name, wide, narrow)

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
