"""Many networks of one shape as one: folds, seeds and ensemble members trained by one batched computation."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from topiarist.models.stacked_layers import (
    ACTIVATION_TYPES,
    Layer,
    Parameters,
    Pass,
    StackedActivation,
    StackedAlphaDropout,
    StackedBatchNorm,
    StackedDropout,
    StackedLinear,
)

PLAIN_TYPES = (nn.Flatten, nn.Identity, nn.Linear, nn.Dropout, nn.AlphaDropout, *ACTIVATION_TYPES)


def leaves(model: nn.Module, prefix: str = "") -> list[tuple[str, nn.Module]]:
    """Give the layers of (nested) `nn.Sequential`s in the order in which they run."""
    if type(model) is not nn.Sequential:
        return [(prefix, model)]
    # `named_children` would pass over the second use of a shared layer
    below = (leaves(child, f"{prefix}{'.' if prefix else ''}{name}") for name, child in model._modules.items() if child)
    return [leaf for found in below for leaf in found]


def stackable(model: nn.Module) -> bool:
    """Say whether a network is a sequence of linear layers, activations, dropout and batch norm, and nothing else.

    Nothing may be frozen, tied, used twice, hooked, or kept in eval mode inside a network in train mode.
    """
    if type(model) is not nn.Sequential or not all(parameter.requires_grad for parameter in model.parameters()):
        return False
    if any(map(hooked, model.modules())) or any(map(hooked_gradient, model.parameters())):
        return False
    if model.training and not all(module.training for module in model.modules()):
        return False
    layers = [layer for _, layer in leaves(model)]
    has_linear = any(isinstance(layer, nn.Linear) for layer in layers)
    unshared = len({id(layer) for layer in layers}) == len(layers)
    untied = len(list(model.parameters())) == len(list(model.named_parameters(remove_duplicate=False)))
    return has_linear and unshared and untied and all(map(understood, layers))


def hooked(module: nn.Module) -> bool:
    """Say whether somebody wants to see, or change, what passes through a module."""
    hooks = (module._forward_hooks, module._forward_pre_hooks, module._backward_hooks, module._backward_pre_hooks)
    return any(hooks) or "forward" in vars(module)


def hooked_gradient(parameter: nn.Parameter) -> bool:
    """Say whether somebody wants to see, or change, a gradient."""
    return bool(parameter._backward_hooks or parameter._post_accumulate_grad_hooks)


def reads_flat(model: nn.Module, input_shape: tuple[int, ...]) -> bool:
    """Say whether samples of this shape reach the first trained layer as one axis, as a stack hands them over."""
    trained = (type(layer) for _, layer in leaves(model) if isinstance(layer, nn.Flatten | nn.Linear | nn.BatchNorm1d))
    return len(input_shape) == 1 or next(trained, None) is nn.Flatten


def understood(layer: nn.Module) -> bool:
    """Say whether a layer is one that the stack knows, and exactly that class."""
    if getattr(layer, "inplace", False) or getattr(layer, "p", 0) == 1:
        return False
    if isinstance(layer, nn.BatchNorm1d):
        return type(layer) is nn.BatchNorm1d and layer.track_running_stats and layer.momentum is not None
    if type(layer) is nn.Flatten:
        return (layer.start_dim, layer.end_dim) == (1, -1)
    return type(layer) in PLAIN_TYPES


def signature(model: nn.Module) -> tuple[object, ...]:
    """Describe a network so that two of the same signature can be stacked: layers, settings, shapes, dtypes."""
    shapes = tuple((name, tuple(value.shape), value.dtype) for name, value in model.state_dict().items())
    return (*((name, repr(layer)) for name, layer in leaves(model)), *shapes)


class Stack:
    """The parameters of all members in one flat tensor, layer after layer, and the layers that read it.

    `flat` and `gradient` (n_numbers,) hold every parameter as a block (n_members, *shape); `kernels` marks the numbers
    that are weights rather than biases or norms. The members are copied: `write_back` puts the result into them.
    """

    def __init__(self, models: Sequence[nn.Module]) -> None:
        self.models = list(models)
        names = [name for name, _ in models[0].named_parameters()]
        values = [torch.stack([dict(model.named_parameters())[name].detach() for model in models]) for name in names]
        self.flat = torch.cat([value.flatten() for value in values])
        self.gradient = torch.zeros_like(self.flat)
        self.kernels = torch.cat([torch.full((value.numel(),), value.ndim > 2) for value in values])
        self.member_of = torch.cat([members_of(value) for value in values])
        self.shapes = {name: value.shape for name, value in zip(names, values, strict=True)}
        self.parameters, self.gradients = self.views(self.flat), self.views(self.gradient)
        self.buffers = {
            name: torch.stack([dict(model.named_buffers())[name] for model in models])
            for name, _ in models[0].named_buffers()
        }
        self.layers = self._layers()
        trained = [isinstance(layer, StackedLinear | StackedBatchNorm) for layer in self.layers]
        self.lowest = trained.index(True)
        lowest = self.layers[self.lowest]
        if isinstance(lowest, StackedLinear):
            lowest.lowest = True

    def __len__(self) -> int:
        return len(self.models)

    def forward(self, x: Tensor, run: Pass) -> Tensor:
        """Give logits (n_members, n_classes, n_samples) for x (n_members, n_features, n_samples)."""
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
            for member, model in enumerate(self.models):
                for name, value in model.named_parameters():
                    value.copy_(self.parameters[name][member])
                for name, buffer in model.named_buffers():
                    buffer.copy_(self.buffers[name][member])

    def _layers(self) -> list[Layer]:
        made: list[Layer] = []
        for name, module in leaves(self.models[0]):
            parameters, gradients = under(name, self.parameters), under(name, self.gradients)
            match module:
                case nn.Linear():
                    made.append(StackedLinear(parameters, gradients))
                case nn.BatchNorm1d():
                    made.append(StackedBatchNorm(module, parameters, gradients, under(name, self.buffers)))
                case nn.AlphaDropout():
                    made.append(StackedAlphaDropout(module.p))
                case nn.Dropout():
                    made.append(StackedDropout(module.p))
                case nn.Flatten() | nn.Identity():
                    pass
                case _:
                    alone = bool(made) and isinstance(made[-1], StackedLinear)
                    made.append(StackedActivation(module, in_place=alone))
        return made

    def views(self, flat: Tensor) -> Parameters:
        """Give the parts of a tensor that is laid out as the parameters are, by parameter: (n_members, *shape)."""
        blocks = torch.split(flat, [shape.numel() for shape in self.shapes.values()])
        return {name: block.view(shape) for (name, shape), block in zip(self.shapes.items(), blocks, strict=True)}


def under(name: str, tensors: Parameters) -> Parameters:
    """Give the tensors of one layer by their short names."""
    prefix = f"{name}."
    return {full.removeprefix(prefix): tensor for full, tensor in tensors.items() if full.startswith(prefix)}


def members_of(value: Tensor) -> Tensor:
    """Give for each number of a block (n_members, *shape) the member it belongs to."""
    return torch.arange(len(value)).repeat_interleave(value[0].numel())
