"""Many networks of one shape as one: folds, seeds and ensemble members trained by one batched computation.

Networks that differ in their widths alone can be padded with units whose weights are all zero. Before an activation
that keeps zero, such a unit gives zero and gets no gradient, and neither do the weights that read it: it stays zero in
training, and the others never know that it is there.
"""

import math
from collections.abc import Hashable, Mapping, Sequence

import torch
from torch import Tensor, nn

from topiarist.models.evaluation import under
from topiarist.models.stacked_layers import (
    DERIVATIVES,
    Parameters,
    Pass,
    StackedActivation,
    StackedAlphaDropout,
    StackedBatchNorm,
    StackedDropout,
    StackedLayer,
    StackedLinear,
)

PLAIN_TYPES = (nn.Flatten, nn.Identity, nn.Linear, nn.Dropout, nn.AlphaDropout, *DERIVATIVES)
KEEP_ZERO = (nn.Flatten, nn.Identity, nn.ReLU, nn.LeakyReLU, nn.ELU, nn.SELU, nn.GELU, nn.SiLU, nn.Tanh)


def leaves(model: nn.Module, prefix: str = "") -> list[tuple[str, nn.Module]]:
    """Return the layers of (nested) `nn.Sequential`s in the order in which they run."""
    if type(model) is not nn.Sequential:
        return [(prefix, model)]
    # `named_children` would pass over the second use of a shared layer
    below = (leaves(child, f"{prefix}{'.' if prefix else ''}{name}") for name, child in model._modules.items() if child)
    return [leaf for found in below for leaf in found]


def stackable(model: nn.Module) -> bool:
    """Return whether a network is a sequence of linear layers, activations, dropout and batch norm, and nothing else.

    Nothing may be frozen, tied, used twice, hooked, or kept in eval mode inside a network in train mode.
    """
    if type(model) is not nn.Sequential or not all(parameter.requires_grad for parameter in model.parameters()):
        return False
    if any(map(_hooked, model.modules())):
        return False
    if any(parameter._backward_hooks or parameter._post_accumulate_grad_hooks for parameter in model.parameters()):
        return False
    if model.training and not all(module.training for module in model.modules()):
        return False
    layers = [layer for _, layer in leaves(model)]
    has_linear = any(isinstance(layer, nn.Linear) for layer in layers)
    unshared = len({id(layer) for layer in layers}) == len(layers)
    untied = len(list(model.parameters())) == len(list(model.named_parameters(remove_duplicate=False)))
    return has_linear and unshared and untied and all(map(_understood, layers))


def _hooked(module: nn.Module) -> bool:
    hooks = (module._forward_hooks, module._forward_pre_hooks, module._backward_hooks, module._backward_pre_hooks)
    return any(hooks) or "forward" in vars(module)


def _understood(layer: nn.Module) -> bool:
    """Return whether a layer is one that the stack knows, and exactly that class."""
    if getattr(layer, "inplace", False) or getattr(layer, "p", 0) == 1:
        return False
    if isinstance(layer, nn.BatchNorm1d):
        return type(layer) is nn.BatchNorm1d and layer.track_running_stats and layer.momentum is not None
    if type(layer) is nn.Flatten:
        return (layer.start_dim, layer.end_dim) == (1, -1)
    return type(layer) in PLAIN_TYPES


def reads_flat(model: nn.Module, input_shape: tuple[int, ...]) -> bool:
    """Return whether samples of this shape reach the first trained layer as one axis, as a stack hands them over."""
    trained = (type(layer) for _, layer in leaves(model) if isinstance(layer, nn.Flatten | nn.Linear | nn.BatchNorm1d))
    return len(input_shape) == 1 or next(trained, None) is nn.Flatten


def signature(model: nn.Module) -> Hashable:
    """Describe a network so that two of the same signature can be stacked: layers, settings, shapes, dtypes."""
    shapes = tuple((name, tuple(value.shape), value.dtype) for name, value in model.state_dict().items())
    return (*((name, repr(layer)) for name, layer in leaves(model)), *shapes)


def padded_signature(model: nn.Module) -> Hashable | None:
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


