"""Learning from a teacher: the loss and its slope, alone and in a stack; and stretches of a training."""

from dataclasses import replace

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from topiarist import Data, TrainConfig, models, train, train_many
from topiarist.data import Part
from topiarist.errors import ModelError, SettingsError
from topiarist.models.copying import copied
from topiarist.models.ensemble import Ensemble
from topiarist.models.stacked import stackable
from topiarist.randomness import generator
from topiarist.tasks import Classification
from topiarist.training import Augmentation, Distillation


def make_network(hidden: int, seed: int) -> nn.Module:
    return models.mlp([4, hidden, 3], generator=generator(seed, "network")).double()


def states_close(first: nn.Module, second: nn.Module, *, within: float) -> bool:
    pairs = zip(first.state_dict().values(), second.state_dict().values(), strict=True)
    return all(torch.allclose(a, b, rtol=0, atol=within) for a, b in pairs)


@pytest.fixture
def task() -> Data:
    random = generator(0, "samples")
    x = torch.randn(90, 4, generator=random)
    y = (x[:, 0] > 0).long() + (x[:, 1] > 0).long()
    return Data.from_arrays(x.numpy(), y.numpy(), test_fraction=0.2, validation_fraction=0.0, scaling="zscore")


@pytest.mark.parametrize("settings", [Distillation(), Distillation(weight=1.0, temperature=1.0)])
def test_the_loss_is_that_of_the_paper_and_its_slope_that_of_autograd(settings: Distillation) -> None:
    random = generator(1, "logits")
    logits = torch.randn(3, 7, generator=random, dtype=torch.float64, requires_grad=True)
    teacher = torch.randn(3, 7, generator=random, dtype=torch.float64) * 5
    y = torch.randint(3, (7,), generator=random)
    losses, slope = Classification(("a", "b")).distilled(logits, teacher, y[None], **settings.model_dump())
    answers, t = torch.softmax(teacher.T / settings.temperature, 1), settings.temperature
    soft = functional.cross_entropy(logits.T / t, answers, reduction="none") * t**2
    hard = functional.cross_entropy(logits.T, y, reduction="none")
    assert torch.allclose(losses, (1 - settings.weight) * hard + settings.weight * soft)
    (expected,) = torch.autograd.grad(losses.sum(), logits)
    assert torch.allclose(slope, expected)


def test_a_stack_learns_from_its_teachers_as_each_would_alone(task: Data) -> None:
    config = TrainConfig(epochs=3, distillation=Distillation())
    configs = [config.model_copy(update={"seed": seed}) for seed in range(3)]
    teachers = [make_network(9, 10 + seed) for seed in range(3)]
    stacked, single = ([make_network(5, seed) for seed in range(3)] for _ in range(2))
    train_many(stacked, task, configs, teachers=teachers)
    train_many(single, task, configs, teachers=teachers, stacked=False)
    for one, other in zip(stacked, single, strict=True):
        assert states_close(one, other, within=1e-9)


