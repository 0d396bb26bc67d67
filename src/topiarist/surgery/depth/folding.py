"""Fold: a layer is multiplied into the next one, or a batch norm into the layer before it."""

from copy import deepcopy

import numpy
import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.modules.conv import _ConvNd
from torch.nn.modules.dropout import _DropoutNd

from topiarist.errors import ModelError
from topiarist.surgery import layers
from topiarist.surgery.depth.containers import find_layer, replace_layer, take_out
from topiarist.surgery.depth.factorising import FACTORS
from topiarist.surgery.edits.kinds import FoldLayer
from topiarist.tracing import Anatomy
from topiarist.tracing.integers import Size, expressions_within
from topiarist.tracing.steps import LayerCall

ACTIVATIONS = (
    *(nn.ReLU, nn.ReLU6, nn.LeakyReLU, nn.RReLU, nn.ELU, nn.SELU, nn.CELU, nn.GELU, nn.SiLU, nn.Mish, nn.Sigmoid),
    *(nn.Tanh, nn.Hardtanh, nn.Hardswish, nn.Hardsigmoid, nn.Softplus, nn.Softsign, nn.Softshrink, nn.Hardshrink),
    *(nn.Tanhshrink, nn.Threshold, nn.LogSigmoid),
)
GEOMETRY = ("kernel_size", "padding", "dilation", "padding_mode", "_reversed_padding_repeated_twice")


def fold_layer(model: nn.Module, edit: FoldLayer, anatomy: Anatomy, structure_only: bool) -> str:
    """Fold a layer, in place; return the name of the layer that took it in."""
    layer = find_layer(model, edit.layer)
    if edit.layer not in anatomy.calls:
        raise ModelError(f"'{edit.layer}' does not run as one layer: name a layer that does")
    if isinstance(layer, _BatchNorm):
        return _fold_norm(model, edit.layer, anatomy, structure_only)
    _, *between, receiver = chain_from(model, edit, anatomy)
    _check_sizes(edit.layer, anatomy)
    modules = [model.get_submodule(name) for name in between]
    norms = [module for module in modules if isinstance(module, _BatchNorm)]
    folded = _product(layer, norms, model.get_submodule(receiver), edit.layer, exact=not structure_only)
    if structure_only:
        layers.forget(folded)
    replace_layer(model, receiver, folded)
    for name in (edit.layer, *between):
        take_out(model, name, anatomy.calls[name].step)
    return receiver


def chain_from(model: nn.Module, edit: FoldLayer, anatomy: Anatomy) -> list[str]:
    """Return the names of the layer, of what lies between, and of the linear layer or convolution that comes next."""
    chain = [edit.layer]
    while True:
        call = anatomy.calls[chain[-1]]
        users = call.step.users
        if call.count != 1 or len(users) != 1:
            raise ModelError(f"'{edit.layer}' cannot fold: what '{chain[-1]}' returns is not read by one layer alone")
        if users[0].kind != "layer":
            what = "the network's output" if users[0].kind == "output" else f"'{users[0].name}' in forward"
            raise ModelError(f"'{edit.layer}' cannot fold: {what} comes before the next layer")
        name = users[0].name
        module = model.get_submodule(name)
        chain.append(name)
        if isinstance(module, FACTORS):
            if anatomy.calls[name].count != 1:
                raise ModelError(f"'{edit.layer}' cannot fold into '{name}', which runs more than once")
            return chain
        if isinstance(module, _BatchNorm):
            _check_axis(name, anatomy.calls[edit.layer])
        elif not isinstance(module, (nn.Identity, _DropoutNd, *(ACTIVATIONS if edit.linearise else ()))):
            kind = type(module).__name__
            hint = "; linearise=True drops it" if isinstance(module, ACTIVATIONS) else ""
            raise ModelError(f"'{edit.layer}' cannot fold: '{name}' ({kind}) lies between it and the next layer{hint}")


def _check_sizes(name: str, anatomy: Anatomy) -> None:
    """Refuse a layer whose units forward counts: once it is gone, the count is another."""
    if anatomy.trace is None:
        return
    labels = anatomy.trace.tracer.labels
    written = [space.units for space in anatomy.spaces.values() if any(p.module == name for p in space.producers)]
    for constraint in anatomy.trace.constraints:
        for part in expressions_within(constraint.expression):
            if isinstance(part, Size) and any(numpy.isin(labels.units_at(part.vector), own).any() for own in written):
                raise ModelError(f"'{name}' cannot fold: {constraint}")


