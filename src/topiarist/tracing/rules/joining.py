"""Operations that take tensors apart, put them together and repeat them."""

import numpy
from torch import Tensor

from topiarist.tracing.operation import Operation, rule_for
from topiarist.tracing.remedies import ONE
from topiarist.tracing.rules.movement import keep_origin
from topiarist.tracing.vectors import Axes, Vector


@rule_for(
    *[
        "split",
        "split_with_sizes",
        "unsafe_split",
        "unsafe_split_with_sizes",
        "chunk",
        "unsafe_chunk",
        "split_copy",
        "split_with_sizes_copy",
    ]
)
def split(operation: Operation) -> None:
    """Cut an axis into pieces; pieces of one size must stay so, and their units go together place by place."""
    axes = list(operation.axes(operation.inputs[0]))
    place = operation.arguments.get("dim", 0) % len(axes)
    vector, start = axes[place], 0
    pieces = []
    for given in operation.outputs:
        size = given.shape[place]
        own = None if vector is None else vector[start : start + size]
        operation.give([*axes[:place], own, *axes[place + 1 :]], given)
        pieces.append(own)
        start += size
    keep_origin(operation, range(len(axes)))
    by_count = "with_sizes" not in operation.name
    if by_count and vector is not None and len({len(piece) for piece in pieces if piece is not None}) == 1:
        for piece in pieces[1:]:
            operation.tie(pieces[0], piece)


@rule_for("cat", "concat", "concatenate")
def concatenate(operation: Operation) -> None:
    """List the units of tensors one after the other along one axis, and tie them along the others."""
    given = operation.outputs[0]
    tensors = [tensor for tensor in operation.inputs if tensor.numel() or tensor.ndim > 1]
    place = operation.arguments.get("dim", 0) % max(given.ndim, 1)
    result: Axes = []
    for axis in range(given.ndim):
        vectors = [operation.axes(tensor)[axis] for tensor in tensors]
        if axis == place:
            result.append(_listed(operation, tensors, vectors, axis))
        else:
            result.append(_tied(operation, vectors))
    operation.give(result)
    _join_origin(operation)


def _listed(operation: Operation, tensors: list[Tensor], vectors: Axes, axis: int) -> Vector | None:
    """List units one after the other; those of tensors without any are fixed ones, beside the others."""
    if all(vector is None for vector in vectors):
        return None
    known = [
        operation.source_units(tensor, tensor.shape[axis]) if vector is None else vector
        for tensor, vector in zip(tensors, vectors, strict=True)
    ]
    return operation.labels.joined(known)


@rule_for("stack")
def stack(operation: Operation) -> None:
    """Put tensors on a new axis; what stands at the same place in each is one unit."""
    count = operation.outputs[0].ndim
    place = operation.arguments.get("dim", 0) % count
    result = [
        _tied(operation, [operation.axes(tensor)[axis] for tensor in operation.inputs]) for axis in range(count - 1)
    ]
    operation.give([*result[:place], None, *result[place:]])


def _join_origin(operation: Operation) -> None:
    """Let parameters that are joined count as the first of them."""
    origins = [operation.tracer.origin(tensor) for tensor in operation.inputs]
    if origins and all(origin is not None for origin in origins):
        operation.tracer.set_origin(operation.outputs[0], origins[0])


def _tied(operation: Operation, vectors: Axes) -> Vector | None:
    for vector in vectors[1:]:
        operation.tie(vectors[0], vector)
    return None if any(vector is None for vector in vectors) else vectors[0]


@rule_for("expand", "expand_copy", "broadcast_to")
def expand(operation: Operation) -> None:
    """Repeat what has one position along an axis: the copies are units of their own, as queries per key are."""
    taken, given = operation.inputs[0], operation.outputs[0]
    axes, new = operation.axes(taken), given.ndim - taken.ndim
    result: Axes = []
    for place in range(given.ndim):
        own = axes[place - new] if place >= new else None
        if place >= new and taken.shape[place - new] == given.shape[place]:
            result.append(own)
        else:
            operation.fix(own, "one unit is spread over many", ONE)
            result.append(operation.labels.create(given.shape[place]))
    operation.give(result)
    keep_origin(operation, [None] * new + list(range(taken.ndim)))


@rule_for("repeat", "tile")
def repeat(operation: Operation) -> None:
    """Repeat a whole axis: copies of a unit stay that unit; where it has one position, they are units of their own."""
    taken, given = operation.inputs[0], operation.outputs[0]
    axes, new = operation.axes(taken), given.ndim - taken.ndim
    result: Axes = []
    for place in range(given.ndim):
        size = taken.shape[place - new] if place >= new else 1
        own = axes[place - new] if place >= new else None
        times = given.shape[place] // size if size else 1
        if size == 1 and times > 1:
            operation.fix(own, "one unit is spread over many", ONE)
            result.append(operation.labels.create(times))
        else:
            result.append(None if own is None else numpy.tile(own, (times, 1)))
    operation.give(result)
    keep_origin(operation, [None] * new + list(range(taken.ndim)))
