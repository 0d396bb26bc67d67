"""Packed model files: small where weights are zero, exact to the bit or to half a step."""

import json
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from tests.networks import NETWORKS
from tests.storage.test_edits import WRONG, assert_loaded, cut
from tests.storage.test_round_trip import bits as bits_of
from tests.storage.test_round_trip import networks, raw
from tests.storage.test_user_modules import Holder, Tied, odd_tensors
from tests.surgery.strategies import untouched
from topiarist import surgery
from topiarist.errors import ModelError, SettingsError
from topiarist.models import attach, card_of, inception, mlp, vgg
from topiarist.models.card import Bits
from topiarist.randomness import generator
from topiarist.storage import Packing, load, read_card, save, serialise
from topiarist.storage.header import KEY, parse_header
from topiarist.storage.quantising import rounded

SCENE = (1, 48, 467)
MAKERS: dict[str, Callable[[], nn.Sequential]] = {
    "vgg": lambda: vgg(2, 2, 3, 3, input_shape=SCENE, generator=generator(0, "test")),
    "inception": lambda: inception(1, 1, 1, input_shape=SCENE, generator=generator(0, "test")),
}


def noise(*shape: int) -> Tensor:
    return torch.randn(*shape, generator=generator(1, "noise"))


def prune(model: nn.Module, fraction: float) -> None:
    """Make the weights of each kernel zero that are smallest, so many of them."""
    for weight in (parameter.data for parameter in model.parameters() if parameter.ndim > 1):
        weight[weight.abs() <= weight.abs().flatten().kthvalue(int(weight.numel() * fraction)).values] = 0


@cache
def pruned(name: str) -> nn.Sequential:
    """Return a network with statistics in its norms and a fifth of its weights."""
    model, drawn = MAKERS[name]().train(), generator(2, "training")
    with torch.no_grad():
        model(3 * noise(8, *SCENE) + 1)
        for parameter in model.parameters():
            if parameter.ndim == 1:  # as training would leave them: no run of ones or zeros
                parameter.add_(0.1 * torch.randn(len(parameter), generator=drawn))
    prune(model, 0.8)
    return model.eval()


def loaded(model: nn.Module, folder: Path, *, bits: int = 32, into: nn.Module | None = None) -> nn.Module:
    packing = Packing.model_validate({"bits": bits})
    return load(save(model, folder / "m.safetensors", packing=packing), into=into)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "bits", "most"),
    [
        *(("vgg", 32, 0.20), ("vgg", 16, 0.12), ("vgg", 8, 0.09)),
        *(("inception", 32, 0.20), ("inception", 16, 0.12), ("inception", 8, 0.09)),
    ],
)
def test_a_pruned_network_is_small_and_works_as_before(tmp_path: Path, name: str, bits: Bits, most: float) -> None:
    model, images = pruned(name), noise(4, *SCENE)
    found = loaded(model, tmp_path, bits=bits)
    assert (tmp_path / "m.safetensors").stat().st_size <= most * len(serialise(model))
    with torch.no_grad():
        change = (found(images) - model(images)).abs().max() / model(images).abs().max()
    assert change <= {32: 0, 16: 0.002, 8: 0.05}[bits]
    assert (bits_of(found) == bits_of(model)) == (bits == 32)
    assert card_of(found) == read_card(tmp_path / "m.safetensors")
    assert card_of(found) == replace(card_of(model), bits=bits)


