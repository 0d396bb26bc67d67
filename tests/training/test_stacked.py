"""Networks trained as one equal networks trained one by one."""

import copy
from collections.abc import Sequence

import pytest
import torch
from torch import nn

from topiarist.data import Data, Part
from topiarist.models import mlp
from topiarist.models.stacked import Stack, signature, stackable
from topiarist.models.stacked_layers import Pass
from topiarist.randomness import generator
from topiarist.training import History, TrainConfig, train_many

FOLDS = 5


def networks(count: int, activation: str = "relu", **settings: object) -> list[nn.Module]:
    sizes = [6, 9, 7, 3]
    return [
        mlp(sizes, activation, generator=generator(number, "weights"), **settings).double()  # type: ignore[arg-type]
        for number in range(count)
    ]


def both_ways(
    models: Sequence[nn.Module], data: Sequence[Data], configs: Sequence[TrainConfig]
) -> tuple[list[History], list[History], float]:
    """Train copies of the networks in a stack and one by one; give the largest difference in any number."""
    alone = copy.deepcopy(list(models))
    together = train_many(models, data, configs)
    singly = train_many(alone, data, configs, stacked=False)
    pairs = [
        (one, other)
        for model, twin in zip(models, alone, strict=True)
        for one, other in zip(model.state_dict().values(), twin.state_dict().values(), strict=True)
    ]
    return together, singly, max((one - other).abs().max().item() for one, other in pairs)


@pytest.mark.parametrize("batch_norm", [False, "before", "after"])
@pytest.mark.parametrize("activation", ["selu", "elu", "leaky_relu", "relu", "gelu", "silu", "tanh", "sigmoid"])
def test_every_network_of_ours(task: Data, activation: str, batch_norm: str | bool) -> None:
    config = TrainConfig(epochs=4, learning_rate=0.005, batch_size=23)
    configs = [config.model_copy(update={"seed": number}) for number in range(FOLDS)]
    models = networks(FOLDS, activation, batch_norm=batch_norm, dropout=0.3, input_dropout=0.1)
    assert all(map(stackable, models))
    together, singly, difference = both_ways(models, task.folds(FOLDS), configs)
    assert difference < 1e-5
    for one, other in zip(together, singly, strict=True):
        losses = [epoch.train_loss for epoch in one.epochs], [epoch.train_loss for epoch in other.epochs]
        assert losses[0] == pytest.approx(losses[1], abs=1e-9)


PRACTICES: dict[str, dict[str, object]] = {
    "sgd": {"optimizer": "sgd", "learning_rate": 0.05},
    "momentum": {"optimizer": "sgd", "momentum": 0.9},
    "nesterov": {"optimizer": "sgd", "momentum": 0.8, "nesterov": True},
    "adamw": {"optimizer": "adamw", "weight_decay": 0.1},
    "adam with decay": {"weight_decay": 0.01, "weight_decay_on": "all"},
    "rmsprop": {"optimizer": "rmsprop"},
    "rmsprop with momentum": {"optimizer": "rmsprop", "momentum": 0.5, "learning_rate": 0.0005},
    "clip value": {"clip_value": 0.01},
    "clip norm": {"clip_norm": 0.1},
    "clip norm by tensor": {"clip_norm": 0.05, "clip_norm_over": "tensor"},
    "one cycle": {"schedule": "one-cycle", "learning_rate": 0.01},
    "warm-up": {"schedule": {"name": "power", "warmup": 11}},
    "performance": {"schedule": {"name": "performance", "patience": 1}, "learning_rate": 0.05},
    "balanced": {"class_weights": "balanced"},
    "weighted": {"class_weights": (1.0, 2.0, 0.5)},
}


@pytest.mark.parametrize("practice", PRACTICES.values(), ids=list(PRACTICES))
def test_every_practice(task: Data, practice: dict[str, object]) -> None:
    configs = [TrainConfig(**{"epochs": 4, "batch_size": 19, **practice, "seed": number}) for number in range(3)]
    data = task.folds(3, validation_fraction=0.2)
    together, singly, difference = both_ways(networks(3, dropout=0.2), data, configs)
    assert difference < 1e-5
    assert [h.epochs[-1].learning_rate for h in together] == [h.epochs[-1].learning_rate for h in singly]


