"""Times many short calls in turn, so that whatever else runs on the machine meets them all alike.

What computes on one thread of the processor is timed by the clock of that thread, which stands still while others have
the processor: on an idle machine both clocks agree, and on a busy one the thread's is the one that can be repeated.
"""

import time
from collections.abc import Callable, Sequence

import numpy

ROUNDS = 5  # the fastest counts: other work can only make a round slower
FEWEST_CALLS, MOST_CALLS = 3, 25  # of a round
BURST_SECONDS = 0.001  # that a round takes of one call, about
FINE_ENOUGH = 1e-6  # seconds: the clock of a thread is not everywhere as fine
Call = Callable[[], object]
Clock = Callable[[], float]


def clock_for(threads: int, device: str = "cpu") -> Clock:
    """Return the clock for calls on some threads of a device."""
    alone = threads == 1 and device == "cpu"
    fine = time.get_clock_info("thread_time").resolution <= FINE_ENOUGH
    return time.thread_time if alone and fine else time.perf_counter


def in_bursts(
    calls: Sequence[Call],
    clock: Clock = time.perf_counter,
    *,
    rounds: int = ROUNDS,
    burst_seconds: float = BURST_SECONDS,
    most: int = MOST_CALLS,
) -> list[float]:
    """Return the seconds that each call takes: the median of a round, of the fastest round."""
    best = [float("inf")] * len(calls)
    for _ in range(rounds):
        for number, call in enumerate(calls):
            best[number] = min(best[number], burst(call, burst_seconds, most, clock))
    return best


def burst(call: Call, seconds: float, most: int = MOST_CALLS, clock: Clock = time.perf_counter) -> float:
    """Return the median of some calls, after one that is not counted."""
    call()
    taken: list[float] = []
    start = clock()
    while len(taken) < most and (len(taken) < FEWEST_CALLS or clock() - start < seconds):
        begun = clock()
        call()
        taken.append(clock() - begun)
    return float(numpy.median(taken))
