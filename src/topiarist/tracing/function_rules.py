"""What each function and each method of a tensor does with the units it meets."""

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy
import torch
from torch import Tensor, fx
from torch.nn import functional

from topiarist.tracing.joining import CONSTANT, NotUnderstoodError, broadcast, concatenate, constant_layout
from topiarist.tracing.step import Step
from topiarist.tracing.units import Fixed, Layout, Whereabouts


def words(text: str) -> frozenset[str]:
    """Give the words of a text."""
    return frozenset(text.split())


POINTWISE = words("""
    add iadd sub isub rsub mul imul truediv itruediv div multiply subtract divide neg pos abs reciprocal pow ipow square
    sqrt rsqrt exp expm1 log log1p erf sin cos sign round floor ceil clamp clip minimum maximum where lerp addcmul
    addcdiv gt lt ge le eq ne nan_to_num relu relu6 leaky_relu rrelu elu selu celu gelu silu mish sigmoid tanh softplus
    softsign hardtanh hardswish hardsigmoid logsigmoid tanhshrink softshrink hardshrink threshold dropout dropout1d
    dropout2d alpha_dropout feature_alpha_dropout contiguous clone detach to type type_as float double half bfloat16
    zeros_like ones_like
""")
SPATIAL = words("""
    max_pool1d max_pool2d avg_pool1d avg_pool2d lp_pool1d lp_pool2d adaptive_avg_pool1d adaptive_avg_pool2d
    adaptive_max_pool1d adaptive_max_pool2d interpolate upsample
""")
REDUCING = words("mean sum amax amin std var prod logsumexp")
MEASURING = words("size dim numel ndimension is_floating_point element_size get_device")


def function_rule(step: Step) -> Whereabouts:
    """Give where the units lie after a function or a method."""
    name = known_name(step.call.node)
    if not list(step.operands) or name in MEASURING:
        return made_of_nothing(step)
    if all(isinstance(layout, Fixed) for _, layout in step.operands):
        return everywhere(step.call.output, broadcast(step.operands, step.units))
    if name is None:
        raise NotUnderstoodError("no rule for this function")
    if name in POINTWISE:
        return broadcast(step.operands, step.units)
    if name in SPATIAL:
        return spatial_rule(step)
    if name in REDUCING:
        return reduction_rule(step)
    if name in RULES:
        return RULES[name](step)
    raise NotUnderstoodError("no rule for this function")


def known_name(node: fx.Node) -> str | None:
    """Give the name of a method, or of a function of torch or of Python's operators; None for anyone else's."""
    if isinstance(node.target, str):
        return node.target.removesuffix("_")
    name = getattr(node.target, "__name__", "").removesuffix("_")
    homes = (torch, functional, operator, torch.special, Tensor)
    own = any(getattr(home, found, None) is node.target for home in homes for found in (name, f"{name}_"))
    return name if own or node.target is getattr else None


def made_of_nothing(step: Step) -> Whereabouts:
    """Give the whereabouts of what no tensor was used for: sizes have none, a new tensor is a constant."""
    return everywhere(step.call.output, Fixed(CONSTANT))


def everywhere(value: Any, place: Whereabouts) -> Whereabouts:
    """Give a place to every tensor of a result."""
    if isinstance(value, Tensor):
        return place
    if isinstance(value, (tuple, list)) and any(isinstance(item, Tensor) for item in value):
        return tuple(everywhere(item, place) for item in value)
    return None


def spatial_rule(step: Step) -> Whereabouts:
    """Pooling and resizing leave the second axis, the channels, alone."""
    if isinstance(step.layout, Fixed):
        return step.layout
    axis = 1 - step.taken.ndim
    if step.taken.ndim < 3 or step.given.ndim != step.taken.ndim:
        raise NotUnderstoodError(f"its input must have 3 or 4 axes, samples first; found {step.taken.ndim}")
    return step.along(axis)