@pytest.mark.parametrize("name", MAKERS)
def test_a_network_without_zeros_takes_no_more_than_unpacked(name: str) -> None:
    model = MAKERS[name]()
    assert len(serialise(model, packing=Packing())) <= 1.01 * len(serialise(model))


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(model=networks(), fraction=st.floats(0, 1), special=st.booleans(), seed=st.integers(0, 99))
def test_at_32_bits_every_bit_comes_back(model: nn.Sequential, fraction: float, special: bool, seed: int) -> None:
    drawn = generator(seed, "zeros")
    for parameter in model.parameters():
        parameter.data[torch.rand(parameter.shape, generator=drawn) < fraction] = 0
        if special:
            odd = torch.tensor([-0.0, float("nan"), float("inf"), -float("inf"), torch.finfo(parameter.dtype).tiny])
            parameter.data.view(-1)[:5] = odd.to(parameter)[: parameter.numel()]
    with TemporaryDirectory() as folder:
        found = loaded(model, Path(folder))
    assert bits_of(found) == bits_of(model)
    assert serialise(found, packing=Packing()) == serialise(model, packing=Packing())


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(model=networks(), fraction=st.floats(0, 1), few=st.sampled_from([16, 8]), size=st.integers(-20, 20))
def test_rounded_weights_are_within_half_a_step(model: nn.Sequential, fraction: float, few: int, size: int) -> None:
    for parameter in model.parameters():
        parameter.data[torch.rand(parameter.shape, generator=generator(0, "zeros")) < fraction] = 0
        parameter.data *= 10.0 ** (size if parameter.dtype != torch.float16 else 0)
    with TemporaryDirectory() as folder:
        found = loaded(model, Path(folder), bits=few)
    for (name, before), after in zip(model.state_dict().items(), found.state_dict().values(), strict=True):
        assert before.dtype == after.dtype
        if before.ndim < 2 or before.itemsize * 8 <= few:
            assert raw(before) == raw(after), name
            continue
        largest = before.double().abs().amax(1, keepdim=True)
        step = largest / 127 if few == 8 else 2.0**-10 * before.double().abs()
        slack = torch.finfo(before.dtype).eps * before.double().abs() + 2.0**-38 * largest
        assert ((before.double() - after.double()).abs() <= step * 0.505 + slack).all(), name
        assert raw(after[before == 0]) == raw(torch.zeros_like(after[before == 0]))


@pytest.mark.parametrize("few", [16, 8])
def test_what_was_rounded_is_packed_again_to_the_same_bytes(tmp_path: Path, few: int) -> None:
    first = loaded(pruned("vgg"), tmp_path, bits=few)
    content = (tmp_path / "m.safetensors").read_bytes()
    assert bits_of(loaded(first, tmp_path, bits=few)) == bits_of(first)
    assert (tmp_path / "m.safetensors").read_bytes() == content


def test_every_kind_of_tensor_comes_back(tmp_path: Path) -> None:
    more = {
        "nothing": torch.zeros(5, 0),
        "blank": torch.zeros(7, 9),
        "filters": 127 * torch.eye(8).repeat_interleave(9, 1),
    }
    more |= {"tiny_kernel": torch.ones(2, 2).to(torch.float8_e5m2), "negative": torch.full((3, 3), -0.0)}
    model = Holder(**{name: tensor.resolve_conj() for name, tensor in odd_tensors().state_dict().items()}, **more)
    for few in (32, 16, 8):
        into = Holder(**{name: torch.zeros_like(tensor) for name, tensor in model.state_dict().items()})
        loaded(model, tmp_path, bits=few, into=into)
        exact = [name for name in model.state_dict() if few == 32 or name not in ("grid", "transposed", "negative")]
        assert {name: bits_of(into)[name] for name in exact} == {name: bits_of(model)[name] for name in exact}


def test_tied_weights_stay_tied(tmp_path: Path) -> None:
    into = Tied(seed=1).double()
    assert bits_of(loaded(Tied(), tmp_path, into=into)) == bits_of(Tied())
    assert into.first.weight is into.second.weight is into.third.weight
    assert bits_of(loaded(Tied(), tmp_path, into=Tied(seed=1, tie=False))) == bits_of(Tied())


def test_a_cut_network_is_loaded(tmp_path: Path) -> None:
    model, example = cut()
    assert_loaded(loaded(model, tmp_path, into=NETWORKS["residual"](1)[0]), model, example)
    perceptron, rows = mlp([64, 3000, 10]), torch.zeros(1, 64)
    units = torch.randperm(3000, generator=generator(0, "units"))[:2000].tolist()
    smaller = surgery.remove(perceptron, rows, units={"hidden0": units})
    assert_loaded(loaded(smaller, tmp_path), smaller, rows)
    content = (tmp_path / "m.safetensors").read_bytes()
    start = 8 + int.from_bytes(content[:8], "little")
    assert start + int.from_bytes(content[start : start + 4], "little") < 5000  # 10 KB unpacked


