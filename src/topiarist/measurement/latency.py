"""How long a network takes for one sample, in torch or in ONNX Runtime, on a given number of threads.

One thread is timed by its own clock (see `tables/timing.py`): other work on the machine hardly changes what it shows.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy
import torch
from numpy.typing import NDArray
from torch import nn

from topiarist.errors import SettingsError
from topiarist.measurement.cost import runner
from topiarist.measurement.tables.timing import Clock, clock_for
from topiarist.models.evaluation import evaluating, numbers_of
from topiarist.storage.onnx_export import Session
from topiarist.threads import torch_threads
from topiarist.tracing import Inputs

# A measurement ends after REPEATS calls, when the median is known to STABLE_WITHIN (looked at every
# REPEATS_PER_LOOK calls), or after MOST_SECONDS; a slow network is called FEWEST_REPEATS times all the same.
REPEATS, FEWEST_REPEATS, REPEATS_PER_LOOK = 1000, 5, 25
STABLE_WITHIN = 0.005
WARM_UP_SECONDS, MOST_SECONDS = 0.03, 0.3
ROUNDS = 5  # the fastest counts, so that one which nothing disturbs is enough


@dataclass(frozen=True)
class Latency:
    """Median and interquartile range over the repeats."""

    median_ms: float
    spread_ms: float


def time_sample(model: nn.Module, example: Inputs, *, repeats: int = REPEATS, threads: int = 1) -> Latency:
    """Time a network on an example input of one sample, as `time_calls` does."""
    call, device = runner(model, example), numbers_of(model).device

    def run() -> None:
        call()
        if device.type != "cpu":  # a device works on its own: wait for it
            torch.accelerator.synchronize(device)

    with torch_threads(threads), evaluating(model):
        return time_calls(run, clock_for(threads, device.type), repeats=repeats)


def time_onnx(
    path: str | Path, sample: NDArray[Any] | None = None, *, repeats: int = REPEATS, threads: int = 1
) -> Latency:
    """Time an ONNX file on the CPU for one sample (1, *shape) as the file reads it; zeros where none is given."""
    session = Session(Path(path), threads=threads)
    x = session.sample if sample is None else sample
    return time_calls(lambda: session(x), clock_for(threads), repeats=repeats)


def time_calls(run: Callable[[], object], clock: Clock, *, repeats: int = REPEATS) -> Latency:
    """Time something that is called again and again, after a moment to warm up."""
    if repeats < 1:
        raise SettingsError(f"repeats must be at least 1; found {repeats}")
    warm_up_end = perf_counter() + WARM_UP_SECONDS
    run()
    while perf_counter() < warm_up_end:
        run()
    end = perf_counter() + MOST_SECONDS
    seconds: list[float] = []
    while len(seconds) < repeats and not (len(seconds) >= FEWEST_REPEATS and perf_counter() > end):
        seconds.append(_time_once(run, clock))
        if len(seconds) % REPEATS_PER_LOOK == 0 and is_stable(seconds):
            break
    low, median, high = 1000 * numpy.percentile(seconds, [25, 50, 75])
    return Latency(float(median), float(high - low))


def _time_once(run: Callable[[], object], clock: Clock) -> float:
    start = clock()
    run()
    return clock() - start


def is_stable(seconds: list[float]) -> bool:
    """Return whether the standard error of the median, 0.93 · interquartile range / √n, is small beside it."""
    low, median, high = numpy.percentile(seconds, [25, 50, 75])
    return bool(0.93 * (high - low) <= STABLE_WITHIN * median * len(seconds) ** 0.5)


def in_turn(timers: Mapping[str, Callable[[], Latency]], *, rounds: int = ROUNDS) -> dict[str, Latency]:
    """Time several things in turn, so that whatever else runs meets them all; return the fastest round of each.

    Other work on the machine can only make a round slower.
    """
    found = [{name: timer() for name, timer in timers.items()} for _ in range(rounds)]
    return {name: min((each[name] for each in found), key=lambda timed: timed.median_ms) for name in timers}
