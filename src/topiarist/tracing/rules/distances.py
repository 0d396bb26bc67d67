"""Distances between rows: the columns are summed over, as in a product, and the rows pass."""

from torch import Tensor

from topiarist.tracing.operation import Operation, rule_for
from topiarist.tracing.units import Mark


@rule_for("_cdist_forward")
def distances(operation: Operation) -> None:
    """Compare every row of one matrix with every row of another: a column that both lack adds nothing."""
    left, right = operation.inputs[:2]
    one, other = operation.axes(left), operation.axes(right)
    without = left if one[-1] is None else right
    operation.tie(one[-1], other[-1], operation.tracer.source_of([without]))
    operation.mark(one[-1], Mark.ESCAPED)
    for place in range(-left.ndim, -2):
        operation.tie(one[place], other[place])
    for tensor in (left, right):
        _note_roles(operation, tensor)
    operation.give([*one[:-1], other[-2]])


@rule_for("_pdist_forward")
def distances_within(operation: Operation) -> None:
    """Compare every row of a matrix with every later one: the pairs are listed, so no row can go."""
    rows, columns = operation.axes(operation.inputs[0])
    operation.fix(rows, "'pdist' lists pairs of them")
    operation.mark(columns, Mark.ESCAPED)
    _note_roles(operation, operation.inputs[0])
    operation.give([None])


def _note_roles(operation: Operation, tensor: Tensor) -> None:
    """Remember that a parameter reads the units along its columns, and writes those along its rows."""
    operation.tracer.note_role(tensor, tensor.ndim - 1, "reads")
    operation.tracer.note_role(tensor, tensor.ndim - 2, "writes")
