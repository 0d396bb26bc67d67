"""Operations along an axis: sums read units, means and norms may lose some of them, the rest fixes them."""

from typing import Any

from torch import Tensor

from topiarist.tracing.operation import Operation, rule_for
from topiarist.tracing.remedies import BATCH_NORM, CHANNELS, LAYER, ONE
from topiarist.tracing.rules.neighbours import mixes_neighbours
from topiarist.tracing.rules.pointwise import follow_origin
from topiarist.tracing.units import Mark
from topiarist.tracing.vectors import Vector

SPATIAL = {
    1: "avg_pool1d max_pool1d adaptive_avg_pool1d upsample_nearest1d upsample_linear1d reflection_pad1d "
    "replication_pad1d _upsample_nearest_exact1d adaptive_max_pool1d max_pool1d_with_indices",
    2: "avg_pool2d max_pool2d max_pool2d_with_indices _adaptive_avg_pool2d adaptive_avg_pool2d adaptive_max_pool2d "
    "mkldnn_max_pool2d mkldnn_adaptive_avg_pool2d upsample_nearest2d upsample_bilinear2d upsample_bicubic2d "
    "_upsample_nearest_exact2d _upsample_bilinear2d_aa _upsample_bicubic2d_aa reflection_pad2d replication_pad2d "
    "fractional_max_pool2d max_unpool2d",
    3: "avg_pool3d max_pool3d max_pool3d_with_indices _adaptive_avg_pool3d adaptive_avg_pool3d adaptive_max_pool3d "
    "upsample_nearest3d upsample_trilinear3d _upsample_nearest_exact3d reflection_pad3d replication_pad3d "
    "mkldnn_max_pool3d fractional_max_pool3d max_unpool3d",
}
MEANS = ("mean", "var", "std", "var_mean", "std_mean")
SUMS = ("sum", "nansum", "linalg_vector_norm", "norm", "linalg_matrix_norm")
EXTREMES = (
    "amax",
    "amin",
    "max",
    "min",
    "argmax",
    "argmin",
    "any",
    "all",
    "prod",
    "logsumexp",
    "median",
    "aminmax",
    "mode",
)
ALONG = (
    *(
        "_softmax",
        "_log_softmax",
        "softmax",
        "log_softmax",
        "_safe_softmax",
        "cumsum",
        "cumprod",
        "sort",
        "topk",
        "argsort",
    ),
    *("cummax", "cummin", "logcumsumexp", "kthvalue", "_fft_r2c", "_fft_c2c", "_fft_c2r", "renorm", "unique_dim"),
)


def dimensions(operation: Operation, x: Tensor) -> list[int]:
    """Return the axes that an operation works along, all where it names none."""
    asked: Any = operation.arguments.get("dim", operation.arguments.get("axis"))
    if asked is None or (isinstance(asked, (list, tuple)) and not asked):
        return list(range(x.ndim))
    return [place % max(x.ndim, 1) for place in ([asked] if isinstance(asked, int) else asked)]


@rule_for(*MEANS, *SUMS, *EXTREMES)
def reduce(operation: Operation) -> None:
    """Leave out axes: sums and means read the units along them, extremes fix them."""
    x = operation.inputs[0]
    if len(operation.inputs) > 1:  # the larger of two tensors
        follow = [vector for tensor in operation.inputs for vector in operation.axes(tensor)]
        for vector in follow:
            operation.fix(vector, f"'{operation.name}' is not understood with two tensors", LAYER)
        for given in operation.outputs:
            operation.give([None] * given.ndim, given)
        return
    axes, along = operation.axes(x), dimensions(operation, x)
    for place in along:
        if operation.name in EXTREMES:
            operation.fix(axes[place], f"'{operation.name}' runs over them", LAYER)
        else:
            operation.mark(axes[place], Mark.AVERAGED if operation.name in MEANS else Mark.ESCAPED)
            if operation.name not in MEANS:
                operation.mark(axes[place], Mark.ESCAPED)
    for given in operation.outputs:
        if given.ndim == x.ndim:
            operation.give([None if place in along else axes[place] for place in range(x.ndim)], given)
        elif given.ndim == x.ndim - len(set(along)):
            operation.give([axes[place] for place in range(x.ndim) if place not in along], given)
        else:
            operation.give([None] * given.ndim, given)


@rule_for(*ALONG)
def along(operation: Operation) -> None:
    """Keep the axes that an operation does not run along."""
    x = operation.inputs[0]
    axes, places = operation.axes(x), dimensions(operation, x)
    if operation.arguments.get("dim", 0) is None:
        places = [x.ndim - 1]
    for place in places:
        operation.fix(axes[place], f"'{operation.name.strip('_')}' runs over them", LAYER)
    for given in operation.outputs:
        shorter = {place for place in places if given.shape[place] != x.shape[place]}
        operation.give([None if place in shorter else vector for place, vector in enumerate(axes)], given)


