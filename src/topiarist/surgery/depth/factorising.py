"""Factorise: a layer becomes the product of two thinner ones, by truncated singular value decomposition."""

from collections import OrderedDict

import torch
from torch import Tensor, nn
from torch.nn.modules.conv import _ConvNd

from topiarist.devices import in_float64
from topiarist.errors import ModelError
from topiarist.randomness import isolated
from topiarist.surgery import layers
from topiarist.surgery.depth.containers import find_layer, read_by, replace_layer
from topiarist.surgery.edits.kinds import FactoriseLayer

FACTORS = (nn.Linear, nn.Conv1d, nn.Conv2d)  # the kinds of layers that multiply


def can_factorise(model: nn.Module, name: str) -> bool:
    """Return whether a layer can be replaced by two: plain, of one group, with one name, and held by something."""
    layer = model.get_submodule(name)
    alone = [known for known, module in model.named_modules(remove_duplicate=False) if module is layer] == [name]
    grouped = isinstance(layer, _ConvNd) and layer.groups != 1
    plain = isinstance(layer, FACTORS) and layers.is_plain(layer) and read_by(model, name) is None
    return bool(name) and alone and plain and not grouped


def factorise_layer(model: nn.Module, edit: FactoriseLayer, structure_only: bool) -> None:
    """Replace a layer by two, in place: `narrow` with `rank` outputs and no bias, then `wide`."""
    layer = find_layer(model, edit.layer)
    if not isinstance(layer, FACTORS) or not layers.is_plain(layer):
        raise ModelError(
            f"only linear layers and convolutions can be factorised; '{edit.layer}' is a {type(layer).__name__}"
        )
    if isinstance(layer, _ConvNd) and layer.groups != 1:
        raise ModelError(f"'{edit.layer}' is a grouped convolution, which cannot be factorised")
    reader = read_by(model, edit.layer)
    if reader is not None:
        raise ModelError(f"'{edit.layer}' cannot be factorised: '{reader}' reads its weight beside calling it")
    weight = layers.weight_of(layer).flatten(1)
    if edit.rank > min(weight.shape):
        raise ModelError(f"'{edit.layer}' has rank {min(weight.shape)} at most; found rank={edit.rank}")
    with isolated(0):  # what torch draws for the new layers is overwritten
        narrow, wide = _thin_layers(layer, edit.rank)
    if structure_only:
        layers.forget(narrow)
        layers.forget(wide)
    else:
        first, second = _split(weight, edit.rank, balanced=edit.balanced)
        layers.put(narrow, "weight", first.reshape(layers.weight_of(narrow).shape))
        layers.put(wide, "weight", second.reshape(layers.weight_of(wide).shape))
    wide._parameters["bias"] = layer._parameters["bias"]
    for thin in (narrow, wide):
        thin.get_parameter("weight").requires_grad_(layer.weight.requires_grad)
    pair = nn.Sequential(OrderedDict(narrow=narrow, wide=wide))
    replace_layer(model, edit.layer, pair.to(layer.weight.device, layer.weight.dtype).train(layer.training))


def _thin_layers(layer: nn.Linear | nn.Conv1d | nn.Conv2d, rank: int) -> tuple[nn.Module, nn.Module]:
    """Return the two layers: the first sees what the layer saw, the second stands at one position."""
    if isinstance(layer, nn.Linear):
        return nn.Linear(layer.in_features, rank, bias=False), nn.Linear(rank, layer.out_features, bias=False)
    kind: type[nn.Conv1d | nn.Conv2d] = nn.Conv1d if isinstance(layer, nn.Conv1d) else nn.Conv2d
    geometry = {name: getattr(layer, name) for name in ("kernel_size", "stride", "padding", "dilation", "padding_mode")}
    return kind(layer.in_channels, rank, bias=False, **geometry), kind(rank, layer.out_channels, 1, bias=False)


def _split(weight: Tensor, rank: int, *, balanced: bool) -> tuple[Tensor, Tensor]:
    """Return `narrow` (rank, n_in) and `wide` (n_out, rank) whose product is nearest to a matrix.

    They are of like size, unless not `balanced`: then `narrow` has the singular values, and `wide` is orthonormal.
    """
    left, values, right = torch.linalg.svd(in_float64(weight), full_matrices=False)
    first = values[:rank].sqrt() if balanced else values[:rank]
    second = first if balanced else torch.ones_like(first)
    # Contiguous, as in a network that is loaded: with another layout in memory, products round in another way.
    return (first[:, None] * right[:rank]).to(weight).contiguous(), (left[:, :rank] * second).to(weight).contiguous()
