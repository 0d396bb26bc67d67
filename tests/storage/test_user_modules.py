from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file, save_model
from torch import Tensor, nn

from topiarist.errors import ModelError, TopiaristWarning
from topiarist.models import Card, attach, card_of, mlp
from topiarist.randomness import isolated
from topiarist.storage import load, read_card, save
from topiarist.tasks import Classification


class Tied(nn.Module):
    """Encoder and decoder share their weight; one buffer is a view of another."""

    def __init__(self, seed: int = 0, *, tie: bool = True) -> None:
        super().__init__()
        with isolated(seed):
            self.first = nn.Linear(3, 3)
            self.second = nn.Linear(3, 3)
            self.third = nn.Linear(3, 3)
            self.register_buffer("noise", torch.randn(4, 5))
        if tie:
            self.second.weight = self.first.weight
            self.third.weight = self.first.weight

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.third(self.second(self.first(x)))
        return out


class Holder(nn.Module):
    def __init__(self, **tensors: Tensor) -> None:
        super().__init__()
        for name, tensor in tensors.items():
            self.register_buffer(name, tensor)


def same(one: nn.Module, other: nn.Module) -> bool:
    pairs = zip(one.state_dict().items(), other.state_dict().items(), strict=True)
    return all(a == b and x.dtype == y.dtype and torch.equal(x, y) for (a, x), (b, y) in pairs)


def test_tied_weights_are_stored_once_and_stay_tied(tmp_path: Path) -> None:
    model = Tied()
    attach(model, Card(task=Classification(("a", "b", "c")), input_shape=(3,)))
    path = save(model, tmp_path / "m.safetensors")
    into = Tied(seed=1).double()
    loaded = load(path, into=into)
    assert loaded is into and same(loaded, model)
    assert into.first.weight is into.second.weight is into.third.weight
    assert card_of(loaded) == card_of(model) == read_card(path)
    assert path.stat().st_size < save(Tied(tie=False), tmp_path / "untied.safetensors").stat().st_size


def test_tied_weights_load_into_an_untied_module(tmp_path: Path) -> None:
    path = save(Tied(), tmp_path / "m.safetensors")
    assert same(load(path, into=Tied(seed=1, tie=False)), Tied())


def test_different_weights_do_not_load_into_tied_ones(tmp_path: Path) -> None:
    path = save(Tied(tie=False), tmp_path / "m.safetensors")
    into = Tied(seed=1)
    with pytest.raises(ModelError, match=r"'second\.weight' and 'first\.weight' are tied in the module but differ"):
        load(path, into=into)
    assert same(into, Tied(seed=1))


def test_into_keeps_its_mode_and_its_parameters(tmp_path: Path) -> None:
    path = save(Tied(), tmp_path / "m.safetensors")
    into = Tied(seed=1)
    into.second.eval()
    into.first.bias.requires_grad_(False)
    parameters = list(into.parameters())
    load(path, into=into)
    assert into.training and not into.second.training and not into.first.bias.requires_grad
    assert all(a is b for a, b in zip(parameters, into.parameters(), strict=True))


def test_a_user_module_needs_into(tmp_path: Path) -> None:
    path = save(Tied(), tmp_path / "m.safetensors")
    with pytest.raises(ModelError, match=r"load\('.*m\.safetensors', into=model\)"):
        load(path)


def odd_tensors() -> Holder:
    base = torch.arange(24.0)
    return Holder(
        transposed=torch.arange(6.0).reshape(2, 3).t(),
        strided=torch.arange(10)[::3],
        expanded=torch.ones(1).expand(4).clone(),
        scalar=torch.tensor(7),
        empty=torch.zeros(0, 3, dtype=torch.float64),
        empty_too=torch.zeros(0, 3, dtype=torch.float64),
        low=base[:16],
        high=base[8:],
        grid=base.view(4, 6),
        brain=torch.tensor([1.5, -2], dtype=torch.bfloat16),
        tiny=torch.tensor([1.0, 2.0]).to(torch.float8_e4m3fn),
        short=torch.tensor([0.1], dtype=torch.float16),
        flags=torch.tensor([True, False]),
        bytes=torch.tensor([255], dtype=torch.uint8),
        small=torch.tensor([-3], dtype=torch.int16),
        imaginary=torch.tensor([1 + 2j], dtype=torch.complex64).conj(),
        special=torch.tensor([float("nan"), float("inf"), -0.0]),
    )


