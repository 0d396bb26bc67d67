"""What is simulated: cells of a metric, a shape of errors, a number of samples, a design and a true difference."""

import time
from collections.abc import Iterator
from functools import lru_cache

import numpy

from benchmarks.proving.worlds import POPULATION, SHAPES, World, make_world
from topiarist.randomness import array_generator
from topiarist.settings import Record
from topiarist.statistics import compare, default_margin, find_metric, metrics_of
from topiarist.statistics.metrics import Kind

KINDS: tuple[Kind, ...] = ("classes", "numbers", "labels")
SAMPLES = (60, 200, 1000)
LUCK = (-1.0, -0.5, 0.0, 0.5, 1.0)  # margins by which the candidates of five folds are better than their mean
LEVEL_REPEATS, POWER_REPEATS = 2000, 500
EASE = 2.0  # classes twice as far apart: answers that are hardly ever wrong
CURVES: tuple[tuple[Kind, str], ...] = (
    ("classes", "accuracy"),
    ("classes", "balanced_accuracy"),
    ("classes", "roc_auc"),
    ("classes", "log_loss"),
    ("numbers", "rmse"),
    ("numbers", "mae"),
)
DIFFERENCES = (-0.5, 0.0, 0.5, 1.0)


class Cell(Record):
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


class CellResult(Record):
    """How many comparisons of a cell proved the candidate, in how many p was held back, and processor time of each."""

    cell: Cell
    proven: int
    held_back: int
    milliseconds: float

    @property
    def rate(self) -> float:
        """The share that is proven."""
        return self.proven / self.cell.repeats


def all_cells() -> Iterator[Cell]:
    """Yield every cell: levels for all metrics, then power curves, then what lies beyond."""
    tested = [(kind, metric.name) for kind in KINDS for metric in metrics_of(kind) if metric.testable]
    for kind, metric in tested:
        for shape in SHAPES:
            for samples in SAMPLES:
                yield _cell(kind, metric, shape, samples, "one network", -1.0, LEVEL_REPEATS)
            yield _cell(kind, metric, shape, 200, "five folds", -1.0, LEVEL_REPEATS)
    for kind, metric in CURVES:
        for shape in ("normal", "t3") if metric == "rmse" else ("normal",):
            for difference in DIFFERENCES:
                for samples in SAMPLES:
                    yield _cell(kind, metric, shape, samples, "one network", difference, POWER_REPEATS)
    for kind, metric in tested:
        if kind == "classes":
            for shape in SHAPES:
                for samples in (60, 1000):
                    yield _cell(kind, metric, shape, samples, "nearly perfect", -1.0, LEVEL_REPEATS)
    for samples in SAMPLES:
        yield _cell("numbers", "rmse", "rare", samples, "one network", -1.0, LEVEL_REPEATS)


def _cell(kind: Kind, metric: str, shape: str, samples: int, design: str, difference: float, repeats: int) -> Cell:
    return Cell(
        kind=kind,
        metric=metric,
        shape=shape,
        samples=samples,
        design=design,
        difference=difference,
        repeats=repeats,
    )


def simulate(cell: Cell) -> CellResult:
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
        rows = [random.integers(0, POPULATION, size) for size in sizes]
        drawn = [
            (world.candidate[row], world.baseline[row], world.targets[row])
            for world, row in zip(worlds, rows, strict=True)
        ]
        candidate, baseline, targets = (numpy.concatenate(parts) for parts in zip(*drawn, strict=True))
        found = compare(metric, candidate, baseline, targets, margin=margin, folds=folds)
        proven += found.proven
        held_back += bool(found.notes)
    spent = (time.process_time() - begun) / cell.repeats
    return CellResult(cell=cell, proven=proven, held_back=held_back, milliseconds=1000 * spent)


@lru_cache(maxsize=1)
def _worlds(kind: Kind, name: str, shape: str, design: str, difference: float) -> list[World]:
    metric = find_metric(kind, name)
    luck = LUCK if design == "five folds" else (0.0,)
    ease = EASE if design == "nearly perfect" else 1.0
    wanted = [(difference + each) * default_margin(metric) for each in luck]
    return [make_world(metric, shape, each, ease=ease) for each in wanted]
