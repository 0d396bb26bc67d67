"""Products that sum over an axis: the summed units are tied, the others pass."""

from collections.abc import Sequence

from torch import Tensor

from topiarist.tracing.operation import Operation, rule_for
from topiarist.tracing.remedies import CHANNELS, LAYER
from topiarist.tracing.rules.pointwise import broadcast
from topiarist.tracing.units import Mark
from topiarist.tracing.vectors import Axes, Vector


def _contract(operation: Operation, left: Tensor, left_axis: int, right: Tensor, right_axis: int) -> None:
    """Tie the units that are summed over, and remember which parameter reads and writes them."""
    one, other = operation.axes(left)[left_axis], operation.axes(right)[right_axis]
    without = left if one is None else right
    operation.tie(one, other, operation.tracer.source_of([without]))
    read = operation.tracer.reads_along(left, left_axis) or operation.tracer.reads_along(right, right_axis)
    if one is not None and other is not None and not read:
        operation.mark(one, Mark.ESCAPED)
    _note_product(operation, left, left_axis, right, right_axis)
    for tensor, axis in ((left, left_axis), (right, right_axis)):
        for place in range(tensor.ndim):
            operation.tracer.note_role(tensor, place, "reads" if place == axis % tensor.ndim else "writes")


def _note_product(operation: Operation, left: Tensor, left_axis: int, right: Tensor, right_axis: int) -> None:
    """Count the products: along all axes of the first, and those of the second that are not summed, nor one by one."""
    batched = left.ndim == right.ndim == 3
    one, other = operation.axes(left), operation.axes(right)
    taken = [(size, vector) for size, vector in zip(left.shape, one, strict=True)]
    if one[left_axis] is None:
        taken[left_axis] = right.shape[right_axis], other[right_axis]
    if batched and one[0] is None:
        taken[0] = right.shape[0], other[0]
    left_out = {right_axis, 0} if right.ndim == 3 else {right_axis}
    taken += [(right.shape[place], other[place]) for place in range(right.ndim) if place not in left_out]
    operation.tracer.note_product(taken, (left, right))


def _product_origin(operation: Operation, left: Tensor, right: Tensor) -> None:
    """Let the product of two parameters count as made of the first, along its own axis, then of the second."""
    tracer = operation.tracer
    one, other = tracer.origin(left), tracer.origin(right)
    if one is not None and other is not None and operation.outputs[0].ndim == 2:
        tracer.set_origin(operation.outputs[0], type(one)(one.name, (one.dimensions[0], None)))


@rule_for("mm")
def matrix_product(operation: Operation) -> None:
    """Sum over the columns of the first and the rows of the second."""
    left, right = operation.inputs[:2]
    _contract(operation, left, 1, right, 0)
    operation.give([operation.axes(left)[0], operation.axes(right)[1]])
    _product_origin(operation, left, right)


@rule_for("addmm")
def added_matrix_product(operation: Operation) -> None:
    """Add a matrix product to a tensor."""
    added, left, right = operation.inputs[:3]
    _contract(operation, left, 1, right, 0)
    operation.give([operation.axes(left)[0], operation.axes(right)[1]])
    operation.give(broadcast(operation, [operation.outputs[0], added], operation.outputs[0]))
    _note_bias(operation, added)


def _note_bias(operation: Operation, added: Tensor) -> None:
    for place in range(added.ndim):
        operation.tracer.note_role(added, place, "writes")


@rule_for("bmm")
def batched_product(operation: Operation) -> None:
    """Multiply matrices one by one."""
    left, right = operation.inputs[:2]
    _batched(operation, left, right)


@rule_for("baddbmm")
def added_batched_product(operation: Operation) -> None:
    """Add products of matrices to a tensor."""
    added, left, right = operation.inputs[:3]
    _batched(operation, left, right)
    operation.give(broadcast(operation, [operation.outputs[0], added], operation.outputs[0]))


def _batched(operation: Operation, left: Tensor, right: Tensor) -> None:
    _contract(operation, left, 2, right, 1)
    one, other = operation.axes(left), operation.axes(right)
    if left.shape[0] > 1:
        operation.tie(one[0], other[0])
    if all(operation.tracer.step_of(tensor) is not None for tensor in (left, right)):
        operation.mark(one[0], Mark.HEADS)
        operation.mark(other[2], Mark.DIMS)
    batch = None if one[0] is None or other[0] is None else one[0]
    operation.give([batch, one[1], other[2]])


@rule_for("_grouped_mm")
def grouped_product(operation: Operation) -> None:
    """Multiply rows by the matrix of their group, as mixtures of experts do."""
    left, right = operation.inputs[:2]
    axes, kernels = operation.axes(left), operation.axes(right)
    if left.ndim != 2 or right.ndim != 3:
        for vector in (*axes, *kernels):
            operation.fix(vector, "'_grouped_mm' is not understood with these shapes", LAYER)
        operation.give([None] * operation.outputs[0].ndim)
        return
    _contract(operation, left, 1, right, 1)
    operation.fix(kernels[0], "they are picked by numbers that the network computes", LAYER)
    operation.give([axes[0], kernels[2]])


