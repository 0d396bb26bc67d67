"""Worlds with a known difference: a large population of samples with the answers of two networks, to draw from.

Errors have three shapes: normal; Student's t with 3 degrees of freedom, whose fourth moment is infinite; lognormal,
which is skewed. Those of both networks go together (correlation 0.9, of logarithms where they are lognormal). A
population has so many samples that a draw hardly ever repeats one, and its difference is exact: the candidate's errors
are enlarged until the metric of the whole population differs by just as much as is asked.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy
import scipy
from numpy.typing import NDArray

from topiarist.randomness import array_generator
from topiarist.statistics.metrics import Metric
from topiarist.statistics.samples import Floats

POPULATION = 50_000
CORRELATION = 0.9
RARE = 0.01
SHAPES = ("normal", "t3", "lognormal")
CLASSES, LABELS = 3, 4


@dataclass(frozen=True)
class World:
    """Answers of candidate and baseline, and what is true, of a population; difference as `compare` has it."""

    candidate: Floats
    baseline: Floats
    targets: NDArray[Any]
    difference: float


def shaped(shape: str, size: tuple[int, ...], random: numpy.random.Generator) -> tuple[Floats, Floats]:
    """Return errors of two networks with mean 0 and variance 1, which go together."""
    one, own = random.standard_normal((2, *size))
    two = CORRELATION * one + numpy.sqrt(1 - CORRELATION**2) * own
    if shape == "t3":
        scale = numpy.sqrt(random.chisquare(3, size))  # variance of t3 is 3
        return one / scale, two / scale
    if shape == "lognormal":
        one, two = ((numpy.exp(each) - numpy.exp(0.5)) / numpy.sqrt(numpy.exp(2) - numpy.exp(1)) for each in (one, two))
    return one, two


def make_world(metric: Metric, shape: str, difference: float, *, ease: float = 1.0, seed: int = 0) -> World:
    """Return a world in which the candidate is better by `difference` (worse where it is negative).

    `ease` multiplies how far classes or labels are apart, so that answers agree more.
    """
    random = array_generator(seed, "world", metric.kind, shape)
    if shape == "rare":
        return _rare(metric, difference, random)
    if metric.kind == "numbers":
        return _numbers(metric, shape, difference, random)
    targets, answer = (_classes if metric.kind == "classes" else _labels)(shape, ease, random)

    baseline = answer(0, 1.0)
    base = metric.value(baseline, targets)

    def gained(noise: float) -> float:
        return metric.direction * (metric.value(answer(1, noise), targets) - base) - difference

    noise = float(scipy.optimize.brentq(gained, 0.3, 6.0, xtol=1e-4))
    return World(answer(1, noise), baseline, targets, gained(noise) + difference)


def _numbers(metric: Metric, shape: str, difference: float, random: numpy.random.Generator) -> World:
    baseline, candidate = shaped(shape, (POPULATION, 1), random)
    targets = 10 + random.standard_normal((POPULATION, 1))
    base = metric.value(targets + baseline, targets)

    def gained(noise: float) -> float:
        change = metric.direction * (metric.value(targets + noise * candidate, targets) - base)
        return change / (base if metric.relative else 1.0) - difference

    noise = float(scipy.optimize.brentq(gained, 0.2, 5.0, xtol=1e-10))
    return World(targets + noise * candidate, targets + baseline, targets, gained(noise) + difference)


def _rare(metric: Metric, difference: float, random: numpy.random.Generator) -> World:
    """Return a world of numbers in which the candidate is the baseline, but for 1 % of samples where it fails."""
    baseline, fails = random.standard_normal((2, POPULATION, 1))
    fails *= random.random((POPULATION, 1)) < RARE
    targets = 10 + random.standard_normal((POPULATION, 1))
    base = metric.value(targets + baseline, targets)

    def gained(size: float) -> float:
        return 1 - metric.value(targets + baseline + size * fails, targets) / base - difference

    size = float(scipy.optimize.brentq(gained, 0.0, 100.0))
    return World(targets + baseline + size * fails, targets + baseline, targets, gained(size) + difference)


Answer = Callable[[int, float], Floats]


def _classes(shape: str, ease: float, random: numpy.random.Generator) -> tuple[NDArray[Any], Answer]:
    """Return class numbers, and the probabilities of a network whose logits have errors of some size."""
    targets = random.choice(CLASSES, POPULATION, p=[0.5, 0.3, 0.2])
    errors = shaped(shape, (POPULATION, CLASSES), random)
    signal = 2.5 * ease * numpy.eye(CLASSES)[targets]
    return targets, lambda network, noise: scipy.special.softmax(signal + noise * errors[network], axis=1)


def _labels(shape: str, ease: float, random: numpy.random.Generator) -> tuple[NDArray[Any], Answer]:
    """Return 0 and 1, and the probabilities of a network whose logits have errors of some size."""
    targets = (random.random((POPULATION, LABELS)) < numpy.array([0.5, 0.4, 0.3, 0.2])).astype(numpy.float64)
    errors = shaped(shape, (POPULATION, LABELS), random)
    signal = 1.5 * ease * (2 * targets - 1)
    return targets, lambda network, noise: scipy.special.expit(signal + noise * errors[network])
