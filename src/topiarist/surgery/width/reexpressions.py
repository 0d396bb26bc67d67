"""What each edit of a width means for the units of its space; units and widths as users name them."""

from collections.abc import Iterable, Sequence
from operator import index
from typing import Any

import numpy
import torch
from torch import Tensor, nn

from topiarist.devices import in_float64
from topiarist.errors import ModelError, SettingsError
from topiarist.models.evaluation import check_values
from topiarist.randomness import generator
from topiarist.surgery import layers
from topiarist.surgery.edits.kinds import GrowSpace, MergeUnits, ProjectSpace, WidenSpace
from topiarist.surgery.width.axes import Reexpression
from topiarist.surgery.width.change import change_widths
from topiarist.tracing import Anatomy, Place, Space

UnitNumbers = Iterable[int] | Tensor


def unit_numbers(units: UnitNumbers) -> tuple[int, ...]:
    """Return units as plain numbers, in the order in which they are named, from numbers or a mask of booleans."""
    given: Any = units.detach().cpu().numpy() if isinstance(units, Tensor) else units
    if isinstance(given, numpy.ndarray) and given.dtype == bool:
        given = numpy.flatnonzero(given)
    try:
        named = list(given)
        if any(isinstance(unit, bool) for unit in named):
            raise TypeError("booleans are understood in arrays and tensors only")
        return tuple(index(unit) for unit in named)
    except TypeError as error:
        raise ModelError(f"units are named by whole numbers; found {units!r} ({error})") from error


