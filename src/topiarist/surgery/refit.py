"""Refit: after units are gone, the layers that read them make up for it by ridge least squares.

Layer after layer, in the order in which they run: the features are what the layer reads in the cut network, the targets
are what it gave in the whole one. The statistics of batch norms behind a change follow it. Convolutions are fitted on
patches; where a layer reads too much for that, units are expressed by units instead, one matrix for all positions.
"""

import math
from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch import Tensor, fx, nn
from torch.nn import functional
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.modules.conv import _ConvNd

from topiarist.errors import ModelError
from topiarist.surgery import layers
from topiarist.surgery.calibration import Batches
from topiarist.surgery.moments import Moments, Spread
from topiarist.surgery.watching import Watched, watch
from topiarist.surgery.width import Rows
from topiarist.tracing import Anatomy
from topiarist.tracing.anatomy import Seen

MOST_FEATURES = 4096
MOST_POSITIONS = 128
MOST_VALUES = 2**24
ENOUGH_ROWS, ROWS_A_FEATURE = 2**15, 32
Fitted = dict[str, Tensor]
Readers = Mapping[str, int | None]


def refit(
    whole: nn.Module,
    cut: nn.Module,
    found: Anatomy,
    readers: Readers,
    rows: Rows,
    batches: Batches,
    *,
    norms: bool = True,
) -> Fitted:
    """Refit layers of the cut network in place, and give their new tensors by name.

    `found` is the anatomy of the whole network; `readers` names the layers, with the positions that each unit takes in
    what they read, None where they read other units now; `rows` has, for layers that write or pass on less than in the
    whole network, what they still have. Without `norms`, batch norms keep their statistics.
    """
    behind = reachable(found, readers) if norms else set()
    fitted: Fitted = {}
    modules = dict(cut.named_modules())
    for path, seen in found.calls.items():
        module = modules.get(path)
        if path in readers:
            fitted |= refit_layer(path, readers[path], rows.get(path), Pair(whole, cut, path, found, batches))
        elif isinstance(module, _BatchNorm) and module.running_mean is not None and seen.node in behind:
            fitted |= recalibrate(path, rows.get(path), Pair(whole, cut, path, found, batches))
    return fitted


def reachable(found: Anatomy, readers: Readers) -> set[fx.Node]:
    """Give the operations that come after one of the readers."""
    waiting = [found.calls[path].node for path in readers]
    reached: set[fx.Node] = set()
    while waiting:
        new = [user for user in waiting.pop().users if user not in reached]
        reached.update(new)
        waiting += new
    return reached


class Pair:
    """One layer in the whole network and in the cut one, seen side by side on calibration data, as many as it needs.

    `found` is the anatomy of the whole network.
    """

    def __init__(self, whole: nn.Module, cut: nn.Module, path: str, found: Anatomy, batches: Batches) -> None:
        self.networks = cut, whole
        self.path, self.calls = path, found.calls[path].count
        self.cut: Any = cut.get_submodule(path)
        self.whole: Any = whole.get_submodule(path)
        self.batches = batches.some(enough_samples(self.whole, found.calls[path], found.samples))

    def __iter__(self) -> Iterator[tuple[Watched, Watched]]:
        cut, whole = self.networks
        for args, kwargs in self.batches:  # the same batch for both, also where batches are shuffled
            now = watch(cut, self.path, self.calls, args, kwargs)
            yield from zip(now, now if cut is whole else watch(whole, self.path, self.calls, args, kwargs), strict=True)