def reduction_rule(step: Step) -> Whereabouts:
    """A mean or a sum leaves the units where they are unless it is taken over them, which fixes them."""
    layout = step.layout
    assert isinstance(layout, Layout)
    ndim = step.taken.ndim
    dimension = step.argument("dim", 1, step.call.kwargs.get("axis"))
    if isinstance(dimension, bool) or dimension is None:
        dimension = range(ndim)
    axes = {axis % ndim for axis in ([dimension] if isinstance(dimension, int) else dimension)}
    if ndim + layout.axis in axes:
        step.units.fix(layout.units, f"'{step.call.operation}' is taken over them")
        return everywhere(step.call.output, Fixed(step.call.operation))
    if step.given.ndim == ndim:
        return layout
    behind = sum(axis > ndim + layout.axis for axis in axes)
    return layout.moved(layout.axis + behind)


def softmax_rule(step: Step, dimension: int | None) -> Whereabouts:
    """A softmax along the units mixes them."""
    layout = step.layout
    ndim = step.taken.ndim
    if isinstance(layout, Layout) and (dimension is None or dimension % ndim == ndim + layout.axis):
        step.units.fix(layout.units, f"'{step.call.operation}' is taken over them")
    return layout


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
    layout = step.layout
    assert isinstance(layout, Layout)
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
    asked = step.call.node.args[1:] or tuple(step.call.node.kwargs.values())
    sizes = asked[0] if len(asked) == 1 and isinstance(asked[0], (tuple, list)) else asked
    if axis < len(sizes) and isinstance(sizes[axis], int) and sizes[axis] != -1:
        raise NotUnderstoodError(f"its code says {sizes[axis]}, which a cut makes wrong: use -1, flatten(1) or x.shape")


def permute_rule(step: Step) -> Whereabouts:
    """The units go where their axis goes."""
    layout = step.layout
    assert isinstance(layout, Layout)
    asked = step.argument("dims", 1)
    order = list(asked) if isinstance(asked, (tuple, list)) else list(step.call.args[1:])
    ndim = step.taken.ndim
    return layout.moved([axis % ndim for axis in order].index(ndim + layout.axis) - ndim)


def transpose_rule(step: Step) -> Whereabouts:
    """Two axes change places."""
    layout = step.layout
    assert isinstance(layout, Layout)
    ndim = step.taken.ndim
    first, second = step.argument("dim0", 1) % ndim - ndim, step.argument("dim1", 2) % ndim - ndim
    return layout.moved({first: second, second: first}.get(layout.axis, layout.axis))


def squeeze_rule(step: Step) -> Whereabouts:
    """Axes of size 1 come and go; the axis of the units must stay."""
    layout = step.layout
    assert isinstance(layout, Layout)
    ndim = step.taken.ndim
    asked = step.argument("dim", 1)
    axes = range(ndim) if asked is None else [asked] if isinstance(asked, int) else asked
    gone = {axis % ndim for axis in axes if step.taken.shape[axis] == 1}
    if ndim + layout.axis in gone:
        raise NotUnderstoodError("it takes away the axis of the units")
    return layout.moved(layout.axis + sum(axis > ndim + layout.axis for axis in gone))


def unsqueeze_rule(step: Step) -> Whereabouts:
    """A new axis of size 1."""
    layout = step.layout
    assert isinstance(layout, Layout)
    new = step.argument("dim", 1) % step.given.ndim
    return layout if new <= step.taken.ndim + layout.axis else layout.moved(layout.axis - 1)


def concatenation_rule(step: Step) -> Whereabouts:
    """Lists the operands' units one after the other."""
    nodes = step.call.node.args[0] if step.call.node.args else step.call.node.kwargs["tensors"]
    if not isinstance(nodes, (tuple, list)):
        return concatenate(step.operands, step.argument("dim", 1, step.call.kwargs.get("axis", 0)), step.units)
    operands = [(step.values[node], step.places[node]) for node in nodes if isinstance(node, fx.Node)]
    return concatenate(operands, step.argument("dim", 1, step.call.kwargs.get("axis", 0)), step.units)  # type: ignore[arg-type]


