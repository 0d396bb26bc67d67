"""Networks as they are used after training, and facts about their parameters."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _NormBase

from topiarist.errors import ModelError

QUANTISED = ("torch.ao.nn.quantized", "torch.ao.nn.intrinsic.quantized", "torch.ao.nn.sparse.quantized")
PREPARED = ("torch.ao.nn.qat", "torch.ao.nn.intrinsic.qat", "torch.ao.quantization.fake_quantize")
NORMS = (_NormBase, nn.LayerNorm, nn.GroupNorm, nn.RMSNorm)


@contextmanager
def evaluating(model: nn.Module) -> Iterator[None]:
    """Put a network in evaluation mode without gradients; every submodule gets back the mode it had."""
    modes = [(module, module.training) for module in model.modules()]
    model.eval()
    try:
        with torch.no_grad():
            yield
    finally:
        for module, training in modes:
            module.training = training


def runs(model: nn.Module, x: Tensor) -> bool:
    """Return whether a network takes these samples and returns a tensor."""
    with evaluating(model):
        try:
            return isinstance(model(x), Tensor)
        except Exception:  # whatever a user's forward raises
            return False


def count_parameters(model: nn.Module) -> int:
    """Return the number of trainable and frozen parameters; what is tied is counted once."""
    return sum(parameter.numel() for parameter in model.parameters())


def kernels_of(model: nn.Module) -> dict[str, nn.Parameter]:
    """Return the weights that can be pruned or stored in few bits: of two dimensions or more, and of no norm."""
    normed = {id(own) for module in model.modules() if isinstance(module, NORMS) for own in module.parameters()}
    return {
        name: parameter
        for name, parameter in model.named_parameters()
        if parameter.ndim > 1 and parameter.is_floating_point() and id(parameter) not in normed
    }


def under(prefix: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return the tensors whose names begin with the prefix, without it."""
    return {name.removeprefix(prefix): value for name, value in tensors.items() if name.startswith(prefix)}


def first_of_kind(model: nn.Module, modules: Sequence[str]) -> str | None:
    """Return the name of the first module whose class is from one of these Python modules, or from below them."""
    return next(
        (name for name, each in model.named_modules() if type(each).__module__.startswith(tuple(modules))), None
    )


def numbers_of(model: nn.Module) -> Tensor:
    """Return an empty tensor of the floating-point type and on the device that a network computes with."""
    tensors = chain(model.parameters(), model.buffers())
    return next((tensor for tensor in tensors if tensor.is_floating_point()), torch.empty(0)).new_empty(0)


def check_values(model: nn.Module, what: str) -> None:
    """Raise ModelError for a network on the meta device, which has shapes and no values; `what` needs them."""
    if numbers_of(model).is_meta:
        raise ModelError(f"{what} needs the values of weights, and the network is on the meta device, which has none")


def placed(x: Tensor, like: Tensor) -> Tensor:
    """Return samples on a device and, where they are real numbers or pixels, in a floating-point type."""
    real = x.is_floating_point() or x.dtype == torch.uint8
    return x.to(like.device, like.dtype) if real else x.to(like.device)
