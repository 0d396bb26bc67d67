"""Is a network not worse than another by more than a margin? Tested on the answers of both to the same samples.

For a sample, d is 1 where only the candidate is right, −1 where only the baseline is, and 0 where they agree; where one
of them stands for several networks, its answer is the share of them that are right. The hypothesis is that the mean of
d is −m or less, m being the margin; a small p proves that it is not. The test is Tango's (1998) score test:

    z = (d̄ + m) / √(v / n), v = f (2q − m) − m²,

q being the share of losses that is most likely where the mean is −m. The likelihood is that of whole wins and losses;
where d are shares, f = (1 + Σd²) / (1 + Σ|d|) says how much less they vary. And p is at least that of as many losses
without a win, P(X ≤ lost − won), X binomial (n, m): (1 − m)ⁿ where nothing is lost. The networks are taken as given:
that other training samples would lead to other networks is not in p.

With weights w, means are weighted, n is Kish's (1965) effective number (Σw)² / Σw², and in f the squares of d are
weighted by w²: samples that weigh much and are answered differently make the mean vary more.
"""

import math
from dataclasses import asdict, dataclass
from typing import Any

import scipy
from numpy.typing import ArrayLike

from topiarist.errors import SettingsError
from topiarist.statistics.metrics.judged import sample_weights
from topiarist.statistics.samples import Floats, Values, check_between_0_and_1, pairs, sample

POWER = 0.8  # Cohen's (1988) convention
ROUNDING = 1e-9  # of sums of shares, such as 3 · (1/3)


@dataclass(frozen=True, kw_only=True)
class PairedEvidence:
    """How a candidate's answers compare with the baseline's, by one metric.

    `difference` is positive where the candidate is better, whatever the direction of the metric; where `relative`, it
    is a share of the baseline's value, as is the margin. `low` and `high` are one-sided confidence bounds
    of it at 1 − alpha. `power` is the probability that there was to prove a candidate that is no worse at all;
    `samples_needed` would make it 80 %. `won` and `lost` are the sums of the positive and of the negative d, for
    accuracy alone; `r2_difference` is the difference of R², for numbers alone. `notes` say why p is what it is, where
    that is not the test alone.
    """

    metric: str
    score: float
    baseline_score: float
    difference: float
    low: float
    high: float
    p: float
    proven: bool
    margin: float
    samples: int
    power: float
    samples_needed: int
    won: float | None = None
    lost: float | None = None
    relative: bool = False
    r2_difference: float | None = None
    notes: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return what JSON can hold."""
        return asdict(self)


def compare_answers(
    candidate: Values, baseline: Values, *, margin: float, alpha: float = 0.05, weights: ArrayLike | None = None
) -> PairedEvidence:
    """Test whether a network is not worse than another by more than a margin, from their answers to the same samples.

    Parameters
    ----------
    candidate, baseline
        (n_samples,) 1 where the answer is right and 0 where it is wrong; of several networks, the share that is right.
    margin
        The loss of accuracy that would matter, between 0 and 1.
    alpha
        Probability to call a candidate proven that is worse by just the margin.
    weights
        (n_samples,) 0 or more; None counts every sample once.

    Raises
    ------
    SettingsError
        If answers do not lie between 0 and 1, are not as many for both, or a setting is out of range.

    Examples
    --------
    >>> found = compare_answers([1] * 190 + [0] * 10, [1] * 188 + [0] * 12, margin=0.02)
    >>> found.proven, found.won, found.lost, round(found.p, 4)
    (True, 2.0, 0.0, 0.0176)
    """
    check_between_0_and_1(margin=margin, alpha=alpha)
    one, two = pairs(sample(candidate, "candidate", fewest=2), sample(baseline, "baseline", fewest=2))
    for answers in (one, two):
        if answers.min() < 0 or answers.max() > 1:
            raise SettingsError(
                f"answers must be 1 where right and 0 where wrong; found {answers.min():g} to {answers.max():g}"
            )
    each = sample_weights(weights, len(one))
    differences, total = one - two, float(each.sum())
    n, mean = effective_number(each), float(each @ differences) / total
    won, lost = (n * float(each @ part.clip(min=0)) / total for part in (differences, -differences))
    squares = n * float(each**2 @ differences**2 / (each**2).sum())
    variance = varied(won, lost, n, margin, scale=(1 + squares) / (1 + won + lost))
    error = math.sqrt(variance / n)
    least = float(scipy.stats.binom.cdf(max(lost - won, 0.0) + ROUNDING, math.floor(n + ROUNDING), margin))
    p = max(float(scipy.stats.norm.sf((mean + margin) / error)), least)
    reach = float(scipy.stats.norm.isf(alpha)) * error
    return PairedEvidence(
        metric="accuracy",
        score=float(each @ one) / total,
        baseline_score=float(each @ two) / total,
        difference=mean,
        low=mean - reach,
        high=mean + reach,
        p=p,
        proven=p <= alpha,
        margin=margin,
        won=won,
        lost=lost,
        samples=len(one),
        power=power_of_samples(n, variance=variance, margin=margin, alpha=alpha),
        samples_needed=math.ceil(
            samples_needed(variance=variance, margin=margin, alpha=alpha) * len(one) / n - ROUNDING
        ),
    )


def effective_number(weights: Floats) -> float:
    """Return how many samples of equal weight tell as much: (Σw)² / Σw²."""
    if (weights == weights[0]).all():
        return float(len(weights))
    return float(weights.sum()) ** 2 / float(weights @ weights)


def varied(won: float, lost: float, samples: float, margin: float, *, scale: float = 1.0) -> float:
    """Return the variance v of a difference where the margin is lost, from how often one of two was right alone."""
    share = likely_losses(won, lost, samples, margin)
    return max(scale * (2 * share - margin) - margin**2, margin**2)


def likely_losses(won: float, lost: float, samples: float, margin: float) -> float:
    """Return the share q of losses that is most likely where the share of wins is q − margin.

    It is the larger root of 2n q² − (won + lost + margin · (2n − won + lost)) q + lost · margin · (1 + margin) = 0.
    """
    linear = won + lost + margin * (2 * samples - won + lost)
    root = linear**2 - 8 * samples * lost * margin * (1 + margin)
    return (linear + math.sqrt(max(root, 0.0))) / (4 * samples)


def power_of_samples(samples: float, *, variance: float, margin: float, alpha: float = 0.05) -> float:
    """Return the probability to prove a network that is just as good: Φ(margin / √(v / n) − z(1−α))."""
    if (1 - margin) ** samples > alpha:
        return 0.0
    norm = scipy.stats.norm
    return float(norm.cdf(margin / math.sqrt(variance / samples) - norm.isf(alpha)))


def samples_needed(*, variance: float, margin: float, alpha: float = 0.05, power: float = POWER) -> int:
    """Return the fewest samples with that power: v · (z(1−α) + z(power))² / margin², and ln α / ln(1 − margin)."""
    spread = variance * float(scipy.stats.norm.isf(alpha) + scipy.stats.norm.ppf(power)) ** 2 / margin**2
    return math.ceil(max(spread, math.log(alpha) / math.log1p(-margin)))
