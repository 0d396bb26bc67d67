"""Networks of several widths trained as one stack equal networks trained one by one."""

import copy
from collections.abc import Sequence

import pytest
import torch
from torch import Tensor, nn

from topiarist.data import Data, Part
from topiarist.errors import ModelError, SettingsError
from topiarist.models import card_of, mlp
from topiarist.models.stacked import NetworkStack
from topiarist.randomness import generator
from topiarist.training import Augmentation, Distillation, History, Pruning, TrainConfig, train_many
from topiarist.training.engines.batching import make_batches
from topiarist.training.engines.stacked import StackedEngine
from topiarist.training.preparation import stacks

WIDTHS = [(5, 9), (8, 2), (1, 4)]
OPTIMIZERS: dict[str, dict[str, object]] = {
    "sgd": {"optimizer": "sgd", "momentum": 0.9, "nesterov": True, "clip_norm": 0.5},
    "adam": {"optimizer": "adam", "weight_decay": 0.01, "weight_decay_on": "all"},
    "adamw": {"optimizer": "adamw", "weight_decay": 0.1, "clip_norm": 0.1, "clip_norm_over": "tensor"},
    "rmsprop": {"optimizer": "rmsprop", "momentum": 0.5, "clip_value": 0.1},
}


def network(*hidden: int, activation: str = "relu", seed: int = 0, **settings: object) -> nn.Module:
    random = generator(seed, "weights", *map(str, hidden))
    return mlp([6, *hidden, 3], activation, generator=random, **settings).double()  # type: ignore[arg-type]


def shortened(data: Data, count: int) -> Data:
    assert isinstance(data.train, Part) and isinstance(data.validation, Part)
    part = Part(data.train.x[:count], data.train.y[:count])
    return Data(
        name="short",
        task=data.task,
        input_shape=data.input_shape,
        train=part,
        validation=data.validation,
        test=part,
    )


def both_ways(
    models: Sequence[nn.Module],
    datas: Sequence[Data],
    configs: Sequence[TrainConfig],
    teachers: Sequence[nn.Module] | None = None,
) -> tuple[list[History], float]:
    """Train networks padded, copies one by one; give the histories and the largest difference in any number."""
    alone = copy.deepcopy(list(models))
    together = train_many(models, datas, configs, teachers=teachers, padded=True)
    singly = train_many(alone, datas, configs, teachers=teachers, stacked=False)
    for model, twin, one, other in zip(models, alone, together, singly, strict=True):
        assert card_of(model) == card_of(twin) and not any(module.training for module in model.modules())
        assert (len(one), one.kept_epoch, one.stopped) == (len(other), other.kept_epoch, other.stopped)
        losses = [[epoch.train_loss for epoch in history.epochs] for history in (one, other)]
        assert losses[0] == pytest.approx(losses[1], abs=1e-9)
    pairs = [
        (one, other)
        for model, twin in zip(models, alone, strict=True)
        for one, other in zip(model.state_dict().values(), twin.state_dict().values(), strict=True)
    ]
    return together, max((one - other).abs().max().item() for one, other in pairs)


def padded_groups(
    models: Sequence[nn.Module], datas: Sequence[Data], configs: Sequence[TrainConfig]
) -> list[list[int]]:
    """Return the networks that padding lets train as one."""
    return [group for group, _ in stacks(models, datas, configs, padded=True) if len(group) > 1]


@pytest.mark.parametrize("activation", ["relu", "gelu", "tanh"])
@pytest.mark.parametrize("practice", OPTIMIZERS)
def test_padding_stays_zero(task: Data, practice: str, activation: str) -> None:
    models = [network(*widths, activation=activation) for widths in WIDTHS]
    config = TrainConfig.model_validate({"epochs": 3, "learning_rate": 0.02, **OPTIMIZERS[practice]})
    engine = StackedEngine(models, [config] * 3, task.task)
    batches = make_batches(models, [task] * 3, [config] * 3)
    for epoch in (1, 2, 3):
        with engine.epoch(epoch):
            for batch in batches.epoch(epoch):
                engine.step(batch, [0.02] * 3)
    for name, stacked in engine.stack.parameters.items():
        for member, model in enumerate(models):
            now, value = stacked[member].clone(), model.get_parameter(name)
            own = tuple(map(slice, value.shape))
            assert not torch.equal(now[own], value)
            now[own] = 0
            assert not now.any()


