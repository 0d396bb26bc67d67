"""The proof behind every cut: on random weights, the cut network computes what the whole one does without the units.

The weights are random and in float64, so that nothing hides: in a fresh network, attention is nearly even, and a wrong
size goes unseen. The batch has a size that divides no integer that code may read, and a second batch another one.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy
import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_map

from topiarist.errors import ModelError
from topiarist.models.copying import copied
from topiarist.models.evaluation import evaluating, numbers_of
from topiarist.randomness import generator, isolated
from topiarist.surgery.scales import Candidates, Rescaling, counted_tensors, find_rescalings
from topiarist.surgery.width.change import change_widths
from topiarist.surgery.width.reexpressions import removal
from topiarist.tracing import Anatomy, ExampleInput, ensure_anatomy
from topiarist.tracing.attributes import follows_parameters
from topiarist.tracing.finding import trace_again
from topiarist.tracing.operation import line_of_error
from topiarist.tracing.random_weights import randomised, resized
from topiarist.tracing.recurrences import Recurrences
from topiarist.tracing.reference import Reference, Steady
from topiarist.tracing.running import arguments, call, plain_kernels, sharing_copy
from topiarist.tracing.trace import wanted_outputs

TOLERANCE, COARSE = 1e-8, 1e-4  # in float64, and where a network's code asks for float32
LAST_DIGITS = 1e-14  # of float64: the rounding of some ten thousand operations in a row
SMALLEST = 1e-9  # of an output that is all zeros
BATCHES = (5, 7, 11, 13, 17, 19, 23)
Change = Callable[[nn.Module], None]


def prove(model: nn.Module, example_input: ExampleInput, anatomy: Anatomy, units: Mapping[str, Sequence[int]]) -> float:
    """Return by how much, at most, a network that is cut differs from the whole one without the units.

    Raises
    ------
    ModelError
        They differ by more than rounding does, or the cut network does not run.
    """
    assert anatomy.trace is not None
    gone = numpy.zeros(len(anatomy.trace.tracer.labels), bool)
    for name, numbers in units.items():
        gone[anatomy.spaces[name].units[list(numbers)]] = True
    whole, batches = _references(model, example_input, anatomy, gone)
    candidates = counted_tensors(anatomy, units)
    cut = copied(whole) if candidates else sharing_copy(whole)  # rescaling writes into weights
    change_widths(cut, anatomy, {name: removal(anatomy.spaces[name], numbers) for name, numbers in units.items()})
    if candidates:
        with evaluating(whole), evaluating(cut):
            find_rescalings(whole, cut, batches[0].inputs, candidates)
    worst = max(_difference(each.expected, _cut_outputs(cut, each.inputs, units), units) for each in batches)
    limit = TOLERANCE if _is_double(whole) else COARSE
    if limit < worst < COARSE:  # a deep network may make that much of rounding
        limit = max(limit, min(_sensitivity(whole, batches[0], anatomy, gone), COARSE))
    if not worst <= limit:
        named = ", ".join(f"'{name}'" for name in units)
        raise ModelError(
            f"without units of {named}, the network's own code computes something else (by {worst:.1g}): it uses their"
            " number, or their positions"
        )
    return worst


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
    with evaluating(whole), evaluating(twin), _default_numbers(dtype):
        try:
            return find_rescalings(whole, twin, _inputs(whole, inputs, anatomy)[0], candidates)
        except ModelError:
            raise
        except Exception:  # whatever a network says to a batch of another size
            return find_rescalings(whole, twin, inputs, candidates)


def ensure_proven(model: nn.Module, example_input: ExampleInput, anatomy: Anatomy, names: Iterable[str]) -> None:
    """Make sure that spaces can lose units together; what was proven before is remembered in the anatomy."""
    wanted = frozenset(name for name in names if anatomy.spaces[name].size > 1)
    if not wanted or wanted in anatomy.proofs or anatomy.trace is None:
        return
    known = anatomy if anatomy.valid_for == "all" else trace_again(model, example_input, anatomy)
    halves = {name: range(known.spaces[name].size // 2) for name in wanted}
    anatomy.proofs[wanted] = prove(model, example_input, known, halves)


def prove_counted(
    model: nn.Module, example_input: ExampleInput, anatomy: Anatomy, units: Mapping[str, Sequence[int]]
) -> None:
    """Prove the removal of just these units where forward computes with their number: half of them proves too little.

    A rounded root of the number of units, for instance, may be the same for all of them and for half of them.
    """
    if anatomy.trace is not None and any(anatomy.spaces[name].counted for name in units):
        known = anatomy if anatomy.valid_for == "all" else trace_again(model, example_input, anatomy)
        prove(model, example_input, known, units)


def ensure_kept(model: nn.Module, example_input: ExampleInput, anatomy: Anatomy, name: str, change: Change) -> None:
    """Make sure that `change`, which gives a space more units, changes nothing of what the network computes.

    Linear layers and convolutions take that well; code of the user's own is tried on random weights, once. So are
    spaces of one unit with several positions, which do not tell whether copies come after each of them or after all.
    """
    key, space = frozenset((name, "more units")), anatomy.spaces[name]
    own = any(place.parameter is not None for place in space.places)
    unclear = space.size == 1 and any(place.positions.size > 1 for place in space.places)
    if not (own or unclear) or key in anatomy.proofs or anatomy.trace is None:
        return
    nothing = numpy.zeros(len(anatomy.trace.tracer.labels), bool)
    whole, batches = _references(model, example_input, anatomy, nothing)
    grown = copied(whole)
    change(grown)
    worst = max(_difference(each.expected, _cut_outputs(grown, each.inputs, [name]), [name]) for each in batches)
    if not worst <= (TOLERANCE if _is_double(whole) else COARSE):
        raise ModelError(f"'{name}' cannot get more units without a change of what the network computes")
    anatomy.proofs[key] = worst


def proven(model: nn.Module, example_input: ExampleInput, *, anatomy: Anatomy | None = None) -> Anatomy:
    """Prove that each free space can lose units, and all of them together; fix those that cannot.

    Parameters
    ----------
    model, example_input, anatomy
        The network, a batch that it reads, and its anatomy, where it is known.

    Returns
    -------
    Anatomy
        The anatomy with proofs; a space whose proof failed is fixed, and its reason says why.

    Examples
    --------
    >>> model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4))
    >>> len(proven(model, torch.zeros(1, 8)).proofs)
    1
    """
    found = ensure_anatomy(model, example_input, anatomy)
    try:
        ensure_proven(model, example_input, found, found.free)
        return found
    except ModelError:
        spaces = dict(found.spaces)
    for name in list(found.free):
        try:
            ensure_proven(model, example_input, found, [name])
        except ModelError as error:
            spaces[name] = replace(spaces[name], reason=str(error))
    left = replace(found, spaces=spaces)
    ensure_proven(model, example_input, left, left.free)
    return left


@dataclass(frozen=True)
class _Batch:
    """A batch, and what the whole network computes for it without the units."""

    inputs: ExampleInput
    expected: list[Tensor]


def _references(
    model: nn.Module, example_input: ExampleInput, anatomy: Anatomy, gone: Any
) -> tuple[nn.Module, list[_Batch]]:
    """Return the network with random weights, in float64 where its code allows that, and what it computes."""
    types: tuple[torch.dtype | None, ...] = (torch.float64, torch.float32, None)  # None: each of its own
    for dtype in types:
        whole = randomised(model, dtype)
        try:
            return whole, _computed(whole, example_input, anatomy, gone)
        except Exception as error:  # whatever code says to float64 that asks for another type
            reason = str(error).split("\n")[0] or type(error).__name__
    raise ModelError(
        f"nothing can be proven: with random weights, the network does not run ({reason}); see proof=False"
    )


def _computed(whole: nn.Module, example_input: ExampleInput, anatomy: Anatomy, gone: Any) -> list[_Batch]:
    """Return what a network computes for batches of two sizes, or for the example where it takes no others."""
    batches: list[_Batch] = []
    silenced: dict[str, Tensor] = {}
    for inputs in _inputs(whole, example_input, anatomy):
        try:
            batches.append(_Batch(inputs, _outputs(sharing_copy(whole), inputs, anatomy, gone, silenced)))
        except Exception:  # whatever a network says to a batch of another size
            if callable(example_input) and not isinstance(example_input, Tensor):
                raise
    return batches or [_Batch(example_input, _outputs(sharing_copy(whole), example_input, anatomy, gone))]


def _sensitivity(model: nn.Module, batch: _Batch, anatomy: Anatomy, gone: Any) -> float:
    """Return by how much the outputs change when weights change in the last digits that rounding touches."""
    changed = copied(model)
    random = generator(0, "last digits")
    with torch.no_grad():
        for parameter in changed.parameters():
            noise = torch.randn(parameter.shape, generator=random, dtype=torch.float64)
            parameter.mul_(1 + LAST_DIGITS * noise.to(parameter))
    return _difference(batch.expected, _outputs(changed, batch.inputs, anatomy, gone), {})


def _is_double(model: nn.Module) -> bool:
    return all(parameter.dtype == torch.float64 for parameter in model.parameters())


def _inputs(model: nn.Module, example_input: ExampleInput, anatomy: Anatomy) -> list[ExampleInput]:
    """Return the example in batches of two sizes that divide no integer which code may read."""
    if callable(example_input) and not isinstance(example_input, Tensor):
        return [example_input]
    numbers = _numbers_read(model, anatomy)
    sizes = [size for size in BATCHES if not any(number % size == 0 for number in numbers if number)] or [5, 7]
    args, kwargs = arguments(model, example_input)
    random = generator(0, "proof's input")
    made: list[ExampleInput] = []
    for size in sizes[:2]:
        batch = tree_map(lambda value, size=size: resized(value, anatomy.samples, size, random), (args, kwargs))
        made.append(partial(_call_with, *batch))
    return made


def _numbers_read(model: nn.Module, anatomy: Anatomy) -> set[int]:
    """Return the integers that code may read: all but those of layers which go by their parameters alone."""
    if anatomy.trace is None or anatomy.solver is None:
        return set()
    return {
        number
        for attribute, number in anatomy.trace.integers.items()
        if attribute in anatomy.solver.old or not follows_parameters(model.get_submodule(attribute.module))
    }


def _call_with(args: Any, kwargs: Any, network: nn.Module) -> Any:
    return network(*_cloned(args), **_cloned(kwargs))


def _cloned(value: Any) -> Any:
    return tree_map(lambda each: each.clone() if isinstance(each, Tensor) else each, value)


def _outputs(
    model: nn.Module,
    inputs: ExampleInput,
    anatomy: Anatomy | None,
    gone: Any,
    silenced: dict[str, Tensor] | None = None,
) -> list[Tensor]:
    """Run a network, as if units were gone where an anatomy says which, and return its outputs."""
    with evaluating(model), isolated(0), plain_kernels(model), _default_numbers(numbers_of(model).dtype):
        if anatomy is None or anatomy.trace is None:
            with Steady(), Recurrences():  # type: ignore[no-untyped-call]
                return wanted_outputs(call(model, inputs))
        tracer = anatomy.trace.tracer
        reference = Reference(model, tracer.labels.copy(), tracer.leaves, gone, silenced=silenced)
        with reference, Recurrences(reference):
            return wanted_outputs(call(model, inputs))


def _cut_outputs(cut: nn.Module, inputs: ExampleInput, units: Iterable[str]) -> list[Tensor]:
    """Run a cut network; where its own code fails, say so in one line."""
    try:
        return _outputs(cut, inputs, None, numpy.zeros(0, bool))
    except Exception as error:  # whatever a user's forward raises
        named = ", ".join(f"'{name}'" for name in units)
        reason = str(error).split("\n")[0] or type(error).__name__
        raise ModelError(
            f"without units of {named}, the network's own code fails{line_of_error(error)}: {reason}"
        ) from error


@contextmanager
def _default_numbers(dtype: torch.dtype) -> Iterator[None]:
    """Let tensors that forward makes itself have the type of the network's numbers."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


def _difference(expected: list[Tensor], found: list[Tensor], units: Iterable[str]) -> float:
    """Return the largest difference between outputs, in parts of the largest value; whole numbers must be equal.

    Outputs that are not finite are the same or infinitely different. Where there is no finite one, nothing is shown.
    """
    if not any(bool(tensor.isfinite().any()) for tensor in expected):
        raise ModelError("nothing can be proven: with random weights, the network returns no finite number")
    worst = 0.0
    for one, other in zip(expected, found, strict=True):
        if one.shape != other.shape:
            named = ", ".join(f"'{name}'" for name in units)
            raise ModelError(
                f"without units of {named}, the network returns {tuple(other.shape)}, not {tuple(one.shape)}"
            )
        worst = max(worst, _distance(one, other))
    return worst


def _distance(one: Tensor, other: Tensor) -> float:
    same = (one == other) | (one.isnan() & other.isnan())
    if bool(same.all()):
        return 0.0
    if not (one.is_floating_point() or one.is_complex()) or not bool((one.isfinite() & other.isfinite() | same).all()):
        return float("inf")
    finite = one.isfinite() & other.isfinite()
    return float((one - other).abs()[finite].max()) / (float(one.abs()[finite].max()) + SMALLEST)