@pytest.mark.parametrize("what", WRONG)
def test_a_network_that_does_not_fit_is_refused_and_left_as_it_is(tmp_path: Path, what: str) -> None:
    into = WRONG[what]()
    with untouched(into), pytest.raises(ModelError, match="cannot load"):
        loaded(cut()[0], tmp_path, into=into)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
def test_what_is_not_finite_cannot_be_rounded(value: float) -> None:
    model = nn.Linear(3, 2)
    model.weight.data[1, 2] = value
    for few in (16, 8):
        with pytest.raises(ModelError, match="'weight' holds numbers that are not finite: only 32 bits keep them"):
            serialise(model, packing=Packing.model_validate({"bits": few}))


BEYOND_ALL_SCALES = [(1e-300, torch.float64), (1e300, torch.float64), (1e-42, torch.float32), (65504, torch.float16)]


@pytest.mark.parametrize(("value", "dtype"), BEYOND_ALL_SCALES)
def test_a_kernel_beyond_all_scales_is_kept(tmp_path: Path, value: float, dtype: torch.dtype) -> None:
    model = Holder(kernel=torch.tensor([[value, value / 2], [0, 0]], dtype=dtype))
    assert bits_of(loaded(model, tmp_path, bits=8, into=Holder(kernel=torch.zeros(2, 2)))) == bits_of(model)


def test_a_channel_below_all_scales_is_zero(tmp_path: Path) -> None:
    model = nn.Linear(2, 2, bias=False)
    model.weight.data = torch.tensor([[127.0, 0.5], [1e-42, 0.0]])
    found = loaded(model, tmp_path, bits=8, into=nn.Linear(2, 2, bias=False))
    assert found.get_parameter("weight").tolist() == [[127.0, 0.0], [0.0, 0.0]]


def test_older_versions_say_that_they_are_old() -> None:
    content = serialise(mlp([3, 4, 2]), packing=Packing())
    text = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])["__metadata__"][KEY]
    with pytest.raises(ModelError, match=r"written by a newer version of topiarist, .*: upgrade"):
        parse_header(text)


def test_other_bits_are_refused() -> None:
    with pytest.raises(SettingsError, match="bits must be 32, 16 or 8; found 4"):
        Packing(bits=4)


def test_buffers_and_norms_of_several_dimensions_keep_their_bits(tmp_path: Path) -> None:
    class Own(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.norm = nn.LayerNorm([2, 2])
            self.linear = nn.Linear(4, 3)
            self.register_buffer("table", torch.rand(4, 4, generator=generator(0, "table")))

        def forward(self, x: Tensor) -> Tensor:
            logits: Tensor = self.linear(self.norm(x).flatten(1))
            return logits

    model = Own()
    nn.init.uniform_(model.norm.weight)
    path = save(model, tmp_path / "own.safetensors", packing=Packing(bits=8))
    again = load(path, into=Own())
    for name, value in model.state_dict().items():
        assert torch.equal(again.state_dict()[name], value) == (name != "linear.weight"), name
    assert torch.equal(again.get_parameter("linear.weight"), rounded(model, 8).get_parameter("linear.weight"))


def test_few_bits_are_kept_only_while_the_weights_are_those_that_were_rounded(tmp_path: Path) -> None:
    model = rounded(mlp([6, 8, 3]), 8)
    attach(model, replace(card_of(model), bits=8))
    few = len(serialise(model))
    assert few == len(serialise(model, packing=Packing(bits=8)))
    with torch.no_grad():
        model.get_parameter("output.weight").mul_(1.01)
    again = load(save(model, tmp_path / "changed.safetensors"))
    assert torch.equal(again.get_parameter("output.weight"), model.get_parameter("output.weight"))
    assert card_of(again).bits == 32


def test_a_packed_file_of_this_version_goes_on_loading() -> None:
    model = load(Path(__file__).parents[1] / "golden" / "perceptron-packed.safetensors")
    written = mlp([4, 6, 3], batch_norm=True).eval()
    written.get_parameter("hidden0.weight").data[1::2] = 0
    assert card_of(model).bits == 8
    assert all(torch.equal(model.state_dict()[name], value) for name, value in rounded(written, 8).state_dict().items())
