"""Convolutions on a CPU are half again as fast with the channels of a pixel side by side in memory."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import nn


@contextmanager
def channels_last(models: Sequence[nn.Module]) -> Iterator[None]:
    """Keep the kernels of 2-d convolutions with the channels last inside the block; their values are the same."""
    changed = [
        module
        for model in models
        for module in model.modules()
        if isinstance(module, nn.Conv2d) and module.weight.is_contiguous()
    ]
    try:
        for module in changed:
            module.weight.data = module.weight.data.contiguous(memory_format=torch.channels_last)
        yield
    finally:
        for module in changed:
            module.weight.data = module.weight.data.contiguous()
