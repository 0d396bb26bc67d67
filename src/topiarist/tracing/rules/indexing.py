"""Operations that pick positions by numbers, and those that make tensors from nothing."""

from torch import Tensor

from topiarist.tracing.operation import Operation, rule_for
from topiarist.tracing.remedies import BUFFER, LAYER, ONE
from topiarist.tracing.vectors import Axes


@rule_for("index", "_unsafe_index")
def index(operation: Operation) -> None:
    """Pick positions by tensors of numbers, one for each axis or none."""
    x, numbers = operation.arguments["self"], operation.arguments["indices"]
    axes = operation.axes(x)
    used = [place for place, number in enumerate(numbers) if number is not None]
    if len(used) == 1 and _by_buffer(operation, x, used[0], numbers[used[0]]):
        return
    places: list[int] = []
    for place in used:  # a mask of several axes stands for all of them
        places += range(place, place + (numbers[place].ndim if str(numbers[place].dtype) == "torch.bool" else 1))
    for place in places:
        operation.fix(axes[place], "they are picked by numbers that the network computes", LAYER)
    for place in used:
        for vector in operation.axes(numbers[place]):
            operation.fix(vector, "they number others", LAYER)
    rest = [vector for place, vector in enumerate(axes) if place not in places]
    new = operation.outputs[0].ndim - len(rest)
    together = used == list(range(used[0], used[-1] + 1)) if used else True
    start = used[0] if used and together else 0
    operation.give([*rest[:start], *[None] * new, *rest[start:]])


@rule_for("index_select")
def index_select(operation: Operation) -> None:
    """Pick positions of one axis by a tensor of numbers."""
    x, numbers = operation.arguments["self"], operation.arguments["index"]
    place = operation.arguments["dim"] % max(x.ndim, 1)
    if not _by_buffer(operation, x, place, numbers):
        axes = list(operation.axes(x))
        operation.fix(axes[place], "they are picked by numbers", BUFFER)
        axes[place] = None
        operation.give(axes)


def _by_buffer(operation: Operation, x: Tensor, place: int, numbers: Tensor) -> bool:
    """Follow units that a buffer of whole numbers picks; the buffer's values will follow a cut."""
    tracer, vector = operation.tracer, operation.axes(x)[place]
    origin = tracer.origin(numbers)
    if vector is None or origin is None or numbers.ndim != 1 or numbers.is_floating_point():
        return False
    if str(numbers.dtype) == "torch.bool" or bool((numbers < 0).any()):
        return False
    picked = vector[numbers.cpu().numpy()]
    operation.tie(picked, operation.axes(numbers)[0])
    tracer.renumber(origin.name, vector)
    axes = list(operation.axes(x))
    axes[place] = picked
    operation.give(axes)
    return True


@rule_for("gather")
def gather(operation: Operation) -> None:
    """Pick along one axis, for each position of the others by itself."""
    asked = operation.arguments
    x, numbers = asked["self"], asked["index"]
    place = asked["dim"] % max(x.ndim, 1)
    operation.fix(operation.axes(x)[place], "they are picked by numbers that the network computes", LAYER)
    result: Axes = []
    for axis, (own, other) in enumerate(zip(operation.axes(x), operation.axes(numbers), strict=True)):
        if axis == place:
            operation.fix(other, "they number others", LAYER)
            result.append(None)
        else:
            if x.shape[axis] == numbers.shape[axis]:
                operation.tie(own, other)
            else:
                operation.fix(own, "some of them are left out", LAYER)
                operation.fix(other, "they number others", LAYER)
            result.append(own if x.shape[axis] == numbers.shape[axis] else None)
    operation.give(result)


