"""Networks that differ in their widths alone, as copies of one width, to be trained as one stack.

A unit whose weights are all zero, before an activation that keeps zero, gives zero and gets no gradient, and neither do
the weights that read it: it stays zero in training, and the others never know that it is there.
"""

from collections.abc import Hashable, Sequence

import torch
from torch import Tensor, nn

from topiarist.models.copying import copied
from topiarist.models.stacked import leaves, stackable

KEEP_ZERO = (nn.Flatten, nn.Identity, nn.ReLU, nn.LeakyReLU, nn.ELU, nn.SELU, nn.GELU, nn.SiLU, nn.Tanh)


def structure(model: nn.Module) -> Hashable | None:
    """Describe a network but for the widths of its hidden layers; None for one that cannot be padded.

    Dropout draws numbers for each unit, and sigmoids and norms make something of zero: they cannot.
    """
    layers = leaves(model)
    linear = [layer for _, layer in layers if isinstance(layer, nn.Linear)]
    if not stackable(model) or any(type(layer) not in (*KEEP_ZERO, nn.Linear) for _, layer in layers):
        return None
    described = tuple(
        (name, ("linear", layer.bias is not None) if isinstance(layer, nn.Linear) else repr(layer))
        for name, layer in layers
    )
    return described, linear[0].in_features, linear[-1].out_features, linear[0].weight.dtype, model.training


def padded(models: Sequence[nn.Module]) -> list[nn.Module]:
    """Give copies of networks of one structure, all as wide as the widest of them in each layer."""
    shapes = {
        name: tuple(max(sizes) for sizes in zip(*(model.get_parameter(name).shape for model in models), strict=True))
        for name, _ in models[0].named_parameters()
    }
    copies = [copied(model) for model in models]
    for copy in copies:
        for name, layer in leaves(copy):
            if isinstance(layer, nn.Linear):
                layer.out_features, layer.in_features = shapes[f"{name}.weight"]
                for own, value in list(layer.named_parameters()):
                    setattr(layer, own, nn.Parameter(embedded(value.detach(), shapes[f"{name}.{own}"])))
    return copies


def embedded(value: Tensor, shape: tuple[int, ...]) -> Tensor:
    """Give a tensor of a larger shape with a smaller one in its corner, and zeros elsewhere."""
    whole = value.new_zeros(shape)
    whole[tuple(slice(size) for size in value.shape)] = value
    return whole


def take_back(model: nn.Module, copy: nn.Module) -> None:
    """Put the weights of a padded copy into the network that it was made of."""
    with torch.no_grad():
        for name, value in model.named_parameters():
            value.copy_(copy.get_parameter(name)[tuple(slice(size) for size in value.shape)])
