"""Refit: after units are gone, the layers that read them make up for it by ridge least squares.

Layer after layer, in the order in which they run: the features are what the layer reads in the cut network, the targets
are what it returned in the whole one. The statistics of batch norms behind a change follow it. Convolutions are fitted
on patches; where a layer reads too much for that, units are expressed by units instead, one matrix for all positions.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import accumulate

from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from topiarist.surgery import layers
from topiarist.surgery.calibration import CalibrationBatches
from topiarist.surgery.refit.fits import Fitted, Readers, fit_for
from topiarist.surgery.refit.walking import Stop, Walk
from topiarist.tracing import Anatomy
from topiarist.tracing.steps import Step, behind

Rows = Mapping[str, Tensor]
TENSORS_HELD = 6  # in each of two networks what a layer reads, what it returned, and what a shortcut holds


def refit(
    whole: nn.Module,
    cut: nn.Module,
    anatomy: Anatomy,
    readers: Readers,
    rows: Rows,
    batches: CalibrationBatches,
    *,
    arrive: Callable[[Walk, str], None] | None = None,
    changed: Collection[Step] = (),
) -> Fitted:
    """Refit layers of the cut network in place, and return their new tensors by name.

    `anatomy` is that of the whole network; `readers` names the layers, with the positions that each unit takes in what
    they read, None where they read other units now; `rows` has, for layers that write or pass on less than in the
    whole network, what they still have. `arrive` is called with each layer before it is fitted, when both networks wait
    at it: it may cut the network further, and change `rows`. `changed` are steps that read something else than
    before, besides the readers: the statistics of batch norms among them and behind them follow too.
    """
    calls, modules, fitted = anatomy.calls, dict(cut.named_modules()), Fitted()
    after = behind([*changed, *(calls[path].step for path in readers)]).union(changed)
    left = [path for path in calls if path in modules]
    left = [path for path in left if path in readers or (calls[path].step in after and _recalls(modules[path]))]
    draws = anatomy.trace is not None and anatomy.trace.tracer.draws
    while left:
        with Walk(whole, cut, batches, stops_at(left, anatomy), draws=draws) as walk:
            for path in tuple(left):
                waiting = walk.visit(path)
                if arrive is not None:
                    arrive(walk, path)
                fit = fit_for(path, whole, modules[path], readers, rows.get(path), walk.samples)
                for before, now in waiting:
                    fit.add(before, now)
                for name, tensor in fit.values().items():
                    layers.put(modules[path], name, tensor)
                    fitted[f"{path}.{name}"] = tensor
                left.remove(path)
                if calls[path].count > 1:  # it ran before it was fitted, and what came of it is no longer so
                    break
                if left:
                    walk.pass_by(path)
    return fitted


def stops_at(paths: Sequence[str], anatomy: Anatomy) -> list[Stop]:
    """Return where to stop for some layers, with what a run holds there: both networks have a few tensors each."""
    sizes = [max(call.elements, call.taken) // anatomy.samples for call in anatomy.calls.values()]
    largest = dict(zip(anatomy.calls, reversed(list(accumulate(reversed(sizes), max))), strict=True))
    return [Stop(path, anatomy.calls[path].count, TENSORS_HELD * largest[path]) for path in paths]


def _recalls(module: nn.Module) -> bool:
    """Return whether a layer is a batch norm with statistics of earlier batches."""
    return isinstance(module, _BatchNorm) and module.running_mean is not None
