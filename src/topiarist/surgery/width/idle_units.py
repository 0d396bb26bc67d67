"""Units that do nothing: no one reads them, or all of their incoming weights are zero, so that they are constant.

What a constant unit sends out can move into the biases behind it. That is exact where every layer that reads the unit
gets the same value of it, whatever the sample, the position and the size of the image. So nothing moves where a gate
changes the unit, where zeros are padded around a constant that is not zero, or where a position has its own value.
"""

from collections.abc import Sequence
from typing import Any

import numpy
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.modules.conv import _ConvNd

from topiarist.errors import ModelError
from topiarist.surgery import layers
from topiarist.surgery.calibration import watch
from topiarist.surgery.edits.kinds import RemoveUnits
from topiarist.tracing import Anatomy, Inputs, Place, Space
from topiarist.tracing.function_rules import known_name
from topiarist.tracing.graph import arguments

Flags = NDArray[numpy.bool_]
_LAST_BITS = 16  # torch rounds differently at the end of a row


def find_idle(model: nn.Module, anatomy: Anatomy, example_input: Inputs) -> RemoveUnits:
    """Return the removal of all units that do nothing now; one unit of each space must stay."""
    units: dict[str, tuple[int, ...]] = {}
    biased: set[str] = set()
    for name, space in anatomy.free.items():
        unread = _without_weights(model, space, space.consumers)
        constant, values = _find_constant(model, space, anatomy, example_input)
        idle = unread | constant
        idle[0] &= not idle.all()
        if idle.any():
            units[name] = tuple(numpy.flatnonzero(idle).tolist())
            moved = idle & ~unread
            places = space.consumers if moved.any() else ()
            biased |= {p.module for p in places if bool(_constant_output(model, p, moved, values[p.module]).any())}
    return RemoveUnits(units=units, biased=tuple(sorted(biased)))


def move_constants(model: nn.Module, edit: RemoveUnits, anatomy: Anatomy, example_input: Inputs) -> None:
    """Move what the units of a removal return into the biases of the layers it names, in place."""
    for name in edit.biased:
        if not isinstance(model.get_submodule(name), (nn.Linear, _ConvNd)):
            raise ModelError(f"'{name}' is no linear layer or convolution, and cannot take a constant")
    for name, units in edit.units.items() if edit.biased else ():
        space = anatomy[name]
        unread = _without_weights(model, space, space.consumers)
        moved = numpy.isin(numpy.arange(space.size), units) & ~unread
        constant, values = _find_constant(model, space, anatomy, example_input)
        if (moved & ~constant).any():
            unit = int(numpy.flatnonzero(moved & ~constant)[0])
            raise ModelError(f"unit {unit} of '{name}' is not constant here: the plan is for another network")
        for place in space.consumers if moved.any() else ():
            if place.module in edit.biased:
                output = _constant_output(model, place, moved, values[place.module])
                layers.add_to_bias(model.get_submodule(place.module), output)


def _without_weights(model: nn.Module, space: Space, places: Sequence[Place]) -> Flags:
    """Return, per unit, whether all weights of layers that read it, or of layers that write it, are zero."""
    flags = numpy.ones(space.size, dtype=bool)
    for place in places:
        weight = layers.weight_of(model.get_submodule(place.module))
        weighted = (weight != 0).movedim(int(place.role == "reads"), 0).flatten(1).any(1).cpu().numpy()
        flags &= ~weighted[place.positions].reshape(space.size, -1).any(1)
    return flags


def _find_constant(
    model: nn.Module, space: Space, anatomy: Anatomy, example_input: Inputs
) -> tuple[Flags, dict[str, Tensor]]:
    """Return, per unit, whether it is a constant that can move; also what each layer reads (n_inputs,)."""
    flags = _without_weights(model, space, space.producers) & bool(space.producers)
    values: dict[str, Tensor] = {}
    if space.modulated or _pads_averages(model, anatomy) or not flags.any():
        return numpy.zeros(space.size, dtype=bool), values

    def steady(path: str) -> Flags:
        """Return, per input, whether all samples, positions and calls have the same; zero where zeros are padded."""
        module = model.get_submodule(path)
        args, kwargs = arguments(model, example_input)
        taken = [taken for taken, _ in watch(model, path, anatomy.calls[path].count, args, kwargs)]
        read = torch.cat([x.movedim(1 if isinstance(module, _ConvNd) else -1, 0).flatten(1) for x in taken], dim=1)
        first = values[path] = read[:, 0]
        same = ((read - first[:, None]).abs() <= _LAST_BITS * torch.finfo(read.dtype).eps * first.abs()[:, None]).all(1)
        found: Flags = (same & (first == 0) if layers.pads_with_zeros(module) else same).cpu().numpy()
        return found

    for place in space.consumers:
        flags &= steady(place.module)[place.positions].reshape(space.size, -1).all(1)
    for place in space.passes:
        module = model.get_submodule(place.module)
        if isinstance(module, _ConvNd) and layers.pads_with_zeros(module):  # all inputs of a unit's groups
            rows, columns = module.out_channels // module.groups, module.in_channels // module.groups
            groups = place.positions.reshape(space.size, -1, 1) // rows
            inputs = (groups * columns + numpy.arange(columns)).reshape(space.size, -1)
            flags &= steady(place.module)[inputs].all(1)
    return flags, values


def _pads_averages(model: nn.Module, anatomy: Anatomy) -> bool:
    """Return whether a network averages zeros beyond its borders in, which makes a constant uneven there."""
    nodes = next((call.node.graph.nodes for call in anatomy.calls.values()), ())
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


def _constant_output(model: nn.Module, place: Place, units: Flags, values: Tensor) -> Tensor:
    """Return what a layer makes of some units that are constant (n_outputs,)."""
    weight = layers.weight_of(model.get_submodule(place.module))
    positions = torch.from_numpy(place.positions[units].reshape(-1)).to(weight.device)
    columns = weight[:, positions].reshape(len(weight), len(positions), -1)
    return torch.einsum("oik,i->o", columns, values[positions])
