"""The networks that are pruned: perceptrons on digits and Fashion-MNIST, a residual network and a ViT."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from torch import Tensor, nn
from torch.nn import functional

from benchmarks.compensating import images
from benchmarks.compensating.experiments import ATTENTION, make_problem
from benchmarks.compensating.perceptrons import lenet_300_100
from benchmarks.compensating.problem import Problem
from benchmarks.compensating.residual import CifarResNet
from benchmarks.compensating.sequences import SmallViT
from benchmarks.compensating.training import Recipe
from topiarist import load_data, models
from topiarist.data import Part
from topiarist.randomness import generator

FEW_IMAGES = 15_000
TUNING = 0.5  # of the first training's rate: the same for everyone, fixed before anything was measured
Samples = tuple[Tensor, Tensor]


@dataclass(frozen=True)
class Task:
    """A trained network, the samples it was trained on and how; `recipe.epochs` is how long.

    `stream` are the ends of the names of the layers that write the residual stream, where there is one.
    """

    problem: Problem
    samples: Samples
    recipe: Recipe
    stream: tuple[str, ...] = ()

    def tuning(self, epochs: int) -> Recipe:
        """Return how a cut network is trained on."""
        return replace(self.recipe, epochs=epochs, rate=TUNING * self.recipe.rate)


@dataclass(frozen=True)
class Contest:
    """What makes the network of a seed, and how many seeds there are."""

    make: Callable[[Path, int], Task]
    seeds: int


def _task(
    name: str,
    samples: images.Samples,
    make: Callable[[], nn.Module],
    recipe: Recipe,
    calibration: int,
    cache: Path,
    seed: int,
    heads: tuple[str, ...] = (),
    stream: tuple[str, ...] = (),
) -> Task:
    problem = make_problem(name, samples, make, recipe, calibration, cache, seed, heads=heads)
    return Task(problem, (samples.x, samples.y), recipe, stream)


def digits_task(cache: Path, seed: int) -> Task:
    """Return 64-128-64-10 on digits; the training inputs calibrate."""
    data = load_data("digits", scaling="minmax", test_fraction=0.3, validation_fraction=0.0, seed=seed)
    assert isinstance(data.train, Part)
    assert isinstance(data.test, Part)
    samples = images.Samples(data.train.x, data.train.y, data.test.x, data.test.y)
    make = partial(models.mlp, (64, 128, 64, 10), generator=generator(seed, "weights"))
    recipe = Recipe(epochs=60, rate=0.003, batch=32)
    return _task("digits", samples, make, recipe, len(samples.x), cache, seed)


def lenet300_task(cache: Path, seed: int) -> Task:
    """Return LeNet-300-100 on Fashion-MNIST, the network of `benchmarks.compensation`."""
    recipe = Recipe(epochs=20, rate=0.003, decay=0.02)
    return _task("lenet300", images.fashion(), lenet_300_100, recipe, 10_000, cache, seed)


def residual_task(cache: Path, seed: int) -> Task:
    """Return a residual network of 8, 16 and 32 channels with six blocks on 15,000 images of Fashion-MNIST, 14 × 14.

    Where the width changes, a convolution is beside the block: torch-pruning cannot cut shortcuts that pad.
    """
    recipe = Recipe(epochs=16, rate=0.1, decay=5e-4, momentum=True)
    make = partial(CifarResNet, blocks=2, widths=(8, 16, 32), channels=1, projected=True)
    whole = images.standardise(images.fashion())
    small = {name: functional.avg_pool2d(getattr(whole, name), 2) for name in ("x", "x_test")}
    few = replace(whole, x=small["x"][:FEW_IMAGES], y=whole.y[:FEW_IMAGES], x_test=small["x_test"])
    return _task("residual", few, make, recipe, 2_560, cache, seed, stream=("conv", "conv2", "shortcut.0"))


def vit_task(cache: Path, seed: int) -> Task:
    """Return a small ViT on Fashion-MNIST, the network of `benchmarks.compensation`."""
    recipe = Recipe(epochs=12, rate=0.002, decay=0.05)
    make = partial(SmallViT, patch=7)
    written = ("patches", "project", "back")
    return _task("vit", images.fashion(), make, recipe, 2_560, cache, seed, ATTENTION, written)


CONTESTS: dict[str, Contest] = {
    "digits": Contest(digits_task, seeds=5),
    "lenet300": Contest(lenet300_task, seeds=3),
    "residual": Contest(residual_task, seeds=2),
    "vit": Contest(vit_task, seeds=2),
}
TITLES = {
    "digits": "64-128-64-10, digits",
    "lenet300": "LeNet-300-100, Fashion-MNIST",
    "residual": "residual network, 15,000 images of Fashion-MNIST, 14 × 14",
    "vit": "ViT, Fashion-MNIST",
}
