"""Is a candidate not worse than the baseline by more than a margin? Scores are such that more is better.

The hypothesis is that it is worse by the margin or more; a small p proves that it is not. With several candidates, the
smallest that is proven is chosen; and before any run, the power says what a number of runs can prove.
"""

import math
from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal, get_args

import numpy
import scipy

from topiarist.errors import SettingsError
from topiarist.statistics.comparisons import corrected_t, rank_sum, signed_rank
from topiarist.statistics.samples import Floats, Values, check_between_0_and_1, check_not_negative, pairs, sample

Design = Literal["folds", "pairs", "runs"]
MOST_RUNS = 2**30  # where so many do not suffice, no study will


@dataclass(frozen=True)
class NonInferiority:
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


@dataclass(frozen=True)
class SmallestDecision:
    """The configuration chosen, and the verdicts on all that are smaller than the baseline, the smallest first."""

    chosen: str
    verdicts: tuple[NonInferiority, ...]
    baseline: str
    margin: float
    alpha: float


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
) -> NonInferiority:
    """Test whether one candidate is not worse than the baseline by more than a margin.

    Parameters
    ----------
    candidate, baseline
        Scores, 2 or more of each.
    margin
        The difference that would matter, 0 or more, in units of the score.
    design
        "folds": the same folds, by the corrected t of d + margin. "pairs": independent pairs, by signed ranks of
        d + margin, with the bound of the paired t. "runs": independent runs, by the rank sum of candidate + margin
        against baseline, with the bound of Welch's t.
    test_to_train
        For folds: size of a test set over that of its training set, see `corrected_t`.
    alpha
        Probability to call a candidate proven that is worse by just the margin.
    name, comparisons
        What to call the candidate in messages, and the number of tests made together, for the notes.

    Raises
    ------
    SettingsError
        If scores are not finite or not as many as the design asks for, or a setting is out of range.

    Examples
    --------
    >>> found = non_inferiority([0.90, 0.92, 0.91], [0.91, 0.92, 0.90], margin=0.05, test_to_train=0.5)
    >>> found.proven, round(found.p, 4)
    (True, 0.0159)
    """
    _check_design(design, margin=margin, test_to_train=test_to_train, alpha=alpha)
    one, two = sample(candidate, name, fewest=2), sample(baseline, "baseline", fewest=2)
    if design != "runs":
        one, two = pairs(one, two)
    if design == "folds":
        found = corrected_t(one, two, test_to_train=test_to_train, alternative="greater", margin=margin)
    else:
        test = signed_rank if design == "pairs" else rank_sum
        found = test(one + margin, two, alternative="greater", alpha=alpha, comparisons=comparisons)
    low = welch_bound(one, two, alpha) if design == "runs" else paired_bound(one, two, alpha, test_to_train)
    independent = ("test_to_train is 0: the folds are assumed to share no training data",)
    notes = (independent if design == "folds" and test_to_train == 0 else ()) + found.notes
    return NonInferiority(name, float(one.mean() - two.mean()), low, found.p, found.p, found.p <= alpha, notes)


def smallest_not_worse(
    scores: Mapping[str, Values],
    sizes: Mapping[str, float],
    *,
    baseline: str,
    margin: float,
    design: Design = "folds",
    test_to_train: float = 0.0,
    alpha: float = 0.05,
) -> SmallestDecision:
    """Test every configuration smaller than the baseline, with Holm's correction, and choose the smallest proven one.

    Parameters
    ----------
    scores, sizes
        Scores and size of each configuration by name.
    baseline
        Name of the configuration to compare with.
    margin, design, test_to_train, alpha
        As for `non_inferiority`.

    Returns
    -------
    SmallestDecision
        Where none is proven, the baseline is chosen. Of two of the same size, that with the better mean comes first.

    Raises
    ------
    SettingsError
        As `non_inferiority`; or if the baseline is unknown, or a configuration has no finite size.

    Examples
    --------
    >>> scores = {"full": [0.90, 0.91, 0.92], "half": [0.90, 0.92, 0.91], "tiny": [0.70, 0.64, 0.68]}
    >>> sizes = {"full": 100, "half": 50, "tiny": 5}
    >>> smallest_not_worse(scores, sizes, baseline="full", margin=0.05, test_to_train=0.5).chosen
    'half'
    """
    _check_design(design, margin=margin, test_to_train=test_to_train, alpha=alpha)
    if baseline not in scores:
        raise SettingsError(f"baseline must be one of {', '.join(scores) or 'no configurations'}; found {baseline!r}")
    for name in scores:
        if name not in sizes:
            raise SettingsError(f"sizes must name every configuration; {name!r} is missing")
        if not numpy.isfinite(sizes[name]):
            raise SettingsError(f"sizes must be finite; found {sizes[name]} for {name!r}")
    smaller = [name for name in scores if sizes[name] < sizes[baseline]]
    test = partial(non_inferiority, margin=margin, design=design, test_to_train=test_to_train, alpha=alpha)
    verdicts = [test(scores[name], scores[baseline], name=name, comparisons=len(smaller)) for name in smaller]
    adjusted = holm([verdict.p for verdict in verdicts])
    verdicts = [replace(v, adjusted_p=p, proven=p <= alpha) for v, p in zip(verdicts, adjusted, strict=True)]
    verdicts.sort(key=lambda verdict: (sizes[verdict.name], -verdict.difference, verdict.name))
    chosen = next((verdict.name for verdict in verdicts if verdict.proven), baseline)
    return SmallestDecision(chosen, tuple(verdicts), baseline, margin, alpha)


