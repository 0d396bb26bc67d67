"""A network as it is exported: the arithmetic of its preprocessing before it, answers after it, as one module.

Text is not arithmetic: a table with columns of text is read with these as zeros and ones, one input per category, and
dates as the numbers of their parts.
"""

from dataclasses import dataclass
from typing import Any, Literal

import numpy
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from topiarist.data import Preprocessing
from topiarist.data.columns.column import Column, fills_of, input_order, raw_numbers
from topiarist.data.preprocessing import as_array
from topiarist.data.projection import ColumnBlock
from topiarist.data.source import Features, is_table
from topiarist.models.evaluation import placed
from topiarist.storage.cells import CellInput
from topiarist.tasks import Regression, Task
from topiarist.tasks.probabilities import ProbabilityTask

Inputs = NDArray[Any]
FLOAT32_ROUNDING = 2.0**-24  # of a number
MOST_ROUNDING = 1e-5  # of what the network reads, whose spread is about 1


class Deployable(nn.Module):
    """A network that reads samples as they come and returns what is called by `outputs`, (n_samples, n_outputs) each.

    These are logits and probabilities, of classes or labels, or the numbers that a regression predicts, in the user's
    units; their type is float64 where float32 would round more than matters beside the spread of the targets.
    """

    centre: Tensor
    scale: Tensor

    def __init__(self, network: nn.Module, preprocessing: Preprocessing | None, task: Task | None = None) -> None:
        super().__init__()
        self.preparation = nn.Identity() if preprocessing is None else Preparation(preprocessing)
        self.network, self.kind = network, "classes" if task is None else task.kind
        self.temperature = task.temperature if isinstance(task, ProbabilityTask) else 1.0
        self.wide = isinstance(task, Regression) and FLOAT32_ROUNDING * _offset(task) > MOST_ROUNDING
        if isinstance(task, Regression):
            self.register_buffer("centre", torch.tensor(task.centre, dtype=torch.float64))
            self.register_buffer("scale", torch.tensor(task.scale, dtype=torch.float64))

    @property
    def outputs(self) -> tuple[str, ...]:
        """What the outputs of the exported file are called."""
        return ("numbers",) if self.kind == "numbers" else ("logits", "probabilities")

    def forward(self, samples: Tensor) -> tuple[Tensor, ...]:
        """Return logits and probabilities, or numbers."""
        found = self.network(self.preparation(samples))
        if self.kind == "classes":
            return found, self._scaled(found).softmax(dim=1)
        found = found.unsqueeze(1) if found.ndim == 1 else found
        if self.kind == "labels":
            return found, self._scaled(found).sigmoid()
        numbers = found.double() * self.scale + self.centre
        return (numbers if self.wide else numbers.float(),)

    def _scaled(self, logits: Tensor) -> Tensor:
        return logits if self.temperature == 1 else logits / self.temperature


def _offset(task: Regression) -> float:
    """Return how many deviations the numbers are away from zero."""
    return max(abs(centre) / scale for centre, scale in zip(task.centre, task.scale, strict=True))


class Preparation(nn.Module):
    """What a `Preprocessing` computes once text is encoded; in float64, as there."""

    fill: Tensor
    order: Tensor
    shift: Tensor
    scale: Tensor

    def __init__(self, preprocessing: Preprocessing) -> None:
        super().__init__()
        self.shape = preprocessing.input_shape
        self.unit = preprocessing.scaling == "unit"
        self.blocks = nn.ModuleList(Projection(block) for block in preprocessing.projection)
        self.widths = [block.columns for block in preprocessing.projection]
        marks = any(column.marks_gaps for column in preprocessing.columns)
        order = input_order(preprocessing.columns) if marks else []
        self.register_buffer("order", torch.tensor(order, dtype=torch.int64))
        per_channel = (-1, *[1] * (len(self.shape) - 1))
        self.register_buffer("fill", torch.tensor(_fill_of(preprocessing), dtype=torch.float64))
        for name in ("shift", "scale"):
            numbers = torch.tensor(getattr(preprocessing, name), dtype=torch.float64)
            self.register_buffer(name, numbers.reshape(per_channel))

    def forward(self, samples: Tensor) -> Tensor:
        """Return what the network reads (n_samples, *input_shape)."""
        x = samples.flatten(1)
        if self.unit or len(self.fill) or len(self.blocks) or len(self.shift):
            x = x.double()
        if len(self.fill):
            gaps = x.isnan() | x.isinf()
            x = torch.where(gaps, self.fill, x)
            if len(self.order):
                x = torch.cat([x, gaps.double()], dim=1).index_select(1, self.order)
        if len(self.blocks):
            pieces = torch.split(x, self.widths, dim=1)
            x = torch.cat([block(piece) for block, piece in zip(self.blocks, pieces, strict=True)], dim=1)
        if self.unit:
            norms = (x * x).sum(dim=1, keepdim=True).sqrt()
            x = x / torch.where(norms == 0, 1.0, norms)
        x = x.reshape(-1, *self.shape)
        if len(self.shift):
            x = (x - self.shift) * self.scale
        return x.float()


