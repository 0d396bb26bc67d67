"""Gathers, from calibration data, what the layers that read the units of a space need of them."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

import numpy
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.modules.conv import _ConvNd

from topiarist.surgery import layers
from topiarist.surgery.calibration import CalibrationBatches, watch_readers
from topiarist.surgery.choice.selection import SelectionEvidence, damped
from topiarist.surgery.refit.fits import MOST_POSITIONS, positions_for, some_positions
from topiarist.surgery.refit.moments import Moments
from topiarist.surgery.refit.walking import Visit
from topiarist.tracing import Anatomy, Place, Space
from topiarist.tracing.steps import Step

MOST_JOINT = 1024  # features of all units together: the cost of choosing grows with their cube


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


class ReadingSums:
    """What layers that read the same tensor see of the units of a space, summed up over batches.

    `readers` are their places in the whole network; `place` is that of the first of them in the cut one.
    """

    def __init__(
        self, whole: nn.Module, readers: Sequence[Place], place: Place, samples: int | None, *, joint: bool
    ) -> None:
        self.whole, self.readers, self.place, self.joint = whole, readers, place, joint
        self.most = MOST_POSITIONS if samples is None else positions_for(place.positions.size, samples)
        self.moments, self.own = Moments(), Moments()

    def add(self, taken: Tensor, dense: Tensor) -> None:
        """Add what is read in the cut network, and in the whole one."""
        features = activations(self.whole, self.place, taken, self.most, joint=self.joint)
        if taken is dense:
            self.moments.add(features)
            return
        targets = activations(self.whole, self.readers[0], dense, self.most, joint=self.joint)
        self.moments.add(features, targets)
        self.own.add(targets)

    def part(self) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Return what an error in the units costs, and the covariances that `combined` takes."""
        root = metric_root(self.whole, self.readers, joint=self.joint)
        spread, cross = self.moments.covariances()
        if not self.own.count:
            return root, spread, spread, spread
        return root, spread, cross, self.own.covariances()[0]


def evidence_of_whole(
    model: nn.Module, anatomy: Anatomy, names: Iterable[str], batches: CalibrationBatches, *, joint: bool = True
) -> dict[str, SelectionEvidence | None]:
    """Look at spaces of a network that is cut nowhere yet, all in one pass; None where no plain layer reads one.

    Only linear layers and convolutions are asked: what else sees the units (see `blind_spot`) has no say. Without
    `joint`, positions of a unit always count as samples of it.
    """
    sums, each = {}, {name: features_of_each(anatomy[name].readers) if joint else 1 for name in names}
    for name in each:
        same = same_readings(anatomy, anatomy[name].readers, anatomy[name].readers)
        apart = each[name] > 1
        sums[name] = [ReadingSums(model, readers, place, batches.samples, joint=apart) for readers, place in same]
    watched: defaultdict[str, list[ReadingSums]] = defaultdict(list)
    for seen in (seen for together in sums.values() for seen in together):
        watched[seen.place.module].append(seen)

    def remember(path: str, taken: Tensor) -> None:
        for seen in watched[path]:
            seen.add(taken, taken)

    if watched:
        watch_readers(model, {path: anatomy.calls[path].count for path in watched}, batches, remember)
    return {name: combined((seen.part() for seen in together), each[name]) for name, together in sums.items()}


def evidence_at(
    path: str, name: str, whole: nn.Module, before: Anatomy, now: Anatomy, waiting: Sequence[tuple[Visit, Visit]]
) -> SelectionEvidence | None:
    """Look at a space that one layer reads, where both networks wait at that layer.

    `before` is the anatomy of the whole network, `now` that of the cut one.
    """
    (reader,), (place,) = before[name].readers, now[name].readers
    samples = sum(len(seen.taken[-1]) for _, seen in waiting)
    reader = still_there(reader, before, now)
    each = features_of_each([reader, place])
    sums = ReadingSums(whole, [reader], place, samples, joint=each > 1)
    for dense, seen in waiting:
        sums.add(seen.taken[-1], dense.taken[-1])
    return combined([sums.part()], each) if waiting else None


def features_of_each(readers: Sequence[Place]) -> int:
    """Return how many features each unit has where readers see it at several positions; 1 where those are samples.

    They are samples where readers see different numbers of them, or too many for one matrix.
    """
    counts = {place.positions.size // len(place.positions) for place in readers}
    few = all(place.positions.size <= MOST_JOINT for place in readers)
    return counts.pop() if len(counts) == 1 and few else 1


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


def combined(parts: Iterable[tuple[Tensor, Tensor, Tensor, Tensor]], each: int = 1) -> SelectionEvidence | None:
    """Return the evidence of several readers: what an error costs each, and the covariances of what it reads.

    Those are of the units as they are now, with them as they were, and as they were; each unit has so many features.
    """
    spreads, needs, total = [], [], 0.0
    for root, spread, cross, own in parts:
        spreads.append(spread)
        needs.append(root @ cross.T)
        total += float(((root @ own) * root).sum())
    if not spreads:
        return None
    height = max(len(need) for need in needs)
    stacked = torch.stack([functional.pad(need, (0, 0, 0, height - len(need))) for need in needs])
    return SelectionEvidence(damped(torch.stack(spreads)), stacked, total, each)


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


def activations(
    model: nn.Module, place: Place, x: Tensor, most: int | None = MOST_POSITIONS, *, joint: bool = False
) -> Tensor:
    """Return what a reader sees of each unit (n_rows, n_units); positions of one unit count as samples of it.

    With `joint`, they are features of their own (n_rows, n_units · n_positions).
    """
    convolution = isinstance(model.get_submodule(place.module), _ConvNd)
    flat = x.flatten(2) if convolution else x.reshape(-1, x.shape[-1], 1)
    some = flat[:, :, some_positions(flat.shape[2], most)]
    positions = torch.from_numpy(place.positions.reshape(-1)).to(x.device)
    units = some.index_select(1, positions)
    if not joint:
        units = units.reshape(len(some), len(place.positions), -1, some.shape[2])
    return units.movedim(1, -1).flatten(0, -2)


def metric_root(model: nn.Module, readers: Sequence[Place], *, joint: bool = False) -> Tensor:
    """Return R (at most n_features, n_features) with RᵀR the sum of WᵀW over readers and kernels.

    That is what an error in the units costs. Positions of a unit are summed over too, unless they are `joint` features.
    """
    rows = []
    for place in readers:
        weight = layers.weight_of(model.get_submodule(place.module)).to(torch.float64)
        positions = torch.from_numpy(place.positions.reshape(-1)).to(weight.device)
        features = place.positions.size if joint else len(place.positions)
        columns = weight.index_select(1, positions).reshape(len(weight), features, -1)
        rows.append(columns.transpose(1, 2).reshape(-1, features))
    root: Tensor = torch.linalg.qr(torch.cat(rows), mode="r").R
    return root
