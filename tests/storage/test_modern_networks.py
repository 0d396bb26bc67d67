"""Networks with attention, recurrence and transposed convolutions are saved and loaded like any other after a cut."""

from pathlib import Path

import pytest
import torch
from torch import nn

from tests.networks import NETWORKS, outputs
from topiarist import surgery
from topiarist.errors import ModelError
from topiarist.randomness import generator
from topiarist.storage import load, save
from topiarist.tracing import Inputs, anatomy

NAMES = ("encoder", "fused attention", "einsum attention", "lstm", "gru", "u-net", "weight norm", "tied words")


def halved(model: nn.Module, example: Inputs) -> nn.Module:
    """Return a network without a random half of the units of every space."""
    random = generator(0, "half")
    free = anatomy(model, example).free
    units = {name: torch.randperm(space.size, generator=random)[: space.size // 2] for name, space in free.items()}
    return surgery.remove(model, example, units=units)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_a_cut_network_is_loaded_into_a_fresh_one(name: str, tmp_path: Path) -> None:
    model, example = NETWORKS[name](0)
    cut = halved(model, example)
    fresh, _ = NETWORKS[name](1)
    loaded = load(save(cut, tmp_path / "m.safetensors"), into=fresh)
    assert loaded is fresh and repr(loaded) == repr(cut)
    assert surgery.plan_of(loaded) == surgery.plan_of(cut)
    for left, right in zip(outputs(loaded, example), outputs(cut, example), strict=True):
        assert torch.equal(left, right)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_a_network_that_was_loaded_is_cut_further(name: str, tmp_path: Path) -> None:
    model, example = NETWORKS[name](0)
    space = next(iter(anatomy(model, example).free))
    cut = surgery.remove(model, example, units={space: [0]})
    loaded = load(save(cut, tmp_path / "m.safetensors"), into=NETWORKS[name](1)[0])
    again = surgery.remove(loaded, example, units={space: [1]})
    expected = surgery.remove(cut, example, units={space: [1]})
    for left, right in zip(outputs(again, example), outputs(expected, example), strict=True):
        assert torch.equal(left, right)
    assert len(surgery.plan_of(again)) == 2


@pytest.mark.slow
def test_a_network_that_a_function_runs_is_loaded_with_that_function(tmp_path: Path) -> None:
    model, example = NETWORKS["encoder"](0)
    assert isinstance(example, torch.Tensor)

    def run(network: nn.Module) -> torch.Tensor:
        given: torch.Tensor = network(example)
        return given

    cut = surgery.remove(model, run, units={"embed": [0, 5]})
    path = save(cut, tmp_path / "m.safetensors")
    with pytest.raises(ModelError, match="does not say what the network's input looks like: pass example_input"):
        load(path, into=NETWORKS["encoder"](1)[0])
    for known in (run, example):
        loaded = load(path, into=NETWORKS["encoder"](1)[0], example_input=known)
        assert torch.equal(loaded(example), cut(example))
