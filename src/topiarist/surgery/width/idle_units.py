"""Units that do nothing: no one reads them, or all of their incoming weights are zero, so that they are constant.

What a constant unit sends out can move into the biases behind it. That is exact where every layer that reads the unit
gets the same value of it, whatever the sample, the position and the size of the image. So nothing moves where a gate
changes the unit, where zeros are padded around a constant that is not zero, or where a position has its own value.
Nothing goes where a norm runs over the units, or where other activations see them, as attention sees queries.
"""

from collections.abc import Sequence

import numpy
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.modules.conv import _ConvNd
from torch.nn.modules.linear import NonDynamicallyQuantizableLinear

from topiarist.errors import ModelError
from topiarist.surgery import layers
from topiarist.surgery.calibration import watch
from topiarist.surgery.choice.evidence import blind_spot
from topiarist.surgery.choice.recurrent import begins_with_zeros, recurrent_places
from topiarist.surgery.edits.kinds import RemoveUnits
from topiarist.tracing import Anatomy, ExampleInput, Place, Space
from topiarist.tracing.running import arguments
from topiarist.tracing.spaces import Indices
from topiarist.tracing.steps import Step

Flags = NDArray[numpy.bool_]
# Modules of torch that hold others, and use their parameters as they are.
_UNCHANGED = (nn.MultiheadAttention, NonDynamicallyQuantizableLinear)
_LAST_BITS = 16  # torch rounds differently at the end of a row


def find_idle(model: nn.Module, anatomy: Anatomy, example_input: ExampleInput) -> RemoveUnits:
    """Return the removal of all units that do nothing now; one unit of each space must stay."""
    units: dict[str, tuple[int, ...]] = {}
    biased: set[str] = set()
    for name, space in anatomy.free.items():
        unread = _find_unread(model, space, anatomy)
        constant, values = _find_constant(model, space, anatomy, example_input)
        idle = unread | constant
        idle[0] &= not idle.all()
        if idle.any():
            units[name] = tuple(numpy.flatnonzero(idle).tolist())
            moved = idle & ~unread
            places = space.readers if moved.any() else ()
            biased |= {p.module for p in places if bool(_constant_output(model, p, moved, values[p.module]).any())}
    return RemoveUnits(units=units, biased=tuple(sorted(biased)))


def move_constants(model: nn.Module, edit: RemoveUnits, anatomy: Anatomy, example_input: ExampleInput) -> None:
    """Move what the units of a removal return into the biases of the layers it names, in place."""
    for name in edit.biased:
        if not isinstance(model.get_submodule(name), (nn.Linear, _ConvNd)):
            raise ModelError(f"'{name}' is no linear layer or convolution, and cannot take a constant")
    for name, units in edit.units.items() if edit.biased else ():
        space = anatomy[name]
        unread = _find_unread(model, space, anatomy)
        moved = numpy.isin(numpy.arange(space.size), units) & ~unread
        constant, values = _find_constant(model, space, anatomy, example_input)
        if (moved & ~constant).any():
            unit = int(numpy.flatnonzero(moved & ~constant)[0])
            raise ModelError(f"unit {unit} of '{name}' is not constant here: the plan is for another network")
        for place in space.readers if moved.any() else ():
            if place.module in edit.biased:
                output = _constant_output(model, place, moved, values[place.module])
                layers.add_to_bias(model.get_submodule(place.module), output)


def _find_unread(model: nn.Module, space: Space, anatomy: Anatomy) -> Flags:
    """Return, per unit, whether all weights of all that reads it are zero, and nothing else sees it."""
    used_as_is = all(_is_used_as_is(model, place, anatomy) for place in space.consumers)
    if space.escaped or space.averaged or not used_as_is:
        return numpy.zeros(space.size, dtype=bool)
    return _without_weights(model, space, space.consumers)


def _is_used_as_is(model: nn.Module, place: Place, anatomy: Anatomy) -> bool:
    """Return whether a weight of zero reads nothing: layers of torch use it, not forward, which may change it first."""
    if place.parameter is None or isinstance(model.get_submodule(place.module), _UNCHANGED):
        return True
    leaf = None if anatomy.trace is None else anatomy.trace.tracer.leaves.get(place.name)
    return leaf is not None and None not in leaf.users


