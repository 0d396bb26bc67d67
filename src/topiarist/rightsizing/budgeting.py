"""What a budget means for the sizes to try."""

from collections.abc import Callable, Sequence

from topiarist.errors import SettingsError, TopiaristError
from topiarist.measurement import Budget
from topiarist.measurement.budget import Footprint
from topiarist.methods.candidates import first_limits
from topiarist.rightsizing.deciding import Judgement
from topiarist.rightsizing.descending import Descent

CLOSER, TRIES = 1.03, 3  # of a budget's ratio
ROOM_KB = 32 / 1024  # for the digits of epochs and seed: the text of a file is filled up to whole 8 bytes
SMALLER_THAN_BUDGET = 1.2


def limits_of(budget: Budget | None, max_drop: float) -> tuple[Budget, float]:
    """Give a budget's sizes, and the loss that is allowed."""
    if not 0 < max_drop < 1:
        raise SettingsError(f"max_drop must lie between 0 and 1; found {max_drop}", setting="max_drop")
    if budget is None:
        return Budget(), max_drop
    drop = max_drop if budget.max_drop is None else budget.max_drop
    if drop == 0:
        raise SettingsError("an allowed loss of 0 cannot be proven by any number of samples", setting="max_drop")
    return budget.model_copy(update={"max_drop": None}), drop


def ratios_for(
    budget: Budget, size: Footprint, usual: Sequence[int], bytes_each: int, weigh: Callable[[float], Footprint]
) -> list[float]:
    """Give the sizes to try where the baseline is above its budget: from the budget on.

    The file of a network that was cut also says how, and how it was trained: which is known when one was cut.
    """
    asked = budget
    for _ in range(TRIES):
        limits = first_limits(asked, size, bytes_each)
        ratio = CLOSER * max(getattr(size, measure) / max(limit, 1) for measure, limit in limits.items())
        if asked.file_kb is None or budget.file_kb is None:
            break
        try:
            above = weigh(ratio).file_kb + ROOM_KB - budget.file_kb
        except TopiaristError:  # so small a network cannot be made: the descent says why
            break
        if above <= 0:
            break
        asked = asked.model_copy(update={"file_kb": asked.file_kb - above})
    return [ratio, *(float(each) for each in usual if each > SMALLER_THAN_BUDGET * ratio)]


def nearest_below(descent: Descent, ratio: float, drop: float, alpha: float) -> list[Judgement]:
    """Make the smallest of the usual sizes that can be made, where that of the budget cannot: to say how near it is."""
    for possible in sorted((float(each) for each in descent.plan.ratios if each < ratio), reverse=True):
        descent.ratios = [possible]
        judged = descent.go(margin=drop, alpha=alpha)
        if judged:
            return judged
    return []
