"""Cuts a trained network in every way, trains what is left with labels, and writes down what it can."""

from collections.abc import Callable, Container, Iterator
from copy import deepcopy
from functools import cache, partial

import torch
from torch import nn

from benchmarks.compensating.problem import timed
from benchmarks.compensating.training import fit
from benchmarks.pruners.problems import Task
from benchmarks.pruners.pruning import OURS, SCRATCH, count_parameters, pruners_for
from benchmarks.pruners.records import Key, PrunedRow
from topiarist.measurement.cost import count_macs
from topiarist.measurement.latency import in_turn, time_sample
from topiarist.randomness import child_seed, isolated

RATIOS = (2, 4, 8, 16)  # times fewer parameters
EPOCHS = (0, 1, 5)  # with labels, after the cut
TAUGHT = "ours, taught by the whole network"  # with its answers beside the labels, which needs no more data
SPREAD = 0.02  # of raw parameters, such as tokens, that are drawn anew
Report = Callable[[PrunedRow], None]


def measure_task(task: Task, done: Container[Key], report: Report) -> None:
    """Measure every pruner at every size that is not done yet."""
    whole, pruners = whole_row(task), pruners_for(task.stream)
    for ratio in RATIOS:

        @cache
        def cut(pruner: str, parameters: int = whole.dense_parameters // ratio) -> tuple[nn.Module, float]:
            return timed(lambda: pruners[pruner](task.problem, parameters, task.stream))

        for row in rows_of(whole.model_copy(update={"ratio": ratio}), task):
            if row.key not in done:
                report(measured(task, row, cut))


def whole_row(task: Task) -> PrunedRow:
    """Return a row with what is known of the whole network."""
    problem = task.problem
    return PrunedRow(
        problem=problem.name,
        seed=problem.seed,
        ratio=1,
        pruner="",
        epochs=0,
        dense_accuracy=problem.accuracy(problem.model),
        dense_parameters=count_parameters(problem.model),
        dense_macs=count_macs(problem.model, problem.example[:1]),
    )


def rows_of(of_size: PrunedRow, task: Task) -> Iterator[PrunedRow]:
    """Yield the rows of one size; from scratch a network is trained once, for as long as the whole one was."""
    for pruner in (*pruners_for(task.stream), TAUGHT):
        for epochs in EPOCHS:
            if epochs or pruner != TAUGHT:
                yield of_size.model_copy(update={"pruner": pruner, "epochs": epochs})
    yield of_size.model_copy(update={"pruner": SCRATCH, "epochs": task.recipe.epochs})


def measured(task: Task, row: PrunedRow, cut: Callable[[str], tuple[nn.Module, float]]) -> PrunedRow:
    """Return a row with its figures; an error becomes the reason why there are none."""
    try:
        made, seconds = cut(OURS if row.pruner in (TAUGHT, SCRATCH) else row.pruner)
        found, more = timed(lambda: trained_on(task, row, made))
        figures = {"accuracy": task.problem.accuracy(found), "seconds": seconds + more, **size_of(task, found)}
        return row.model_copy(update=figures)
    except Exception as error:  # whatever a pruner raises, the others are still measured
        return row.model_copy(update={"reason": f"{type(error).__name__}: {error}".splitlines()[0]})


def trained_on(task: Task, row: PrunedRow, cut: nn.Module) -> nn.Module:
    """Return a copy of a cut network that was trained with labels for the epochs of a row."""
    seed = task.problem.seed
    if row.pruner == SCRATCH:
        return fit(drawn_anew(cut, seed), task.samples, task.recipe, seed)
    if not row.epochs:
        return cut
    teacher = task.problem.model if row.pruner == TAUGHT else None
    return fit(deepcopy(cut), task.samples, task.tuning(row.epochs), seed, teacher=teacher)


def drawn_anew(model: nn.Module, seed: int) -> nn.Module:
    """Return a network of the same shape with new initial weights."""
    fresh = deepcopy(model)
    with isolated(child_seed(seed, "from scratch")), torch.no_grad():
        for module in fresh.modules():
            for parameter in module.parameters(recurse=False):
                nn.init.normal_(parameter, std=SPREAD)
            reset = getattr(module, "reset_parameters", None)
            if reset is not None:
                reset()
    return fresh


def size_of(task: Task, model: nn.Module) -> dict[str, float | int]:
    """Return parameters, multiply-accumulates and latency, that of the whole network timed in turn."""
    sample, pair = task.problem.example[:1], {"latency_ms": model, "dense_latency_ms": task.problem.model}
    times = in_turn({name: partial(time_sample, network, sample) for name, network in pair.items()})
    return {
        "parameters": count_parameters(model),
        "macs": count_macs(model, sample),
        **{name: each.median_ms for name, each in times.items()},
    }