def _without_weights(model: nn.Module, space: Space, places: Sequence[Place]) -> Flags:
    """Return, per unit, whether all weights of places that read it, or of layers that write it, are zero."""
    flags = numpy.ones(space.size, dtype=bool)
    for place in places:
        name = place.parameter or "weight"
        weight: Tensor = getattr(model.get_submodule(place.module), name)
        rows = (weight != 0).movedim(dict(place.tensors)[name], 0)
        weighted = rows.reshape(len(rows), -1).any(1).cpu().numpy()
        flags &= ~weighted[place.positions].reshape(space.size, -1).any(1)
    return flags


def _find_constant(
    model: nn.Module, space: Space, anatomy: Anatomy, example_input: ExampleInput
) -> tuple[Flags, dict[str, Tensor]]:
    """Return, per unit, whether it is a constant that can move; also what each layer reads (n_inputs,)."""
    values: dict[str, Tensor] = {}
    nothing = numpy.zeros(space.size, dtype=bool)
    recurrent = recurrent_places(model, space, anatomy)
    own = any(place.parameter is not None for place in space.producers)  # forward may make anything of it
    if not recurrent and (own or blind_spot(space) is not None):
        return nothing, values
    if not space.producers or space.modulated or callable(example_input):
        return nothing, values
    flags = _without_weights(model, space, recurrent or space.producers)
    if not flags.any() or _pads_averages(model, anatomy):
        return nothing, values
    if recurrent and not begins_with_zeros(model, recurrent[0].module, example_input):
        return nothing, values

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

    for place in space.readers:
        flags &= steady(place.module)[place.positions].reshape(space.size, -1).all(1)
    for place in space.passes:
        module = model.get_submodule(place.module)
        if isinstance(module, _ConvNd) and layers.pads_with_zeros(module):
            inputs = _inputs_of(module, place, space.size)
            flags &= False if inputs is None else steady(place.module)[inputs].all(1)
    return flags, values


def _inputs_of(module: _ConvNd, place: Place, units: int) -> Indices | None:
    """Return all inputs of the groups of each unit (n_units, n_inputs) of a grouped convolution; None if unknown."""
    if place.parameter is not None:
        return None
    rows, columns = module.out_channels // module.groups, module.in_channels // module.groups
    groups = place.positions.reshape(units, -1, 1) // rows
    return (groups * columns + numpy.arange(columns)).reshape(units, -1)


def _pads_averages(model: nn.Module, anatomy: Anatomy) -> bool:
    """Return whether a network averages zeros beyond its borders in, which makes a constant uneven there."""
    return any(_pads_average(model, step) for step in _steps_of(anatomy))


def _pads_average(model: nn.Module, step: Step) -> bool:
    if step.kind == "layer":
        module = model.get_submodule(step.name)
        if not isinstance(module, (nn.AvgPool1d, nn.AvgPool2d, nn.AvgPool3d)):
            return False
        padding = (module.padding,) if isinstance(module.padding, int) else module.padding
        return module.count_include_pad and any(padding)
    if step.kind != "operation" or not step.name.startswith("avg_pool"):
        return False
    return bool(step.settings["count_include_pad"]) and any(step.settings["padding"])


def _steps_of(anatomy: Anatomy) -> set[Step]:
    """Return all that runs together with some layer."""
    waiting = [call.step for call in anatomy.calls.values()]
    known = set(waiting)
    while waiting:
        step = waiting.pop()
        new = [other for other in (*step.inputs, *step.users) if other not in known]
        known.update(new)
        waiting += new
    return known


def _constant_output(model: nn.Module, place: Place, units: Flags, values: Tensor) -> Tensor:
    """Return what a layer makes of some units that are constant (n_outputs,)."""
    weight = layers.weight_of(model.get_submodule(place.module))
    positions = torch.from_numpy(place.positions[units].reshape(-1)).to(weight.device)
    columns = weight[:, positions].reshape(len(weight), len(positions), -1)
    return torch.einsum("oik,i->o", columns, values[positions])
