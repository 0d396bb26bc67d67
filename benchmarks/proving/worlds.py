"""Worlds with a known difference of two networks, to draw samples from.

Errors have three shapes: normal; Student's t with 3 degrees of freedom, whose fourth moment is infinite; lognormal,
which is skewed. Those of both networks go together (correlation 0.9, of logarithms where they are lognormal). Of
numbers, both have errors of the same distribution, and the candidate's are multiplied by what makes the difference. Of
classes and labels, a population of 50,000 samples is drawn from, and the candidate's errors are enlarged until the
metric of the whole population differs by just as much as is asked.
"""

from collections.abc import Callable
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


Drawn = tuple[Floats, Floats, NDArray[Any]]
World = Callable[[int, numpy.random.Generator], Drawn]  # answers of candidate and baseline, and targets, of new samples


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
        return _rare(difference)
    if metric.kind == "numbers":
        return _numbers(metric, shape, difference)
    targets, answer = (_classes if metric.kind == "classes" else _labels)(shape, ease, random)

    baseline = answer(0, 1.0)
    base = metric.value(baseline, targets)

    def gained(noise: float) -> float:
        return metric.direction * (metric.value(answer(1, noise), targets) - base) - difference

    noise = float(scipy.optimize.brentq(gained, 0.3, 6.0, xtol=1e-4))
    candidate = answer(1, noise)

    def draw(samples: int, generator: numpy.random.Generator) -> Drawn:
        rows = generator.integers(0, POPULATION, samples)
        return candidate[rows], baseline[rows], targets[rows]

    return draw


def _numbers(metric: Metric, shape: str, difference: float) -> World:
    """Return a world of numbers; the variance of the baseline's errors is that of the targets, so that its R² is 0."""
    larger = numpy.sqrt(1 - difference) if metric.name == "r2" else 1 - difference

    def draw(samples: int, generator: numpy.random.Generator) -> Drawn:
        baseline, candidate = shaped(shape, (samples, 1), generator)
        targets = 10 + generator.standard_normal((samples, 1))
        return targets + larger * candidate, targets + baseline, targets

    return draw


def _rare(difference: float) -> World:
    """Return a world in which the candidate is the baseline, but for 1 % of samples where it fails; for RMSE."""
    size = numpy.sqrt(((1 - difference) ** 2 - 1) / RARE)

    def draw(samples: int, generator: numpy.random.Generator) -> Drawn:
        baseline, fails, targets = generator.standard_normal((3, samples, 1))
        fails *= size * (generator.random((samples, 1)) < RARE)
        return targets + baseline + fails, targets + baseline, targets

    return draw


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
