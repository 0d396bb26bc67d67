"""What each function and each method of a tensor does with the units it meets."""

import math
import operator
from collections.abc import Callable, Iterator
from typing import Any

import numpy
import torch
from torch import Tensor, fx
from torch.nn import functional

from topiarist.tracing.joining import NotUnderstoodError, broadcast, concatenate, constant_layout
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
    zeros_like ones_like expand_as
""")
SPATIAL = words("""
    max_pool1d max_pool2d avg_pool1d avg_pool2d lp_pool1d lp_pool2d adaptive_avg_pool1d adaptive_avg_pool2d
    adaptive_max_pool1d adaptive_max_pool2d interpolate upsample
""")
RESHAPING = words("view reshape unsqueeze squeeze permute transpose")
TYPING = words("to type_as")
REDUCING = words("mean sum amax amin std var prod logsumexp")
MEASURING = words("size dim numel ndimension is_floating_point element_size get_device")


def function_rule(step: Step) -> Whereabouts:
    """Give where the units lie after a function or a method."""
    name = known_name(step.call.node)
    if not step.operands or name in MEASURING:
        return everywhere(step.call.output, Fixed(step.call.node.name))
    if all(isinstance(layout, Fixed) for _, layout in step.operands):
        return everywhere(step.call.output, fixed_rule(step, name))
    if name is None:
        raise NotUnderstoodError("no rule for this function")
    if name in POINTWISE:
        fix_counted(step)
        return broadcast(step.operands if name not in TYPING else step.operands[:1], step.units)
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


def fixed_rule(step: Step, name: str | None) -> Whereabouts:
    """What is computed from fixed tensors is fixed; a parameter that is only looked at in another way stays one."""
    layout = step.layout
    alone = len(step.operands) == 1 and isinstance(layout, Fixed) and layout.parameter is not None
    if alone and name in POINTWISE | RESHAPING and not has_written_size(step):
        return layout
    parameters = [fixed for _, fixed in step.operands if isinstance(fixed, Fixed) and fixed.parameter is not None]
    if parameters and len(parameters) < len(step.operands) and name not in POINTWISE:
        raise NotUnderstoodError(f"it reads the parameter '{parameters[0].parameter}' directly: use a layer")
    return broadcast(step.operands, step.units)


def has_written_size(step: Step) -> bool:
    """Say whether a size other than 1 stands in the code as a number."""
    numbers: list[Any] = []
    fx.node.map_aggregate(step.call.node.args[1:], numbers.append)
    return any(isinstance(number, int) and number not in (-1, 0, 1) for number in numbers)


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
    layout = step.tracked
    ndim = step.taken.ndim
    dimension = step.argument("dim", 1, step.call.kwargs.get("axis"))
    if isinstance(dimension, bool) or dimension is None or dimension == ():
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


def fix_foreign(step: Step, size: fx.Node) -> None:
    """Fix units whose number is taken from that of others: both must stay as they are."""
    own = step.units.roots(step.tracked.units)
    for layout in counted_layouts(step, size):
        if not numpy.array_equal(numpy.unique(own), numpy.unique(step.units.roots(layout.units))):
            for units in (layout.units, step.tracked.units):
                step.units.fix(units, "one size stands for two sets of units")


def fix_counted(step: Step) -> None:
    """Fix units whose number forward computes with."""
    for node in step.call.node.all_input_nodes:
        if not isinstance(step.values[node], Tensor) and step.places[node] is None:
            for layout in counted_layouts(step, node):
                step.units.fix(layout.units, "forward computes with their number")


def counted_layouts(step: Step, node: fx.Node) -> Iterator[Layout]:
    """Give the layouts of the tensors along whose units a number was measured, as far as can be told."""
    value = step.values[node]
    if isinstance(value, Tensor):
        place = step.places[node]
        if isinstance(place, Layout):
            yield place
        return
    measured = measured_axis(step, node)
    if measured is not None:
        tensor, axis = measured
        place = step.places[tensor]
        if isinstance(place, Layout) and step.values[tensor].ndim + place.axis == axis:
            yield place
        return
    for source in node.all_input_nodes:
        yield from counted_layouts(step, source)


def measured_axis(step: Step, node: fx.Node) -> tuple[fx.Node, int] | None:
    """Give the tensor and the axis of `x.size(axis)` and `x.shape[axis]`; None for anything else."""
    if node.op == "call_method" and node.target == "size" and len(node.args) == 2 and isinstance(node.args[1], int):
        source, axis = node.args
    elif node.target is operator.getitem and isinstance(node.args[1], int) and isinstance(node.args[0], fx.Node):
        shape, axis = node.args[0], node.args[1]
        whole = shape.target is getattr or (shape.target == "size" and len(shape.args) == 1)
        source = shape.args[0] if whole and isinstance(step.values[shape], torch.Size) else None
    else:
        return None
    if not isinstance(source, fx.Node) or not isinstance(axis, int):
        return None
    return source, axis % step.values[source].ndim


def stack_rule(step: Step) -> Whereabouts:
    """Tensors on a new axis; what stands at the same place in each is one unit."""
    layout = broadcast(step.operands, step.units)
    assert isinstance(layout, Layout)
    new = step.argument("dim", 1, 0) % step.given.ndim
    return layout if new <= step.taken.ndim + layout.axis else layout.moved(layout.axis - 1)


def expand_rule(step: Step) -> Whereabouts:
    """Axes of size 1 are repeated; the axis of the units must not be one of them."""
    layout = step.tracked
    if step.given.shape[layout.axis] != len(layout.units):
        raise NotUnderstoodError("one unit is spread over many")
    refuse_written_size(step, step.given.ndim + layout.axis)
    return layout


def extreme_rule(step: Step) -> Whereabouts:
    """The larger or smaller of two tensors, element by element."""
    if len(step.operands) != 2 or not isinstance(step.call.output, Tensor):
        raise NotUnderstoodError("use amax or amin")
    return broadcast(step.operands, step.units)


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


def concatenation_rule(step: Step) -> Whereabouts:
    """Lists the operands' units one after the other."""
    nodes = step.call.node.args[0] if step.call.node.args else step.call.node.kwargs["tensors"]
    if not isinstance(nodes, (tuple, list)):
        return concatenate(step.operands, step.argument("dim", 1, step.call.kwargs.get("axis", 0)), step.units)
    operands = [(step.values[node], step.places[node]) for node in nodes if isinstance(node, fx.Node)]
    return concatenate(operands, step.argument("dim", 1, step.call.kwargs.get("axis", 0)), step.units)  # type: ignore[arg-type]


