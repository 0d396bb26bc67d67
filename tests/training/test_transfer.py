import copy
from pathlib import Path

import pytest
import torch
from torch import nn
from torch.nn.utils.parametrizations import weight_norm

from topiarist.data import Data
from topiarist.errors import ModelError, SettingsError
from topiarist.models import card_of, mlp, vgg
from topiarist.storage import load, save
from topiarist.surgery import remove
from topiarist.tracing import anatomy
from topiarist.training import Phase, TrainConfig, reuse, train, train_phases
from topiarist.training.transfer import freeze_below


@pytest.fixture(scope="module")
def base(task: Data) -> nn.Module:
    model = mlp([6, 8, 7, 5, 3], batch_norm=True)
    train(model, task, TrainConfig(epochs=3))
    return model


def test_the_lower_layers_are_reused_and_the_head_is_new(base: nn.Module) -> None:
    before = copy.deepcopy(base.state_dict())
    model = reuse(base, classes=4, drop=1, add=[9])
    assert card_of(model).spec == {**(card_of(base).spec or {}), "sizes": [6, 8, 7, 9, 4]}
    for name in ("hidden0.weight", "norm0.running_mean", "hidden1.bias", "norm1.weight"):
        assert torch.equal(model.state_dict()[name], before[name])
    assert model(torch.zeros(2, 6)).shape == (2, 4)
    assert all(torch.equal(value, before[name]) for name, value in base.state_dict().items())


class Own(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(6, 5), nn.ReLU())
        self.classifier = nn.Linear(5, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        logits: torch.Tensor = self.classifier(self.body(x))
        return logits


def test_of_a_users_network_the_last_linear_layer_is_replaced() -> None:
    model = Own()
    other = reuse(model, classes=7)
    assert isinstance(other, Own) and other.classifier.out_features == 7
    assert torch.equal(other.state_dict()["body.0.weight"], model.state_dict()["body.0.weight"])
    with pytest.raises(ModelError, match="dropped or added"):
        reuse(model, classes=2, drop=1)
    assert reuse(Own().double(), classes=2)(torch.zeros(1, 6).double()).dtype == torch.float64
    assert reuse(mlp([6, 4, 3]).double(), classes=2)(torch.zeros(1, 6).double()).dtype == torch.float64
    assert isinstance(reuse(nn.Linear(6, 3), classes=2), nn.Linear)
    changed_by_hand = mlp([6, 4, 3])
    changed_by_hand[2] = nn.Tanh()
    assert isinstance(reuse(changed_by_hand, classes=2)[2], nn.Tanh)  # type: ignore[index]
    with pytest.raises(ModelError, match="no linear layer"):
        reuse(nn.Flatten(), classes=2)
    with pytest.raises(ModelError, match="cannot drop 3 of 1"):
        reuse(mlp([2, 3, 4]), classes=2, drop=3)


def remove_first(model: nn.Module) -> nn.Module:
    """Return a network without half of the units of its first space that can lose some."""
    x = torch.zeros(2, 1, 8, 8)
    space = next(space for space in anatomy(model, x).spaces.values() if space.reason is None)
    return remove(model, x, units={space.name: range(space.size // 2)})


def test_one_of_ours_with_another_head_is_read_without_code(tmp_path: Path) -> None:
    whole = vgg(1, 1, 1, 1, input_shape=(1, 8, 8), classes=3)
    narrower = remove(mlp([6, 8, 3]), torch.zeros(2, 6), units={"hidden0": [1, 5]})
    for number, given in enumerate((whole, remove_first(whole), narrower)):
        other = reuse(given, classes=5)
        read = load(save(other, tmp_path / f"{number}.safetensors"))
        assert repr(read) == repr(other)
        x = torch.randn(2, 6) if number == 2 else torch.randn(2, 1, 8, 8)
        assert read(x).shape == (2, 5) and torch.equal(read.eval()(x), other.eval()(x))
    changed = mlp([6, 4, 3])
    changed[2] = nn.Tanh()
    assert card_of(reuse(changed, classes=5)).spec is None


def test_in_the_first_phase_only_the_head_moves_then_the_top_layers(base: nn.Module, task: Data) -> None:
    model = reuse(base, classes=3)
    start = copy.deepcopy(model.state_dict())
    train_phases(model, task, [Phase(epochs=2, train_top=1)])
    middle = copy.deepcopy(model.state_dict())
    assert changed(start, middle) == {"output.weight", "output.bias"}
    histories = train_phases(model, task, [Phase(epochs=1, train_top=2, learning_rate=1e-5)])
    moved = changed(middle, model.state_dict())
    assert {name.split(".")[0] for name in moved} == {"hidden2", "norm2", "output"}
    assert histories[0].epochs[0].learning_rate == 1e-5
    assert all(parameter.requires_grad for parameter in model.parameters())


def changed(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor]) -> set[str]:
    return {name for name, value in one.items() if not torch.equal(value, other[name])}


def test_phases_leave_what_was_frozen_frozen(task: Data) -> None:
    model = mlp([6, 4, 3])
    model[1].requires_grad_(False)
    before = copy.deepcopy(model.state_dict())
    train_phases(model, task, [Phase(epochs=1)])
    assert torch.equal(model.state_dict()["hidden0.weight"], before["hidden0.weight"])
    assert [parameter.requires_grad for parameter in model.parameters()] == [False, False, True, True]
    freeze_below(model, 1)
    assert [parameter.requires_grad for parameter in model.parameters()] == [False, False, True, True]
    weight_norm(model[3])
    freeze_below(model, 1)
    assert all(parameter.requires_grad for parameter in model[3].parameters())


def test_epochs_of_all_phases_are_numbered_as_one(task: Data) -> None:
    seen: list[int] = []
    phases = [Phase(epochs=2), Phase(epochs=3)]
    train_phases(mlp([6, 3]), task, phases, on_epoch=lambda number, _: seen.append(number))
    assert seen == [1, 2, 3, 4, 5]


def test_phases_are_declared(task: Data) -> None:
    with pytest.raises(SettingsError, match="no phases"):
        train_phases(mlp([6, 3]), task, [])
    with pytest.raises(SettingsError, match="train_top"):
        Phase(epochs=1, train_top=0)
    with pytest.raises(SettingsError, match="a phase trains the top 9 layers; the network has 2"):
        train_phases(mlp([6, 4, 3]), task, [Phase(epochs=1, train_top=9)])
