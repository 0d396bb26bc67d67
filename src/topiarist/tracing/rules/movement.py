"""Operations that move values without changing them: the labels move the same way."""

import math
from typing import Any

import torch
from torch import Tensor

from topiarist.tracing.operation import INPUT, Operation, rule_for
from topiarist.tracing.remedies import KEPT_AXIS, LAYER
from topiarist.tracing.vectors import Axes, Vector

MOST_PROBED = 2**24  # positions of a tensor that is moved in a way of which only an experiment tells


def keep_origin(operation: Operation, dimensions: Any) -> None:
    """Let a tensor that comes out have the origin of the first that went in; `dimensions` are its axes there."""
    origin = operation.tracer.origin(operation.inputs[0])
    if origin is not None:
        kept = tuple(None if place is None else origin.dimensions[place] for place in dimensions)
        for given in operation.outputs:
            if given.ndim == len(kept):
                operation.tracer.set_origin(given, type(origin)(origin.name, kept))


def _reordered(operation: Operation, order: list[int]) -> None:
    axes = operation.axes_before or operation.axes(operation.inputs[0])
    operation.give([axes[place] for place in order])
    keep_origin(operation, order)


@rule_for("permute", "permute_copy")
def permute(operation: Operation) -> None:
    """Reorder axes."""
    count = operation.inputs[0].ndim
    _reordered(operation, [place % count for place in operation.arguments["dims"]])


@rule_for("transpose", "transpose_copy", "swapaxes", "swapdims")
def transpose(operation: Operation) -> None:
    """Exchange two axes."""
    count = operation.inputs[0].ndim
    order = list(range(count))
    if count:
        one, other = operation.arguments["dim0"] % count, operation.arguments["dim1"] % count
        order[one], order[other] = order[other], order[one]
    _reordered(operation, order)


@rule_for("t", "t_copy", "numpy_T")
def turn(operation: Operation) -> None:
    """Reverse the axes."""
    _reordered(operation, list(reversed(range(operation.inputs[0].ndim))))


@rule_for("unsqueeze", "unsqueeze_copy")
def unsqueeze(operation: Operation) -> None:
    """Put in an axis of one position."""
    axes = list(operation.axes_before or operation.axes(operation.inputs[0]))
    place = operation.arguments["dim"] % (len(axes) + 1)
    operation.give([*axes[:place], None, *axes[place:]])
    keep_origin(operation, [*range(place), None, *range(place, len(axes))])


@rule_for("squeeze", "squeeze_copy")
def squeeze(operation: Operation) -> None:
    """Leave out axes of one position; a unit alone on one has to stay."""
    axes = list(operation.axes_before or operation.axes(operation.inputs[0]))
    shape = operation.shape_before or list(operation.inputs[0].shape)
    asked = operation.arguments.get("dim")
    asked = list(range(len(shape))) if asked is None else [asked] if isinstance(asked, int) else list(asked)
    gone = {place % len(shape) for place in asked if shape and shape[place % len(shape)] == 1}
    for place in gone:
        operation.fix(axes[place], "its axis disappears", KEPT_AXIS)
    kept = [place for place in range(len(shape)) if place not in gone]
    operation.give([axes[place] for place in kept])
    keep_origin(operation, kept)


@rule_for("slice", "slice_copy", "narrow")
def take_slice(operation: Operation) -> None:
    """Keep a part of an axis."""
    axes, asked = list(operation.axes(operation.inputs[0])), operation.arguments
    place = asked.get("dim", 0) % len(axes)
    if axes[place] is not None:
        if operation.name == "narrow":
            kept = slice(asked["start"], asked["start"] + asked["length"])
        else:
            kept = slice(asked.get("start"), asked.get("end"), asked.get("step", 1))
            _tie_strides(operation, axes[place], asked.get("step", 1))
        if operation.tracer.origin(operation.inputs[0]) is not None:
            operation.tracer.slices.append((axes[place], axes[place][kept]))
        axes[place] = axes[place][kept]
    operation.give(axes)
    keep_origin(operation, range(len(axes)))


def _tie_strides(operation: Operation, vector: Vector | None, step: int) -> None:
    """Let what lies between two steps go together, as pairs do of which every second position picks a half."""
    if vector is not None and step > 1 and len(vector) % step == 0:
        for offset in range(1, step):
            operation.tie(vector[::step], vector[offset::step])


