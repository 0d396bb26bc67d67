"""What the layers that read a space see of its units, summed up over batches, as evidence for which of them to keep."""

import math
from collections.abc import Iterable, Sequence
from functools import cached_property

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.modules.conv import _ConvNd

from topiarist.devices import in_float64
from topiarist.errors import DataError
from topiarist.surgery import layers
from topiarist.surgery.choice.selection import MANY_UNITS, SelectionEvidence, damped
from topiarist.surgery.refit.fits import MOST_POSITIONS, positions_for, read_and_returned, values_at_some
from topiarist.surgery.refit.moments import Moments, Spread
from topiarist.tracing import Place

MOST_JOINT = 1024  # features of all units together: the cost of choosing grows with their cube
ROWS_TO_SUM_UP = 4  # with less than one sample for so many units, samples are kept as they are
Part = tuple[Tensor, Tensor, float]


class ReadingSums:
    """What layers that read the same tensor see of the units of a space.

    `readers` are their places in the whole network; `place` is that of the first of them in the cut one.
    """

    def __init__(
        self, whole: nn.Module, readers: Sequence[Place], place: Place, samples: int | None, *, joint: bool
    ) -> None:
        self.whole, self.readers, self.place, self.joint = whole, readers, place, joint
        self.most = MOST_POSITIONS if samples is None else positions_for(place.positions.size, samples)
        self.moments, self.own, self.seen = Moments(), Spread(), 0
        units = place.positions.size if joint else len(place.positions)
        self.fewest = units // ROWS_TO_SUM_UP if units > MANY_UNITS else 0
        self.rows: list[tuple[Tensor, Tensor | None]] | None = []  # as long as they are few

    def add(self, taken: Tensor, dense: Tensor | None = None) -> None:
        """Add what is read in the cut network, and in the whole one, where those are not the same."""
        if not taken.numel():  # no sample of the batch came here
            return
        first, self.seen = self.seen, self.seen + len(taken)
        features = activations(self.whole, self.place, taken, self.most, joint=self.joint, first=first)
        targets = None
        if dense is not None:
            targets = activations(self.whole, self.readers[0], dense, self.most, joint=self.joint, first=first)
        if self.rows is None:
            self._sum_up(features, targets)
            return
        self.rows.append((features, targets))
        if sum(len(each) for each, _ in self.rows) > self.fewest:
            for each in self.rows:
                self._sum_up(*each)
            self.rows = None

    @cached_property
    def root(self) -> Tensor:
        """Return what an error in the units costs."""
        return metric_root(self.whole, self.readers, joint=self.joint)

    def _sum_up(self, features: Tensor, targets: Tensor | None) -> None:
        if targets is None:
            self.moments.add(features)
            return
        needed = targets.to(self.root) @ self.root.T
        self.moments.add(features, needed)
        self.own.add(needed)

    def part(self) -> Part:
        """Return the covariances that `combined` takes."""
        if self.rows:
            return self._of_few_rows()
        spread, cross = self.moments.covariances()
        if not self.own.count:
            return of_units(self.root, spread)
        return spread, cross.T, float(self.own.variance.sum())

    @property
    def count(self) -> int:
        """Return how many rows were read."""
        return self.moments.count + sum(len(features) for features, _ in self.rows or ())

    @property
    def rank(self) -> int | None:
        """Return the rank of what is known where there are few samples; None where they were summed up."""
        return sum(len(features) for features, _ in self.rows) if self.rows else None

    def _of_few_rows(self) -> Part:
        """Return the covariances, with as many rows of needs as there are samples.

        Only NᵀN counts. With X the units and Y what readers get of them, N = YᵀX / n, and so is Λ^½ Vᵀ X / n with
        Y Yᵀ = V Λ Vᵀ: of 64 samples and 4,096 units, that is a small matrix.
        """
        assert self.rows is not None
        x = _centred([features for features, _ in self.rows])
        targets = [targets for _, targets in self.rows if targets is not None]
        read = (_centred(targets) if targets else x) @ reading_matrix(self.whole, self.readers, joint=self.joint).T
        values, vectors = torch.linalg.eigh(read @ read.T)
        needs = values.clamp_min(0).sqrt()[:, None] * vectors.T @ x / len(x)
        return x.T @ x / len(x), needs, float(read.square().sum()) / len(x)


def _centred(rows: Sequence[Tensor]) -> Tensor:
    x = in_float64(torch.cat(list(rows)))
    if not bool(x.isfinite().all()):
        raise DataError("on the calibration data, the network computes values that are not finite numbers")
    return x - x.mean(0)


def of_units(root: Tensor, spread: Tensor) -> Part:
    """Return the covariances that `combined` takes where units are what they were, and an error in them costs RᵀR."""
    needs = root @ spread
    return spread, needs, float((needs * root).sum())