def test_each_has_its_own_early_stopping_rate_and_order(task: Data) -> None:
    configs = [
        TrainConfig(epochs=40, early_stopping=2, learning_rate=rate, seed=number, monitor="accuracy")
        for number, rate in enumerate((0.05, 0.001, 0.02, 0.0005))
    ]
    together, singly, difference = both_ways(networks(4), [task] * 4, configs)
    assert difference < 1e-5
    assert len({len(history) for history in together}) > 1
    assert [history.kept_epoch for history in together] == [history.kept_epoch for history in singly]
    assert [history.stopped for history in together] == [history.stopped for history in singly]


def shortened(data: Data, count: int) -> Data:
    assert isinstance(data.train, Part)
    part = Part(data.train.x[:count], data.train.y[:count])
    return Data(
        name="short", classes=data.classes, input_shape=data.input_shape, train=part, validation=part, test=part
    )


@pytest.mark.parametrize("batch_norm", [False, True])
@pytest.mark.parametrize("optimizer", ["adam", "sgd"])
def test_members_may_have_fewer_samples_and_so_fewer_steps(task: Data, optimizer: str, batch_norm: bool) -> None:
    # 65 samples make 5 batches of 16, the last of one sample, which batch norm leaves out; 32 make 2; 90 make 6
    data = [shortened(task, count) for count in (65, 32, 90)]
    momentum = {"momentum": 0.9} if optimizer == "sgd" else {}
    config = TrainConfig.model_validate({"epochs": 5, "batch_size": 16, "optimizer": optimizer, **momentum})
    _, _, difference = both_ways(networks(3, batch_norm=batch_norm, dropout=0.2), data, [config] * 3)
    assert difference < 1e-5


def test_one_that_diverges_leaves_the_others_alone(task: Data) -> None:
    calm = TrainConfig(epochs=5, optimizer="sgd", learning_rate=0.01)
    wild = calm.model_copy(update={"learning_rate": 1e30})
    models, reference = networks(3), networks(1)
    before = copy.deepcopy(models[1].state_dict())
    with pytest.warns(UserWarning, match="in epoch 1"):
        histories = train_many(models, [task] * 3, [calm, wild, calm])
    train_many(reference, [task], [calm])
    assert histories[1].diverged_epoch == 1 and histories[0].diverged_epoch is None
    assert all(torch.equal(value, before[name]) for name, value in models[1].state_dict().items())
    for name, value in reference[0].state_dict().items():
        torch.testing.assert_close(models[0].state_dict()[name], value)


class Own(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(6, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out: torch.Tensor = self.layer(x)
        return out


def frozen() -> nn.Module:
    model = mlp([6, 4, 3])
    model[1].requires_grad_(False)
    return model


def shared() -> nn.Module:
    layer = nn.Linear(6, 6)
    return nn.Sequential(layer, nn.ReLU(), layer, nn.Linear(6, 3))


def hooked() -> nn.Module:
    model = mlp([6, 4, 3])
    model[1].register_forward_hook(lambda *_: None)
    return model


@pytest.mark.parametrize("model", [Own(), frozen(), shared(), hooked(), nn.Sequential(nn.ELU(inplace=True))])
def test_what_cannot_be_stacked_is_not(model: nn.Module) -> None:
    assert not stackable(model)


def test_networks_that_cannot_be_stacked_are_trained_all_the_same(task: Data) -> None:
    models = [mlp([6, 4, 3]), mlp([6, 5, 3]), frozen()]
    histories = train_many(models, task, TrainConfig(epochs=2))
    assert [len(history) for history in histories] == [2, 2, 2]
    assert signature(models[0]) != signature(models[1])


def test_a_stack_gives_what_its_members_give(task: Data) -> None:
    models = [model.eval() for model in networks(3, "gelu", batch_norm=True)]
    assert isinstance(task.test, Part)
    x = task.test.x.double()
    logits = Stack(models).forward(x.T.expand(3, -1, -1), Pass(training=False))
    for member, model in enumerate(models):
        torch.testing.assert_close(logits[member].T, model(x))
