"""`view` and its relatives: both shapes are cut at each other's boundaries, axes split there, the pieces merged.

Heads, dims of heads, groups of queries, groups of convolutions, channel shuffles and rotary pairs all come out of this
one rule: (batch, 12) seen as (batch, 3, 4) has three units times four.
"""

import math
from collections.abc import Sequence
from itertools import pairwise

from topiarist.tracing.operation import Operation, rule_for
from topiarist.tracing.remedies import KEPT_AXIS, SIZES
from topiarist.tracing.vectors import Axes

MOST_POSITIONS = 2**22  # of a tensor whose axes do not fit each other's boundaries: it is followed position by position
Dimensions = list[int | None]


@rule_for("view", "_unsafe_view", "reshape", "_reshape_alias", "reshape_copy", "view_copy")
def view(operation: Operation) -> None:
    """Let units follow a change of shape."""
    taken, given = operation.inputs[0], operation.outputs[0]
    axes, origin = operation.axes(taken), operation.tracer.origin(taken)
    if taken.numel() == 0:
        operation.give([None] * given.ndim)
        return
    if all(vector is None for vector in axes):
        operation.give([None] * given.ndim)
        return
    before, after = list(taken.shape), list(given.shape)
    ends_before, ends_after = _boundaries(before), _boundaries(after)
    cuts = sorted({*ends_before, *ends_after}, reverse=True)
    if any(larger % smaller for larger, smaller in pairwise(cuts)):
        operation.give(_by_position(operation, axes, before, after))
        return
    pieces: Axes = [None] * (len(cuts) - 1)
    held: Dimensions = [None] * (len(cuts) - 1)
    for place, vector in enumerate(axes):
        first, last = cuts.index(ends_before[place]), cuts.index(ends_before[place + 1])
        if first < last:
            sizes = [cuts[number] // cuts[number + 1] for number in range(first, last)]
            pieces[first:last] = operation.split(vector, sizes)
            held[first:last] = [origin.dimensions[place] if origin is not None else None] * (last - first)
    result, dimensions = [], []
    for place in range(given.ndim):
        first, last = cuts.index(ends_after[place]), cuts.index(ends_after[place + 1])
        sizes = [cuts[number] // cuts[number + 1] for number in range(first, last)]
        own = pieces[first:last]
        result.append(own[0] if len(own) == 1 else operation.labels.merge(own, sizes) if own else None)
        dimensions.append(held[first] if first < last and len(set(held[first:last])) == 1 else None)
    _keep_single(operation, axes, before, result, after)
    operation.give(result)
    if origin is not None:
        operation.tracer.set_origin(given, type(origin)(origin.name, tuple(dimensions)))


def _boundaries(shape: Sequence[int]) -> list[int]:
    """Return how many elements lie behind the beginning of each axis, and 1 behind the last."""
    return [math.prod(shape[place:]) for place in range(len(shape) + 1)]


def _by_position(operation: Operation, axes: Axes, before: list[int], after: list[int]) -> Axes:
    """Follow a change of shape whose boundaries do not fit, all axes merged into one and split again."""
    if math.prod(before) > MOST_POSITIONS:
        for vector in axes:
            operation.fix(vector, "a view parts them in an uneven way", SIZES)
        return [None] * len(after)
    return operation.split(operation.labels.merge(axes, before), after)


def _keep_single(operation: Operation, axes: Axes, before: list[int], result: Axes, after: list[int]) -> None:
    """Let axes of one position keep their unit where it is clear which they become; fix it otherwise."""
    single = [vector for vector, size in zip(axes, before, strict=True) if size == 1 and vector is not None]
    if not single:
        return
    old = [place for place, size in enumerate(before) if size == 1]
    new = [place for place, size in enumerate(after) if size == 1]
    ends_before, ends_after = _boundaries(before), _boundaries(after)
    for place in old:
        vector = axes[place]
        if vector is None:
            continue
        same = [other for other in new if ends_after[other] == ends_before[place]]
        rivals = [other for other in old if ends_before[other] == ends_before[place]]
        if len(same) == len(rivals):
            result[same[rivals.index(place)]] = vector
        elif len(same) > len(rivals) == 1:
            result[same[0]] = vector
        else:
            operation.fix(vector, "its axis disappears", KEPT_AXIS)
