"""What each edit of a width means for the units of its space."""

from collections.abc import Sequence

import numpy
import torch

from topiarist.errors import ModelError
from topiarist.randomness import generator
from topiarist.surgery.edits import GrowSpace, Merge, MergeUnits, WidenSpace
from topiarist.surgery.width import Reexpression
from topiarist.tracing import Anatomy, Space


def free_space(found: Anatomy, name: str) -> Space:
    """Give a space that can change."""
    space = found.space(name)
    if space.fixed:
        raise ModelError(f"the units of '{name}' are fixed: {space.reason}")
    return space


def reexpression(space: Space, edit: MergeUnits | WidenSpace | GrowSpace, structure_only: bool) -> Reexpression:
    """Give what an edit means for the units of its space; where only the structure counts, units are not mixed."""
    match edit:
        case MergeUnits():
            return merging(space, edit)
        case WidenSpace():
            return widening(space, edit, structure_only)
        case GrowSpace():
            return growing(space, edit, structure_only)


def removal(space: Space, units: Sequence[int]) -> Reexpression:
    """The new units are those that stay."""
    check_units(space, units)
    copies = numpy.ones(space.size, dtype=numpy.int64)
    copies[list(units)] = 0
    return Reexpression(copies=copies)


def check_units(space: Space, units: Sequence[int]) -> None:
    """Refuse units that are not there, that are named twice, or that are all there are."""
    strange = [unit for unit in units if not 0 <= unit < space.size]
    if strange:
        raise ModelError(f"'{space.name}' has units 0 to {space.size - 1}; found {strange[0]}")
    if len(set(units)) != len(units):
        raise ModelError(f"units of '{space.name}' are named twice")
    if len(units) >= space.size:
        raise ModelError(f"cannot remove {len(units)} of {space.size} units of '{space.name}': at least 1 must stay")


def merging(space: Space, edit: MergeUnits) -> Reexpression:
    """A unit that goes is a multiple of one that stays, plus a constant."""
    gone = [merge.unit for merge in edit.merges]
    copies = removal(space, gone).copies
    new = numpy.cumsum(copies) - 1
    mix = torch.zeros(space.size, int(copies.sum()), dtype=torch.float64)
    shift = torch.zeros(space.size, dtype=torch.float64)
    stays = numpy.flatnonzero(copies)
    mix[stays, new[stays]] = 1.0
    for merge in edit.merges:
        check_merge(space, merge, gone)
        mix[merge.unit, new[merge.into]] = merge.scale
        shift[merge.unit] = merge.shift
    return Reexpression(copies=copies, mix=mix, shift=shift if bool(shift.any()) else None)


def check_merge(space: Space, merge: Merge, gone: Sequence[int]) -> None:
    """Refuse to merge a unit into one that goes itself, or that is not there."""
    if merge.into >= space.size:
        raise ModelError(f"'{space.name}' has units 0 to {space.size - 1}; found {merge.into}")
    if merge.into in gone:
        raise ModelError(f"unit {merge.unit} of '{space.name}' cannot merge into unit {merge.into}, which goes itself")


def widening(space: Space, edit: WidenSpace, structure_only: bool) -> Reexpression:
    """Some units are copied; what they sent out is split between the copies, unevenly so that they can diverge.

    Or evenly, as in the paper's text, where the edit asks for it.
    """
    random = generator(edit.seed, "widen")
    copies = numpy.full(space.size, 1 + edit.by // space.size, dtype=numpy.int64)
    copies[torch.randperm(space.size, generator=random)[: edit.by % space.size].numpy()] += 1
    if structure_only:
        return Reexpression(copies=copies)
    mix = torch.zeros(space.size, int(copies.sum()), dtype=torch.float64)
    ends = numpy.cumsum(copies)
    for unit, (start, end) in enumerate(zip(ends - copies, ends, strict=True)):
        drawn = 0.5 + torch.rand(int(end - start), generator=random, dtype=torch.float64)
        shares = torch.ones_like(drawn) if edit.even else drawn
        mix[unit, start:end] = shares / shares.sum()
    return Reexpression(copies=copies, mix=mix)


def growing(space: Space, edit: GrowSpace, structure_only: bool) -> Reexpression:
    """Fresh units stand behind the last one, and nothing reads them yet."""
    copies = numpy.ones(space.size, dtype=numpy.int64)
    copies[-1] += edit.by
    mix = None if structure_only else torch.eye(space.size, space.size + edit.by, dtype=torch.float64)
    return Reexpression(copies=copies, mix=mix, fresh=edit.by, seed=edit.seed)
