"""Greedy choice among few units with one feature each, in numpy: on matrices this small torch's calls take longer."""

from collections.abc import Iterator
from typing import Literal

import numpy
from numpy.typing import NDArray
from scipy.linalg.blas import dger
from torch import Tensor

Numbers = NDArray[numpy.float64]
WORST: dict[str, float] = {"least": numpy.inf, "most": -numpy.inf}


def take_greedily(
    needs: Tensor, spread: Tensor, floor: float, which: Literal["least", "most"]
) -> Iterator[tuple[int, float]]:
    """Yield one unit after the other, that which is worth least or most, and its worth when it is taken.

    With N what readers need (n_readers, n_targets, n_units) and S a matrix of the units (n_readers, n_units, n_units),
    a unit u is worth |N_u|² / S_uu, summed over readers. Then what it explains is taken out of both:

        N ← N − N_u rᵀ,    S ← S − S_u rᵀ,    with r = S_u / S_uu.
    """
    # A column of N or S lies along memory: `dger` adds a product of two vectors in place to matrices laid out so.
    own = [numpy.array(each, dtype=numpy.float64, order="F") for each in needs.numpy()]
    matrices = [numpy.array(each, dtype=numpy.float64, order="F") for each in spread.numpy()]
    worst, gone = WORST[which], numpy.zeros(spread.shape[-1], dtype=bool)
    while not gone.all():
        worth = sum(_worth(each, matrix, floor) for each, matrix in zip(own, matrices, strict=True))
        assert isinstance(worth, numpy.ndarray)
        worth[gone] = worst
        unit = int(worth.argmin() if which == "least" else worth.argmax())
        yield unit, float(worth[unit])
        gone[unit] = True
        for each, matrix in zip(own, matrices, strict=True):
            column = matrix[:, unit].copy()
            share = column / max(column[unit], floor)
            dger(-1.0, each[:, unit].copy(), share, a=each, overwrite_a=True)
            dger(-1.0, column, share, a=matrix, overwrite_a=True)


def _worth(needs: Numbers, spread: Numbers, floor: float) -> Numbers:
    found: Numbers = numpy.einsum("tu,tu->u", needs, needs) / numpy.maximum(spread.diagonal(), floor)
    return found
