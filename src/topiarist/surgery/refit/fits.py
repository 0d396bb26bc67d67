"""What a layer of a cut network becomes, so that it returns what it did: a fit for each kind of layer."""

import math
from collections.abc import Iterable, Mapping
from typing import Any, Protocol

import numpy
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.modules.conv import _ConvNd

from topiarist.devices import in_float64
from topiarist.errors import ModelError
from topiarist.surgery import layers
from topiarist.surgery.refit.moments import Moments, Spread
from topiarist.surgery.refit.operations import OwnReader, OwnReaderFit, own_readers
from topiarist.surgery.refit.recurrent import RecurrentFit, is_recurrent
from topiarist.surgery.refit.walking import Visit
from topiarist.surgery.width.change import rows_along
from topiarist.tracing import Space

MOST_FEATURES = 4096  # the cost of solving grows with their cube: above it, a layer is fitted by units where it can be
LARGEST_SOLVED = 2**14  # features of a layer that cannot: their moments take 2 GB, solving about two minutes of a core
FEWEST_POSITIONS, MOST_POSITIONS = 8, 128  # of an image: neighbours tell much the same
ENOUGH_ROWS, ROWS_PER_FEATURE = 2**13, 16  # of samples × positions: more change a fit no more than its ridge does
Fitted = dict[str, Tensor]
Readers = Mapping[str, int | OwnReader | None]
Rows = Mapping[str, Tensor]


class Fit(Protocol):
    """Sees a layer of both networks batch by batch, and then says what its tensors become."""

    def add(self, before: Visit, now: Visit) -> None:
        """Take in what the layer read and returned in the whole network, and what it reads in the cut one."""

    def values(self) -> Fitted:
        """Return the new tensors by name."""


class OutputsFit:
    """All weights of a layer, by least squares between what it reads now and what it returned."""

    def __init__(self, module: Any, kept: Tensor | None, positions: int) -> None:
        self.module, self.kept, self.positions = module, kept, positions
        self.moments, self.seen = Moments(), 0

    def add(self, before: Visit, now: Visit) -> None:
        """Add samples."""
        for taken, given in zip(now.taken, before.given, strict=True):
            features, targets = read_and_returned(self.module, taken, given, self.positions, self.seen)
            self.moments.add(features, targets if self.kept is None else targets[:, self.kept])
        self.seen += len(now.taken[0])

    def values(self) -> Fitted:
        """Return weights and constants; nothing where the layer read nothing, as an expert that no sample went to."""
        return solved(self.module, self.moments) if self.moments.count else {}


def solved(module: Any, moments: Moments) -> Fitted:
    """Return the weights of a layer with the least squared error, and its constants where it has some."""
    weight = layers.weight_of(module)
    weights, constants = moments.solve(weight.flatten(1), centred=module.bias is not None)
    values = {"weight": weights.reshape(weight.shape).to(weight)}
    return values if module.bias is None else {**values, "bias": constants.to(weight)}


