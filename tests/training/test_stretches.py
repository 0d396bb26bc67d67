"""Training in stretches: the same weights as at once, whatever the engine, and an optimizer that remembers."""

import math

import pytest
import torch
from torch import nn

from topiarist import Data, TrainConfig, load_data, models, train
from topiarist.models.copying import copied
from topiarist.training.stretches import pieces, steps_per_epoch, train_stretch


@pytest.fixture(scope="module")
def digits() -> Data:
    return load_data("digits")


def in_stretches(model: nn.Module, data: Data, config: TrainConfig, lengths: list[int]) -> nn.Module:
    done, memory = 0, None
    for steps in lengths:
        memory = train_stretch(model, data, config, done=done, steps=steps, memory=memory).memory
        done += steps
    return model


@pytest.mark.slow
@pytest.mark.parametrize("optimizer", ["adam", "sgd", "rmsprop", "adamw"])
@pytest.mark.parametrize("stacked", [True, False])
def test_stretches_of_epochs_give_the_weights_of_the_whole(digits: Data, optimizer: str, stacked: bool) -> None:
    model = models.mlp([64, 12, 10], dropout=0.2, batch_norm=True)
    if not stacked:
        model.activation0 = nn.Hardswish()
    momentum = {"momentum": 0.9} if optimizer in ("sgd", "rmsprop") else {}
    config = TrainConfig(epochs=4, optimizer=optimizer, schedule="cosine", weight_decay=0.01, **momentum)
    whole, pieced = copied(model), copied(model)
    train(whole, digits, config)
    epoch = steps_per_epoch(pieced, digits, config)
    in_stretches(pieced, digits, config, [epoch, 2 * epoch, epoch])
    for name, value in whole.state_dict().items():
        assert torch.equal(value, pieced.state_dict()[name]), name


def test_a_stretch_may_end_within_an_epoch(digits: Data) -> None:
    model = models.mlp([64, 12, 10])
    config = TrainConfig(epochs=3, schedule="one-cycle")
    whole, pieced = copied(model), copied(model)
    train(whole, digits, config)
    epoch = steps_per_epoch(pieced, digits, config)
    in_stretches(pieced, digits, config, [5, epoch, 2 * epoch - 5])
    for name, value in whole.state_dict().items():
        assert torch.equal(value, pieced.state_dict()[name]), name


def test_an_optimizer_that_remembers_nothing_goes_another_way(digits: Data) -> None:
    model = models.mlp([64, 12, 10])
    config = TrainConfig(epochs=2)
    remembering, forgetting = copied(model), copied(model)
    epoch = steps_per_epoch(model, digits, config)
    in_stretches(remembering, digits, config, [epoch, epoch])
    train_stretch(forgetting, digits, config, done=0, steps=epoch)
    train_stretch(forgetting, digits, config, done=epoch, steps=epoch)
    weights = [model.state_dict()["output.weight"] for model in (remembering, forgetting)]
    assert not torch.equal(*weights)


def test_the_loss_is_the_mean_over_the_samples(digits: Data) -> None:
    model = models.mlp([64, 12, 10])
    config = TrainConfig(epochs=2)
    whole = train(copied(model), digits, config)
    epoch = steps_per_epoch(model, digits, config)
    found = train_stretch(model, digits, config, done=0, steps=epoch)
    assert found.loss == pytest.approx(whole.epochs[0].train_loss, rel=1e-9)
    assert train_stretch(model, digits, config, done=epoch, steps=0, memory=found.memory).loss == 0.0


def test_a_training_that_diverges_has_no_loss(digits: Data) -> None:
    model = models.mlp([64, 12, 10])
    config = TrainConfig(epochs=5, optimizer="sgd", learning_rate=1e30)
    assert math.isnan(train_stretch(model, digits, config, done=0, steps=100).loss)


@pytest.mark.parametrize(
    ("done", "steps", "expected"),
    [
        (0, 0, []),
        (0, 3, [(0, 0, 3)]),
        (8, 5, [(0, 8, 10), (1, 0, 3)]),
        (10, 20, [(1, 0, 10), (2, 0, 10)]),
        (15, 15, [(1, 5, 10), (2, 0, 10)]),
    ],
)
def test_pieces_are_parts_of_epochs(done: int, steps: int, expected: list[tuple[int, int, int]]) -> None:
    assert list(pieces(done, steps, 10)) == expected
