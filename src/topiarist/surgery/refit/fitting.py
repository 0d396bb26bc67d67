"""Refit: after units are gone, the layers that read them make up for it by ridge least squares.

Layer after layer, in the order in which they run: the features are what the layer reads in the cut network, the targets
are what it returned in the whole one. The statistics of batch norms behind a change follow it. Convolutions are fitted
on patches; where a layer reads too much for that, units are expressed by units instead, one matrix for all positions.
"""

from collections.abc import Callable, Collection, Mapping
from itertools import accumulate

from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm

from topiarist.models.attention import free_attention
from topiarist.models.buffers import keeping_buffers
from topiarist.models.evaluation import evaluating, numbers_of
from topiarist.randomness import isolated
from topiarist.surgery import layers
from topiarist.surgery.calibration import CalibrationBatches
from topiarist.surgery.refit.fits import Fitted, Readers, Rows, fit_for, own_reader_fit
from topiarist.surgery.refit.operations import OwnReader, probe
from topiarist.surgery.refit.rows import same_rows
from topiarist.surgery.refit.walking import Stop, Walk
from topiarist.tracing import Anatomy
from topiarist.tracing.steps import Step, behind

TENSORS_HELD = 6  # in each of two networks what a layer reads, what it returned, and what a shortcut holds


def refit(
    whole: nn.Module,
    cut: nn.Module,
    anatomy: Anatomy,
    readers: Readers,
    rows: Rows,
    batches: CalibrationBatches,
    *,
    now: Callable[[], Anatomy],
    arrive: Callable[[Walk, str], None] | None = None,
    changed: Collection[Step] = (),
) -> Fitted:
    """Refit layers of the cut network in place, and return their new tensors by name.

    `anatomy` is that of the whole network; `readers` names the layers, with the positions that each unit takes in what
    they read, None where they read other units now; `rows` has, for layers that write or pass on less than in the
    whole network, what they still have; `now` returns the anatomy of the cut network as it is.
    `arrive` is called with each layer before it is fitted, when both networks wait
    at it: it may cut the network further, and change `rows`. `changed` are steps that read something else than
    before, besides the readers: the statistics of batch norms among them and behind them follow too.
    """
    modules, fitted = dict(cut.named_modules()), Fitted()
    draws = anatomy.trace is not None and anatomy.trace.tracer.draws
    counts = _counts(whole, modules, anatomy, readers, batches, changed)
    left = list(counts)
    while left:
        stops = stops_at({path: counts[path] for path in left}, anatomy, readers)
        with Walk(whole, cut, batches, stops, draws=draws) as walk:
            for path in tuple(left):
                waiting = walk.visit(path)
                if arrive is not None:
                    arrive(walk, path)
                reader = readers.get(path)
                if isinstance(reader, OwnReader):
                    fit, owner = own_reader_fit(reader, whole, cut, rows, walk.samples), path.rpartition(".")[0]
                else:
                    fit, owner = fit_for(path, whole, modules[path], readers, rows, walk.samples), path
                visits = same_rows(path, modules[path], waiting, anatomy, now()) if path in modules else waiting
                for dense, seen in visits:
                    fit.add(dense, seen)
                for name, tensor in (fit.values() if visits else {}).items():
                    layers.put(modules[owner], name, tensor)
                    fitted[f"{owner}.{name}".removeprefix(".")] = tensor
                left.remove(path)
                if counts[path] > 1:  # it ran before it was fitted, and what came of it is no longer so
                    break
                if left:
                    walk.pass_by(path)
    return fitted


def _counts(
    whole: nn.Module,
    modules: Mapping[str, nn.Module],
    anatomy: Anatomy,
    readers: Readers,
    batches: CalibrationBatches,
    changed: Collection[Step],
) -> dict[str, int]:
    """Return how often the layers and parameters run that are fitted, in the order of their last time."""
    calls = anatomy.calls
    after = behind([*changed, *(calls[path].step for path in readers if path in calls)]).union(changed)
    own = {path: reader for path, reader in readers.items() if isinstance(reader, OwnReader)}
    if own:  # the steps do not tell where parameters are read
        after = {call.step for call in calls.values()}
    paths = [path for path in calls if path in modules]
    paths = [path for path in paths if path in readers or (calls[path].step in after and _recalls(modules[path]))]
    if not own:
        return {path: calls[path].count for path in paths}
    args, kwargs = next(iter(batches))

    def run() -> None:
        with evaluating(whole), isolated(0, numbers_of(whole).device), free_attention(whole), keeping_buffers(whole):
            whole(*args, **kwargs)

    order = list(probe(whole, paths, own, run))
    last = {path: place for place, path in enumerate(order)}
    return {path: order.count(path) for path in sorted(last, key=last.__getitem__)}


def stops_at(counts: Mapping[str, int], anatomy: Anatomy, readers: Readers) -> list[Stop]:
    """Return where to stop for some layers, with what a run holds there: both networks have a few tensors each."""
    sizes = [max(call.elements, call.taken) // anatomy.samples for call in anatomy.calls.values()]
    largest = dict(zip(anatomy.calls, reversed(list(accumulate(reversed(sizes), max))), strict=True))
    stops = []
    for path, count in counts.items():
        reader = readers.get(path)
        own = reader if isinstance(reader, OwnReader) else None
        stops.append(Stop(path, count, TENSORS_HELD * largest.get(path, max(sizes, default=1)), own))
    return stops


def _recalls(module: nn.Module) -> bool:
    """Return whether a layer is a batch norm with statistics of earlier batches."""
    return isinstance(module, _BatchNorm) and module.running_mean is not None
