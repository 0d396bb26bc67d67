"""Checks of cuts: a cut network must equal the whole one without the units, and masking where that is enough."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy
import torch
from torch import Tensor, nn

from tests.networks import built
from topiarist import surgery
from topiarist.models.attention import with_free_attention
from topiarist.models.copying import copied
from topiarist.models.evaluation import evaluating
from topiarist.randomness import isolated
from topiarist.storage import load, save
from topiarist.tracing import Anatomy, Inputs, Space, anatomy
from topiarist.tracing.reference import Reference
from topiarist.tracing.running import call, plain_kernels
from topiarist.tracing.trace import tensors_in


class Written(nn.Module):
    """A network from a function of the network and its input, and from the layers and parameters it names."""

    def __init__(self, code: Callable[[Any, Tensor], Any], **parts: nn.Module | nn.Parameter) -> None:
        super().__init__()
        self.code = code
        for name, part in parts.items():
            setattr(self, name, part)

    def forward(self, x: Tensor) -> Any:
        return self.code(self, x)


Case = tuple[Callable[[], nn.Module], Inputs, dict[str, int]]  # a network, its input, and the sizes of its free spaces
Makers = dict[str, Callable[[], nn.Module | nn.Parameter]]


def written(code: Callable[[Any, Tensor], Any], shape: tuple[int, ...], parts: Makers) -> tuple[nn.Module, Tensor]:
    """Make a network from its code, with an example input."""
    model, example = built(lambda: Written(code, **{name: make() for name, make in parts.items()}), shape, seed=1)
    assert isinstance(example, Tensor)
    return model, example


def making(code: Callable[[Any, Tensor], Any], **parts: Callable[[], Any]) -> Callable[[], nn.Module]:
    """Return what makes a network from its code, and from what makes its parts."""
    return lambda: Written(code, **{name: make() for name, make in parts.items()})


def without(
    model: nn.Module, example_input: Inputs, found: Anatomy, units: Mapping[str, Sequence[int]]
) -> list[Tensor]:
    """Return what the whole network computes as if some units were not there: the reference of every cut."""
    assert found.trace is not None
    tracer = found.trace.tracer
    gone = numpy.zeros(len(tracer.labels), bool)
    for name, numbers in units.items():
        gone[found.spaces[name].units[list(numbers)]] = True
    whole = copied(model)
    with_free_attention(whole)
    reference = Reference(whole, tracer.labels.copy(), tracer.leaves, gone)
    with evaluating(whole), isolated(0), plain_kernels(whole), torch.no_grad(), reference:
        return tensors_in(call(whole, example_input))


def computed(model: nn.Module, example_input: Inputs) -> list[Tensor]:
    """Return what a network computes."""
    with evaluating(model), isolated(0), plain_kernels(model), torch.no_grad():
        return tensors_in(call(model, example_input))


def masked(model: nn.Module, space: Space, units: Sequence[int]) -> nn.Module:
    """Return a copy in which nothing reads some units of a space."""
    model = copied(model)
    for place in space.consumers:
        weight = model.get_submodule(place.module).weight
        assert isinstance(weight, Tensor)
        weight.detach()[:, torch.as_tensor(place.positions[list(units)].reshape(-1))] = 0
    return model


def assert_same(found: Sequence[Tensor], expected: Sequence[Tensor]) -> None:
    """Assert that outputs are equal, up to rounding in float64."""
    for left, right in zip(found, expected, strict=True):
        torch.testing.assert_close(left, right, rtol=1e-9, atol=1e-11)


def is_only_read_by_layers(space: Space) -> bool:
    """Return whether masking what reads the units of a space is the same as their not being there."""
    plain = all(place.parameter is None for place in space.consumers)
    return plain and bool(space.consumers) and not space.averaged and not space.escaped


def check_cuts(model: nn.Module, example_input: Inputs, found: Anatomy) -> None:
    """Assert for every free space that removing units gives what the network without them gives."""
    for space in found.free.values():
        for units in {(0,), (space.size - 1,), tuple(range(0, space.size, 2))} if space.size > 1 else ():
            smaller = surgery.remove(model, example_input, units={space.name: units}, anatomy=found)
            given = computed(smaller, example_input)
            assert_same(given, without(model, example_input, found, {space.name: units}))
            if is_only_read_by_layers(space):
                assert_same(given, computed(masked(model, space, units), example_input))


def halves(found: Anatomy) -> dict[str, list[int]]:
    """Return every second unit of every free space."""
    return {name: list(range(1, space.size, 2)) for name, space in found.free.items() if space.size > 1}


def check_network(make: Callable[[], nn.Module], example_input: Inputs, folder: Path) -> Anatomy:
    """Cut each space of a network, then half of all of them; the result must be right, and survive a file.

    Returns
    -------
    Anatomy
        That of the whole network.
    """
    with isolated(1):
        model = make().double().eval()
    found = anatomy(model, example_input)
    check_cuts(model, example_input, found)
    units = halves(found)
    assert units, str(found)
    smaller = surgery.remove(model, example_input, units=units, anatomy=found)
    given = computed(smaller, example_input)
    assert_same(given, without(model, example_input, found, units))
    sizes = [sum(parameter.numel() for parameter in network.parameters()) for network in (model, smaller)]
    assert sizes[1] < sizes[0]
    path = folder / "network.safetensors"
    save(smaller, path)
    with isolated(2):
        fresh = make().double().eval()
    assert_same(computed(load(path, into=fresh), example_input), given)
    return found


def check_case(case: Case, folder: Path) -> None:
    """Check a network as `check_network` does; its free spaces must be the expected ones."""
    make, example, free = case
    found = check_network(make, example, folder)
    assert {name: space.size for name, space in found.free.items()} == free
