"""The multiplications of each operation of torch's that multiplies: matrix products and convolutions."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

aten = torch.ops.aten


def _product(output: Tensor, left: Tensor, *_: Any) -> int:
    """Each output of `left @ right` sums over the last axis of `left`."""
    return output.numel() * left.shape[-1]


def _sum_product(output: Tensor, _: Tensor, left: Tensor, *__: Any) -> int:
    """The same for `added + left @ right`."""
    return _product(output, left)


def _convolution(output: Tensor, x: Tensor, weight: Tensor, *settings: Any) -> int:
    """Each output sums over one kernel; each input of a transposed convolution is spread over one."""
    transposed = settings[4]
    return (x if transposed else output).numel() * weight[0].numel()


MULTIPLICATIONS: dict[Any, Callable[..., int]] = {
    **dict.fromkeys((aten.mm, aten.bmm, aten.mv, aten.dot, aten._grouped_mm), _product),
    **dict.fromkeys((aten.addmm, aten.baddbmm, aten.addmv), _sum_product),
    aten.convolution: _convolution,
}
MADE_OF_OTHERS = (aten._scaled_dot_product_attention_math, aten.scaled_dot_product_attention)
