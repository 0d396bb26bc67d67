"""The one operation behind every change of width: re-express the old units of a space in new ones.

h_old ≈ mix · h_new + shift. Parameters that write the space, or pass it on, gather positions by index; those that read
it get the weights W · mix, and W · shift goes to their bias. Removal selects, merging adds with a coefficient, widening
copies a unit and splits its outgoing weights, growing appends units that nothing reads yet.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from topiarist.errors import ModelError
from topiarist.models.attention import with_free_attention
from topiarist.randomness import generator
from topiarist.surgery import layers
from topiarist.tracing import Anatomy, Place, Space
from topiarist.tracing.parameter_sizes import shapes_of
from topiarist.tracing.spaces import row_lengths
from topiarist.tracing.steps import LayerCall

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

    @property
    def only_removes(self) -> bool:
        """Return whether units go, and that is all."""
        return self.mix is None and self.shift is None and not self.fresh and int(self.copies.max()) <= 1


@dataclass(frozen=True)
class WidthPart:
    """One space along an axis: its place before, what happens to it, and its positions after."""

    place: Place
    change: Reexpression
    positions: Indices


def change_widths(
    model: nn.Module, anatomy: Anatomy, changes: Mapping[str, Reexpression], *, structure_only: bool = False
) -> tuple[Rows, Anatomy]:
    """Change the widths of spaces, in place, and the integers of the network's modules with them.

    Return, by name, the old rows that layers still write or pass on, and the network's new anatomy, which follows from
    the old one. With `structure_only`, values are gathered and never computed.
    """
    units = {name: numpy.repeat(anatomy.spaces[name].units, change.copies) for name, change in changes.items()}
    integers = anatomy.integers_for(units)
    axes: defaultdict[tuple[str, tuple[tuple[str, int], ...]], list[tuple[str, Place]]] = defaultdict(list)
    for name, space in anatomy.spaces.items():
        for place in space.places:
            axes[place.module, place.tensors].append((name, place))
    touched = {place.module for name in changes for place in anatomy.spaces[name].places}
    with_free_attention(model, {path for each in touched for path in (each, each.rpartition(".")[0])})
    rows, calls, moved = {}, dict(anatomy.calls), {}
    outdated = anatomy.valid_for == "nothing"
    holders = layers.Holders(model)
    for met in axes.values():
        changed = [(place, changes[name]) for name, place in met if name in changes]
        if not changed:
            continue
        place = met[0][1]
        if _crossing([place for _, place in met]):
            take, parts = _crossed_axis(changed)
            after = [_crossed_place(own, changes.get(name), take) for name, own in met]
        else:
            take, parts = new_axis([(place, changes.get(name) or _unchanged(place)) for name, place in met])
            after = [replace(part.place, length=len(take), positions=part.positions) for part in parts]
        for (name, own), new in zip(met, after, strict=True):
            if new is None:
                outdated = True
            else:
                moved[name, own.name, own.role, own.tensors] = new
        index = _change_axis(model, holders, take, parts, structure_only)
        if place.role != "reads" and place.parameter is None:
            rows[place.module] = index
        if place.module in calls and place.parameter is None:
            calls[place.module] = _resized(calls[place.module], place.role, place.length, len(take))
    layers.set_integers(model, integers)
    if anatomy.trace is not None:
        _renumber(model, anatomy, units, holders)
    layers.follow_parameters(model, holders.changed)

    def now(space: Space) -> Space:
        writes, passes, reads = (
            tuple(moved.get((space.name, place.name, place.role, place.tensors), place) for place in places)
            for places in (space.producers, space.passes, space.consumers)
        )
        own = units.get(space.name, space.units)
        size = len(own) if space.name in changes else space.size
        return replace(space, size=size, producers=writes, passes=passes, consumers=reads, units=own)

    spaces = {name: now(space) for name, space in anatomy.spaces.items()}
    single = any(1 in (anatomy.spaces[name].size, spaces[name].size) for name in changes)
    outdated |= single or anatomy.has_renumberings  # a convolution of one group, for instance, is an ordinary one
    left = [numpy.setdiff1d(anatomy.spaces[name].units, own) for name, own in units.items()]
    gone = numpy.concatenate([anatomy.gone, *left])
    changed_anatomy = replace(
        anatomy, spaces=spaces, calls=calls, shapes=shapes_of(model), integers=integers, gone=gone
    )
    return rows, replace(changed_anatomy, valid_for="nothing" if outdated else "widths")


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


def _crossing(places: Sequence[Place]) -> bool:
    """Return whether spaces cross along an axis, as heads and their dims do: a position belongs to several."""
    return len(places) > 1 and len(
        numpy.unique(numpy.concatenate([place.positions.reshape(-1) for place in places]))
    ) < sum(place.positions.size for place in places)


def _crossed_axis(changed: Sequence[tuple[Place, Reexpression]]) -> tuple[Indices, list[WidthPart]]:
    """Return the old position for each new one where spaces cross; only one of them may do more than lose units."""
    if len(changed) == 1:
        return new_axis(changed)
    if not all(change.only_removes for _, change in changed):
        raise ModelError(f"'{changed[0][0].name}' has spaces that cross along one axis: change one of them at a time")
    kept = numpy.ones(changed[0][0].length, dtype=bool)
    for place, change in changed:
        kept[place.positions[change.copies == 0].reshape(-1)] = False
    take = numpy.flatnonzero(kept)
    return take, [WidthPart(place, change, place.positions) for place, change in changed]


def _crossed_place(place: Place, change: Reexpression | None, take: Indices) -> Place | None:
    """Return where the units of a space are after a change of those it crosses; None where that does not follow."""
    if len(take) > place.length or len(numpy.unique(take)) < len(take):
        return None
    new = numpy.full(place.length, -1)
    new[take] = numpy.arange(len(take))
    rows = new[place.positions if change is None else place.positions[change.copies > 0]]
    flat = rows.reshape(len(rows), -1)
    if len(numpy.unique((flat >= 0).sum(axis=1))) != 1:
        return None
    left = numpy.sort(flat[flat >= 0].reshape(len(flat), -1), axis=1)
    lengths = row_lengths(left)
    even = len(set(lengths)) == 1
    positions = left.reshape(len(left), -1, lengths[0] if even else 1)
    return replace(place, length=len(take), positions=positions, scattered=not even)


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


def _change_axis(
    model: nn.Module, holders: layers.Holders, take: Indices, parts: Sequence[WidthPart], structure_only: bool
) -> Tensor:
    """Change all spaces along one axis of a module's tensors; return the old position for each new one."""
    place = parts[0].place
    module = model.get_submodule(place.module)
    index = torch.from_numpy(take).to(layers.device_of(module))
    shifts = [] if place.role != "reads" else [_shift(module, part, structure_only) for part in parts]
    for name, axis in place.tensors:
        old: Tensor = getattr(module, name).detach()
        new = old.index_select(axis, index.to(old.device))
        for part in parts:
            if part.change.fresh and place.role != "reads":
                new = _with_fresh(new, name, axis, module, part, structure_only)
            elif place.role == "reads" and not part.change.only_removes:
                new = _reexpressed(old, new, axis, part, structure_only)
        holders.put(module, name, new)
    for shift in shifts:
        if shift is not None:
            layers.add_to_bias(module, shift)
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


