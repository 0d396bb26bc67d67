"""The claims of a paper: what it says, what was found here, and a verdict; one form for pages, tables and JSON."""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Literal

import numpy
import pandas
from scipy.stats import binom, t

from topiarist.report import Table, table_of
from topiarist.statistics import Interval
from topiarist.statistics.noninferiority import welch_bound

ClaimVerdict = Literal["reproduced", "not reproduced", "supported", "not supported", "not testable on this data"]
REPRODUCED: ClaimVerdict = "reproduced"
NOT_REPRODUCED: ClaimVerdict = "not reproduced"
SUPPORTED: ClaimVerdict = "supported"  # for a paper that recommends something and prints no figures
NOT_SUPPORTED: ClaimVerdict = "not supported"
NOT_TESTABLE: ClaimVerdict = "not testable on this data"
TAIL = 0.025  # on either side of a 95 % interval


@dataclass(frozen=True)
class Claim:
    """One claim of a paper, judged.

    `published` and `ours` are texts, since not every claim is a number; `interval` is the 95 % interval of ours, where
    it has one. A reproduction with numbers behind its claims adds them in a subclass.
    """

    claim: str
    published: str
    ours: str
    interval: str | None
    verdict: ClaimVerdict
    note: str = ""

    def to_json(self) -> dict[str, object]:
        """Return plain values."""
        return asdict(self)


def verdict_counts(claims: Sequence[Claim]) -> Counter[ClaimVerdict]:
    """Return how many claims got each verdict; 0 for a verdict that none got."""
    return Counter(claim.verdict for claim in claims)


def claims_frame(claims: Sequence[Claim], *, paper: str) -> pandas.DataFrame:
    """Return one row per claim; `paper` heads the published values. Without intervals or notes there is no such column.

    The verdict comes second, so that a phone shows it. Numbers get a true minus sign.
    """
    columns = ["claim", "verdict", paper, "ours", "95 % interval", "note"]
    rows = [(each.claim, each.verdict, each.published, each.ours, each.interval, each.note) for each in claims]
    frame = pandas.DataFrame(rows, columns=columns).replace({"": None})
    frame[columns[2:5]] = frame[columns[2:5]].replace(r"(?<!\w)-(?=[\d.])", "−", regex=True)
    return frame.drop(columns=[name for name in ("95 % interval", "note") if frame[name].isna().all()])


def claims_table(claims: Sequence[Claim], *, paper: str, caption: str = "") -> Table:
    """Return the claims as the table at the top of a page; those that came out are highlighted."""
    held = frozenset(number for number, each in enumerate(claims) if each.verdict in (REPRODUCED, SUPPORTED))
    return replace(table_of(claims_frame(claims, paper=paper), caption), highlight=held)


@dataclass(frozen=True)
class Chance:
    """What always naming the largest class achieves: its share of the test samples, and how many samples there are."""

    share: float
    samples: int

    @property
    def highest(self) -> float:
        """The largest accuracy that is still at chance: the upper end of the central 95 % of the binomial distribution.

        With 10 equal classes and 1,000 samples, up to 0.119 is chance.
        """
        return float(binom.ppf(1 - TAIL, self.samples, self.share)) / self.samples


def mean_interval(values: Sequence[float], *, test_to_train: float = 0.0) -> Interval | None:
    """Return the mean with its interval, mean ± t · √((1/n + test_to_train) s²); None of fewer than two values.

    `test_to_train` is 0 for independent runs. For folds it is the size of a test set over that of its training set, as
    training sets overlap (Nadeau and Bengio, 2003): 50 accuracies with s = 4.5 points over 5 × 10 folds have an
    interval of ± 2.01 · √(1/50 + 1/9) · 4.5 = 3.3 points.
    """
    array = numpy.asarray(values, dtype=numpy.float64)
    if len(array) < 2:
        return None
    error = math.sqrt((1 / len(array) + test_to_train) * float(array.var(ddof=1)))
    mean, reach = float(array.mean()), float(t.ppf(1 - TAIL, len(array) - 1)) * error
    return Interval(mean, mean - reach, mean + reach)


def reach_of_mean(deviation: float, count: int) -> float | None:
    """Return how far the t interval of a mean reaches to either side; None for one run."""
    return float(t.ppf(1 - TAIL, count - 1)) * deviation / math.sqrt(count) if count > 1 else None


def difference(one: Sequence[float], other: Sequence[float]) -> Interval | None:
    """Return the difference of two means with Welch's interval; None where a side has fewer than two runs."""
    if min(len(one), len(other)) < 2:
        return None
    first, second = numpy.asarray(one, dtype=numpy.float64), numpy.asarray(other, dtype=numpy.float64)
    low, high = welch_bound(first, second, TAIL), -welch_bound(second, first, TAIL)
    return Interval(float(first.mean() - second.mean()), low, high)


def decide_direction(found: Interval, published: float) -> tuple[ClaimVerdict, str]:
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


def decide_margin(found: Interval, margin: float) -> tuple[ClaimVerdict, str]:
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
