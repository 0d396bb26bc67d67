"""The shape of an example input as data, so that a plan can be replayed without one."""

import math
from collections.abc import Mapping
from typing import Any

import torch
from pydantic import NonNegativeInt, field_validator
from torch import Tensor

from topiarist.errors import ModelError
from topiarist.settings import Settings
from topiarist.tracing import Inputs

MOST_ELEMENTS = 2**26
MOST_INPUTS = 16


class Shape(Settings):
    """Shape and type of one tensor."""

    shape: tuple[NonNegativeInt, ...]
    dtype: str

    @field_validator("dtype")
    @classmethod
    def check_dtype(cls, value: str) -> str:
        """Refuse what is no type of torch's."""
        if not isinstance(getattr(torch, value, None), torch.dtype):
            raise ValueError("must be the name of a type of torch's")
        return value

    @field_validator("shape")
    @classmethod
    def check_shape(cls, value: tuple[int, ...]) -> tuple[int, ...]:
        """Refuse what would not fit in memory."""
        if math.prod(max(size, 1) for size in value) > MOST_ELEMENTS:
            raise ValueError(f"must have at most {MOST_ELEMENTS} elements")
        return value

    def make(self) -> Tensor:
        """Give a tensor of zeros."""
        return torch.zeros(self.shape, dtype=getattr(torch, self.dtype))


Example = Shape | tuple[Shape, ...] | dict[str, Shape]


def shape_of(example_input: Inputs) -> Example:
    """Describe an example input: a tensor, a sequence of tensors, or a mapping of them by name."""
    if isinstance(example_input, Mapping):
        return {name: shape_of_tensor(value) for name, value in example_input.items()}
    if isinstance(example_input, (tuple, list)):
        return tuple(shape_of_tensor(value) for value in example_input)
    return shape_of_tensor(example_input)


def shape_of_tensor(value: Any) -> Shape:
    """Describe one tensor."""
    if not isinstance(value, Tensor):
        raise ModelError(f"the example input must be made of tensors; found {type(value).__name__}")
    return Shape(shape=tuple(value.shape), dtype=str(value.dtype).removeprefix("torch."))


def read_example(record: Any) -> Example | None:
    """Read an example from what JSON is made of."""
    if record is None:
        return None
    if len(record) > MOST_INPUTS:
        raise ModelError(f"a network takes at most {MOST_INPUTS} inputs; found {len(record)}")
    if isinstance(record, (list, tuple)):
        return tuple(Shape(**entry) for entry in record)
    if isinstance(record.get("dtype"), str):
        return Shape(**record)
    return {name: Shape(**entry) for name, entry in record.items()}


def make_example(example: Example) -> Inputs:
    """Give an example input of zeros."""
    if isinstance(example, dict):
        return {name: shape.make() for name, shape in example.items()}
    return tuple(shape.make() for shape in example) if isinstance(example, tuple) else example.make()
