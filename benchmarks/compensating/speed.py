"""How long a refit takes beside a forward pass of the same images, and how that grows with depth and with samples.

Half of the channels inside all blocks go, by number, so that no choice is timed with the refit; weights are random.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import torch
from torch import nn

from benchmarks.compensating.methods import without_settling
from benchmarks.compensating.problem import answers, timed, uniform
from benchmarks.compensating.records import Timing
from benchmarks.compensating.residual import CifarResNet
from topiarist import anatomy, surgery
from topiarist.randomness import child_seed, generator, isolated
from topiarist.surgery.choice.choosing import cut_to_widths

IMAGES = 256
BLOCKS = (1, 2, 4, 8)  # of each of three stages, for the exponent in depth
SAMPLES = (128, 256, 512, 1024)  # for the exponent in samples
NETWORKS: dict[str, Callable[[], nn.Module]] = {
    "ResNet-20": CifarResNet,
    "ResNet-18": partial(CifarResNet, 2, (64, 128, 256, 512)),
}


def time_refit(name: str, make: Callable[[], nn.Module], count: int, *, choice: bool = False) -> Timing:
    """Time a forward pass and a refit, and if asked the choice with its refit."""
    with isolated(child_seed(0, "weights")):
        model = make().eval()
    x = torch.randn(count, 3, 32, 32, generator=generator(0, "images"))
    found = anatomy(model, x[:2])
    keep = uniform(found, 0.5, lambda space: space.endswith("conv1"))
    units = {space: list(range(width, found[space].size)) for space, width in keep.items()}
    known: dict[str, Any] = {"calibration": x, "anatomy": found}
    answers(model, x[:64])  # the first pass prepares kernels
    forward = timed(lambda: answers(model, x))[1]
    surgery.remove(model, x[:2], units=units, anatomy=found)  # proves the cut once, which no refit repeats
    refit = timed(lambda: surgery.remove(model, x[:2], units=units, **known, **without_settling(surgery.remove)))[1]
    chosen = None
    if choice:
        chosen = timed(lambda: cut_to_widths(model, x[:2], keep=keep, **known, **without_settling(cut_to_widths)))[1]
    return Timing(
        network=name,
        parameters=sum(parameter.numel() for parameter in model.parameters()),
        layers=sum(isinstance(layer, nn.Conv2d) for layer in model.modules()),
        images=count,
        forward_seconds=forward,
        refit_seconds=refit,
        choice_seconds=chosen,
    )


def measure_speed() -> Iterator[Timing]:
    """Yield all timings: two networks, then depths, then numbers of samples."""
    for name, make in NETWORKS.items():
        yield time_refit(name, make, IMAGES, choice=True)
    for blocks in BLOCKS:
        yield time_refit(f"depth {6 * blocks + 2}", partial(CifarResNet, blocks), IMAGES)
    for count in SAMPLES:
        yield time_refit(f"{count} images", CifarResNet, count)


def exponent(sizes: Sequence[float], seconds: Sequence[float]) -> float:
    """Return the slope of the logarithm of seconds over that of sizes, by least squares: 1 where time is linear."""
    x, y = [math.log(size) for size in sizes], [math.log(value) for value in seconds]
    mean_x, mean_y = sum(x) / len(x), sum(y) / len(y)
    products = sum((a - mean_x) * (b - mean_y) for a, b in zip(x, y, strict=True))
    return products / sum((a - mean_x) ** 2 for a in x)
