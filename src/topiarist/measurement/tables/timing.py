"""Times many short calls in turn, so that whatever else runs on the machine meets them all alike."""

from collections.abc import Callable, Sequence
from time import perf_counter

import numpy

ROUNDS = 5  # the fastest counts: other work can only make a round slower
FEWEST_CALLS, MOST_CALLS = 3, 25  # of a round
BURST_SECONDS = 0.001  # that a round takes of one call, about
Call = Callable[[], object]


def in_bursts(
    calls: Sequence[Call], *, rounds: int = ROUNDS, burst_seconds: float = BURST_SECONDS, most: int = MOST_CALLS
) -> list[float]:
    """Return the seconds that each call takes: the median of a round, of the fastest round."""
    best = [float("inf")] * len(calls)
    for _ in range(rounds):
        for number, call in enumerate(calls):
            best[number] = min(best[number], burst(call, burst_seconds, most))
    return best


def burst(call: Call, seconds: float, most: int = MOST_CALLS) -> float:
    """Return the median of some calls, after one that is not counted."""
    call()
    taken: list[float] = []
    start = perf_counter()
    while len(taken) < most and (len(taken) < FEWEST_CALLS or perf_counter() - start < seconds):
        begun = perf_counter()
        call()
        taken.append(perf_counter() - begun)
    return float(numpy.median(taken))
