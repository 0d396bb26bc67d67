"""Fold: a layer is multiplied into the next one, or a batch norm into the layer before it."""

from copy import deepcopy

import torch
from torch import Tensor, fx, nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.modules.conv import _ConvNd
from torch.nn.modules.dropout import _DropoutNd

from topiarist.errors import ModelError
from topiarist.surgery import layers
from topiarist.surgery.containers import find_layer, replace_layer, take_out
from topiarist.surgery.deepening import forget
from topiarist.surgery.edits import FoldLayer
from topiarist.tracing import Anatomy
from topiarist.tracing.anatomy import Seen
from topiarist.tracing.module_rules import POINTWISE

Affine = tuple[Tensor, Tensor]
LINEAR = (nn.Linear, nn.Conv1d, nn.Conv2d)


def fold_layer(model: nn.Module, edit: FoldLayer, found: Anatomy, structure_only: bool) -> str:
    """Fold a layer, in place; give the name of the layer that took it in."""
    layer = find_layer(model, edit.layer)
    if edit.layer not in found.calls:
        raise ModelError(f"'{edit.layer}' does not run as one layer: name a layer that does")
    if isinstance(layer, _BatchNorm):
        return fold_norm(model, edit.layer, found, structure_only)
    chain = chain_from(model, edit, found)
    receiver, between = chain[-1], chain[1:-1]
    modules = [model.get_submodule(name) for name in between]
    norms = [module for module in modules if isinstance(module, _BatchNorm)]
    folded = product(layer, norms, model.get_submodule(receiver), edit.layer, exact=not structure_only)
    if structure_only:
        forget(folded)
    replace_layer(model, receiver, folded)
    for name in (edit.layer, *between):
        take_out(model, name, found.calls[name].node)
    return receiver


def chain_from(model: nn.Module, edit: FoldLayer, found: Anatomy) -> list[str]:
    """Give the names of the layer, of what lies between, and of the linear layer or convolution that comes next."""
    chain = [edit.layer]
    while True:
        seen = found.calls[chain[-1]]
        users = list(seen.node.users)
        if seen.count != 1 or len(users) != 1:
            raise ModelError(f"'{edit.layer}' cannot fold: what '{chain[-1]}' gives is not read by one layer alone")
        if users[0].op != "call_module":
            what = "the network's output" if users[0].op == "output" else f"'{users[0].name}' in forward"
            raise ModelError(f"'{edit.layer}' cannot fold: {what} comes before the next layer")
        name = str(users[0].target)
        module = model.get_submodule(name)
        chain.append(name)
        if isinstance(module, LINEAR):
            if found.calls[name].count != 1:
                raise ModelError(f"'{edit.layer}' cannot fold into '{name}', which runs more than once")
            return chain
        passes = isinstance(module, (nn.Identity, _DropoutNd, _BatchNorm))
        if isinstance(module, _BatchNorm):
            check_axis(name, found.calls[edit.layer])
        if not passes and not (edit.linearise and isinstance(module, POINTWISE)):
            kind = type(module).__name__
            hint = "; linearise=True drops it" if isinstance(module, POINTWISE) else ""
            raise ModelError(f"'{edit.layer}' cannot fold: '{name}' ({kind}) lies between it and the next layer{hint}")


def product(layer: nn.Module, norms: list[_BatchNorm], receiver: nn.Module, name: str, *, exact: bool) -> nn.Module:
    """Give the layer that does what a layer, batch norms and the next layer do one after the other."""
    linear = isinstance(layer, nn.Linear) and isinstance(receiver, nn.Linear)
    kinds_fit = any(isinstance(layer, kind) and isinstance(receiver, kind) for kind in LINEAR)
    grouped = any(isinstance(one, _ConvNd) and one.groups != 1 for one in (layer, receiver))
    if not kinds_fit or grouped or not (layers.is_plain(layer) and layers.is_plain(receiver)):
        kinds = f"{type(layer).__name__} into {type(receiver).__name__}"
        raise ModelError(f"'{name}' cannot fold: {kinds} is not one layer")
    first, constant = absorbed(layer, norms)
    second = layers.weight_of(receiver)
    padded = exact and layers.pads_with_zeros(receiver) and bool(constant.any())
    if linear or is_pointwise(receiver):
        weight = torch.einsum("om,mi...->oi...", second.flatten(1), first)
    elif is_pointwise(layer, step=1) and not padded:
        weight = torch.einsum("om...,mi->oi...", second, first.flatten(1))
    else:
        raise ModelError(f"'{name}' cannot fold: one of two convolutions must be 1×1, and no bias padded over")
    folded = deepcopy(receiver)
    layers.put(folded, "weight", weight)
    if receiver.bias is not None or layer.bias is not None or norms:
        layers.add_to_bias(folded, torch.einsum("omk,m->o", second.reshape(*second.shape[:2], -1), constant))
    take_geometry(folded, layer, from_layer=not linear and is_pointwise(receiver))
    return folded


