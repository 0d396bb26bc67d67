"""The arithmetic of a network: multiply-accumulates for one sample.

Counted where torch's functions are called, so that `functional.linear` and `@` are seen as well as layers: forward
hooks would miss those. Torch's own flop counter, the oracle in the tests, would load the compiler, which takes longer
than all the rest. Padding counts as input; biases, norms, activations and pooling do not count.
"""

import math
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.overrides import TorchFunctionMode

from topiarist.training.inference import call, evaluating, numbers_of, placed

Rule = Callable[..., int]


def count_macs(model: nn.Module, sample: Tensor) -> int:
    """Count the multiply-accumulates for one sample, given as a batch (1, *input_shape)."""
    x = placed(sample, numbers_of(model))
    with evaluating(model), Counter() as counter:
        call(model, x)
    return int(counter.macs)


class Counter(TorchFunctionMode):
    """Adds up the products of every call to a function that has a rule."""

    macs = 0

    def __torch_function__(
        self, function: Any, types: Iterable[type], args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Call the function and count."""
        output = function(*args, **(kwargs or {}))
        rule = RULES.get(function)
        if rule is not None:
            self.macs += rule(output, *args, **(kwargs or {}))
        return output


def product(output: Tensor, left: Tensor, *_: Any, **__: Any) -> int:
    """Each output of `left @ right` or of a linear layer sums over the last axis of `left`."""
    return output.numel() * left.shape[-1]


def reversed_product(output: Tensor, right: Tensor, left: Tensor) -> int:
    """The same for `right.__rmatmul__(left)`."""
    return product(output, left)


def sum_product(output: Tensor, _: Tensor, left: Tensor, *__: Any, **___: Any) -> int:
    """The same for `added + left @ right`."""
    return product(output, left)


def contraction(output: Tensor, equation: str, *operands: Tensor) -> int:
    """Each output of an einsum of two tensors sums over the letters that are in it no more."""
    if len(operands) != 2:
        return 0
    inputs, _, kept = equation.replace(" ", "").partition("->")
    sizes = {
        letter: size
        for letters, operand in zip(inputs.split(","), operands, strict=True)
        for letter, size in zip(letters.split("...")[-1][::-1], operand.shape[::-1], strict=False)
    }
    return output.numel() * math.prod(size for letter, size in sizes.items() if letter not in kept)


def convolution(output: Tensor, _: Tensor, weight: Tensor, *__: Any, **___: Any) -> int:
    """Each output of a convolution sums over one kernel (channels_in / groups, …)."""
    return output.numel() * weight[0].numel()


def transposed_convolution(_: Tensor, x: Tensor, weight: Tensor, *__: Any, **___: Any) -> int:
    """Each input of a transposed convolution is spread over one kernel (channels_out / groups, …)."""
    return x.numel() * weight[0].numel()


PRODUCTS = (
    functional.linear,
    torch.matmul,
    Tensor.matmul,
    Tensor.__matmul__,
    torch.mm,
    Tensor.mm,
    torch.bmm,
    Tensor.bmm,
    torch.mv,
    Tensor.mv,
    torch.dot,
    Tensor.dot,
)
SUM_PRODUCTS = (torch.addmm, Tensor.addmm, torch.baddbmm, Tensor.baddbmm, torch.addmv, Tensor.addmv)
CONVOLUTIONS = (functional.conv1d, functional.conv2d, functional.conv3d, torch.conv1d, torch.conv2d, torch.conv3d)
TRANSPOSED = (functional.conv_transpose1d, functional.conv_transpose2d, functional.conv_transpose3d)

RULES: dict[Any, Rule] = {
    **dict.fromkeys(PRODUCTS, product),
    **dict.fromkeys(SUM_PRODUCTS, sum_product),
    **dict.fromkeys(CONVOLUTIONS, convolution),
    **dict.fromkeys(TRANSPOSED, transposed_convolution),
    Tensor.__rmatmul__: reversed_product,
    torch.einsum: contraction,
}
