"""Which units of a space to keep, so that ridge least squares loses least of what the readers of the space need.

With S the covariance of the activations and Y the covariance of what a reader needs with them, keeping the units K
explains gain(K) = tr(Y_K (S_KK + λI)⁻¹ Y_Kᵀ) of the reader's variance; the gains of several readers are added.
Elimination (as in optimal brain surgery, Hassibi and Stork, 1993) and matching (orthogonal matching pursuit) are
greedy; exchanging one unit for another mends what both overlook. A unit may have several features, as a head has dims
and a flattened channel has positions: then they come and go together.
"""

from dataclasses import dataclass
from itertools import islice
from typing import Literal, get_args

import torch
from torch import Tensor

from topiarist.errors import SettingsError
from topiarist.surgery.choice.deflation import Deflation
from topiarist.surgery.choice.single_units import take_greedily
from topiarist.surgery.refit.moments import RIDGE

SMALLEST_GAIN = 1e-7  # as a share of what is explained: less is rounding
MOST_WORK = 2**22  # pairs over all rounds: among many units, exchanges cost much and mend little
MANY_UNITS = 512  # from which on matrices are updated in blocks
Strategy = Literal["best", "elimination", "matching"]


@dataclass(frozen=True)
class SelectionEvidence:
    """What is known of the units of a space, one matrix per reader.

    `spread` (n_readers, n_features, n_features) is the covariance of the activations, damped; `needs` (n_readers,
    n_targets, n_features) that of what the reader needs with the activations; `total` the variance of what all readers
    need, 1 for each as a share. Unit u has `each` features, from u · each on.
    """

    spread: Tensor
    needs: Tensor
    total: float
    each: int = 1
    rank: int | None = None  # of the spread without its damping, where it is known to be low

    @property
    def size(self) -> int:
        """Return the number of units."""
        return self.spread.shape[-1] // self.each

    @property
    def is_low(self) -> bool:
        """Return whether few units tell all that is known of many."""
        return self.rank is not None and self.each == 1 and MANY_UNITS < self.size > 2 * self.rank

    def features(self, units: list[int]) -> list[int]:
        """Return the numbers of the features of units."""
        return [unit * self.each + number for unit in units for number in range(self.each)]


def damped(spread: Tensor, ridge: float = RIDGE) -> Tensor:
    """Add to covariances (…, n, n) a ridge in proportion to the mean variance."""
    scale = spread.diagonal(dim1=-2, dim2=-1).mean(-1).clamp_min(torch.finfo(spread.dtype).eps)
    return spread + (ridge * scale)[..., None, None] * torch.eye(
        spread.shape[-1], dtype=spread.dtype, device=spread.device
    )


def select(evidence: SelectionEvidence, count: int, strategy: Strategy = "best") -> list[int]:
    """Return the units to keep, in order."""
    if strategy not in get_args(Strategy):
        raise SettingsError(f"strategy must be one of {', '.join(get_args(Strategy))}; found {strategy!r}")
    if count >= evidence.size:
        return list(range(evidence.size))
    if evidence.is_low and strategy != "elimination":
        return match_few(evidence, count)[0]
    if strategy == "elimination":
        return eliminate(evidence, count)[0]
    if strategy == "matching":
        return match(evidence, count)
    starts = eliminate(evidence, count)[0], match(evidence, count)
    return max((exchange(evidence, kept) for kept in starts), key=lambda kept: gain(evidence, kept))


def gain(evidence: SelectionEvidence, kept: list[int]) -> float:
    """Return how much of what the readers need is explained by some units."""
    features = evidence.features(kept)
    needs = evidence.needs[:, :, features]
    return float((needs * torch.linalg.solve(evidence.spread[:, features][:, :, features], needs.mT).mT).sum())


def eliminate(evidence: SelectionEvidence, count: int) -> tuple[list[int], Tensor]:
    """Remove the unit that is missed least, until `count` are left; also return what was lost with so many left."""
    size = evidence.size
    inverse = _inverse(evidence.spread)
    weights = evidence.needs @ inverse
    left = torch.ones(size, dtype=torch.bool)
    lost = torch.zeros(size + 1, dtype=inverse.dtype)
    if evidence.each == 1 and size <= MANY_UNITS:
        taken = list(islice(take_greedily(weights, inverse, torch.finfo(inverse.dtype).tiny, "least"), size - count))
        costs = torch.tensor([cost for _, cost in taken], dtype=inverse.dtype)
        lost[count:size] = costs.cumsum(0).flip(0)
        return sorted(set(range(size)) - {unit for unit, _ in taken}), lost
    if evidence.each == 1:
        deflation = Deflation(weights.mT @ weights, inverse, torch.finfo(inverse.dtype).tiny)
        for remaining in range(size - 1, count - 1, -1):
            unit, cost = deflation.take(lambda worth, inside: worth.masked_fill(~inside, torch.inf).argmin())
            lost[remaining] = lost[remaining + 1] + cost
            left[unit] = False
        return left.nonzero().flatten().tolist(), lost
    for remaining in range(size - 1, count - 1, -1):
        costs = _explained(weights, inverse, left, torch.finfo(inverse.dtype).tiny)
        unit = int(costs.masked_fill(~left, torch.inf).argmin())
        lost[remaining] = lost[remaining + 1] + costs[unit]
        left[unit] = False
        _deflate(weights, inverse, unit, evidence.each, torch.finfo(inverse.dtype).tiny)
    return left.nonzero().flatten().tolist(), lost


