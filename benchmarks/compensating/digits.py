"""Perceptrons on scikit-learn's digits with He's initial weights, cut to budgets of parameters."""

from collections.abc import Iterator
from copy import deepcopy
from functools import partial

from torch import nn

from benchmarks.compensating.experiments import ALL, Setting, allotted
from benchmarks.compensating.problem import Problem
from benchmarks.distinctiveness import BUDGETS, task_of
from benchmarks.refit import Trained, train_networks
from topiarist import TrainConfig, methods, train
from topiarist.randomness import child_seed

LABELLED = ("ours", "torch-pruning, L1")


def digits_problems(seeds: int) -> list[Problem]:
    """Train 64-128-64-10 for each seed, all as one computation; the training inputs calibrate."""
    return [
        Problem(
            name="digits",
            seed=found.seed,
            model=found.model,
            calibration=found.train.x,
            labels=found.train.y,
            x_test=found.test.x,
            y_test=found.test.y,
            tune=partial(fine_tune, trained=found),
        )
        for found in train_networks(seeds, "He")
    ]


def fine_tune(model: nn.Module, taught: bool, *, trained: Trained) -> nn.Module:
    """Return a copy that was trained for five epochs as `resize` does, with labels, and if asked with a teacher too."""
    settings = methods.FineTuning() if taught else methods.FineTuning(distillation=None)
    known = settings.model_dump(exclude={"kind", "distillation"})
    seed = child_seed(trained.seed, "fine-tuning") % 2**32
    config = TrainConfig(**known, distillation=settings.distillation, schedule="cosine", seed=seed)
    copy = deepcopy(model)
    train(copy, task_of(trained), config, teacher=trained.model if taught else None)
    return copy


def digits_settings(problem: Problem) -> Iterator[Setting]:
    """Yield budgets of parameters, widths allotted freely."""
    for budget in BUDGETS:
        yield allotted(problem, f"{budget} parameters", ALL, LABELLED, parameters=budget)
