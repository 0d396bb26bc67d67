"""Our Surgeon from a convolutional network, and from networks whose units are dead, beside plain training.

6,000 Fashion-MNIST images, 900 of them held out to choose by, one thread; optimizer, schedule and samples of the
Surgeon are those of the plain training beside it. `python -m benchmarks.surgeon_parts FOLDER [PART …]`, the parts being
convolutional and rescue, which needs no folder; both without any.
"""

import sys
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, replace
from statistics import mean, stdev

import torch
from torch import nn

from benchmarks.paging.records import Figure, Sheet
from benchmarks.paging.writing import stamp, write_results
from topiarist import TrainConfig, load_data, measure, models, resize, train
from topiarist.data import Data, Part
from topiarist.methods import Surgeon
from topiarist.randomness import generator

OURS = Surgeon().usual_training
SEEDS, RESCUED = 3, 10
IMAGES, HELD_OUT = 6000, 900


@dataclass(frozen=True)
class Result:
    """What a training came to on the test part."""

    accuracy: float
    parameters: int
    seconds: float


def main() -> None:
    """Run the parts that are asked for."""
    folder, *parts = [*sys.argv[1:], *([""] if len(sys.argv) < 2 else [])]
    if folder in PARTS:
        folder, parts = "", [folder, *parts]
    for part in parts or PARTS:
        if not folder and part != "rescue":
            raise SystemExit("python -m benchmarks.surgeon_parts FOLDER [PART …]: name a folder with Fashion-MNIST")
        PARTS[part](folder)


def images(folder: str) -> Data:
    """Return 6,000 images, some of them held out, and the whole test part."""
    data = load_data(folder)
    assert isinstance(data.train, Part)
    chosen = torch.randperm(len(data.train), generator=generator(0, "benchmark"))[:IMAGES]
    x, y = data.train.x[chosen], data.train.y[chosen]
    kept = IMAGES - HELD_OUT
    return replace(data, train=Part(x[:kept], y[:kept]), validation=Part(x[kept:], y[kept:]))


def trained(model: nn.Module, data: Data, config: TrainConfig) -> Result:
    """Train as `train` does, without a look at the held-out part, which would cost time."""
    assert isinstance(data.validation, Part)
    unwatched = replace(data, validation=Part(data.validation.x[:0], data.validation.y[:0]))
    began = time.perf_counter()
    train(model, unwatched, config)
    seconds = time.perf_counter() - began
    found = measure(model, data, latency=False)
    return Result(found.accuracy, found.parameters, seconds)


def operated(model: nn.Module, data: Data, surgeon: Surgeon, seed: int) -> Result:
    """Let a Surgeon train."""
    began = time.perf_counter()
    outcome = resize(model, data, surgeon, seed=seed, latency=False)
    seconds = time.perf_counter() - began
    return Result(outcome.after.accuracy, outcome.after.parameters, seconds)


def show(name: str, found: dict[str, list[Result]]) -> None:
    """Print a table of means; times are those of the plain training beside it."""
    print(f"{name}: accuracy, parameters, time")
    for kind, results in found.items():
        beside = found["plain"]
        accuracies = [100 * result.accuracy for result in results]
        spread = stdev(accuracies) if len(accuracies) > 1 else 0.0
        ratio = sum(result.seconds for result in results) / sum(result.seconds for result in beside)
        sizes = ", ".join(f"{result.parameters:,}" for result in results)
        print(f"  {kind:14}{mean(accuracies):6.2f} ± {spread:.2f}  {sizes:26}{ratio:5.2f} ×", flush=True)


def convolutional(folder: str) -> None:
    """Begin with V(0,0,1,1)."""
    data, found = images(folder), defaultdict(list)
    for seed in range(SEEDS):
        for kind, kinds in (("plain", None), ("no changes", ()), ("Surgeon", Surgeon().kinds)):
            model = models.vgg(0, 0, 1, 1, input_shape=(1, 28, 28), classes=10, generator=generator(seed, "benchmark"))
            config = OURS.model_copy(update={"epochs": 10, "batch_size": 32, "seed": seed})
            result = (
                trained(model, data, config)
                if kinds is None
                else operated(model, data, Surgeon(training=config, kinds=kinds), seed)
            )
            found[kind].append(result)
    show("V(0,0,1,1), 10 epochs of batches of 32", found)


def rescue(folder: str) -> None:
    """Begin with networks whose hidden units are dead, all but one in each layer."""
    data = load_data("digits")
    plain, surgeon = list[float](), list[float]()
    for seed in range(RESCUED):
        config = OURS.model_copy(update={"epochs": 20, "seed": seed})
        stuck = trained(dead_network(seed), data, config)
        found = operated(dead_network(seed), data, Surgeon(training=config), seed)
        plain.append(100 * stuck.accuracy)
        surgeon.append(100 * found.accuracy)
        print(f"  seed {seed}: {plain[-1]:5.2f} → {surgeon[-1]:5.2f}", flush=True)
    common = {"case": "64-16-16-10, digits", "measure": "accuracy, %"}
    figures = (
        Figure(contender="plain training", values=tuple(plain), role="rival", **common),
        Figure(contender="Surgeon", values=tuple(surgeon), role="ours", **common),
    )
    print(write_results("rescue", Sheet(**stamp("python -m benchmarks.surgeon_parts rescue"), figures=figures)))


@torch.no_grad()
def dead_network(seed: int) -> nn.Module:
    """Return a network for digits with one living unit in each of its layers of 16."""
    model = models.mlp([64, 16, 16, 10], generator=generator(seed, "benchmark"))
    for name in ("hidden0", "hidden1"):
        model.get_parameter(f"{name}.bias")[1:] = -100.0
    return model


PARTS: dict[str, Callable[[str], None]] = {"convolutional": convolutional, "rescue": rescue}

if __name__ == "__main__":
    main()
