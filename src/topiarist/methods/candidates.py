"""Networks that a method proposes, made and judged: one that keeps within a budget, or the smallest that loses little.

A limit in KB or milliseconds is met by limits on parameters and multiply-accumulates, which are tightened until the
file, and the clock, agree.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

from torch import nn

from topiarist.measurement import Budget, BudgetError
from topiarist.measurement.budget import Excess, Footprint
from topiarist.methods.task import Limits
from topiarist.surgery.choice.allotment import LimitError
from topiarist.surgery.choice.costs import Measure
from topiarist.training import History

TRIES = 12
TIGHTENED = 3
HALVINGS = 8
CLOSER = 0.97


@dataclass(frozen=True)
class Candidate:
    """A network, why it is as it is, and how it was trained again, where it was."""

    model: nn.Module
    reasons: tuple[str, ...]
    history: History | None = None


Make = Callable[[Limits], Candidate]
Weigh = Callable[[nn.Module], Footprint]


def first_limits(budget: Budget, now: Footprint, bytes_each: int) -> dict[Measure, int]:
    """Give the limits that a budget means for a network, as far as can be told beforehand."""
    parameters, macs = budget.parameters, budget.macs
    if budget.file_kb is not None:
        surplus = math.ceil((now.file_kb - budget.file_kb) * 1024 / bytes_each)
        parameters = max(1, min(now.parameters - surplus, parameters or now.parameters))
    if budget.latency_ms is not None and now.latency_ms is not None and now.latency_ms > budget.latency_ms:
        macs = min(int(now.macs * budget.latency_ms / now.latency_ms), macs or now.macs)
    limits: dict[Measure, int] = {}
    if parameters is not None:
        limits["parameters"] = parameters
    if macs is not None:
        limits["macs"] = macs
    return limits


def reachable(make: Make) -> Make:
    """Give a maker that takes the fewest there can be where a limit is below that."""

    def made(limits: Limits) -> Candidate:
        known = dict(limits)
        for _ in range(TRIES):
            try:
                return make(known)
            except LimitError as error:
                if known[error.measure] >= error.fewest:
                    raise
                known[error.measure] = error.fewest
        return make(known)

    return made


def within(budget: Budget, make: Make, weigh: Weigh, limits: Limits) -> Candidate:
    """Make a network that keeps within a budget, tightening limits until it does."""
    known = dict(limits)
    for _ in range(TIGHTENED):
        candidate = make(known)
        found = weigh(candidate.model)
        excess = budget.excess(found)
        if excess is None:
            return candidate
        known = tightened(known, excess, found)
    return between(budget, make, weigh, known)


def between(budget: Budget, make: Make, weigh: Weigh, high: Limits) -> Candidate:
    """Halve the way between the smallest network, which must keep the budget, and one that does not."""
    best = make(dict.fromkeys(high, 1))
    found = weigh(best.model)
    excess = budget.excess(found)
    if excess is not None:
        raise BudgetError(f"the budget cannot be met: the nearest network has {excess}")
    low = {measure: int(getattr(found, measure)) for measure in high}
    for _ in range(HALVINGS):
        middle = {measure: round(math.sqrt(low[measure] * max(high[measure], low[measure]))) for measure in high}
        candidate = make(middle)
        if budget.excess(weigh(candidate.model)) is None:
            best, low = candidate, middle
        else:
            high = middle
    return best


def tightened(limits: Limits, excess: Excess, found: Footprint) -> dict[Measure, int]:
    """Give limits that make up for an excess."""
    ratio = CLOSER * excess.limit / excess.found
    measure: Measure = "macs" if excess.what in ("ms a sample", "multiply-accumulates") else "parameters"
    now = getattr(found, measure)
    return {**limits, measure: max(1, int(min(limits.get(measure, now), now) * ratio))}


def smallest(make: Make, good_enough: Callable[[Candidate], bool], *, fewest: int, most: int) -> Candidate | None:
    """Give the smallest network, by parameters, that is good enough, by halving; None where no smaller one is."""
    best: Candidate | None = None
    low, high = math.log(fewest), math.log(most)
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        candidate = make({"parameters": max(int(math.exp(middle)), fewest)})
        if good_enough(candidate):
            best, high = candidate, middle
        else:
            low = middle
    return best
