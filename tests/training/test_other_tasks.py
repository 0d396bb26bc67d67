"""Numbers and labels, weights and losses: stacked training equals training one by one, and weights are repetitions."""

from dataclasses import replace
from typing import Any

import numpy
import pytest
import torch
from torch import Tensor, nn

from topiarist import TrainConfig, measure, models, train
from topiarist.data import Data, Part
from topiarist.errors import DataError, ModelError, SettingsError, TopiaristWarning
from topiarist.models.card import card_of
from topiarist.randomness import generator
from topiarist.training import Distillation, train_many

pytestmark = pytest.mark.filterwarnings("ignore:y0, y1:topiarist.errors.TopiaristWarning")
RANDOM = numpy.random.default_rng(5)
X = RANDOM.normal(size=(90, 4))
Y = {
    "numbers": numpy.stack([X[:, 0] * X[:, 1], 200 + 30 * X[:, 2]], axis=1),
    "labels": (X[:, :2] + 0.3 * RANDOM.normal(size=(90, 2)) > 0.2).astype(int),
    "classes": (X[:, 0] > 0).astype(int) + (X[:, 1] > 0.5),
}
LOSSES = {"numbers": ("squared", "absolute", "huber:0.5", "quantile:0.8"), "labels": ("cross-entropy", "focal")}
CASES = [(kind, loss, weighted) for kind, losses in LOSSES.items() for loss in losses for weighted in (False, True)]


def made(kind: str, *, weighted: bool = False, scaling: Any = "auto") -> Data:
    weights = numpy.random.default_rng(1).uniform(0.0, 3.0, 90) if weighted else None
    return Data.from_arrays(X, Y[kind], sample_weight=weights, scaling=scaling)


def network(data: Data, number: int = 0) -> nn.Module:
    return models.mlp([4, 6, data.task.outputs], "tanh", generator=generator(number, "network"))


@pytest.mark.parametrize(("kind", "loss", "weighted"), [*CASES, ("classes", "focal", True), ("classes", None, True)])
def test_a_stack_learns_what_each_network_learns_alone(kind: str, loss: str | None, weighted: bool) -> None:
    folds = made(kind, weighted=weighted).folds(3, validation_fraction=0.2)
    config = TrainConfig(epochs=6, batch_size=16, learning_rate=0.01, loss=loss, early_stopping=4)
    together, alone = ([network(folds[0], number) for number in range(3)] for _ in range(2))
    histories = [train_many(nets, folds, config, stacked=nets is together) for nets in (together, alone)]
    for one, two in zip(together, alone, strict=True):
        for left, right in zip(one.parameters(), two.parameters(), strict=True):
            assert torch.allclose(left, right, atol=1e-5)
    for first, second in zip(*histories, strict=True):
        assert first.epochs[-1].validation_loss == pytest.approx(second.epochs[-1].validation_loss, rel=1e-4)
        assert (first.epochs[-1].validation_metric is None) == (kind == "classes")


@pytest.mark.parametrize("kind", ["numbers", "labels"])
def test_a_stack_distils_as_each_network_alone(kind: str) -> None:
    folds = made(kind).folds(2)
    config = TrainConfig(epochs=4, batch_size=16, distillation=Distillation())
    teachers = [network(folds[0], number) for number in (5, 6)]
    together, alone = ([network(folds[0], number) for number in range(2)] for _ in range(2))
    for nets in (together, alone):
        train_many(nets, folds, config, teachers=teachers, stacked=nets is together)
    for one, two in zip(together, alone, strict=True):
        for left, right in zip(one.parameters(), two.parameters(), strict=True):
            assert torch.allclose(left, right, atol=1e-5)


@pytest.mark.parametrize("kind", ["numbers", "labels", "classes"])
@pytest.mark.parametrize("stacked", [True, False])
def test_a_weight_of_two_is_the_sample_twice(kind: str, stacked: bool) -> None:
    data = made(kind)
    assert isinstance(data.train, Part)
    count = len(data.train)
    weights = torch.arange(count) % 3
    rows = torch.arange(count).repeat_interleave(weights)
    weighed = replace(data, train=replace(data.train, weights=weights.float()))
    repeated = replace(data, train=data.train.take(rows))
    config = TrainConfig(epochs=5, batch_size=1000, optimizer="sgd", learning_rate=0.1)
    found = [network(data), network(data)]
    for net, part in zip(found, (weighed, repeated), strict=True):
        train_many([net], part, config, stacked=stacked)
    for left, right in zip(found[0].parameters(), found[1].parameters(), strict=True):
        assert torch.allclose(left, right, atol=1e-6)