@rule_for("tril", "triu")
def triangle(operation: Operation) -> None:
    """Keep what lies on one side of the diagonal of the last two axes."""
    axes = operation.axes(operation.inputs[0])
    for vector in axes[-2:]:
        operation.fix(vector, f"'{operation.name}' goes by their numbers", LAYER)
    operation.give(list(axes))


def spatial(count: int) -> Any:
    """Return the rule of an operation that works along the last axes."""

    def rule(operation: Operation) -> None:
        axes = operation.axes(operation.inputs[0])
        mixed = mixes_neighbours(operation)
        why, remedy = (mixed, BATCH_NORM) if mixed else (f"'{operation.name}' runs along them", CHANNELS)
        for vector in axes[-count:]:
            operation.fix(vector, why, remedy)
        if operation.name.startswith("max_unpool"):  # numbers say where the values come from, channel by channel
            for vector, number in zip(axes, operation.axes(operation.inputs[1]), strict=True):
                operation.tie(vector, number)
        for given in operation.outputs:
            operation.give([*axes[:-count], *[None] * count], given)

    return rule


for number, names in SPATIAL.items():
    rule_for(*names.split())(spatial(number))


def _affine(operation: Operation, vector: Vector | None, *tensors: Tensor | None) -> None:
    """Tie what a norm has for each unit to the units."""
    for tensor in tensors:
        if tensor is not None and tensor.ndim:
            operation.tie(vector, operation.axes(tensor)[0])


@rule_for("native_layer_norm")
def layer_norm(operation: Operation) -> None:
    """Normalise over the last axes."""
    asked = operation.arguments
    x, count = asked["input"], len(asked["normalized_shape"])
    axes = operation.axes(x)
    for place in range(-count, 0):
        operation.mark(axes[place], Mark.AVERAGED)
        for tensor in (asked["weight"], asked["bias"]):
            if tensor is not None:
                operation.tie(axes[place], operation.axes(tensor)[place])
    _give_norm(operation, axes)


BATCH_NORMS = frozenset(
    {
        "native_batch_norm",
        "_native_batch_norm_legit_no_training",
        "_native_batch_norm_legit",
        "batch_norm",
        "cudnn_batch_norm",
        "_batch_norm_no_update",
        "_batch_norm_with_update",
        "_batch_norm_impl_index",
    }
)


@rule_for(*BATCH_NORMS)
def batch_norm(operation: Operation) -> None:
    """Normalise each channel by itself: by its own mean over all other axes, where it is asked to."""
    asked = operation.arguments
    axes = operation.axes(asked["input"])
    if asked.get("training"):
        for place, vector in enumerate(axes):
            if place != 1:
                operation.mark(vector, Mark.AVERAGED)
    means = [asked.get("running_mean"), asked.get("running_var")]
    _affine(operation, axes[1], asked.get("weight"), asked.get("bias"), *means)
    _give_norm(operation, axes)


@rule_for("native_group_norm", "group_norm")
def group_norm(operation: Operation) -> None:
    """Normalise over groups of channels."""
    asked = operation.arguments
    x = asked["input"]
    axes = operation.axes(x)
    groups: int = asked["group"] if "group" in asked else asked["num_groups"]
    across, within = operation.split(axes[1], [groups, x.shape[1] // groups])
    operation.mark(within, Mark.AVERAGED)
    _affine(operation, axes[1], asked.get("weight"), asked.get("bias"))
    operation.tracer.groups = across
    operation.tracer.note_groups("num_groups")
    _give_norm(operation, axes)


def _give_norm(operation: Operation, axes: Any) -> None:
    operation.give(list(axes))
    for given in operation.outputs[1:]:
        operation.give([None] * given.ndim, given)


@rule_for("_weight_norm_interface")
def weight_norm(operation: Operation) -> None:
    """Scale a direction to a length: one for each position of an axis."""
    asked = operation.arguments
    direction, length, place = asked["v"], asked["g"], asked.get("dim", 0)
    axes = operation.axes(direction)
    for axis, vector in enumerate(operation.axes(length)):
        if axis == place:
            operation.tie(axes[place], vector)
        else:
            operation.fix(vector, "one unit is spread over many", ONE)
    operation.give(list(axes))
    operation.give([axes[axis] if axis == place else None for axis in range(length.ndim)], operation.outputs[1])
    follow_origin(operation)
