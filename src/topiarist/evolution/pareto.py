"""Points with several costs, all minimised: the Pareto front, its knee, its hypervolume; ranks and crowding.

A point dominates another if no cost of it is higher and one is lower. Costs are arrays (n_points, n_costs).
"""

import numpy
from numpy.typing import ArrayLike, NDArray

from topiarist.errors import SettingsError
from topiarist.statistics.samples import Floats, finite_array

EQUALLY_FAR = 1e-12  # scaled costs lie in [0, 1]: this is rounding
Flags = NDArray[numpy.bool_]
Integers = NDArray[numpy.intp]


def non_dominated(costs: ArrayLike) -> Flags:
    """Return a mask (n_points,) of the points that no other dominates; equal points stand or fall together.

    Parameters
    ----------
    costs
        (n_points, n_costs), finite; `SettingsError` otherwise.

    Examples
    --------
    >>> non_dominated([[1, 3], [2, 2], [3, 3]]).tolist()
    [True, True, False]
    """
    points, copies = numpy.unique(_checked(costs), axis=0, return_inverse=True)
    mask = numpy.zeros(len(points), dtype=numpy.bool_)
    left, columns = numpy.arange(len(points)), numpy.ascontiguousarray(points.T)
    while len(left):  # in lexical order, no point dominates an earlier one
        mask[left[0]] = True
        lower = (columns[:, 1:] < columns[:, :1]).any(axis=0)
        left, columns = left[1:][lower], columns[:, 1:][:, lower]
    of_all: Flags = mask[copies.reshape(-1)]
    return of_all


def knee(costs: ArrayLike) -> int:
    """Return the index of the front point farthest below the plane through the extremes, (1 − Σ x_j) / √m.

    The x_j are the costs scaled such that the front lies in [0, 1]; the extremes have one cost at 1 and the others at
    0: with two costs, the ends of the front. Of points equally far, that with the lower first cost is taken, then the
    lower second and so on; of equal points, the first.

    Parameters
    ----------
    costs
        (n_points, n_costs), finite, one point or more; `SettingsError` otherwise.

    Examples
    --------
    >>> knee([[1, 9], [2, 3], [9, 1]])
    1
    """
    array = _checked(costs)
    if not len(array):
        raise SettingsError("costs must hold a point to have a knee; found none")
    indices = numpy.flatnonzero(non_dominated(array))
    front = array[indices]
    lowest, extent = front.min(axis=0), numpy.ptp(front, axis=0)
    sums = ((front - lowest) / numpy.where(extent > 0, extent, 1.0)).sum(axis=1)
    nearest = numpy.flatnonzero(sums <= sums.min() + EQUALLY_FAR)
    first = numpy.lexsort(front[nearest].T[::-1])[0]
    return int(indices[nearest[first]])


def hypervolume(costs: ArrayLike, reference: ArrayLike) -> float:
    """Return the volume that the points dominate within the reference; points that do not lie below it add nothing.

    Parameters
    ----------
    costs, reference
        (n_points, n_costs) and (n_costs,), finite; `SettingsError` otherwise.

    Examples
    --------
    >>> hypervolume([[1, 3], [2, 2], [3, 1]], [4, 4])
    6.0
    """
    corner = finite_array(reference, "reference")
    array = _checked(costs)
    if corner.shape != array.shape[1:]:
        raise SettingsError(f"reference must hold {array.shape[1]} costs; found shape {corner.shape}")
    return _volume(array[(array < corner).all(axis=1)], corner)


def _volume(points: Floats, corner: Floats) -> float:
    """Return the volume between points and corner: slices along the last cost, each a volume of one cost less.

    A slice lasts from one point to the next, and is dominated by the points so far.
    """
    if not len(points):
        return 0.0
    if len(corner) == 1:
        return float(corner[0] - points.min())
    if len(corner) == 2:  # by a sweep along the first cost
        points = points[numpy.argsort(points[:, 0], kind="stable")]
        lowest = numpy.minimum.accumulate(numpy.append(corner[1], points[:, 1]))
        return float(((corner[0] - points[:, 0]) * -numpy.diff(lowest)).sum())
    points = points[non_dominated(points)]
    points = points[numpy.argsort(points[:, -1], kind="stable")]
    thickness = numpy.diff(points[:, -1], append=corner[-1])
    slices = numpy.flatnonzero(thickness > 0)
    return sum(float(thickness[end]) * _volume(points[: end + 1, :-1], corner[:-1]) for end in slices.tolist())


def dominates(costs: Floats) -> Flags:
    """Return a table (n_points, n_points): [i, j] is whether i has no higher cost than j, and one that is lower."""
    columns = numpy.ascontiguousarray(costs.T)
    no_higher = numpy.ones((len(costs), len(costs)), dtype=numpy.bool_)
    for column in columns:
        no_higher &= column[:, None] <= column
    # i and j with no higher cost than each other are equal
    table: Flags = no_higher & ~no_higher.T
    return table


def ranks(costs: ArrayLike) -> Integers:
    """Return the rank (n_points,) of each point: how many fronts must be taken away before it is on the front."""
    table = dominates(_checked(costs))
    found = numpy.full(len(table), -1, dtype=numpy.intp)
    dominators = table.sum(axis=0, dtype=numpy.intp)
    rank = 0
    while (front := numpy.flatnonzero(dominators == 0)).size:
        found[front] = rank
        dominators -= table[front].sum(axis=0, dtype=numpy.intp)
        dominators[front] = -1
        rank += 1
    return found


def crowding(costs: ArrayLike, rank_of: ArrayLike) -> Floats:
    """Return for each point (n_points,) how far its neighbours of the same rank are apart: the mean over costs.

    Along each cost, distances are shares of the extent of the rank; its ends, and ranks of one or two points, are at
    infinity. A cost that does not vary within a rank counts for nothing there (Deb et al., 2002).
    """
    points, of_rank = _checked(costs), numpy.asarray(rank_of, dtype=numpy.intp)
    distances = numpy.zeros(len(points))
    if not len(points):
        return distances
    for column in points.T:
        order = numpy.lexsort((column, of_rank))
        values, groups = column[order], of_rank[order]
        starts = numpy.flatnonzero(numpy.diff(groups, prepend=-1))
        ends = numpy.append(starts[1:], len(order)) - 1
        lengths = ends - starts + 1
        extents = numpy.repeat(values[ends] - values[starts], lengths)
        gaps = numpy.full(len(order), numpy.inf)
        gaps[1:-1] = values[2:] - values[:-2]
        gaps[starts] = gaps[ends] = numpy.inf
        shares = numpy.where(extents > 0, gaps / numpy.where(extents > 0, extents, 1.0), 0.0)
        shares[numpy.repeat(lengths <= 2, lengths)] = numpy.inf
        distances[order] += shares
    distances /= points.shape[1]
    return distances


def _checked(costs: ArrayLike) -> Floats:
    """Return costs (n_points, n_costs) with at least one cost."""
    array = finite_array(costs, "costs")
    if array.ndim != 2 or not array.shape[1]:
        raise SettingsError(f"costs must be points by costs; found shape {array.shape}")
    return array
