"""The search for a network that keeps a budget, or for the smallest that loses little.

A limit in KB is met by a limit on parameters, which is tightened until the file agrees. A limit in milliseconds is met
by one on the time that a table of this machine predicts, which is tightened until the clock agrees.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeVar

from torch import nn

from topiarist.files import BYTES_PER_KB
from topiarist.measurement import Budget, BudgetError
from topiarist.measurement.budget import Excess
from topiarist.measurement.footprint import Footprint, footprint
from topiarist.methods.job import Job, Limits, Request
from topiarist.methods.outcome import Outcome
from topiarist.models.evaluation import numbers_of
from topiarist.surgery.choice.allotment import LimitError
from topiarist.surgery.choice.costs import Measure

TRIES = 12  # limits that turn out to be below the fewest possible
TIGHTENED = 3  # times that limits are tightened in proportion before the way is halved
HALVINGS = 8  # of the way between a network that is small enough and one that is not: to within 1 / 256 of it
CLOSER = 0.97  # of the proportional limit: a tightened limit that is just missed costs one more network
ROUNDS = 3  # in which a network is timed; the fastest counts
FAR_OFF = 1.15  # times what was predicted: beyond what a table misses, so that the method does not follow it
LOWEST_MS = 1e-9  # below any network
T = TypeVar("T")
Make = Callable[[Limits], Outcome]


def halve(good: float, bad: float, attempt: Callable[[float], T | None], *, steps: int = HALVINGS) -> T | None:
    """Halve the way from a good point to a bad one; return the last attempt that succeeded, None where none did.

    An attempt returns None where it fails. Example: from good 0 to bad 8, with attempts below 5 succeeding, the points
    4, 6, 5, 4.5 are tried and the result is that of 4.5.
    """
    best: T | None = None
    for _ in range(steps):
        middle = (good + bad) / 2
        found = attempt(middle)
        if found is None:
            bad = middle
        else:
            good, best = middle, found
    return best


def weigh(job: Job, budget: Budget, network: nn.Module) -> Footprint:
    """Weigh a network; its file is made, and a clock is used, only where the budget asks for it."""
    file_bytes = math.nan if budget.file_kb is None else None
    return footprint(
        network,
        job.sample,
        data=job.data,
        latency=budget.latency_ms is not None,
        runtime=budget.runtime,
        threads=budget.threads,
        rounds=ROUNDS,
        file_bytes=file_bytes,
    )


def first_limits(budget: Budget, now: Footprint, bytes_each: int, *, timed: bool = False) -> dict[Measure, float]:
    """Return the limits that a budget means for a network, as far as can be known beforehand.

    Where nothing says how long its layers take, a latency is met by multiply-accumulates in proportion.
    """
    parameters, macs = budget.parameters, budget.macs
    for limit, found in ((budget.file_kb, now.file_kb), (budget.memory_kb, now.memory_kb)):
        if limit is not None:
            surplus = math.ceil((found - limit) * BYTES_PER_KB / bytes_each)
            parameters = max(1, min(now.parameters - surplus, parameters or now.parameters))
    slow = budget.latency_ms is not None and now.latency_ms is not None and now.latency_ms > budget.latency_ms
    limits: dict[Measure, float] = {}
    if slow and timed and budget.latency_ms is not None:
        limits["latency_ms"] = budget.latency_ms
    elif slow and budget.latency_ms is not None and now.latency_ms is not None:
        macs = min(int(now.macs * budget.latency_ms / now.latency_ms), macs or now.macs)
    if parameters is not None:
        limits["parameters"] = parameters
    if macs is not None:
        limits["macs"] = macs
    return limits


@dataclass(frozen=True)
class BudgetSearch:
    """The search for one network in one round; `make` makes the network that a method proposes for a request."""

    request: Request
    budget: Budget
    make: Callable[[Request], Outcome]

    def run(self) -> Outcome | None:
        """Keep within the budget's sizes; without any, find the smallest network that loses no more than allowed.

        None says that no smaller network loses so little.
        """
        if not self.budget.limits_size:
            return self._smallest()
        now, share = self._weigh(self.request.model), self.request.share
        limits = first_limits(self.budget, now, numbers_of(self.request.model).element_size(), timed=True)
        if "latency_ms" in limits:
            self.request.timed(self.budget.runtime, self.budget.threads)
        limits = {name: _on_the_way(name, getattr(now, name), limit, share) for name, limit in limits.items()}
        return self._within(limits) if share == 1 else self._made(limits)

    def _weigh(self, network: nn.Module) -> Footprint:
        """Weigh a network; where the whole one is timed for its table, it is timed beside that."""
        timing = self.request.timing
        if timing is None:
            return weigh(self.request.job, self.budget, network)
        found = weigh(self.request.job, self.budget.model_copy(update={"latency_ms": None}), network)
        return replace(found, latency_ms=timing.time_beside(network))

    def _made(self, limits: Limits) -> Outcome:
        """Make a network within limits; one that is below the fewest possible is raised to that."""
        reachable = dict(limits)
        for _ in range(TRIES):
            try:
                return self.make(replace(self.request, limits=reachable))
            except LimitError as error:
                if reachable[error.measure] >= error.fewest:
                    raise
                reachable[error.measure] = error.fewest
        return self.make(replace(self.request, limits=reachable))

    def _within(self, limits: Limits) -> Outcome:
        """Make a network that keeps the budget, tightening limits until it does."""
        known = dict(limits)
        for _ in range(TIGHTENED):
            outcome = self._made(known)
            found = self._weigh(outcome.model)
            excess = self.budget.excess(found)
            if excess is None:
                return outcome
            known = _tightened(known, excess, found)
        return self._between(known)

    def _between(self, high: Limits) -> Outcome:
        """Halve the way from the smallest network, which must keep the budget, to limits that are too high."""
        smallest = self._made({measure: LOWEST_MS if measure == "latency_ms" else 1 for measure in high})
        found = self._weigh(smallest.model)
        excess = self.budget.excess(found)
        if excess is not None:
            raise BudgetError(f"the budget cannot be met: the nearest network has {excess}")
        low: dict[Measure, float] = {measure: getattr(found, measure) for measure in high}

        def attempt(share: float) -> Outcome | None:
            ends = {measure: (low[measure], max(high[measure], low[measure])) for measure in high}
            outcome = self._made({measure: _on_the_way(measure, *two, share) for measure, two in ends.items()})
            return outcome if self.budget.excess(self._weigh(outcome.model)) is None else None

        return halve(0.0, 1.0, attempt) or smallest

    def _smallest(self) -> Outcome | None:
        job, share, costs = self.request.job, self.request.share, self.request.costs
        lowest = job.whole_score - (self.budget.max_drop or 0.0)
        full, fewest = costs.parameters({}), costs.parameters(dict.fromkeys(costs.widths, 1))
        floor = int(full ** (1 - share) * fewest**share)

        def attempt(logarithm: float) -> Outcome | None:
            outcome = self._made({"parameters": max(int(math.exp(logarithm)), floor)})
            return outcome if job.scored(outcome.model) >= lowest else None

        return halve(math.log(full), math.log(floor), attempt)


def _on_the_way(measure: Measure, start: float, end: float, share: float) -> float:
    """Return the limit that is some share of the way from one to another: start^(1 − share) · end^share."""
    found: float = start ** (1 - share) * end**share
    return found if measure == "latency_ms" else round(found)


def _tightened(limits: Limits, excess: Excess, found: Footprint) -> dict[Measure, float]:
    """Return limits that make up for an excess; of a time far off what was predicted, arithmetic must make up."""
    known = dict(limits)
    if excess.limit_name == "latency_ms" and "latency_ms" in known:
        known["latency_ms"] *= CLOSER / excess.ratio
        if excess.ratio <= FAR_OFF:
            return known
    measure: Measure = "macs" if excess.limit_name in ("latency_ms", "macs") else "parameters"
    now = getattr(found, measure)
    return {**known, measure: max(1, int(min(known.get(measure, now), now) * CLOSER / excess.ratio))}


def check_drop(outcome: Outcome, budget: Budget, nearest: Callable[[], nn.Module] | None = None) -> None:
    """Raise BudgetError for a network that loses more than allowed; `nearest` finds one that fits the loss alone."""
    before, after = outcome.score
    allowed = budget.max_drop
    if allowed is None or after >= before - allowed:
        return
    lost = f"{100 * (before - after):.1f} points are lost and {100 * allowed:g} are allowed"
    if nearest is None:
        raise BudgetError(lost)
    found = footprint(nearest(), outcome.job.sample, data=outcome.job.data)
    raise BudgetError(
        f"within the budget's size, {lost}: the smallest network found that loses no more has"
        f" {found.parameters:,} parameters and {found.file_kb:.1f} KB"
    )
