"""The benchmark of pruners: every one keeps its budget on a small network, and the tables say who is ahead."""

import pytest
import torch

from benchmarks.compensating.problem import Problem
from benchmarks.compensating.training import Recipe
from benchmarks.paging.losses import losses, told
from benchmarks.pruners.measuring import drawn_anew, measured, rows_of, whole_row
from benchmarks.pruners.problems import Task
from benchmarks.pruners.pruning import OURS, PRUNERS, SCRATCH, count_parameters
from benchmarks.pruners.records import PrunedRow, PruningResults
from benchmarks.pruners.tables import compare, write_markdown
from topiarist import models
from topiarist.randomness import generator

RIVAL = "torch-pruning, L1, global"


@pytest.fixture(scope="module")
def task() -> Task:
    """Return a small network and samples with labels of its own."""
    random = generator(0, "samples")
    x, model = torch.randn(200, 6, generator=random), models.mlp((6, 16, 12, 3), generator=random).eval()
    y = model(x).argmax(1)
    problem = Problem("digits", 0, model, x, y, x, y)
    return Task(problem, (x, y), Recipe(epochs=2, rate=0.01, batch=32))


@pytest.mark.parametrize("pruner", PRUNERS)
def test_every_pruner_keeps_its_budget(pruner: str, task: Task) -> None:
    whole = count_parameters(task.problem.model)
    cut = PRUNERS[pruner](task.problem, whole // 2, ())
    assert whole // 4 < count_parameters(cut) <= whole // 2
    assert cut(task.problem.example).shape == (2, 3)


def test_a_network_from_scratch_has_the_shape_and_none_of_the_weights(task: Task) -> None:
    fresh = drawn_anew(task.problem.model, seed=3)
    for new, old in zip(fresh.parameters(), task.problem.model.parameters(), strict=True):
        assert new.shape == old.shape and not torch.equal(new, old)


def test_what_a_pruner_raises_is_the_reason(task: Task) -> None:
    def fails(pruner: str) -> tuple[torch.nn.Module, float]:
        raise RuntimeError(f"{pruner} emptied a layer\nand more")

    row = next(rows_of(whole_row(task), task))
    assert measured(task, row, fails).reason == "RuntimeError: ours emptied a layer"


def test_a_row_has_what_the_network_costs(task: Task) -> None:
    rows = list(rows_of(whole_row(task), task))
    assert [row.epochs for row in rows if row.pruner == SCRATCH] == [2]
    found = measured(task, rows[1], lambda pruner: (PRUNERS[pruner](task.problem, 100, ()), 1.0))
    assert found.epochs == 1 and found.parameters is not None and found.parameters <= 100
    assert found.macs is not None and found.macs < found.dense_macs and (found.seconds or 0) > 1


@pytest.mark.parametrize("ahead", [OURS, RIVAL])
def test_the_page_begins_with_where_others_are_ahead(ahead: str, task: Task) -> None:
    known = whole_row(task).model_copy(update={"ratio": 4, "parameters": 50, "macs": 40, "latency_ms": 1.0})
    rows = tuple(row_of(known, pruner, 90.0 + (pruner == ahead)) for pruner in (OURS, RIVAL))
    written = write_markdown(PruningResults(date="2026-01-01", processor="p", packages={}, rows=rows))
    line = "64-128-64-10, digits, 4 ×, 0 epochs: torch-pruning, L1, global 91, ours 90"
    assert (line in written) == (ahead == RIVAL)
    assert ("At no size" in written) == (ahead == OURS)


def test_new_weights_of_the_same_shape_are_a_rival_after_the_most_epochs(task: Task) -> None:
    known = whole_row(task).model_copy(update={"ratio": 4})
    scratch = row_of(known, SCRATCH, 92.0).model_copy(update={"epochs": 60})
    rows = (row_of(known, OURS, 99.0), row_of(known, OURS, 91.0).model_copy(update={"epochs": 5}), scratch)
    (lost,) = losses(compare(PruningResults(rows=rows)))
    assert (
        told(lost)
        == "64-128-64-10, digits, 4 ×, 5 epochs beside 60 epochs from scratch: trained from scratch 92, ours 91"
    )


def row_of(known: PrunedRow, pruner: str, accuracy: float) -> PrunedRow:
    """Return a row of one pruner."""
    return known.model_copy(update={"pruner": pruner, "accuracy": accuracy})
