"""What a paper claims, what was found here, and what follows: one row per claim, for a page and for JSON."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import pandas
from scipy.stats import t

from topiarist.report import Table, table_of
from topiarist.statistics import Interval

Decided = Literal["reproduced", "not reproduced", "not testable on this data"]
REPRODUCED: Decided = "reproduced"
NOT_REPRODUCED: Decided = "not reproduced"
NOT_TESTABLE: Decided = "not testable on this data"


@dataclass(frozen=True)
class Verdict:
    """A claim, the paper's figure and ours as texts, the 95 % interval of ours where it has one, and what follows."""

    claim: str
    published: str
    ours: str
    interval: str | None
    verdict: Decided
    note: str = ""


def verdict_frame(verdicts: Sequence[Verdict], *, paper: str) -> pandas.DataFrame:
    """Return one row per claim; `paper` heads the column of published figures."""
    rows = [(row.claim, row.published, row.ours, row.interval, row.verdict, row.note) for row in verdicts]
    columns = ["claim", paper, "ours", "95 % interval", "verdict", "why"]
    return pandas.DataFrame(rows, columns=columns)


def verdict_table(verdicts: Sequence[Verdict], *, paper: str, caption: str = "") -> Table:
    """Return the claims as a table of a page."""
    return table_of(verdict_frame(verdicts, paper=paper), caption)


def difference(one: Sequence[float], other: Sequence[float], *, confidence: float = 0.95) -> Interval | None:
    """Return the difference of two means with Welch's interval; None where fewer than two runs say how runs vary."""
    if min(len(one), len(other)) < 2:
        return None
    first, second = pandas.Series(one, dtype=float), pandas.Series(other, dtype=float)
    parts = [some.var() / len(some) for some in (first, second)]
    gap, variance = first.mean() - second.mean(), sum(parts)
    if variance == 0:
        return Interval(gap, gap, gap)
    freedom = variance**2 / sum(
        part**2 / (len(some) - 1) for part, some in zip(parts, (first, second), strict=True) if part
    )
    reach = float(t.ppf((1 + confidence) / 2, freedom)) * math.sqrt(variance)
    return Interval(gap, gap - reach, gap + reach)


def reach_of_mean(deviation: float, count: int, *, confidence: float = 0.95) -> float | None:
    """Return how far the t interval of a mean reaches to either side; None for one run."""
    return float(t.ppf((1 + confidence) / 2, count - 1)) * deviation / math.sqrt(count) if count > 1 else None


def decide_direction(found: Interval, published: float) -> tuple[Decided, str]:
    """Decide whether a difference has the published sign; undecided where the interval holds 0 and the published one.

    An interval of −0.5 to +2 says nothing against a published +1, and nothing for it: more runs are needed. One of −0.5
    to +0.3 rules +1 out.
    """
    low, high, wanted = (found.low, found.high, published) if published > 0 else (-found.high, -found.low, -published)
    if low > 0:
        return REPRODUCED, "the interval lies on the published side of 0"
    if high < 0:
        return NOT_REPRODUCED, "the interval lies on the other side of 0"
    if high < wanted:
        return NOT_REPRODUCED, "the interval holds 0 and not the published difference"
    return NOT_TESTABLE, "the interval holds 0 and the published difference: too few runs or clips to decide"


def decide_margin(found: Interval, margin: float) -> tuple[Decided, str]:
    """Decide whether nothing beyond a margin is lost: the whole interval lies above −margin."""
    if found.low > -margin:
        return REPRODUCED, "the whole interval lies above the margin"
    if found.high < -margin:
        return NOT_REPRODUCED, "the whole interval lies below the margin"
    return NOT_TESTABLE, "the interval holds the margin: too few runs to decide"


def in_points(found: Interval | None) -> tuple[str, str | None]:
    """Return a difference of accuracies and its interval in points, as texts."""
    if found is None:
        return "–", None
    return f"{100 * found.value:+.2f} points", f"{100 * found.low:+.2f} to {100 * found.high:+.2f}"
