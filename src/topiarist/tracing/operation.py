"""What a rule gets to see: one ATen operation that has just run, and the labels of the tensors that it took."""

import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.utils._pytree import tree_leaves

from topiarist.tracing.labels import Labels
from topiarist.tracing.remedies import BUFFER, LAYER, SIZES
from topiarist.tracing.units import Mark
from topiarist.tracing.vectors import Axes, Vector

if TYPE_CHECKING:
    from topiarist.tracing.tracer import Tracer

Rule = Callable[["Operation"], None]
RULES: dict[str, Rule] = {}
INPUT = "they come from '"
_NOT_THE_USERS = (str(Path(torch.__file__).parent), str(Path(__file__).parents[1]))


def register(name: str, rule: Rule) -> None:
    """Teach tracing an operation.

    Parameters
    ----------
    name : str
        The operation: "relu" for ATen's own, "mylib::twist" for one of yours (`torch.library`).
    rule : callable
        It gets the `Operation` that has just run, ties or fixes the units along the axes of what it took, and gives
        labels to what came out.

    Returns
    -------
    None
        The rule holds from now on, in the place of one that there was.

    Examples
    --------
    >>> def twist(operation):  # it reverses the channels: the first axis after the batch
    ...     axes = list(operation.axes(operation.inputs[0]))
    ...     axes[1] = None if axes[1] is None else axes[1][::-1]
    ...     operation.give(axes)
    >>> register("mylib::twist", twist)
    """
    RULES[name] = rule


def rule_for(*names: str) -> Callable[[Rule], Rule]:
    """Register a function as the rule of operations."""

    def add(rule: Rule) -> Rule:
        for name in names:
            register(name, rule)
        return rule

    return add


class Operation:
    """One operation that has just run.

    Parameters
    ----------
    name : str
        Its name, without "aten::" and without the underscore of operations that work in place.
    arguments : dict[str, Any]
        What it was called with, by the names of its schema.
    inputs, outputs : list[Tensor]
        The tensors that it took and returned, in order.
    """

    def __init__(self, tracer: "Tracer", name: str, function: Any, args: Any, kwargs: Any, output: Any) -> None:
        self.tracer, self.name, self.function = tracer, name, function
        self.args, self.kwargs, self.output = args, kwargs, output
        self.axes_before: Axes = []  # of a tensor that was changed in place
        self.shape_before: list[int] = []
        self.inputs = [leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, Tensor)]
        self.outputs = [leaf for leaf in tree_leaves(output) if isinstance(leaf, Tensor)]

    @property
    def labels(self) -> Labels:
        """Return the labels of the run."""
        return self.tracer.labels

    @property
    def arguments(self) -> dict[str, Any]:
        """Return all arguments by name, those that were left out with their defaults."""
        schema = self.function._schema.arguments
        given = {argument.name: value for argument, value in zip(schema, self.args, strict=False)}
        defaults = {argument.name: argument.default_value for argument in schema if argument.has_default_value()}
        return {**defaults, **given, **self.kwargs}

    def axes(self, tensor: Tensor) -> Axes:
        """Return the label vectors along the axes of a tensor."""
        return self.tracer.axes(tensor)

    def give(self, axes: Axes, tensor: Tensor | None = None) -> None:
        """Set the label vectors along the axes of a tensor that came out, by default the first."""
        self.tracer.set_axes(self.outputs[0] if tensor is None else tensor, axes)

    def tie(self, left: Vector | None, right: Vector | None, otherwise: str = "") -> None:
        """Tie the units along two axes; units that meet an axis without units are fixed."""
        if left is not None and right is not None:
            self.labels.tie(left, right, lambda: self.reason("they meet units that do not correspond to them", LAYER))
        elif left is not None or right is not None:
            vector = left if right is None else right
            assert vector is not None
            meets = otherwise or self.tracer.source_of(self.inputs)
            if meets.startswith(INPUT):
                self.tie(vector, self.tracer.source_units(meets, len(vector)))
            self.fix(vector, meets, BUFFER)

    def fix(self, vector: Vector | None, why: str, remedy: str = "") -> None:
        """Fix the units along an axis; `remedy` says what would free them."""
        if vector is not None:
            self.labels.fix(vector, lambda: self.reason(why, remedy))

    def source_units(self, tensor: Tensor, size: int) -> Vector:
        """Return the fixed units of a tensor that has none of its own: those of the input that it comes from."""
        why = self.tracer.source_of([tensor])
        return self.tracer.source_units(why if why.startswith(INPUT) else self.reason(why, BUFFER), size)

    def mark(self, vector: Vector | None, mark: Mark) -> None:
        """Mark the units along an axis."""
        if vector is not None:
            self.labels.mark(vector, mark)

    def split(self, vector: Vector | None, sizes: list[int]) -> Axes:
        """Return the vectors of an axis that becomes several."""
        return self.labels.split(vector, sizes, lambda: self.reason("its parts do not correspond to each other", SIZES))

    def reason(self, why: str, remedy: str = "") -> str:
        """Return a reason with operation, module, line of code and remedy; an input is reason enough."""
        if why.startswith(INPUT):
            return why
        where = f"({self.name} in {self.tracer.described_place()}{line_of_user()})"
        return f"{why} {where}; {remedy}" if remedy else f"{why} {where}"


def line_of_user() -> str:
    """Name the line of code, outside of torch and of this package, that is running: ', net.py line 12'."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code.co_name != "run_traced":
        if _is_users(frame.f_code.co_filename):
            return f", {Path(frame.f_code.co_filename).name} line {frame.f_lineno}"
        frame = frame.f_back
    return ""


def line_of_error(error: BaseException) -> str:
    """Name the last line of code, outside of torch and of this package, that an error came through."""
    found = ""
    trace = error.__traceback__
    while trace is not None:
        if _is_users(trace.tb_frame.f_code.co_filename):
            found = f", {Path(trace.tb_frame.f_code.co_filename).name} line {trace.tb_lineno}"
        trace = trace.tb_next
    return found


def _is_users(filename: str) -> bool:
    return not filename.startswith((*_NOT_THE_USERS, "<frozen"))
