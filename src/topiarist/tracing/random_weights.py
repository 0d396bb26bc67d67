"""A network with random weights: what it computes hides nothing, and its branches are all as likely."""

from typing import Any

import torch
from torch import Tensor, nn

from topiarist.models.attention import with_free_attention
from topiarist.models.copying import copied
from topiarist.randomness import generator
from topiarist.tracing.unregistered import find_unregistered


def randomised(model: nn.Module, dtype: torch.dtype | None, seed: int = 0) -> nn.Module:
    """Return a copy with random weights of usual sizes, in evaluation mode, and with attention of free sizes.

    Its real numbers are of the type that is asked for, or of their own; its complex ones of one as exact.
    """
    copy = copied(model).cpu().eval()
    if dtype is not None:
        copy = copy._apply(lambda tensor: _of_type(tensor, dtype))  # type: ignore[no-untyped-call]
        for each in find_unregistered(copy):
            each.tensor.data = _of_type(each.tensor.data.cpu(), dtype)
    with_free_attention(copy)
    random = generator(seed, "proof")
    with torch.no_grad():
        for parameter in copy.parameters():
            kind = torch.complex128 if parameter.is_complex() else torch.float64
            drawn = torch.randn(parameter.shape, generator=random, dtype=kind)
            if parameter.ndim > 1:
                fan = max(parameter[0].numel(), 1)
                parameter.copy_(1.5 / fan**0.5 * drawn)
            else:
                parameter.add_((0.3 * drawn).to(parameter))
        for name, buffer in copy.named_buffers():
            if buffer.is_floating_point() and name.endswith("running_mean"):
                buffer.add_(0.3 * torch.randn(buffer.shape, generator=random, dtype=torch.float64).to(buffer))
    return copy


def _of_type(tensor: Tensor, dtype: torch.dtype) -> Tensor:
    if tensor.is_complex():
        return tensor.to(torch.complex128 if dtype == torch.float64 else torch.complex64)
    return tensor.to(dtype) if tensor.is_floating_point() else tensor


def resized(value: Any, samples: int, size: int, random: torch.Generator) -> Any:
    """Return an input with so many samples, with noise where it holds real numbers; what is no tensor stays."""
    if not isinstance(value, Tensor):
        return value
    if value.ndim and len(value) == samples:
        value = value[torch.arange(size) % samples]
    if value.is_floating_point():
        noise = torch.randn(value.shape, generator=random, dtype=torch.float64).to(value)
        return value + noise if value.unique().numel() > 2 or not value.any() else value  # not to a mask
    return value.clone()
