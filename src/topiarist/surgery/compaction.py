"""Compaction: units that do nothing go, exactly.

A unit that no one reads, its outgoing weights being zero, just goes. A unit whose incoming weights are zero is a
constant, which moves to the bias of the layers that read it; it stays where a padded convolution reads it and the
constant is not zero. What goes may leave others with nothing to do, so all is looked at again until nothing changes.
"""

from copy import deepcopy

import numpy
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.modules.conv import _ConvNd

from topiarist.surgery import layers
from topiarist.surgery.applying import perform
from topiarist.surgery.edits import RemoveUnits
from topiarist.surgery.examples import shape_of
from topiarist.surgery.plan import attach_plan, plan_of
from topiarist.surgery.watching import watch
from topiarist.tracing import Anatomy, Inputs, Place, Space, anatomy
from topiarist.tracing.graph import arguments

Flags = NDArray[numpy.bool_]
Constants = dict[str, Tensor]


def compact(model: nn.Module, example_input: Inputs) -> nn.Module:
    """Remove the units that do nothing; the network computes the same. What cannot be followed is an error."""
    current = deepcopy(model)
    while True:
        smaller = compact_once(current, example_input)
        if smaller is None:
            return current
        current = smaller


def compact_once(model: nn.Module, example_input: Inputs) -> nn.Module | None:
    """Remove the units that do nothing now; None where there are none."""
    found = anatomy(model, example_input)
    prepared = deepcopy(model)
    units: dict[str, tuple[int, ...]] = {}
    biased: list[str] = []
    for name, space in found.free.items():
        unread = find_unread(model, space)
        constants = read_constants(model, space, found, example_input)
        idle = unread if constants is None else unread | find_constant(model, space, constants)
        idle[0] &= not idle.all()  # one must stay
        if idle.any():
            units[name] = tuple(numpy.flatnonzero(idle).tolist())
            biased += move_constants(prepared, space, idle & ~unread, constants or {})
    if not units:
        return None
    edit = RemoveUnits(units=units, biased=tuple(sorted(set(biased))))
    smaller = perform(prepared, edit, example_input)
    biases = {f"{name}.bias": layers.bias_of(smaller.get_submodule(name)) for name in edit.biased}
    numbers = {name: bias for name, bias in biases.items() if bias is not None}
    attach_plan(smaller, plan_of(model).then(edit, numbers, shape_of(example_input)))
    return smaller


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


def read_constants(model: nn.Module, space: Space, found: Anatomy, example_input: Inputs) -> Constants | None:
    """Give what each layer reads of a space, (n_inputs, *positions) for one sample; None where nothing is constant."""
    if space.modulated or not find_unfed(model, space).any():
        return None
    args, kwargs = arguments(model, example_input)
    constants = {}
    for place in space.consumers:
        calls = found.calls[place.module].count
        taken = [taken for taken, _ in watch(model, place.module, calls, args, kwargs)]
        if calls > 1 and not all(torch.equal(taken[0], other) for other in taken[1:]):
            return None
        convolution = isinstance(model.get_submodule(place.module), _ConvNd)
        constants[place.module] = (taken[0] if convolution else taken[0].flatten(0, -2))[0]
    return constants


def find_constant(model: nn.Module, space: Space, constants: Constants) -> Flags:
    """Say of each unit whether it is a constant that can move into the biases."""
    flags = find_unfed(model, space)
    for place in space.consumers:
        values = constants[place.module].reshape(place.length, -1)
        even = (values == values[:, :1]).all(1)
        if layers.pads_with_zeros(model.get_submodule(place.module)):
            even &= values[:, 0] == 0
        flags &= even.cpu().numpy()[place.positions].reshape(space.size, -1).all(1)
    return flags


def move_constants(model: nn.Module, space: Space, idle: Flags, constants: Constants) -> list[str]:
    """Move what idle units give into the biases, in place; give the names of the layers that got something."""
    changed = []
    for place in space.consumers if idle.any() else ():
        moved = constant_output(model, place, idle, constants[place.module])
        if bool(moved.any()):
            layers.add_to_bias(model.get_submodule(place.module), moved)
            changed.append(place.module)
    return changed


def constant_output(model: nn.Module, place: Place, idle: Flags, values: Tensor) -> Tensor:
    """Give what a layer makes of the constants that it reads (n_outputs,)."""
    weight = layers.weight_of(model.get_submodule(place.module))
    positions = torch.from_numpy(place.positions[idle].reshape(-1)).to(weight.device)
    inputs = values.reshape(place.length, -1)[positions, 0]
    return torch.einsum("oik,i->o", weight[:, positions].reshape(len(weight), len(positions), -1), inputs)