def enough_samples(module: nn.Module, seen: Seen, samples: int) -> int:
    """Give how many samples fit a layer: each position of a picture tells something, and more tell nothing new."""
    weight: Tensor | None = getattr(module, "weight", None)
    units, features = (1, 1) if weight is None else (len(weight), weight.numel() // len(weight))
    positions = min(max(seen.elements // (units * samples), 1), MOST_POSITIONS)
    return -(-max(ENOUGH_ROWS, ROWS_A_FEATURE * features) // positions)


def refit_layer(path: str, repeat: int | None, kept: Tensor | None, pair: Pair) -> Fitted:
    """Refit one layer; `kept` (n_outputs,) are those of its outputs that it still has, None where it has all."""
    small = layers.weight_of(pair.cut)[0].numel() <= MOST_FEATURES
    values = fit_outputs(pair, kept) if small else fit_units(pair, repeat, kept)
    for name, tensor in values.items():
        layers.put(pair.cut, name, tensor)
    return {f"{path}.{name}": tensor for name, tensor in values.items()}


def fit_outputs(pair: Pair, kept: Tensor | None) -> Fitted:
    """Fit all weights of a layer, so that it gives what it gave."""
    moments = Moments()
    for (taken, _), (_, given) in pair:
        features, targets = read_and_given(pair.cut, taken, given)
        moments.add(features, targets if kept is None else targets[:, kept])
    weight = layers.weight_of(pair.cut)
    weights, constants = moments.solve(weight.flatten(1), centred=pair.cut.bias is not None)
    values = {"weight": weights.reshape(weight.shape).to(weight)}
    return values if pair.cut.bias is None else {**values, "bias": constants.to(weight)}


def read_and_given(module: nn.Module, taken: Tensor, given: Tensor) -> tuple[Tensor, Tensor]:
    """Give what a layer reads for each of its outputs (n_rows, n_features), and the outputs (n_rows, n_outputs)."""
    if not isinstance(module, _ConvNd):
        return taken.flatten(0, -2), given.flatten(0, -2)
    outputs = given.flatten(2)
    some = some_positions(outputs.shape[2])
    few = max(MOST_VALUES // (layers.weight_of(module)[0].numel() * outputs.shape[2]), 1)  # patches take much memory
    features = torch.cat([patches(module, part)[:, :, some] for part in torch.split(taken, few)])
    return features.transpose(1, 2).flatten(0, 1), outputs[:, :, some].transpose(1, 2).flatten(0, 1)


def some_positions(count: int, most: int | None = MOST_POSITIONS) -> Tensor:
    """Give positions of a picture, all of them or enough, spread evenly over it: neighbours tell much the same."""
    if most is None or count <= most:
        return torch.arange(count)
    golden = torch.arange(most, dtype=torch.float64) * ((math.sqrt(5) - 1) / 2)
    return (golden % 1 * count).long()


def patches(module: _ConvNd, x: Tensor) -> Tensor:
    """Give what a convolution sees at each position: (n_samples, n_features, n_positions)."""
    mode = "constant" if module.padding_mode == "zeros" else module.padding_mode
    padded = functional.pad(x, module._reversed_padding_repeated_twice, mode=mode)
    flat = padded if padded.ndim == 4 else padded.unsqueeze(2)
    lead = (1,) * (2 - len(module.kernel_size))
    return functional.unfold(
        flat,
        kernel_size=(*lead, *module.kernel_size),
        dilation=(*lead, *module.dilation),
        stride=(*lead, *module.stride),
    )


def fit_units(pair: Pair, repeat: int | None, kept: Tensor | None) -> Fitted:
    """Express the units that a layer read by those that it reads now, the same way at all positions."""
    old, now = layers.weight_of(pair.whole), layers.weight_of(pair.cut)
    old = old if kept is None else old[kept]
    repeat = 1 if isinstance(pair.cut, _ConvNd) else repeat
    if repeat is None or old.shape[1] % repeat or now.shape[1] % repeat or old.shape[1] // repeat > MOST_FEATURES:
        raise ModelError(f"'{pair.path}' reads {now.shape[1]} values, more than can be refitted")
    moments = Moments()
    for (after, _), (before, _) in pair:
        moments.add(units_of(pair.cut, after, repeat), units_of(pair.cut, before, repeat))
    centred = pair.cut.bias is not None and not layers.pads_with_zeros(pair.cut)
    nothing = torch.zeros(old.shape[1] // repeat, now.shape[1] // repeat, dtype=torch.float64)
    mix, constants = moments.solve(nothing, centred=centred)
    columns = old.reshape(len(old), len(mix), -1)
    values = {"weight": torch.einsum("onk,nm->omk", columns, mix.to(old)).reshape(now.shape)}
    if centred:
        values["bias"] = pair.cut.bias.detach() + torch.einsum("onk,n->o", columns, constants.to(old))
    return values


def units_of(module: nn.Module, x: Tensor, repeat: int) -> Tensor:
    """Give the activations of units (n_samples · n_positions, n_units); some of the positions are enough."""
    flat = x.flatten(2) if isinstance(module, _ConvNd) else x.reshape(-1, x.shape[-1] // repeat, repeat)
    return flat[:, :, some_positions(flat.shape[2])].transpose(1, 2).flatten(0, 1)


def recalibrate(path: str, kept: Tensor | None, pair: Pair) -> Fitted:
    """Let the statistics of a batch norm follow what the cut changed in what it reads.

    The mean moves by as much as the mean of the calibration data does, the variance grows in the same ratio.
    """
    now, before = Spread(), Spread()
    for (taken, _), (dense, _) in pair:
        now.add(taken)
        before.add(dense if kept is None else dense.index_select(1, kept))
    mean, variance = pair.cut.running_mean, pair.cut.running_var
    ratio = torch.where(before.variance > 0, now.variance / before.variance, 1.0)
    fitted = {
        "running_mean": (mean + (now.mean - before.mean)).to(mean),
        "running_var": (variance * ratio).to(variance),
    }
    for name, values in fitted.items():
        layers.put(pair.cut, name, values)
    return {f"{path}.{name}": values for name, values in fitted.items()}
