"""A network as it is used after training, and the tensors it expects."""

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain

import torch
from torch import Tensor, nn

from topiarist.errors import ModelError


@contextmanager
def evaluating(model: nn.Module) -> Iterator[None]:
    """Put a network in evaluation mode without gradients; every submodule gets back the mode it had."""
    modes = [(module, module.training) for module in model.modules()]
    model.eval()
    try:
        with torch.inference_mode():
            yield
    finally:
        for module, training in modes:
            module.training = training


def placed(x: Tensor, model: nn.Module) -> Tensor:
    """Give samples on the network's device and, where they are real numbers, in its floating-point type."""
    tensors = list(chain(model.parameters(), model.buffers()))
    real = next((tensor for tensor in tensors if tensor.is_floating_point()), None)
    if real is not None and x.is_floating_point():
        return x.to(real.device, real.dtype)
    return x.to(tensors[0].device) if tensors else x


def call(model: nn.Module, x: Tensor) -> Tensor:
    """Give the logits (n_samples, n_classes) of samples that are `placed`."""
    try:
        logits = model(x)
    except (RuntimeError, ValueError) as error:
        raise ModelError(
            f"{type(model).__name__} cannot read samples of shape {tuple(x.shape[1:])}: {error}"
        ) from error
    if not isinstance(logits, Tensor) or logits.ndim != 2 or len(logits) != len(x):
        found = f"shape {tuple(logits.shape)}" if isinstance(logits, Tensor) else type(logits).__name__
        raise ModelError(
            f"{type(model).__name__} must give logits ({len(x)}, n_classes) for {len(x)} samples; found {found}"
        )
    return logits
