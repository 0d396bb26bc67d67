"""A network with random weights: what it computes hides little, and its branches are all as likely."""

from typing import Any

import torch
from torch import Tensor, nn

from topiarist.models.attention import with_free_attention
from topiarist.randomness import generator
from topiarist.tracing.running import sharing_copy
from topiarist.tracing.unregistered import find_unregistered

DRAWN = 2**18  # numbers at a time: what fits a processor's cache


def randomised(model: nn.Module, dtype: torch.dtype | None, seed: int = 0) -> nn.Module:
    """Return a copy with random weights of usual sizes, in evaluation mode, and with attention of free sizes.

    Its real numbers are of the type that is asked for, or of their own; its complex ones of one as exact.
    """
    copy = sharing_copy(model).cpu().eval()
    shared = {parameter.data_ptr() for parameter in model.parameters()}
    copy._apply(lambda tensor: _of_type(tensor, dtype or tensor.dtype, shared))  # type: ignore[no-untyped-call]
    for each in find_unregistered(copy):
        each.tensor.data = _of_type(each.tensor.data.cpu(), dtype or each.tensor.dtype, shared)
    with_free_attention(copy)
    random = generator(seed, "proof")
    with torch.no_grad():
        for parameter in copy.parameters():
            if parameter.ndim > 1:
                _draw(parameter, 1.5 / max(parameter[0].numel(), 1) ** 0.5, random)
            else:
                kind = torch.complex128 if parameter.is_complex() else torch.float64
                drawn = torch.randn(parameter.shape, generator=random, dtype=kind)
                parameter.add_((0.3 * drawn).to(parameter))
        for name, buffer in copy.named_buffers():
            if buffer.is_floating_point() and (name.endswith("running_mean") or _is_blank(buffer)):
                buffer.add_(0.3 * torch.randn(buffer.shape, generator=random, dtype=torch.float64).to(buffer))
    return copy


def _is_blank(buffer: Tensor) -> bool:
    """Return whether a table is all zeros, as codes are before training: with it, nothing could be told apart."""
    return buffer.ndim > 1 and min(buffer.shape) > 1 and not bool(buffer.any())


def _draw(parameter: Tensor, scale: float, random: torch.Generator) -> None:
    """Draw a parameter anew, a few rows at a time: torch is five times as fast in float32, and needs no new memory."""
    kind = torch.complex64 if parameter.is_complex() else torch.float32
    for rows in torch.split(parameter, max(DRAWN // max(parameter[0].numel(), 1), 1)):
        rows.copy_(torch.randn(rows.shape, generator=random, dtype=kind).mul_(scale))


def _of_type(tensor: Tensor, dtype: torch.dtype, shared: set[int]) -> Tensor:
    """Return a tensor of another type; what will be drawn has no values yet, and nothing is a network's own."""
    if tensor.is_complex():
        dtype = torch.complex128 if dtype in (torch.float64, torch.complex128) else torch.complex64
    elif not tensor.is_floating_point():
        dtype = tensor.dtype
    if isinstance(tensor, nn.Parameter) and tensor.ndim > 1:
        return torch.empty_like(tensor, dtype=dtype)
    return tensor.to(dtype, copy=tensor.data_ptr() in shared)


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
