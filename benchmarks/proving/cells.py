"""What is simulated: cells of a metric, a shape of errors, a number of samples, a design and a true difference."""

import time
from collections.abc import Iterator
from functools import lru_cache

import numpy

from benchmarks.proving.worlds import SHAPES, World, make_world
from topiarist.randomness import array_generator
from topiarist.settings import Record
from topiarist.statistics import compare, default_margin, find_metric, metrics_of
from topiarist.statistics.metrics import Kind

SAMPLES = (60, 200, 1000)
LUCK = (-1.0, -0.5, 0.0, 0.5, 1.0)  # margins by which the candidates of five folds are better than their mean
LEVEL_REPEATS, POWER_REPEATS = 2000, 500
MOST, AGAIN = 0.06, 10  # false proofs that are acceptable where 5 % are meant; times the repeats where there are more
EASE = 2.0  # classes twice as far apart: answers that are hardly ever wrong
CURVES: tuple[tuple[Kind, str], ...] = (
    ("classes", "accuracy"),
    ("classes", "macro_accuracy"),
    ("classes", "roc_auc"),
    ("classes", "log_loss"),
    ("numbers", "rmse"),
    ("numbers", "mae"),
)
DIFFERENCES = (-0.5, 0.0, 0.5, 1.0)


class ProofCell(Record):
    """One world and one number of samples; the difference is in margins, −1 being just too bad."""

    kind: Kind
    metric: str
    shape: str
    samples: int
    design: str
    difference: float
    repeats: int

    @property
    def key(self) -> str:
        """What tells it from others."""
        return f"{self.kind} {self.metric} {self.shape} {self.samples} {self.design} {self.difference:g} {self.repeats}"


class SimulatedProof(Record):
    """How many comparisons of a cell proved the candidate, in how many p was held back, and processor time of each.

    `first_rate` is that of the first simulation, where it was above 6 % and made anew.
    """

    cell: ProofCell
    repeats: int = 0
    first_rate: float | None = None
    proven: int
    held_back: int
    milliseconds: float

    @property
    def rate(self) -> float:
        """The share that is proven."""
        return self.proven / (self.repeats or self.cell.repeats)


def all_cells() -> Iterator[ProofCell]:
    """Yield every cell: levels of numbers and classes, power curves, levels of labels, then what lies beyond."""
    yield from _levels("numbers")
    yield from _levels("classes")
    for kind, metric in CURVES:
        for shape in ("normal", "t3") if metric == "rmse" else ("normal",):
            for difference in DIFFERENCES:
                for samples in SAMPLES:
                    yield _cell(kind, metric, shape, samples, "one network", difference, POWER_REPEATS)
    yield from _levels("labels")
    for samples in SAMPLES:
        yield _cell("numbers", "rmse", "rare", samples, "one network", -1.0, LEVEL_REPEATS)
    for metric in _tested("classes"):
        for shape in SHAPES:
            for samples in (60, 1000):
                yield _cell("classes", metric, shape, samples, "nearly perfect", -1.0, LEVEL_REPEATS)


def _levels(kind: Kind) -> Iterator[ProofCell]:
    """Yield candidates at the margin, for every metric of a kind."""
    for metric in _tested(kind):
        for shape in SHAPES:
            for samples in SAMPLES:
                yield _cell(kind, metric, shape, samples, "one network", -1.0, LEVEL_REPEATS)
            yield _cell(kind, metric, shape, 200, "five folds", -1.0, LEVEL_REPEATS)


def _tested(kind: Kind) -> list[str]:
    return [metric.name for metric in metrics_of(kind) if metric.testable]


def _cell(kind: Kind, metric: str, shape: str, samples: int, design: str, difference: float, repeats: int) -> ProofCell:
    return ProofCell(
        kind=kind,
        metric=metric,
        shape=shape,
        samples=samples,
        design=design,
        difference=difference,
        repeats=repeats,
    )


def simulate_surely(cell: ProofCell) -> SimulatedProof:
    """Simulate a cell; anew, with ten times the repeats, where too many candidates at the margin are proven."""
    found = simulate(cell)
    if cell.difference != -1.0 or cell.shape not in SHAPES or cell.design == "nearly perfect" or found.rate <= MOST:
        return found
    more = simulate(cell.model_copy(update={"repeats": AGAIN * cell.repeats}))
    return more.model_copy(update={"cell": cell, "repeats": AGAIN * cell.repeats, "first_rate": found.rate})


def simulate(cell: ProofCell) -> SimulatedProof:
    """Draw samples from a cell's worlds again and again, and count the proofs."""
    metric = find_metric(cell.kind, cell.metric)
    margin = default_margin(metric)
    worlds = _worlds(cell.kind, cell.metric, cell.shape, cell.design, cell.difference)
    random = array_generator(0, "draws", cell.key)
    folds = numpy.arange(cell.samples) * len(worlds) // cell.samples
    sizes = numpy.bincount(folds)
    proven = held_back = 0
    begun = time.process_time()
    for _ in range(cell.repeats):
        drawn = [world(size, random) for world, size in zip(worlds, sizes, strict=True)]
        candidate, baseline, targets = (numpy.concatenate(parts) for parts in zip(*drawn, strict=True))
        found = compare(metric, candidate, baseline, targets, margin=margin, folds=folds)
        proven += found.proven
        held_back += bool(found.notes)
    spent = (time.process_time() - begun) / cell.repeats
    return SimulatedProof(cell=cell, proven=proven, held_back=held_back, milliseconds=1000 * spent)


@lru_cache(maxsize=1)
def _worlds(kind: Kind, name: str, shape: str, design: str, difference: float) -> list[World]:
    metric = find_metric(kind, name)
    luck = LUCK if design == "five folds" else (0.0,)
    ease = EASE if design == "nearly perfect" else 1.0
    wanted = [(difference + each) * default_margin(metric) for each in luck]
    return [make_world(metric, shape, each, ease=ease) for each in wanted]
