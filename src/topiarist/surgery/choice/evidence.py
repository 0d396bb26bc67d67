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
from topiarist.surgery.calibration import CalibrationBatches
from topiarist.surgery.choice.selection import SelectionEvidence, damped
from topiarist.surgery.refit.fits import MOST_POSITIONS, some_positions
from topiarist.surgery.refit.fitting import LayerPair
from topiarist.surgery.refit.moments import Moments
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


def gather_evidence(
    whole: nn.Module,
    cut: nn.Module,
    before: Anatomy,
    now: Anatomy,
    name: str,
    batches: CalibrationBatches,
    fits: dict[str, Moments] | None = None,
) -> SelectionEvidence | None:
    """Compare a space in the whole network and in one that is cut elsewhere; None where no layer reads it.

    Only linear layers and convolutions are asked: what else sees the units (see `blind_spot`) has no say.

    `before` is the anatomy of the whole network, `now` that of the cut one. `fits` gets what linear layers read and
    returned that read this space alone: a refit need not watch them again.
    """

    def parts() -> Iterator[tuple[Tensor, Tensor, Tensor, Tensor]]:
        whole_readers = [still_there(place, before, now) for place in before[name].readers]
        for readers, place in same_readings(before, whole_readers, now[name].readers):
            moments, own, fit = Moments(), Moments(), Moments()
            path = readers[0].module
            plain = fits is not None and len(readers) == 1 and _reads_alone(whole.get_submodule(path), place)
            for (taken, _), (dense, given) in LayerPair(whole, cut, path, before, batches):
                features, targets = activations(whole, place, taken), activations(whole, readers[0], dense)
                moments.add(features, targets)
                own.add(targets, targets)
                if plain:
                    fit.add(features, given.flatten(0, -2))
            if plain and fits is not None:
                fits[path] = fit
            yield metric_root(whole, readers), *moments.covariances(), own.covariances()[0]

    return combined(parts())


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


def _reads_alone(module: nn.Module, place: Place) -> bool:
    """Return whether a layer is linear and reads the units of one space alone, each at one position, in order."""
    in_order = numpy.arange(place.length).reshape(-1, 1, 1)
    return isinstance(module, nn.Linear) and numpy.array_equal(place.positions, in_order)


def combined(parts: Iterable[tuple[Tensor, Tensor, Tensor, Tensor]]) -> SelectionEvidence | None:
    """Return the evidence of several readers: what an error costs each, and the covariances of what it reads.

    Those are (n_units, n_units) of the units as they are now, with them as they were, and as they were.
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
    return SelectionEvidence(damped(torch.stack(spreads)), stacked, total)


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


def activations(model: nn.Module, place: Place, x: Tensor, most: int | None = MOST_POSITIONS) -> Tensor:
    """Return what a reader sees of each unit (n_rows, n_units); positions of one unit count as samples of it."""
    convolution = isinstance(model.get_submodule(place.module), _ConvNd)
    flat = x.flatten(2) if convolution else x.reshape(-1, x.shape[-1], 1)
    some = flat[:, :, some_positions(flat.shape[2], most)]
    positions = torch.from_numpy(place.positions.reshape(-1)).to(x.device)
    units = some.index_select(1, positions).reshape(len(some), len(place.positions), -1, some.shape[2])
    return units.movedim(1, -1).flatten(0, -2)


def metric_root(model: nn.Module, readers: Sequence[Place]) -> Tensor:
    """Return R (at most n_units, n_units) with RᵀR the sum of WᵀW over readers, positions and kernels.

    That is what an error in the units costs.
    """
    rows = []
    for place in readers:
        weight = layers.weight_of(model.get_submodule(place.module)).to(torch.float64)
        units = len(place.positions)
        positions = torch.from_numpy(place.positions.reshape(-1)).to(weight.device)
        columns = weight.index_select(1, positions).reshape(len(weight), units, -1)
        rows.append(columns.transpose(1, 2).reshape(-1, units))
    root: Tensor = torch.linalg.qr(torch.cat(rows), mode="r").R
    return root
