"""The values of parameters along an axis whose width changes: gathered, mixed, drawn anew, or moved into a bias."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from topiarist.errors import ModelError
from topiarist.randomness import generator
from topiarist.surgery import layers
from topiarist.surgery.width.axes import WidthPart
from topiarist.tracing.spaces import Indices


def change_axis(
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
