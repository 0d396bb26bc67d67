"""After the cut: what is trained, with which rates, and from which weights."""

from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from tests.methods.tasks import answers, data_for, perceptron, same_state, state_of, widths_of
from topiarist import load, save
from topiarist.data import Data
from topiarist.errors import ModelError, SettingsError
from topiarist.methods import Distinctiveness, FineTuning, Rewinding, resize
from topiarist.methods.retraining import rewind
from topiarist.models import attach, card_of
from topiarist.surgery import Merge, merge_units, plan_of, remove
from topiarist.training import Distillation, History, TrainConfig, train

pytestmark = pytest.mark.slow

HALF = Distinctiveness(keep_fraction=0.5)
ORIGINAL = TrainConfig(epochs=6, batch_size=20, learning_rate=0.01, schedule="one-cycle", seed=3)


@pytest.fixture
def data() -> Data:
    return data_for(perceptron(5, 6, 3, seed=9), 5)


def trained(data: Data, config: TrainConfig = ORIGINAL) -> tuple[nn.Module, History]:
    model = perceptron(5, 10, 8, 3)
    return model, train(model, data, config)


@pytest.mark.parametrize("teacher", [None, Distillation()])
@pytest.mark.parametrize("kind", ["fine-tuning", "rewinding"])
def test_only_the_copy_is_trained(data: Data, kind: str, teacher: Distillation | None) -> None:
    model, _ = trained(data)
    model.train()
    state, card = state_of(model), card_of(model)
    again = (
        FineTuning(epochs=1, distillation=teacher)
        if kind == "fine-tuning"
        else Rewinding(epoch=5, distillation=teacher)
    )
    cut = resize(model, data, HALF, latency=False).model
    outcome = resize(model, data, HALF, retraining=again, latency=False)
    assert same_state(model, state) and card_of(model) == card
    assert all(module.training for module in model.modules())
    assert all(parameter.grad is None for parameter in model.parameters())
    assert widths_of(outcome.model) == widths_of(cut)
    assert not same_state(outcome.model, state_of(cut))
    assert [len(history) for history in outcome.histories] == [1]


def test_what_the_uncut_network_answers_makes_a_difference(data: Data) -> None:
    model, _ = trained(data)
    plain, taught = (
        resize(model, data, HALF, retraining=FineTuning(epochs=2, distillation=teacher), latency=False).model
        for teacher in (None, Distillation(weight=1.0))
    )
    assert not same_state(plain, state_of(taught))


def test_with_the_teacher_alone_labels_do_not_matter(data: Data) -> None:
    model, _ = trained(data)
    again = FineTuning(epochs=2, distillation=Distillation(weight=1.0))
    wrong: Any = replace(data.train, y=data.train.y.roll(1))  # type: ignore[union-attr, arg-type]
    first, second = (
        resize(model, given, HALF, retraining=again, latency=False).model
        for given in (data, replace(data, train=wrong))
    )
    assert torch.allclose(answers(first, data.train.x), answers(second, data.train.x), atol=1e-5)  # type: ignore[union-attr]


@pytest.mark.parametrize("schedule", ["one-cycle", "cosine", "exponential", "constant"])
@pytest.mark.parametrize("epoch", [0, 2, 5])
def test_rewinding_repeats_the_rates_from_that_epoch_on(data: Data, schedule: Any, epoch: int) -> None:
    model, history = trained(data, TrainConfig(**{**ORIGINAL.model_dump(), "schedule": schedule}))
    outcome = resize(model, data, HALF, retraining=Rewinding(epoch=epoch), latency=False)
    (again,) = outcome.histories
    assert [(step.number, step.learning_rate) for step in again.epochs] == [
        (step.number, step.learning_rate) for step in history.epochs[epoch:]
    ]


def test_rewinding_without_a_cut_is_going_on_from_those_weights(data: Data) -> None:
    """Order of samples, noise and rates are those of the original training."""
    model, _ = trained(data)
    outcome = resize(model, data, Distinctiveness(), retraining=Rewinding(epoch=4), latency=False)
    alone = deepcopy(model)
    train(alone, data, TrainConfig(**{**ORIGINAL.model_dump(), "after_epoch": 4}))
    assert same_state(outcome.model, state_of(alone))


def test_the_original_training_can_be_given(data: Data) -> None:
    model, _ = trained(data)
    remembered = resize(model, data, HALF, retraining=Rewinding(epoch=3), latency=False)
    attach(model, replace(card_of(model), training=None))
    given = resize(model, data, HALF, retraining=Rewinding(epoch=3, training=ORIGINAL), latency=False)
    assert same_state(remembered.model, state_of(given.model))
    with pytest.raises(SettingsError, match="does not remember it"):
        resize(model, data, HALF, retraining=Rewinding(epoch=3), latency=False)