def test_the_stack_keeps_its_width_when_the_widest_leave(task: Data) -> None:
    models = [network(*widths) for widths in WIDTHS]
    engine = StackedEngine(models, [TrainConfig()] * 3, task.task)
    (batch,) = make_batches(models, [task] * 3, [TrainConfig()] * 3).epoch(1, 0, 1)
    with engine.epoch(1):
        engine.step(batch, [0.01] * 3)
    before = {name: value[2].clone() for name, value in engine.stack.views(engine.optimizer.state["mean"]).items()}
    engine.continue_with([2])
    after = {name: value[0] for name, value in engine.stack.views(engine.optimizer.state["mean"]).items()}
    assert all(torch.equal(after[name], value) for name, value in before.items())
    assert NetworkStack(models).shapes == engine.stack.shapes


@pytest.mark.parametrize("practice", OPTIMIZERS)
def test_padded_equals_one_by_one(task: Data, practice: str) -> None:
    datas = [shortened(task, count) for count in (65, 32, 90)]
    configs = [
        TrainConfig.model_validate(
            {"epochs": 4, "batch_size": 16, **OPTIMIZERS[practice], "seed": n, "learning_rate": r}
        )
        for n, r in enumerate((0.01, 0.002, 0.02))
    ]
    models = [network(*widths) for widths in WIDTHS]
    assert padded_groups(models, datas, configs) == [[0, 1, 2]]
    _, difference = both_ways(models, datas, configs)
    assert difference < 1e-9


def test_padded_networks_learn_from_their_teachers_and_stop_by_themselves(task: Data) -> None:
    config = TrainConfig(
        epochs=15, batch_size=32, learning_rate=0.02, distillation=Distillation(), early_stopping=1, monitor="accuracy"
    )
    configs = [config.model_copy(update={"seed": number}) for number in range(3)]
    teachers = [network(12, seed=7), network(4, 4, seed=8, batch_norm=True), network(5, 9, seed=9)]
    datas = [task, shortened(task, 70), shortened(task, 33)]
    histories, difference = both_ways([network(*widths) for widths in WIDTHS], datas, configs, teachers)
    assert difference < 1e-9 and len({len(history) for history in histories}) > 1


class Own(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(6, 3).double()
        nn.init.constant_(self.layer.weight, 0.1)

    def forward(self, x: Tensor) -> Tensor:
        given: Tensor = self.layer(x)
        return given


def test_a_mixed_list_is_padded_where_it_can_be_and_trained_all_the_same(task: Data) -> None:
    models = [
        network(5),
        network(5, activation="sigmoid"),
        network(4, batch_norm=True),
        network(7, dropout=0.3),
        network(8),
        Own(),
        network(6, 4),
        network(3, activation="tanh"),
        network(9, activation="sigmoid"),
        network(6, activation="tanh"),
        network(2),
    ]
    configs = [*(TrainConfig(epochs=2, seed=number) for number in range(len(models) - 1)), TrainConfig(epochs=3)]
    assert padded_groups(models, [task] * len(models), configs) == [[0, 4], [7, 9]]
    _, difference = both_ways(models, [task] * len(models), configs)
    assert difference < 1e-7  # of the norm's averages, which a stack rounds otherwise


@pytest.mark.parametrize(
    "settings", [{"pruning": Pruning(sparsity=0.5, schedule="constant")}, {"augmentation": Augmentation(mixup=0.2)}]
)
def test_what_is_trained_alone_is_not_padded(task: Data, settings: dict[str, object]) -> None:
    config = TrainConfig.model_validate({"epochs": 2, **settings})
    models = [network(*widths) for widths in WIDTHS]
    assert padded_groups(models, [task] * 3, [config] * 3) == []
    _, difference = both_ways(models, [task] * 3, [config] * 3)
    assert difference == 0
    if config.pruning is not None:
        zeros = [int((model.hidden0.weight == 0).sum()) for model in models]  # type: ignore[union-attr]
        assert zeros == [6 * first // 2 for first, _ in WIDTHS]


def test_what_is_refused_is_refused_padded_too(task: Data) -> None:
    one, other = network(5), network(8)
    config, taught = TrainConfig(epochs=1), TrainConfig(epochs=1, distillation=Distillation())
    with pytest.raises(ModelError, match="share a parameter"):
        train_many([one, one], [task] * 2, [config] * 2, padded=True)
    with pytest.raises(ModelError, match="its own teacher"):
        train_many([one, other], [task] * 2, [taught] * 2, teachers=[one, other], padded=True)
    with pytest.raises(SettingsError, match="found 2 networks, 1 data sets"):
        train_many([one, other], [task], [config] * 2, padded=True)
