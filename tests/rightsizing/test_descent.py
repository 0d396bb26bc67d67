"""Smaller networks: channels in blocks, and no work done twice where folds differ in what they judge alone."""

from collections.abc import Callable
from typing import Any

import numpy
import pytest
import torch
from torch import nn

from tests.rightsizing.tasks import blobs, same_weights, shrunk, small_network, weights_of
from topiarist.data import Data
from topiarist.measurement.footprint import footprint
from topiarist.methods.distinctiveness import channel_multiple
from topiarist.methods.registry import rightsizing_methods
from topiarist.models import card_of, vgg
from topiarist.models.evaluation import count_parameters
from topiarist.randomness import array_generator
from topiarist.rightsizing import finetuning
from topiarist.rightsizing.baseline import fold_with
from topiarist.rightsizing.finetuning import finetune
from topiarist.rightsizing.folds import Fold, folds_of
from topiarist.rightsizing.making import Objective, Workshop
from topiarist.rightsizing.planning import EFFORTS, full_plan
from topiarist.training import TrainConfig, train, train_many


def pictures(samples: int = 60) -> Data:
    random = array_generator(1, "pictures")
    labels = numpy.arange(samples) % 3
    return Data.from_arrays(
        random.normal(size=(samples, 1, 12, 12)) + labels[:, None, None, None], labels, scaling="zscore"
    )


def folds_with(model: nn.Module, data: Data) -> list[Fold]:
    datas = [*folds_of(data, "held out", 2, 0), data]
    return [fold_with(each, (model,), model, 0) for each in datas]


def shop_of(model: nn.Module, data: Data, **options: Any) -> Workshop:
    return Workshop(
        folds=folds_with(model, data),
        plan=full_plan(EFFORTS["quick"], (), design="held out", folds=2, trained=True),
        whole=footprint(model, torch.zeros(1, *data.input_shape), latency="objective" in options),
        **options,
    )


def counted(what: Callable[..., Any], calls: list[Any]) -> Callable[..., Any]:
    """Return the same function, which notes what it is called with."""

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
    down = shop_of(convolutions(), pictures())
    fold = down.folds[-1]
    assert channel_multiple(fold.job, down.limits(3)) == block
    made = down.make("distinctiveness", fold, 3).model
    widths = [layer.out_channels for layer in made.modules() if isinstance(layer, nn.Conv2d)]
    assert all(width % block == 0 for width in widths) and widths != [32, 64]
    assert count_parameters(made) <= down.limits(3)["parameters"]


def test_blocks_become_finer_where_they_leave_no_choice() -> None:
    down = shop_of(convolutions(), pictures())
    found = [channel_multiple(down.folds[-1].job, down.limits(ratio)) for ratio in (2, 20, 60, 1e9)]
    assert found == sorted(found, reverse=True) and found[0] >= 8 and found[-1] == 1
    plain = folds_with(small_network(), blobs())[-1]
    assert channel_multiple(plain.job, {"parameters": 0, "macs": 0}) == 1


@pytest.mark.slow
def test_what_is_the_same_training_is_done_once(monkeypatch: pytest.MonkeyPatch) -> None:
    model, data = small_network(), blobs()
    train(model, data, TrainConfig(epochs=2))
    down = shop_of(model, data)
    folds, made = down.folds, down.make("distinctiveness", down.folds[-1], 3)
    calls: list[Any] = []
    monkeypatch.setattr(finetuning, "train_many", counted(train_many, calls))
    one, two, other = finetune([made] * 3, folds, 2, [0, 0, 1])
    assert [len(networks) for networks, *_ in calls] == [2] and one is two
    assert not same_weights(weights_of(one.model), weights_of(other.model))
    (alone,) = finetune([made], folds[:1], 2, [0])
    for name, values in weights_of(alone.model).items():
        torch.testing.assert_close(weights_of(one.model)[name], values)


@pytest.mark.slow
@pytest.mark.parametrize("method", rightsizing_methods())
@pytest.mark.parametrize("ratio", [2, 5])
def test_every_method_makes_a_network_of_the_size(method: str, ratio: int) -> None:
    model, data = small_network(), blobs(apart=6.0)
    train(model, data, TrainConfig(epochs=5, learning_rate=0.01))
    down = shop_of(model, data)
    made = down.make(method, down.folds[-1], ratio)
    found = footprint(made.model, torch.zeros(1, 4))
    limits = down.limits(ratio)
    assert 0 < found.parameters <= limits["parameters"] and 0 < found.macs <= limits["macs"]
    assert made.reasons and card_of(model).bits is None


@pytest.mark.parametrize("objective", ["parameters", "macs", "file"])
def test_an_objective_alone_becomes_smaller(objective: Objective) -> None:
    model = convolutions()
    shop = shop_of(model, pictures(), objective=objective)
    measure = {"file": "file_kb"}.get(objective, objective)
    found = footprint(shop.make("distinctiveness", shop.folds[-1], 3).model, torch.zeros(1, 1, 12, 12))
    whole = {name: getattr(shop.whole, name) for name in ("parameters", "macs", "file_kb")}
    assert 0.2 * whole[measure] < getattr(found, measure) <= whole[measure] / 3
    if objective != "file":
        assert set(shop.limits(3)) == {objective}


@pytest.mark.slow
def test_what_is_trained_again_has_a_file_of_the_baselines_kind() -> None:
    model, data = small_network(), blobs()
    down = shop_of(model, data)
    made = down.make("magnitude", down.folds[-1], 2)
    (tuned,) = finetune([made], down.folds[-1:], 1, [0])
    assert (card_of(made.model).bits, card_of(tuned.model).bits) == (32, None)


@pytest.mark.slow
@pytest.mark.usefixtures("small_plan")
def test_a_trained_network_is_cut_once_for_all_folds(monkeypatch: pytest.MonkeyPatch) -> None:
    data, model, calls = blobs(apart=6.0), small_network(), list[Any]()
    train(model, data, TrainConfig(epochs=10, learning_rate=0.01))
    monkeypatch.setattr(Workshop, "make", counted(Workshop.make, calls))
    found = shrunk(data, model, max_drop=0.1)
    ratios = [ratio for _, _, _, ratio in calls]
    assert found.record.plan.design == "held out" and ratios == sorted(set(ratios))


@pytest.mark.slow
@pytest.mark.usefixtures("small_plan")
def test_convolutions_are_rightsized_one_by_one() -> None:
    found = shrunk(pictures(120), lambda: vgg(1, 1, 0, 1, input_shape=(1, 12, 12), classes=3), max_drop=0.2)
    assert found.record.plan.trainings == 1
    assert all(told.curve for told in found.record.networks if told.method is not None)
