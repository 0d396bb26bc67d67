"""The test behind every proof but that of accuracy: is a mean of contributions positive? Studentised, and resampled.

An estimate comes with the influence of every sample on it, which add up to 0. t is the estimate over its error √Σψ².
p is the larger of two: that of Student's t, which is right or conservative where contributions are symmetrical, however
heavy their tails; and that of the studentised bootstrap (bootstrap-t; Efron, 1979, Hall, 1988), which is right where
they are skewed. Either alone errs: benchmarks/README.md, "Proofs". No test holds its level for every distribution of
unbounded losses (Bahadur and Savage, 1956): losses so rare that none was seen are in no p.
"""

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy
import scipy
from numpy.typing import NDArray

from topiarist.randomness import array_generator
from topiarist.statistics.samples import Floats

RESAMPLES = 999  # a p of 0.05 is then known to ± 0.007; 1 / (999 + 1) is a round number
MOST_RESAMPLED = 10_000  # samples: 40 MB of counts; above, Edgeworth's expansion differs from the bootstrap by 1 / n
FEWEST = 20  # samples, below which nothing is proven: resamples of fewer hold too few different ones


@dataclass(frozen=True)
class Studentised:
    """An error, its degrees of freedom, and how far an estimate must be above or below, in errors, to be so at alpha.

    `resampled` are sorted values of t in resamples, where the estimate is true; None where there are too many samples.
    """

    error: float
    freedom: float
    skewness: float
    resampled: Floats | None

    def p(self, t: float) -> float:
        """Return the probability of a t as large or larger."""
        if math.isnan(t):
            return 1.0
        plain = float(scipy.special.stdtr(self.freedom, -t))
        if self.resampled is None:
            return max(plain, edgeworth(t, self.skewness))
        above = len(self.resampled) - int(numpy.searchsorted(self.resampled, t, side="left"))
        return max(plain, (1 + above) / (len(self.resampled) + 1))

    def reach(self, alpha: float, *, below: bool = True) -> float:
        """Return how many errors a confidence bound lies below the estimate, or above it; ∞ where nothing bounds it."""
        plain = -float(scipy.special.stdtrit(self.freedom, alpha))
        if self.resampled is None:
            sign = 1 if below else -1
            return max(plain, _edgeworth_reach(alpha, sign * self.skewness))
        place = math.floor(alpha * (len(self.resampled) + 1))
        if place == 0:
            return math.inf
        value = self.resampled[-place] if below else -self.resampled[place - 1]
        return max(plain, float(value))


def studentise(influences: Floats, seed: int, *, inflation: float = 1.0, freedom: float | None = None) -> Studentised:
    """Return the error of an estimate from the influences (n_samples,) on it, and the distribution of t.

    `inflation` multiplies the error, and `freedom` replaces n − 1, where small groups of samples say so.
    """
    n = len(influences)
    size = math.sqrt(float(influences @ influences))
    error = inflation * size * math.sqrt(n / (n - 1))
    free = n - 1.0 if freedom is None else freedom
    if size == 0:
        return Studentised(0.0, free, 0.0, numpy.zeros(RESAMPLES))
    scaled = influences / size
    skewness = float((scaled**3).sum())  # γ / √n of the contributions
    return Studentised(error, free, skewness, resampled_t(scaled, seed) if n <= MOST_RESAMPLED else None)


def resampled_t(scaled: Floats, seed: int) -> Floats:
    """Return sorted t of resamples of influences whose sum is 0 and sum of squares is 1.

    Without any spread in a resample t is ±∞, or ∞ where it is 0 / 0: that is against the proof.
    """
    n = len(scaled)
    counts = resamples(n, seed)
    columns = numpy.stack([scaled, scaled**2], axis=1).astype(numpy.float32)
    sums, squares = (counts @ columns).astype(numpy.float64).T
    variances = (squares - sums**2 / n) * n / (n - 1)
    spread = variances > 1e-6 / n  # of 1 on average; float32 is exact to 6e-8
    t = numpy.full(len(sums), numpy.inf)
    t[sums < 0] = -numpy.inf
    t[spread] = sums[spread] / numpy.sqrt(variances[spread])
    return numpy.sort(t)


@lru_cache(maxsize=2)  # comparisons of one run are over the same samples
def resamples(samples: int, seed: int) -> NDArray[numpy.float32]:
    """Return how often each sample is drawn in each resample, (999, n_samples)."""
    random = array_generator(seed, "resamples", samples)
    drawn = random.integers(0, samples, size=(RESAMPLES, samples))
    drawn += numpy.arange(RESAMPLES)[:, None] * samples
    counts = numpy.bincount(drawn.ravel(), minlength=RESAMPLES * samples)
    return counts.reshape(RESAMPLES, samples).astype(numpy.float32)


def edgeworth(t: float, skewness: float) -> float:
    """Return P(T ≥ t) ≈ 1 − Φ(t) − γ / (6√n) (2t² + 1) φ(t), γ being the skewness (Hall, 1992, 2.6)."""
    density = math.exp(-t * t / 2) / math.sqrt(2 * math.pi)
    return float(numpy.clip(scipy.special.ndtr(-t) - skewness / 6 * (2 * t * t + 1) * density, 0.0, 1.0))


def _edgeworth_reach(alpha: float, skewness: float) -> float:
    """Return the t whose p is alpha: z − γ / (6√n) (2z² + 1), the expansion inverted."""
    z = -float(scipy.special.ndtri(alpha))
    return z - skewness / 6 * (2 * z * z + 1)
