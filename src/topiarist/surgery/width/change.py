"""The one operation behind every change of width: re-express the old units of a space in new ones.

h_old ≈ mix · h_new + shift. Parameters that write the space, or pass it on, gather positions by index; those that read
it get the weights W · mix, and W · shift goes to their bias. Removal selects, merging adds with a coefficient, widening
copies a unit and splits its outgoing weights, growing appends units that nothing reads yet.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy
import torch
from torch import Tensor, nn

from topiarist.models.attention import with_free_attention
from topiarist.surgery import layers
from topiarist.surgery.width.axes import (
    Reexpression,
    WidthPart,
    crossed_axis,
    crossed_place,
    crossing,
    new_axis,
    unchanged,
)
from topiarist.surgery.width.parameters import change_axis
from topiarist.tracing import Anatomy, Place, Space
from topiarist.tracing.parameter_sizes import shapes_of
from topiarist.tracing.spaces import Indices
from topiarist.tracing.steps import LayerCall

Rows = Mapping[str, Tensor]
Met = list[tuple[str, Place]]  # the spaces along one axis, by name, with their places there
# The new place by the space and by the old place's name, role and tensors; None where it does not follow
Moved = dict[tuple[str, str, str, tuple[tuple[str, int], ...]], Place | None]


def change_widths(
    model: nn.Module, anatomy: Anatomy, changes: Mapping[str, Reexpression], *, structure_only: bool = False
) -> tuple[Rows, Anatomy]:
    """Change the widths of spaces, in place, and the integers of the network's modules with them.

    Return, by name, the old rows that layers, or parameters of their own, still write or pass on, and the network's new
    anatomy, which follows from the old one. With `structure_only`, values are gathered and never computed.
    """
    units = {name: numpy.repeat(anatomy.spaces[name].units, change.copies) for name, change in changes.items()}
    integers = anatomy.integers_for(units)
    touched = {place.module for name in changes for place in anatomy.spaces[name].places}
    with_free_attention(model, {path for each in touched for path in (each, each.rpartition(".")[0])})
    rows, calls = {}, dict(anatomy.calls)
    moved: Moved = {}
    holders = layers.Holders(model)
    for met in _axes_of(anatomy):
        if not any(name in changes for name, _ in met):
            continue
        place = met[0][1]
        take, parts, after = _rearranged(met, changes)
        for (name, own), new in zip(met, after, strict=True):
            moved[name, own.name, own.role, own.tensors] = new
        index = change_axis(model, holders, take, parts, structure_only)
        if place.role != "reads":
            rows[place.name if place.parameter is None else rows_along(place.name, place.dimension)] = index
        if place.module in calls and place.parameter is None:
            calls[place.module] = _resized(calls[place.module], place.role, place.length, len(take))
    layers.set_integers(model, integers)
    if anatomy.trace is not None:
        _renumber(model, anatomy, units, holders)
    layers.follow_parameters(model, holders.changed)
    layers.keep_read_settings(model, anatomy, integers)
    after_all = replace(anatomy, calls=calls, shapes=shapes_of(model), integers=integers)
    return rows, _with_changed_spaces(after_all, units, moved)


def rows_along(parameter: str, axis: int) -> str:
    """Return under which name is said what is left along an axis of a parameter: its own for the first."""
    return parameter if axis == 0 else f"{parameter}:{axis}"


def _axes_of(anatomy: Anatomy) -> list[Met]:
    """Return the spaces along each axis of the network's parameters."""
    axes: defaultdict[tuple[str, tuple[tuple[str, int], ...]], Met] = defaultdict(list)
    for name, space in anatomy.spaces.items():
        for place in space.places:
            axes[place.module, place.tensors].append((name, place))
    return list(axes.values())


def _rearranged(
    met: Met, changes: Mapping[str, Reexpression]
) -> tuple[Indices, list[WidthPart], Sequence[Place | None]]:
    """Return the old position for each new one along an axis, the spaces that decide on its values, and all places.

    Those are the places of `met` after the change; None where one does not follow from what was before.
    """
    if crossing([place for _, place in met]):
        take, parts = crossed_axis([(place, changes[name]) for name, place in met if name in changes])
        return take, parts, [crossed_place(place, changes.get(name), take) for name, place in met]
    take, parts = new_axis([(place, changes.get(name) or unchanged(place)) for name, place in met])
    return take, parts, [replace(part.place, length=len(take), positions=part.positions) for part in parts]


def _with_changed_spaces(anatomy: Anatomy, units: Mapping[str, Indices], moved: Moved) -> Anatomy:
    """Return an anatomy whose spaces have other units, and other places where they moved."""
    spaces = {name: _changed_space(space, units, moved) for name, space in anatomy.spaces.items()}
    left = [numpy.setdiff1d(anatomy.spaces[name].units, own) for name, own in units.items()]
    gone = numpy.concatenate([anatomy.gone, *left])
    # A space of one unit may mean something else: a convolution of one group, for instance, is an ordinary one
    single = any(1 in (anatomy.spaces[name].size, spaces[name].size) for name in units)
    unclear = single or anatomy.has_renumberings or any(place is None for place in moved.values())
    outdated = unclear or anatomy.valid_for == "nothing"
    return replace(anatomy, spaces=spaces, gone=gone, valid_for="nothing" if outdated else "widths")


def _changed_space(space: Space, units: Mapping[str, Indices], moved: Moved) -> Space:
    writes, passes, reads = (
        tuple(moved.get((space.name, place.name, place.role, place.tensors)) or place for place in places)
        for places in (space.producers, space.passes, space.consumers)
    )
    own = units.get(space.name, space.units)
    size = len(own) if space.name in units else space.size
    return replace(space, size=size, producers=writes, passes=passes, consumers=reads, units=own)


def _renumber(model: nn.Module, anatomy: Anatomy, units: Mapping[str, Indices], holders: layers.Holders) -> None:
    """Let buffers that pick units by their numbers have the new numbers."""
    assert anatomy.trace is not None
    labels = anatomy.trace.tracer.labels
    gone = numpy.zeros(len(labels), bool)
    for name, left in units.items():
        gone[anatomy.spaces[name].units] = True
        gone[left] = False
    for each in anatomy.trace.tracer.renumberings:
        alive = labels.alive(each.vector, gone)
        if not alive.all():
            path, _, name = each.name.rpartition(".")
            module = model.get_submodule(path)
            old: Tensor = getattr(module, name)
            new = torch.from_numpy(numpy.cumsum(alive) - 1).to(old)
            holders.put(module, name, new[old])


def _resized(call: LayerCall, role: str, old: int, new: int) -> LayerCall:
    """Return a layer's call where it reads, or returns, another number of units."""
    if role == "reads":
        return replace(call, taken=call.taken * new // old)
    shape = list(call.shape)
    if call.axis is not None:
        shape[call.axis] = new
    return replace(call, shape=tuple(shape), elements=call.elements * new // old)