@rule_for("select", "select_copy")
def select(operation: Operation) -> None:
    """Pick one position of an axis, which fixes its units: their numbers are in the code."""
    axes = list(operation.axes(operation.inputs[0]))
    place = operation.arguments["dim"] % len(axes)
    operation.fix(axes[place], "one of them is picked by its number", LAYER)
    operation.give([*axes[:place], *axes[place + 1 :]])
    keep_origin(operation, [*range(place), *range(place + 1, len(axes))])


@rule_for("unbind", "unbind_copy")
def unbind(operation: Operation) -> None:
    """Pick all positions of an axis one by one."""
    axes = list(operation.axes(operation.inputs[0]))
    place = operation.arguments["dim"] % len(axes)
    operation.fix(axes[place], "they are picked one by one", LAYER)
    for given in operation.outputs:
        operation.give([*axes[:place], *axes[place + 1 :]], given)
    keep_origin(operation, [*range(place), *range(place + 1, len(axes))])


@rule_for("constant_pad_nd")
def pad(operation: Operation) -> None:
    """Put constant positions around an axis, or cut some off."""
    taken, given = operation.inputs[0], operation.outputs[0]
    pads = operation.arguments["pad"]
    axes = list(operation.axes(taken))
    for number in range(len(pads) // 2):
        place = taken.ndim - 1 - number
        before, after = pads[2 * number], pads[2 * number + 1]
        vector = axes[place]
        if vector is not None and (before or after):
            cut = vector[max(-before, 0) : len(vector) - max(-after, 0)]
            around = [operation.tracer.source_units(f"{INPUT}padding'", max(size, 0)) for size in (before, after)]
            axes[place] = operation.labels.joined([around[0], cut, around[1]])
    operation.give(axes, given)


@rule_for("view_as_real", "view_as_complex")
def pairs(operation: Operation) -> None:
    """See complex numbers as pairs on a last axis, or pairs as complex numbers."""
    axes = list(operation.axes(operation.inputs[0]))
    if operation.name == "view_as_real":
        operation.give([*axes, None])
    else:
        operation.fix(axes[-1], "they are real and imaginary parts", LAYER)
        operation.give(axes[:-1])


@rule_for("flip")
def flip(operation: Operation) -> None:
    """Reverse axes."""
    axes = list(operation.axes(operation.inputs[0]))
    for place in operation.arguments["dims"]:
        vector = axes[place]
        axes[place] = None if vector is None else vector[::-1]
    operation.give(axes)
    keep_origin(operation, range(len(axes)))


@rule_for("roll")
def roll(operation: Operation) -> None:
    """Shift axes in a circle, which fixes units: the distance is in the code."""
    axes = operation.axes(operation.inputs[0])
    places = operation.arguments.get("dims") or range(len(axes))
    for place in places:
        operation.fix(axes[place], "they are shifted by a number of positions", LAYER)
    operation.give(list(axes))


@rule_for("unfold", "unfold_copy", "diagonal", "diagonal_copy", "diag_embed", "as_strided", "movedim", "rot90")
def probe(operation: Operation) -> None:
    """Find out by an experiment where the positions of each axis go."""
    taken, given = operation.inputs[0], operation.outputs[0]
    axes = operation.axes_before or operation.axes(taken)
    result: Axes = [None] * given.ndim
    if operation.name == "as_strided" and operation.axes_before and len(axes) == given.ndim:
        operation.give(axes)
        return
    for vector in axes if math.prod(taken.shape) > MOST_PROBED else ():
        operation.fix(vector, "they move in a way that is not understood", LAYER)
    for place, vector in enumerate(axes):
        if vector is None or math.prod(taken.shape) > MOST_PROBED:
            continue
        shape = [1] * taken.ndim
        shape[place] = len(vector)
        numbers = torch.arange(len(vector), device=taken.device).view(shape).expand(taken.shape).contiguous()
        _place_units(operation, vector, operation.function(numbers, *operation.args[1:], **operation.kwargs), result)
    operation.give(result)


def _place_units(operation: Operation, vector: Vector, moved: Tensor, result: Axes) -> None:
    """Put the units of one axis along the axis of the result that they vary with."""
    varies = [axis for axis in range(moved.ndim) if moved.shape[axis] > 1 and bool((moved.diff(dim=axis) != 0).any())]
    if len(varies) != 1 or result[varies[0]] is not None:
        operation.fix(vector, "they are spread over several axes", LAYER)
        return
    line = moved
    for axis in reversed(range(moved.ndim)):
        line = line.select(axis, 0) if axis != varies[0] else line
    result[varies[0]] = vector[line.cpu().numpy()]
