"""Smaller networks: channels in blocks, and no work done twice where folds differ in what they judge alone."""

from collections.abc import Callable
from typing import Any

import numpy
import pytest
import torch
from torch import nn

from tests.rightsizing.tasks import blobs, same_weights, shrunk, small_network, weights_of
from topiarist.data import Data
from topiarist.measurement.cost import count_macs
from topiarist.models import vgg
from topiarist.models.evaluation import count_parameters
from topiarist.randomness import array_generator
from topiarist.rightsizing import descending, making
from topiarist.rightsizing.baseline import Trained
from topiarist.rightsizing.folds import Fold, folds_of
from topiarist.rightsizing.making import MAKERS, Target, finetune, multiple_for
from topiarist.training import TrainConfig, train, train_many


def pictures(samples: int = 60) -> Data:
    random = array_generator(1, "pictures")
    labels = numpy.arange(samples) % 3
    return Data.from_arrays(random.normal(size=(samples, 1, 12, 12)) + labels[:, None, None, None], labels)


def target_of(model: nn.Module, data: Data, ratio: float) -> Target:
    sample = torch.zeros(1, *data.input_shape)
    limits: dict[Any, int] = {"parameters": count_parameters(model), "macs": count_macs(model, sample)}
    return Target(ratio, {measure: int(limit / ratio) for measure, limit in limits.items()})


def folds_with(model: nn.Module, data: Data) -> list[Fold]:
    datas = [*folds_of(data, "held out", 2, 0), data]
    return [Trained(model, (model,), None).fold(each, 0) for each in datas]


def counted(what: Callable[..., Any], calls: list[Any]) -> Callable[..., Any]:
    """Give the same function, which notes what it is called with."""

    def call(*given: Any, **named: Any) -> Any:
        calls.append(given)
        return what(*given, **named)

    return call


def convolutions() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(1, 32, 3, padding=1),
        nn.ReLU(),
        nn.Conv2d(32, 64, 3, padding=1),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(64, 3),
    )


@pytest.mark.parametrize(("capability", "block"), [("AVX2", 8), ("AVX512", 16), ("DEFAULT", 8)])
def test_channels_go_in_blocks(monkeypatch: pytest.MonkeyPatch, capability: str, block: int) -> None:
    monkeypatch.setattr(torch.backends.cpu, "get_cpu_capability", lambda: capability)
    data, model = pictures(), convolutions()
    fold = folds_with(model, data)[-1]
    target = target_of(model, data, 3)
    assert multiple_for(fold, target) == block
    made = MAKERS["distinctiveness"](fold, target, 1).model
    widths = [layer.out_channels for layer in made.modules() if isinstance(layer, nn.Conv2d)]
    assert all(width % block == 0 for width in widths) and widths != [32, 64]
    assert count_parameters(made) <= target.limits["parameters"]


def test_blocks_become_finer_where_they_leave_no_choice() -> None:
    data, model = pictures(), convolutions()
    fold = folds_with(model, data)[-1]
    found = [multiple_for(fold, target_of(model, data, ratio)) for ratio in (2, 20, 60, 1e9)]
    assert found == sorted(found, reverse=True) and found[0] >= 8 and found[-1] == 1
    assert multiple_for(folds_with(small_network(), blobs())[-1], Target(1e9, {"parameters": 0, "macs": 0})) == 1


def test_what_is_the_same_training_is_done_once(monkeypatch: pytest.MonkeyPatch) -> None:
    model, data = small_network(), blobs()
    train(model, data, TrainConfig(epochs=2))
    folds = folds_with(model, data)
    made = MAKERS["distinctiveness"](folds[-1], target_of(model, data, 3), 1)
    calls: list[Any] = []
    monkeypatch.setattr(making, "train_many", counted(train_many, calls))
    one, two, other = finetune([made] * 3, folds, 2, [0, 0, 1])
    assert [len(networks) for networks, *_ in calls] == [2] and one is two
    assert not same_weights(weights_of(one.model), weights_of(other.model))
    (alone,) = finetune([made], folds[:1], 2, [0])
    for name, values in weights_of(alone.model).items():
        torch.testing.assert_close(weights_of(one.model)[name], values)


@pytest.mark.usefixtures("small_plan")
def test_a_trained_network_is_cut_once_for_all_folds(monkeypatch: pytest.MonkeyPatch) -> None:
    data, model, calls = blobs(apart=6.0), small_network(), list[Any]()
    train(model, data, TrainConfig(epochs=10, learning_rate=0.01))
    monkeypatch.setattr(descending, "MAKERS", {"distinctiveness": counted(MAKERS["distinctiveness"], calls)})
    found = shrunk(data, model, max_drop=0.1)
    ratios = [target.ratio for _, target, _ in calls]
    assert found.record["plan"]["design"] == "held out" and ratios == sorted(set(ratios))


@pytest.mark.usefixtures("small_plan")
def test_convolutions_are_rightsized_one_by_one() -> None:
    found = shrunk(pictures(120), lambda: vgg(1, 1, 0, 1, input_shape=(1, 12, 12), classes=3), max_drop=0.2)
    assert found.record["plan"]["trainings"] == 1
    assert all(told["curve"] for told in found.record["networks"])