class UnitsFit:
    """Units that a layer read, expressed by those that it reads now, the same way at all positions."""

    def __init__(self, whole: Any, cut: Any, each: int, kept: Tensor | None, positions: int) -> None:
        old = layers.weight_of(whole)
        self.cut, self.old = cut, old if kept is None else old[kept]
        self.now, self.positions = layers.weight_of(cut), positions
        self.is_convolution, self.each = isinstance(cut, _ConvNd), each
        self.moments, self.seen = Moments(), 0

    def add(self, before: Visit, now: Visit) -> None:
        """Add samples."""
        for taken, dense in zip(now.taken, before.taken, strict=True):
            self.moments.add(self._units_of(taken), self._units_of(dense))
        self.seen += len(now.taken[0])

    def _units_of(self, x: Tensor) -> Tensor:
        """Return (n_samples · n_positions, n_units)."""
        flat = x.flatten(2) if self.is_convolution else x.reshape(-1, x.shape[-1] // self.each, self.each)
        return values_at_some(flat, self.positions, self.seen)

    def values(self) -> Fitted:
        """Return the weights for the units that are left; nothing where the layer read nothing."""
        if not self.moments.count:
            return {}
        centred = self.cut.bias is not None and not layers.pads_with_zeros(self.cut)
        units = self.old.shape[1] // self.each, self.now.shape[1] // self.each
        mix, constants = self.moments.solve(torch.zeros(units, dtype=torch.float64), centred=centred)
        columns = self.old.reshape(len(self.old), len(mix), -1)
        values = {"weight": torch.einsum("onk,nm->omk", columns, mix.to(columns)).reshape(self.now.shape)}
        if centred:
            values["bias"] = self.cut.bias.detach() + torch.einsum("onk,n->o", columns, constants.to(columns))
        return values


class NormFit:
    """Statistics of a batch norm that follow what the cut changed in what it reads.

    The mean moves by as much as the mean of the calibration data does, the variance grows in the same ratio.
    """

    def __init__(self, module: _BatchNorm, kept: Tensor | None) -> None:
        self.module, self.kept = module, kept
        self.now, self.before = Spread(), Spread()

    def add(self, before: Visit, now: Visit) -> None:
        """Add samples."""
        for taken, dense in zip(now.taken, before.taken, strict=True):
            self.now.add(taken)
            self.before.add(dense if self.kept is None else dense.index_select(1, self.kept))

    def values(self) -> Fitted:
        """Return mean and variance; nothing where the layer read nothing."""
        if not self.now.count:
            return {}
        mean, variance = self.module.running_mean, self.module.running_var
        assert mean is not None and variance is not None
        ratio = torch.where(self.before.variance > 0, self.now.variance / self.before.variance, 1.0)
        moved = in_float64(mean) + (self.now.mean - self.before.mean)
        return {"running_mean": moved.to(mean), "running_var": (in_float64(variance) * ratio).to(variance)}


def readers_of(model: nn.Module, spaces: Iterable[Space]) -> Readers:
    """Return the layers that read some spaces and can be refitted, as `refit` takes them."""
    spaces = list(spaces)
    plain = {place.module: place.repeat for space in spaces for place in space.readers}
    others = [place for space in spaces for place in space.consumers if place.parameter is not None]
    recurrent = {place.module for place in others if is_recurrent(model.get_submodule(place.module))}
    own = own_readers(model, [place for place in others if place.module not in recurrent])
    return {**plain, **dict.fromkeys(sorted(recurrent)), **{reader.name: reader for reader in own}}


def own_reader_fit(reader: OwnReader, whole: nn.Module, cut: nn.Module, rows: Rows, samples: int) -> Fit:
    """Return the fit for a parameter that reads units."""
    old, now = reader.of(whole), reader.of(cut)
    most = positions_for(now.shape[reader.axis], samples)
    kept = {axis: rows.get(rows_along(reader.name, axis)) for axis in range(old.ndim) if axis != reader.axis}
    return OwnReaderFit(old, now, reader, kept, lambda x, first: values_at_some(x, most, first))


def fit_for(path: str, whole: nn.Module, cut: nn.Module, readers: Readers, rows: Rows, samples: int) -> Fit:
    """Return the fit for a layer: by patches, or unit by unit where it reads too much for that."""
    kept, repeat = rows.get(path), readers.get(path)
    assert not isinstance(repeat, OwnReader)
    if path not in readers:
        assert isinstance(cut, _BatchNorm)
        return NormFit(cut, kept)
    if is_recurrent(cut):
        return RecurrentFit(path, whole.get_submodule(path), cut, rows)
    features, source = layers.weight_of(cut)[0].numel(), whole.get_submodule(path)
    each = values_per_unit(source, cut, repeat) if features > MOST_FEATURES else None
    if each is not None:
        return UnitsFit(source, cut, each, kept, positions_for(layers.weight_of(cut).shape[1], samples))
    if features > LARGEST_SOLVED:
        raise ModelError(f"'{path}' reads {features} values, more than can be refitted: leave out the calibration data")
    return OutputsFit(cut, kept, positions_for(features, samples))


def values_per_unit(whole: nn.Module, cut: nn.Module, repeat: int | None) -> int | None:
    """Return how many values of a unit a layer reads in a row; None where its units are too many, or not so regular."""
    each = 1 if isinstance(cut, _ConvNd) else repeat or 0
    widths = [layers.weight_of(layer).shape[1] for layer in (whole, cut)]
    if not each or any(width % each for width in widths) or widths[0] // each > MOST_FEATURES:
        return None
    return each


def positions_for(features: int, samples: int) -> int:
    """Return at how many positions of each sample a layer is looked at, so that there are rows enough for a fit."""
    wanted = max(ENOUGH_ROWS, ROWS_PER_FEATURE * features)
    return min(max(-(-wanted // samples), FEWEST_POSITIONS), MOST_POSITIONS)


def some_positions(count: int, most: int | None, first: int, samples: int) -> Tensor:
    """Return positions of images (n_samples, n_positions): all of them, or enough, spread evenly by the golden ratio.

    Each sample has others, by its number: a few that are the same in all of them would not stand for the rest.
    """
    if most is None or count <= most:
        return torch.arange(count).expand(samples, -1)
    golden = torch.arange(first * most, (first + samples) * most, dtype=torch.float64) * ((math.sqrt(5) - 1) / 2)
    return (golden % 1 * count).long().reshape(samples, most)


def values_at_some(x: Tensor, most: int | None, first: int) -> Tensor:
    """Return what units (n_samples, n_units, …) are at some positions: (n_samples · n_positions, n_units)."""
    flat = x.flatten(2)
    some = some_positions(flat.shape[2], most, first, len(x))
    return flat[torch.arange(len(x))[:, None], :, some].flatten(0, 1)


def read_and_returned(module: nn.Module, taken: Tensor, given: Tensor, most: int, first: int) -> tuple[Tensor, Tensor]:
    """Return what a layer reads for each of its outputs (n_rows, n_features), and the outputs (n_rows, n_outputs)."""
    if not isinstance(module, _ConvNd):
        return taken.flatten(0, -2), given.flatten(0, -2)
    some = some_positions(math.prod(given.shape[2:]), most, first, len(taken))
    return patches_at(module, taken, some, given.shape[2:]), values_at_some(given, most, first)


def patches_at(module: _ConvNd, x: Tensor, positions: Tensor, size: tuple[int, ...]) -> Tensor:
    """Return what a convolution sees at some positions (n_samples, n_positions) of what it returns.

    The shape is (n_samples · n_positions, n_channels · n_kernel).
    """
    mode = "constant" if module.padding_mode == "zeros" else module.padding_mode
    padded = functional.pad(x, module._reversed_padding_repeated_twice, mode=mode)
    places = torch.from_numpy(numpy.stack(numpy.unravel_index(positions.numpy(), size)))  # (n_axes, n_samples, n_pos.)
    within = torch.cartesian_prod(*(torch.arange(width) for width in module.kernel_size)).reshape(-1, len(size)).T
    steps, gaps = (torch.tensor(each).reshape(-1, 1, 1, 1) for each in (module.stride, module.dilation))
    at = places[..., None] * steps + within[:, None, None] * gaps  # (n_axes, n_samples, n_positions, n_kernel)
    found = padded[(torch.arange(len(x))[:, None, None], slice(None), *at)]  # (n_samples, n_positions, n_kernel, n_ch.)
    return found.transpose(2, 3).reshape(positions.numel(), -1)
