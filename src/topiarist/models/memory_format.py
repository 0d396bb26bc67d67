"""Convolutions on a CPU are half again to twice as fast with the channels of a pixel side by side in memory."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from topiarist.models.evaluation import evaluating

FEWEST_CHANNELS = 16  # that a strided 1 × 1 convolution may read: oneDNN's block with AVX-512, 8 with AVX2


@contextmanager
def channels_last(models: Sequence[nn.Module], example_input: Tensor) -> Iterator[None]:
    """Keep the kernels of 2-d convolutions with the channels last inside the block; their values are the same.

    A network that cannot read what such convolutions give, as one that flattens by `view`, is left as it is, and so is
    one whose gradient torch could not compute: see `gradient_overruns`.
    """
    safe = not any(map(gradient_overruns, models))
    changed = [
        module for model in models for module in convolutions_of(model) if safe and module.weight.is_contiguous()
    ]
    try:
        arrange(changed, torch.channels_last)
        if changed and not all(reads(model, example_input) for model in models):
            arrange(changed, torch.contiguous_format)
        yield
    finally:
        arrange(changed, torch.contiguous_format)


def runs_channels_last(model: nn.Module, sample: Tensor) -> bool:
    """Say whether a network has 2-d convolutions and reads pictures, one being given, with the channels last."""
    pictures = bool(convolutions_of(model)) and sample.ndim == 4
    return pictures and reads(model, with_channels_last(torch.cat([sample] * 2)))


def with_channels_last(x: Tensor) -> Tensor:
    """Give pictures (n_samples, channels, height, width) with the channels last: then so is all that is made of them.

    A copy, since `contiguous` leaves pictures of one channel as they are, which lie either way.
    """
    return torch.empty_like(x, memory_format=torch.channels_last).copy_(x)


def gradient_overruns(model: nn.Module) -> bool:
    """Say whether the gradient of a convolution would write past its memory where the channels are last.

    It does where a 1 × 1 convolution has a stride and reads fewer channels than a block (oneDNN's issue 6035): it
    crashes, hangs, or gives a wrong gradient. A way around a block that was cut is such a convolution.
    """
    return any(
        max(module.kernel_size) == 1
        and max(module.stride) > 1
        and module.in_channels // module.groups < FEWEST_CHANNELS
        for module in convolutions_of(model)
    )


def convolutions_of(model: nn.Module) -> list[nn.Conv2d]:
    """Give the 2-d convolutions of a network."""
    return [module for module in model.modules() if isinstance(module, nn.Conv2d)]


def arrange(convolutions: Sequence[nn.Conv2d], memory_format: torch.memory_format) -> None:
    """Lay kernels out in memory."""
    for module in convolutions:
        module.weight.data = module.weight.data.clone(memory_format=memory_format)


def reads(model: nn.Module, x: Tensor) -> bool:
    """Say whether a network runs as its kernels are laid out now."""
    with evaluating(model):
        try:
            model(x)
        except Exception:  # whatever a user's forward raises; what is wrong for another reason is said elsewhere
            return False
    return True
