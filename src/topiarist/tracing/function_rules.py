"""What each function and each method of a tensor does with the units it meets."""

import operator
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, fx
from torch.nn import functional

from topiarist.tracing import shape_rules as shape
from topiarist.tracing.joining import broadcast, chunk_rule, concatenation_rule, gate_rule, stack_rule
from topiarist.tracing.step import Step
from topiarist.tracing.units import Fixed, Layout, NotUnderstoodError, Whereabouts, everywhere


def words(text: str) -> frozenset[str]:
    """Return the words of a text."""
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
    """Return where the units lie after a function or a method."""
    name = known_name(step.call.node)
    if not step.operands or name in MEASURING:
        return everywhere(step.call.output, Fixed(step.call.node.name))
    if all(isinstance(layout, Fixed) for _, layout in step.operands):
        return everywhere(step.call.output, _fixed_rule(step, name))
    if name is None:
        raise NotUnderstoodError("no rule for this function")
    if name in POINTWISE:
        step.fix_counted()
        return broadcast(step.operands if name not in TYPING else step.operands[:1], step.units)
    if name in SPATIAL:
        return spatial_rule(step)
    if name in REDUCING:
        return _reduction_rule(step)
    if name in RULES:
        return RULES[name](step)
    raise NotUnderstoodError("no rule for this function")


def known_name(node: fx.Node) -> str | None:
    """Return the name of a method, or of a function of torch or of Python's operators; None for anyone else's."""
    if isinstance(node.target, str):
        return node.target.removesuffix("_")
    name = getattr(node.target, "__name__", "").removesuffix("_")
    homes = (torch, functional, operator, torch.special, Tensor)
    own = any(getattr(home, found, None) is node.target for home in homes for found in (name, f"{name}_"))
    return name if own or node.target is getattr else None


def _fixed_rule(step: Step, name: str | None) -> Whereabouts:
    """Fix what is computed from fixed tensors; a parameter that is only reshaped or cast stays one."""
    layout = step.layout
    alone = len(step.operands) == 1 and isinstance(layout, Fixed) and layout.parameter is not None
    if alone and name in POINTWISE | RESHAPING and not _has_written_size(step):
        return layout
    parameters = [fixed for _, fixed in step.operands if isinstance(fixed, Fixed) and fixed.parameter is not None]
    if parameters and len(parameters) < len(step.operands) and name not in POINTWISE:
        raise NotUnderstoodError(f"it reads the parameter '{parameters[0].parameter}' directly: use a layer")
    return broadcast(step.operands, step.units)


def _has_written_size(step: Step) -> bool:
    """Return whether a size other than 1 stands in the code as a number."""
    numbers: list[Any] = []
    fx.node.map_aggregate(step.call.node.args[1:], numbers.append)
    return any(isinstance(number, int) and number not in (-1, 0, 1) for number in numbers)


def spatial_rule(step: Step) -> Whereabouts:
    """Leave the second axis, the channels, alone, as pooling and resizing do."""
    if isinstance(step.layout, Fixed):
        return step.layout
    axis = 1 - step.taken.ndim
    if step.taken.ndim < 3 or step.given.ndim != step.taken.ndim:
        raise NotUnderstoodError(f"its input must have 3 or 4 axes, samples first; found {step.taken.ndim}")
    return step.along(axis)


def _reduction_rule(step: Step) -> Whereabouts:
    """Leave the units where they are unless a mean or a sum is taken over them, which fixes them."""
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
    """Fix the units along which a softmax is taken, as it mixes them."""
    layout = step.layout
    ndim = step.taken.ndim
    if isinstance(layout, Layout) and (dimension is None or dimension % ndim == ndim + layout.axis):
        step.units.fix(layout.units, f"'{step.call.operation}' is taken over them")
    return layout


def _extreme_rule(step: Step) -> Whereabouts:
    """Take the larger or smaller of two tensors, element by element."""
    if len(step.operands) != 2 or not isinstance(step.call.output, Tensor):
        raise NotUnderstoodError("use amax or amin")
    return broadcast(step.operands, step.units)


def _attribute_rule(step: Step) -> Whereabouts:
    """Let `x.shape` and the like pass, which are no tensors; other attributes are not followed."""
    if isinstance(step.call.output, Tensor):
        raise NotUnderstoodError(f"no rule for the attribute {step.call.args[1]!r}")
    return None


RULES: dict[str, Callable[[Step], Whereabouts]] = {
    "flatten": lambda step: shape.flatten_rule(step, step.argument("start_dim", 1, 0), step.argument("end_dim", 2, -1)),
    **dict.fromkeys(("softmax", "log_softmax", "softmin"), lambda step: softmax_rule(step, step.argument("dim", 1))),
    "normalize": lambda step: softmax_rule(step, step.argument("dim", 2, 1)),
    **dict.fromkeys(("view", "reshape"), shape.view_rule),
    "permute": shape.permute_rule,
    **dict.fromkeys(("transpose", "swapaxes", "swapdims"), shape.transpose_rule),
    "squeeze": shape.squeeze_rule,
    "unsqueeze": shape.unsqueeze_rule,
    **dict.fromkeys(("cat", "concat", "concatenate"), concatenation_rule),
    "chunk": chunk_rule,
    "glu": lambda step: gate_rule(step, step.argument("dim", 1, -1)),
    "getitem": shape.item_rule,
    "pad": shape.pad_rule,
    "stack": stack_rule,
    "expand": shape.expand_rule,
    **dict.fromkeys(("max", "min"), _extreme_rule),
    "getattr": _attribute_rule,
}
