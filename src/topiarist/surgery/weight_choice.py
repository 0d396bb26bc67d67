"""Which weights stay: exactly as many as asked for, those of the highest scores; what is gone stays gone."""

import math
from collections.abc import Mapping

import torch
from torch import Tensor

Scores = Mapping[str, Tensor]
Chosen = dict[str, Tensor]


def choose_by_layer(scores: Scores, masks: Mapping[str, Tensor], sparsity: float) -> Chosen:
    """Let every tensor lose the same fraction; True is what stays."""
    gone = {name: int((~mask).sum()) for name, mask in masks.items()}
    counts = removed_counts({name: score.numel() for name, score in scores.items()}, sparsity, gone)
    return {name: keep_highest(ranked(score, masks[name]), counts[name]) for name, score in scores.items()}


def removed_counts(sizes: Mapping[str, int], sparsity: float, gone: Mapping[str, int] | None = None) -> dict[str, int]:
    """Give how many of each tensor go: the same fraction of each, rounded so that the total is the rounded total.

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


def choose_overall(scores: Scores, masks: Mapping[str, Tensor], sparsity: float) -> Chosen:
    """Rank all tensors together; the highest of each stays, so that no layer is emptied."""
    flat = []
    for name, score in scores.items():
        values = ranked(score, masks[name]).flatten()
        if len(values):
            values[values.argmax()] = math.inf
        flat.append(values)
    together = torch.cat(flat)
    count = min(round(sparsity * len(together)), len(together) - sum(len(values) > 0 for values in flat))
    kept = torch.split(keep_highest(together, count), [len(values) for values in flat])
    return {name: mask.view(scores[name].shape) for name, mask in zip(scores, kept, strict=True)}


def choose_pattern(scores: Scores, masks: Mapping[str, Tensor], *, zeros: int, group: int) -> Chosen:
    """Let the lowest `zeros` of every `group` weights in a row go; what is left over at the end of a row stays.

    A row holds the weights of one unit: (units_out, inputs · kernel).
    """
    chosen = {}
    for name, score in scores.items():
        rows = ranked(score, masks[name]).flatten(1)
        whole = rows.shape[1] // group * group
        pieces = rows[:, :whole].reshape(-1, group)
        lowest = pieces.argsort(dim=1, stable=True)[:, :zeros]
        kept = torch.ones_like(rows, dtype=torch.bool)
        kept[:, :whole] = torch.ones_like(pieces, dtype=torch.bool).scatter_(1, lowest, False).view(len(rows), whole)
        chosen[name] = kept.view(score.shape)
    return chosen


def ranked(score: Tensor, mask: Tensor) -> Tensor:
    """Give scores in which what is gone comes last, whatever its score."""
    return score.detach().masked_fill(~mask, -math.inf)


def keep_highest(scores: Tensor, removed: int) -> Tensor:
    """Give True for all but the lowest `removed`; of equal ones the first go."""
    kept = torch.ones(scores.numel(), dtype=torch.bool, device=scores.device)
    kept[scores.flatten().argsort(stable=True)[:removed]] = False
    return kept.view(scores.shape)
