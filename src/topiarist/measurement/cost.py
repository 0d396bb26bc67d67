"""The arithmetic of a network: multiply-accumulates for one sample.

Counted by torch's own `FlopCounterMode`, which sees every matrix product and convolution as it is dispatched. Forward
hooks would miss what is called as a function (`functional.linear`, `@`, a stack of networks as one batched product); a
dispatch mode of our own would rest on a private module of torch. One multiply-accumulate is two floating-point
operations. Padding counts as input; biases, norms, activations and pooling do not count.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode

from topiarist.measurement.evaluating import call, evaluating, placed


def count_macs(model: nn.Module, sample: Tensor) -> int:
    """Count the multiply-accumulates for one sample, given as a batch (1, *input_shape)."""
    counter = FlopCounterMode(display=False, custom_mapping=VECTOR_PRODUCTS)
    with evaluating(model), frozen(model), counter:
        call(model, placed(sample, model))
    return int(counter.get_total_flops()) // 2


@contextmanager
def frozen(model: nn.Module) -> Iterator[None]:
    """Let no parameter ask for gradients: the counter hooks those that do, and fails where autograd is off."""
    asking = [parameter for parameter in model.parameters() if parameter.requires_grad]
    try:
        for parameter in asking:
            parameter.requires_grad_(False)
        yield
    finally:
        for parameter in asking:
            parameter.requires_grad_(True)


def product_operations(left: torch.Size, _right: torch.Size, **_: Any) -> int:
    """Count matrix (m, n) · vector (n,), or vector (n,) · vector (n,)."""
    return 2 * left.numel()


def sum_product_operations(_added: torch.Size, left: torch.Size, right: torch.Size, **_: Any) -> int:
    """Count vector (m,) + matrix (m, n) · vector (n,)."""
    return product_operations(left, right)


# Products with a vector, which the counter leaves out by itself.
VECTOR_PRODUCTS: dict[Any, Any] = {
    torch.ops.aten.mv: product_operations,
    torch.ops.aten.dot: product_operations,
    torch.ops.aten.addmv: sum_product_operations,
}
