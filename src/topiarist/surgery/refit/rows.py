"""Rows that are units: a layer that reads a transposed tensor, as an MLP-Mixer's across tokens, runs once per channel.

Where channels are gone, the cut network runs it for those that are left, the whole one for all of them:

    whole: (samples, 24 channels, 16 tokens)      cut: (samples, 21 channels, 16 tokens)

Both are compared row by row, so that rows of the whole network are passed over whose channels the cut one lacks.
"""

from collections.abc import Iterable
from dataclasses import replace

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.modules.conv import _ConvNd

from topiarist.surgery.refit.walking import Visit
from topiarist.tracing import Anatomy


def same_rows(
    path: str, module: nn.Module, waiting: Iterable[tuple[Visit, Visit]], before: Anatomy, now: Anatomy
) -> list[tuple[Visit, Visit]]:
    """Return what both networks show of a layer; of the whole one, only the rows that the cut one has.

    `before` is the anatomy of the whole network, `now` that of the cut one. Where nothing tells which rows those are,
    the batch is left out.
    """
    units = 1 if isinstance(module, (_ConvNd, _BatchNorm)) else -1  # the axis of the units that the layer reads
    pairs = ((_with_rows_of(cut, whole, path, units, before, now), cut) for whole, cut in waiting)
    return [(whole, cut) for whole, cut in pairs if whole is not None]


def _with_rows_of(cut: Visit, whole: Visit, path: str, units: int, before: Anatomy, now: Anatomy) -> Visit | None:
    """Return what the whole network shows, with the rows that the cut one has."""
    taken, given = list(whole.taken), list(whole.given)
    for call, (dense, seen) in enumerate(zip(whole.taken, cut.taken, strict=True)):
        for axis in range(
            dense.ndim if isinstance(dense, Tensor) else 0
        ):  # packed sequences have rows of samples alone
            if axis == units % dense.ndim or dense.shape[axis] == seen.shape[axis]:
                continue
            kept = _rows_left(path, call, axis, dense.shape[axis], before, now)
            if kept is None or len(kept) != seen.shape[axis] or not isinstance(given[call], Tensor):
                return None
            taken[call], given[call] = (
                tensor[call].index_select(axis, kept.to(dense.device)) for tensor in (taken, given)
            )
    return replace(whole, taken=taken, given=given)


def _rows_left(path: str, call: int, axis: int, count: int, before: Anatomy, now: Anatomy) -> Tensor | None:
    """Return which of `count` rows of the whole network the cut one has; None where they are no known units."""
    read = before.calls[path].read if path in before.calls else ()
    vector = read[call][axis] if call < len(read) else None
    if before.trace is None or vector is None:
        return None
    units = before.trace.tracer.labels.units_at(vector)
    there, left = (torch.from_numpy(anatomy.copies()[units].prod(axis=1) > 0) for anatomy in (before, now))
    rows = left[there]
    if len(rows) != count:  # samples lie along the axis too: each has the same units
        each = rows.reshape(before.samples, -1) if len(rows) % before.samples == 0 else rows[None]
        if not bool((each == each[0]).all()) or count % each.shape[1]:
            return None
        rows = each[0].repeat(count // each.shape[1])
    return rows.nonzero()[:, 0]
