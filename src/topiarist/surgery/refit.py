"""Refit: after units are gone, the layers that read them make up for it by ridge least squares.

Layer after layer, in the order in which they run: the features are what the layer reads in the cut network, the targets
are what it gave in the whole one. Batch norms behind a change get the statistics of the cut network. Convolutions are
fitted on patches; where a layer reads too much for that, units are expressed by units instead, one matrix for all
positions.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, fx, nn
from torch.nn import functional
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.modules.conv import _ConvNd

from topiarist.errors import ModelError
from topiarist.surgery import layers
from topiarist.surgery.calibration import Batches
from topiarist.surgery.moments import Moments
from topiarist.surgery.watching import Seen, watch
from topiarist.tracing import Anatomy

MOST_FEATURES = 4096
MOST_POSITIONS = 128
Fitted = dict[str, Tensor]


@dataclass(frozen=True)
class Reader:
    """A layer to refit.

    `repeat` is how many positions each unit takes in what it reads, None where it no longer reads the same units.
    `rows` (n_outputs,) are those of its outputs in the whole network that it still has, None where it has all.
    """

    repeat: int | None = None
    rows: Tensor | None = None


Readers = Mapping[str, Reader]


def refit(
    whole: nn.Module, cut: nn.Module, found: Anatomy, readers: Readers, batches: Batches, *, norms: bool = True
) -> Fitted:
    """Refit layers of the cut network in place, and give their new tensors by name.

    `found` is the anatomy of the whole network. Without `norms`, batch norms keep their statistics.
    """
    behind = reachable(found, readers) if norms else set()
    fitted: Fitted = {}
    modules = dict(cut.named_modules())
    for path, seen in found.calls.items():
        module = modules.get(path)
        if path in readers:
            fitted |= refit_layer(path, readers[path], Pair(whole, cut, path, seen.count, batches))
        elif isinstance(module, _BatchNorm) and module.running_mean is not None and seen.node in behind:
            fitted |= recalibrate(cut, path, seen.count, batches)
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
    """One layer in the whole network and in the cut one, seen side by side on the calibration data."""

    def __init__(self, whole: nn.Module, cut: nn.Module, path: str, calls: int, batches: Batches) -> None:
        self.networks = cut, whole
        self.path, self.calls, self.batches = path, calls, batches
        self.cut: Any = cut.get_submodule(path)
        self.whole: Any = whole.get_submodule(path)

    def __iter__(self) -> Iterator[tuple[Seen, Seen]]:
        views = [watch(network, self.path, self.calls, self.batches) for network in self.networks]
        for batch in zip(*views, strict=True):
            yield from zip(*batch, strict=True)


def refit_layer(path: str, reader: Reader, pair: Pair) -> Fitted:
    """Refit one layer."""
    small = layers.weight_of(pair.cut)[0].numel() <= MOST_FEATURES
    values = fit_outputs(pair, reader) if small else fit_units(pair, reader)
    for name, tensor in values.items():
        layers.put(pair.cut, name, tensor)
    return {f"{path}.{name}": tensor for name, tensor in values.items()}


def fit_outputs(pair: Pair, reader: Reader) -> Fitted:
    """Fit all weights of a layer, so that it gives what it gave."""
    moments = Moments()
    for (taken, _), (_, given) in pair:
        features, targets = rows(pair.cut, taken, given)
        moments.add(features, targets if reader.rows is None else targets[:, reader.rows])
    weight = layers.weight_of(pair.cut)
    weights, constants = moments.solve(weight.flatten(1), centred=pair.cut.bias is not None)
    values = {"weight": weights.reshape(weight.shape).to(weight)}
    return values if pair.cut.bias is None else {**values, "bias": constants.to(weight)}


def rows(module: nn.Module, taken: Tensor, given: Tensor) -> tuple[Tensor, Tensor]:
    """Give what a layer reads for each of its outputs (n_rows, n_features), and the outputs (n_rows, n_outputs)."""
    if not isinstance(module, _ConvNd):
        return taken.flatten(0, -2), given.flatten(0, -2)
    outputs = given.flatten(2)
    step = -(-outputs.shape[2] // MOST_POSITIONS)  # neighbours tell much the same
    features = patches(module, taken)[:, :, ::step]
    return features.transpose(1, 2).flatten(0, 1), outputs[:, :, ::step].transpose(1, 2).flatten(0, 1)


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


def fit_units(pair: Pair, reader: Reader) -> Fitted:
    """Express the units that a layer read by those that it reads now, the same way at all positions."""
    old, now = layers.weight_of(pair.whole), layers.weight_of(pair.cut)
    old = old if reader.rows is None else old[reader.rows]
    repeat = 1 if isinstance(pair.cut, _ConvNd) else reader.repeat
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
    return flat[:, :, :: -(-flat.shape[2] // MOST_POSITIONS)].transpose(1, 2).flatten(0, 1)


def recalibrate(cut: nn.Module, path: str, calls: int, batches: Batches) -> Fitted:
    """Give a batch norm the mean and the variance of what it reads."""
    module = cut.get_submodule(path)
    count, total, squares = 0, torch.zeros(()), torch.zeros(())
    for seen in watch(cut, path, calls, batches):
        for taken, _ in seen:
            values = taken.transpose(0, 1).flatten(1).to(torch.float64)
            count += values.shape[1]
            total, squares = total + values.sum(1), squares + (values**2).sum(1)
    mean = total / count
    variance = (squares / count - mean**2).clamp_min(0) * (count / max(count - 1, 1))
    assert isinstance(module.running_mean, Tensor)
    fitted = {"running_mean": mean.to(module.running_mean), "running_var": variance.to(module.running_mean)}
    for name, values in fitted.items():
        layers.put(module, name, values)
    return {f"{path}.{name}": values for name, values in fitted.items()}