def take_geometry(folded: nn.Module, layer: nn.Module, *, from_layer: bool) -> None:
    """Let the settings of a folded layer say what it reads; the geometry is that of the one that is not 1×1."""
    if isinstance(folded, nn.Linear):
        folded.in_features = folded.weight.shape[1]
    if isinstance(folded, _ConvNd) and isinstance(layer, _ConvNd):
        folded.in_channels = layer.in_channels
        if from_layer:
            for name in ("kernel_size", "padding", "dilation", "padding_mode", "_reversed_padding_repeated_twice"):
                setattr(folded, name, getattr(layer, name))
            folded.stride = tuple(first * second for first, second in zip(layer.stride, folded.stride, strict=True))
            if isinstance(folded.padding, str) and set(folded.stride) != {1}:
                folded.padding = written_padding(layer)


def written_padding(layer: _ConvNd) -> tuple[int, ...]:
    """Give a padding that is known by name as numbers, which a layer that takes wide steps must have."""
    sides = list(reversed(layer._reversed_padding_repeated_twice))
    if sides[::2] != sides[1::2]:
        raise ModelError("a padding that differs from side to side cannot fold into a layer that takes wide steps")
    return tuple(sides[::2])


def is_pointwise(layer: nn.Module, *, step: int | None = None) -> bool:
    """Say whether a convolution sees one position only, and no padding, and goes on by the step asked for."""
    assert isinstance(layer, _ConvNd)
    padded = layer.padding != "valid" and not isinstance(layer.padding, str) and any(layer.padding)
    small = set(layer.kernel_size) == {1} and not padded
    return small and (step is None or set(layer.stride) == {step})


def absorbed(layer: nn.Module, norms: list[_BatchNorm]) -> Affine:
    """Give the weights and the bias of a layer with the batch norms that follow it."""
    weight = layers.weight_of(layer)
    own = layers.bias_of(layer)
    bias = weight.new_zeros(len(weight)) if own is None else own
    for norm in norms:
        scale, shift = affine_of(norm)
        weight = weight * scale.reshape(-1, *(1,) * (weight.ndim - 1))
        bias = bias * scale + shift
    return weight, bias


def check_axis(name: str, seen: Seen) -> None:
    """Refuse a batch norm that does not normalise what the layer before it writes."""
    if seen.axis != 1 - len(seen.shape):
        raise ModelError(f"'{name}' cannot fold: it normalises another axis than that of the units")


def affine_of(norm: _BatchNorm) -> Affine:
    """Give what a batch norm multiplies by, and what it adds, in evaluation mode."""
    if norm.running_mean is None or norm.running_var is None:
        raise ModelError("a batch norm without statistics of its own cannot fold")
    scale = torch.rsqrt(norm.running_var + norm.eps)
    if norm.weight is not None:
        scale = scale * norm.weight.detach()
    shift = -norm.running_mean * scale
    return scale, shift if norm.bias is None else shift + norm.bias.detach()


def fold_norm(model: nn.Module, name: str, found: Anatomy, structure_only: bool) -> str:
    """Fold a batch norm into the layer whose output it alone reads."""
    seen = found.calls[name]
    source = seen.node.args[0]
    path = str(source.target) if isinstance(source, fx.Node) and source.op == "call_module" else ""
    layer, norm = model.get_submodule(path), model.get_submodule(name)
    alone = path and found.calls[path].count == 1 and len(found.calls[path].node.users) == 1 and seen.count == 1
    if not isinstance(layer, LINEAR) or not layers.is_plain(layer) or not isinstance(norm, _BatchNorm) or not alone:
        raise ModelError(f"'{name}' cannot fold: no layer comes right before it that it alone reads")
    check_axis(name, found.calls[path])
    weight, bias = absorbed(layer, [norm])
    layers.put(layer, "weight", weight)
    layers.put(layer, "bias", bias)
    if structure_only:
        forget(layer)
    take_out(model, name, seen.node)
    return path
