"""The one operation behind every change of width: re-express the old units of a space in new ones.

h_old ≈ mix · h_new + shift. Layers that write the space, or pass it on, gather rows by index; layers that read it get
the weights W · mix, and W · shift goes to their bias. Removal selects, merging adds with a coefficient, widening copies
a unit and splits its outgoing weights, growing appends units that nothing reads yet.
"""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

import numpy
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from topiarist.errors import ModelError
from topiarist.randomness import generator
from topiarist.surgery import layers
from topiarist.tracing import Place, Space

Indices = NDArray[numpy.int64]
Rows = Mapping[str, Tensor]


@dataclass(frozen=True, kw_only=True)
class Reexpression:
    """New units for the old ones of a space.

    `copies` (n_old,) says how many new units each old one gives; they stand where it stood. `mix` (n_old, n_new) and
    `shift` (n_old,) express the old activations in the new; without them, readers just gather. The last `fresh` of the
    new units are drawn anew from `seed`.
    """

    copies: Indices
    mix: Tensor | None = None
    shift: Tensor | None = None
    fresh: int = 0
    seed: int = 0


@dataclass(frozen=True)
class Part:
    """One space along an axis: its place before, what happens to it, and its positions after."""

    place: Place
    change: Reexpression
    positions: Indices


def change_widths(
    model: nn.Module, spaces: Mapping[str, Space], changes: Mapping[str, Reexpression], *, structure_only: bool = False
) -> Rows:
    """Change the widths of spaces, in place; give, by name, the old rows that layers still write or pass on.

    With `structure_only`, values are gathered and never computed.
    """
    meetings: defaultdict[tuple[str, str], list[tuple[Place, Reexpression]]] = defaultdict(list)
    for name, change in changes.items():
        space = spaces[name]
        for place in (*space.producers, *space.passes, *space.consumers):
            meetings[place.name, place.role].append((place, change))
    axes = {key: change_axis(model, parts, structure_only) for key, parts in meetings.items()}
    return {name: rows for (name, role), rows in axes.items() if role != "reads"}


def change_axis(model: nn.Module, parts: list[tuple[Place, Reexpression]], structure_only: bool) -> Tensor:
    """Change all spaces along one axis of one layer; give the old position for each new one."""
    place = parts[0][0]
    module = model.get_submodule(place.module)
    take, changed = new_axis(parts)
    index = torch.from_numpy(take).to(layers.device_of(module))
    if place.parameter is not None:
        layers.gather_parameter(module, place.parameter, place.dimension, index)
    elif place.role == "reads":
        weight = layers.weight_of(module)
        layers.gather_columns(module, index)
        for part in changed:
            reexpress_columns(module, weight, part, structure_only)
    else:
        layers.gather_rows(module, index)
        for part in changed:
            renew_rows(module, part, structure_only)
    return index


def new_axis(parts: list[tuple[Place, Reexpression]]) -> tuple[Indices, list[Part]]:
    """Give the old position for each new one, and where the units of each space are afterwards.

    The copies of a unit stand right after it, row by row.
    """
    length = parts[0][0].length
    kept = numpy.ones(length, dtype=bool)
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
    ends = numpy.cumsum([0, *(len(rows) for rows in sources)])
    changed = [
        Part(place, change, places[start:end].reshape(shape))
        for (place, change), start, end, shape in zip(parts, ends[:-1], ends[1:], shapes, strict=True)
    ]
    return source[order], changed


def reexpress_columns(module: nn.Module, weight: Tensor, part: Part, structure_only: bool) -> None:
    """Give a reader the weights W · mix for a space, and W · shift to its bias; `weight` is the old W."""
    change = part.change
    if structure_only:
        forget_columns(module, part)
        return
    units = len(change.copies)
    old = torch.from_numpy(part.place.positions.reshape(-1)).to(weight.device)
    columns = weight.index_select(1, old).reshape(len(weight), units, -1)
    if change.mix is not None:
        mixed = torch.einsum("onk,nm->omk", columns, change.mix.to(weight))
        new = torch.from_numpy(part.positions.reshape(-1)).to(weight.device)
        current = layers.weight_of(module).clone()
        current[:, new] = mixed.reshape(len(weight), len(new), *weight.shape[2:])
        layers.put(module, "weight", current)
    if change.shift is not None:
        if layers.pads_with_zeros(module) and bool(change.shift.any()):
            raise ModelError(
                f"a constant cannot move into the bias of '{part.place.module}': its zero padding would not be one"
            )
        layers.add_to_bias(module, torch.einsum("onk,n->o", columns, change.shift.to(weight)))


def forget_columns(module: nn.Module, part: Part) -> None:
    """Mark what a reader has for fresh units, and a bias that it did not have, as having no values yet."""
    if part.change.fresh:
        fresh = torch.from_numpy(part.positions[-part.change.fresh :].reshape(-1)).to(layers.device_of(module))
        layers.put(module, "weight", layers.weight_of(module).index_fill(1, fresh, torch.nan))
    if part.change.shift is not None:
        layers.ensure_bias(module, torch.nan)


def renew_rows(module: nn.Module, part: Part, structure_only: bool) -> None:
    """Draw the fresh units of a space anew."""
    if part.change.fresh:
        rows = torch.from_numpy(part.positions[-part.change.fresh :].reshape(-1)).to(layers.device_of(module))
        if structure_only:
            layers.forget_rows(module, rows)
        else:
            layers.draw_rows(module, rows, generator(part.change.seed, part.place.name))
