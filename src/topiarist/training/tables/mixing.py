"""More rows for a table than there are: what a teacher answers to them is what its answers between rows are."""

import torch
from torch import Tensor

from topiarist.randomness import generator

NEIGHBOURS = 5  # of which one is drawn
COMPARED = 4_096  # rows that neighbours are looked for among
CHUNK = 1_024  # rows whose distances are in memory at once


def mixed_samples(x: Tensor, count: int, *, seed: int) -> tuple[Tensor, Tensor]:
    """Return new samples (count, n_inputs), and the row of `x` that each began as.

    A row and one of its five nearest neighbours: each input is that of the one or of the other, with even odds. After
    MUNGE (Bucilă, Caruana and Niculescu-Mizil, Model compression, 2006), without its noise, so that the inputs of a
    category or of a mark stay 0 or 1.

    Parameters
    ----------
    x : samples (n_samples, n_inputs), scaled so that inputs can be compared
    count : how many to make
    seed : what rows, neighbours and inputs are drawn by

    Examples
    --------
    >>> new, rows = mixed_samples(torch.eye(4), 6, seed=0)
    >>> new.shape, rows.shape, set(new.flatten().tolist()) <= {0.0, 1.0}
    (torch.Size([6, 4]), torch.Size([6]), True)
    """
    random = generator(seed, "mixed samples")
    rows = torch.randint(len(x), (count,), generator=random)
    among = torch.randperm(len(x), generator=random)[:COMPARED]
    chosen = torch.randint(NEIGHBOURS, (count,), generator=random)
    partners = (
        torch.cat(
            [
                _neighbours(x, some, among, which)
                for some, which in zip(torch.split(rows, CHUNK), torch.split(chosen, CHUNK), strict=True)
            ]
        )
        if count
        else rows
    )
    own = torch.rand(count, x.shape[1], generator=random) < 0.5
    return torch.where(own, x[rows], x[partners]), rows


def _neighbours(x: Tensor, rows: Tensor, among: Tensor, which: Tensor) -> Tensor:
    """Return one of the nearest rows to each, other than itself: the nearest for 0, the next for 1, and so on."""
    distances = torch.cdist(x[rows], x[among])
    distances[rows[:, None] == among[None]] = float("inf")
    nearest = distances.topk(min(NEIGHBOURS, max(len(among) - 1, 1)), largest=False).indices
    return among[nearest.gather(1, (which % nearest.shape[1])[:, None])[:, 0]]