def _product(layer: nn.Module, norms: list[_BatchNorm], receiver: nn.Module, name: str, *, exact: bool) -> nn.Module:
    """Return the layer that does what a layer, batch norms and the next layer do one after the other."""
    linear = isinstance(layer, nn.Linear) and isinstance(receiver, nn.Linear)
    kinds_fit = any(isinstance(layer, kind) and isinstance(receiver, kind) for kind in FACTORS)
    grouped = any(isinstance(one, _ConvNd) and one.groups != 1 for one in (layer, receiver))
    if not kinds_fit or grouped or not (layers.is_plain(layer) and layers.is_plain(receiver)):
        kinds = f"{type(layer).__name__} into {type(receiver).__name__}"
        raise ModelError(f"'{name}' cannot fold: {kinds} is not one layer")
    first, constant = _absorbed(layer, norms)
    second = layers.weight_of(receiver)
    padded = exact and layers.pads_with_zeros(receiver) and bool(constant.any())
    if linear or _is_pointwise(receiver):
        weight = torch.einsum("om,mi...->oi...", second.flatten(1), first)
    elif _is_pointwise(layer, stride=1) and not padded:
        weight = torch.einsum("om...,mi->oi...", second, first.flatten(1))
    else:
        raise ModelError(f"'{name}' cannot fold: one of two convolutions must be 1×1, and no bias padded over")
    folded = deepcopy(receiver)
    layers.put(folded, "weight", weight)
    if receiver.bias is not None or layer.bias is not None or norms:
        layers.add_to_bias(folded, torch.einsum("omk,m->o", second.reshape(*second.shape[:2], -1), constant))
    if isinstance(folded, nn.Linear):
        folded.in_features = weight.shape[1]
    elif isinstance(folded, _ConvNd) and isinstance(layer, _ConvNd):
        folded.in_channels = layer.in_channels
        if _is_pointwise(receiver):
            _take_geometry(folded, layer)
    return folded


def _take_geometry(folded: _ConvNd, layer: _ConvNd) -> None:
    """Put the geometry of the convolution that is not 1×1 into a folded layer, with the strides of both."""
    for name in GEOMETRY:
        setattr(folded, name, getattr(layer, name))
    folded.stride = tuple(first * second for first, second in zip(layer.stride, folded.stride, strict=True))
    if isinstance(folded.padding, str) and set(folded.stride) != {1}:  # torch wants numbers there, not a name
        sides = list(reversed(layer._reversed_padding_repeated_twice))
        if sides[::2] != sides[1::2]:
            raise ModelError("a padding that differs from side to side cannot fold into a layer with a stride above 1")
        folded.padding = tuple(sides[::2])


def _is_pointwise(layer: nn.Module, *, stride: int | None = None) -> bool:
    """Return whether a convolution sees one position only, and no padding, and has the stride asked for."""
    assert isinstance(layer, _ConvNd)
    padded = not isinstance(layer.padding, str) and any(layer.padding)
    return set(layer.kernel_size) == {1} and not padded and (stride is None or set(layer.stride) == {stride})


def _absorbed(layer: nn.Module, norms: list[_BatchNorm]) -> tuple[Tensor, Tensor]:
    """Return the weights and the bias of a layer with the batch norms that follow it, in evaluation mode."""
    weight = layers.weight_of(layer)
    own = layers.bias_of(layer)
    bias = weight.new_zeros(len(weight)) if own is None else own
    for norm in norms:
        if norm.running_mean is None or norm.running_var is None:
            raise ModelError("a batch norm without statistics of its own cannot fold")
        scale = torch.rsqrt(norm.running_var + norm.eps)
        if norm.weight is not None:
            scale = scale * norm.weight.detach()
        shift = -norm.running_mean * scale
        shift = shift if norm.bias is None else shift + norm.bias.detach()
        weight = weight * scale.reshape(-1, *(1,) * (weight.ndim - 1))
        bias = bias * scale + shift
    return weight, bias


def _check_axis(name: str, call: LayerCall) -> None:
    """Refuse a batch norm that does not normalise what the layer before it writes."""
    if call.axis != 1 - len(call.shape):
        raise ModelError(f"'{name}' cannot fold: it normalises another axis than that of the units")


def _fold_norm(model: nn.Module, name: str, anatomy: Anatomy, structure_only: bool) -> str:
    """Fold a batch norm into the layer whose output it alone reads."""
    call = anatomy.calls[name]
    path = next((step.name for step in call.step.inputs if step.kind == "layer"), "")
    layer, norm = model.get_submodule(path), model.get_submodule(name)
    alone = path and anatomy.calls[path].count == 1 and len(anatomy.calls[path].step.users) == 1 and call.count == 1
    if not isinstance(layer, FACTORS) or not layers.is_plain(layer) or not isinstance(norm, _BatchNorm) or not alone:
        raise ModelError(f"'{name}' cannot fold: no layer comes right before it that it alone reads")
    _check_axis(name, anatomy.calls[path])
    weight, bias = _absorbed(layer, [norm])
    layers.put(layer, "weight", weight)
    layers.put(layer, "bias", bias)
    if structure_only:
        layers.forget(layer)
    take_out(model, name, call.step)
    return path