def chunk_rule(step: Step) -> Whereabouts:
    """Equal pieces along the units stay equal: what stands at the same place in each is one unit."""
    layout = step.layout
    assert isinstance(layout, Layout)
    pieces = step.argument("chunks", 1)
    dimension = step.argument("dim", 2, 0) % step.taken.ndim
    if dimension != step.taken.ndim + layout.axis:
        return everywhere(step.call.output, layout)
    if len(layout.units) % pieces or len(step.call.output) != pieces:
        raise NotUnderstoodError(f"{len(layout.units)} units do not fall into {pieces} equal pieces")
    units = layout.units.reshape(pieces, -1)
    for piece in units[1:]:
        step.units.tie(units[0], piece)
    slots = layout.slots.reshape(pieces, -1)
    return tuple(Layout(layout.axis, *piece) for piece in zip(units, slots, strict=True))


def gate_rule(step: Step, dimension: int) -> Whereabouts:
    """A gated linear unit multiplies one half of the units by a gate made of the other half."""
    layout = step.layout
    if isinstance(layout, Fixed) or step.taken.ndim + layout.axis != dimension % step.taken.ndim:
        return layout
    first, second = numpy.split(layout.units, 2)
    step.units.tie(first, second)
    return Layout(layout.axis, first, layout.slots[: len(first)])


def item_rule(step: Step) -> Whereabouts:
    """One of several results; or a slice, which must leave the units alone."""
    node, index = step.call.node.args[0], step.call.args[1]
    place = step.places[node] if isinstance(node, fx.Node) else None
    if isinstance(place, tuple):
        found: Whereabouts = place[index]
        return found
    layout = step.layout
    assert isinstance(layout, Layout)
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
            if part != slice(None):
                raise NotUnderstoodError(f"it takes {part} of the units")
            return layout.moved(given - step.given.ndim)
        axis += 1
        given += not isinstance(part, int)
    raise NotUnderstoodError("the axis of the units was not found")


def pad_rule(step: Step) -> Whereabouts:
    """Padding along the units adds constant ones."""
    layout = step.layout
    assert isinstance(layout, Layout)
    widths = step.argument("pad", 1)
    place = 2 * (-layout.axis - 1)
    before, after = widths[place : place + 2] if len(widths) > place else (0, 0)
    if min(before, after) < 0:
        raise NotUnderstoodError("it cuts units away")
    parts = [constant_layout(Fixed(CONSTANT), before, layout.axis, step.units), layout]
    parts.append(constant_layout(Fixed(CONSTANT), after, layout.axis, step.units))
    return Layout(
        layout.axis,
        numpy.concatenate([part.units for part in parts]),
        numpy.concatenate([part.slots for part in parts]),
    )


def attribute_rule(step: Step) -> Whereabouts:
    """`x.shape` and the like are no tensors; other attributes are not followed."""
    if isinstance(step.call.output, Tensor):
        raise NotUnderstoodError(f"no rule for the attribute {step.call.args[1]!r}")
    return None


RULES: dict[str, Callable[[Step], Whereabouts]] = {
    "flatten": lambda step: flatten_rule(step, step.argument("start_dim", 1, 0), step.argument("end_dim", 2, -1)),
    **dict.fromkeys(("softmax", "log_softmax", "softmin"), lambda step: softmax_rule(step, step.argument("dim", 1))),
    "normalize": lambda step: softmax_rule(step, step.argument("dim", 2, 1)),
    **dict.fromkeys(("view", "reshape"), view_rule),
    "permute": permute_rule,
    **dict.fromkeys(("transpose", "swapaxes", "swapdims"), transpose_rule),
    "squeeze": squeeze_rule,
    "unsqueeze": unsqueeze_rule,
    **dict.fromkeys(("cat", "concat", "concatenate"), concatenation_rule),
    "chunk": chunk_rule,
    "glu": lambda step: gate_rule(step, step.argument("dim", 1, -1)),
    "getitem": item_rule,
    "pad": pad_rule,
    "getattr": attribute_rule,
}