class Projection(nn.Module):
    """A block of columns along its axes: (n_samples, columns) becomes (n_samples, components)."""

    axes: Tensor
    offset: Tensor

    def __init__(self, block: ColumnBlock) -> None:
        super().__init__()
        self.register_buffer("axes", torch.from_numpy(block.matrix()))
        self.register_buffer("offset", torch.tensor(block.offset, dtype=torch.float64))

    def forward(self, x: Tensor) -> Tensor:
        """Return the components."""
        return x @ self.axes - self.offset


def _fill_of(preprocessing: Preprocessing) -> tuple[float, ...]:
    """Return what stands for a missing number of each input; nothing where none may be missing."""
    return tuple(fills_of(preprocessing.columns)) or preprocessing.fill


@dataclass(frozen=True)
class TensorInput:
    """One of several inputs of a file: what it is called, the shape of a sample, and the type of its numbers."""

    name: str
    shape: tuple[int, ...]
    type: str


@dataclass(frozen=True, kw_only=True)
class InputForm:
    """What the input of a file is.

    `raw` samples are as they come: numbers, with NaN where one is missing in a table. `encoded` ones have a 1 where a
    column of text equals a category, and 0 elsewhere, and the parts of dates as `date_numbers` computes them.
    `cells` are those of a table, one input per column, as `inputs` says: text as it is written, without blanks around
    it, numbers with NaN for gaps. `preprocessed` ones are what the network itself reads; `tensors`, too, where it reads
    several, by the names of forward's arguments. `columns` has for each input of a table its column and, of text, the
    category (`equals`; None where training never showed it, and the input is always 0) or what else the input stands
    for (`place`), of dates the `part`. `preprocessing` names the steps that the file takes.
    """

    kind: Literal["raw", "encoded", "cells", "preprocessed", "tensors"]
    shape: tuple[int, ...]
    type: str
    columns: tuple[dict[str, str | None], ...] = ()
    preprocessing: tuple[str, ...] = ()
    inputs: tuple[CellInput, ...] = ()
    tensors: tuple[TensorInput, ...] = ()


def form_of(inputs: Inputs, preprocessing: Preprocessing | None) -> InputForm:
    """Describe the input of a file that reads samples like these."""
    shape, kind = inputs.shape[1:], inputs.dtype.name
    if preprocessing is None:
        return InputForm(kind="preprocessed", shape=shape, type=kind)
    steps = {
        "fill": _fill_of(preprocessing),
        "projection": preprocessing.projection,
        preprocessing.scaling: preprocessing.scaling != "none",
    }
    return InputForm(
        kind="encoded" if any(column.kind != "number" for column in preprocessing.columns) else "raw",
        shape=shape,
        type=kind,
        columns=tuple(each for column in preprocessing.columns for each in _inputs_of(column)),
        preprocessing=tuple(name for name, taken in steps.items() if taken),
    )


def _inputs_of(column: Column) -> list[dict[str, str | None]]:
    """Name the inputs that a column takes."""
    if column.kind == "number":
        return [{"column": column.name}]
    if column.kind == "date":
        return [{"column": column.name, "part": part} for part in column.parts]
    if column.encoding == "index":
        return [{"column": column.name, "place": "index"}]
    equals = [text if count else None for text, count in zip(column.categories, column.counts, strict=True)]
    shared = [f"other texts, {number + 1} of {len(column.shared)}" for number in range(len(column.shared))]
    more = [*shared, *(["missing"] if column.indicator else []), *(["log frequency"] if column.frequency else [])]
    named: list[dict[str, str | None]] = [{"column": column.name, "equals": text} for text in equals]
    if column.encoding == "effect":
        effects = [f"effect on output {number + 1}" for number in range(len(column.effects[0]))]
        more, named = [*effects, *more[len(shared) :]], []
    return named + [{"column": column.name, "place": place} for place in more]


def as_inputs(samples: Features, preprocessing: Preprocessing | None) -> Inputs:
    """Return samples as a file reads them; what is missing in a table stays so.

    Numbers are float32, or float64 where they lie so far from zero, beside their spread, that float32 would lose what
    matters: a time of 1.7e9 seconds is rounded to 128 seconds.
    """
    if preprocessing is None:
        given: Inputs = placed(torch.from_numpy(as_array(samples)), torch.empty(0)).numpy()
        return given
    if preprocessing.columns and is_table(samples):
        numbers = raw_numbers(samples, preprocessing.columns)
    else:
        numbers = as_array(samples)
    scale, origin = numpy.array(preprocessing.scale or (1.0,)), numpy.array(preprocessing.shift or (0.0,))
    if preprocessing.projection:
        origin = origin + numpy.concatenate([block.offset for block in preprocessing.projection])
    rounding = FLOAT32_ROUNDING * numpy.abs(origin * scale).max()
    return numbers.astype(numpy.float64 if rounding > MOST_ROUNDING else numpy.float32)
