"""Gradient clipping by value and by norm, in place.

Gradients may carry a leading member axis, (n_members, …), for networks that are trained as one; each member is then
clipped by itself.
"""

from collections.abc import Sequence
from typing import Literal

import torch
from torch import Tensor


def clip_value(gradients: Sequence[Tensor], limit: float) -> None:
    """Bring every entry into [−limit, limit]; this changes the direction."""
    for gradient in gradients:
        gradient.clamp_(-limit, limit)


def clip_norm(
    gradients: Sequence[Tensor], limit: float, *, over: Literal["all", "tensor"], members: bool = False
) -> None:
    """Scale gradients whose norm, over all tensors together or each by itself, is above the limit."""
    stacked = list(gradients) if members else [gradient.unsqueeze(0) for gradient in gradients]
    squares = [gradient.flatten(1).square().sum(dim=1) for gradient in stacked]
    if over == "all":
        squares = [torch.stack(squares).sum(dim=0)] * len(stacked)
    for gradient, square in zip(stacked, squares, strict=True):
        factor = (limit / square.sqrt()).clamp(max=1.0)
        gradient.mul_(factor.view(-1, *[1] * (gradient.ndim - 1)))
