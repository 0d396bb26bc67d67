"""Which weights stay: exactly as many as asked for, those of the highest scores; what is gone stays gone.

Also the weights that make each unit of a network: to judge whole units by them, and to silence units without a cut.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from topiarist.surgery.choice.evidence import blind_spot
from topiarist.surgery.choice.recurrent import recurrent_places
from topiarist.tracing import Anatomy, ExampleInput, Place, ensure_anatomy

Tensors = Mapping[str, Tensor]


def choose_by_layer(scores: Tensors, masks: Tensors, sparsity: float) -> dict[str, Tensor]:
    """Let every tensor lose the same fraction; True is what stays."""
    gone = {name: int((~mask).sum()) for name, mask in masks.items()}
    counts = removed_counts({name: score.numel() for name, score in scores.items()}, sparsity, gone)
    return {name: _keep_highest(_ranked(score, masks[name]), counts[name]) for name, score in scores.items()}


def removed_counts(sizes: Mapping[str, int], sparsity: float, gone: Mapping[str, int] | None = None) -> dict[str, int]:
    """Return how many of each tensor go: the same fraction of each, rounded so that the total is the rounded total.

    The largest remainders are rounded up; what is gone stays gone, and one of each tensor stays.
    """
    shares = {name: sparsity * size for name, size in sizes.items()}
    least = {name: 0 if gone is None else gone[name] for name in sizes}
    most = {name: max(size - 1, least[name]) for name, size in sizes.items()}
    counts = {name: min(max(math.floor(share), least[name]), most[name]) for name, share in shares.items()}
    total = round(sparsity * sum(sizes.values()))
    while sum(counts.values()) != total:
        step = 1 if sum(counts.values()) < total else -1
        free = [name for name in counts if (counts[name] < most[name] if step > 0 else counts[name] > least[name])]
        if not free:
            break
        counts[max(free, key=lambda name: step * (shares[name] - counts[name]))] += step
    return counts


def choose_overall(scores: Tensors, masks: Tensors, sparsity: float) -> dict[str, Tensor]:
    """Rank all tensors together; the highest of each stays, so that no layer is emptied."""
    flat = []
    for name, score in scores.items():
        values = _ranked(score, masks[name]).flatten()
        if len(values):
            values[values.argmax()] = math.inf
        flat.append(values)
    together = torch.cat(flat)
    count = min(round(sparsity * len(together)), len(together) - sum(len(values) > 0 for values in flat))
    kept = torch.split(_keep_highest(together, count), [len(values) for values in flat])
    return {name: mask.view(scores[name].shape) for name, mask in zip(scores, kept, strict=True)}


def choose_pattern(scores: Tensors, masks: Tensors, *, zeros: int, group: int) -> dict[str, Tensor]:
    """Let the lowest `zeros` of every `group` weights in a row go; what is left over at the end of a row stays.

    A row holds the weights of one unit: (units_out, inputs · kernel).
    """
    chosen = {}
    for name, score in scores.items():
        rows = _ranked(score, masks[name]).flatten(1)
        whole = rows.shape[1] // group * group
        pieces = rows[:, :whole].reshape(-1, group)
        lowest = pieces.argsort(dim=1, stable=True)[:, :zeros]
        kept = torch.ones_like(rows, dtype=torch.bool)
        kept[:, :whole] = torch.ones_like(pieces, dtype=torch.bool).scatter_(1, lowest, False).view(len(rows), whole)
        chosen[name] = kept.view(score.shape)
    return chosen


def _ranked(score: Tensor, mask: Tensor) -> Tensor:
    """Return scores in which what is gone comes last, whatever its score."""
    return score.detach().masked_fill(~mask, -math.inf)


def _keep_highest(scores: Tensor, removed: int) -> Tensor:
    """Return True for all but the lowest `removed`; of equal ones the first go."""
    kept = torch.ones(scores.numel(), dtype=torch.bool, device=scores.device)
    kept[scores.flatten().argsort(stable=True)[:removed]] = False
    return kept.view(scores.shape)


@dataclass(frozen=True)
class UnitRows:
    """The rows (n_units, n) of a parameter that belong to each unit."""

    parameter: str
    rows: Tensor


@dataclass(frozen=True)
class UnitWeights:
    """A space whose units can be silenced: `kernels` write them; with `silenced` zero, they are zero."""

    size: int
    kernels: tuple[UnitRows, ...]
    silenced: tuple[UnitRows, ...]

    def summed(self, scores: Tensors, *, squared: bool) -> Tensor:
        """Return each unit's sum of the scores, or of their squares, of the weights that write it (n_units,)."""
        total = torch.zeros(self.size)
        for place in self.kernels:
            score = scores[place.parameter].flatten(1)
            by_row = (score.square() if squared else score).sum(dim=1)
            total += by_row[place.rows].sum(dim=1).cpu()
        return total


def unit_weights(
    model: nn.Module, example_input: ExampleInput, *, anatomy: Anatomy | None = None
) -> dict[str, UnitWeights]:
    """Return the weights of the units of each space that can go and whose units are gone where they are zero.

    Spaces that a frozen layer writes are left out, those that a norm runs over or that no plain layer reads, and those
    that forward itself has parameters for. Recurrent layers count as plain ones.
    """
    parameters = dict(model.named_parameters())
    found = {}
    known = ensure_anatomy(model, example_input, anatomy)
    for name, space in known.free.items():
        recurrent = recurrent_places(model, space, known)
        own = any(place.parameter is not None for place in space.producers)
        if not recurrent and (blind_spot(space) is not None or own):
            continue
        written, passed = list(_rows_of(space.producers, parameters)), list(_rows_of(space.passes, parameters))
        written += _rows_of(recurrent, parameters, own=True)
        kernels = [place for place in written if parameters[place.parameter].ndim > 1]
        if kernels and all(parameters[place.parameter].requires_grad for place in (*written, *passed)):
            found[name] = UnitWeights(space.size, tuple(kernels), (*written, *passed))
    return found


def _rows_of(places: Sequence[Place], parameters: Tensors, *, own: bool = False) -> Iterator[UnitRows]:
    """Yield the rows of the parameters that meet the units in this way: of plain layers, or of all others."""
    for place in places:
        rows = torch.from_numpy(place.positions).flatten(1)
        for name, axis in place.tensors if (place.parameter is not None) is own else ():
            known = f"{place.module}.{name}".removeprefix(".")
            if known in parameters and axis == 0:
                yield UnitRows(known, rows)