def test_the_unit_of_a_number_changes_nothing() -> None:
    small, large = (Data.from_arrays(X, 1e-3 * Y["numbers"][:, :1], scaling="auto") for _ in range(2))
    large = Data.from_arrays(X, 7e5 + 1e6 * Y["numbers"][:, :1], scaling="auto")
    nets = [network(small), network(small)]
    for net, data in zip(nets, (small, large), strict=True):
        train(net, data, TrainConfig(epochs=5))
    errors = [measure(net, data, latency=False) for net, data in zip(nets, (small, large), strict=True)]
    assert errors[1].quality["rmse"] == pytest.approx(1e9 * errors[0].quality["rmse"], rel=1e-3)
    assert errors[1].quality["r2"] == pytest.approx(errors[0].quality["r2"], abs=1e-3)
    with pytest.raises(ModelError, match="there is no accuracy of this task: measured are rmse, mae, r2"):
        _ = errors[0].accuracy


def test_a_quantile_is_one() -> None:
    x = numpy.random.default_rng(0).normal(size=(800, 2))
    data = Data.from_arrays(x, numpy.random.default_rng(1).exponential(size=800), scaling="auto")
    net = models.mlp([2, 1])
    train(net, data, TrainConfig(epochs=30, loss="quantile:0.9", learning_rate=0.02))
    assert isinstance(data.train, Part)
    below = (data.train.y <= net(data.train.x)).double().mean()
    assert 0.87 < float(below) < 0.93
    assert card_of(net).training == {"epochs": 30, "loss": "quantile:0.9", "learning_rate": 0.02}


def test_a_loss_of_your_own() -> None:
    data, (plain, own, mean) = made("numbers"), (network(made("numbers")) for _ in range(3))

    def squared(outputs: Tensor, targets: Tensor) -> Tensor:
        return (outputs - targets).square().mean(dim=1)

    train(plain, data, TrainConfig(epochs=3))
    train(own, data, TrainConfig(epochs=3), loss=squared)
    train(mean, data, TrainConfig(epochs=3), loss=lambda outputs, targets: squared(outputs, targets).mean())
    for parts in zip(plain.parameters(), own.parameters(), mean.parameters(), strict=True):
        assert torch.allclose(parts[0], parts[1], atol=1e-6) and torch.allclose(parts[0], parts[2], atol=1e-6)
    training = card_of(own).training
    assert training is not None and training["loss"] == "own"
    with pytest.raises(SettingsError, match=r"must return a tensor \(\) or \(16,\)"):
        train(own, data, TrainConfig(epochs=1, batch_size=16), loss=lambda outputs, targets: outputs)


@pytest.mark.parametrize(
    ("kind", "settings", "message"),
    [
        ("numbers", {"loss": "focal"}, "the loss focal is for classes and labels, and these are numbers"),
        ("classes", {"loss": "squared"}, "the loss squared is for numbers, and these are classes"),
        (
            "numbers",
            {"monitor": "accuracy"},
            "'accuracy' is a metric of classes and labels; metrics of numbers are rmse",
        ),
        ("classes", {"monitor": "rmse"}, "'rmse' is a metric of numbers; metrics of classes are accuracy"),
        ("labels", {"class_weights": "balanced"}, "class weights are for classes; what is predicted is 2 labels"),
    ],
)
def test_what_does_not_go_together_is_one_line(kind: str, settings: dict[str, Any], message: str) -> None:
    data = made(kind)
    with pytest.raises(SettingsError, match=message):
        train(network(data), data, TrainConfig(epochs=1, **settings))


def test_a_network_of_another_width_is_one_line() -> None:
    with pytest.raises(ModelError, match="must return 2 numbers, one per target of arrays; it returns 3"):
        train(models.mlp([4, 3]), made("numbers"))
    wrong = made("labels")
    assert isinstance(wrong.train, Part)
    with pytest.raises(DataError, match="labels must be 0 or 1; found 2"):
        train(network(wrong), replace(wrong, train=replace(wrong.train, y=wrong.train.y + 1)))


def test_the_note_says_what_several_columns_are() -> None:
    with pytest.warns(TopiaristWarning, match="y0, y1: read as labels"):
        assert Data.from_arrays(X, Y["labels"]).notes