class NetworkStack:
    """The parameters of all members in one flat tensor, layer after layer, and the layers that read it.

    `flat` and `gradient` (n_numbers,) hold every parameter as a block (n_members, *shape), with zeros where a member is
    narrower than the widest, or than `shapes`; `kernels` marks the numbers that are weights rather than biases or
    norms. A kernel lies with its longer axis along memory, which is where matrix products are fast. The members are
    copied: `write_back` puts the result into them.

    For two members of mlp([4, 3, 2]), `flat` is 24 weights and 6 biases of hidden0, then 12 and 4 of output.
    """

    def __init__(self, models: Sequence[nn.Module], shapes: Mapping[str, tuple[int, ...]] | None = None) -> None:
        self.models = list(models)
        self.own = own = [dict(model.named_parameters()) for model in models]
        widest = {name: tuple(map(max, zip(*(each[name].shape for each in own), strict=True))) for name in own[0]}
        self.shapes = shapes or widest
        values = [
            torch.stack([_embedded(each[name].detach(), shape) for each in own]) for name, shape in self.shapes.items()
        ]
        self.flat = torch.cat([(value.mT if _lies_transposed(value.shape) else value).flatten() for value in values])
        self.gradient = torch.zeros_like(self.flat)
        device = self.flat.device
        self.kernels = torch.cat([torch.full((value.numel(),), value.ndim > 2, device=device) for value in values])
        members = torch.arange(len(models), device=device)
        self.member_of = torch.cat([members.repeat_interleave(value[0].numel()) for value in values])
        self.parameters, self.gradients = self.views(self.flat), self.views(self.gradient)
        self.buffers = {
            name: torch.stack([dict(model.named_buffers())[name] for model in models])
            for name, _ in models[0].named_buffers()
        }
        self.layers = self._layers()
        self.draws_noise = any(isinstance(layer, StackedDropout) for layer in self.layers)
        trained = [isinstance(layer, StackedLinear | StackedBatchNorm) for layer in self.layers]
        self.lowest = trained.index(True)
        lowest = self.layers[self.lowest]
        if isinstance(lowest, StackedLinear):
            lowest.lowest = True

    def __len__(self) -> int:
        return len(self.models)

    def forward(self, x: Tensor, run: Pass) -> Tensor:
        """Return logits (n_members, n_classes, n_samples) for x (n_members, n_features, n_samples)."""
        for layer in self.layers:
            x = layer.forward(x, run)
        return x

    def backward(self, slope: Tensor) -> None:
        """Fill `gradient` from the slope of the loss in the logits of the last forward pass."""
        for layer in reversed(self.layers[self.lowest :]):
            slope = layer.backward(slope)

    def write_back(self) -> None:
        """Copy the numbers into the members."""
        with torch.no_grad():
            for member, own in enumerate(self.own):
                for name, value in own.items():
                    here = self.parameters[name][member]
                    value.copy_(here if value.shape == here.shape else here[_corner(value)])
                for name, buffer in self.models[member].named_buffers() if self.buffers else ():
                    buffer.copy_(self.buffers[name][member])

    @property
    def blocks(self) -> list[tuple[int, bool]]:
        """How many numbers each parameter has in a member, in the order of memory, and whether it is a kernel."""
        return [(math.prod(shape), len(shape) > 1) for shape in self.shapes.values()]

    def views(self, flat: Tensor) -> Parameters:
        """Return the parts of a tensor that is laid out as the parameters are, by parameter: (n_members, *shape)."""
        shapes = [torch.Size((len(self), *shape)) for shape in self.shapes.values()]
        blocks = torch.split(flat, [shape.numel() for shape in shapes])
        laid = zip(self.shapes, blocks, shapes, strict=True)
        return {name: _laid_out(block, shape) for name, block, shape in laid}

    def _layers(self) -> list[StackedLayer]:
        layers: list[StackedLayer] = []
        for name, module in leaves(self.models[0]):
            parameters, gradients = under(f"{name}.", self.parameters), under(f"{name}.", self.gradients)
            match module:
                case nn.Linear():
                    layers.append(StackedLinear(parameters, gradients))
                case nn.BatchNorm1d():
                    layers.append(StackedBatchNorm(module, parameters, gradients, under(f"{name}.", self.buffers)))
                case nn.AlphaDropout():
                    layers.append(StackedAlphaDropout(module.p))
                case nn.Dropout():
                    layers.append(StackedDropout(module.p))
                case nn.Flatten() | nn.Identity():
                    pass
                case _:
                    alone = bool(layers) and isinstance(layers[-1], StackedLinear)
                    layers.append(StackedActivation(module, in_place=alone))
        return layers


def _lies_transposed(shape: Sequence[int]) -> bool:
    """Return whether the kernels (n_members, n_outputs, n_inputs) of a layer lie in memory with their outputs last."""
    return len(shape) == 3 and shape[1] > shape[2]


def _laid_out(block: Tensor, shape: torch.Size) -> Tensor:
    """Return numbers of a parameter (n_members, *shape) as they lie in memory."""
    return block.view(shape[0], shape[2], shape[1]).mT if _lies_transposed(shape) else block.view(shape)


def _corner(value: Tensor) -> tuple[slice, ...]:
    return tuple(map(slice, value.shape))


def _embedded(value: Tensor, shape: tuple[int, ...]) -> Tensor:
    """Return a tensor of a larger shape with a smaller one in its corner, and zeros elsewhere."""
    if value.shape == shape:
        return value
    whole = value.new_zeros(shape)
    whole[_corner(value)] = value
    return whole