def holm(p_values: Values) -> tuple[float, ...]:
    """Return p adjusted for several comparisons (Holm, 1979): the i-th smallest is max over j ≤ i of (m − j + 1) p₍ⱼ₎.

    The adjusted p are at most 1 and in the order given, which may be empty.

    Examples
    --------
    >>> holm([0.01, 0.04, 0.03])
    (0.03, 0.06, 0.06)
    """
    p = sample(p_values, "p_values", fewest=0)
    if ((p < 0) | (p > 1)).any():
        raise SettingsError(f"p_values must lie between 0 and 1; found {p[(p < 0) | (p > 1)][0]:g}")
    order = numpy.argsort(p, kind="stable")
    adjusted = numpy.empty_like(p)
    adjusted[order] = numpy.maximum.accumulate(numpy.minimum(p[order] * numpy.arange(len(p), 0, -1), 1.0))
    return tuple(adjusted.tolist())


def paired_bound(first: Floats, second: Floats, alpha: float, test_to_train: float) -> float:
    """Return d̄ − t(1−α; n−1) s √(1/n + test_to_train)."""
    differences = first - second
    error = float(differences.std(ddof=1)) * math.sqrt(1 / len(differences) + test_to_train)
    return float(differences.mean() - scipy.stats.t.isf(alpha, len(differences) - 1) * error)


def welch_bound(first: Floats, second: Floats, alpha: float) -> float:
    """Return x̄ − ȳ − t(1−α; ν) √(a + b), a = s₁²/n, b = s₂²/m, ν = (a + b)² / (a²/(n−1) + b²/(m−1)).

    scipy's `ttest_ind` warns of, and gives NaN for, samples without spread.
    """
    squares = numpy.array([float(values.std(ddof=1)) ** 2 / len(values) for values in (first, second)])
    difference, total = float(first.mean() - second.mean()), float(squares.sum())
    if total == 0:
        return difference
    shares = squares / total
    freedom = 1 / float((shares**2 / [len(first) - 1, len(second) - 1]).sum())
    return difference - float(scipy.stats.t.isf(alpha, freedom)) * math.sqrt(total)


def power_of_noninferiority(
    runs: int, *, sd: float, margin: float, alpha: float = 0.05, test_to_train: float = 0.0
) -> float:
    """Return the probability to prove non-inferiority by the (corrected) t-test where the true difference is 0.

    P(T > t(1−α; n−1)), T noncentral t with δ = margin / (sd √(1/n + test_to_train)).

    Parameters
    ----------
    runs, sd
        Number of runs n, 2 or more, and standard deviation of their differences.
    margin, alpha, test_to_train
        As for `non_inferiority`.

    Examples
    --------
    >>> round(power_of_noninferiority(27, sd=2, margin=1), 3)
    0.812
    """
    check_not_negative(sd=sd, margin=margin, test_to_train=test_to_train)
    check_between_0_and_1(alpha=alpha)
    if runs < 2:
        raise SettingsError(f"runs must be 2 or more; found {runs}")
    if sd == 0:
        return 1.0 if margin > 0 else 0.0
    shift = margin / (sd * math.sqrt(1 / runs + test_to_train))
    return float(scipy.stats.nct.sf(scipy.stats.t.isf(alpha, runs - 1), runs - 1, shift))


def runs_needed(
    *, sd: float, margin: float, alpha: float = 0.05, power: float = 0.8, test_to_train: float = 0.0
) -> int | None:
    """Return the fewest runs with which the test has that power; None where no number of runs, up to 2³⁰, suffices.

    As n → ∞ the power tends to Φ(margin / (sd √test_to_train) − z(1−α)): runs that share their data prove only so much.

    Examples
    --------
    >>> runs_needed(sd=2, margin=1)
    27
    """
    check_between_0_and_1(power=power)

    def enough(runs: int) -> bool:
        return power_of_noninferiority(runs, sd=sd, margin=margin, alpha=alpha, test_to_train=test_to_train) >= power

    most = 2
    while not enough(most):
        most *= 2
        if most > MOST_RUNS:
            return None
    return bisect_left(range(most), True, lo=most // 2 + 1, key=enough)


def _check_design(design: str, *, margin: float, test_to_train: float, alpha: float) -> None:
    """Refuse settings that describe no test."""
    check_not_negative(margin=margin, test_to_train=test_to_train)
    check_between_0_and_1(alpha=alpha)
    if design not in get_args(Design):
        raise SettingsError(f"design must be one of {', '.join(get_args(Design))}; found {design!r}")
    if test_to_train and design != "folds":
        raise SettingsError(f"test_to_train is for folds; found {test_to_train} with design {design!r}")
