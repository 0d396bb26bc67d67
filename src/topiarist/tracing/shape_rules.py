"""What changes of shape do with the units: where they lie afterwards, and how many positions each takes."""

import math
from typing import Any

from torch import fx

from topiarist.tracing.step import Step
from topiarist.tracing.units import Fixed, Layout, NotUnderstoodError, Whereabouts


def flatten_rule(step: Step, start: int = 0, end: int = -1) -> Whereabouts:
    """Spread each unit over several positions where the axes from the units on are flattened."""
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
    """Keep the units' axis in a view, or spread it over what lies behind it; its size must be computed."""
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
    _refuse_written_size(step, new)
    return layout.spread(after[new] // count).moved(new - len(after))


def _refuse_written_size(step: Step, axis: int) -> None:
    """Refuse a size that stands in the code as a number: it would be wrong after a cut."""
    node = step.call.node
    named = [node.kwargs[name] for name in ("shape", "size") if name in node.kwargs]
    asked: Any = named or node.args[1:]
    sizes = asked[0] if len(asked) == 1 and isinstance(asked[0], (tuple, list, fx.Node)) else asked
    size = sizes if isinstance(sizes, fx.Node) else sizes[axis]
    if isinstance(size, fx.Node):  # the number of other units: unless they turn out to be the same, both must stay
        step.units.same_size += [(step.tracked.units, layout.units) for layout in step.counted_layouts(size)]
    elif size != -1:
        raise NotUnderstoodError(f"its code says {size}, which a cut makes wrong: use -1, flatten(1) or x.shape")


def permute_rule(step: Step) -> Whereabouts:
    """Move the units to where their axis goes."""
    layout = step.tracked
    asked = step.argument("dims", 1)
    order = list(asked) if isinstance(asked, (tuple, list)) else list(step.call.args[1:])
    ndim = step.taken.ndim
    return layout.moved([axis % ndim for axis in order].index(ndim + layout.axis) - ndim)


def transpose_rule(step: Step) -> Whereabouts:
    """Let two axes change places."""
    layout = step.tracked
    ndim = step.taken.ndim
    asked = step.argument("dim0", 1, step.argument("axis0", 1)), step.argument("dim1", 2, step.argument("axis1", 2))
    first, second = (axis % ndim - ndim for axis in asked)
    return layout.moved({first: second, second: first}.get(layout.axis, layout.axis))


def squeeze_rule(step: Step) -> Whereabouts:
    """Drop axes of size 1; the axis of the units must stay."""
    layout = step.tracked
    ndim = step.taken.ndim
    asked = step.argument("dim", 1)
    axes = range(ndim) if asked is None else [asked] if isinstance(asked, int) else asked
    gone = {axis % ndim for axis in axes if step.taken.shape[axis] == 1}
    if ndim + layout.axis in gone:
        raise NotUnderstoodError("it takes away the axis of the units")
    return layout.moved(layout.axis + sum(axis > ndim + layout.axis for axis in gone))


def unsqueeze_rule(step: Step) -> Whereabouts:
    """Add an axis of size 1."""
    layout = step.tracked
    new = step.argument("dim", 1) % step.given.ndim
    return layout if new <= step.taken.ndim + layout.axis else layout.moved(layout.axis - 1)


def expand_rule(step: Step) -> Whereabouts:
    """Repeat axes of size 1; the axis of the units must not be one of them."""
    layout = step.tracked
    if step.given.shape[layout.axis] != len(layout.units):
        raise NotUnderstoodError("one unit is spread over many")
    _refuse_written_size(step, step.given.ndim + layout.axis)
    return layout


def item_rule(step: Step) -> Whereabouts:
    """Take one of several results; or a slice, which must leave the units alone."""
    node, index = step.call.node.args[0], step.call.args[1]
    place = step.places[node] if isinstance(node, fx.Node) else None
    if isinstance(place, tuple):
        found: Whereabouts = place[index]
        return found
    layout = step.tracked
    return _slice_rule(step, layout, index if isinstance(index, tuple) else (index,))


def _slice_rule(step: Step, layout: Layout, index: tuple[Any, ...]) -> Layout:
    """Take slices and numbers along other axes than that of the units."""
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
    """Add constant units where the padding lies along the units."""
    layout = step.tracked
    widths = step.argument("pad", 1)
    place = 2 * (-layout.axis - 1)
    before, after = widths[place : place + 2] if len(widths) > place else (0, 0)
    if min(before, after) < 0:
        raise NotUnderstoodError("it cuts units away")
    if max(before, after) > 0 and step.argument("mode", 2, "constant") != "constant":
        raise NotUnderstoodError("it copies units")
    ends = [
        step.units.constant_layout(Fixed(f"{step.call.node.name}_{side}"), count, layout.axis)
        for side, count in (("before", before), ("after", after))
    ]
    return Layout.joined([ends[0], layout, ends[1]])
