"""Rescue: networks whose units are dead learn nothing by training alone; fresh units bring them back."""

from typing import Any

import pytest
import torch
from torch import nn

from tests.methods.surgeon.evolutions import best_of, digits, line_of, lineage_of, network, part_of
from tests.methods.tasks import percentage
from topiarist import TrainConfig, train
from topiarist.methods import resize
from topiarist.methods.surgeon import Surgeon
from topiarist.models.copying import copied
from topiarist.surgery import recommend

HIDDEN = 16
TRAINING = TrainConfig(epochs=12, batch_size=16, learning_rate=0.003, schedule="cosine")


@torch.no_grad()
def with_dead_units(alive: int, seed: int) -> Any:
    """Return a network with so many living units in each of its hidden layers."""
    model = network(HIDDEN, HIDDEN, seed=seed)
    for layer in (model.hidden0, model.hidden1):
        layer.bias[alive:] = -100.0
    return model


def dead(model: nn.Module) -> int:
    part = part_of(digits(1000, 250, 350), "train")
    advice = recommend(model, part.x[:2], calibration=part.x, labels=part.y)
    return sum(len(advice.health(name).dead) for name in advice.spaces)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("alive", [0, 1])
def test_dead_networks_are_rescued_where_training_alone_is_stuck(alive: int, seed: int) -> None:
    data = digits(1000, 250, 350)
    test = part_of(data, "test")
    plain = with_dead_units(alive, seed)
    train(plain, data, TRAINING.model_copy(update={"seed": seed}))
    stuck = percentage(plain, test)
    outcome = resize(with_dead_units(alive, seed), data, Surgeon(training=TRAINING), seed=seed, latency=False)
    rescued = percentage(outcome.model, test)
    assert stuck < 50
    assert rescued >= stuck + 5
    assert rescued > 70
    units = sum(after for _, after in outcome.units.values())
    assert dead(plain) >= 2 * (HIDDEN - alive)
    assert dead(outcome.model) < units / 4
    kinds = {node.kind for node in line_of(lineage_of(outcome), best_of(lineage_of(outcome)).number)}
    assert kinds & {"renew", "grow"}


def test_where_nothing_is_dead_nothing_is_renewed() -> None:
    data = digits(1000, 250, 350)
    trained = copied(network(HIDDEN))
    method = Surgeon(training=TRAINING.model_copy(update={"epochs": 4}), kinds=("renew",))
    outcome = resize(trained, data, method, seed=0, latency=False)
    assert not outcome.plan
    assert outcome.units == {"hidden0": (HIDDEN, HIDDEN)}
