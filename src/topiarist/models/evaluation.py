"""A network as it is used after training: eval mode, no gradients, its own dtype and device."""

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain

import torch
from torch import Tensor, nn


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


def count_parameters(model: nn.Module) -> int:
    """Count the trainable and frozen numbers of a network; what is tied is counted once."""
    return sum(parameter.numel() for parameter in model.parameters())


def numbers_of(model: nn.Module) -> Tensor:
    """Give an empty tensor of the floating-point type and on the device that a network computes with."""
    tensors = chain(model.parameters(), model.buffers())
    return next((tensor for tensor in tensors if tensor.is_floating_point()), torch.empty(0)).new_empty(0)


def placed(x: Tensor, like: Tensor) -> Tensor:
    """Give samples on a device and, where they are real numbers or pixels, in a floating-point type."""
    real = x.is_floating_point() or x.dtype == torch.uint8
    return x.to(like.device, like.dtype) if real else x.to(like.device)
