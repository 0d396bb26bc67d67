"""The experiments: which networks are trained, how they are cut, and by whom."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import nn

from benchmarks.compensating import images, texts
from benchmarks.compensating.methods import METHODS
from benchmarks.compensating.perceptrons import lenet5, lenet_300_100
from benchmarks.compensating.problem import Problem, Widths, timed, uniform, uniform_within
from benchmarks.compensating.residual import CifarResNet
from benchmarks.compensating.sequences import RowLSTM, SmallBert, SmallViT
from benchmarks.compensating.training import Recipe, arrange, trained, tuned
from topiarist import surgery
from topiarist.randomness import generator

ALL = tuple(METHODS)
OURS = ("ours",)


@dataclass(frozen=True)
class Setting:
    """Widths to cut a network to, and the ways in which it is done; those that are also trained with labels.

    `seconds` are the processor's for allotting the widths; None where they are a plain share.
    """

    name: str
    widths: Widths
    methods: tuple[str, ...] = ALL
    labelled: tuple[str, ...] = ()
    seconds: float | None = None


@dataclass(frozen=True)
class Experiment:
    """A network for each seed, and its settings."""

    problem: Callable[[Path, int], Problem]
    settings: Callable[[Problem], Iterator[Setting]]
    seeds: int


def make_problem(
    name: str,
    samples: images.Samples,
    make: Callable[[], nn.Module],
    recipe: Recipe,
    calibration: int,
    cache: Path,
    seed: int,
    *,
    tuning: Recipe | None = None,
    heads: tuple[str, ...] = (),
) -> Problem:
    """Train a network, and draw its calibration samples out of the training samples."""
    model = trained(name, make, (samples.x, samples.y), recipe, seed, cache)
    arrange(model, torch.contiguous_format)
    drawn = torch.randperm(len(samples.x), generator=generator(seed, "calibration"))[:calibration]
    tune = None
    if tuning is not None:
        tune = partial(tuned, teacher=model, samples=(samples.x, samples.y), recipe=tuning, seed=seed)
    told = {path: HEADS for path, _ in model.named_modules() if path.endswith(heads)} if heads else {}
    return Problem(name, seed, model, samples.x[drawn], samples.y[drawn], samples.x_test, samples.y_test, tune, told)


HEADS = 4
ATTENTION = ("attention.query", "attention.key", "attention.value")


def lenet300_problem(cache: Path, seed: int) -> Problem:
    """Return LeNet-300-100 on Fashion-MNIST with 10,000 calibration images."""
    recipe = Recipe(epochs=20, rate=0.003, decay=0.02)
    return make_problem("lenet300", images.fashion(), lenet_300_100, recipe, 10_000, cache, seed)


def lenet300_settings(problem: Problem) -> Iterator[Setting]:
    """Yield shares of the units that go, the same in each layer, and freely allotted to the same parameters."""
    for share in (0.5, 0.6, 0.7, 0.8, 0.9):
        widths = uniform(problem.anatomy, 1 - share)
        yield Setting(f"{share:.0%} uniform", widths)
        yield allotted(problem, f"{share:.0%} free", parameters=problem.costs.parameters(widths))


def allotted(
    problem: Problem,
    name: str,
    methods: tuple[str, ...] = ALL,
    labelled: tuple[str, ...] = (),
    *,
    parameters: int | None = None,
    macs: int | None = None,
) -> Setting:
    """Return a setting with widths that are freely allotted within a budget."""
    known: dict[str, Any] = {"calibration": problem.calibration, "anatomy": problem.anatomy}
    widths, seconds = timed(
        lambda: surgery.allot_widths(problem.model, problem.example, **known, parameters=parameters, macs=macs)
    )
    return Setting(name, widths, methods, labelled, seconds)


def lenet5_problem(cache: Path, seed: int) -> Problem:
    """Return LeNet 6-16-120-84 on MNIST with 10,000 calibration images."""
    recipe = Recipe(epochs=8, rate=0.004)
    return make_problem("lenet5", images.mnist(cache), lenet5, recipe, 10_000, cache, seed)


def lenet5_settings(problem: Problem) -> Iterator[Setting]:
    """Yield shares of the units that stay, the same in each layer, and freely allotted to the same parameters."""
    for share in (0.25, 0.10, 0.05):
        widths = uniform(problem.anatomy, share)
        yield Setting(f"{share:.0%} kept, uniform", widths)
        yield allotted(problem, f"{share:.0%} kept, free", parameters=problem.costs.parameters(widths))


RESNET = Recipe(epochs=12, rate=0.3, decay=5e-4, momentum=True, crop=4, half=True)
RESNET_TUNING = Recipe(epochs=3, rate=0.05, decay=5e-4, momentum=True, crop=4, half=True)
RESNET_PARAMETERS = 174_000


def make_resnet20() -> nn.Module:
    """Return ResNet-20 in the memory format in which it trains fastest."""
    model = CifarResNet()
    arrange(model, torch.channels_last)
    return model


def resnet20_problem(cache: Path, seed: int) -> Problem:
    """Return ResNet-20 on CIFAR-10 with 2,560 calibration images."""
    return make_problem(
        "resnet20", images.cifar(cache), make_resnet20, RESNET, 2_560, cache, seed, tuning=RESNET_TUNING
    )


def resnet20_settings(problem: Problem) -> Iterator[Setting]:
    """Yield a budget of parameters and one of multiply-accumulates: freely, and with one share inside all blocks."""
    half = problem.costs.macs({}) // 2
    for name, budget in (("174k parameters", {"parameters": RESNET_PARAMETERS}), ("half the MACs", {"macs": half})):
        yield allotted(problem, f"{name}, free", OURS, OURS, **budget)
        inner = uniform_within(problem, lambda space: space.endswith("conv1"), **budget)
        yield Setting(f"{name}, inner channels", inner, ALL, ("torch-pruning, L1",))


def vit_problem(cache: Path, seed: int) -> Problem:
    """Return a small ViT on Fashion-MNIST with 2,000 calibration images."""
    recipe = Recipe(epochs=12, rate=0.002, decay=0.05)
    make = partial(SmallViT, patch=7)
    return make_problem("vit", images.fashion(), make, recipe, 2_000, cache, seed, heads=ATTENTION)


def bert_problem(cache: Path, seed: int) -> Problem:
    """Return a BERT-shaped encoder on synthetic reviews, with 2,000 calibration sentences."""
    recipe = Recipe(epochs=8, rate=0.001, decay=0.05)
    make = partial(SmallBert, texts.WORDS, texts.LENGTH)
    return make_problem("bert", texts.reviews(), make, recipe, 2_000, cache, seed, heads=ATTENTION)


def half_of_layers(problem: Problem) -> Iterator[Setting]:
    """Yield half of the heads and half of the perceptron's units of every layer."""
    halved = uniform(problem.anatomy, 0.5, lambda name: name.endswith((":heads", "perceptron.hidden")))
    yield Setting("half of heads and hidden units", halved)


def lstm_problem(cache: Path, seed: int) -> Problem:
    """Return an LSTM over the rows of Fashion-MNIST images with 2,000 calibration images."""
    return make_problem("lstm", images.fashion(), RowLSTM, Recipe(epochs=10, rate=0.004), 2_000, cache, seed)


def half_of_all(problem: Problem) -> Iterator[Setting]:
    """Yield half of all units."""
    yield Setting("half of hidden units", uniform(problem.anatomy, 0.5))


EXPERIMENTS: dict[str, Experiment] = {
    "lenet300": Experiment(lenet300_problem, lenet300_settings, seeds=3),
    "lenet5": Experiment(lenet5_problem, lenet5_settings, seeds=3),
    "resnet20": Experiment(resnet20_problem, resnet20_settings, seeds=1),
    "vit": Experiment(vit_problem, half_of_layers, seeds=2),
    "bert": Experiment(bert_problem, half_of_layers, seeds=2),
    "lstm": Experiment(lstm_problem, half_of_all, seeds=2),
}