class PatchSums:
    """What a convolution reads in the cut network, patch by patch, and what it returned in the whole one.

    Every unit has as many features as the kernel has positions: what its loss costs after the refit is what is summed.
    """

    def __init__(self, module: _ConvNd, units: int, samples: int) -> None:
        features = layers.weight_of(module)[0].numel()
        self.module, self.each = module, features // units
        self.most = positions_for(features, samples)
        self.moments, self.returned, self.seen = Moments(), Spread(), 0

    def add(self, taken: Tensor, given: Tensor) -> None:
        """Add what is read in the cut network, and what was returned in the whole one."""
        features, targets = read_and_returned(self.module, taken, given, self.most, self.seen)
        self.seen += len(taken)
        self.moments.add(features, targets)
        self.returned.add(targets)

    def evidence(self) -> SelectionEvidence:
        """Return the evidence of this one reader."""
        spread, cross = self.moments.covariances()
        return SelectionEvidence(
            damped(spread[None].cpu()), cross.T[None].cpu(), float(self.returned.variance.sum()), self.each
        )


def has_few_patches(module: _ConvNd, place: Place) -> bool:
    """Return whether a convolution reads one space alone, in order, with few enough features for `PatchSums`."""
    in_order = place.positions.reshape(-1).tolist() == list(range(place.length))
    return in_order and layers.weight_of(module)[0].numel() <= MOST_JOINT


def features_of_each(readers: Sequence[Place]) -> int:
    """Return how many features each unit has where readers see it at several positions; 1 where those are samples.

    They are samples where readers see different numbers of them, or too many for one matrix.
    """
    counts = {place.positions.size // len(place.positions) for place in readers}
    few = all(place.positions.size <= MOST_JOINT for place in readers)
    return counts.pop() if len(counts) == 1 and few else 1


def combined(parts: Iterable[Part], each: int = 1, rank: int | None = None) -> SelectionEvidence | None:
    """Return the evidence of several readers, of units with so many features each.

    Of each reader there are the covariance of the units, that of what it needs with the units, and the variance of what
    it needs. What readers need counts as a share of its variance, so that one that reads large numbers does not decide
    alone. `rank` is that of all covariances together, where it is known to be low.
    """
    spreads, needs, count = [], [], 0.0
    for spread, needed, variance in parts:
        spreads.append(spread.cpu())  # a choice is many small steps: the CPU's work
        needs.append((needed / math.sqrt(variance) if variance > 0 else torch.zeros_like(needed)).cpu())
        count += variance > 0
    if not spreads:
        return None
    height = max(len(need) for need in needs)
    stacked = torch.stack([functional.pad(need, (0, 0, 0, height - len(need))) for need in needs])
    return SelectionEvidence(damped(torch.stack(spreads)), stacked, count, each, rank)


def activations(
    model: nn.Module,
    place: Place,
    x: Tensor,
    most: int | None = MOST_POSITIONS,
    *,
    joint: bool = False,
    first: int = 0,
) -> Tensor:
    """Return what a reader sees of each unit (n_rows, n_units); positions of one unit count as samples of it.

    With `joint`, they are features of their own (n_rows, n_units · n_positions). `first` is the number of the first
    sample: each is looked at in other positions of an image.
    """
    convolution = isinstance(model.get_submodule(place.module), _ConvNd)
    rows = values_at_some(x, most, first) if convolution else x.reshape(-1, x.shape[-1])
    positions = torch.from_numpy(place.positions.reshape(-1)).to(x.device)
    units = rows.index_select(1, positions)
    return units if joint else units.reshape(len(rows), len(place.positions), -1).transpose(1, 2).flatten(0, 1)


def metric_root(model: nn.Module, readers: Sequence[Place], *, joint: bool = False) -> Tensor:
    """Return R (at most n_features, n_features) with RᵀR the sum of WᵀW over readers and kernels."""
    root: Tensor = torch.linalg.qr(reading_matrix(model, readers, joint=joint), mode="r").R
    return root


def reading_matrix(model: nn.Module, readers: Sequence[Place], *, joint: bool = False) -> Tensor:
    """Return the weights of all readers and kernels (n_weights, n_features).

    The square of what they make of it is what an error in the units costs. Positions of a unit are summed over too,
    unless they are `joint` features.
    """
    rows = []
    for place in readers:
        weight = in_float64(layers.weight_of(model.get_submodule(place.module)))
        positions = torch.from_numpy(place.positions.reshape(-1)).to(weight.device)
        features = place.positions.size if joint else len(place.positions)
        columns = weight.index_select(1, positions).reshape(len(weight), features, -1)
        rows.append(columns.transpose(1, 2).reshape(-1, features))
    return torch.cat(rows)