def round_up(width: int, multiple_of: int) -> int:
    """Return the smallest multiple that is at least the width, as fast hardware likes it."""
    if multiple_of < 1:
        raise SettingsError(f"multiple_of must be at least 1; found {multiple_of}")
    return -(-width // multiple_of) * multiple_of


def put_back(units: tuple[int, ...], size: int, multiple_of: int) -> tuple[int, ...]:
    """Return the units to remove without the last of them, so that a multiple of `size` stays, or all of it."""
    stays = min(round_up(size - len(units), multiple_of), size)
    return units[: size - stays]


def check_units(space: Space, units: Sequence[int]) -> None:
    """Refuse units that are not there, that are named twice, or that are all there are."""
    strange = [unit for unit in units if not 0 <= unit < space.size]
    if strange:
        raise ModelError(f"'{space.name}' has units 0 to {space.size - 1}; found {strange[0]}")
    if len(set(units)) != len(units):
        raise ModelError(f"units of '{space.name}' are named twice")
    if len(units) >= space.size:
        raise ModelError(f"cannot remove {len(units)} of {space.size} units of '{space.name}': at least 1 must stay")


def removal(space: Space, units: Sequence[int]) -> Reexpression:
    """Keep the units that stay."""
    check_units(space, units)
    copies = numpy.ones(space.size, dtype=numpy.int64)
    copies[list(units)] = 0
    return Reexpression(copies=copies)


def reexpression(space: Space, edit: MergeUnits | WidenSpace | GrowSpace, structure_only: bool) -> Reexpression:
    """Return what an edit means for the units of its space; where only the structure counts, units are not mixed."""
    scattered = next((place.name for place in space.places if place.scattered), None)
    if isinstance(edit, (WidenSpace, GrowSpace)) and scattered is not None:
        raise ModelError(f"'{space.name}' cannot get more units: they lie unevenly along '{scattered}'")
    if isinstance(edit, (WidenSpace, GrowSpace)) and (space.averaged or space.escaped):
        why = (
            "a mean or a norm runs over them"
            if space.averaged
            else "forward itself sees them, as attention does queries"
        )
        raise ModelError(f"'{space.name}' cannot get more units without a change of what the network computes: {why}")
    match edit:
        case MergeUnits():
            return _merging(space, edit)
        case WidenSpace():
            return _widening(space, edit, structure_only)
        case GrowSpace():
            return growing(space, edit, structure_only)


def _merging(space: Space, edit: MergeUnits) -> Reexpression:
    """Express a unit that goes as a multiple of one that stays, plus a constant."""
    gone = [merge.unit for merge in edit.merges]
    copies = removal(space, gone).copies
    new = numpy.cumsum(copies) - 1
    mix = torch.zeros(space.size, int(copies.sum()), dtype=torch.float64)
    shift = torch.zeros(space.size, dtype=torch.float64)
    stays = numpy.flatnonzero(copies)
    mix[stays, new[stays]] = 1.0
    for merge in edit.merges:
        if merge.into >= space.size:
            raise ModelError(f"'{space.name}' has units 0 to {space.size - 1}; found {merge.into}")
        if merge.into in gone:
            raise ModelError(
                f"unit {merge.unit} of '{space.name}' cannot merge into unit {merge.into}, which goes itself"
            )
        mix[merge.unit, new[merge.into]] = merge.scale
        shift[merge.unit] = merge.shift
    return Reexpression(copies=copies, mix=mix, shift=shift if bool(shift.any()) else None)


def _widening(space: Space, edit: WidenSpace, structure_only: bool) -> Reexpression:
    """Copy some units, and split what they sent out between the copies: unevenly, so that they can diverge.

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
    """Put fresh units behind the last one, which nothing reads yet."""
    copies = numpy.ones(space.size, dtype=numpy.int64)
    copies[-1] += edit.by
    mix = None if structure_only else torch.eye(space.size, space.size + edit.by, dtype=torch.float64)
    return Reexpression(copies=copies, mix=mix, fresh=edit.by, seed=edit.seed)


def project_space(model: nn.Module, edit: ProjectSpace, anatomy: Anatomy, structure_only: bool) -> Anatomy:
    """Keep the first singular directions of the layer that writes a space (the Surgeon's "removing neurons"), in place.

    W = V Σ Uᵀ, a row per unit; V_r are the first columns of V. The layer becomes V_rᵀ W with the bias V_rᵀ b, its
    reader R becomes R V_r. The activation between them is ignored, as in the paper, so a network with one computes
    something else. Without one, nothing of W is lost from its rank on; of b, what lies outside of V_r is. With
    `structure_only`, no weight of the two layers comes from an old one.
    """
    space = anatomy.free_space(edit.space)
    reason = obstacle(model, space, anatomy)
    if reason is not None:
        raise ModelError(f"'{space.name}' cannot be projected: {reason}")
    if edit.to > space.size:
        raise ModelError(f"cannot project {space.size} units of '{space.name}' to {edit.to}")
    copies = (numpy.arange(space.size) < edit.to).astype(numpy.int64)
    if structure_only:
        nothing_old = {space.name: Reexpression(copies=copies, fresh=edit.to)}
        return change_widths(model, anatomy, nothing_old, structure_only=True)[1]
    check_values(model, "a projection")
    writer = model.get_submodule(space.producers[0].module)
    weight, bias = layers.weight_of(writer), layers.bias_of(writer)
    if not bool(weight.isfinite().all()):
        raise ModelError(f"'{space.name}' cannot be projected: its layer has weights that are not finite numbers")
    directions = _first_directions(weight, edit.to)
    _, after = change_widths(model, anatomy, {space.name: Reexpression(copies=copies, mix=directions)})
    for name, tensor in (("weight", weight), ("bias", bias)):
        if tensor is not None:
            projected = torch.einsum("um,u...->m...", directions, in_float64(tensor))
            layers.put(writer, name, projected.to(tensor))
    return after


def _first_directions(weight: Tensor, count: int) -> Tensor:
    """Return the first left singular vectors (n_units, count) of a layer; the largest entry of each is positive.

    Behind those that the layer has come others that are orthogonal to them: units with no weights in, only a bias.
    """
    rows = in_float64(weight).flatten(1)
    left = torch.linalg.svd(rows, full_matrices=len(rows) > rows.shape[1])[0][:, :count]
    largest = left.gather(0, left.abs().argmax(0, keepdim=True))
    return torch.where(largest < 0, -left, left)


def obstacle(model: nn.Module, space: Space, anatomy: Anatomy) -> str | None:
    """Return why the units of a space cannot be mixed; None where they can.

    One layer must write it, one read it, and between them no unit may meet another.
    """
    if space.passes:
        place = space.passes[0]
        kind = "a parameter" if place.parameter is not None else type(model.get_submodule(place.module)).__name__
        return f"'{place.name}' ({kind}) has values for each of its units"
    if len(space.producers) != 1:
        return f"{_named(space.producers)} write it together, as in an addition"
    if len(space.consumers) != 1:
        return f"{_named(space.consumers)} read it, not one layer alone" if space.consumers else "no layer reads it"
    writer, reader = space.producers[0], space.consumers[0]
    if anatomy.calls[writer.module].count != 1:
        return f"'{writer.name}' runs more than once"
    if space.modulated:
        return "forward combines it with values that do not come from its layer"
    if writer.positions.size != space.size:
        return f"'{writer.name}' writes each of its units more than once"
    if reader.positions.size != reader.length or reader.positions.shape[1] != 1:
        return f"'{reader.name}' reads it together with others, as after a concatenation"
    return None


def _named(places: tuple[Place, ...]) -> str:
    return " and ".join(f"'{place.name}'" for place in places)
