"""Ranks and crowding of points with several costs, all minimised, as NSGA-II has them (Deb et al., 2002).

Costs are arrays (n_points, n_costs). Rank 0 is the front of all points, rank 1 that of the rest, and so on.
"""

import numpy
from numpy.typing import ArrayLike, NDArray

from topiarist.evolution.pareto import Floats, checked

Integers = NDArray[numpy.intp]
Flags = NDArray[numpy.bool_]


def dominates(costs: Floats) -> Flags:
    """Give a table (n_points, n_points): [i, j] says whether i has no higher cost than j, and one that is lower."""
    columns = numpy.ascontiguousarray(costs.T)
    no_higher = numpy.ones((len(costs), len(costs)), dtype=numpy.bool_)
    for column in columns:
        no_higher &= column[:, None] <= column
    # i and j with no higher cost than each other are equal
    table: Flags = no_higher & ~no_higher.T
    return table


def ranks(costs: ArrayLike) -> Integers:
    """Give the rank (n_points,) of each point: how many fronts must be taken away before it is on the front."""
    table = dominates(checked(costs))
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
    """Give for each point (n_points,) how far its neighbours of the same rank are apart: the mean over costs.

    Along each cost, distances are shares of the extent of the rank; its ends, and ranks of one or two points, are at
    infinity. A cost that does not vary within a rank counts for nothing there.
    """
    points, of_rank = checked(costs), numpy.asarray(rank_of, dtype=numpy.intp)
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
