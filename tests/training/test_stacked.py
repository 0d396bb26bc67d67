"""Networks trained as one equal networks trained one by one."""

import copy
import dataclasses
from collections.abc import Sequence

import pytest
import torch
from torch import nn

from topiarist.data import Data, Part
from topiarist.errors import ModelError
from topiarist.models import mlp
from topiarist.models.stacked import NetworkStack, reads_flat, signature, stackable
from topiarist.models.stacked_layers import Pass
from topiarist.randomness import generator
from topiarist.training import History, TrainConfig, train_many
from topiarist.training.preparation import stacks

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


@pytest.mark.slow
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


NORMS = [(1e-5, 0.1), (0.01, 0.3), (1.0, 1.0)]


@pytest.mark.slow
@pytest.mark.parametrize(("epsilon", "momentum"), NORMS)
@pytest.mark.parametrize("slope", [0.0, 0.01, 0.3])
def test_settings_of_batch_norm_and_leaky_relu(task: Data, epsilon: float, momentum: float, slope: float) -> None:
    norm = {"batch_norm": True, "batch_norm_epsilon": epsilon, "batch_norm_momentum": momentum}
    configs = [TrainConfig(epochs=4, learning_rate=0.005, batch_size=23, seed=number) for number in range(3)]
    models = networks(3, "leaky_relu", leaky_slope=slope, dropout=0.2, **norm)
    plain = networks(3, "leaky_relu", leaky_slope=slope, dropout=0.2, batch_norm=True)
    _, _, difference = both_ways(models, task.folds(3), configs)
    assert difference < 1e-5
    train_many(plain, task.folds(3), configs)
    same = torch.equal(models[0].state_dict()["hidden0.weight"], plain[0].state_dict()["hidden0.weight"])
    assert same == (epsilon == 1e-5)  # ε changes what is learned, the momentum only the averages
    averages = [model.state_dict()["norm0.running_mean"] for model in (models[0], plain[0])]
    assert torch.equal(*averages) == (momentum == 0.1)


def test_the_gradient_of_every_setting_is_that_of_autograd() -> None:
    x = torch.randn(2, 11, 6, generator=generator(0, "x"), dtype=torch.float64)
    upstream = torch.randn(2, 11, 3, generator=generator(0, "slope"), dtype=torch.float64)
    for (epsilon, momentum), slope in zip(NORMS, (0.0, 0.2, 0.9), strict=True):
        norm = {"batch_norm": True, "batch_norm_epsilon": epsilon, "batch_norm_momentum": momentum}
        models = networks(2, "leaky_relu", leaky_slope=slope, **norm)
        stack = NetworkStack(models)
        stack.forward(x.transpose(1, 2).contiguous(), Pass(training=True, rows=(11, 11)))
        stack.backward(upstream.transpose(1, 2).contiguous())
        for member, model in enumerate(models):
            (model(x[member]) * upstream[member]).sum().backward()
            for name, parameter in model.named_parameters():
                torch.testing.assert_close(stack.gradients[name][member], parameter.grad, rtol=0, atol=1e-10)
            for name, buffer in model.named_buffers():
                torch.testing.assert_close(stack.buffers[name][member], buffer, rtol=0, atol=1e-12)


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


@pytest.mark.slow
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
    return Data(name="short", task=data.task, input_shape=data.input_shape, train=part, validation=part, test=part)


@pytest.mark.parametrize("batch_norm", [False, True])
@pytest.mark.parametrize("optimizer", ["adam", "sgd"])
def test_members_may_have_fewer_samples_and_so_fewer_steps(task: Data, optimizer: str, batch_norm: bool) -> None:
    # 65 samples make 5 batches of 16, the last of one sample, which batch norm leaves out; 32 make 2; 90 make 6
    data = [shortened(task, count) for count in (65, 32, 90)]
    momentum = {"momentum": 0.9} if optimizer == "sgd" else {}
    config = TrainConfig.model_validate({"epochs": 5, "batch_size": 16, "optimizer": optimizer, **momentum})
    _, _, difference = both_ways(networks(3, batch_norm=batch_norm, dropout=0.2), data, [config] * 3)
    assert difference < 1e-5


@pytest.mark.parametrize("practice", ["momentum", "adam with decay", "adamw", "rmsprop with momentum"])
def test_members_with_steps_and_rates_of_their_own_step_as_torchs_optimizers_do(task: Data, practice: str) -> None:
    data = [shortened(task, count) for count in (65, 32, 90)]
    configs = [
        TrainConfig.model_validate({**PRACTICES[practice], "epochs": 4, "batch_size": 16, "learning_rate": rate})
        for rate in (0.01, 0.003, 0.02)
    ]
    _, _, difference = both_ways(networks(3), data, configs)
    assert difference < 1e-10


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


