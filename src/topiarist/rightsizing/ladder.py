"""The order in which sizes are tested, fixed beforehand so that the level of all tests together holds.

Sizes are ratios: 9 is nine times smaller. The coarse sizes are tested from large to small, each at the coarse level,
until one fails. The sizes between the last that was proven and the one that failed, and then that one again, are tested
from large to small, each at the fine level, until one fails. The two levels sum to α.

Why α holds, where a size that is too small makes all smaller ones too small: let c be the first coarse size that is
truly worse. Claiming c or less in the coarse stage takes a false proof of c, at the coarse level. If the coarse stage
ends before c, all sizes of the fine stage are good. If it ends at c, a false claim takes a false proof of the first bad
size between the coarse size before and c, at the fine level. So P(false claim) ≤ coarse level + fine level = α
(Bonferroni over the two; inside each a fixed sequence: Maurer, Hothorn and Lehmacher, 1995).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

COARSE_SHARE = 0.2  # of α: the coarse stage only finds where to look, the fine one decides; benchmarks/finer.py
DIGITS = 12  # of a level, so that it is written as it is meant
BELOW_THE_FIRST = 1  # finer sizes where not even the first coarse size is proven


@dataclass(frozen=True)
class Ladder:
    """Coarse sizes in order, how many finer ones lie between two of them, and the level of all tests together.

    `from_whole`: where the first coarse size fails, sizes between the baseline and it are of use; they are not where
    the baseline is above a budget.
    """

    ratios: Sequence[float]
    finer: int
    alpha: float
    from_whole: bool = True

    @property
    def coarse_level(self) -> float:
        """The level of the coarse tests: all of α where nothing finer follows."""
        return round(COARSE_SHARE * self.alpha, DIGITS) if self.finer else self.alpha

    @property
    def fine_level(self) -> float:
        """The level of the finer tests."""
        return round(self.alpha - self.coarse_level, DIGITS)

    def coarse(self) -> Iterator[float]:
        """Yield the coarse sizes, then as many smaller ones in steps like the last as there could be finer ones."""
        yield from self.ratios
        step = self.ratios[-1] / self.ratios[-2] if len(self.ratios) > 1 else 1.0
        for power in range(1, self.finer + 1 if step > 1 else 1):
            yield self.ratios[-1] * step**power

    def between(self, proven: float | None, failed: float, *, most: int | None = None) -> list[float]:
        """Return the finer sizes between the last proven coarse size, if any, and the one that failed, which is last.

        Examples
        --------
        >>> Ladder((3, 9, 27), 3, 0.05).between(9, 27)
        [11.8, 15.6, 20.5, 27]
        >>> Ladder((3, 9, 27), 3, 0.05).between(None, 3)
        [1.73, 3]
        """
        count = self.finer if most is None else min(self.finer, most)
        if proven is None:
            count = min(count, BELOW_THE_FIRST) if self.from_whole else 0
        start = 1.0 if proven is None else proven
        step = (failed / start) ** (1 / (count + 1))
        return [*(float(f"{start * step**power:.3g}") for power in range(1, count + 1)), failed]
