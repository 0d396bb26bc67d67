"""Is a candidate not worse than the baseline by more than a margin? Scores are such that more is better.

The hypothesis is that it is worse by the margin or more; a small p proves that it is not.
"""

import math
from dataclasses import dataclass
from typing import Literal, get_args

import numpy
from scipy.stats import t

from topiarist.errors import SettingsError
from topiarist.statistics.effects import standard_deviation
from topiarist.statistics.finding import Finding
from topiarist.statistics.rank_tests import rank_sum, signed_rank
from topiarist.statistics.samples import Floats, Values, check_not_negative, check_share, pairs, sample
from topiarist.statistics.t_tests import corrected_t

Design = Literal["folds", "pairs", "runs"]


@dataclass(frozen=True)
class Verdict:
    """How a candidate compares with the baseline, and whether it is proven not to be worse by the margin.

    `low` is the lower one-sided confidence bound of the difference of the means at 1 − alpha, of this comparison alone;
    `adjusted_p` is Holm's over all comparisons made together.
    """

    name: str
    difference: float
    low: float
    p: float
    adjusted_p: float
    proven: bool
    notes: tuple[str, ...] = ()


def non_inferiority(
    candidate: Values,
    baseline: Values,
    *,
    margin: float,
    design: Design = "folds",
    test_to_train: float = 0.0,
    alpha: float = 0.05,
    name: str = "candidate",
    comparisons: int = 1,
) -> Verdict:
    """Test one candidate: over the same folds, over pairs that are independent, or over independent runs.

    Folds: corrected t of d + margin. Pairs: signed ranks of d + margin, with the bound of the paired t. Runs: rank sum
    of candidate + margin against baseline, with the bound of Welch's t. `comparisons` only serves the notes.
    """
    check_settings(margin=margin, design=design, test_to_train=test_to_train, alpha=alpha)
    one, two = sample(candidate, name, fewest=2), sample(baseline, "baseline", fewest=2)
    if design != "runs":
        one, two = pairs(one, two)
    if design == "folds":
        found = corrected_t(one, two, test_to_train=test_to_train, alternative="greater", margin=margin)
    elif design == "pairs":
        found = signed_rank(one + margin, two, alternative="greater", alpha=alpha, comparisons=comparisons)
    else:
        found = rank_sum(one + margin, two, alternative="greater", alpha=alpha, comparisons=comparisons)
    low = welch_bound(one, two, alpha) if design == "runs" else paired_bound(one, two, alpha, test_to_train)
    notes = notes_of(found, design, test_to_train)
    return Verdict(name, float(one.mean() - two.mean()), low, found.p, found.p, found.p <= alpha, notes)


def notes_of(found: Finding, design: Design, test_to_train: float) -> tuple[str, ...]:
    """Give a test's notes, and one where folds are taken to be independent."""
    independent = ("test_to_train is 0: the folds are taken to share no training data",)
    return (independent if design == "folds" and test_to_train == 0 else ()) + found.notes


def paired_bound(first: Floats, second: Floats, alpha: float, test_to_train: float) -> float:
    """Give d̄ − t(1−α; n−1) s √(1/n + test_to_train)."""
    differences = first - second
    error = standard_deviation(differences) * math.sqrt(1 / len(differences) + test_to_train)
    return float(differences.mean() - t.isf(alpha, len(differences) - 1) * error)


def welch_bound(first: Floats, second: Floats, alpha: float) -> float:
    """Give x̄ − ȳ − t(1−α; ν) √(a + b), a = s₁²/n, b = s₂²/m, ν = (a + b)² / (a²/(n−1) + b²/(m−1))."""
    squares = numpy.array([standard_deviation(values) ** 2 / len(values) for values in (first, second)])
    difference, total = float(first.mean() - second.mean()), float(squares.sum())
    if total == 0:
        return difference
    shares = squares / total
    freedom = 1 / float((shares**2 / [len(first) - 1, len(second) - 1]).sum())
    return difference - float(t.isf(alpha, freedom)) * math.sqrt(total)


def check_settings(*, margin: float, design: str, test_to_train: float, alpha: float) -> None:
    """Refuse settings that describe no test."""
    check_not_negative("margin", margin)
    check_not_negative("test_to_train", test_to_train)
    check_share("alpha", alpha)
    if design not in get_args(Design):
        raise SettingsError(f"design must be one of {', '.join(get_args(Design))}; found {design!r}")
    if test_to_train and design != "folds":
        raise SettingsError(f"test_to_train is for folds; found {test_to_train} with design {design!r}")
