"""Recurrent layers over long sequences: a few steps show all that there is to see of their units."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy
import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import _disable_current_modes
from torch.utils._pytree import tree_leaves

from topiarist.tracing.leaves import Product
from topiarist.tracing.tracer import Tracer
from topiarist.tracing.vectors import Vector

STEPS = 3  # the first has the state that is given, the second that of a step, the third that of a step like itself
FUNCTIONS = frozenset({torch.lstm, torch.gru, torch.rnn_tanh, torch.rnn_relu})
_ARGUMENTS = 9  # of each of them, for tensors and for packed sequences


class Recurrences(TorchFunctionMode):
    """Follows a few steps of torch's recurrent functions, and runs all of them at once, where no one watches.

    Every step has the same weights, so that it ties what the steps before have tied. The values are those of all steps.
    Without a tracer, nothing is followed.
    """

    def __init__(self, tracer: Tracer | None = None) -> None:
        super().__init__()
        self.tracer = tracer

    def __torch_function__(self, func: Any, types: Sequence[Any], args: Any = (), kwargs: Any = None) -> Any:
        call = None if kwargs or func not in FUNCTIONS else _read(args)
        if call is None:
            return func(*args, **(kwargs or {}))
        if self.tracer is None:
            return _unwatched(func, args)
        if self.tracer.axes(args[0])[call.axis] is not None:  # the steps themselves are units
            return func(*args)
        return self._follow_few(self.tracer, func, args, call)

    def _follow_few(self, tracer: Tracer, func: Any, args: Any, call: "_Call") -> Any:
        before = len(tracer.products)
        few = func(*call.first_steps(args))
        states = tree_leaves(few)
        axes = tracer.axes(states[0])
        steps = call.extended(axes[call.axis])
        if steps is None and axes[call.axis] is not None:  # the steps have units of their own
            return func(*args)
        tracer.products[before:] = _scaled(tracer, tracer.products[before:], args, call)
        given = _unwatched(func, tracer.seen(args))
        longer = [*axes[: call.axis], steps, *axes[call.axis + 1 :]]
        for shown, tensor in zip(states, tree_leaves(given), strict=True):
            tracer.give_like(tensor, shown, longer if shown is states[0] else tracer.axes(shown))
        return given


@dataclass(frozen=True)
class _Call:
    """The axis of the steps, how many there are, and how many samples each has where they are packed."""

    axis: int
    steps: int
    samples: tuple[int, ...] = ()

    @property
    def rows(self) -> int:
        """Return how many positions there are along the axis."""
        return sum(self.samples) or self.steps

    @property
    def few_rows(self) -> int:
        """Return how many of them the first steps have."""
        return sum(self.samples[:STEPS]) or STEPS

    def first_steps(self, args: Any) -> Any:
        """Return the arguments for the first steps."""
        x, second, *others = args
        return x.narrow(self.axis, 0, self.few_rows), second[:STEPS] if self.samples else second, *others

    def extended(self, vector: Vector | None) -> Vector | None:
        """Return the units along all steps, given those along the first: the samples of each step have the same.

        None where they have none, or others in each step.
        """
        if vector is None or not self.samples:
            return None
        rows = [vector[:size] for size in self.samples]
        same = numpy.array_equal(numpy.concatenate(rows[:STEPS]), vector)
        return numpy.concatenate(rows) if same else None


def _read(args: Any) -> _Call | None:
    """Return what a call has to do; None where it has few steps, drops values at random, or is not understood."""
    if len(args) != _ARGUMENTS or not isinstance(args[0], Tensor):
        return None
    packed = _is_packed(args)
    dropout, training = args[6:8] if packed else args[5:7]
    axis = 0 if packed or not args[8] else 1
    call = _Call(axis, len(args[1]), tuple(args[1].tolist())) if packed else _Call(axis, args[0].shape[axis])
    return None if (dropout and training) or call.steps <= STEPS else call


def _is_packed(args: Any) -> bool:
    return isinstance(args[3], (list, tuple))


def _unwatched(func: Any, args: Any) -> Any:
    with torch._C.DisableTorchFunction(), _disable_current_modes():
        return func(*args)


def _scaled(tracer: Tracer, products: Sequence[Product], args: Any, call: _Call) -> list[Product]:
    """Return the multiplications of all rows, given those of a few: one entry for all along the same axes.

    Axes that no weight has count as numbers: in the first step alone, the batch has units, those of the zeros in it.
    """
    labels = tracer.labels
    weights = args[3 if _is_packed(args) else 2]
    axes = [labels.units_at(vector) for tensor in weights for vector in tracer.axes(tensor) if vector is not None]
    known = numpy.unique(numpy.concatenate([units.reshape(-1) for units in axes])) if axes else numpy.zeros(0, int)
    found: dict[tuple[bool, tuple[bytes, ...]], Product] = {}
    for product in products:
        times, own = product.times, []
        for units in map(labels.units_at, product.axes):
            if numpy.isin(units, known).any():
                own.append(units)
            else:
                times *= len(units)
        key = product.of_input, tuple(units.tobytes() for units in own)
        times += found[key].times if key in found else 0
        found[key] = Product(times, tuple(own), product.of_input)
    return [replace(each, times=each.times * call.rows // call.few_rows) for each in found.values()]
