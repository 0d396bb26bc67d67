"""The simulation of proofs: worlds differ as they say, and tests hold their level in some of its cells."""

import numpy
import pytest

from benchmarks.proving.cells import SimulatedProof, all_cells, simulate
from benchmarks.proving.tables import write_markdown
from benchmarks.proving.worlds import SHAPES, make_world
from topiarist.randomness import array_generator
from topiarist.statistics import find_metric

CELLS = {cell.key: cell for cell in all_cells()}
REPEATS = 300


@pytest.mark.slow
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(("kind", "name"), [("classes", "roc_auc"), ("labels", "log_loss"), ("numbers", "mae")])
def test_worlds_differ_as_they_say(kind: str, name: str, shape: str) -> None:
    metric = find_metric(kind, name)  # type: ignore[arg-type]
    world = make_world(metric, shape, -0.02)
    candidate, baseline, targets = world(200_000, array_generator(0, "draw"))
    before, after = metric.value(baseline, targets), metric.value(candidate, targets)
    change = metric.direction * (after - before) / (before if metric.relative else 1.0)
    assert change == pytest.approx(-0.02, abs=0.003)


@pytest.mark.slow
@pytest.mark.parametrize(
    "key",
    [
        "numbers rmse t3 200 one network -1 2000",
        "numbers mae lognormal 200 five folds -1 2000",
        "classes log_loss t3 200 one network -1 2000",
        "classes roc_auc normal 1000 one network -1 2000",
        "labels f1 normal 200 one network -1 2000",
    ],
)
def test_candidates_at_the_margin_are_seldom_proven(key: str) -> None:
    cell = CELLS[key].model_copy(update={"repeats": REPEATS})
    assert simulate(cell).rate <= 0.05 + 3 * numpy.sqrt(0.05 * 0.95 / REPEATS)


def test_tables_have_every_metric() -> None:
    results = [
        SimulatedProof(
            cell=cell, proven=cell.repeats // (20 if cell.difference == -1 else 2), held_back=0, milliseconds=1
        )
        for cell in CELLS.values()
    ]
    text = write_markdown(results)
    assert "216 cells of 2,000 comparisons; 0 above" in text
    assert "| rmse of numbers | 5.0 / 5.0 / 5.0 / 5.0 |" in text
    assert "| rmse of numbers | t3 | 1,000 | 5 | 50 | 50 | 50 | 50 |" in text
