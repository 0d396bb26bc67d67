"""The one operation behind every change of width: re-express the old units of a space in new ones.

h_old ≈ mix · h_new + shift. Layers that write the space, or pass it on, gather rows by index; layers that read it get
the weights W · mix, and W · shift goes to their bias. Removal selects, merging adds with a coefficient, widening copies
a unit and splits its outgoing weights, growing appends units that nothing reads yet.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from topiarist.errors import ModelError
from topiarist.randomness import generator
from topiarist.surgery import layers
from topiarist.tracing import Anatomy, Place, Space
from topiarist.tracing.anatomy import LayerCall
from topiarist.tracing.spaces import shapes_of

Indices = NDArray[numpy.int64]
Rows = Mapping[str, Tensor]


@dataclass(frozen=True, kw_only=True)
class Reexpression:
    """New units for the old ones of a space.

    `copies` (n_old,) says how many new units stand for each old one, where it stood. `mix` (n_old, n_new) and `shift`
    (n_old,) express the old activations in the new; without them, readers just gather. The last `fresh` of the new
    units are drawn anew from `seed`.
    """

    copies: Indices
    mix: Tensor | None = None
    shift: Tensor | None = None
    fresh: int = 0
    seed: int = 0


@dataclass(frozen=True)
class WidthPart:
    """One space along an axis: its place before, what happens to it, and its positions after."""

    place: Place
    change: Reexpression
    positions: Indices


def change_widths(
    model: nn.Module, anatomy: Anatomy, changes: Mapping[str, Reexpression], *, structure_only: bool = False
) -> tuple[Rows, Anatomy]:
    """Change the widths of spaces, in place.

    Return, by name, the old rows that layers still write or pass on, and the network's new anatomy, which follows from
    the old one. With `structure_only`, values are gathered and never computed.
    """
    axes: defaultdict[tuple[str, str], list[tuple[str, Place]]] = defaultdict(list)
    for name, space in anatomy.spaces.items():
        for place in space.places:
            axes[place.name, place.role].append((name, place))
    rows, calls, moved = {}, dict(anatomy.calls), {}
    for (layer, role), met in axes.items():
        if any(name in changes for name, _ in met):
            take, parts = new_axis([(place, changes.get(name) or _unchanged(place)) for name, place in met])
            index = _change_axis(model, take, parts, structure_only)
            for (name, place), part in zip(met, parts, strict=True):
                moved[name, layer, role] = replace(place, length=len(take), positions=part.positions)
            if role != "reads":
                rows[layer] = index
            if layer in calls:
                calls[layer] = _resized(calls[layer], role, met[0][1].length, len(take))

    def now(space: Space) -> Space:
        writes, passes, reads = (
            tuple(moved.get((space.name, place.name, place.role), place) for place in places)
            for places in (space.producers, space.passes, space.consumers)
        )
        size = int(changes[space.name].copies.sum()) if space.name in changes else space.size
        return replace(space, size=size, producers=writes, passes=passes, consumers=reads)

    spaces = {name: now(space) for name, space in anatomy.spaces.items()}
    single = any(1 in (anatomy.spaces[name].size, spaces[name].size) for name in changes)
    outdated = single or anatomy.valid_for == "nothing"  # a convolution of one group, for instance, is an ordinary one
    after = replace(anatomy, spaces=spaces, calls=calls, shapes=shapes_of(model))
    return rows, replace(after, valid_for="nothing" if outdated else "widths")


def _unchanged(place: Place) -> Reexpression:
    return Reexpression(copies=numpy.ones(len(place.positions), dtype=numpy.int64))


def _resized(call: LayerCall, role: str, old: int, new: int) -> LayerCall:
    """Return a layer's call where it reads, or returns, another number of units."""
    if role == "reads":
        return replace(call, taken=call.taken * new // old)
    shape = list(call.shape)
    if call.axis is not None:
        shape[call.axis] = new
    return replace(call, shape=tuple(shape), elements=call.elements * new // old)


def _change_axis(model: nn.Module, take: Indices, parts: Sequence[WidthPart], structure_only: bool) -> Tensor:
    """Change all spaces along one axis of one layer; return the old position for each new one."""
    place = parts[0].place
    module = model.get_submodule(place.module)
    index = torch.from_numpy(take).to(layers.device_of(module))
    if place.parameter is not None:
        tensor = getattr(module, place.parameter).detach()
        layers.put(module, place.parameter, tensor.index_select(place.dimension, index))
    elif place.role == "reads":
        weight = layers.weight_of(module)
        layers.gather_columns(module, index)
        for part in parts:
            _reexpress_columns(module, weight, part, structure_only)
    else:
        layers.gather_rows(module, index)
        for part in parts:
            if part.change.fresh and structure_only:
                layers.forget_rows(module, _fresh(part, index.device))
            elif part.change.fresh:
                random = generator(part.change.seed, part.place.name)
                layers.draw_rows(module, _fresh(part, index.device), random)
    return index


def new_axis(parts: Sequence[tuple[Place, Reexpression]]) -> tuple[Indices, list[WidthPart]]:
    """Return the old position for each new one, and where the units of each space are afterwards.

    The copies of a unit stand right after it, row by row: units 0 1 with `copies` (2, 1) and two positions each, at 0 1
    2 3, are taken from 0 1 0 1 2 3.
    """
    kept = numpy.ones(parts[0][0].length, dtype=bool)
    sources, starts, numbers, shapes = [], [], [], []
    for place, change in parts:
        kept[place.positions.reshape(-1)] = False
        units = numpy.repeat(numpy.arange(len(change.copies)), change.copies)
        number = numpy.arange(len(units)) - numpy.repeat(numpy.cumsum(change.copies) - change.copies, change.copies)
        rows = place.positions[units]
        sources.append(rows.reshape(-1))
        starts.append(numpy.broadcast_to(rows[:, :, :1], rows.shape).reshape(-1))
        numbers.append(numpy.broadcast_to(number[:, None, None], rows.shape).reshape(-1))
        shapes.append(rows.shape)
    others = numpy.flatnonzero(kept)
    source = numpy.concatenate([*sources, others])
    order = numpy.lexsort((source, numpy.concatenate([*numbers, others * 0]), numpy.concatenate([*starts, others])))
    places = numpy.empty_like(order)
    places[order] = numpy.arange(len(order))
    ends = numpy.cumsum([len(rows) for rows in sources])
    positions = (each.reshape(shape) for each, shape in zip(numpy.split(places, ends), shapes, strict=False))
    return source[order], [WidthPart(*part, each) for part, each in zip(parts, positions, strict=True)]


def _reexpress_columns(module: nn.Module, weight: Tensor, part: WidthPart, structure_only: bool) -> None:
    """Put the weights W · mix for a space into a reader, and W · shift into its bias; `weight` is the old W.

    With `structure_only`, mark what it has for fresh units, and a bias that it did not have, as having no values yet.
    """
    change = part.change
    if structure_only:
        if change.fresh:
            fresh = _fresh(part, weight.device)
            layers.put(module, "weight", layers.weight_of(module).index_fill(1, fresh, torch.nan))
        if change.shift is not None:
            layers.ensure_bias(module, torch.nan)
    if structure_only or (change.mix is None and change.shift is None):
        return
    old = torch.from_numpy(part.place.positions.reshape(-1)).to(weight.device)
    columns = weight.index_select(1, old).reshape(len(weight), len(change.copies), -1)
    if change.mix is not None:
        mixed = torch.einsum("onk,nm->omk", columns, change.mix.to(weight))
        new = torch.from_numpy(part.positions.reshape(-1)).to(weight.device)
        current = layers.weight_of(module).clone()
        current[:, new] = mixed.reshape(len(weight), len(new), *weight.shape[2:])
        layers.put(module, "weight", current)
    if change.shift is not None:
        if layers.pads_with_zeros(module) and bool(change.shift.any()):
            raise ModelError(
                f"a constant cannot move into the bias of '{part.place.module}', which pads with zeros: merge without"
                " a shift"
            )
        layers.add_to_bias(module, torch.einsum("onk,n->o", columns, change.shift.to(weight)))


def _fresh(part: WidthPart, device: torch.device) -> Tensor:
    """Return the positions of the fresh units of a space."""
    return torch.from_numpy(part.positions[-part.change.fresh :].reshape(-1)).to(device)
