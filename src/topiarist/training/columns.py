"""Losses of many steps, kept in few large blocks."""

from collections.abc import Iterable

import torch
from torch import Tensor

BLOCK = 2**16  # numbers of a member


class LossColumns:
    """Tensors (n_members, …), one after the other along their second axis.

    A list of them would do the same, but thousands of small tensors between large ones that come and go keep the memory
    of these from being used again: an epoch of 400 MB of pixels took 300 MB more.

    Examples
    --------
    >>> columns = LossColumns()
    >>> columns.add(torch.tensor([[1.0, 2.0]])), columns.add(torch.tensor([[3.0]]))
    (None, None)
    >>> columns.joined()
    tensor([[1., 2., 3.]])
    """

    def __init__(self) -> None:
        self.blocks: list[Tensor] = []
        self.used = 0

    def add(self, column: Tensor) -> None:
        """Copy some more numbers (n_members, n)."""
        wide = column.shape[1]
        if not self.blocks or self.used + wide > self.blocks[-1].shape[1]:
            self._close()
            self.blocks.append(column.new_empty(len(column), max(BLOCK, wide)))
            self.used = 0
        self.blocks[-1][:, self.used : self.used + wide] = column.detach()
        self.used += wide

    def joined(self) -> Tensor:
        """Return all numbers (n_members, n_in_all)."""
        self._close()
        return torch.cat(self.blocks, dim=1)

    def _close(self) -> None:
        if self.blocks:
            self.blocks[-1] = self.blocks[-1][:, : self.used]


def summed_steps(steps: Iterable[tuple[Tensor, Tensor]]) -> tuple[Tensor, Tensor]:
    """Return the sums (n_members,) of the losses (n_members, n_samples) and of the weights that steps come with."""
    losses, weights = LossColumns(), LossColumns()
    for loss, weight in steps:
        losses.add(loss)
        weights.add(weight)
    return losses.joined().double().sum(dim=1), weights.joined().double().sum(dim=1)
