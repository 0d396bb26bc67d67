"""Friedman's test (1937) with ties and replicates (Mack and Skillings, 1980), and with two factors.

All k·r observations of a block are ranked together; with R_j the sum of the ranks of treatment j and SS_b the sum of
squared deviations of the ranks in block b, Q = Σ (R_j − R̄)² / (r/(kr − 1) · Σ SS_b) is about chi-squared, k − 1 df.
"""

from dataclasses import replace

import numpy
from numpy.typing import ArrayLike
from scipy.stats import chi2, rankdata

from topiarist.errors import SettingsError
from topiarist.statistics.finding import Finding
from topiarist.statistics.power import reach_note
from topiarist.statistics.samples import Floats, finite_array


def friedman(values: ArrayLike) -> Finding:
    """Compare treatments (n_blocks, n_treatments) or (n_blocks, n_treatments, n_replicates).

    The effect, without replicates, is Kendall's W = Q / (n_blocks (k − 1)).
    """
    array = checked(values)
    n_blocks, n_treatments, n_replicates = array.shape
    statistic = chi_squared(array)
    effect = statistic / (n_blocks * (n_treatments - 1)) if n_replicates == 1 else None
    alike = "the values of each block are all equal: there is nothing to test"
    notes = (alike if (numpy.ptp(array, axis=(1, 2)) == 0).all() else None, reach_of(array.shape))
    return Finding(
        "Friedman",
        statistic,
        float(chi2.sf(statistic, n_treatments - 1)),
        effect,
        None if effect is None else "Kendall's W",
        tuple(note for note in notes if note is not None),
    )


def friedman_two_factors(values: ArrayLike) -> tuple[Finding, Finding]:
    """Compare the levels of each of two factors (n_first, n_second, n_runs), with the other's levels as blocks."""
    array = checked(values)
    first, second = friedman(array.swapaxes(0, 1)), friedman(array)
    return replace(first, test="Friedman, first factor"), replace(second, test="Friedman, second factor")


def chi_squared(array: Floats) -> float:
    """Give Q; 0 where all values of each block are tied."""
    n_blocks, n_treatments, n_replicates = array.shape
    ranks = rankdata(array.reshape(n_blocks, -1), axis=1)
    squares = float(((ranks - ranks.mean(axis=1, keepdims=True)) ** 2).sum())
    sums = ranks.reshape(array.shape).sum(axis=(0, 2))
    between = float(((sums - sums.mean()) ** 2).sum())
    return between * (n_treatments * n_replicates - 1) / (n_replicates * squares) if squares else 0.0


def reach_of(shape: tuple[int, ...]) -> str | None:
    """Say where even treatments that are in the same order everywhere, without overlap, would not reach 0.05."""
    n_blocks, n_treatments, n_replicates = shape
    ordered = numpy.broadcast_to(numpy.arange(n_treatments)[:, None] * n_replicates, (n_treatments, n_replicates))
    ordered = numpy.broadcast_to(ordered + numpy.arange(n_replicates), shape)
    smallest = float(chi2.sf(chi_squared(ordered.astype(numpy.float64)), n_treatments - 1))
    runs = f"{n_blocks} block{'s' * (n_blocks > 1)} of {n_treatments} by {n_replicates} runs"
    return reach_note(smallest, 0.05, runs=runs)


def checked(values: ArrayLike) -> Floats:
    """Give values (n_blocks, n_treatments, n_replicates) with something to compare."""
    array = finite_array(values, "values")
    array = array[..., None] if array.ndim == 2 else array
    if array.ndim != 3 or min(array.shape) < 1:
        raise SettingsError(f"values must be blocks by treatments, or by replicates too; found shape {array.shape}")
    if array.shape[1] < 2:
        raise SettingsError(f"values must be of 2 or more treatments; found shape {array.shape}")
    return array
