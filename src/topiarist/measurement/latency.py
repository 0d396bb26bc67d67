"""How long a network takes for one sample, on a given number of threads."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from time import perf_counter

import numpy
import torch
from torch import Tensor, nn

from topiarist.errors import SettingsError
from topiarist.models.evaluation import evaluating, numbers_of, placed
from topiarist.threads import torch_threads
from topiarist.training.inference import call

REPEATS = 1000
ROUNDS = 5
FEWEST_REPEATS = 5
REPEATS_PER_LOOK = 25
WARM_UP_SECONDS = 0.03
MOST_SECONDS = 0.3
STABLE_WITHIN = 0.005


@dataclass(frozen=True)
class Latency:
    """Median and interquartile range over the repeats."""

    median_ms: float
    spread_ms: float


def time_sample(model: nn.Module, sample: Tensor, *, repeats: int = REPEATS, threads: int = 1) -> Latency:
    """Time one sample, given as a batch (1, *input_shape), as `time_calls` does."""
    with torch_threads(threads), evaluating(model):
        x = placed(sample, numbers_of(model))
        return time_calls(lambda: answer(model, x), repeats=repeats)


def answer(model: nn.Module, x: Tensor) -> None:
    """Call a network, and wait for a device that works on its own."""
    call(model, x)
    if x.device.type != "cpu":
        torch.accelerator.synchronize(x.device)


def time_calls(run: Callable[[], object], *, repeats: int = REPEATS) -> Latency:
    """Time something that is called again and again, after a moment to warm up.

    Ends after `repeats`, when the median is known to half a percent, or after 0.3 s; what is slow is timed five times
    all the same, unless fewer repeats were asked.
    """
    if repeats < 1:
        raise SettingsError(f"repeats must be at least 1; found {repeats}")
    warm_up_end = perf_counter() + WARM_UP_SECONDS
    while time_once(run) and perf_counter() < warm_up_end:
        pass
    end = perf_counter() + MOST_SECONDS
    seconds: list[float] = []
    while len(seconds) < repeats and not (len(seconds) >= FEWEST_REPEATS and perf_counter() > end):
        seconds.append(time_once(run))
        if len(seconds) % REPEATS_PER_LOOK == 0 and is_stable(seconds):
            break
    low, median, high = 1000 * numpy.percentile(seconds, [25, 50, 75])
    return Latency(float(median), float(high - low))


def time_once(run: Callable[[], object]) -> float:
    """Give the seconds of one call."""
    start = perf_counter()
    run()
    return perf_counter() - start


def is_stable(seconds: list[float]) -> bool:
    """Say whether the standard error of the median, 0.93 · interquartile range / √n, is small beside it."""
    low, median, high = numpy.percentile(seconds, [25, 50, 75])
    return bool(0.93 * (high - low) <= STABLE_WITHIN * median * len(seconds) ** 0.5)


def in_turn(timers: Mapping[str, Callable[[], Latency]], *, rounds: int = ROUNDS) -> dict[str, Latency]:
    """Time several things in turn, so that whatever else runs meets them all; give of each its fastest round.

    Other work on the machine can only make a round slower.
    """
    found = [{name: timer() for name, timer in timers.items()} for _ in range(rounds)]
    return {name: min((each[name] for each in found), key=lambda timed: timed.median_ms) for name in timers}
