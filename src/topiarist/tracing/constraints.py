"""What a network's code asks of its integers: every number that decides a size, and the units that it counts."""

import operator
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy
import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_leaves

from topiarist.tracing.integers import (
    COMPARISONS,
    LISTENERS,
    Computed,
    Copies,
    Counting,
    Expression,
    Literal,
    Size,
    TrackedInt,
    expression_of,
    expressions_within,
    tracked,
)
from topiarist.tracing.numbers_given import HANDLERS
from topiarist.tracing.operation import line_of_user
from topiarist.tracing.remedies import OWN_NUMBER
from topiarist.tracing.tracer import Tracer
from topiarist.tracing.vectors import Vector

COMPARING = ("multi_head_attention_forward",)  # torch's own code compares numbers, which are noted all the same
SCALING = ("mul", "mul_", "div", "div_", "true_divide", "multiply", "divide")


@dataclass(frozen=True, eq=False)
class Constraint:
    """A number in the code that must stay equal to a count of positions.

    Parameters
    ----------
    expression, old : Expression, int
        Where the number comes from, and what it is now.
    vector : Vector, optional
        The units along the axis that it counts; without, the number must not change.
    sign : int
        -1 where it counts from the end.
    function, place, line : str
        What it is given to, in which module and where in the code.
    soft : bool
        Whether it multiplies or divides values, as the root of a number of dims does: weights can make up for that.
    """

    expression: Expression
    old: int
    vector: Vector | None
    sign: int
    function: str
    place: str
    line: str
    soft: bool = False

    @property
    def is_comparison(self) -> bool:
        """Return whether it is the answer to a comparison that must stay."""
        return isinstance(self.expression, Computed) and self.expression.function in COMPARISONS

    def required(self, labels: Counting, copies: Copies) -> int:
        """Return what the number has to become."""
        return self.old if self.vector is None else self.sign * labels.count(self.vector, copies)

    def __str__(self) -> str:
        where = f"'{self.place}'" if self.place else "the network's forward"
        if isinstance(self.expression, Literal):
            return (
                f"`{self.function}` in {where} has the number {self.expression}{self.line}: write -1, a size of the"
                " tensor or an attribute there"
            )
        if self.is_comparison:
            compares = f"{where} compares numbers of units ({self.expression}{self.line})"
            return f"{compares}, and the answer would change; {OWN_NUMBER}"
        what = "needs another number than" if self.vector is not None else "uses"
        return f"`{self.function}` in {where} {what} {self.expression}{self.line}; {OWN_NUMBER}"


class IntegerWatch(TorchFunctionMode):
    """Sees every call of torch's functions, and notes what numbers they are given."""

    def __init__(self, tracer: Tracer, constraints: list[Constraint]) -> None:
        super().__init__()
        self.tracer = tracer
        self.constraints = constraints
        self.quiet = False  # inside of layers whose integers follow from their parameters

    def __torch_function__(self, func: Any, types: Sequence[Any], args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        name = getattr(func, "__name__", "")
        quiet, self.quiet = self.quiet, self.quiet or name in COMPARING
        try:
            output = func(*args, **kwargs)
        finally:
            self.quiet = quiet
        if quiet:
            return output
        if name == "__get__":
            return torch.Size(self._sizes(args[0], output)) if isinstance(output, torch.Size) else output
        if name == "size":
            if isinstance(output, torch.Size):
                return torch.Size(self._sizes(args[0], output))
            place = args[1] if len(args) > 1 else kwargs["dim"]
            return self._sizes(args[0], args[0].shape)[place]
        handler = HANDLERS.get(name)
        if handler is not None:
            handler(self, name, args, kwargs, output)
        else:
            self._must_stay(name, (args, kwargs))
        return output

    def __enter__(self) -> "IntegerWatch":
        LISTENERS.append(self)
        super().__enter__()  # type: ignore[no-untyped-call]
        return self

    def __exit__(self, *error: Any) -> None:
        super().__exit__(*error)  # type: ignore[no-untyped-call]
        LISTENERS.remove(self)

    def used_as_value(self, number: TrackedInt, how: str) -> None:
        """Note a number that becomes a value: it must not change."""
        if not self.quiet:
            self.note(how, number, None, soft=True)

    def compared(self, comparison: Computed, found: bool) -> None:
        """Note a comparison: two numbers that are equal have to stay so, and any other answer has to stay as it is."""
        sides = comparison.left, comparison.right
        if self.quiet or not self._is_ours(comparison):
            return
        if found is (comparison.function is operator.eq) and comparison.function in (operator.eq, operator.ne):
            for size, other in (sides, sides[::-1]):
                if isinstance(size, Size):
                    self._add("==", other, len(size.vector), size.vector)
                    return
        self._add("comparison", comparison, int(found), None)

    def _sizes(self, tensor: Tensor, sizes: Sequence[int]) -> list[int]:
        """Return the sizes of a tensor; those of axes with units remember that."""
        axes = self.tracer.axes(tensor)
        pairs = zip(sizes, axes, strict=True)
        return [
            int(size) if vector is None else tracked(size, Size(vector, self.tracer.labels)) for size, vector in pairs
        ]

    def note(self, name: str, number: Any, vector: Vector | None, sign: int = 1, *, soft: bool = False) -> None:
        """Note a number that counts units, or one that must not change."""
        number = int(number) if isinstance(number, numpy.integer) else number
        if isinstance(number, bool) or not isinstance(number, int):
            return
        if vector is None and not isinstance(number, TrackedInt):
            return
        if isinstance(number, TrackedInt) and not self._is_ours(number.expression):
            return
        self._add(name, expression_of(number), int(number), vector, sign, soft)

    def _add(
        self, name: str, expression: Expression, old: int, vector: Vector | None, sign: int = 1, soft: bool = False
    ) -> None:
        place, line = self.tracer.modules[-1], line_of_user()
        self.constraints.append(Constraint(expression, old, vector, sign, name.strip("_"), place, line, soft))

    def _is_ours(self, expression: Expression) -> bool:
        """Return whether a number belongs to this run: some code keeps numbers from one run to the next."""
        sizes = (part for part in expressions_within(expression) if isinstance(part, Size))
        return all(size.owner is self.tracer.labels for size in sizes)

    def _must_stay(self, name: str, given: Any) -> None:
        for leaf in tree_leaves(given):
            if isinstance(leaf, TrackedInt):
                self.note(name, leaf, None, soft=name in SCALING)
