"""Whether testing coarse sizes first and finer ones afterwards holds its level, and what it gains.

`python -m benchmarks.finer` draws networks of which all from some size on lose exactly the margin, and counts how often
one of them is claimed: with the ladder of `rightsize`, and with the same sizes each tested at the full level, which
does not hold it. The p-values of sizes are correlated, as those of networks judged on the same samples are.
"""

import math
from collections.abc import Callable

from benchmarks.paging.records import Figure, Sheet
from benchmarks.paging.writing import stamp, write_results
from topiarist.randomness import array_generator
from topiarist.rightsizing.ladder import Ladder

RUNS = 20_000
LADDER = Ladder((3, 9, 27), 3, 0.05)
PValue = Callable[[float], float]


def claimed(ladder: Ladder, p_of: PValue, *, coarse: float | None = None, fine: float | None = None) -> float | None:
    """Return the smallest size that a ladder claims to be proven; None where there is none."""
    first, second = ladder.coarse_level if coarse is None else coarse, ladder.fine_level if fine is None else fine
    proven: float | None = None
    for ratio in ladder.coarse():
        if p_of(ratio) > first:
            break
        proven = ratio
    else:
        return proven
    for finer in ladder.between(proven, ratio):
        if p_of(finer) > second:
            break
        proven = finer
    return proven


def upper_tail(z: float) -> float:
    """Return P(Z ≥ z) of a standard normal variable."""
    return math.erfc(z / math.sqrt(2)) / 2


def false_claims(
    bad_from: float, correlation: float, *, good: float = 2.0, runs: int = RUNS, split: bool = True
) -> float:
    """Return how often a size that loses the margin is claimed; good ones are so many standard errors better."""
    random, found = array_generator(0, "finer", str(bad_from), str(correlation)), 0
    for _ in range(runs):
        common, drawn = random.normal(), dict[float, float]()

        def p_of(ratio: float, common: float = common, drawn: dict[float, float] = drawn) -> float:
            if ratio not in drawn:
                drawn[ratio] = correlation**0.5 * common + (1 - correlation) ** 0.5 * random.normal()
            return upper_tail(drawn[ratio] + (0.0 if ratio >= bad_from else good))

        level = None if split else LADDER.alpha
        size = claimed(LADDER, p_of, coarse=level, fine=level)
        found += size is not None and size >= bad_from
    return found / runs


def main() -> None:
    """Count false claims for several truths, and write them."""
    figures = []
    for bad_from in (3.0, 9.0, 11.0, 20.0, 27.0):
        for correlation in (0.0, 0.5, 0.9):
            case = f"bad from {bad_from:g} times on, correlation {correlation:g}"
            for name, split in (("the ladder of `rightsize`", True), ("each size at the full level", False)):
                share = 100 * false_claims(bad_from, correlation, split=split)
                print(f"{case}: {name}: {share:.2f} %", flush=True)
                figures.append(
                    Figure(
                        case=case,
                        contender=name,
                        measure="false claims, %",
                        values=(share,),
                        role="ours" if split else "variant",
                    )
                )
            level = 100 * LADDER.alpha
            figures.append(
                Figure(case=case, contender="the level", measure="false claims, %", values=(level,), role="aim")
            )
    print(write_results("finer", Sheet(**stamp("python -m benchmarks.finer"), figures=tuple(figures))))


if __name__ == "__main__":
    main()
