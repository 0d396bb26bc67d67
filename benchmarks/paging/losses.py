"""Where others are ahead of us, and where we miss what we set out for: by one rule for every benchmark."""

import math
from collections.abc import Sequence

from benchmarks.paging.records import MEASURES, Comparison, Figure, Sheet


def compare(sheet: Sheet) -> list[Comparison]:
    """Return ours beside every rival and every aim of the same table, case and measure."""
    found = []
    for own in sheet.figures:
        better = MEASURES[own.measure].better
        if own.role != "ours" or not better:
            continue
        for other in sheet.figures:
            same = (other.table, other.case, other.measure) == (own.table, own.case, own.measure)
            if same and other.role in ("rival", "aim"):
                found.append(_comparison(own, other, better))
    return found


def _comparison(own: Figure, other: Figure, better: "str") -> Comparison:
    return Comparison.model_validate(
        {
            "case": ", ".join(part for part in (own.table, own.case) if part),
            "measure": own.measure,
            "better": better,
            "ours": own.value,
            "theirs": other.value,
            "rival": other.contender,
            "aim": other.role == "aim",
            "spread": _spread(own, other),
        }
    )


def _spread(own: Figure, other: Figure) -> float | None:
    """Return the standard error of the difference of two means; None where a spread is not known."""
    if own.deviation is None or other.deviation is None or min(len(own.values), len(other.values)) < 2:
        return None
    return math.hypot(own.deviation / math.sqrt(len(own.values)), other.deviation / math.sqrt(len(other.values)))


def losses(comparisons: Sequence[Comparison]) -> list[Comparison]:
    """Return a rival for each case where one is ahead, rather one that is so without luck, and every aim missed."""
    kept: dict[tuple[str, str, bool], Comparison] = {}
    for each in sorted(comparisons, key=lambda each: (not may_be_luck(each), abs(each.theirs - each.ours))):
        if each.lost:
            kept[each.case, each.measure, each.aim] = each  # the last counts
    cases = dict.fromkeys((each.case, each.measure, each.aim) for each in comparisons)
    return [kept[case] for case in cases if case in kept]


def may_be_luck(comparison: Comparison) -> bool:
    """Return whether a difference is below twice its standard error; without a spread it is taken as it is."""
    return bool(comparison.spread) and abs(comparison.theirs - comparison.ours) < 2 * (comparison.spread or 0.0)


def told(loss: Comparison) -> str:
    """Return a loss in words; one below twice its standard error may be luck."""
    luck = " (may be luck)" if may_be_luck(loss) else ""
    return f"{loss.case}: {loss.rival} {_number(loss.theirs)}, ours {_number(loss.ours)}{luck}"


def _number(value: float) -> str:
    return f"{value:,.4g}" if abs(value) < 1000 else f"{value:,.0f}"
