"""Where the units of spaces are along an axis, before and after a change of width: which position becomes which."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy
from torch import Tensor

from topiarist.errors import ModelError
from topiarist.tracing import Place
from topiarist.tracing.spaces import Indices, row_lengths


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


def crossing(places: Sequence[Place]) -> bool:
    """Return whether spaces cross along an axis, as heads and their dims do: a position belongs to several."""
    return len(places) > 1 and len(
        numpy.unique(numpy.concatenate([place.positions.reshape(-1) for place in places]))
    ) < sum(place.positions.size for place in places)


def crossed_axis(changed: Sequence[tuple[Place, Reexpression]]) -> tuple[Indices, list[WidthPart]]:
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


def crossed_place(place: Place, change: Reexpression | None, take: Indices) -> Place | None:
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


def unchanged(place: Place) -> Reexpression:
    """Return each unit of a place as itself."""
    return Reexpression(copies=numpy.ones(len(place.positions), dtype=numpy.int64))
