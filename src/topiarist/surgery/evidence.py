"""Gathers, from calibration data, what the readers of a space need of its units."""

from collections import defaultdict
from collections.abc import Iterator, Sequence

import torch
from torch import Tensor, nn
from torch.nn.modules.conv import _ConvNd

from topiarist.surgery import layers
from topiarist.surgery.calibration import Batches
from topiarist.surgery.moments import Moments
from topiarist.surgery.refit import MOST_POSITIONS, Pair, some_positions
from topiarist.surgery.selection import Evidence, damped
from topiarist.tracing import Anatomy, Place


def gather_evidence(
    whole: nn.Module, cut: nn.Module, seen: Anatomy, now: Anatomy, name: str, batches: Batches
) -> Evidence | None:
    """Compare a space in the whole network and in one that is cut elsewhere; None where no one reads it.

    `seen` is the anatomy of the whole network, `now` that of the cut one.
    """
    spreads, needs, total = [], [], 0.0
    for before, after in same_readings(seen, seen.spaces[name].consumers, now.spaces[name].consumers):
        moments, own = Moments(), Moments()
        first = before[0]
        for (taken, _), (dense, _) in Pair(whole, cut, first.module, seen, batches):
            features, targets = activations(whole, after, taken), activations(whole, first, dense)
            moments.add(features, targets)
            own.add(targets, targets)
        root = metric_root(whole, before)
        spread, cross = moments.covariances()
        spreads.append(spread)
        needs.append(root @ cross.T)
        total += float(((root @ own.covariances()[0]) * root).sum())
    return Evidence(damped(torch.stack(spreads)), stacked(needs), total) if spreads else None


def same_readings(
    seen: Anatomy, before: Sequence[Place], after: Sequence[Place]
) -> Iterator[tuple[list[Place], Place]]:
    """Put readers of the same tensor together; `before` and `after` are their places in two networks."""
    together: defaultdict[object, list[tuple[Place, Place]]] = defaultdict(list)
    for number, places in enumerate(zip(before, after, strict=True)):
        call = seen.calls[places[0].module]
        together[call.node.args[0] if call.count == 1 and call.node.args else number].append(places)
    for group in together.values():
        yield [first for first, _ in group], group[0][1]


def stacked(needs: list[Tensor]) -> Tensor:
    """Give matrices of different heights as one tensor."""
    height = max(len(need) for need in needs)
    return torch.stack([torch.cat([need, need.new_zeros(height - len(need), need.shape[1])]) for need in needs])


def activations(model: nn.Module, place: Place, x: Tensor, most: int | None = MOST_POSITIONS) -> Tensor:
    """Give what a reader sees of each unit (n_rows, n_units); positions of one unit count as samples of it."""
    convolution = isinstance(model.get_submodule(place.module), _ConvNd)
    flat = x.flatten(2) if convolution else x.reshape(-1, x.shape[-1], 1)
    some = flat[:, :, some_positions(flat.shape[2], most)]
    positions = torch.from_numpy(place.positions.reshape(-1)).to(x.device)
    units = some.index_select(1, positions).reshape(len(some), len(place.positions), -1, some.shape[2])
    return units.movedim(1, -1).flatten(0, -2)


def metric_root(model: nn.Module, readers: Sequence[Place]) -> Tensor:
    """Give R (at most n_units, n_units) with RᵀR the sum of WᵀW over readers, positions and kernels.

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
