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
from topiarist.surgery.edits.examples import ExampleShape
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
@pytest.mark.parametrize("times", [1, 2])
def test_a_network_that_a_function_runs_is_loaded(times: int, tmp_path: Path) -> None:
    model, example = NETWORKS["encoder"](0)
    assert isinstance(example, torch.Tensor)

    def run(network: nn.Module) -> torch.Tensor:
        return torch.stack([network(example) for _ in range(times)])

    cut = surgery.remove(model, run, units={"embed": [0, 5]})
    path = save(cut, tmp_path / "m.safetensors")
    if times == 1:  # the plan remembers what the function called it with
        assert torch.equal(load(path, into=NETWORKS["encoder"](1)[0])(example), cut(example))
    else:
        with pytest.raises(ModelError, match="does not say what the network's input looks like: pass example_input"):
            load(path, into=NETWORKS["encoder"](1)[0])
    for known in (run, example):
        loaded = load(path, into=NETWORKS["encoder"](1)[0], example_input=known)
        assert torch.equal(loaded(example), cut(example))


class Parts(nn.Module):
    """A network that reads parts of an image, from one row to another, which must come after it."""

    def __init__(self) -> None:
        super().__init__()
        self.image, self.last = nn.Conv2d(2, 6, 1), nn.Linear(6, 3)

    def forward(self, x: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
        h = self.image(x)
        parts = [h[:, :, start:end].amax((2, 3)) for start, end in rows.tolist()]
        given: torch.Tensor = self.last(torch.stack(parts, 1))
        return given


def test_whole_numbers_are_kept_where_the_network_does_not_run_on_others(tmp_path: Path) -> None:
    example = torch.rand(2, 2, 5, 5), torch.tensor([[0, 3], [1, 4]])
    cut = surgery.remove(Parts(), example, units={"image": [0, 5]})
    loaded = load(save(cut, tmp_path / "m.safetensors"), into=Parts())
    assert torch.equal(loaded(*example), cut(*example))
    words = nn.Sequential(nn.Embedding(9, 4), nn.Linear(4, 2))
    kept = surgery.plan_of(surgery.remove(words, torch.tensor([[7, 1]]), units={"0": [1]})).example
    assert isinstance(kept, ExampleShape) and kept.values is None
