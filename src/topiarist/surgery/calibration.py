"""Calibration data: samples that show what a network's units do. They are read in batches, as often as needed."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from topiarist.errors import DataError
from topiarist.tracing import Inputs
from topiarist.tracing.graph import arguments

Calibration = Tensor | tuple[Tensor, ...] | Mapping[str, Tensor] | Iterable[Any]
BATCH_SIZE = 256


class Batches:
    """Calibration data as the arguments of calls, batch by batch.

    A tensor, a tuple of tensors (one an argument) and a mapping by name hold all samples, and are cut into batches. Any
    other iterable gives batches: tensors, mappings, or sequences that begin with the arguments, as `DataLoader`s give.
    """

    def __init__(self, calibration: Calibration, model: nn.Module, inputs: int) -> None:
        check(calibration)
        once = isinstance(calibration, Iterator)
        self.source: Any = list(calibration) if once else calibration  # it is read more than once
        self.model = model
        self.inputs = inputs

    def __iter__(self) -> Iterator[tuple[tuple[Any, ...], dict[str, Any]]]:
        empty = True
        for batch in self.split():
            args, kwargs = arguments(self.model, batch)
            if all(len(value) for value in (*args, *kwargs.values()) if isinstance(value, Tensor) and value.ndim):
                empty = False
                yield args, kwargs
        if empty:
            raise DataError("the calibration data are empty")

    def some(self, count: int) -> "Batches":
        """Give so many of the samples, spread evenly over all; all of them where they came in batches."""
        source = self.source
        if isinstance(source, Tensor):
            return self._of(spread(source, count))
        if isinstance(source, tuple):
            return self._of(tuple(spread(tensor, count) for tensor in source))
        if isinstance(source, Mapping):
            return self._of({name: spread(tensor, count) for name, tensor in source.items()})
        return self

    def _of(self, source: Calibration) -> "Batches":
        return Batches(source, self.model, self.inputs)

    def split(self) -> Iterator[Inputs]:
        """Give the batches as they are."""
        source = self.source
        if isinstance(source, Tensor):
            yield from torch.split(source, BATCH_SIZE)
        elif isinstance(source, tuple):
            yield from zip(*(torch.split(tensor, BATCH_SIZE) for tensor in source), strict=True)
        elif isinstance(source, Mapping):
            parts = (torch.split(tensor, BATCH_SIZE) for tensor in source.values())
            yield from (dict(zip(source, values, strict=True)) for values in zip(*parts, strict=True))
        else:
            for batch in source:
                yield tuple(batch[: self.inputs]) if isinstance(batch, (tuple, list)) else batch


def check(calibration: Calibration) -> None:
    """Refuse what holds no samples, or not the same number for each argument."""
    if not isinstance(calibration, Iterable):
        kind = type(calibration).__name__
        raise DataError(f"calibration data are a tensor, a tuple or a mapping of tensors, or batches; found {kind}")
    together = calibration.values() if isinstance(calibration, Mapping) else calibration
    if isinstance(calibration, (tuple, Mapping)) and len({len(tensor) for tensor in together}) > 1:
        counts = ", ".join(str(len(tensor)) for tensor in together)
        raise DataError(f"all arguments must have the same number of calibration samples; found {counts}")


def spread(samples: Tensor, count: int) -> Tensor:
    """Give samples at even distances, as they may lie in the order of their classes."""
    if count >= len(samples):
        return samples
    return samples[torch.arange(count) * len(samples) // count]


def count_inputs(example_input: Inputs | None) -> int:
    """Give how many arguments a network is called with."""
    return len(example_input) if isinstance(example_input, (tuple, list)) else 1
