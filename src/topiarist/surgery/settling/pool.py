"""Calibration samples in one place, with the answers of the whole network to them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from topiarist.models.buffers import keeping_buffers
from topiarist.models.evaluation import evaluating, numbers_of
from topiarist.randomness import isolated
from topiarist.surgery.calibration import unreadable
from topiarist.surgery.settling.divergence import Answers
from topiarist.tracing.running import Args, Kwargs
from topiarist.tracing.trace import wanted_outputs

Inputs = tuple[Args, Kwargs]
CHECKED_ROWS = 8  # in two orders: enough to tell whether a network treats samples by themselves


@dataclass(frozen=True)
class AnsweredBatch:
    """Inputs of a call with the answers of the whole network, and for how many samples."""

    inputs: Inputs
    answers: Answers
    samples: int


def answers_of(model: nn.Module, inputs: Inputs) -> list[Tensor]:
    """Return what a network answers: the tensors of real numbers that it is run for."""
    args, kwargs = cloned(inputs)
    try:
        with evaluating(model), isolated(0, numbers_of(model).device), keeping_buffers(model):
            return real_outputs(model(*args, **kwargs))
    except (RuntimeError, ValueError, TypeError) as error:
        raise unreadable(error) from error


def real_outputs(given: Any) -> list[Tensor]:
    """Return the tensors of real numbers among what a network returned."""
    return [tensor for tensor in wanted_outputs(given) if tensor.is_floating_point() and tensor.numel()]


@dataclass(frozen=True)
class SamplePool:
    """Samples of all batches in one tensor for each argument; other arguments are the same for all."""

    args: Args
    kwargs: Kwargs
    answers: list[Tensor]

    @classmethod
    def of(cls, inputs: Sequence[Inputs], answers: Sequence[Answers]) -> "SamplePool | None":
        """Put batches together; None where they do not go together."""
        counts = [
            _rows_of([*args, *kwargs.values(), *found]) for (args, kwargs), found in zip(inputs, answers, strict=True)
        ]
        if None in counts or len({(len(args), tuple(kwargs)) for args, kwargs in inputs}) > 1:
            return None
        first = inputs[0]
        columns = [joined([args[place] for args, _ in inputs]) for place in range(len(first[0]))]
        named = {name: joined([kwargs[name] for _, kwargs in inputs]) for name in first[1]}
        given = [joined([found[place] for found in answers]) for place in range(len(answers[0]))]
        everything = [*columns, *named.values(), *given]
        if any(each is NotImplemented for each in everything):
            return None
        return cls(tuple(columns), named, given)

    def with_room(self, times: int) -> "SamplePool":
        """Return the samples, with room behind them for so many times as many; themselves where none is wanted."""
        if not times:
            return self

        def widened(value: Any) -> Any:
            if not isinstance(value, Tensor):
                return value
            found = value.new_empty((times + 1) * len(value), *value.shape[1:])
            found[: len(value)] = value
            return found

        named = {name: widened(value) for name, value in self.kwargs.items()}
        return SamplePool(tuple(map(widened, self.args)), named, list(map(widened, self.answers)))

    def put(self, at: int, others: "SamplePool") -> None:
        """Write other samples in the place of those from a number on."""
        pairs = [*zip(self.args, others.args, strict=True), *zip(self.answers, others.answers, strict=True)]
        pairs += [(value, others.kwargs[name]) for name, value in self.kwargs.items()]
        for own, other in pairs:
            if isinstance(own, Tensor):
                own[at : at + len(other)] = other

    def first(self, count: int) -> "SamplePool":
        """Return the first samples, which are not copied."""

        def seen(value: Any) -> Any:
            return value[:count] if isinstance(value, Tensor) else value

        named = {name: seen(value) for name, value in self.kwargs.items()}
        return SamplePool(tuple(map(seen, self.args)), named, list(map(seen, self.answers)))

    def __len__(self) -> int:
        values = (*self.args, *self.kwargs.values(), *self.answers)
        return len(next(value for value in values if isinstance(value, Tensor)))

    @property
    def nbytes(self) -> int:
        """How many bytes samples and answers take."""
        values = (*self.args, *self.kwargs.values(), *self.answers)
        return sum(value.nbytes for value in values if isinstance(value, Tensor))

    @property
    def is_of_images(self) -> bool:
        """Whether a sample is an image or another field of channels: a tensor of three axes or more."""
        return any(isinstance(value, Tensor) and value.ndim > 3 for value in (*self.args, *self.kwargs.values()))

    @property
    def is_of_numbers(self) -> bool:
        """Whether all tensors of a sample are finite real numbers, not places in a list as those of words."""
        tensors = [value for value in (*self.args, *self.kwargs.values()) if isinstance(value, Tensor)]
        return bool(tensors) and all(value.is_floating_point() and bool(value.isfinite().all()) for value in tensors)

    def rows(self, numbers: Tensor) -> AnsweredBatch:
        """Return some of the samples."""
        args = tuple(picked(value, numbers) for value in self.args)
        kwargs = {name: picked(value, numbers) for name, value in self.kwargs.items()}
        return AnsweredBatch((args, kwargs), [picked(value, numbers) for value in self.answers], len(numbers))

    def is_row_by_row(self, model: nn.Module) -> bool:
        """Return whether a network answers each sample by itself: in another order, it answers the same."""
        forward = torch.arange(min(CHECKED_ROWS, len(self)))
        there = answers_of(model, self.rows(forward).inputs)
        back = answers_of(model, self.rows(forward.flip(0)).inputs)
        return len(there) == len(back) and all(
            one.shape == other.shape and len(one) == len(forward) and _near(one, other.flip(0))
            for one, other in zip(there, back, strict=True)
        )


def _near(one: Tensor, other: Tensor) -> bool:
    finite = one.isfinite()
    if not torch.equal(finite, other.isfinite()):
        return False
    one, other = one[finite], other[finite]
    return not one.numel() or bool((one - other).abs().max() <= 1e-3 * one.abs().max())


def _rows_of(values: Sequence[Any]) -> int | None:
    """Return how many rows all tensors have; None where they differ, or there is none."""
    rows = {len(value) if value.ndim else None for value in values if isinstance(value, Tensor)}
    return rows.pop() if len(rows) == 1 else None


def joined(values: Sequence[Any]) -> Any:
    """Return tensors one below the other, or the one value that all are; NotImplemented where neither can be."""
    first = values[0]
    if isinstance(first, Tensor):
        alike = all(isinstance(each, Tensor) and each.shape[1:] == first.shape[1:] for each in values)
        if not alike:
            return NotImplemented
        return first if len(values) == 1 else torch.cat(list(values))
    plain = isinstance(first, (bool, int, float, str, type(None)))
    return first if plain and all(each == first for each in values) else NotImplemented


def picked(value: Any, numbers: Tensor) -> Any:
    """Return some rows of a tensor, and any other value as it is."""
    return value.index_select(0, numbers.to(value.device)) if isinstance(value, Tensor) else value


def cloned(inputs: Inputs) -> Inputs:
    """Return inputs that forward may write into."""
    args, kwargs = inputs
    return (
        tuple(value.clone() if isinstance(value, Tensor) else value for value in args),
        {name: value.clone() if isinstance(value, Tensor) else value for name, value in kwargs.items()},
    )


def samples_in(inputs: Inputs) -> int:
    """Return how many samples the arguments of a call hold."""
    args, kwargs = inputs
    tensors = [value for value in (*args, *kwargs.values()) if isinstance(value, Tensor) and value.ndim]
    return len(tensors[0]) if tensors else 1
