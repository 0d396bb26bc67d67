"""Products of tensors and numbers while a network runs, and what becomes of them when weights are doubled."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from topiarist.models.evaluation import numbers_of
from topiarist.randomness import isolated
from topiarist.tracing import ExampleInput
from topiarist.tracing.constraints import SCALING
from topiarist.tracing.operation import line_of_user
from topiarist.tracing.reference import Steady
from topiarist.tracing.running import call, plain_kernels
from topiarist.tracing.trace import wanted_outputs

TOGETHER = 1e-6  # by how much values may differ that should all have grown by the same factor


@dataclass(frozen=True)
class ScaledTensor:
    """A tensor that forward multiplies with a number; `factor` is the number, or one divided by it."""

    function: str
    factor: float
    tensor: Tensor
    line: str


@dataclass
class ProductRun:
    """What one run showed: its products, the values of those that were asked for, and what the network returned."""

    products: list[ScaledTensor] = field(default_factory=list)
    values: dict[int, Tensor] = field(default_factory=dict)
    degrees: dict[int, int] = field(default_factory=dict)  # of products that grew evenly
    outputs: list[Tensor] = field(default_factory=list)

    @property
    def factors(self) -> list[float]:
        """Return the numbers that were multiplied with."""
        return [product.factor for product in self.products]

    def same_outputs(self, other: "ProductRun") -> bool:
        """Return whether the network returned the same in another run."""
        pairs = list(zip(self.outputs, other.outputs, strict=False))
        return len(self.outputs) == len(other.outputs) and all(_is_close(one, two) for one, two in pairs)


class _ProductWatch(TorchFunctionMode):
    """Sees every product of a tensor and a number, and the scale of every attention.

    Where weights are doubled, products that grew evenly against `before` are brought back to what they were: if the
    network then returns what it did, these weights change the products and nothing else.
    """

    def __init__(self, kept: frozenset[int], before: Mapping[int, Tensor]) -> None:
        super().__init__()
        self.run = ProductRun()
        self._kept, self._before = kept, before

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        name = getattr(func, "__name__", "")
        if name in SCALING and len(args) > 1:
            numbers = [each for each in args[:2] if isinstance(each, (int, float))]
            tensors = [each for each in args[:2] if isinstance(each, Tensor)]
            if numbers and tensors and tensors[0].is_floating_point() and numbers[0]:
                number = float(numbers[0])
                divides = "div" in name and isinstance(args[1], (int, float))
                degree = self._note(name, 1 / number if divides else number, tensors[0])
                given = func(*args, **kwargs)
                if degree and given is tensors[0]:
                    return given.mul_(0.5**degree)
                return given * 0.5**degree if degree else given
        elif name == "scaled_dot_product_attention":
            queries = args[0] if args else kwargs["query"]
            scale = kwargs.get("scale", args[6] if len(args) > 6 else None)
            degree = self._note(name, queries.shape[-1] ** -0.5 if scale is None else scale, queries)
            if degree:
                args = (queries * 0.5**degree, *args[1:]) if args else args
                kwargs = kwargs if args else {**kwargs, "query": queries * 0.5**degree}
        return func(*args, **kwargs)

    def _note(self, name: str, factor: float, tensor: Tensor) -> int:
        """Remember a product; return the power with which it grew, 0 where it did not or nothing is to be undone."""
        number = len(self.run.products)
        self.run.products.append(ScaledTensor(name, factor, tensor, line_of_user()))
        if number in self._kept:
            self.run.values[number] = tensor.detach().clone()
        degree = _degree(self._before[number], tensor.detach()) if number in self._before else 0
        if degree:
            self.run.degrees[number] = degree
        return degree


def run_products(
    model: nn.Module,
    inputs: ExampleInput,
    *,
    kept: frozenset[int] = frozenset(),
    before: Mapping[int, Tensor] | None = None,
    wide: bool = False,
) -> ProductRun:
    """Run a network as a proof does, and return its products; `kept` numbers those whose values are wanted."""
    watch = _ProductWatch(kept, before or {})
    with isolated(0, numbers_of(model).device), plain_kernels(model), Steady(wide=wide), watch:
        given = call(model, inputs)
    watch.run.outputs = [tensor.detach() for tensor in wanted_outputs(given)]
    return watch.run


def _degree(before: Tensor, after: Tensor) -> int:
    """Return with which power of two a tensor grew; 0 where it did not grow evenly."""
    if before.shape != after.shape or not bool(before.isfinite().any()):
        return 0
    return next((degree for degree in (1, 2) if _is_close(after, before * 2.0**degree)), 0)


def _is_close(one: Tensor, other: Tensor) -> bool:
    if one.shape != other.shape or not (one.is_floating_point() and other.is_floating_point()):
        return one.shape == other.shape and torch.equal(one, other)
    finite = other[other.isfinite()]
    largest = float(finite.abs().max()) if finite.numel() else 0.0
    return torch.allclose(one, other, rtol=TOGETHER, atol=TOGETHER * largest, equal_nan=True)
