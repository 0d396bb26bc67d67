"""Losses of many steps, summed as they come."""

import torch
from torch import Tensor

from topiarist.devices import exact_device


class LossSums:
    """Sums, in double precision, of the weighted losses (n_members, n_samples) and the weights (n_members, 1) of steps.

    A list of them would do the same, but thousands of small tensors between large ones that come and go keep the memory
    of these from being used again: an epoch of 400 MB of pixels took 300 MB more.

    Examples
    --------
    >>> sums = LossSums()
    >>> sums.add(torch.tensor([[1.0, 2.0]]), torch.tensor([[2.0]]))
    >>> sums.add(torch.tensor([[6.0]]), torch.tensor([[1.0]]))
    >>> sums.means()
    [3.0]
    """

    def __init__(self) -> None:
        self.losses, self.weights = torch.zeros(1, 0, dtype=torch.float64), torch.zeros(1, 1, dtype=torch.float64)
        self.last, self.times = self.weights, 0  # weights that came again and again, and how often

    def add(self, losses: Tensor, weights: Tensor) -> None:
        """Add what one step returned; column after column, which is fewer operations than a sum of each step."""
        width, place = losses.shape[1], exact_device(losses.device)
        if width > self.losses.shape[1]:
            wider = torch.zeros(losses.shape, dtype=torch.float64, device=place)
            wider[:, : self.losses.shape[1]] = self.losses
            self.losses, self.weights = wider, self.weights.to(place).expand(len(losses), 1).clone()
        # Numbers of another type are converted as they are added; those of another device are brought here before.
        given = losses if losses.device == place else losses.to(place)
        (self.losses if width == self.losses.shape[1] else self.losses[:, :width]).add_(given)
        if weights is not self.last:
            self._add_weights()
            self.last = weights
        self.times += 1

    def _add_weights(self) -> None:
        if self.times:
            self.weights = self.weights + self.times * self.last.to(self.weights)
        self.times = 0

    def means(self) -> list[float]:
        """Return the mean loss of each member: NaN where there was nothing."""
        self._add_weights()
        found: list[float] = (self.losses.sum(dim=1) / self.weights[:, 0]).tolist()
        return found
