"""The proof behind every cut: on random weights, the cut network computes what the whole one does without the units."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy
import torch
from torch import Tensor, nn

from topiarist.errors import ModelError
from topiarist.models.copying import copied
from topiarist.models.evaluation import evaluating, numbers_of
from topiarist.randomness import generator
from topiarist.surgery.proof_runs import ProofBatch, outputs_of_cut, outputs_without, references
from topiarist.surgery.scales import Change, counted_tensors, find_rescalings
from topiarist.surgery.trial_units import trial_units
from topiarist.surgery.width.change import change_widths
from topiarist.surgery.width.reexpressions import removal
from topiarist.tracing import Anatomy, ExampleInput, ensure_anatomy
from topiarist.tracing.finding import trace_again
from topiarist.tracing.running import sharing_copy

TOLERANCE, COARSE = 1e-8, 1e-4  # in float64, and where a network's code asks for float32
LAST_DIGITS = 1e-14  # of float64: the rounding of some ten thousand operations in a row
SMALLEST = 1e-9  # of an output that is all zeros


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
    whole, batches = references(model, example_input, anatomy, gone)
    candidates = counted_tensors(anatomy, units)
    cut = copied(whole) if candidates else sharing_copy(whole)  # rescaling writes into weights
    change_widths(cut, anatomy, {name: removal(anatomy.spaces[name], numbers) for name, numbers in units.items()})
    if candidates:
        with evaluating(whole), evaluating(cut):
            find_rescalings(whole, cut, batches[0].inputs, candidates, wide=batches[0].wide)
    worst = max(_difference(each.expected, outputs_of_cut(cut, each, units), units) for each in batches)
    limit = TOLERANCE if is_double(whole) else COARSE
    if limit < worst < COARSE:  # a deep network may make that much of rounding
        limit = max(limit, min(_sensitivity(whole, batches[0], anatomy, gone), COARSE))
    if not worst <= limit:
        named = ", ".join(f"'{name}'" for name in units)
        raise ModelError(
            f"without units of {named}, the network's own code computes something else (by {worst:.1g}): it uses their"
            " number, or their positions"
        )
    return worst


def ensure_proven(model: nn.Module, example_input: ExampleInput, anatomy: Anatomy, names: Iterable[str]) -> None:
    """Make sure that spaces can lose units together; what was proven before is remembered in the anatomy.

    Of a network without values, on the meta device, nothing can be proven.
    """
    wanted = frozenset(name for name in names if anatomy.spaces[name].size > 1)
    if not wanted or wanted in anatomy.proofs or anatomy.trace is None or numbers_of(model).is_meta:
        return
    known = anatomy if anatomy.valid_for == "all" else trace_again(model, example_input, anatomy)
    anatomy.proofs[wanted] = prove(model, example_input, known, trial_units(known, wanted))


def prove_counted(
    model: nn.Module, example_input: ExampleInput, anatomy: Anatomy, units: Mapping[str, Sequence[int]]
) -> None:
    """Prove the removal of just these units where forward computes with their number: half of them proves too little.

    A rounded root of the number of units, for instance, may be the same for all of them and for half of them.
    """
    if numbers_of(model).is_meta:
        return
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
    if not (own or unclear) or key in anatomy.proofs or anatomy.trace is None or numbers_of(model).is_meta:
        return
    nothing = numpy.zeros(len(anatomy.trace.tracer.labels), bool)
    whole, batches = references(model, example_input, anatomy, nothing)
    grown = copied(whole)
    change(grown)
    worst = max(_difference(each.expected, outputs_of_cut(grown, each, [name]), [name]) for each in batches)
    if not worst <= (TOLERANCE if is_double(whole) else COARSE):
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


def _sensitivity(model: nn.Module, batch: ProofBatch, anatomy: Anatomy, gone: Any) -> float:
    """Return by how much the outputs change when weights change in the last digits that rounding touches."""
    changed = copied(model)
    random = generator(0, "last digits")
    with torch.no_grad():
        for parameter in changed.parameters():
            noise = torch.randn(parameter.shape, generator=random, dtype=torch.float64)
            parameter.mul_(1 + LAST_DIGITS * noise.to(parameter))
    return _difference(batch.expected, outputs_without(changed, batch.inputs, anatomy, gone, wide=batch.wide), {})


def is_double(model: nn.Module) -> bool:
    """Return whether all parameters of a network are in float64."""
    return all(parameter.dtype == torch.float64 for parameter in model.parameters())


def _difference(expected: list[Tensor], found: list[Tensor], units: Iterable[str]) -> float:
    return largest_difference(expected, found, f"units of {', '.join(repr(name) for name in units)}")


def largest_difference(expected: list[Tensor], found: list[Tensor], gone: str) -> float:
    """Return the largest difference between outputs, in parts of the largest value; whole numbers must be equal.

    Outputs that are not finite are the same or infinitely different. Where there is no finite one, nothing is shown.
    `gone` names what is not there any more.
    """
    if not any(bool(tensor.isfinite().any()) for tensor in expected):
        raise ModelError("nothing can be proven: with random weights, the network returns no finite number")
    worst = 0.0
    for one, other in zip(expected, found, strict=True):
        if one.shape != other.shape:
            raise ModelError(f"without {gone}, the network returns {tuple(other.shape)}, not {tuple(one.shape)}")
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
