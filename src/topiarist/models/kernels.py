"""Which parameters of a network are kernels: weights that can be pruned, and stored in few bits."""

from torch import nn
from torch.nn.modules.batchnorm import _NormBase

NORMS = (_NormBase, nn.LayerNorm, nn.GroupNorm, nn.RMSNorm)


def kernels_of(model: nn.Module) -> dict[str, nn.Parameter]:
    """Give the floating-point parameters of two dimensions or more that belong to no norm."""
    normed = {id(own) for module in model.modules() if isinstance(module, NORMS) for own in module.parameters()}
    return {
        name: parameter
        for name, parameter in model.named_parameters()
        if parameter.ndim > 1 and parameter.is_floating_point() and id(parameter) not in normed
    }
