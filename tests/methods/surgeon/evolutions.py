"""Tiny evolutions: some handwritten digits, networks that learn them, and what happened to all branches."""

from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import torch
from torch import Tensor, nn

from topiarist import Data, TrainConfig, load_data, models
from topiarist.data import AnyPart, Part
from topiarist.evolution.lineage import Decision, Lineage, Node
from topiarist.methods import Outcome, published
from topiarist.methods.job import make_job
from topiarist.methods.surgeon import Surgeon
from topiarist.methods.surgeon.branches import BranchTraining, TrainingSetup
from topiarist.methods.surgeon.evolution import Evolution
from topiarist.parallel import InProcess, TaskResult
from topiarist.randomness import generator

State = dict[str, Tensor]


@cache
def digits(train: int = 240, validation: int = 60, test: int = 100, *, images: bool = False) -> Data:
    """Return some of the digits, as rows of 64 numbers or as images."""
    data = load_data("digits")
    shape = (1, 8, 8) if images else (64,)
    parts: dict[str, Any] = {
        "train": first(data.train, train, shape),
        "validation": first(data.validation, validation, shape),
        "test": first(data.test, test, shape),
    }
    return replace(data, input_shape=shape, **parts)


def first(part: AnyPart, count: int, shape: tuple[int, ...]) -> Part:
    """Return the first samples of a part."""
    assert isinstance(part, Part)
    return Part(part.x[:count].reshape(-1, *shape), part.y[:count])


def network(*hidden: int, seed: int = 0, activation: str = "relu") -> Any:
    """Return a multilayer perceptron for digits; its type is that of no module, so that its layers can be named."""
    return models.mlp([64, *hidden, 10], activation, generator=generator(seed, "weights"))


def unstackable(*hidden: int, seed: int = 0) -> Any:
    """Return one with activations that networks of a stack do not have."""
    layers = OrderedDict(network(*hidden, seed=seed).named_children())
    return nn.Sequential(OrderedDict((name, replaced(layer)) for name, layer in layers.items()))


def replaced(layer: nn.Module) -> nn.Module:
    """Return another activation for a ReLU."""
    return nn.Hardswish() if isinstance(layer, nn.ReLU) else layer


def as_published(epochs: int = 4, *, interval: int = 1, **training: Any) -> published.Surgeon:
    """Return the paper's algorithm with a short training."""
    settings = {"epochs": epochs, "batch_size": 16, "learning_rate": 0.05, "optimizer": "sgd", **training}
    return published.Surgeon(training=TrainConfig(**settings), interval=interval)


def as_ours(epochs: int = 10, *, batch_size: int = 16, learning_rate: float = 0.003, **settings: Any) -> Surgeon:
    """Return our own surgeon with a short training."""
    training = TrainConfig(epochs=epochs, batch_size=batch_size, learning_rate=learning_rate, schedule="cosine")
    return Surgeon(training=training, **settings)


class Watched(InProcess):
    """Runs tasks here, and keeps them in mind."""

    def __init__(self, shared: Any) -> None:
        super().__init__(shared)
        self.tasks: list[BranchTraining] = []

    def run(self, function: Any, tasks: Sequence[Any]) -> Iterator[TaskResult]:
        self.tasks += tasks
        yield from super().run(function, tasks)


def evolution_for(model: nn.Module, data: Data, config: TrainConfig, *, seed: int = 0) -> tuple[Evolution, Watched]:
    """Return an evolution as the surgeon has it, and the pool that trains its branches."""
    setup = TrainingSetup(data, config.model_copy(update={"seed": seed}))
    pool = Watched(setup)
    job = make_job(model, data, seed=seed, all_samples=True)
    return Evolution(job=job, setup=setup, pool=pool, lineage=Lineage(config.epochs)), pool


def lineage_of(outcome: Outcome) -> Lineage:
    """Return the record of an evolution."""
    assert outcome.lineage is not None
    return outcome.lineage


def best_of(lineage: Lineage) -> Node:
    """Return the only network that came out best."""
    (best,) = [node for node in lineage.nodes if node.fate == "best"]
    return best


def line_of(lineage: Lineage, node: int) -> list[Node]:
    """Return a network and all that it comes from, the oldest first."""
    found = [lineage.nodes[node]]
    while (parent := found[0].parent) is not None:
        found.insert(0, lineage.nodes[parent])
    return found


def cycles(lineage: Lineage) -> list[list[Decision]]:
    """Return the decisions of each cycle, one a draw."""
    numbers = sorted({decision.number for decision in lineage.decisions})
    return [[decision for decision in lineage.decisions if decision.number == number] for number in numbers]


def part_of(data: Data, name: str) -> Part:
    """Return a part in memory."""
    part = getattr(data, name)
    assert isinstance(part, Part)
    return part


def same_weights(one: nn.Module, other: nn.Module) -> bool:
    """Return whether two networks have the same tensors to the bit."""
    mine, theirs = one.state_dict(), other.state_dict()
    return list(mine) == list(theirs) and all(torch.equal(value, theirs[name]) for name, value in mine.items())


def assert_same_outcome(one: Outcome, other: Outcome) -> None:
    """Assert that two evolutions went the same strategy to the bit."""
    assert same_weights(one.model, other.model)
    assert one.plan == other.plan
    assert one.lineage == other.lineage
    assert one.score == other.score and one.reasons == other.reasons