@rule_for("mv")
def matrix_vector(operation: Operation) -> None:
    """Multiply a matrix and a vector."""
    left, right = operation.inputs[:2]
    _contract(operation, left, 1, right, 0)
    operation.give([operation.axes(left)[0]])


@rule_for("dot", "vdot")
def dot(operation: Operation) -> None:
    """Multiply two vectors."""
    _contract(operation, operation.inputs[0], 0, operation.inputs[1], 0)
    operation.give([])


@rule_for("convolution", "_convolution", "mkldnn_convolution", "convolution_overrideable")
def convolution(operation: Operation) -> None:
    """Read channels, groupwise or not, transposed or not; only positions that it reads one by one pass."""
    asked = operation.arguments
    x, weight, bias = asked["input"], asked["weight"], asked["bias"]
    transposed, groups = asked["transposed"], asked["groups"]
    taken, kernel = operation.axes(x), operation.axes(weight)
    passed = [vector if alone else None for vector, alone in zip(taken[2:], _read_one_by_one(operation), strict=True)]
    for vector, kept in zip(taken[2:], passed, strict=True):
        if kept is None:
            operation.fix(vector, "a convolution runs along them", CHANNELS)
    for vector in kernel[2:]:
        operation.fix(vector, "they are the positions of a kernel", CHANNELS)
    reads, writes = (0, 1) if transposed else (1, 0)
    operation.tracer.note_role(weight, reads, "reads")
    operation.tracer.note_role(weight, writes, "writes")
    if groups == 1:
        operation.tie(taken[1], kernel[reads], operation.tracer.source_of([x]))
        given = kernel[writes]
    else:
        given = _grouped(operation, x, weight, groups, transposed)
    operation.give([taken[0], given, *passed])
    shape, channels = (x.shape, taken[1]) if transposed else (operation.outputs[0].shape, given)
    axes = [(shape[0], taken[0]), (shape[1], channels), (weight.shape[1], kernel[1])]
    axes += [*zip(shape[2:], passed, strict=True), *((size, None) for size in weight.shape[2:])]
    operation.tracer.note_product(axes, (x, weight))
    if bias is not None:
        operation.tie(given, operation.axes(bias)[0])
        _note_bias(operation, bias)


def _read_one_by_one(operation: Operation) -> list[bool]:
    """Return for each axis behind the channels whether the kernel has one position there and meets each place once."""
    asked = operation.arguments
    x, given, weight = asked["input"], operation.outputs[0], asked["weight"]
    return [
        weight.shape[place] == 1 and x.shape[place] == given.shape[place] and not _of(asked["padding"], place - 2)
        for place in range(2, weight.ndim)
    ]


def _of(setting: int | Sequence[int], place: int) -> int:
    """Return a setting for one axis; a single number stands for all of them."""
    return setting if isinstance(setting, int) else setting[place % len(setting)]


def _grouped(operation: Operation, x: Tensor, weight: Tensor, groups: int, transposed: bool) -> Vector | None:
    """Tie groups to groups, and what each group reads within it; return the units that come out."""
    taken, kernel = operation.axes(x), operation.axes(weight)
    across, within = operation.split(kernel[0], [groups, weight.shape[0] // groups])
    given_across, given_within = operation.split(taken[1], [groups, x.shape[1] // groups])
    source = operation.tracer.source_of([x])
    operation.tie(given_across, across, source)
    operation.tie(given_within, within if transposed else kernel[1], source)
    operation.tracer.groups = across if given_across is not None else None
    operation.tracer.note_groups("groups")
    inner: Axes = [across, kernel[1]] if transposed else [across, within]
    return operation.labels.merge(inner, [groups, (weight.shape[1] if transposed else weight.shape[0] // groups)])


@rule_for("_embedding_bag", "_embedding_bag_forward_only")
def embedding_bag(operation: Operation) -> None:
    """Look up rows of a table by the input, and add or average those of each bag."""
    table = operation.inputs[0]
    rows, columns = operation.axes(table)
    operation.fix(rows, "they are looked up by the input")
    operation.tracer.note_role(table, 1, "writes")
    operation.give([None, columns])
    for given in operation.outputs[1:]:
        operation.give([None] * given.ndim, given)


@rule_for("embedding")
def embedding(operation: Operation) -> None:
    """Look up rows of a table by the input."""
    table, numbers = operation.inputs[:2]
    rows, columns = operation.axes(table)
    operation.fix(rows, "they are looked up by the input")
    operation.tracer.note_role(table, 1, "writes")
    operation.give([*operation.axes(numbers), columns])


def trilinear(
    first: Tensor,
    weight: Tensor,
    second: Tensor,
    expand_first: list[int],
    expand_weight: list[int],
    expand_second: list[int],
    summed: list[int],
    unrolled: int = 1,
) -> Tensor:
    """Return what `nn.Bilinear` computes, written out in operations that have rules."""
    for place in expand_first:
        first = first.unsqueeze(place)
    for place in expand_weight:
        weight = weight.unsqueeze(place)
    for place in expand_second:
        second = second.unsqueeze(place)
    return (first * weight * second).sum(summed)
