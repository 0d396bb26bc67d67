"""The same coupled units as torch-pruning finds, where it finds them; and where it does not, what it does instead.

torch-pruning (Fang et al., 2023, "DepGraph: towards any structural pruning") follows the graph of one backward pass.
Compared are its pruning groups, not its pruners, which may add knowledge of their own.
"""

import copy
import warnings
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from tests.networks import (
    NETWORKS,
    CascadeNetwork,
    FrozenNetwork,
    GroupedNetwork,
    InceptionNetwork,
    InputResidual,
    NormedNetwork,
    built,
    outputs,
)
from tests.tracing.cutting import assert_same, check_cuts, masked, without
from topiarist import surgery
from topiarist.tracing import Inputs, Space, anatomy

torch_pruning = pytest.importorskip("torch_pruning")

Coupled = set[tuple[str, str, int]]
# networks, and those of their free spaces that torch-pruning gets wrong; the tests below say how
COMPARED: dict[str, set[str]] = {
    "residual": set(),
    "inception": {"narrow", "wide", "pooled"},
    "cascade": set(),
    "gated": set(),
    "grouped": {"stem:members", "stem:groups"},
    "grouped sequence": {"stem:members", "stem:groups"},
    "input residual": set(),
    "two inputs": set(),
    "shared layer": set(),
    "frozen": {"trunk.0", "trunk.3"},
    "normed": set(),
    "resnet18": set(),
}


def dependencies(model: nn.Module, example: Inputs) -> Any:
    """Return torch-pruning's graph of a network."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it warns of parameters that forward reads directly
        return torch_pruning.DependencyGraph().build_dependency(model, example_inputs=example)


def group_of(graph: Any, model: nn.Module, layer: str, positions: list[int]) -> Any:
    """Return what torch-pruning removes together with some outputs of a layer."""
    module = model.get_submodule(layer)
    linear = isinstance(module, nn.Linear)
    prune = torch_pruning.prune_linear_out_channels if linear else torch_pruning.prune_conv_out_channels
    return graph.get_pruning_group(module, prune, idxs=positions)


def theirs(model: nn.Module, group: Any) -> Coupled:
    """Return the layers, sides and positions of a group; operations without parameters do not count."""
    names: dict[Any, str] = {module: name for name, module in model.named_modules()}
    names |= {parameter: name for name, parameter in model.named_parameters()}
    return {
        (names[part.target.module], "in" if "in_channels" in part.handler.__name__ else "out", int(position))
        for part, positions in group
        if part.target.module in names
        for position in positions
    }


def ours(space: Space, unit: int) -> Coupled:
    """Return the same of a unit of a space."""
    return {
        (place.module or place.name, "in" if place.role == "reads" else "out", int(position))
        for place in space.places
        for position in place.positions[unit].reshape(-1)
    }


@pytest.mark.slow
@pytest.mark.parametrize("name", COMPARED)
def test_the_same_units_are_coupled(name: str) -> None:
    model, example = NETWORKS[name](0)
    spaces = anatomy(model, example).free
    graph = dependencies(model, example)
    assert set(spaces) > COMPARED[name]
    for space in spaces.values():
        if space.name in COMPARED[name]:
            continue
        for place in space.producers:
            for unit in {0, space.size // 2, space.size - 1}:
                group = group_of(graph, model, place.module, place.positions[unit].reshape(-1).tolist())
                assert theirs(model, group) == ours(space, unit), (space.name, unit)


def prune(model: nn.Module, example: Inputs, layer: str, positions: list[int]) -> nn.Module:
    """Return a copy that torch-pruning has cut."""
    model = copy.deepcopy(model)
    group_of(dependencies(model, example), model, layer, positions).prune()
    return model


@pytest.mark.slow
@pytest.mark.parametrize("layer", ["narrow", "wide", "pooled"])
def test_branches_that_are_joined_and_flattened(layer: str) -> None:
    """torch-pruning couples all branches, unit by unit, and takes the columns of one: the network fails."""
    model, example = built(InceptionNetwork, (2, 3, 6, 6), seed=0)
    with pytest.raises(RuntimeError, match="mat1 and mat2 shapes cannot be multiplied"):
        outputs(prune(model, example, layer, [0]), example)
    check_cuts(model, example, anatomy(model, example))


class InputFirst(CascadeNetwork):
    """A cascade that joins the network's input before the hidden units, not behind them."""

    def forward(self, x: Tensor) -> Tensor:
        h = x
        for layer in self.layers:
            h = torch.cat([x, torch.tanh(layer(h))], dim=1)
        given: Tensor = self.head(h)
        return given


def test_an_input_that_is_joined_before_hidden_units() -> None:
    """torch-pruning does not count the input's columns: it takes column 0, which belongs to the input."""
    model, example = built(InputFirst, (4, 3), seed=0)
    space = anatomy(model, example)["layers.1"]
    assert ours(space, 0) == {("layers.1", "out", 0), ("layers.2", "in", 3)}
    group = group_of(dependencies(model, example), model, "layers.1", [0])
    assert theirs(model, group) == {("layers.1", "out", 0), ("layers.2", "in", 0)}
    expected = outputs(masked(model, space, [0]), example)[0]
    smaller = surgery.remove(model, example, units={"layers.1": [0]})
    torch.testing.assert_close(outputs(smaller, example)[0], expected, rtol=1e-10, atol=1e-12)
    assert not torch.allclose(outputs(prune(model, example, "layers.1", [0]), example)[0], expected)


def test_a_residual_to_the_input() -> None:
    """torch-pruning removes channels that are added to the input's: the network fails. Here they are fixed."""
    model, example = built(InputResidual, (2, 3, 5, 5), seed=0)
    with pytest.raises(RuntimeError, match=r"size of tensor a \(3\) must match the size of tensor b \(2\)"):
        outputs(prune(model, example, "second", [0]), example)
    assert anatomy(model, example)["second"].reason == "they come from 'x'"


@pytest.mark.parametrize("layer", ["trunk.0", "trunk.3"])
def test_frozen_layers(layer: str) -> None:
    """torch-pruning does not see layers without gradients."""
    model, example = built(FrozenNetwork, (2, 3, 6, 6), seed=0)
    with pytest.raises(ValueError, match="is not in the dependency graph"):
        prune(model, example, layer, [0])
    assert not anatomy(model, example)[layer].fixed


@pytest.mark.slow
def test_groups_of_several_channels() -> None:
    """torch-pruning's group ends at the inputs of a convolution in groups of several channels: the cut fails."""
    model, example = built(GroupedNetwork, (2, 3, 5, 5), seed=0)
    group = group_of(dependencies(model, example), model, "stem", [0, 1])
    assert theirs(model, group) == {
        (name, side, at) for name, side in (("stem", "out"), ("grouped", "in")) for at in (0, 1)
    }
    with pytest.raises((RuntimeError, IndexError)):
        prune(model, example, "stem", [0, 1])
    check_cuts(model, example, anatomy(model, example))


def test_units_that_a_layer_normalisation_averages() -> None:
    """Both cut through a layer normalisation, which then runs over what is left; masking alone is another network."""
    model, example = built(NormedNetwork, (4, 4), seed=0)
    found = anatomy(model, example)
    assert found["stem"].averaged and not found["hidden"].averaged
    smaller = outputs(surgery.remove(model, example, units={"stem": [0]}, anatomy=found), example)
    assert_same(smaller, without(model, example, found, {"stem": [0]}))
    assert_same(smaller, outputs(prune(model, example, "stem", [0]), example))
    assert not torch.allclose(smaller[0], outputs(masked(model, found["stem"], [0]), example)[0])
