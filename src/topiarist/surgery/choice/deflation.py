"""Greedy choice among many units: what each is worth is known at every step, matrices are updated in blocks.

With N what readers need and S a matrix of the units, a unit u is worth |N_u|² / S_uu, summed over readers. Taking it

    S ← S − s sᵀ / s_u,    N ← N − N_u rᵀ,    with s = S_u and r = s / s_u,

out touches all of S and N at every step, though only diagonals and one column of the result are needed next. N itself
is never needed, only P = NᵀN, which becomes P − r qᵀ − q rᵀ with q = P_u − (P_uu / 2) r. So the vectors s, r and q are
kept, columns that are asked for are made up from them, and S and P follow in blocks, by products of matrices.
"""

from collections.abc import Callable

import torch
from torch import Tensor

BLOCK = 96  # steps between two products of matrices
WORTH_LEAVING = 0.8  # of the units are left when matrices are copied without the others


class Deflation:
    """Units with one feature each, of which one after the other is taken out.

    `products` and `spread` (n_readers, n_units, n_units) are P and S; `floor` is the least that S_uu counts as.
    """

    def __init__(self, products: Tensor, spread: Tensor, floor: float) -> None:
        self.products, self.spread, self.floor = products.clone(), spread.clone(), floor
        self.units = torch.arange(spread.shape[-1])  # those that are left, or were at the last product
        self.inside = torch.ones(len(self.units), dtype=torch.bool)
        self._refresh()

    def _refresh(self) -> None:
        self.worth_above = self.products.diagonal(dim1=1, dim2=2).clone()
        self.worth_below = self.spread.diagonal(dim1=1, dim2=2).clone()
        shape = (len(self.spread), len(self.units), BLOCK)
        self._roots, self._ratios, self._rests = (self.spread.new_zeros(shape) for _ in range(3))
        self._count = 0

    def take(self, pick: Callable[[Tensor, Tensor], Tensor]) -> tuple[int, float]:
        """Take out the unit that `pick` names, from what each is worth and which are left; return it and its worth."""
        worth = (self.worth_above.clamp_min(0) / self.worth_below.clamp_min(self.floor)).sum(0)
        place = int(pick(worth, self.inside))
        unit, lost = int(self.units[place]), float(worth[place])
        self._deflate(place)
        self.inside[place] = False
        if self._count == BLOCK:
            self._follow()
        return unit, lost

    def _deflate(self, place: int) -> None:
        roots, ratios, rests = (each[:, :, : self._count] for each in (self._roots, self._ratios, self._rests))
        column = self.spread[:, :, place] - (roots @ roots[:, place, :, None]).squeeze(-1)
        above = self.products[:, :, place] - (ratios @ rests[:, place, :, None]).squeeze(-1)
        above -= (rests @ ratios[:, place, :, None]).squeeze(-1)
        own = self.worth_below[:, place, None].clamp_min(self.floor)
        ratio = column / own
        rest = above - above[:, place, None] / 2 * ratio
        self.worth_below -= column * ratio
        self.worth_above -= 2 * ratio * rest
        self._roots[:, :, self._count] = column / own.sqrt()
        self._ratios[:, :, self._count] = ratio
        self._rests[:, :, self._count] = rest
        self._count += 1

    def _follow(self) -> None:
        """Let the matrices follow, and leave out units that are gone where there are enough of them to pay for it."""
        self.spread.baddbmm_(self._roots, self._roots.mT, alpha=-1)
        self.products.baddbmm_(self._ratios, self._rests.mT, alpha=-1)
        self.products.baddbmm_(self._rests, self._ratios.mT, alpha=-1)
        left = self.inside.nonzero().flatten()
        if len(left) < WORTH_LEAVING * len(self.units):
            self.spread, self.products = (
                each.index_select(1, left).index_select(2, left) for each in (self.spread, self.products)
            )
            self.units, self.inside = self.units[left], self.inside[left]
        self._refresh()