def _with_fresh(new: Tensor, name: str, axis: int, module: nn.Module, part: WidthPart, structure_only: bool) -> Tensor:
    """Return a tensor whose fresh units are drawn anew, or marked as having no values yet."""
    fresh = _fresh(part, new.device)
    if structure_only:
        return new.index_fill(axis, fresh, torch.nan) if new.is_floating_point() else new
    return layers.drawn(new, name, axis, module, fresh, generator(part.change.seed, part.place.name))


def _reexpressed(old: Tensor, new: Tensor, axis: int, part: WidthPart, structure_only: bool) -> Tensor:
    """Return the weights W · mix for a space in a tensor that reads it; `old` is W, `new` what was gathered of it.

    With `structure_only`, what it has for fresh units is marked as having no values yet.
    """
    change = part.change
    if structure_only:
        return new.index_fill(axis, _fresh(part, new.device), torch.nan) if change.fresh else new
    if change.mix is None:
        return new
    weight = old.movedim(axis, 0)
    before = torch.from_numpy(part.place.positions.reshape(-1)).to(weight.device)
    rows = weight.index_select(0, before).reshape(len(change.copies), -1)
    mixed = change.mix.to(weight).T @ rows
    after = torch.from_numpy(part.positions.reshape(-1)).to(weight.device)
    current = new.movedim(axis, 0).clone()
    current[after] = mixed.reshape(len(after), *weight.shape[1:])
    return current.movedim(0, axis).contiguous()


def _shift(module: nn.Module, part: WidthPart, structure_only: bool) -> Tensor | None:
    """Return W · shift, for the bias of the layer that reads a space; None where there is no shift."""
    place, shift = part.place, part.change.shift
    if shift is None:
        return None
    if place.parameter is not None:
        raise ModelError(f"a constant cannot move into '{place.name}', which is no layer with a bias: merge without it")
    if structure_only:
        layers.ensure_bias(module, torch.nan)
        return None
    if layers.pads_with_zeros(module) and bool(shift.any()):
        raise ModelError(
            f"a constant cannot move into the bias of '{place.module}', which pads with zeros: merge without a shift"
        )
    weight = layers.weight_of(module)
    old = torch.from_numpy(place.positions.reshape(-1)).to(weight.device)
    columns = weight.index_select(1, old).reshape(len(weight), len(shift), -1)
    return torch.einsum("onk,n->o", columns, shift.to(weight))


def _fresh(part: WidthPart, device: torch.device) -> Tensor:
    """Return the positions of the fresh units of a space."""
    return torch.from_numpy(part.positions[-part.change.fresh :].reshape(-1)).to(device)
