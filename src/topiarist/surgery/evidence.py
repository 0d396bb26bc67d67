"""Gathers, from calibration data, what the readers of a space need of its units."""

import torch
from torch import Tensor, nn
from torch.nn.modules.conv import _ConvNd

from topiarist.surgery import layers
from topiarist.surgery.calibration import Batches
from topiarist.surgery.moments import Moments
from topiarist.surgery.refit import MOST_POSITIONS, Pair
from topiarist.surgery.selection import Evidence, damped
from topiarist.tracing import OUTPUT, Anatomy, Place


def gather_evidence(
    whole: nn.Module, cut: nn.Module, seen: Anatomy, now: Anatomy, name: str, batches: Batches
) -> Evidence | None:
    """Compare a space in the whole network and in one that is cut elsewhere; None where no one reads it.

    `seen` is the anatomy of the whole network, `now` that of the cut one.
    """
    spreads, needs, total = [], [], 0.0
    for before, after in zip(seen.spaces[name].consumers, now.spaces[name].consumers, strict=True):
        moments = Moments()
        second = Moments()
        for (taken, _), (dense, _) in Pair(whole, cut, before.module, seen.calls[before.module].count, batches):
            features, targets = (activations(whole, *pair) for pair in ((after, taken), (before, dense)))
            moments.add(features, targets)
            second.add(targets, targets)
        root = metric_root(whole, before, centred=writes_output(seen, before))
        spread, cross = moments.covariances()
        spreads.append(spread)
        needs.append(root @ cross.T)
        total += float(((root @ second.covariances()[0]) * root).sum())
    return Evidence(damped(torch.stack(spreads)), torch.stack(needs), total) if spreads else None


def activations(model: nn.Module, place: Place, x: Tensor) -> Tensor:
    """Give what a reader sees of each unit (n_rows, n_units); positions of one unit count as samples of it."""
    convolution = isinstance(model.get_submodule(place.module), _ConvNd)
    flat = x.flatten(2) if convolution else x.reshape(-1, x.shape[-1], 1)
    some = flat[:, :, :: -(-flat.shape[2] // MOST_POSITIONS)]
    positions = torch.from_numpy(place.positions.reshape(-1)).to(x.device)
    units = some.index_select(1, positions).reshape(len(some), len(place.positions), -1, some.shape[2])
    return units.movedim(1, -1).flatten(0, -2)


def metric_root(model: nn.Module, place: Place, *, centred: bool) -> Tensor:
    """Give R (n_units, n_units) with RᵀR the sum, over positions and kernel, of WᵀW: what an error in a unit costs.

    A softmax ignores what all of its inputs have in common, so that the layer before it is `centred`.
    """
    weight = layers.weight_of(model.get_submodule(place.module)).to(torch.float64)
    if centred:
        weight = weight - weight.mean(0, keepdim=True)
    units = len(place.positions)
    positions = torch.from_numpy(place.positions.reshape(-1)).to(weight.device)
    columns = weight.index_select(1, positions).reshape(len(weight), units, -1)
    rows = columns.transpose(1, 2).reshape(-1, units)
    padded = torch.cat([rows, rows.new_zeros(max(units - len(rows), 0), units)])
    root: Tensor = torch.linalg.qr(padded, mode="r").R
    return root


def writes_output(found: Anatomy, place: Place) -> bool:
    """Say whether a layer writes the network's output."""
    outputs = (space for space in found.spaces.values() if space.reason == OUTPUT)
    return any(producer.module == place.module for space in outputs for producer in space.producers)
