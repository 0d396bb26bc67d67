"""Calibration data: samples that show what a network's units do, and what layers read and return of them.

They are read in batches, as often as needed; a network that is watched stops as soon as all is seen.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from inspect import Parameter, signature
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle

from topiarist.errors import DataError, ModelError, first_line
from topiarist.models.attention import free_attention
from topiarist.models.evaluation import evaluating, numbers_of
from topiarist.randomness import isolated
from topiarist.tracing import ExampleInput, Inputs
from topiarist.tracing.running import Args, Kwargs, arguments

Calibration = Tensor | tuple[Tensor, ...] | Mapping[str, Tensor] | Iterable[Any]
Watched = tuple[Tensor, Tensor]
BATCH_SIZE = 256  # activations of a batch must fit in memory; results do not depend on it


class CalibrationBatches:
    """Calibration data as the arguments of calls, batch by batch.

    A tensor, a tuple of tensors (one per argument) and a mapping by name hold all samples, and are cut into batches.
    Any other iterable yields batches: tensors, mappings, or sequences that begin with the arguments, as `DataLoader`s
    do; `inputs` is the number of arguments that the network takes.
    """

    def __init__(self, calibration: Calibration, model: nn.Module, inputs: int) -> None:
        if not isinstance(calibration, Iterable):
            kind = type(calibration).__name__
            raise DataError(f"calibration data are a tensor, a tuple or a mapping of tensors, or batches; found {kind}")
        self.model, self.inputs = model, inputs
        self._samples: tuple[Tensor, ...] | None = None
        self._joined: Callable[[Sequence[Tensor]], Inputs] = tuple
        if isinstance(calibration, Tensor):
            self._samples, self._joined = (calibration,), lambda parts: parts[0]
        elif isinstance(calibration, Mapping):
            names = tuple(calibration)
            self._samples = tuple(calibration.values())
            self._joined = lambda parts: dict(zip(names, parts, strict=True))
        elif isinstance(calibration, tuple):
            self._samples = calibration
        else:  # it is read more than once
            self._batches = list(calibration) if isinstance(calibration, Iterator) else calibration
        if len({len(tensor) for tensor in self._samples or ()}) > 1:
            counts = ", ".join(str(len(tensor)) for tensor in self._samples or ())
            raise DataError(f"all arguments must have the same number of calibration samples; found {counts}")

    def __iter__(self) -> Iterator[tuple[Args, Kwargs]]:
        empty = True
        for batch in self._split():
            args, kwargs = arguments(self.model, batch)
            if all(len(value) for value in (*args, *kwargs.values()) if isinstance(value, Tensor) and value.ndim):
                empty = False
                yield args, kwargs
        if empty:
            raise DataError("the calibration data are empty")

    @property
    def samples(self) -> int | None:
        """Return how many samples there are; None where they come in batches."""
        return len(self._samples[0]) if self._samples else None

    def some(self, count: int) -> "CalibrationBatches":
        """Return so many of the samples, at even distances as they may be in order of class; all if in batches."""
        some = copy(self)
        if self._samples is not None and self._samples and count < len(self._samples[0]):
            picked = torch.arange(count) * len(self._samples[0]) // count
            some._samples = tuple(tensor[picked] for tensor in self._samples)
        return some

    def _split(self) -> Iterator[Inputs]:
        if self._samples is None:
            for batch in self._batches:
                yield tuple(batch[: self.inputs]) if isinstance(batch, (tuple, list)) else batch
        else:
            parts = (torch.split(tensor, BATCH_SIZE) for tensor in self._samples)
            yield from map(self._joined, zip(*parts, strict=True))


def batches_for(calibration: Calibration, model: nn.Module, example_input: ExampleInput | None) -> CalibrationBatches:
    """Return calibration data as batches for a network that is called as with an example input."""
    inputs = len(example_input) if isinstance(example_input, (tuple, list)) else 1
    return CalibrationBatches(calibration, model, inputs)


def batches_without_example(calibration: Calibration, model: nn.Module) -> CalibrationBatches:
    """Return calibration data as batches for a network that is called with as many arguments as its forward requires.

    The labels that a `DataLoader` yields behind them are none.
    """
    kinds = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
    asked = [each for each in signature(model.forward).parameters.values() if each.kind in kinds]
    return CalibrationBatches(calibration, model, max(sum(each.default is Parameter.empty for each in asked), 1))


class _SeenError(Exception):
    """All layers were seen; the rest of the network need not run."""


def watch(model: nn.Module, path: str, calls: int, args: Args, kwargs: Kwargs) -> list[Watched]:
    """Run a network on a batch until a layer has run so often; return what it read and returned each time."""
    seen: list[Watched] = []

    def remember(_: nn.Module, taken: Args, named: Kwargs, given: Tensor) -> None:
        seen.append((first_of(taken, named).detach().clone(), given.detach().clone()))  # others may write into them
        if len(seen) == calls:
            raise _SeenError

    _run_until_seen(model, [model.get_submodule(path).register_forward_hook(remember, with_kwargs=True)], args, kwargs)
    return seen


def watch_readers(
    model: nn.Module, calls: Mapping[str, int], batches: CalibrationBatches, remember: Callable[[str, Tensor], None]
) -> None:
    """Run a network on all batches, each until the last layer is called for the last time, which is `calls` times.

    `remember` gets the name of each layer that is called and what it is about to read.
    """
    left: list[str] = []

    def hook(path: str, taken: Args, named: Kwargs) -> None:
        if path in left:
            left.remove(path)
            remember(path, first_of(taken, named))
        if not left:
            raise _SeenError

    for args, kwargs in batches:
        left[:] = [path for path, count in calls.items() for _ in range(count)]
        handles = [
            model.get_submodule(path).register_forward_pre_hook(
                lambda _, taken, named, path=path: hook(path, taken, named), with_kwargs=True
            )
            for path in calls
        ]
        _run_until_seen(model, handles, args, kwargs)


def _run_until_seen(model: nn.Module, handles: Sequence[RemovableHandle], args: Args, kwargs: Kwargs) -> None:
    """Run a network until a hook has seen enough, and remove the hooks."""
    try:
        with evaluating(model), isolated(0, numbers_of(model).device), free_attention(model):
            model(*args, **kwargs)
    except _SeenError:
        pass
    except (RuntimeError, ValueError, TypeError) as error:
        raise unreadable(error) from error
    finally:
        for handle in handles:
            handle.remove()


def unreadable(error: Exception) -> ModelError:
    """Return what to raise where a network fails on calibration data."""
    return ModelError(f"the network cannot read the calibration data: {first_line(error)}")


def first_of(taken: Args, named: Kwargs) -> Tensor:
    """Return the tensor that a layer is called with, by position or by name."""
    first: Tensor = taken[0] if taken else named["input"]
    return first


def with_first(taken: Args, named: Kwargs, first: Tensor) -> tuple[Args, Kwargs]:
    """Return the arguments of a layer with another tensor in the place of the first."""
    return ((first, *taken[1:]), named) if taken else (taken, {**named, "input": first})
