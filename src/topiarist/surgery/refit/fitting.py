"""Refit: after units are gone, the layers that read them make up for it by ridge least squares.

Layer after layer, in the order in which they run: the features are what the layer reads in the cut network, the targets
are what it returned in the whole one. The statistics of batch norms behind a change follow it. Convolutions are fitted
on patches; where a layer reads too much for that, units are expressed by units instead, one matrix for all positions.
"""

import math
from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.modules.conv import _ConvNd

from topiarist.errors import ModelError
from topiarist.surgery import layers
from topiarist.surgery.calibration import CalibrationBatches, Watched, watch
from topiarist.surgery.refit.moments import Moments, Spread
from topiarist.tracing import Anatomy
from topiarist.tracing.steps import LayerCall, behind

MOST_FEATURES = 4096  # the cost of solving grows with their cube
MOST_POSITIONS = 128  # of an image: neighbours tell much the same
MOST_VALUES = 2**24  # in the patches of one step: 64 MB in float32
ENOUGH_ROWS, ROWS_PER_FEATURE = 2**15, 32  # of samples × positions: more change a fit no more than its ridge does
Fitted = dict[str, Tensor]
Readers = Mapping[str, int | None]
Rows = Mapping[str, Tensor]


def refit(
    whole: nn.Module,
    cut: nn.Module,
    anatomy: Anatomy,
    readers: Readers,
    rows: Rows,
    batches: CalibrationBatches,
    *,
    norms: bool = True,
    moments: Mapping[str, Moments] | None = None,
) -> Fitted:
    """Refit layers of the cut network in place, and return their new tensors by name.

    `anatomy` is that of the whole network; `readers` names the layers, with the positions that each unit takes in what
    they read, None where they read other units now; `rows` has, for layers that write or pass on less than in the
    whole network, what they still have. Without `norms`, batch norms keep their statistics. `moments` has what layers
    read and returned where that was summed up before; the others are watched.
    """
    after = behind(anatomy.calls[path].step for path in readers) if norms else set()
    fitted: Fitted = {}
    modules = dict(cut.named_modules())
    for path, call in anatomy.calls.items():
        module = modules.get(path)
        norm = isinstance(module, _BatchNorm) and module.running_mean is not None and call.step in after
        if module is None or not (path in readers or norm):
            continue
        pair = LayerPair(whole, cut, path, anatomy, batches)
        if path not in readers:
            values = _recalibrated(pair, rows.get(path))
        elif layers.weight_of(module)[0].numel() <= MOST_FEATURES:
            values = _fit_outputs(pair, rows.get(path), (moments or {}).get(path))
        else:
            values = _fit_units(pair, readers[path], rows.get(path))
        for name, tensor in values.items():
            layers.put(module, name, tensor)
            fitted[f"{path}.{name}"] = tensor
    return fitted


class LayerPair:
    """One layer in the whole network and in the cut one, seen side by side on calibration data, as many as it needs.

    `anatomy` is that of the whole network.
    """

    def __init__(
        self, whole: nn.Module, cut: nn.Module, path: str, anatomy: Anatomy, batches: CalibrationBatches
    ) -> None:
        self.networks = cut, whole
        self.path, self.calls = path, anatomy.calls[path].count
        self.cut: Any = cut.get_submodule(path)
        self.whole: Any = whole.get_submodule(path)
        self.batches = batches.some(enough_samples(self.whole, anatomy.calls[path], anatomy.samples))

    def __iter__(self) -> Iterator[tuple[Watched, Watched]]:
        cut, whole = self.networks
        for args, kwargs in self.batches:  # the same batch for both, also where batches are shuffled
            now = watch(cut, self.path, self.calls, args, kwargs)
            yield from zip(now, now if cut is whole else watch(whole, self.path, self.calls, args, kwargs), strict=True)


