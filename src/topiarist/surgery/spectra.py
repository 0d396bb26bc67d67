"""Singular values: how many directions a layer's weights, or the activations of a space, really have."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy
import torch
from torch import Tensor

from topiarist.errors import SettingsError
from topiarist.surgery.activity import Activity

RELATIVE_FLOOR, ABSOLUTE_FLOOR = 0.005, 0.3  # ε₁ and ε₂ of the paper


@dataclass(frozen=True)
class Spectrum:
    """Singular values, the largest first, and the effective rank that they give."""

    singular_values: tuple[float, ...]
    effective_rank: float


def weight_spectrum(weight: Tensor) -> Spectrum:
    """Give the spectrum of a kernel (n_units, …) as a matrix (n_units, n_inputs · kernel)."""
    return spectrum_of(torch.linalg.svdvals(weight.detach().flatten(1).to("cpu", torch.float64)).tolist())


def activity_spectrum(activity: Activity) -> Spectrum:
    """Give the spectrum of activations (n_rows, n_units) divided by √n_rows, so that samples do not count.

    The activations are those that a refit can use: about their means, or about zero where no constant can move. They
    are known by second moments, so that values below 1e-8 of the largest mean nothing.
    """
    squares = numpy.linalg.eigvalsh(activity.varied)[::-1]
    return spectrum_of(numpy.sqrt(squares.clip(min=0)).tolist())


def spectrum_of(values: Sequence[float]) -> Spectrum:
    """Give singular values with their effective rank."""
    return Spectrum(tuple(values), effective_rank(values))


def effective_rank(values: Sequence[float]) -> float:
    """Give exp(−Σ p ln p) with p = σ / Σσ (Roy and Vetterli, The effective rank, 2007); 0 where all σ are 0.

    It is n for n equal values, and 1 where one value alone is not 0.
    """
    total = math.fsum(values)
    shares = [value / total for value in values if value > 0]
    return math.exp(-math.fsum(share * math.log(share) for share in shares if share > 0)) if shares else 0.0


def smallest_rank(values: Sequence[float], keep: float) -> int:
    """Give the smallest rank, at least 1, that keeps a share of the sum of squares of singular values."""
    if not 0 < keep <= 1:
        raise SettingsError(f"a share to keep must be above 0 and at most 1; found {keep}")
    kept = numpy.cumsum(numpy.square(values))
    return 1 + int(numpy.count_nonzero(kept[:-1] < keep * kept[-1]))


def lost_share(values: Sequence[float], rank: int) -> float:
    """Give the share of the sum of squares of singular values that a rank leaves out."""
    squares = numpy.square(values)
    total = float(squares.sum())
    return float(squares[rank:].sum()) / total if total else 0.0


def count_negligible(
    values: Sequence[float], units: int, *, relative: float = RELATIVE_FLOOR, absolute: float = ABSOLUTE_FLOOR
) -> int:
    """Give n_r of the paper: how many singular values are below ε₁ of the largest, or below ε₂.

    Those that a matrix with fewer columns than units does not have count as 0.
    """
    full = numpy.zeros(units)
    full[: len(values)] = values[:units]
    return int(numpy.count_nonzero((full < relative * full.max(initial=0.0)) | (full < absolute)))