@rule_for(
    "scatter",
    "scatter_add",
    "scatter_reduce",
    "index_add",
    "index_copy",
    "index_fill",
    "slice_scatter",
    "select_scatter",
)
def scatter(operation: Operation) -> None:
    """Write into one axis by numbers, along the others position by position."""
    asked = operation.arguments
    x = asked["self"]
    place = asked.get("dim", 0) % max(x.ndim, 1)
    axes = list(operation.axes(x))
    operation.fix(axes[place], "they are written to by numbers that the network computes", LAYER)
    for tensor in operation.inputs[1:]:
        if tensor.ndim == x.ndim:
            for axis, vector in enumerate(operation.axes(tensor)):
                if axis == place or tensor.shape[axis] != x.shape[axis]:
                    operation.fix(vector, "they are written to by numbers that the network computes", LAYER)
                elif x.shape[axis] > 1:
                    operation.tie(axes[axis], vector)
    axes[place] = None
    operation.give(axes)


@rule_for("index_put", "_index_put_impl", "_unsafe_index_put")
def index_put(operation: Operation) -> None:
    """Write to positions that tensors of numbers name."""
    asked = operation.arguments
    x, numbers, values = asked["self"], asked["indices"], asked["values"]
    axes = list(operation.axes(x))
    used = [place for place, number in enumerate(numbers) if number is not None]
    for place in used:
        operation.fix(axes[place], "they are written to by numbers that the network computes", LAYER)
    behind = x.ndim - (used[-1] + 1 if used else 0)
    for axis in range(1, behind + 1):
        if axis <= values.ndim and values.shape[-axis] == x.shape[-axis] > 1:
            operation.tie(axes[-axis], operation.axes(values)[-axis])
        elif axis <= values.ndim:
            operation.fix(operation.axes(values)[-axis], "one unit is spread over many", ONE)
    for axis in range(behind + 1, values.ndim + 1):
        operation.fix(operation.axes(values)[-axis], "they are written by numbers that the network computes", LAYER)
    operation.give(axes)


@rule_for("bucketize")
def bucketize(operation: Operation) -> None:
    """Number the bucket of each value by itself; none of the borders can go."""
    *numbers, borders = operation.inputs  # a single number is no tensor
    for vector in operation.axes(borders):
        operation.fix(vector, "they are borders that values are compared with")
    operation.give(operation.axes(numbers[0]) if numbers else [])


@rule_for("nonzero", "unique", "_unique2", "bincount", "histc", "searchsorted")
def by_values(operation: Operation) -> None:
    """Return as many positions as the values say."""
    for tensor in operation.inputs:
        for vector in operation.axes(tensor):
            operation.fix(vector, "their values decide how many positions come out", LAYER)
    for given in operation.outputs:
        operation.give([None] * given.ndim, given)


@rule_for(
    "zeros",
    "ones",
    "full",
    "empty",
    "rand",
    "randn",
    "randint",
    "new_zeros",
    "new_ones",
    "new_full",
    "new_empty",
    "new_empty_strided",
    "empty_strided",
    "empty_permuted",
)
def factory(operation: Operation) -> None:
    """Create fresh units along each axis of a tensor that is made from nothing."""
    given = operation.outputs[0]
    watched = not operation.tracer.inside_decomposition
    operation.give([operation.labels.create(size) if size > 1 and watched else None for size in given.shape])


@rule_for(
    "arange",
    "linspace",
    "logspace",
    "scalar_tensor",
    "eye",
    "tril_indices",
    "triu_indices",
    "randperm",
    "range",
    "one_hot",
    "full_scalar",
)
def without_units(operation: Operation) -> None:
    """Let a tensor whose values are numbers of positions have no units."""
    for given in operation.outputs:
        operation.give([None] * given.ndim, given)


@rule_for(
    "_local_scalar_dense",
    "item",
    "is_nonzero",
    "equal",
    "allclose",
    "_assert_async",
    "_assert_scalar",
    "sym_size",
    "sym_numel",
    "is_same_size",
)
def in_python(operation: Operation) -> None:
    """Let a value that forward looks at in Python be."""
