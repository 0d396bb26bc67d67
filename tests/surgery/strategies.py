"""Random networks, units and edits for the properties of surgery, and how networks are compared."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

import numpy
import torch
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from tests.networks import NETWORKS, built, outputs
from topiarist import surgery
from topiarist.errors import ModelError
from topiarist.models.activations import ACTIVATIONS
from topiarist.models.perceptrons import mlp
from topiarist.models.settings import BatchNorm
from topiarist.randomness import generator
from topiarist.surgery.depth.factorising import can_factorise
from topiarist.surgery.width.reexpressions import obstacle
from topiarist.tracing import Inputs, Place, Space, anatomy

SMALL = sorted(set(NETWORKS) - {"resnet18"})
KINDS = ("remove", "merge", "widen", "grow", "project", "deepen", "fold", "factorise", "compact")
SEEDS = st.integers(0, 2**16)


@dataclass(frozen=True)
class Case:
    """A network in float64 and evaluation mode, with an example input; the label tells how to make it again."""

    label: str
    model: nn.Module = field(repr=False)
    example: Inputs = field(repr=False)


def perceptron(
    sizes: Sequence[int], activation: str = "relu", batch_norm: BatchNorm = False, *, seed: int = 0
) -> tuple[nn.Module, Inputs]:
    """Return a multilayer perceptron with biases, and a batch of samples."""

    def make() -> nn.Module:
        model = mlp(sizes, activation, batch_norm, 0.2, generator=generator(seed, "weights"))
        for layer in model.modules():
            if isinstance(layer, nn.Linear):
                nn.init.normal_(layer.bias, std=0.3)
        return model

    return built(make, (5, sizes[0]), seed=seed)


@st.composite
def perceptrons(draw: st.DrawFn) -> Case:
    """Draw a multilayer perceptron of any depth, widths, activation and position of the batch norms."""
    hidden = draw(st.lists(st.integers(1, 9), min_size=1, max_size=4))
    sizes = [draw(st.integers(1, 6)), *hidden, draw(st.integers(1, 4))]
    activation = draw(st.sampled_from(sorted(ACTIVATIONS)))
    position: BatchNorm = draw(st.sampled_from([False, "before", "after"]))
    seed = draw(SEEDS)
    model, example = perceptron(sizes, activation, position, seed=seed)
    return Case(f"perceptron({sizes}, {activation!r}, {position!r}, seed={seed})", model, example)


def zoo(names: Sequence[str] = SMALL) -> st.SearchStrategy[Case]:
    """Draw one of the small networks by name."""
    return st.builds(
        lambda name, seed: Case(f"NETWORKS[{name!r}]({seed})", *NETWORKS[name](seed)), st.sampled_from(names), SEEDS
    )


def networks() -> st.SearchStrategy[Case]:
    """Draw a network of any kind."""
    return perceptrons() | zoo()


def draw_units(data: st.DataObject, space: Space, *, least: int = 0, stay: int = 1) -> list[int]:
    """Draw some units of a space, in any order, at least `least` of them and all but `stay` at most."""
    most = max(space.size - stay, 0)
    units = st.lists(st.integers(0, space.size - 1), unique=True, min_size=min(least, most), max_size=most)
    drawn: list[int] = data.draw(units, label=space.name)
    return drawn


def draw_edit(data: st.DataObject, model: nn.Module, example: Inputs, kinds: Sequence[str] = KINDS) -> nn.Module:
    """Return a network with a random edit; a copy of the network where one that was drawn is not possible."""
    found = anatomy(model, example)
    kind = data.draw(st.sampled_from(kinds), label="edit")
    space = data.draw(st.sampled_from(list(found.free.values())), label="space")
    random = generator(data.draw(SEEDS, label="seed"), "edit")
    match kind:
        case "remove":
            units = {each.name: draw_units(data, each) for each in found.free.values()}
            return surgery.remove(model, example, units=units)
        case "merge":
            gone = draw_units(data, space)
            stays = [unit for unit in range(space.size) if unit not in gone]
            into = data.draw(st.sampled_from(stays), label="into")
            merges = [surgery.Merge(unit=unit, into=into, scale=0.5) for unit in gone]
            return surgery.merge_units(model, example, space=space.name, merges=merges)
        case "widen":
            by, even = data.draw(st.integers(1, 4)), data.draw(st.booleans(), label="even")
            with more_units(model) as made:
                made.append(surgery.widen(model, example, space=space.name, by=by, generator=random, even=even))
            return made[-1]
        case "grow":
            by = data.draw(st.integers(1, 4))
            with more_units(model) as made:
                made.append(surgery.grow(model, example, space=space.name, by=by, generator=random))
            return made[-1]
        case "project":
            space = data.draw(st.sampled_from(projectable(model, example) or [space]), label="projected")
            try:
                return surgery.project(model, example, space=space.name, to=data.draw(st.integers(1, space.size)))
            except ModelError as error:
                assert "cannot be projected" in str(error)
                return deepcopy(model)
        case "deepen":
            layers = [name for name, seen in found.calls.items() if seen.axis is not None]
            after = data.draw(st.sampled_from(layers), label="after")
            return deepened(model, example, after, batch_norm=data.draw(st.booleans()))
        case "fold":
            layers = [name for name in found.calls if isinstance(model.get_submodule(name), FOLDABLE)]
            try:
                return surgery.fold(model, example, layer=data.draw(st.sampled_from(layers), label="layer"))
            except ModelError as error:
                assert "cannot fold" in str(error)
                return deepcopy(model)
        case "factorise":
            layer = data.draw(st.sampled_from(factorisable(model)), label="layer")
            rank = data.draw(st.integers(1, full_rank(model, layer)), label="rank")
            return surgery.factorise(model, layer=layer, rank=rank)
        case _:
            return surgery.compact(model, example)


def deepened(model: nn.Module, example: Inputs, after: str, *, batch_norm: bool) -> nn.Module:
    """Return a network with a layer more; a copy where that is refused in one line."""
    try:
        return surgery.deepen(model, example, after=after, batch_norm=batch_norm)
    except ModelError as error:
        assert str(error).startswith(("cannot deepen after", "cannot put a batch norm")) and "\n" not in str(error)
        return deepcopy(model)


@contextmanager
def more_units(model: nn.Module) -> Iterator[list[nn.Module]]:
    """Collect networks with more units; a copy where a norm or attention sees the units, which is refused."""
    made: list[nn.Module] = []
    try:
        yield made
    except ModelError as error:
        assert "cannot get more units" in str(error) and "\n" not in str(error)
        made.append(deepcopy(model))


FOLDABLE = (nn.Linear, nn.Conv1d, nn.Conv2d, _BatchNorm)


def projectable(model: nn.Module, example: Inputs) -> list[Space]:
    """Return the spaces that one layer writes and one reads, with nothing between that has values for each unit."""
    found = anatomy(model, example)
    return [space for space in found.free.values() if obstacle(model, space, found) is None]


def factorisable(model: nn.Module) -> list[str]:
    """Name the layers that can be split in two."""
    kinds = (nn.Linear, nn.Conv1d, nn.Conv2d)
    layers = {name: module for name, module in model.named_modules() if isinstance(module, kinds)}
    return [name for name in layers if can_factorise(model, name)]


def full_rank(model: nn.Module, layer: str) -> int:
    """Return the rank with which a layer loses nothing."""
    return min(weight(model, layer).flatten(1).shape)


def weight(model: nn.Module, layer: str) -> Tensor:
    """Return the weights of a layer, which may be written into."""
    found = model.get_submodule(layer).weight
    assert isinstance(found, Tensor)
    return found.detach()


def rows_of(model: nn.Module, place: Place) -> Tensor:
    """Return the weights where a layer or a parameter meets units, the axis of the units first; they can be written."""
    name = place.parameter or "weight"
    found: Tensor = getattr(model.get_submodule(place.module), name).detach()
    return found.movedim(dict(place.tensors)[name], 0)


def incoming(model: nn.Module, space: Space, unit: int) -> Tensor:
    """Return all weights that write a unit."""
    rows = (rows_of(model, place)[place.positions[unit].reshape(-1)] for place in space.producers)
    return torch.cat([row.reshape(-1) for row in rows])


def outgoing(model: nn.Module, space: Space, unit: int) -> Tensor:
    """Return all weights that read a unit."""
    columns = (rows_of(model, place)[place.positions[unit].reshape(-1)] for place in space.consumers)
    return torch.cat([column.reshape(-1) for column in columns])


def clear_incoming(model: nn.Module, space: Space, unit: int) -> None:
    """Let nothing write a unit, in place; its biases stay."""
    for place in space.producers:
        rows_of(model, place)[place.positions[unit].reshape(-1)] = 0


def clear_outgoing(model: nn.Module, space: Space, unit: int) -> None:
    """Let nothing read a unit, in place."""
    for place in space.consumers:
        rows_of(model, place)[place.positions[unit].reshape(-1)] = 0


def row_tensors(model: nn.Module, space: Space) -> Iterator[tuple[Tensor, int, numpy.ndarray[Any, Any]]]:
    """Return each tensor that has an entry for each unit, with the axis of the units and their positions along it."""
    for place in (*space.producers, *space.passes):
        for name, axis in place.tensors:
            tensor: Tensor = getattr(model.get_submodule(place.module), name)
            yield tensor.detach(), axis, place.positions.reshape(space.size, -1)


def sizes_of(model: nn.Module, example: Inputs) -> dict[str, int]:
    """Return the size of each space."""
    return {name: space.size for name, space in anatomy(model, example).spaces.items()}


def assert_same(left: nn.Module, right: nn.Module, example: Inputs, tolerance: float = 1e-10) -> None:
    """Assert that two networks give the same outputs."""
    for one, other in zip(outputs(left, example), outputs(right, example), strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=tolerance)


def assert_identical(left: nn.Module, right: nn.Module) -> None:
    """Assert that two networks have the same structure and, bit for bit, the same tensors."""
    assert repr(left) == repr(right)
    assert_equal_states(left.state_dict(), right.state_dict())


def assert_equal_states(left: Mapping[str, Tensor], right: Mapping[str, Tensor]) -> None:
    """Assert that tensors are equal, bit for bit and by name."""
    assert list(left) == list(right)
    for name, tensor in left.items():
        assert tensor.dtype == right[name].dtype and torch.equal(tensor, right[name]), name


@contextmanager
def untouched(model: nn.Module) -> Iterator[None]:
    """Assert that a block leaves a network as it is: tensors, modes, what is trained, attributes, hooks."""
    before = state_of(model)
    tensors = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    yield
    assert state_of(model) == before
    assert_equal_states(model.state_dict(), tensors)


def state_of(model: nn.Module) -> list[Any]:
    """Return all of a network but the values of its tensors: structure, modes, attributes, what is trained."""
    modules = [(name, type(module), module.training, plain(module)) for name, module in model.named_modules()]
    parameters = [(name, id(parameter), parameter.requires_grad) for name, parameter in model.named_parameters()]
    return [repr(model), modules, parameters]


def plain(module: nn.Module) -> dict[str, Any]:
    """Return a module's attributes; of its tensors and children, and of its hooks, the names only."""
    return {name: list(value) if isinstance(value, dict) else value for name, value in vars(module).items()}
