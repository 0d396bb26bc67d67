"""The choice: the smallest network that is proven not to be worse, or the best that can be had."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from topiarist.errors import SettingsError, TopiaristError
from topiarist.measurement import Budget
from topiarist.measurement.footprint import Footprint
from topiarist.methods.budget_search import first_limits
from topiarist.rightsizing.candidates import LITTLE, SizeResult
from topiarist.rightsizing.descent import Descent
from topiarist.rightsizing.judging import clearly_better
from topiarist.rightsizing.record import GUESSING, SizeVerdict, verdict_of
from topiarist.statistics import Metric, default_margin

CLOSER, TRIES = 1.03, 3  # of a budget's ratio
ROOM_KB = 96 / 1024  # for the digits of epochs, seed and temperature: the text of a file is filled up to whole 8 bytes
SMALLER_THAN_BUDGET = 1.2
Status = Literal["proven", "unproven", "unchanged", "no better than guessing"]


@dataclass(frozen=True)
class Choice:
    """What was chosen, and what is offered beside it; without a size, the baseline stays."""

    status: Status
    size: SizeResult | None
    offered: tuple[SizeResult, ...] = ()


def choose(descent: Descent, *, baseline_fits: bool) -> Choice | None:
    """Choose among the sizes that were tested; None where nothing fits the budget and is good enough.

    The smallest proven size is chosen, and smaller ones that were neither proven nor rejected are offered. Where none
    is proven, it is the smallest of those that lost little, or the one that lost least. The baseline stays where every
    size was rejected or is no better than guessing.
    """
    possible = [size for size in descent.sizes if descent.keeps_budget(size)]
    undecided = [size for size in possible if judged_as(size, descent) == "not proven"]
    proven = [size for size in possible if size.proven]
    if proven:
        return Choice("proven", proven[-1], tuple(size for size in undecided if size.ratio > proven[-1].ratio))
    if undecided:
        close = [size for size in undecided if size.evidence.difference >= -LITTLE * descent.margin]
        return Choice("unproven", close[-1] if close else max(undecided, key=lambda size: size.evidence.difference))
    if not baseline_fits:
        return None
    return Choice("unchanged" if clearly_better(descent.baseline_guess, descent.alpha) else GUESSING, None)


def judged_as(size: SizeResult, descent: Descent) -> SizeVerdict:
    """Return the word for a size."""
    found, how = size.evidence, {"margin": descent.margin, "level": size.level}
    return verdict_of(found.difference, found.p, tested=size.tested, beats_guess=size.beats_guess, **how)


def limits_of(budget: Budget | None, max_drop: float | None, metric: Metric) -> tuple[Budget, float]:
    """Return a budget's sizes, and the loss that is allowed: that of the metric unless one is given."""
    if max_drop is None:
        max_drop = default_margin(metric)
    elif not 0 < max_drop < 1:
        raise SettingsError(f"max_drop must lie between 0 and 1; found {max_drop}", setting="max_drop")
    if budget is None:
        return Budget(), max_drop
    drop = max_drop if budget.max_drop is None else budget.max_drop
    if drop == 0:
        raise SettingsError("a max_drop of 0 cannot be proven by any number of samples", setting="max_drop")
    return budget.sizes, drop


def ratios_for(
    budget: Budget, size: Footprint, usual: Sequence[int], bytes_each: int, file_kb: Callable[[float], float]
) -> list[float]:
    """Return the sizes to try where the baseline is above its budget: from the budget on.

    The file of a network that was cut also holds how, and how it was trained, which is known when one was cut:
    `file_kb` makes a network so many times smaller and returns the size of its file.
    """
    asked = budget
    for _ in range(TRIES):
        limits = first_limits(asked, size, bytes_each)
        ratio = CLOSER * max(getattr(size, measure) / max(limit, 1) for measure, limit in limits.items())
        if asked.file_kb is None or budget.file_kb is None:
            break
        try:
            above = file_kb(ratio) + ROOM_KB - budget.file_kb
        except TopiaristError:  # so small a network cannot be made: the descent says why
            break
        if above <= 0:
            break
        asked = asked.model_copy(update={"file_kb": asked.file_kb - above})
    return [ratio, *(float(each) for each in usual if each > SMALLER_THAN_BUDGET * ratio)]


def go_nearest_below(descent: Descent) -> None:
    """Make the smallest usual size that can be made, where that of the budget cannot: to report how near it is."""
    ratio = descent.ratios[0]
    for possible in sorted((float(each) for each in descent.plan.ratios if each < ratio), reverse=True):
        descent.ratios = [possible]
        descent.go()
        if descent.sizes:
            return