@pytest.mark.slow
def test_the_original_training_is_remembered_in_files_and_after_the_cut(data: Data, tmp_path: Path) -> None:
    model, _ = trained(data)
    again = load(save(model, tmp_path / "whole.safetensors", data=data))
    assert card_of(again).training == card_of(model).training
    first, second = (
        resize(network, data, HALF, retraining=Rewinding(epoch=3), latency=False).model for network in (model, again)
    )
    assert same_state(first, state_of(second))
    for step in (FineTuning(epochs=1), Rewinding(epoch=5)):
        small = resize(model, data, HALF, retraining=step, latency=False).model
        loaded = load(save(small, tmp_path / "small.safetensors"))
        assert card_of(loaded).training == card_of(model).training != None  # noqa: E711


def test_weights_go_back_to_those_of_the_early_network(data: Data) -> None:
    early: Any = perceptron(5, 10, 8, 3)
    train(early, data, TrainConfig(**{**ORIGINAL.model_dump(), "until_epoch": 2}))
    model, _ = trained(data)
    cut = remove(model, data.train.x[:2], units={"hidden0": [1, 4], "hidden1": [0, 7]}, calibration=data.train.x)  # type: ignore[union-attr]
    state = state_of(early)
    network: Any = rewind(model, cut, early)
    first, second = [0, 2, 3, 5, 6, 7, 8, 9], [1, 2, 3, 4, 5, 6]
    assert torch.equal(network.hidden0.weight, early.hidden0.weight[first])
    assert torch.equal(network.hidden0.bias, early.hidden0.bias[first])
    assert torch.equal(network.hidden1.weight, early.hidden1.weight[second][:, first])
    assert torch.equal(network.hidden1.bias, early.hidden1.bias[second])
    assert torch.equal(network.output.weight, early.output.weight[:, second])
    assert torch.equal(network.output.bias, early.output.bias)
    assert same_state(early, state) and plan_of(network) == plan_of(cut)


def test_biases_that_the_cut_brought_are_zero_at_first() -> None:
    whole: Any = nn.Sequential(nn.Linear(4, 5), nn.Sigmoid(), nn.Linear(5, 2, bias=False)).eval()
    merge = Merge(unit=3, into=1, scale=-1.0, shift=1.0)
    cut: Any = merge_units(whole, torch.zeros(2, 4), space="0", merges=[merge])
    assert cut[2].bias is not None
    network: Any = rewind(whole, cut, deepcopy(whole))
    assert torch.equal(network[2].bias, torch.zeros(2))
    assert torch.equal(network[2].weight, whole[2].weight[:, [0, 1, 2, 4]])


def test_weight_rewinding_repeats_the_training_from_there(data: Data) -> None:
    early, (model, _) = perceptron(5, 10, 8, 3), trained(data)
    train(early, data, TrainConfig(**{**ORIGINAL.model_dump(), "until_epoch": 2}))
    outcome = resize(model, data, HALF, retraining=Rewinding(epoch=2, weights=True), early=early, latency=False)
    assert [len(history) for history in outcome.histories] == [4]
    whole = resize(
        model, data, Distinctiveness(), retraining=Rewinding(epoch=2, weights=True), early=early, latency=False
    )
    expected = deepcopy(early)
    train(expected, data, TrainConfig(**{**ORIGINAL.model_dump(), "after_epoch": 2}))
    assert same_state(whole.model, state_of(expected))


def test_an_early_network_and_weight_rewinding_need_each_other(data: Data) -> None:
    model, _ = trained(data)
    for again, early in (
        (Rewinding(epoch=2, weights=True), None),
        (Rewinding(epoch=2), model),
        (FineTuning(), model),
        (None, model),
    ):
        with pytest.raises(SettingsError, match="need each other"):
            resize(model, data, HALF, retraining=again, early=early, latency=False)


def test_an_early_network_of_another_structure_is_refused(data: Data) -> None:
    model, _ = trained(data)
    again = Rewinding(epoch=2, weights=True)
    for other in (perceptron(5, 10, 7, 3), perceptron(5, 12, 8, 3), perceptron(5, 10, 3)):
        with pytest.raises(ModelError, match="not of the structure"):
            resize(model, data, HALF, retraining=again, early=other, latency=False)


def test_an_epoch_beyond_the_training_is_refused(data: Data) -> None:
    model, _ = trained(data)
    for epoch in (6, 7):
        with pytest.raises(SettingsError, match=f"cannot continue from epoch {epoch}"):
            resize(model, data, HALF, retraining=Rewinding(epoch=epoch), latency=False)
    with pytest.raises(SettingsError, match="greater than or equal to 0"):
        Rewinding(epoch=-1)


def test_a_network_that_was_cut_before_can_be_rewound(data: Data) -> None:
    whole, _ = trained(data)
    model = remove(whole, data.train.x[:2], units={"hidden0": [0, 3]})  # type: ignore[union-attr]
    early = remove(perceptron(5, 10, 8, 3), data.train.x[:2], units={"hidden0": [0, 3]})  # type: ignore[union-attr]
    outcome = resize(model, data, HALF, retraining=Rewinding(epoch=2, weights=True), early=early, latency=False)
    assert widths_of(outcome.model) == {"hidden0": 4, "hidden1": 4, "output": 3}
    assert len(plan_of(outcome.model)) == 2 and len(outcome.plan) == 1
