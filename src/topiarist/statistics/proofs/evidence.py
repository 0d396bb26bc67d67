"""From an estimate and its error to evidence: power, samples needed, refusals."""

import math
from dataclasses import dataclass

import scipy

from topiarist.statistics.answers import POWER
from topiarist.statistics.proofs.studentised import FEWEST, Studentised

FEW_CARRY = 10  # samples: where fewer carry the variance, how large it is is not known (benchmarks/README.md, "Proofs")
MOST_SAMPLES = 10**9  # where so many do not suffice, none will


@dataclass(frozen=True)
class Floor:
    """The least p: that of a candidate which fails in a share of the rarest samples, none of which was seen.

    The rarest group has `samples`; losing the margin takes failing in a `share` of it. p ≥ (1 − share)^samples. A share
    of 0 stands for failures so costly that no number of samples excludes them.
    """

    samples: float
    share: float

    @property
    def p(self) -> float:
        """The probability that none of the failures is seen."""
        return float((1 - self.share) ** self.samples) if self.share < 1 else 0.0

    def times_needed(self, alpha: float) -> float:
        """Return how many times more samples would make p alpha; 0 where that is not known."""
        return math.log(alpha) / math.log1p(-self.share) / self.samples if 0 < self.share < 1 else 0.0

    @property
    def note(self) -> str:
        """Why p is no smaller."""
        if self.share == 0:
            return f"fewer than {FEW_CARRY} samples carry the difference: too few to know how much it varies"
        return (
            f"p is that of a candidate that fails in {self.share:.2%} of {self.samples:.0f} samples, none of them seen"
        )


def power_of(found: Studentised, shift: float, alpha: float, floor: Floor | None = None) -> float:
    """Return the probability to prove a network that is just as good: Φ(shift / error − reach)."""
    if floor is not None and floor.p > alpha:
        return 0.0
    reach = found.reach(alpha)
    if not math.isfinite(reach):
        return 0.0
    return 1.0 if found.error == 0 else float(scipy.special.ndtr(shift / found.error - reach))


def needed(found: Studentised, samples: int, shift: float, alpha: float, floor: Floor | None = None) -> int:
    """Return the samples with a power of 80 %: n ((reach + z(80 %)) error / shift)², or what the floor asks for."""
    reach = found.reach(alpha)
    reach = reach if math.isfinite(reach) else -float(scipy.special.ndtri(alpha))
    times = ((reach + float(scipy.special.ndtri(POWER))) * found.error / shift) ** 2
    if floor is not None:
        times = max(times, floor.times_needed(alpha))
    return min(math.ceil(max(samples * times, FEWEST)), MOST_SAMPLES)
