"""An example input as data, so that a plan can be replayed without one: shapes, types and ranges of whole numbers.

The whole numbers themselves, which may be someone's words, are kept only where a network does not run without them.
"""

import math
from collections.abc import Mapping
from typing import Annotated, Any, Self

import torch
from pydantic import Field, NonNegativeInt, field_validator, model_validator
from torch import Tensor

from topiarist.errors import ModelError
from topiarist.randomness import generator
from topiarist.settings import Settings
from topiarist.tracing import ExampleInput, Inputs

MOST_ELEMENTS, MOST_INPUTS = 2**26, 16  # a file must not ask for more memory than any example takes
MOST_KEPT = 4096  # whole numbers of a tensor that are kept: some 20 KB of a file's header


Whole = Annotated[int, Field(ge=-(2**63), lt=2**63)]


class ExampleShape(Settings):
    """Shape and type of one tensor; of whole numbers and of truth values also the least and the greatest.

    They may be numbers of words, positions or lengths, of which not all are possible. `values` are the numbers
    themselves, row by row.
    """

    shape: tuple[NonNegativeInt, ...]
    dtype: str
    least: int | None = Field(default=None, ge=-(2**63), lt=2**63)
    greatest: int | None = Field(default=None, ge=-(2**63), lt=2**63)
    values: tuple[Whole, ...] | None = Field(default=None, max_length=MOST_KEPT)

    @field_validator("dtype")
    @classmethod
    def _check_dtype(cls, value: str) -> str:
        if not isinstance(getattr(torch, value, None), torch.dtype):
            raise ValueError("must be the name of a type of torch's")
        return value

    @field_validator("shape")
    @classmethod
    def _check_shape(cls, value: tuple[int, ...]) -> tuple[int, ...]:
        if math.prod(max(size, 1) for size in value) > MOST_ELEMENTS:
            raise ValueError(f"must have at most {MOST_ELEMENTS} elements")
        return value

    @model_validator(mode="after")
    def _check_values(self) -> Self:
        if self.values is not None and len(self.values) != math.prod(self.shape):
            raise ValueError(f"must have as many values as its shape has elements; found {len(self.values)}")
        return self

    def make(self, *, even: bool = False) -> Tensor:
        """Return a tensor of random numbers between 0 and 1, or of whole numbers from the greatest down to the least.

        Long sequences often have to come first, so that numbers are better in this order. With `even`, all whole
        numbers are the greatest: of two corners of a box, neither may come before the other.
        """
        dtype = getattr(torch, self.dtype)
        if self.values is not None and not even:
            return torch.tensor(self.values).reshape(self.shape).to(dtype)
        if self.least is None or self.greatest is None:
            drawn = torch.rand(self.shape, generator=generator(0, "example"), dtype=torch.float64)
            return drawn.to(dtype)
        steps = torch.arange(math.prod(self.shape)) % (1 if even else self.greatest - self.least + 1)
        return (self.greatest - steps).reshape(self.shape).to(dtype)


Example = ExampleShape | tuple[ExampleShape, ...] | dict[str, ExampleShape]


def shape_of(example_input: ExampleInput, *, whole: bool = False) -> Example | None:
    """Describe an example input: a tensor, a sequence of tensors, or a mapping of them by name; None for others.

    With `whole`, its whole numbers are kept as they are, where they are few.
    """

    def describe(value: Tensor) -> ExampleShape:
        found = ExampleShape(shape=tuple(value.shape), dtype=str(value.dtype).removeprefix("torch."))
        if value.is_floating_point() or value.is_complex() or not value.numel():
            return found
        kept = tuple(map(int, value.flatten().tolist())) if whole and value.numel() <= MOST_KEPT else None
        return found.model_copy(update={"least": int(value.min()), "greatest": int(value.max()), "values": kept})

    if isinstance(example_input, Tensor):
        return describe(example_input)
    if isinstance(example_input, Mapping) and all(isinstance(value, Tensor) for value in example_input.values()):
        return {name: describe(value) for name, value in example_input.items()}
    if isinstance(example_input, (tuple, list)) and all(isinstance(value, Tensor) for value in example_input):
        return tuple(describe(value) for value in example_input)
    return None


def read_example(record: Any) -> Example | None:
    """Read an example from what JSON is made of."""
    if record is None:
        return None
    if len(record) > MOST_INPUTS:
        raise ModelError(f"a network takes at most {MOST_INPUTS} inputs; found {len(record)}")
    if isinstance(record, (list, tuple)):
        return tuple(ExampleShape(**entry) for entry in record)
    if isinstance(record.get("dtype"), str):
        return ExampleShape(**record)
    return {name: ExampleShape(**entry) for name, entry in record.items()}


def make_example(example: Example, *, even: bool = False) -> Inputs:
    """Return an example input; with `even`, one whose whole numbers are all the same in each tensor."""
    if isinstance(example, dict):
        return {name: shape.make(even=even) for name, shape in example.items()}
    if isinstance(example, tuple):
        return tuple(shape.make(even=even) for shape in example)
    return example.make(even=even)