def test_every_kind_of_tensor_comes_back(tmp_path: Path) -> None:
    model = odd_tensors()
    path = save(model, tmp_path / "m.safetensors")
    into = Holder(**{name: torch.zeros_like(tensor) for name, tensor in model.state_dict().items()})
    load(path, into=into)
    for name, tensor in model.state_dict().items():
        found = into.state_dict()[name]
        assert found.dtype == tensor.dtype and found.shape == tensor.shape
        assert str(found) == str(tensor)
    assert save(into, tmp_path / "again.safetensors").read_bytes() == path.read_bytes()


@pytest.mark.parametrize(
    ("into", "message"),
    [
        (
            lambda: nn.Linear(3, 5),
            r"'weight' is \(5, 3\) of real numbers in the module, \(4, 3\) of real numbers in the",
        ),
        (lambda: nn.Linear(3, 4, bias=False), "the file holds 'bias', which the module does not have"),
        (lambda: nn.Sequential(nn.Linear(3, 4)), r"the module asks for '0\.weight', which the file does not hold"),
        (lambda: Holder(weight=torch.zeros(4, 3).int(), bias=torch.zeros(4)), "'weight' is .* whole numbers"),
        (lambda: nn.LazyLinear(4), "'weight' of the network has no values yet"),
        (lambda: nn.Linear(3, 4, device="meta"), "'weight' of the network has no values yet"),
    ],
)
@pytest.mark.filterwarnings("ignore:Lazy modules")
def test_what_does_not_fit_is_named(tmp_path: Path, into: Callable[[], nn.Module], message: str) -> None:
    path = save(nn.Linear(3, 4), tmp_path / "m.safetensors")
    with pytest.raises(ModelError, match=message) as caught:
        load(path, into=into())
    assert str(path) in str(caught.value) and "\n" not in str(caught.value)


class Stubborn(nn.Linear):
    def get_extra_state(self) -> object:
        return {"anything": 1}


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (lambda: Stubborn(2, 2), "holds tensors only; '_extra_state' of the network is a dict"),
        (lambda: nn.Linear(2, 2, device="meta"), "has no values yet"),
        (lambda: Holder(wide=torch.zeros(2, dtype=torch.complex128)), r"cannot hold 'wide': torch\.complex128"),
        (lambda: Holder(sparse=torch.eye(3).to_sparse()), "cannot hold 'sparse'.*sparse_coo"),
    ],
)
def test_what_cannot_be_saved_is_named(tmp_path: Path, model: Callable[[], nn.Module], message: str) -> None:
    with pytest.raises(ModelError, match=message):
        save(model(), tmp_path / "m.safetensors")
    assert not list(tmp_path.iterdir())


def test_files_of_others_need_into(tmp_path: Path) -> None:
    path = tmp_path / "plain.safetensors"
    model = mlp([3, 4, 2])
    save_file(model.state_dict(), path)
    with pytest.raises(ModelError, match=r"not written by topiarist.*into=model"):
        load(path)
    with pytest.raises(ModelError, match="it has no card"):
        read_card(path)
    into = mlp([3, 4, 2], "tanh")
    card = card_of(into)
    assert same(load(path, into=into), model) and card_of(into) == card


def test_tied_files_of_others_load(tmp_path: Path) -> None:
    path = tmp_path / "plain.safetensors"
    save_model(Tied(), str(path))
    assert same(load(path, into=Tied(seed=1)), Tied())


def test_ties_in_a_network_of_ours_are_kept(tmp_path: Path) -> None:
    model = mlp([8, 8, 8, 3])
    model[3].weight = model[1].weight
    with pytest.warns(TopiaristWarning, match="no longer what its spec describes"):
        path = save(model, tmp_path / "m.safetensors")
    with pytest.raises(ModelError, match="into=model"):
        load(path)
