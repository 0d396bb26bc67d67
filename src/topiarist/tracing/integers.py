"""Whole numbers with a memory: which attribute of which module, or which size of a tensor, each was computed from.

While a network is traced, the integers that its modules hold, and the sizes that its forward asks for, remember where
they come from, through any arithmetic. So every number that a `view`, a `split` or a slice is given leads back to what
has to be rewritten when units go; a literal in the code leads nowhere, and is named.
"""

import dis
import operator
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy
import torch
from numpy.typing import NDArray

from topiarist.tracing.labels import Labels
from topiarist.tracing.vectors import Vector

Copies = NDArray[numpy.int64]
Values = Mapping["Attribute", int]


class Counting(Protocol):
    """What counts the positions along an axis: labels, or someone who remembers what they said."""

    def count(self, vector: Vector, copies: Copies) -> int:
        """Return how many positions there are when each unit is there `copies` times."""


@dataclass(frozen=True)
class Attribute:
    """An integer that a module holds: the way to it from the module, by attributes, keys and positions."""

    module: str
    way: tuple[str | int, ...]

    def __str__(self) -> str:
        return ".".join(map(str, ("self", *self.way)))

    def value(self, labels: Counting, copies: Copies, values: Values) -> int:
        """Return what the attribute becomes."""
        return values[self]


@dataclass(frozen=True, eq=False)
class Size:
    """The size of a tensor along an axis with units, as `owner` knows them."""

    vector: Vector
    owner: Labels

    def __str__(self) -> str:
        return "size"

    def value(self, labels: Counting, copies: Copies, values: Values) -> int:
        """Return what the size becomes."""
        return labels.count(self.vector, copies)


@dataclass(frozen=True)
class Literal:
    """A number in the code, or one whose memory was lost."""

    number: float

    def __str__(self) -> str:
        return str(self.number)

    def value(self, labels: Counting, copies: Copies, values: Values) -> int:
        """Return the number."""
        return self.number  # type: ignore[return-value]  # a fraction in comparisons alone


@dataclass(frozen=True, eq=False)
class Computed:
    """A number that was computed from others."""

    function: Callable[[int, int], int]
    left: "Expression"
    right: "Expression"

    def __str__(self) -> str:
        return f"{self.left} {_SYMBOLS.get(self.function.__name__, self.function.__name__)} {self.right}"

    def value(self, labels: Counting, copies: Copies, values: Values) -> int:
        """Return what the number becomes."""
        left, right = (side.value(labels, copies, values) for side in (self.left, self.right))
        try:
            return self.function(left, right)
        except (ZeroDivisionError, OverflowError, ValueError, TypeError):
            return -1


_SYMBOLS = {
    **{"add": "+", "sub": "-", "mul": "*", "floordiv": "//", "mod": "%", "pow": "**"},
    **{"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="},
}
Expression = Attribute | Size | Literal | Computed


class Listener(Protocol):
    """What wants to know when code uses a number apart from torch's functions."""

    def used_as_value(self, number: "TrackedInt", how: str) -> None:
        """Note that a number becomes a value, as in a square root of it."""

    def compared(self, comparison: "Computed", found: bool) -> None:
        """Note that code compared two numbers, and what it found."""


LISTENERS: list[Listener] = []  # of the runs that are going on, the innermost last
COMPARISONS = (operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge)
_WRITTEN = {dis.opmap[name] for name in ("COMPARE_OP", "CONTAINS_OP") if name in dis.opmap}
_TORCH, _OWN = str(Path(torch.__file__).parent), str(Path(__file__).parent)


class TrackedInt(int):
    """An integer that remembers where it comes from."""

    expression: Expression

    def __float__(self) -> float:
        self._tell("float")
        return float(int(self))

    def __truediv__(self, other: Any) -> Any:
        self._tell("/")
        return int(self) / other

    def __rtruediv__(self, other: Any) -> Any:
        self._tell("/")
        return other / int(self)

    def __neg__(self) -> Any:
        return 0 - self

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **settings: Any) -> Any:
        """Compute what a function of numpy does, such as a root; the number becomes a value."""
        self._tell(ufunc.__name__)
        plain = [int(each) if isinstance(each, TrackedInt) else each for each in inputs]
        return getattr(ufunc, method)(*plain, **settings)

    def item(self) -> "TrackedInt":
        """Return itself, in the place of one of numpy's integers."""
        return self

    def _tell(self, how: str) -> None:
        if LISTENERS:
            LISTENERS[-1].used_as_value(self, how)

    __hash__ = int.__hash__

    def __deepcopy__(self, memo: Any) -> int:
        return int(self)

    def __reduce__(self) -> Any:
        return int, (int(self),)


def tracked(number: int, expression: Expression) -> TrackedInt:
    """Return an integer with its memory."""
    made = TrackedInt(number)
    made.expression = expression
    return made


def expression_of(number: int) -> Expression:
    """Return where a number comes from."""
    return number.expression if isinstance(number, TrackedInt) else Literal(int(number))


def _compare(function: Callable[[Any, Any], bool]) -> Callable[[TrackedInt, Any], bool]:
    plain = getattr(int, f"__{function.__name__}__")

    def method(self: TrackedInt, other: Any) -> bool:
        found: bool = plain(self, other)
        if LISTENERS and isinstance(other, (int, float)) and not isinstance(other, bool) and _is_written(function):
            right = expression_of(other) if isinstance(other, int) else Literal(other)
            LISTENERS[-1].compared(Computed(function, self.expression, right), found)
        return found

    return method


def _is_written(function: Callable[[Any, Any], bool]) -> bool:
    """Return whether code compares two numbers as such: tracing's and torch's own do not count, nor a look-up."""
    frame = sys._getframe(2)
    if frame.f_code.co_filename.startswith(_OWN):
        return False
    if function not in (operator.eq, operator.ne):
        return not frame.f_code.co_filename.startswith(_TORCH)
    return frame.f_code.co_code[frame.f_lasti] in _WRITTEN


for _comparison in COMPARISONS:
    setattr(TrackedInt, f"__{_comparison.__name__}__", _compare(_comparison))


def _remember(function: Callable[[int, int], int], *, reflected: bool) -> Callable[[TrackedInt, Any], Any]:
    def method(self: TrackedInt, other: Any) -> Any:
        if not isinstance(other, int) or isinstance(other, bool):
            if isinstance(other, float):
                self._tell(function.__name__)
            return function(other, int(self)) if reflected else function(int(self), other)
        left, right = (other, self) if reflected else (self, other)
        found = function(int(left), int(right))
        if not isinstance(found, int):
            self._tell(function.__name__)
            return found
        return tracked(found, Computed(function, expression_of(left), expression_of(right)))

    return method


for _function in (operator.add, operator.sub, operator.mul, operator.floordiv, operator.mod, operator.pow):
    for _reflected in (False, True):
        _name = f"__{'r' if _reflected else ''}{_function.__name__}__"
        setattr(TrackedInt, _name, _remember(_function, reflected=_reflected))


def expressions_within(expression: Expression) -> Iterator[Expression]:
    """Yield an expression and all that it is computed from."""
    yield expression
    if isinstance(expression, Computed):
        yield from expressions_within(expression.left)
        yield from expressions_within(expression.right)
