"""Operations element by element: units that meet are tied, with broadcasting."""

from torch import Tensor

from topiarist.tracing.operation import Operation, rule_for
from topiarist.tracing.remedies import BUFFER, ONE
from topiarist.tracing.units import Mark
from topiarist.tracing.vectors import Axes, Vector


def combine(operation: Operation) -> None:
    """Tie the units of tensors that are combined element by element; what comes out has them too."""
    for given in operation.outputs:
        operation.give(broadcast(operation, operation.inputs, given), given)
    follow_origin(operation)


def broadcast(operation: Operation, tensors: list[Tensor], given: Tensor) -> Axes:
    """Return the label vectors of what tensors become that are broadcast together."""
    axes: Axes = []
    for place in range(-given.ndim, 0):
        axes.append(_meet(operation, tensors, place, given.shape[place]))
    _mark_modulated(operation, tensors, axes)
    return axes


def _meet(operation: Operation, tensors: list[Tensor], place: int, size: int) -> Vector | None:
    """Tie what tensors have along one axis, counted from the right."""
    found: Vector | None = None
    without: list[Tensor] = []
    for tensor in tensors:
        if tensor.ndim < -place:
            continue
        vector = operation.axes(tensor)[place]
        if tensor.shape[place] != size:
            operation.fix(vector, "one unit is spread over many", ONE)
        elif vector is None:
            without.append(tensor)
        elif found is None:
            found = vector
        else:
            operation.tie(found, vector)
    if found is not None and without and size > 1:
        operation.fix(found, operation.tracer.source_of(without), BUFFER)
    return found


def _mark_modulated(operation: Operation, tensors: list[Tensor], axes: Axes) -> None:
    """Mark units that are combined with values which depend on the input and are the same for all of them."""
    if len(tensors) < 2:
        return
    for place, vector in enumerate(axes, -len(axes)):
        if vector is not None and any(
            operation.tracer.step_of(tensor) is not None and (tensor.ndim < -place or tensor.shape[place] < len(vector))
            for tensor in tensors
        ):
            operation.mark(vector, Mark.MODULATED)


def follow_origin(operation: Operation) -> None:
    """Let what is computed from parameters alone count as the one of them with most axes."""
    tracer = operation.tracer
    origins = [tracer.origin(tensor) for tensor in operation.inputs]
    if any(tracer.step_of(tensor) is not None for tensor in operation.inputs):
        return
    for given in operation.outputs:
        fitting = [
            origin
            for tensor, origin in zip(operation.inputs, origins, strict=True)
            if origin is not None and tensor.shape == given.shape
        ]
        if fitting:
            tracer.set_origin(given, fitting[0])


@rule_for(
    *[
        "clone",
        "alias",
        "detach",
        "_to_copy",
        "to",
        "contiguous",
        "lift_fresh",
        "lift_fresh_copy",
        "lift",
        "dropout",
        "native_dropout",
        "copy",
        "fill",
        "zero",
        "positive",
    ],
    *[
        "masked_fill",
        "where",
        "bernoulli",
        "uniform",
        "normal",
        "_conj",
        "resolve_conj",
        "resolve_neg",
        "_fused_dropout",
        "rrelu_with_noise",
        "complex",
        "view_as_real_copy",
    ],
    *[
        "zeros_like",
        "ones_like",
        "full_like",
        "empty_like",
        "rand_like",
        "randn_like",
        "fake_quantize_per_tensor_affine",
    ],
)
def same(operation: Operation) -> None:
    """Let what comes out have the units of what goes in."""
    combine(operation)
