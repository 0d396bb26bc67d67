"""A network with random weights: what it computes hides nothing, and its branches are all as likely."""

from typing import Any

import torch
from torch import Tensor, nn

from topiarist.models.attention import with_free_attention
from topiarist.models.copying import copied
from topiarist.randomness import generator


def randomised(model: nn.Module, dtype: torch.dtype, seed: int = 0) -> nn.Module:
    """Return a copy with random weights of usual sizes, in evaluation mode, and with attention of free sizes."""
    copy = copied(model).to("cpu", dtype).eval()
    with_free_attention(copy)
    random = generator(seed, "proof")
    with torch.no_grad():
        for parameter in copy.parameters():
            drawn = torch.randn(parameter.shape, generator=random, dtype=torch.float64)
            if parameter.ndim > 1:
                fan = max(parameter[0].numel(), 1)
                parameter.copy_(1.5 / fan**0.5 * drawn)
            else:
                parameter.add_(0.3 * drawn)
        for name, buffer in copy.named_buffers():
            if buffer.is_floating_point() and name.endswith("running_mean"):
                buffer.add_(0.3 * torch.randn(buffer.shape, generator=random, dtype=torch.float64).to(dtype))
    return copy


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
