"""Values that a mask picks from the whole of a tensor."""

import math

from topiarist.tracing.operation import Operation, rule_for
from topiarist.tracing.vectors import Axes

_BY_VALUE = "their values decide how many positions come out"


@rule_for("masked_select")
def masked_select(operation: Operation) -> None:
    """List the values that a mask picks: where it picks whole rows, the units along them follow one another."""
    x, mask = operation.arguments["self"], operation.arguments["mask"]
    given, axes = operation.outputs[0], operation.axes(x)
    whole = 0  # last axes along which the mask has one value for all positions
    while whole < x.ndim and (whole >= mask.ndim or mask.shape[-1 - whole] == 1 or mask.stride(-1 - whole) == 0):
        whole += 1
    if mask.ndim > x.ndim:
        whole = 0
    picking = x.ndim - whole
    for vector in axes[:picking]:
        operation.fix(vector, _BY_VALUE)
    for axis, vector in enumerate(operation.axes(mask), -mask.ndim):
        if axis >= -whole and mask.shape[axis] > 1:
            operation.tie(axes[axis], vector)
        else:
            operation.fix(vector, _BY_VALUE)
    sizes = list(x.shape[picking:])
    rows = given.numel() // max(math.prod(sizes), 1)
    inner: Axes = [None, *axes[picking:]]
    operation.give([operation.labels.merge(inner, [rows, *sizes]) if rows else None])