def chunk_rule(step: Step) -> Whereabouts:
    """Equal pieces along the units stay equal: what stands at the same place in each is one unit."""
    layout = step.tracked
    pieces = step.argument("chunks", 1)
    dimension = step.argument("dim", 2, 0) % step.taken.ndim
    if dimension != step.taken.ndim + layout.axis:
        return everywhere(step.call.output, layout)
    if len(layout.units) % pieces or len(step.call.output) != pieces:
        raise NotUnderstoodError(f"{len(layout.units)} units do not fall into {pieces} equal pieces")
    slots = layout.slots.reshape(pieces, -1)
    if slots[:, 0].any():
        raise NotUnderstoodError("it parts what belongs to one unit")
    units = layout.units.reshape(pieces, -1)
    for piece in units[1:]:
        step.units.tie(units[0], piece)
    return tuple(Layout(layout.axis, *piece) for piece in zip(units, slots, strict=True))


def gate_rule(step: Step, dimension: int) -> Whereabouts:
    """A gated linear unit multiplies one half of the units by a gate made of the other half."""
    layout = step.layout
    if isinstance(layout, Fixed) or step.taken.ndim + layout.axis != dimension % step.taken.ndim:
        return layout
    first, second = numpy.split(layout.units, 2)
    if layout.slots[len(first)]:
        raise NotUnderstoodError("it parts what belongs to one unit")
    step.units.tie(first, second)
    return Layout(layout.axis, first, layout.slots[: len(first)])


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
    "stack": stack_rule,
    "expand": expand_rule,
    **dict.fromkeys(("max", "min"), extreme_rule),
    "getattr": attribute_rule,
}