def match_few(evidence: SelectionEvidence, count: int) -> tuple[list[int], list[float]]:
    """Match until all that a few samples tell is explained, then take the units that mattered most at first.

    Also return what each unit explained when it was taken.
    """
    floor = torch.finfo(evidence.spread.dtype).eps * float(evidence.spread.diagonal(dim1=1, dim2=2).mean())
    deflation = Deflation(evidence.needs.mT @ evidence.needs, evidence.spread, floor)
    first = (deflation.worth_above / deflation.worth_below.clamp_min(floor)).sum(0)
    taken: list[int] = []
    gains = [0.0]
    while len(taken) < min(count, evidence.rank or 0) and gains[-1] >= SMALLEST_GAIN * sum(gains):
        unit, worth = deflation.take(lambda worth, inside: worth.masked_fill(~inside, -torch.inf).argmax())
        taken.append(unit)
        gains.append(worth)
    first[taken] = -torch.inf
    return sorted([*taken, *first.topk(count - len(taken)).indices.tolist()]), gains[1:]


def losses(evidence: SelectionEvidence) -> list[float]:
    """Return what is lost with so many units left, from none to all."""
    if not evidence.is_low:
        return eliminate(evidence, 0)[1].tolist()
    gains = match_few(evidence, evidence.size)[1]
    left = [sum(gains[number:]) for number in range(len(gains))]
    return [*left, *[0.0] * (evidence.size + 1 - len(left))]


def _inverse(spread: Tensor) -> Tensor:
    """Return the inverse of covariances, by the cheaper way where rounding allows it."""
    factor, failed = torch.linalg.cholesky_ex(spread)
    return torch.linalg.inv(spread) if bool(failed.any()) else torch.cholesky_inverse(factor)


def match(evidence: SelectionEvidence, count: int) -> list[int]:
    """Add the unit that explains most of what is still needed, until there are `count`."""
    floor = torch.finfo(evidence.spread.dtype).eps * float(evidence.spread.diagonal(dim1=1, dim2=2).mean())
    left = torch.ones(evidence.size, dtype=torch.bool)
    if evidence.each == 1 and evidence.size <= MANY_UNITS:
        found = take_greedily(evidence.needs, evidence.spread, floor, "most")
        return sorted(unit for unit, _ in islice(found, count))
    if evidence.each == 1:
        deflation = Deflation(evidence.needs.mT @ evidence.needs, evidence.spread, floor)
        taken = (
            deflation.take(lambda worth, inside: worth.masked_fill(~inside, -torch.inf).argmax()) for _ in range(count)
        )
        return sorted(unit for unit, _ in taken)
    spread, needs = evidence.spread.clone(), evidence.needs.clone()
    for _ in range(count):
        gains = _explained(needs, spread, left, floor)
        unit = int(gains.masked_fill(~left, -torch.inf).argmax())
        left[unit] = False
        _deflate(needs, spread, unit, evidence.each, floor)
    return (~left).nonzero().flatten().tolist()


def _explained(needs: Tensor, spread: Tensor, left: Tensor, floor: float) -> Tensor:
    """Return tr(N_u S_uu⁻¹ N_uᵀ) for each unit u (n_units,), summed over readers; only those that are left count."""
    size = len(left)
    each = spread.shape[-1] // size
    blocks = spread.reshape(-1, size, each, size, each).diagonal(dim1=1, dim2=3).movedim(-1, 1)
    damping = torch.eye(each, dtype=spread.dtype) * torch.where(left, floor, 1.0)[None, :, None, None]
    wanted = needs.reshape(len(needs), -1, size, each).permute(0, 2, 3, 1)  # (n_readers, n_units, each, n_targets)
    together: Tensor = (torch.linalg.solve(blocks + damping, wanted) * wanted).sum((0, 2, 3))
    return together


def _deflate(needs: Tensor, spread: Tensor, unit: int, each: int, floor: float) -> None:
    """Take what a unit explains out of all that is there, in place: N − N_u S_uu⁻¹ S_u·, and S the same way."""
    own = slice(unit * each, (unit + 1) * each)
    rows, damping = spread[:, own].clone(), floor * torch.eye(each, dtype=spread.dtype)
    share = torch.linalg.solve(rows[:, :, own] + damping, rows)
    needs.baddbmm_(needs[:, :, own].clone(), share, alpha=-1)
    spread.baddbmm_(spread[:, :, own].clone(), share, alpha=-1)


def exchange(evidence: SelectionEvidence, kept: list[int]) -> list[int]:
    """Exchange one unit for another, the best pair first, as long as that explains more; of units with one feature."""
    kept = list(kept)
    if evidence.each > 1:
        return kept
    rounds, explained = min(2 * len(kept) + 10, MOST_WORK // (len(kept) * evidence.size)), gain(evidence, kept)
    for _ in range(rounds):
        gains = exchange_gains(evidence, kept)
        best = int(gains.argmax())
        out, unit = divmod(best, evidence.size)
        gained = float(gains[out, unit])
        if not gained > SMALLEST_GAIN * explained:
            break
        kept[out], explained = unit, explained + gained
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
