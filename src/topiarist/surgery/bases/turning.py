"""Dims of heads in another basis, so that those which go matter least.

A head's logits are Q·Kᵀ. With G and H the second moments of its queries and of its keys, a product of rank r is nearest
to them, E‖Q(I − M)Kᵀ‖² ≈ ‖G^½ (I − M) H^½‖², where M is made from the first r singular directions of
G^½ H^½ = U Σ Vᵀ (Eckart and Young, 1936). In the basis Q·G^-½ U Σ^½, K·H^-½ V Σ^½ the products are what they were, and
these directions are the first dims. Values and the layer that reads them, O·Wᵀ, are the same with H = WᵀW.
Worked example: where q₂ = 2·q₁, the logits q₁k₁ + q₂k₂ = q₁(k₁ + 2k₂) are of rank one; one dim keeps them all.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial

import numpy
import torch
from torch import Tensor, nn

from topiarist.models.copying import copied
from topiarist.models.evaluation import evaluating, numbers_of
from topiarist.randomness import isolated
from topiarist.surgery.bases.exactness import BasisTrials, ExactBases, exact_bases
from topiarist.surgery.bases.heads import Contraction, HeadDims
from topiarist.surgery.bases.readings import TokenMoments, moments_read
from topiarist.surgery.bases.streams import ResidualStream, principal_basis, random_basis, stream_of
from topiarist.surgery.calibration import CalibrationBatches
from topiarist.surgery.choice.selection import damped
from topiarist.surgery.layers import Holders
from topiarist.surgery.settling.pool import real_outputs
from topiarist.tracing import Anatomy, ExampleInput, Space
from topiarist.tracing.finding import trace_again

# Of the largest answer: by how much answers may differ in another basis. Float32 leaves about 1e-6 of each dim, and
# deep networks make up to a hundred times more of it.
ROUNDING = 1e-3
Units = Mapping[str, Sequence[int]]
Moments = Mapping[tuple[str, int], TokenMoments]


def has_dims(space: Space) -> bool:
    """Return whether the units of a space are dims of heads."""
    return space.escaped or ":dims" in space.name


def is_turned(space: Space) -> bool:
    """Return whether a space may get another basis before it loses units: dims of heads, or a residual stream."""
    return has_dims(space) or space.averaged


def turn_bases(
    model: nn.Module, example_input: ExampleInput, anatomy: Anatomy, units: Units, batches: CalibrationBatches
) -> tuple[str, ...]:
    """Change the basis of dims and of residual streams that are about to lose units, so that little is lost with them.

    The network changes in place. Return the names of the parameters that changed: none where a change of basis is not
    exact, or the network's answers show that it was not.
    """
    dims = [name for name, gone in units.items() if gone and has_dims(anatomy[name])]
    streams = [name for name, gone in units.items() if gone and anatomy[name].averaged]
    if not dims and not streams:
        return ()
    found = anatomy if anatomy.valid_for == "all" else trace_again(model, example_input, anatomy)
    trials = BasisTrials.of(model, example_input, found)
    if trials is None:
        return ()
    changed: list[str] = []
    for name in streams:
        changed += _kept_if_same(model, batches, partial(_turn_stream, found, name, units[name], trials, batches))
    bases = exact_bases(model, found, dims, trials)
    changed += _kept_if_same(model, batches, partial(_turn_dims, found, bases, units, batches))
    return tuple(dict.fromkeys(changed))


def _kept_if_same(
    model: nn.Module, batches: CalibrationBatches, turn: Callable[[nn.Module], Sequence[str]]
) -> Sequence[str]:
    """Make a change in a copy, and in the network itself where the answers are the same; return what changed."""
    turned = copied(model)
    changed = turn(turned)
    if not changed or not _same_answers(model, turned, batches):
        return ()
    holders = Holders(model)
    for name in changed:
        path, _, own = name.rpartition(".")
        holders.put(model.get_submodule(path), own, turned.get_parameter(name).detach())
    return changed


def _turn_stream(
    anatomy: Anatomy,
    name: str,
    gone: Sequence[int],
    trials: BasisTrials,
    batches: CalibrationBatches,
    model: nn.Module,
) -> Sequence[str]:
    """Change the basis of a residual stream in place, and return the names of the parameters that changed."""
    stream, size = stream_of(model, anatomy, name), anatomy[name].size
    if stream is None or not trials.keeps_answers(partial(_turn_at_random, stream, size)):
        return ()
    holders = Holders(model)
    stream.absorb_scales(model, holders)
    basis = principal_basis(model, stream, [unit not in set(gone) for unit in range(size)], batches)
    if basis is None:
        return ()
    stream.turn(model, holders, basis)
    known = dict(model.named_parameters(remove_duplicate=False))
    return [own for own in stream.tensors if own in known]


def _turn_at_random(stream: ResidualStream, size: int, twin: nn.Module, holders: Holders) -> None:
    stream.absorb_scales(twin, holders)
    stream.turn(twin, holders, random_basis(size, centred=stream.centred))


def _turn_dims(
    anatomy: Anatomy, bases: ExactBases, units: Units, batches: CalibrationBatches, model: nn.Module
) -> Sequence[str]:
    """Change the bases of dims in place, and return the names of the parameters that changed."""
    if not bases.all:
        return ()
    read = [(head.module, head.argument) for each in bases.products.values() for head in each.heads]
    read += [(head.module, 0) for each in bases.readings.values() for head in each.heads if head.reads]
    moments = moments_read(model, read, batches)
    holders, changed = Holders(model), []
    for contractions in (bases.products, bases.readings):
        for name, contraction in contractions.items():
            order = _places(anatomy[name], contraction, units[name])
            for many, head in contraction.groups():
                grams = _grams(model, many, head, moments, free=name in bases.free)
                if grams is None:
                    continue
                first, second = best_bases(*grams)
                for other in many:
                    other.mix(model, holders, first[:, order])
                head.mix(model, holders, second[:, order])
                changed += [f"{each.module}.{own}" for each in (*many, head) for own, _ in each.tensors]
    return tuple(dict.fromkeys(name.removeprefix(".") for name in changed))


def _places(space: Space, contraction: Contraction, gone: Sequence[int]) -> list[int]:
    """Return the number of the direction for each dim of a head: those that stay get the first ones, in order."""
    each = len(contraction.few[0].positions) // space.size
    stays = numpy.repeat(~numpy.isin(numpy.arange(space.size), list(gone)), each)
    order: list[int] = numpy.argsort(numpy.argsort(~stays, kind="stable"), kind="stable").tolist()
    return order


def best_bases(gram: Tensor, other: Tensor) -> tuple[Tensor, Tensor]:
    """Return B and C (n_dims, n_dims) with B·Cᵀ = I: Q·B and K·C have their products in the first dims.

    The Gram matrices are damped as in a refit, so that directions which the samples do not show stay bounded.
    """
    roots, inverses = zip(*(_roots(damped(each)) for each in (gram, other)), strict=True)
    left, values, right = torch.linalg.svd(roots[0] @ roots[1])
    scale = values.sqrt()
    return inverses[0] @ left * scale, inverses[1] @ right.T * scale


def _roots(gram: Tensor) -> tuple[Tensor, Tensor]:
    """Return the root of a positive matrix, and the inverse of the root."""
    values, vectors = torch.linalg.eigh(gram)
    root = values.clamp_min(torch.finfo(values.dtype).tiny).sqrt()
    return vectors * root @ vectors.T, vectors / root @ vectors.T


def _grams(
    model: nn.Module, many: Sequence[HeadDims], head: HeadDims, moments: Moments, *, free: bool
) -> tuple[Tensor, Tensor] | None:
    """Return the Gram matrices of both sides of a contraction; None where it was not seen what modules read."""
    readers = [each for each in (*many, head) if each.reads]
    if readers:
        seen = [_read_gram(model, each, moments) for each in readers]
        weights = torch.stack([each.matrix(model) @ each.matrix(model).T for each in readers]).sum(0)
        known = [each for each in seen if each is not None]
        if len(known) != len(seen):
            return None
        values = torch.stack(known).mean(0)
        return (weights, values) if many[0].reads else (values, weights)
    written = [_written_gram(model, each, moments, centred=False) for each in many]
    keys = _written_gram(model, head, moments, centred=free)
    known = [each for each in written if each is not None]
    return None if keys is None or len(known) != len(written) else (torch.stack(known).sum(0), keys)


def _written_gram(model: nn.Module, head: HeadDims, moments: Moments, *, centred: bool) -> Tensor | None:
    """Return the second moments of what a head writes, from those of what its module reads.

    With `centred`, they are about the mean of each sample: what is added to all keys, a softmax takes away.
    """
    weights, seen = head.matrix(model), moments.get((head.module, head.argument))
    if seen is None or len(seen.mean) != weights.shape[1]:
        return None
    if centred:
        return weights @ seen.about_samples @ weights.T
    bias, mean = head.constants(model), weights @ seen.mean
    crossed = torch.outer(mean, bias)
    return weights @ seen.second @ weights.T + crossed + crossed.T + torch.outer(bias, bias)


def _read_gram(model: nn.Module, head: HeadDims, moments: Moments) -> Tensor | None:
    """Return the second moments of what a layer reads of a head: about the mean where a bias can make up for that."""
    seen = moments.get((head.module, 0))
    if seen is None or len(seen.mean) <= int(head.positions.max()):
        return None
    shiftable = getattr(model.get_submodule(head.module), "bias", None) is not None
    whole = seen.covariance if shiftable else seen.second
    return whole[head.positions][:, head.positions]


def _same_answers(model: nn.Module, turned: nn.Module, batches: CalibrationBatches) -> bool:
    """Return whether both networks give the same answers for the first batch, but for rounding."""
    args, kwargs = next(iter(batches))
    answers = []
    for network in (model, turned):
        with evaluating(network), isolated(0, numbers_of(network).device), torch.no_grad():
            answers.append(real_outputs(network(*args, **kwargs)))
    return all(_near(one, other) for one, other in zip(*answers, strict=True))


def _near(one: Tensor, other: Tensor) -> bool:
    finite = one.isfinite()
    largest = float(one[finite].abs().max()) if bool(finite.any()) else 0.0
    return bool(((one - other).abs()[finite] <= ROUNDING * largest).all())
