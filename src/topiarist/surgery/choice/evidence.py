"""Gathers, from calibration data, what the layers that read the units of a space need of them."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

import numpy
import torch
from torch import Tensor, nn
from torch.nn.modules.conv import _ConvNd

from topiarist.surgery.calibration import CalibrationBatches, watch_readers
from topiarist.surgery.choice.reading_sums import (
    PatchSums,
    ReadingSums,
    combined,
    features_of_each,
    has_few_patches,
)
from topiarist.surgery.choice.recurrent_sums import RecurrentSums, recurrent_readers
from topiarist.surgery.choice.selection import SelectionEvidence
from topiarist.surgery.refit.walking import Visit
from topiarist.tracing import Anatomy, Place, Space
from topiarist.tracing.steps import Step


def blind_spot(space: Space) -> str | None:
    """Return what the linear layers and convolutions that read a space do not tell of it; None where they tell all."""
    other = next((place.name for place in space.consumers if place.parameter is not None), None)
    if other is not None:
        return f"'{other}' reads its units, and is no plain layer"
    if space.escaped:
        return "forward itself sees its units, as attention sees queries"
    return "a norm or a mean runs over its units" if space.averaged else None


def weight_shares(model: nn.Module, space: Space) -> Tensor:
    """Return each unit's share (n_units,) of the squares of the weights that write and read a space.

    It tells which units matter where no plain layer reads them, as none reads queries and keys. Each tensor counts the
    same, so that large ones do not decide alone.
    """
    total = torch.zeros(space.size, dtype=torch.float64)
    for place in (*space.producers, *space.consumers):
        module = model.get_submodule(place.module)
        positions = torch.from_numpy(place.positions).flatten(1)
        for name, axis in place.tensors:
            tensor = getattr(module, name).detach().to("cpu", torch.float64)
            if tensor.ndim > 1:
                squares = tensor.movedim(axis, 0).flatten(1).square().sum(1)[positions].sum(1)
                total += squares / squares.sum().clamp_min(torch.finfo(torch.float64).tiny)
    return total / total.sum().clamp_min(torch.finfo(torch.float64).tiny)


def evidence_of_whole(
    model: nn.Module,
    anatomy: Anatomy,
    names: Iterable[str],
    batches: CalibrationBatches,
    *,
    joint: bool = True,
) -> dict[str, SelectionEvidence | None]:
    """Look at spaces of a network that is cut nowhere yet, all in one pass; None where no plain layer reads one.

    Only linear layers, convolutions and recurrent layers are asked: what else sees the units (see `blind_spot`) has no
    say, nor have those that no sample comes to. Without `joint`, positions of a unit always count as samples of it.
    """
    sums: dict[str, list[ReadingSums | RecurrentSums]] = {}
    each = {}
    for name in names:
        plain, recurrent = anatomy[name].readers, recurrent_readers(model, anatomy[name])
        each[name] = features_of_each([*plain, *recurrent]) if joint else 1
        apart = each[name] > 1
        same = same_readings(anatomy, plain, plain)
        sums[name] = [ReadingSums(model, readers, place, batches.samples, joint=apart) for readers, place in same]
        sums[name] += [RecurrentSums(model, place, joint=apart) for place in recurrent]
    watched: defaultdict[str, list[ReadingSums | RecurrentSums]] = defaultdict(list)
    for seen in (seen for together in sums.values() for seen in together):
        watched[seen.place.module].append(seen)

    def remember(path: str, taken: Tensor) -> None:
        for seen in watched[path]:
            seen.add(taken)

    if watched:
        watch_readers(model, {path: anatomy.calls[path].count for path in watched}, batches, remember)

    read = {name: [seen for seen in together if seen.count] for name, together in sums.items()}  # of experts, not all
    return {
        name: combined((seen.part() for seen in together), each[name], rank_of(together))
        for name, together in read.items()
    }


def rank_of(sums: Sequence[ReadingSums | RecurrentSums]) -> int | None:
    """Return the rank of what readers see where all of them have seen few samples; None elsewhere."""
    ranks = [seen.rank if isinstance(seen, ReadingSums) else None for seen in sums]
    known = [rank for rank in ranks if rank is not None]
    return sum(known) if known and len(known) == len(ranks) else None


def evidence_at(
    path: str, name: str, whole: nn.Module, before: Anatomy, now: Anatomy, waiting: Sequence[tuple[Visit, Visit]]
) -> SelectionEvidence | None:
    """Look at a space that one layer reads, where both networks wait at that layer.

    `before` is the anatomy of the whole network, `now` that of the cut one.
    """
    (reader,), (place,) = before[name].readers, now[name].readers
    samples = sum(len(seen.taken[-1]) for _, seen in waiting)
    if not samples:
        return None
    module = whole.get_submodule(path)
    if isinstance(module, _ConvNd) and has_few_patches(module, place):
        patches = PatchSums(module, len(place.positions), samples)
        for dense, seen in waiting:
            patches.add(seen.taken[-1], dense.given[-1])
        return patches.evidence()
    reader = still_there(reader, before, now)
    each = features_of_each([reader, place])
    sums = ReadingSums(whole, [reader], place, samples, joint=each > 1)
    for dense, seen in waiting:
        sums.add(seen.taken[-1], dense.taken[-1])
    return combined([sums.part()], each, rank=sums.rank)


def still_there(place: Place, before: Anatomy, now: Anatomy) -> Place:
    """Return a place with those positions of its units that a cut of the spaces which they cross has left.

    Where two of four heads are gone, a dim of the heads occurs twice in what the last layer of attention reads.
    """
    if before.trace is None or len(now.gone) == len(before.gone):
        return place
    tensor, axis = place.tensors[0]
    leaf = before.trace.tracer.leaves[f"{place.module}.{tensor}".removeprefix(".")]
    vector = leaf.axes[axis]
    if vector is None:
        return place
    labels, own = before.trace.tracer.labels, before.copies()
    kept = labels.units_at(vector)
    there = own[kept].prod(axis=1)
    if there.sum() != place.length or there.max() > 1:  # it was made wider since it was traced
        return place
    left = (now.copies()[kept].prod(axis=1) > 0)[there > 0]
    flat = place.positions.reshape(len(place.positions), -1)
    counts = left[flat].sum(axis=1)
    if len(numpy.unique(counts)) != 1 or not counts[0]:
        return place
    return replace(place, positions=flat[left[flat]].reshape(len(flat), -1, 1))


def same_readings(
    anatomy: Anatomy, before: Sequence[Place], after: Sequence[Place]
) -> Iterator[tuple[list[Place], Place]]:
    """Put readers of the same tensor together; `before` and `after` are their places in two networks."""
    together: defaultdict[object, list[tuple[Place, Place]]] = defaultdict(list)
    for number, places in enumerate(zip(before, after, strict=True)):
        source = _source_of(anatomy, places[0].module)
        together[number if source is None else source].append(places)
    for group in together.values():
        yield [first for first, _ in group], group[0][1]


def _source_of(anatomy: Anatomy, reader: str) -> Step | None:
    """Return the step that returned what a layer reads; None where that does not tell which tensor it is.

    It does not where the layer runs more than once, or where the step returned several tensors, as `split` does.
    """
    call = anatomy.calls[reader]
    source = call.step.inputs[0] if call.count == 1 and len(call.step.inputs) == 1 else None
    return None if source is None or _may_return_several(source, anatomy) else source


def _may_return_several(step: Step, anatomy: Anatomy) -> bool:
    """Return whether a step may have returned several tensors of activations."""
    if step.kind == "layer":  # recurrent layers also return their states
        return any(name.startswith(f"{step.name}.weight_hh") for name in anatomy.shapes)
    if step.kind != "operation" or step.name.endswith("_with_indices") or "_norm" in step.name:
        return False  # what pooling and norms return besides are no activations
    packet = getattr(torch.ops.aten, step.name, None)
    if packet is None:  # an operation of another library
        return True
    returns = [[str(each.type) for each in getattr(packet, name)._schema.returns] for name in packet.overloads()]
    return any(kinds.count("Tensor") > 1 or "List[Tensor]" in kinds for kinds in returns)
