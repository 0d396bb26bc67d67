"""Refit: after units are gone, the layers that read them make up for it by ridge least squares.

Layer after layer, in the order in which they run: the features are what the layer reads in the cut network, the targets
are what it returned in the whole one. The statistics of batch norms behind a change follow it. Convolutions are fitted
on patches; where a layer reads too much for that, units are expressed by units instead, one matrix for all positions.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from topiarist.surgery import layers
from topiarist.surgery.calibration import CalibrationBatches, Watched, watch
from topiarist.surgery.refit.fits import (
    ENOUGH_ROWS,
    MOST_POSITIONS,
    ROWS_PER_FEATURE,
    Fitted,
    Readers,
    fit_for,
    solved,
)
from topiarist.surgery.refit.moments import Moments
from topiarist.surgery.refit.walking import Walk
from topiarist.tracing import Anatomy
from topiarist.tracing.steps import LayerCall, behind

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
    modules, fitted = dict(cut.named_modules()), Fitted()
    known = moments or {}

    def put(path: str, values: Fitted) -> None:
        for name, tensor in values.items():
            layers.put(modules[path], name, tensor)
            fitted[f"{path}.{name}"] = tensor

    for path, summed in known.items():
        put(path, solved(modules[path], summed))
    calls = anatomy.calls
    left = [path for path in calls if path in modules and path not in known]
    left = [path for path in left if path in readers or (calls[path].step in after and _recalls(modules[path]))]
    while left:
        with Walk(whole, cut, batches, {path: calls[path].count for path in left}) as walk:
            for path in tuple(left):
                fit = fit_for(path, whole, modules[path], readers, rows.get(path), walk.samples)
                for before, now in walk.visit(path):
                    fit.add(before, now)
                put(path, fit.values())
                walk.pass_by(path)
                left.remove(path)
                if calls[path].count > 1:  # it ran before it was fitted, and what came of it is no longer so
                    break
    return fitted


def _recalls(module: nn.Module) -> bool:
    """Return whether a layer is a batch norm with statistics of earlier batches."""
    return isinstance(module, _BatchNorm) and module.running_mean is not None


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