def hooked_gradient() -> nn.Module:
    model = mlp([6, 4, 3])
    next(model.parameters()).register_hook(lambda gradient: gradient * 0)  # type: ignore[no-untyped-call]
    return model


def patched() -> nn.Module:
    model = mlp([6, 4, 3])
    model[2].forward = lambda x: x * 2
    return model


def tied() -> nn.Module:
    model = nn.Sequential(nn.Linear(6, 6), nn.ReLU(), nn.Linear(6, 6), nn.Linear(6, 3))
    model[2].weight = model[0].weight
    return model


def partly_in_eval() -> nn.Module:
    model = mlp([6, 4, 3], batch_norm=True)
    model[2].eval()
    return model


class Half(nn.Flatten):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return super().forward(x) / 2


ODD = [
    Own(),
    frozen(),
    shared(),
    tied(),
    hooked(),
    hooked_gradient(),
    patched(),
    partly_in_eval(),
    nn.Sequential(Half(), nn.Linear(6, 3)),
    nn.Sequential(nn.Linear(6, 4), nn.BatchNorm1d(4, affine=False), nn.ReLU(inplace=True), nn.Linear(4, 3)),
    nn.Sequential(nn.Linear(6, 4), nn.Dropout(1.0), nn.Linear(4, 3)),
    nn.Sequential(nn.Flatten()),
]


@pytest.mark.parametrize("model", ODD)
def test_what_cannot_be_stacked_is_not(model: nn.Module) -> None:
    assert not stackable(model)


def test_networks_that_cannot_be_stacked_are_trained_all_the_same(task: Data) -> None:
    models = [copy.deepcopy(model).train() for model in ODD[:4]]
    histories = train_many(models, task, TrainConfig(epochs=2))
    assert [len(history) for history in histories] == [2, 2, 2, 2]


def test_networks_of_several_shapes_make_several_stacks(task: Data) -> None:
    models = [mlp([6, 4, 3]), mlp([6, 5, 3]), frozen(), mlp([6, 4, 3]), mlp([6, 5, 3])]
    config = TrainConfig(epochs=2)
    assert signature(models[0]) != signature(models[1])
    assert stacks(models, [task] * 5, [config] * 5) == [([0, 3], True), ([1, 4], True), ([2], False)]
    alone = copy.deepcopy(models)
    train_many(models, task, config)
    train_many(alone, task, config, stacked=False)
    for model, twin in zip(models, alone, strict=True):
        torch.testing.assert_close(model.state_dict(), twin.state_dict())


@pytest.mark.parametrize("shape", [(6, 1), (1, 6), (2, 3)])
def test_a_network_that_flattens_late_reads_its_samples_as_they_are(task: Data, shape: tuple[int, ...]) -> None:
    assert isinstance(task.train, Part)
    part = Part(task.train.x.view(-1, *shape), task.train.y)
    data = Data(name="", task=task.task, input_shape=shape, train=part, validation=part, test=part)
    model = nn.Sequential(nn.Linear(shape[1], 4), nn.Flatten(), nn.ReLU(), nn.Linear(4 * shape[0], 3))
    assert stackable(model) and not reads_flat(model, shape)
    assert len(train_many([model], data, TrainConfig(epochs=1))[0]) == 1


def test_members_may_share_samples_and_have_labels_of_their_own(task: Data) -> None:
    assert isinstance(task.train, Part)
    other = dataclasses.replace(task, train=Part(task.train.x, (task.train.y + 1) % 3))
    config = TrainConfig(epochs=3)
    _, _, difference = both_ways(networks(2), [task, other], [config, config])
    assert difference < 1e-5


def test_networks_that_share_a_parameter_are_refused(task: Data) -> None:
    one, other = mlp([6, 4, 3]), mlp([6, 4, 3])
    other[1] = one[1]
    for pair in ([one, one], [one, other]):
        with pytest.raises(ModelError, match="share a parameter"):
            train_many(pair, task, TrainConfig())


def test_a_stack_gives_what_its_members_give(task: Data) -> None:
    models = [model.eval() for model in networks(3, "gelu", batch_norm=True)]
    assert isinstance(task.test, Part)
    x = task.test.x.double()
    logits = NetworkStack(models).forward(x.T.expand(3, -1, -1), Pass(training=False))
    for member, model in enumerate(models):
        torch.testing.assert_close(logits[member].T, model(x))