class Noting(nn.Module):
    """A teacher that notes down what it was asked about."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network
        self.asked: list[Tensor] = []

    def forward(self, x: Tensor) -> Tensor:
        self.asked.append(x.clone())
        answers: Tensor = self.network(x)
        return answers


def shortened(task: Data, count: int) -> Data:
    assert isinstance(task.train, Part)
    return replace(task, train=Part(task.train.x[:count], task.train.y[:count]), validation=task.train)


def test_any_teacher_teaches_a_stack_as_it_would_teach_each_alone(task: Data) -> None:
    config = TrainConfig(epochs=12, batch_size=16, learning_rate=0.03, distillation=Distillation(), early_stopping=1)
    configs = [config.model_copy(update={"seed": seed}) for seed in range(3)]
    datas = [shortened(task, count) for count in (72, 33, 50)]
    plain = [make_network(9, 10 + seed) for seed in range(3)]
    twice = [Ensemble([copied(teacher), copied(teacher)]) for teacher in plain]
    assert all(map(stackable, plain)) and not any(map(stackable, twice))
    x = datas[0].train.x.double()  # type: ignore[union-attr]
    logits, other = plain[0](x), twice[0].eval()(x)
    assert torch.allclose((logits - other) - (logits - other)[:, :1], torch.zeros(1).double(), atol=1e-12)
    learned, histories = [], []
    for teachers, stacked in ((plain, True), (twice, True), (twice, False)):
        pupils = [make_network(5, seed) for seed in range(3)]
        trained = train_many(pupils, datas, configs, teachers=teachers, stacked=stacked)
        histories.append([len(history) for history in trained])
        learned.append(pupils)
    assert histories[0] == histories[1] == histories[2] and len(set(histories[0])) > 1
    for one, second, third in zip(*learned, strict=True):
        assert states_close(one, second, within=1e-9) and states_close(one, third, within=1e-9)


@pytest.mark.parametrize("stacked", [True, False])
def test_a_teacher_is_asked_once_about_each_sample(task: Data, stacked: bool) -> None:
    config = TrainConfig(epochs=4, batch_size=16, distillation=Distillation())
    teachers = [Noting(make_network(9, seed)) for seed in (10, 11)]
    datas = [shortened(task, 72), shortened(task, 33)]
    train_many([make_network(5, 0), make_network(5, 1)], datas, config, teachers=teachers, stacked=stacked)
    for teacher, data in zip(teachers, datas, strict=True):
        x = data.train.x.double()  # type: ignore[union-attr]
        checked, *asked = teacher.asked
        assert torch.equal(checked, x[:1]) and torch.equal(torch.cat(asked), x)


def test_a_teacher_is_asked_about_samples_as_the_pupil_sees_them(task: Data) -> None:
    config = TrainConfig(epochs=3, batch_size=16, distillation=Distillation(), augmentation=Augmentation(mixup=0.4))
    teacher, pupil = Noting(make_network(9, 10)), Noting(make_network(5, 0))
    train(pupil, task, config, teacher=teacher)
    assert isinstance(task.train, Part)
    seen = [x for x in teacher.asked if len(x) > 1]
    given = [x for x in pupil.asked if len(x) > 1][: len(seen)]
    assert sum(map(len, seen)) == 3 * len(task.train)
    assert all(map(torch.equal, seen, given))
    mixed = torch.cat(seen)[:, None] != task.train.x.double()
    assert bool(mixed.any(dim=2).all(dim=1).any())


@pytest.mark.parametrize("augmentation", [None, Augmentation(mixup=0.4)])
def test_a_teacher_may_have_numbers_of_another_type(task: Data, augmentation: Augmentation | None) -> None:
    config = TrainConfig(epochs=2, distillation=Distillation(), augmentation=augmentation)
    pupils = make_network(5, 0), make_network(5, 0)
    train(pupils[0], task, config, teacher=make_network(9, 10))
    train(pupils[1], task, config, teacher=make_network(9, 10).float())
    assert states_close(*pupils, within=1e-5) and not states_close(*pupils, within=0)


def test_a_small_network_comes_nearer_to_its_teacher(task: Data) -> None:
    teacher, pupil = make_network(20, 1), make_network(4, 2)
    train(teacher, task, TrainConfig(epochs=60, learning_rate=0.01))
    assert isinstance(task.train, Part)
    x = task.train.x.double()
    before = (pupil(x).softmax(1) - teacher(x).softmax(1)).abs().mean()
    kept = copied(teacher)
    train(
        pupil, task, TrainConfig(epochs=60, learning_rate=0.01, distillation=Distillation(weight=1.0)), teacher=teacher
    )
    after = (pupil(x).softmax(1) - teacher(x).softmax(1)).abs().mean()
    assert after < before / 2
    assert states_close(teacher, kept, within=0)


def test_teacher_and_settings_belong_together(task: Data) -> None:
    network = make_network(4, 0)
    with pytest.raises(SettingsError, match="give distillation"):
        train(network, task, TrainConfig(epochs=1), teacher=make_network(4, 1))
    with pytest.raises(SettingsError, match="give a teacher"):
        train(network, task, TrainConfig(epochs=1, distillation=Distillation()))
    with pytest.raises(ModelError, match="its own teacher"):
        train(network, task, TrainConfig(epochs=1, distillation=Distillation()), teacher=network)
    with pytest.raises(SettingsError, match="one teacher per network"):
        train_many([network], task, TrainConfig(epochs=1, distillation=Distillation()), teachers=[])


def test_a_stretch_ends_where_the_whole_was_and_goes_on_with_its_rates(task: Data) -> None:
    config = TrainConfig(epochs=6, learning_rate=0.01, schedule="cosine", optimizer="sgd")
    whole, parts = make_network(5, 0), make_network(5, 0)
    history = train(whole, task, config)
    early = train(parts, task, config.model_copy(update={"until_epoch": 2}))
    assert [epoch.number for epoch in early.epochs] == [1, 2]
    assert early.kept_epoch == 2
    late = train(parts, task, config.model_copy(update={"after_epoch": 2}))
    assert [epoch.learning_rate for epoch in (*early.epochs, *late.epochs)] == [
        epoch.learning_rate for epoch in history.epochs
    ]
    assert late.kept_epoch == 6
    assert states_close(whole, parts, within=1e-12)  # plain gradient descent remembers nothing


def test_a_stretch_lies_within_the_training() -> None:
    for stretch in ({"after_epoch": 7}, {"until_epoch": 7}, {"after_epoch": 4, "until_epoch": 3}):
        with pytest.raises(SettingsError, match="until_epoch must lie"):
            TrainConfig(epochs=6, **stretch)
