"""Convolutions on a CPU are half again to twice as fast with the channels of a pixel side by side in memory."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from topiarist.models.evaluation import runs

FEWEST_CHANNELS = 16  # that a strided 1 × 1 convolution may read: oneDNN's block with AVX-512, 8 with AVX2


@contextmanager
def channels_last(models: Sequence[nn.Module], example_input: Tensor) -> Iterator[None]:
    """Keep the kernels of 2-d convolutions with the channels last inside the block; their values are the same.

    A network that cannot read what such convolutions return, because it flattens by `view`, is left as it is. So is
    one in which a 1 × 1 convolution has a stride and reads fewer channels than a block of oneDNN: its gradient would
    be written past its memory (oneDNN's issue 6035: it crashes, hangs, or the gradient is wrong). The shortcut around
    a residual block that was cut is such a convolution.
    """
    convolutions = [module for model in models for module in _convolutions_of(model)]
    overruns = any(
        max(module.kernel_size) == 1
        and max(module.stride) > 1
        and module.in_channels // module.groups < FEWEST_CHANNELS
        for module in convolutions
    )
    changed = [] if overruns else [module for module in convolutions if module.weight.is_contiguous()]
    try:
        _arrange(changed, torch.channels_last)
        if changed and not all(runs(model, example_input) for model in models):
            _arrange(changed, torch.contiguous_format)
        yield
    finally:
        _arrange(changed, torch.contiguous_format)


def runs_channels_last(model: nn.Module, sample: Tensor) -> bool:
    """Return whether a network has 2-d convolutions and reads images such as this one with the channels last."""
    images = bool(_convolutions_of(model)) and sample.ndim == 4
    return images and runs(model, with_channels_last(torch.cat([sample] * 2)))


def with_channels_last(x: Tensor) -> Tensor:
    """Return images (n_samples, channels, height, width) with the channels last, as will be all that is made of them.

    A copy, because `contiguous` leaves images of one channel as they are: they count as laid out either way.
    """
    return torch.empty_like(x, memory_format=torch.channels_last).copy_(x)


def _convolutions_of(model: nn.Module) -> list[nn.Conv2d]:
    return [module for module in model.modules() if isinstance(module, nn.Conv2d)]


def _arrange(convolutions: Sequence[nn.Conv2d], memory_format: torch.memory_format) -> None:
    for module in convolutions:
        module.weight.data = module.weight.data.clone(memory_format=memory_format)