def enough_samples(module: nn.Module, call: LayerCall, samples: int) -> int:
    """Return how many samples fit a layer: each position of an image counts as one, and more tell nothing new."""
    weight: Tensor | None = getattr(module, "weight", None)
    units, features = (1, 1) if weight is None else (len(weight), weight.numel() // len(weight))
    positions = min(max(call.elements // (units * samples), 1), MOST_POSITIONS)
    return -(-max(ENOUGH_ROWS, ROWS_PER_FEATURE * features) // positions)


def some_positions(count: int, most: int | None = MOST_POSITIONS) -> Tensor:
    """Return positions of an image, all of them or enough, spread evenly over it by the golden ratio."""
    if most is None or count <= most:
        return torch.arange(count)
    golden = torch.arange(most, dtype=torch.float64) * ((math.sqrt(5) - 1) / 2)
    return (golden % 1 * count).long()


def _fit_outputs(pair: LayerPair, kept: Tensor | None, moments: Moments | None) -> Fitted:
    """Fit all weights of a layer, so that it returns what it did; `kept` (n_outputs,) are the outputs it still has."""
    if moments is None:
        moments = Moments()
        for (taken, _), (_, given) in pair:
            features, targets = _read_and_returned(pair.cut, taken, given)
            moments.add(features, targets if kept is None else targets[:, kept])
    weight = layers.weight_of(pair.cut)
    weights, constants = moments.solve(weight.flatten(1), centred=pair.cut.bias is not None)
    values = {"weight": weights.reshape(weight.shape).to(weight)}
    return values if pair.cut.bias is None else {**values, "bias": constants.to(weight)}


def _read_and_returned(module: nn.Module, taken: Tensor, given: Tensor) -> tuple[Tensor, Tensor]:
    """Return what a layer reads for each of its outputs (n_rows, n_features), and the outputs (n_rows, n_outputs)."""
    if not isinstance(module, _ConvNd):
        return taken.flatten(0, -2), given.flatten(0, -2)
    outputs = given.flatten(2)
    some = some_positions(outputs.shape[2])
    few = max(MOST_VALUES // (layers.weight_of(module)[0].numel() * outputs.shape[2]), 1)
    features = torch.cat([_patches(module, part)[:, :, some] for part in torch.split(taken, few)])
    return features.transpose(1, 2).flatten(0, 1), outputs[:, :, some].transpose(1, 2).flatten(0, 1)


def _patches(module: _ConvNd, x: Tensor) -> Tensor:
    """Return what a convolution sees at each position: (n_samples, n_features, n_positions)."""
    mode = "constant" if module.padding_mode == "zeros" else module.padding_mode
    padded = functional.pad(x, module._reversed_padding_repeated_twice, mode=mode)
    flat = padded if padded.ndim == 4 else padded.unsqueeze(2)
    lead = (1,) * (2 - len(module.kernel_size))
    kernel, dilation, stride = ((*lead, *each) for each in (module.kernel_size, module.dilation, module.stride))
    return functional.unfold(flat, kernel_size=kernel, dilation=dilation, stride=stride)


def _fit_units(pair: LayerPair, repeat: int | None, kept: Tensor | None) -> Fitted:
    """Express the units that a layer read by those that it reads now, the same way at all positions."""
    old, now = layers.weight_of(pair.whole), layers.weight_of(pair.cut)
    old = old if kept is None else old[kept]
    convolution = isinstance(pair.cut, _ConvNd)
    each = 1 if convolution else repeat or 0
    if not each or old.shape[1] % each or now.shape[1] % each or old.shape[1] // each > MOST_FEATURES:
        raise ModelError(f"'{pair.path}' reads {now.shape[1]} values, more than can be refitted")

    def units_of(x: Tensor) -> Tensor:  # (n_samples · n_positions, n_units); some of the positions are enough
        flat = x.flatten(2) if convolution else x.reshape(-1, x.shape[-1] // each, each)
        return flat[:, :, some_positions(flat.shape[2])].transpose(1, 2).flatten(0, 1)

    moments = Moments()
    for (after, _), (before, _) in pair:
        moments.add(units_of(after), units_of(before))
    centred = pair.cut.bias is not None and not layers.pads_with_zeros(pair.cut)
    nothing = torch.zeros(old.shape[1] // each, now.shape[1] // each, dtype=torch.float64)
    mix, constants = moments.solve(nothing, centred=centred)
    columns = old.reshape(len(old), len(mix), -1)
    values = {"weight": torch.einsum("onk,nm->omk", columns, mix.to(old)).reshape(now.shape)}
    if centred:
        values["bias"] = pair.cut.bias.detach() + torch.einsum("onk,n->o", columns, constants.to(old))
    return values


def _recalibrated(pair: LayerPair, kept: Tensor | None) -> Fitted:
    """Return statistics of a batch norm that follow what the cut changed in what it reads.

    The mean moves by as much as the mean of the calibration data does, the variance grows in the same ratio.
    """
    now, before = Spread(), Spread()
    for (taken, _), (dense, _) in pair:
        now.add(taken)
        before.add(dense if kept is None else dense.index_select(1, kept))
    mean, variance = pair.cut.running_mean, pair.cut.running_var
    ratio = torch.where(before.variance > 0, now.variance / before.variance, 1.0)
    moved = mean + (now.mean - before.mean)
    return {"running_mean": moved.to(mean), "running_var": (variance * ratio).to(variance)}
