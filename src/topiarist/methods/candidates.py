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
from topiarist.surgery.costs import Costs, Measure
from topiarist.training import History

TRIES = 12
HALVINGS = 8
CLOSER = 0.97


@dataclass(frozen=True)
class Candidate:
    """A network, why it is as it is, and how it was trained again, where it was."""

    model: nn.Module
    reasons: tuple[str, ...]
    history: History | None = None


Make = Callable[[Limits], Candidate]


def first_limits(budget: Budget, now: Footprint, bytes_each: int) -> dict[Measure, int]:
    """Give the limits that a budget means for a network, as far as can be told beforehand."""
    parameters, macs = budget.parameters, budget.macs
    if budget.size_kb is not None:
        surplus = math.ceil((now.file_kb - budget.size_kb) * 1024 / bytes_each)
        parameters = min(now.parameters - surplus, parameters or now.parameters)
    if budget.latency_ms is not None and now.latency_ms is not None and now.latency_ms > budget.latency_ms:
        macs = min(int(now.macs * budget.latency_ms / now.latency_ms), macs or now.macs)
    limits: dict[Measure, int] = {}
    if parameters is not None:
        limits["parameters"] = parameters
    if macs is not None:
        limits["macs"] = macs
    return limits


def within(
    budget: Budget,
    make: Make,
    weigh: Callable[[nn.Module], Footprint],
    limits: dict[Measure, int],
    costs: Costs,
) -> Candidate:
    """Make a network that keeps within a budget, tightening limits until it does."""
    fewest: dict[Measure, int] = {name: getattr(costs, name)(dict.fromkeys(costs.widths, 1)) for name in WORST}
    for _ in range(TRIES):
        settled = {name: max(limit, fewest[name]) for name, limit in limits.items()}
        candidate = make(settled)
        found = weigh(candidate.model)
        excess = budget.excess(found)
        if excess is None:
            return candidate
        if all(settled[name] == fewest[name] for name in settled):
            break
        limits = tightened(settled, excess, found)
    raise BudgetError(f"the budget cannot be met: the nearest network has {excess}")


WORST: tuple[Measure, ...] = ("parameters", "macs")


def tightened(limits: dict[Measure, int], excess: Excess, found: Footprint) -> dict[Measure, int]:
    """Give limits that make up for an excess."""
    ratio = CLOSER * excess.limit / excess.found
    if excess.what == "ms a sample":
        return {**limits, "macs": int(min(limits.get("macs", found.macs), found.macs) * ratio)}
    return {**limits, "parameters": int(min(limits.get("parameters", found.parameters), found.parameters) * ratio)}


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
