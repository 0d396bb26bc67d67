"""What forward multiplies with because of a number of units, and weights that make up for a change of it.

Attention divides by the root of the number of dims of its queries. Where dims go, forward divides by another root; the
weights that write queries and keys, multiplied by what is missing, bring the network back to what it computed.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from topiarist.errors import ModelError
from topiarist.models.copying import copied
from topiarist.models.evaluation import evaluating
from topiarist.surgery.proof_runs import default_numbers, proof_inputs
from topiarist.tracing import Anatomy, ExampleInput
from topiarist.tracing.constraints import SCALING
from topiarist.tracing.operation import line_of_user
from topiarist.tracing.random_weights import randomised
from topiarist.tracing.running import call, plain_kernels

DIFFERENT = 1e-9  # of two numbers in float64: less is rounding
TOGETHER = 1e-6  # by how much values may differ that should all have grown by the same factor
RESHAPES = ("TBackward", "Transpose", "View", "UnsafeView", "Reshape", "Permute", "Unsqueeze", "Squeeze", "Expand")
Candidates = Sequence[tuple[str, int]]
Touched = tuple[str, int, Tensor]
Change = Callable[[nn.Module], None]


@dataclass(frozen=True)
class Rescaling:
    """Positions along an axis of a parameter whose values are multiplied by a factor."""

    parameter: str
    axis: int
    positions: Tensor
    factor: float

    @torch.no_grad()
    def apply(self, model: nn.Module) -> None:
        """Multiply the values, in place."""
        tensor = model.get_parameter(self.parameter)
        chosen = self.positions.to(tensor.device)
        tensor.index_copy_(self.axis, chosen, self.factor * tensor.index_select(self.axis, chosen))


@dataclass(frozen=True)
class _Product:
    """A tensor that forward multiplies with a number; `factor` is the number, or one divided by it."""

    function: str
    factor: float
    tensor: Tensor
    line: str


class _ProductWatch(TorchFunctionMode):
    """Sees every product of a tensor and a number, and the scale of every attention."""

    def __init__(self) -> None:
        super().__init__()
        self.products: list[_Product] = []

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        name = getattr(func, "__name__", "")
        if name in SCALING and len(args) > 1:
            numbers = [each for each in args[:2] if isinstance(each, (int, float))]
            tensors = [each for each in args[:2] if isinstance(each, Tensor)]
            if numbers and tensors and tensors[0].is_floating_point() and numbers[0]:
                number = float(numbers[0])
                divides = "div" in name and isinstance(args[1], (int, float))
                factor = 1 / number if divides else number
                self.products.append(_Product(name, factor, tensors[0], line_of_user()))
        elif name == "scaled_dot_product_attention":
            queries = args[0] if args else kwargs["query"]
            scale = kwargs.get("scale", args[6] if len(args) > 6 else None)
            factor = queries.shape[-1] ** -0.5 if scale is None else scale
            self.products.append(_Product(name, factor, queries, line_of_user()))
        return func(*args, **kwargs)


def counted_tensors(anatomy: Anatomy, names: Iterable[str]) -> list[tuple[str, int]]:
    """Return the parameters, with their axes, that write spaces whose number of units forward multiplies with."""
    found = dict.fromkeys(
        (f"{place.module}.{tensor}".removeprefix("."), axis)
        for name in names
        if anatomy.spaces[name].counted
        for place in (*anatomy.spaces[name].producers, *anatomy.spaces[name].passes)
        for tensor, axis in place.tensors
    )
    return list(found)


def rescale(model: nn.Module, example_input: ExampleInput, anatomy: Anatomy, cut: nn.Module, change: Change) -> None:
    """Let the weights of a cut network make up for numbers of units that its forward multiplies with, in place.

    `change` makes the same cut in a network of the same layers: what has to be multiplied is found on random weights.
    """
    names = [name for name, space in anatomy.spaces.items() if space.counted]
    candidates = counted_tensors(anatomy, names)
    if not candidates:
        return
    try:
        found = _rescalings(model, example_input, anatomy, candidates, change, torch.float64)
    except ModelError:
        raise
    except Exception:  # whatever code says to float64 that asks for float32
        found = _rescalings(model, example_input, anatomy, candidates, change, torch.float32)
    for rescaling in found:
        rescaling.apply(cut)


def _rescalings(
    model: nn.Module, inputs: ExampleInput, anatomy: Anatomy, candidates: Candidates, change: Change, dtype: torch.dtype
) -> list[Rescaling]:
    whole = randomised(model, dtype)
    twin = copied(whole)
    change(twin)
    with evaluating(whole), evaluating(twin), default_numbers(dtype):
        try:
            return find_rescalings(whole, twin, proof_inputs(whole, inputs, anatomy)[0], candidates)
        except ModelError:
            raise
        except Exception:  # whatever a network says to a batch of another size
            return find_rescalings(whole, twin, inputs, candidates)


def find_rescalings(whole: nn.Module, cut: nn.Module, inputs: ExampleInput, candidates: Candidates) -> list[Rescaling]:
    """Return what makes up for other numbers in a cut network, and apply it; both networks are in float64.

    Raises
    ------
    ModelError
        No multiple of the weights that write the units makes up for it.
    """
    expected = [product.factor for product in _products(whole, inputs)]
    made: list[Rescaling] = []
    for number, before in enumerate(expected):
        products = _products(cut, inputs)
        if len(products) != len(expected):
            raise ModelError("the network's code takes another way when units go")
        now = products[number]
        if abs(now.factor - before) > DIFFERENT * abs(before):
            touched, degree = _found_degree(cut, inputs, number, now.tensor, candidates)
            missing = before / (now.factor * _growth(cut, inputs, number, touched, made))
            if abs(missing - 1) < TOGETHER:  # what made up for another product makes up for this one too
                continue
            if not degree or missing < 0:
                what = f"`{now.function}`{now.line}"
                raise ModelError(f"forward multiplies with the number of units ({what}), and nothing makes up for it")
            for name, axis, positions in touched:
                made.append(Rescaling(name, axis, positions, missing ** (1 / degree)))
                made[-1].apply(cut)
    return made


@torch.no_grad()
def _growth(
    model: nn.Module, inputs: ExampleInput, number: int, touched: list[Touched], made: list[Rescaling]
) -> float:
    """Return by how much a tensor has grown evenly since its parameters were multiplied for other products; else 1."""
    names = {name for name, _, _ in touched}
    earlier = [each for each in made if each.parameter in names]
    if not earlier:
        return 1.0
    now = _products(model, inputs)[number].tensor
    for each in earlier:
        replace(each, factor=1 / each.factor).apply(model)
    first = _products(model, inputs)[number].tensor
    for each in earlier:
        each.apply(model)
    place = first.abs().argmax()
    ratio = float(now.reshape(-1)[place] / first.reshape(-1)[place])
    even = torch.allclose(now, first * ratio, rtol=TOGETHER, atol=TOGETHER * float(now.abs().max()))
    return ratio if even and ratio > 0 else 1.0


def _products(model: nn.Module, inputs: ExampleInput) -> list[_Product]:
    watch = _ProductWatch()
    with torch.enable_grad(), plain_kernels(model), watch:
        call(model, inputs)
    return watch.products


def _found_degree(
    model: nn.Module, inputs: ExampleInput, number: int, tensor: Tensor, candidates: Candidates
) -> tuple[list[Touched], int]:
    """Return the positions of parameters that scale a tensor, and with which power it grows; 0 where nothing does.

    The parameters that it comes from directly are tried first: those of earlier layers change it in other ways.
    """
    nearest = _nearest(model, tensor)
    owners = {name.rpartition(".")[0] for name in nearest}
    near = [(name, axis) for name, axis in candidates if name in nearest]
    beside = [(name, axis) for name, axis in candidates if name.rpartition(".")[0] in owners]  # weights with a bias
    for some in (near, beside, candidates):
        touched = _touched(model, tensor, some)
        degree = _degree(model, inputs, number, touched)
        if degree:
            return touched, degree
    return [], 0


def _nearest(model: nn.Module, tensor: Tensor) -> set[str]:
    """Return the parameters that one meets first on the way back from a tensor, as the history of gradients has it."""
    names = {id(parameter): name for name, parameter in model.named_parameters(remove_duplicate=False)}
    waiting: list[Any] = [] if tensor.grad_fn is None else [tensor.grad_fn]
    seen: set[Any] = set()
    found: set[str] = set()
    while waiting:
        node = waiting.pop()
        if node in seen:
            continue
        seen.add(node)
        before = [following for following, _ in node.next_functions if following is not None]
        own = {id(leaf.variable) for leaf in map(_without_reshapes, before) if hasattr(leaf, "variable")}
        if own & names.keys():
            found |= {names[each] for each in own & names.keys()}
        else:
            waiting += before
    return found


def _without_reshapes(node: Any) -> Any:
    """Return what a tensor was before its shape changed."""
    while node.name().startswith(RESHAPES) and node.next_functions[0][0] is not None:
        node = node.next_functions[0][0]
    return node


def _touched(model: nn.Module, tensor: Tensor, candidates: Candidates) -> list[Touched]:
    """Return the positions of parameters that a tensor depends on."""
    parameters = dict(model.named_parameters())
    known = [(name, axis) for name, axis in candidates if name in parameters and parameters[name].requires_grad]
    if not known or not tensor.requires_grad:
        return []
    weights = torch.linspace(0.5, 1.5, tensor.numel(), dtype=tensor.dtype).reshape(tensor.shape)
    with torch.enable_grad():
        total = (tensor * weights).sum()
    found = torch.autograd.grad(total, [parameters[name] for name, _ in known], allow_unused=True, retain_graph=True)
    touched = []
    for (name, axis), gradient in zip(known, found, strict=True):
        if gradient is not None:
            positions = gradient.movedim(axis, 0).reshape(gradient.shape[axis], -1).abs().sum(1).nonzero().flatten()
            touched += [(name, axis, positions)] if len(positions) else []
    return touched


def _degree(model: nn.Module, inputs: ExampleInput, number: int, touched: list[Touched]) -> int:
    """Return with which power of a factor on weights a tensor grows; 0 where it does not grow evenly."""
    if not touched:
        return 0
    doubled = [Rescaling(*each, 2.0) for each in touched]
    with torch.no_grad():
        before = _products(model, inputs)[number].tensor.detach().clone()
        for each in doubled:
            each.apply(model)
        after = _products(model, inputs)[number].tensor.detach().clone()
        for each in doubled:
            replace(each, factor=0.5).apply(model)
    for degree in (1, 2):
        if torch.allclose(after, before * 2.0**degree, rtol=TOGETHER, atol=TOGETHER * float(before.abs().max())):
            return degree
    return 0
