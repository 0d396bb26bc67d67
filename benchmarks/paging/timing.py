"""Times by the processor's clock: what others do on the machine does not count, as far as that can be."""

import time
from collections.abc import Callable, Mapping

MILLISECONDS = 1000


def in_turn(jobs: Mapping[str, Callable[[], object]], rounds: int) -> dict[str, tuple[float, ...]]:
    """Return the processor seconds of each job in each round; in a round, jobs take turns."""
    times: dict[str, list[float]] = {name: [] for name in jobs}
    for _ in range(rounds):
        for name, job in jobs.items():
            start = time.process_time()
            job()
            times[name].append(time.process_time() - start)
    return {name: tuple(found) for name, found in times.items()}


def milliseconds(seconds: tuple[float, ...]) -> tuple[float, ...]:
    """Return times in milliseconds."""
    return tuple(MILLISECONDS * each for each in seconds)
