"""Which units of a space to keep, so that ridge least squares loses least of what the readers of the space need.

With S the covariance of the activations and Y the covariance of what a reader needs with them, keeping the units K
explains gain(K) = tr(Y_K (S_KK + λI)⁻¹ Y_Kᵀ) of the reader's variance; the gains of several readers are added.
Elimination (as in optimal brain surgery, Hassibi and Stork, 1993) and matching (orthogonal matching pursuit) are
greedy; exchanging one unit for another mends what both overlook.
"""

from dataclasses import dataclass
from typing import Literal, get_args

import torch
from torch import Tensor

from topiarist.errors import SettingsError
from topiarist.surgery.refit.moments import RIDGE

SMALLEST_GAIN = 1e-7  # as a share of what is explained: less is rounding
MOST_WORK = 2**22  # pairs over all rounds: among many units, exchanges cost much and mend little
Strategy = Literal["best", "elimination", "matching"]


@dataclass(frozen=True)
class SelectionEvidence:
    """What is known of the units of a space, one matrix per reader.

    `spread` (n_readers, n_units, n_units) is the covariance of the activations, damped; `needs` (n_readers, n_targets,
    n_units) that of what the reader needs with the activations; `total` the variance of what all readers need.
    """

    spread: Tensor
    needs: Tensor
    total: float

    @property
    def size(self) -> int:
        """Return the number of units."""
        return self.spread.shape[-1]


def damped(spread: Tensor, ridge: float = RIDGE) -> Tensor:
    """Add to covariances (…, n, n) a ridge in proportion to the mean variance."""
    scale = spread.diagonal(dim1=-2, dim2=-1).mean(-1).clamp_min(torch.finfo(spread.dtype).eps)
    return spread + (ridge * scale)[..., None, None] * torch.eye(spread.shape[-1], dtype=spread.dtype)


def select(evidence: SelectionEvidence, count: int, strategy: Strategy = "best") -> list[int]:
    """Return the units to keep, in order."""
    if strategy not in get_args(Strategy):
        raise SettingsError(f"strategy must be one of {', '.join(get_args(Strategy))}; found {strategy!r}")
    if count >= evidence.size:
        return list(range(evidence.size))
    if strategy == "elimination":
        return eliminate(evidence, count)[0]
    if strategy == "matching":
        return match(evidence, count)
    starts = eliminate(evidence, count)[0], match(evidence, count)
    return max((exchange(evidence, kept) for kept in starts), key=lambda kept: gain(evidence, kept))


def gain(evidence: SelectionEvidence, kept: list[int]) -> float:
    """Return how much of what the readers need is explained by some units."""
    needs = evidence.needs[:, :, kept]
    return float((needs * torch.linalg.solve(evidence.spread[:, kept][:, :, kept], needs.mT).mT).sum())


def eliminate(evidence: SelectionEvidence, count: int) -> tuple[list[int], Tensor]:
    """Remove the unit that is missed least, until `count` are left; also return what was lost with so many left."""
    size = evidence.size
    inverse = torch.linalg.inv(evidence.spread)
    weights = evidence.needs @ inverse
    left = torch.ones(size, dtype=torch.bool)
    lost = torch.zeros(size + 1, dtype=inverse.dtype)
    for remaining in range(size - 1, count - 1, -1):
        diagonal = inverse.diagonal(dim1=1, dim2=2)
        costs = ((weights**2).sum(1) / diagonal.clamp_min(torch.finfo(diagonal.dtype).tiny)).sum(0)
        unit = int(costs.masked_fill(~left, torch.inf).argmin())
        lost[remaining] = lost[remaining + 1] + costs[unit]
        left[unit] = False
        share = (inverse[:, unit] / inverse[:, unit, unit, None])[:, None]
        weights.baddbmm_(weights[:, :, unit, None].clone(), share, alpha=-1)
        inverse.baddbmm_(inverse[:, :, unit, None].clone(), share, alpha=-1)
    return left.nonzero().flatten().tolist(), lost


def match(evidence: SelectionEvidence, count: int) -> list[int]:
    """Add the unit that explains most of what is still needed, until there are `count`."""
    spread, needs = evidence.spread.clone(), evidence.needs.clone()
    floor = torch.finfo(spread.dtype).eps * spread.diagonal(dim1=1, dim2=2).mean(1, keepdim=True)
    kept: list[int] = []
    for _ in range(count):
        gains = ((needs**2).sum(1) / torch.maximum(spread.diagonal(dim1=1, dim2=2), floor)).sum(0)
        gains[kept] = -torch.inf
        unit = int(gains.argmax())
        share = (spread[:, unit] / torch.maximum(spread[:, unit, unit, None], floor))[:, None]
        needs.baddbmm_(needs[:, :, unit, None].clone(), share, alpha=-1)
        spread.baddbmm_(spread[:, :, unit, None].clone(), share, alpha=-1)
        kept.append(unit)
    return sorted(kept)


def exchange(evidence: SelectionEvidence, kept: list[int]) -> list[int]:
    """Exchange one unit for another, the best pair first, as long as that explains more."""
    kept = list(kept)
    rounds = min(2 * len(kept) + 10, MOST_WORK // (len(kept) * evidence.size))
    for _ in range(rounds):
        gains = exchange_gains(evidence, kept)
        best = int(gains.argmax())
        out, unit = divmod(best, evidence.size)
        if not float(gains[out, unit]) > SMALLEST_GAIN * gain(evidence, kept):
            break
        kept[out] = unit
    return sorted(kept)


def exchange_gains(evidence: SelectionEvidence, kept: list[int]) -> Tensor:
    """Return what each exchange (n_kept, n_units) of a unit that is kept for one that is not would explain."""
    spread, needs = evidence.spread, evidence.needs
    rows = spread[:, kept]
    inverse = torch.linalg.inv(rows[:, :, kept])
    weights = needs[:, :, kept] @ inverse
    shares = inverse @ rows
    unexplained = needs - weights @ rows
    variance = spread.diagonal(dim1=1, dim2=2) - (shares * rows).sum(1)
    diagonal = inverse.diagonal(dim1=1, dim2=2)[:, :, None]
    own = (weights**2).sum(1)[:, :, None]
    ratio = shares / diagonal
    added = (unexplained**2).sum(1)[:, None] + 2 * (weights.mT @ unexplained) * ratio + own * ratio**2
    gains: Tensor = (added / (variance[:, None] + shares * ratio) - own / diagonal).sum(0)
    gains[:, kept] = -torch.inf
    return gains
