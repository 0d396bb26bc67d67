"""What changes of shape do with the units: where they lie afterwards, and how many positions each takes."""

import math
from typing import Any

import numpy
from torch import fx

from topiarist.tracing.counting import fix_foreign
from topiarist.tracing.joining import NotUnderstoodError, constant_layout
from topiarist.tracing.step import Step
from topiarist.tracing.units import Fixed, Layout, Whereabouts


def flatten_rule(step: Step, start: int = 0, end: int = -1) -> Whereabouts:
    """Flattening from the units on spreads each of them over several positions."""
    layout = step.layout
    if isinstance(layout, Fixed):
        return layout
    ndim = step.taken.ndim
    first, last, axis = start % ndim, end % ndim, ndim + layout.axis
    if axis < first:
        return layout.moved(layout.axis + last - first)
    if axis > last:
        return layout
    if axis != first and (first == 0 or math.prod(step.taken.shape[first:axis]) != 1):
        raise NotUnderstoodError("it flattens what lies before the units")
    repeat = math.prod(step.taken.shape[axis + 1 : last + 1])
    return layout.spread(repeat).moved(first - step.given.ndim)


def view_rule(step: Step) -> Whereabouts:
    """A view keeps the units' axis, or spreads it over what lies behind it; its size must be computed."""
    layout = step.tracked
    before, after = step.taken.shape, step.given.shape
    axis, count = step.taken.ndim + layout.axis, len(layout.units)
    ahead, behind = math.prod(before[:axis]), math.prod(before[axis + 1 :])
    fitting = [
        new
        for new, size in enumerate(after)
        if math.prod(after[:new]) == ahead and size % count == 0 and behind % (size // count) == 0 and size
    ]
    if not fitting:
        raise NotUnderstoodError(f"it turns {tuple(before)} into {tuple(after)}, which splits or mixes the units")
    new = axis if axis in fitting else fitting[-1]
    refuse_written_size(step, new)
    return layout.spread(after[new] // count).moved(new - len(after))


def refuse_written_size(step: Step, axis: int) -> None:
    """Refuse a size that stands in the code as a number: it would be wrong after a cut."""
    node = step.call.node
    named = [node.kwargs[name] for name in ("shape", "size") if name in node.kwargs]
    asked: Any = named or node.args[1:]
    sizes = asked[0] if len(asked) == 1 and isinstance(asked[0], (tuple, list, fx.Node)) else asked
    if isinstance(sizes, fx.Node) or isinstance(sizes[axis], fx.Node):
        fix_foreign(step, sizes if isinstance(sizes, fx.Node) else sizes[axis])
    elif sizes[axis] != -1:
        raise NotUnderstoodError(f"its code says {sizes[axis]}, which a cut makes wrong: use -1, flatten(1) or x.shape")


def permute_rule(step: Step) -> Whereabouts:
    """The units go where their axis goes."""
    layout = step.tracked
    asked = step.argument("dims", 1)
    order = list(asked) if isinstance(asked, (tuple, list)) else list(step.call.args[1:])
    ndim = step.taken.ndim
    return layout.moved([axis % ndim for axis in order].index(ndim + layout.axis) - ndim)


def transpose_rule(step: Step) -> Whereabouts:
    """Two axes change places."""
    layout = step.tracked
    ndim = step.taken.ndim
    asked = step.argument("dim0", 1, step.argument("axis0", 1)), step.argument("dim1", 2, step.argument("axis1", 2))
    first, second = (axis % ndim - ndim for axis in asked)
    return layout.moved({first: second, second: first}.get(layout.axis, layout.axis))


def squeeze_rule(step: Step) -> Whereabouts:
    """Axes of size 1 come and go; the axis of the units must stay."""
    layout = step.tracked
    ndim = step.taken.ndim
    asked = step.argument("dim", 1)
    axes = range(ndim) if asked is None else [asked] if isinstance(asked, int) else asked
    gone = {axis % ndim for axis in axes if step.taken.shape[axis] == 1}
    if ndim + layout.axis in gone:
        raise NotUnderstoodError("it takes away the axis of the units")
    return layout.moved(layout.axis + sum(axis > ndim + layout.axis for axis in gone))


def unsqueeze_rule(step: Step) -> Whereabouts:
    """A new axis of size 1."""
    layout = step.tracked
    new = step.argument("dim", 1) % step.given.ndim
    return layout if new <= step.taken.ndim + layout.axis else layout.moved(layout.axis - 1)


def expand_rule(step: Step) -> Whereabouts:
    """Axes of size 1 are repeated; the axis of the units must not be one of them."""
    layout = step.tracked
    if step.given.shape[layout.axis] != len(layout.units):
        raise NotUnderstoodError("one unit is spread over many")
    refuse_written_size(step, step.given.ndim + layout.axis)
    return layout


def item_rule(step: Step) -> Whereabouts:
    """One of several results; or a slice, which must leave the units alone."""
    node, index = step.call.node.args[0], step.call.args[1]
    place = step.places[node] if isinstance(node, fx.Node) else None
    if isinstance(place, tuple):
        found: Whereabouts = place[index]
        return found
    layout = step.tracked
    return slice_rule(step, layout, index if isinstance(index, tuple) else (index,))


def slice_rule(step: Step, layout: Layout, index: tuple[Any, ...]) -> Layout:
    """Slices and numbers along other axes than that of the units."""
    if any(not isinstance(part, (slice, int, type(None), type(Ellipsis))) for part in index):
        raise NotUnderstoodError("it is indexed by a tensor or a list")
    real = [part for part in index if part is not None and part is not Ellipsis]
    full = list(index) if Ellipsis in index else [*index, Ellipsis]
    hole = full.index(Ellipsis)
    full[hole : hole + 1] = [slice(None)] * (step.taken.ndim - len(real))
    axis, given = 0, 0
    for part in full:
        if part is None:
            given += 1
            continue
        if axis == step.taken.ndim + layout.axis:
            if part not in (slice(None), slice(0, None)):
                raise NotUnderstoodError(f"it takes {part} of the units")
            return layout.moved(given - step.given.ndim)
        axis += 1
        given += not isinstance(part, int)
    raise NotUnderstoodError("the axis of the units was not found")


def pad_rule(step: Step) -> Whereabouts:
    """Padding along the units adds constant ones."""
    layout = step.tracked
    widths = step.argument("pad", 1)
    place = 2 * (-layout.axis - 1)
    before, after = widths[place : place + 2] if len(widths) > place else (0, 0)
    if min(before, after) < 0:
        raise NotUnderstoodError("it cuts units away")
    if max(before, after) > 0 and step.argument("mode", 2, "constant") != "constant":
        raise NotUnderstoodError("it copies units")
    ends = (Fixed(f"{step.call.node.name}_{side}") for side in ("before", "after"))
    first, last = (
        constant_layout(end, count, layout.axis, step.units) for end, count in zip(ends, (before, after), strict=True)
    )
    parts = [first, layout, last]
    return Layout(
        layout.axis,
        numpy.concatenate([part.units for part in parts]),
        numpy.concatenate([part.slots for part in parts]),
    )
