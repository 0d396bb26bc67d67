"""Units that are constant: their incoming weights are all zero, so what they give can move into the biases behind them.

That is exact where every layer that reads a unit gets the same value of it, whatever the sample, the position and the
size of the picture. So nothing moves where a gate changes the unit, where zeros are padded around a constant that is
not zero, or where a position has a value of its own.
"""

from typing import Any

import numpy
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.modules.conv import _ConvNd

from topiarist.errors import ModelError
from topiarist.surgery import layers
from topiarist.surgery.edits import RemoveUnits
from topiarist.surgery.watching import watch
from topiarist.tracing import Anatomy, Inputs, Place, Space
from topiarist.tracing.function_rules import known_name
from topiarist.tracing.graph import arguments

Flags = NDArray[numpy.bool_]
Values = dict[str, Tensor]


def find_unread(model: nn.Module, space: Space) -> Flags:
    """Say of each unit whether all weights of all layers that read it are zero."""
    flags = numpy.ones(space.size, dtype=bool)
    for place in space.consumers:
        weight = layers.weight_of(model.get_submodule(place.module))
        read = (weight != 0).transpose(0, 1).flatten(1).any(1).cpu().numpy()
        flags &= ~read[place.positions].reshape(space.size, -1).any(1)
    return flags


def find_unfed(model: nn.Module, space: Space) -> Flags:
    """Say of each unit whether all weights of all layers that write it are zero."""
    flags = numpy.full(space.size, bool(space.producers))
    for place in space.producers:
        weight = layers.weight_of(model.get_submodule(place.module))
        fed = (weight != 0).flatten(1).any(1).cpu().numpy()
        flags &= ~fed[place.positions].reshape(space.size, -1).any(1)
    return flags


def find_constant(model: nn.Module, space: Space, found: Anatomy, example_input: Inputs) -> tuple[Flags, Values]:
    """Say of each unit whether it is a constant that can move; also give what each layer reads (n_inputs,)."""
    flags = find_unfed(model, space)
    values: Values = {}
    if space.modulated or pads_averages(model, found) or not flags.any():
        return numpy.zeros(space.size, dtype=bool), values
    for place in space.consumers:
        read = read_by(model, place.module, found, example_input)
        values[place.module] = read[:, 0]
        steady = is_steady(read, zero=layers.pads_with_zeros(model.get_submodule(place.module)))
        flags &= steady[place.positions].reshape(space.size, -1).all(1)
    for place in space.passes:
        module = model.get_submodule(place.module)
        if layers.pads_with_zeros(module):
            steady = is_steady(read_by(model, place.module, found, example_input), zero=True)
            flags &= steady[group_inputs(module, place)].all(1)
    return flags, values


def read_by(model: nn.Module, path: str, found: Anatomy, example_input: Inputs) -> Tensor:
    """Give what a layer reads of the example, over all samples, positions and calls: (n_inputs, n_readings)."""
    args, kwargs = arguments(model, example_input)
    taken = [taken for taken, _ in watch(model, path, found.calls[path].count, args, kwargs)]
    axis = 1 if isinstance(model.get_submodule(path), _ConvNd) else -1
    return torch.cat([x.movedim(axis, 0).flatten(1) for x in taken], dim=1)


def is_steady(read: Tensor, *, zero: bool) -> Flags:
    """Say of each input whether it is the same in all readings, and zero where that is asked.

    The last bits may differ: torch rounds differently at the end of a row.
    """
    first = read[:, :1]
    same = ((read - first).abs() <= 16 * torch.finfo(read.dtype).eps * first.abs()).all(1)
    flags: Flags = (same & (read[:, 0] == 0) if zero else same).cpu().numpy()
    return flags


def group_inputs(module: nn.Module, place: Place) -> NDArray[numpy.int64]:
    """Give the inputs (n_units, n_inputs) of the groups of a convolution that belong to each unit."""
    assert isinstance(module, _ConvNd)
    rows, columns = module.out_channels // module.groups, module.in_channels // module.groups
    groups = place.positions.reshape(len(place.positions), -1) // rows
    return (groups[:, :, None] * columns + numpy.arange(columns)).reshape(len(groups), -1)


def pads_averages(model: nn.Module, found: Anatomy) -> bool:
    """Say whether a network averages zeros beyond its borders in, which makes a constant uneven there."""
    nodes = next((seen.node.graph.nodes for seen in found.calls.values()), ())
    for node in nodes:
        padding: Any = 0
        counted: Any = True
        if node.op == "call_module":
            module = model.get_submodule(str(node.target))
            if isinstance(module, (nn.AvgPool1d, nn.AvgPool2d)):
                padding, counted = module.padding, module.count_include_pad
        elif (known_name(node) or "").startswith("avg_pool"):
            padding = node.kwargs.get("padding", node.args[3] if len(node.args) > 3 else 0)
            counted = node.kwargs.get("count_include_pad", node.args[5] if len(node.args) > 5 else True)
        if counted and padding not in (0, (0,), (0, 0)):
            return True
    return False


def move_constants(model: nn.Module, edit: RemoveUnits, found: Anatomy, example_input: Inputs) -> None:
    """Move what the units of a removal give into the biases of the layers it names, in place."""
    for name in edit.biased:
        module = model.get_submodule(name)
        if not isinstance(module, (nn.Linear, _ConvNd)):
            raise ModelError(f"'{name}' is no linear layer or convolution, and cannot take a constant")
    for name, units in edit.units.items() if edit.biased else ():
        space = found.space(name)
        moved = numpy.isin(numpy.arange(space.size), units) & ~find_unread(model, space)
        constant, values = find_constant(model, space, found, example_input)
        if (moved & ~constant).any():
            unit = int(numpy.flatnonzero(moved & ~constant)[0])
            raise ModelError(f"unit {unit} of '{name}' is not constant here: the plan is for another network")
        for place in space.consumers if moved.any() else ():
            if place.module in edit.biased:
                given = constant_output(model, place, moved, values[place.module])
                layers.add_to_bias(model.get_submodule(place.module), given)


def constant_output(model: nn.Module, place: Place, units: Flags, values: Tensor) -> Tensor:
    """Give what a layer makes of some units that are constant (n_outputs,)."""
    weight = layers.weight_of(model.get_submodule(place.module))
    positions = torch.from_numpy(place.positions[units].reshape(-1)).to(weight.device)
    columns = weight[:, positions].reshape(len(weight), len(positions), -1)
    return torch.einsum("oik,i->o", columns, values[positions])
