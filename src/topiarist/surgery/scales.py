"""What forward multiplies with because of a number of units, and weights that make up for a change of it.

Attention divides by the root of the number of dims of its queries. Where dims go, forward divides by another root; the
weights that write queries and keys, multiplied by what is missing, bring the network back to what it computed.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

from topiarist.errors import ModelError
from topiarist.models.copying import copied
from topiarist.models.evaluation import evaluating
from topiarist.surgery.products import ProductRun, run_products
from topiarist.surgery.proof_runs import default_numbers, proof_inputs
from topiarist.tracing import Anatomy, ExampleInput
from topiarist.tracing.random_weights import randomised

DIFFERENT = 1e-9  # of two numbers in float64: less is rounding
RESHAPES = ("TBackward", "Transpose", "View", "UnsafeView", "Reshape", "Permute", "Unsqueeze", "Squeeze", "Expand")
_TYPES = ((torch.float64, True), (torch.float64, False), (torch.float32, False))  # as in a proof
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
        tensor = model.get_parameter(self.parameter).data  # so that gradients of an earlier run stay known
        chosen = self.positions.to(tensor.device)
        tensor.index_copy_(self.axis, chosen, self.factor * tensor.index_select(self.axis, chosen))


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
    for dtype, wide in _TYPES:
        try:
            found = _rescalings(model, example_input, anatomy, candidates, change, dtype, wide)
            break
        except ModelError:
            raise
        except Exception:  # whatever code says to float64 that asks for float32
            if (dtype, wide) == _TYPES[-1]:
                raise
    for rescaling in found:
        rescaling.apply(cut)


def _rescalings(
    model: nn.Module,
    inputs: ExampleInput,
    anatomy: Anatomy,
    candidates: Candidates,
    change: Change,
    dtype: torch.dtype,
    wide: bool,
) -> list[Rescaling]:
    whole = randomised(model, dtype)
    twin = copied(whole)
    change(twin)
    with evaluating(whole), evaluating(twin), default_numbers(dtype):
        try:
            return find_rescalings(whole, twin, proof_inputs(whole, inputs, anatomy)[0], candidates, wide=wide)
        except ModelError:
            raise
        except Exception:  # whatever a network says to a batch of another size
            return find_rescalings(whole, twin, inputs, candidates, wide=wide)


def find_rescalings(
    whole: nn.Module, cut: nn.Module, inputs: ExampleInput, candidates: Candidates, *, wide: bool = False
) -> list[Rescaling]:
    """Return what makes up for other numbers in a cut network, and apply it; both networks are in float64.

    With `wide`, they compute in float64 also where their code asks for less.

    Raises
    ------
    ModelError
        No multiple of the weights that write the units makes up for it.
    """
    first, second = (run_products(network, inputs, wide=wide) for network in (whole, cut))
    if first.factors == second.factors:
        return []
    # code may remember tensors of its first run
    first, second = (run_products(network, inputs, wide=wide) for network in (whole, cut))
    missing = _missing(first.factors, second.factors)
    made = _made_at_once(cut, inputs, missing, candidates, wide=wide)
    for rescaling in made:
        rescaling.apply(cut)
    missing = {} if made else missing
    while missing:
        number = min(missing)
        factor = missing[number]
        with torch.enable_grad():
            base = run_products(cut, inputs, kept=frozenset(missing), wide=wide)
        touched, degrees = _found_choice(cut, inputs, number, base, candidates, wide=wide)
        if not touched or factor < 0:
            product = base.products[number]
            what = f"`{product.function}`{product.line}"
            raise ModelError(f"forward multiplies with the number of units ({what}), and nothing makes up for it")
        for name, axis, positions in touched:
            made.append(Rescaling(name, axis, positions, factor ** (1 / degrees[number])))
            made[-1].apply(cut)
        for done, degree in degrees.items():  # others that the same weights made up for
            if done == number or _is_near(missing[done], factor ** (degree / degrees[number])):
                del missing[done]
    return made


def _missing(expected: list[float], now: list[float]) -> dict[int, float]:
    """Return what the products of a cut network lack, by their numbers."""
    if len(now) != len(expected):
        raise ModelError("the network's code takes another way when units go")
    pairs = enumerate(zip(expected, now, strict=True))
    return {number: before / after for number, (before, after) in pairs if not _is_near(after, before)}


def _is_near(one: float, other: float) -> bool:
    return abs(one - other) <= DIFFERENT * abs(other)


def _made_at_once(
    model: nn.Module, inputs: ExampleInput, missing: dict[int, float], candidates: Candidates, *, wide: bool
) -> list[Rescaling]:
    """Return what makes up for all that is missing, found in two runs: each product grows with weights of its own.

    So it is with layers of attention, one behind the other. Return nothing where it is not that simple.
    """
    with torch.enable_grad():
        base = run_products(model, inputs, kept=frozenset(missing), wide=wide)
    found: dict[int, list[Touched]] = {}
    for number in missing:
        tensor = base.products[number].tensor
        nearest = _nearest(model, tensor)
        found[number] = _touched(model, tensor, [each for each in candidates if each[0] in nearest])
    places = [(name, axis) for touched in found.values() for name, axis, _ in touched]
    if len(places) > len(set(places)) or not all(found.values()) or min(missing.values()) < 0:
        return []
    doubled = _doubled(model, inputs, [each for touched in found.values() for each in touched], base, wide=wide)
    if doubled.degrees.keys() != missing.keys() or not base.same_outputs(doubled):
        return []
    return [
        Rescaling(*each, missing[number] ** (1 / doubled.degrees[number]))
        for number, touched in found.items()
        for each in touched
    ]


def _found_choice(
    model: nn.Module, inputs: ExampleInput, number: int, base: ProductRun, candidates: Candidates, *, wide: bool
) -> tuple[list[Touched], dict[int, int]]:
    """Return the positions of parameters that scale a product, and with which power it and others grow with them.

    The parameters that it comes from directly are tried first: those of earlier layers change it in other ways. Where
    they change more than products, as queries that something else reads too, keys or queries alone may do.
    """
    tensor = base.products[number].tensor
    nearest = _nearest(model, tensor)
    owners = {name.rpartition(".")[0] for name in nearest}
    near = [(name, axis) for name, axis in candidates if name in nearest]
    beside = [(name, axis) for name, axis in candidates if name.rpartition(".")[0] in owners]  # weights with a bias
    layers = {name.rpartition(".")[0]: None for name, _ in near}
    single = [[each for each in near if each[0].rpartition(".")[0] == layer] for layer in layers]
    second: tuple[list[Touched], dict[int, int]] = [], {}
    for some in (near, beside, candidates, *single):
        touched = _touched(model, tensor, some)
        doubled = _doubled(model, inputs, touched, base, wide=wide)
        if number in doubled.degrees:
            if base.same_outputs(doubled):
                return touched, doubled.degrees
            second = second if second[0] else (touched, {number: doubled.degrees[number]})
    return second


def _doubled(
    model: nn.Module, inputs: ExampleInput, touched: list[Touched], base: ProductRun, *, wide: bool
) -> ProductRun:
    """Run a network with weights twice as large, and its products as they were."""
    if not touched:
        return ProductRun()
    doubled = [Rescaling(*each, 2.0) for each in touched]
    for each in doubled:
        each.apply(model)
    with torch.no_grad():
        run = run_products(model, inputs, before=base.values, wide=wide)
    for each in doubled:
        replace(each, factor=0.5).apply(model)
    return run


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
