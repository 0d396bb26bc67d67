"""What each kind of layer does with the units it meets."""

from collections.abc import Callable
from typing import Any

import numpy
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _NormBase
from torch.nn.modules.conv import _ConvNd
from torch.nn.modules.dropout import _DropoutNd

from topiarist.tracing.function_rules import softmax_rule, spatial_rule
from topiarist.tracing.joining import gate_rule
from topiarist.tracing.shape_rules import flatten_rule
from topiarist.tracing.step import Step
from topiarist.tracing.units import Fixed, Layout, NotUnderstoodError, Whereabouts

Rule = Callable[[Step, Any], Whereabouts]


def _linear_rule(step: Step, layer: nn.Linear) -> Layout:
    """Read along the last axis, and write there."""
    step.units.meet(step.call.place, "reads", step.along(-1))
    return step.units.written(step.call.place, layer.out_features, -1)


def _convolution_rule(step: Step, layer: _ConvNd) -> Layout:
    """Read channels and write channels; with groups, each group is one unit that passes through."""
    if layer.transposed or len(layer.kernel_size) > 2:
        raise NotUnderstoodError("transposed and three-dimensional convolutions are out of scope")
    axis = -len(layer.kernel_size) - 1  # the channels come right after the samples
    if step.taken.ndim != 1 - axis:
        raise NotUnderstoodError(f"its input must have {1 - axis} axes, samples first; found {step.taken.ndim}")
    layout = step.along(axis)
    if layer.groups == 1:
        step.units.meet(step.call.place, "reads", layout)
        return step.units.written(step.call.place, layer.out_channels, axis)
    groups = layout.units.reshape(layer.groups, -1)
    for column in groups.T[1:]:
        step.units.tie(groups[:, 0], column)
    given = numpy.repeat(groups[:, 0], layer.out_channels // layer.groups)
    passed = Layout(axis, given, numpy.zeros(len(given), dtype=numpy.int64))
    if layer.in_channels != layer.groups or layer.out_channels != layer.groups:
        step.units.grouped.update(given.tolist())
    step.units.meet(step.call.place, "passes", passed)
    return passed


def _batch_norm_rule(step: Step, layer: _NormBase) -> Layout:
    """Pass the units on along the second axis, with a scale, a shift and statistics for each."""
    layout = step.along(1 - step.taken.ndim)
    step.units.meet(step.call.place, "passes", layout)
    return layout


def _group_norm_rule(step: Step, layer: nn.GroupNorm) -> Layout:
    """Make each group one unit, as its channels are mixed."""
    layout = step.along(1 - step.taken.ndim)
    groups = layout.units.reshape(layer.num_groups, -1)
    for column in groups.T[1:]:
        step.units.tie(groups[:, 0], column)
    if groups.shape[1] > 1:
        step.units.grouped.update(layout.units.tolist())
    step.units.meet(step.call.place, "passes", layout)
    return layout


def _layer_norm_rule(step: Step, layer: nn.LayerNorm) -> Layout | Fixed:
    """Fix the units where the norm runs along them: none can go without changing the others."""
    if isinstance(step.layout, Layout) and -step.layout.axis <= len(layer.normalized_shape):
        step.units.fix(step.layout.units, f"'{step.call.place}' (LayerNorm) mixes them")
    return step.layout


def _prelu_rule(step: Step, layer: nn.PReLU) -> Layout | Fixed:
    """Pass the units on along the second axis where each has a slope of its own."""
    if layer.num_parameters == 1:
        return step.layout
    layout = step.along(1 - step.taken.ndim)
    step.units.meet(step.call.place, "passes", layout)
    return layout


def _same_rule(step: Step, layer: nn.Module) -> Layout | Fixed:
    """Leave the units where they are, as each element is computed alone."""
    if not isinstance(step.call.output, Tensor):
        raise NotUnderstoodError("it gets more than one tensor")
    return step.layout


POINTWISE = (
    *(nn.ReLU, nn.ReLU6, nn.LeakyReLU, nn.RReLU, nn.ELU, nn.SELU, nn.CELU, nn.GELU, nn.SiLU, nn.Mish, nn.Sigmoid),
    *(nn.Tanh, nn.Hardtanh, nn.Hardswish, nn.Hardsigmoid, nn.Softplus, nn.Softsign, nn.Softshrink, nn.Hardshrink),
    *(nn.Tanhshrink, nn.Threshold, nn.LogSigmoid, nn.Identity, _DropoutNd),
)
POOLING = (
    *(nn.MaxPool1d, nn.MaxPool2d, nn.AvgPool1d, nn.AvgPool2d, nn.LPPool1d, nn.LPPool2d, nn.Upsample),
    *(nn.AdaptiveAvgPool1d, nn.AdaptiveAvgPool2d, nn.AdaptiveMaxPool1d, nn.AdaptiveMaxPool2d),
    *(nn.ZeroPad1d, nn.ZeroPad2d, nn.ReflectionPad1d, nn.ReflectionPad2d, nn.ReplicationPad1d, nn.ReplicationPad2d),
)

RULES: dict[type[nn.Module], Rule] = {
    nn.Linear: _linear_rule,
    _ConvNd: _convolution_rule,
    _NormBase: _batch_norm_rule,
    nn.GroupNorm: _group_norm_rule,
    nn.LayerNorm: _layer_norm_rule,
    nn.PReLU: _prelu_rule,
    **dict.fromkeys((nn.Embedding, nn.EmbeddingBag), lambda step, _: Fixed(step.call.place)),
    nn.GLU: lambda step, layer: gate_rule(step, layer.dim),
    nn.Flatten: lambda step, layer: flatten_rule(step, layer.start_dim, layer.end_dim),
    nn.Softmax: lambda step, layer: softmax_rule(step, layer.dim),
    nn.LogSoftmax: lambda step, layer: softmax_rule(step, layer.dim),
    **dict.fromkeys(POINTWISE, _same_rule),
    **dict.fromkeys(POOLING, lambda step, _: spatial_rule(step)),
}


def module_rule(step: Step) -> Whereabouts:
    """Return where the units lie after a layer, by the rule of the first of its classes that has one."""
    layer = step.call.module
    for kind in type(layer).__mro__:
        if kind in RULES:
            return RULES[kind](step, layer)
    raise NotUnderstoodError("no rule for this kind of layer")
