"""The Pareto front of points with several costs, all minimised: who is on it, where it bends, how much it covers.

A point dominates another if no cost of it is higher and one is lower. Costs are arrays (n_points, n_costs).
"""

import numpy
from numpy.typing import ArrayLike, NDArray

from topiarist.errors import SettingsError

EQUALLY_FAR = 1e-12
Floats = NDArray[numpy.float64]


def non_dominated(costs: ArrayLike) -> NDArray[numpy.bool_]:
    """Give a mask (n_points,) of the points that no other dominates; equal points stand or fall together."""
    points, copies = numpy.unique(checked(costs), axis=0, return_inverse=True)
    mask: NDArray[numpy.bool_] = front_of_sorted(points)[copies.reshape(-1)]
    return mask


def front_of_sorted(points: Floats) -> NDArray[numpy.bool_]:
    """Give the mask of the front of distinct points in lexical order: there, none dominates an earlier one."""
    mask = numpy.zeros(len(points), dtype=numpy.bool_)
    left, columns = numpy.arange(len(points)), numpy.ascontiguousarray(points.T)
    while len(left):
        mask[left[0]] = True
        lower = (columns[:, 1:] < columns[:, :1]).any(axis=0)
        left, columns = left[1:][lower], columns[:, 1:][:, lower]
    return mask


def knee(costs: ArrayLike) -> int:
    """Give the index of the front point farthest below the plane through the extremes, (1 − Σ x_j) / √m.

    The x_j are the costs scaled such that the front lies in [0, 1]; the extremes have one cost at 1 and the others at
    0: with two costs, the ends of the front. Of points equally far, that with the lower first cost is taken, then the
    lower second and so on; of equal points, the first.
    """
    array = checked(costs)
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
    """Give the volume that the points dominate within the reference; points that do not lie below it add nothing."""
    corner = finite(reference, "reference")
    array = checked(costs)
    if corner.shape != array.shape[1:]:
        raise SettingsError(f"reference must hold {array.shape[1]} costs; found shape {corner.shape}")
    return volume(array[(array < corner).all(axis=1)], corner)


def volume(points: Floats, corner: Floats) -> float:
    """Give the volume between points and corner: slices along the last cost, each an area, or volume, of one cost less.

    A slice lasts from one point to the next, and is dominated by the points so far.
    """
    if not len(points):
        return 0.0
    if len(corner) == 1:
        return float(corner[0] - points.min())
    if len(corner) == 2:
        return area(points, corner)
    points = points[non_dominated(points)]
    points = points[numpy.argsort(points[:, -1], kind="stable")]
    thickness = numpy.diff(points[:, -1], append=corner[-1])
    slices = numpy.flatnonzero(thickness > 0)
    return sum(float(thickness[end]) * volume(points[: end + 1, :-1], corner[:-1]) for end in slices.tolist())


def area(points: Floats, corner: Floats) -> float:
    """Give the area between points (n, 2) and corner, by a sweep along the first cost."""
    points = points[numpy.argsort(points[:, 0], kind="stable")]
    lowest = numpy.minimum.accumulate(numpy.append(corner[1], points[:, 1]))
    return float(((corner[0] - points[:, 0]) * -numpy.diff(lowest)).sum())


def checked(costs: ArrayLike) -> Floats:
    """Give costs (n_points, n_costs) with at least one cost."""
    array = finite(costs, "costs")
    if array.ndim != 2 or not array.shape[1]:
        raise SettingsError(f"costs must be points by costs; found shape {array.shape}")
    return array


def finite(values: ArrayLike, what: str) -> Floats:
    """Give an array of finite floats."""
    try:
        array = numpy.asarray(values, dtype=numpy.float64)
    except (TypeError, ValueError) as error:
        raise SettingsError(f"{what} must be numbers in even rows") from error
    if not numpy.isfinite(array).all():
        raise SettingsError(f"{what} must be finite; found {array[~numpy.isfinite(array)][0]}")
    return array
