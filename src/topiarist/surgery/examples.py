"""The shape of an example input as data, so that a plan can be replayed without one."""

from typing import Any

import torch
from torch import Tensor

from topiarist.errors import ModelError
from topiarist.settings import Settings
from topiarist.tracing import Inputs


class Shape(Settings):
    """Shape and type of one tensor."""

    shape: tuple[int, ...]
    dtype: str

    def make(self) -> Tensor:
        """Give a tensor of zeros."""
        return torch.zeros(self.shape, dtype=getattr(torch, self.dtype))


Example = Shape | tuple[Shape, ...] | dict[str, Shape]


def shape_of(example_input: Inputs) -> Example:
    """Describe an example input: a tensor, a sequence of tensors, or a mapping of them by name."""
    if isinstance(example_input, dict):
        return {name: shape_of_tensor(value) for name, value in example_input.items()}
    if isinstance(example_input, (tuple, list)):
        return tuple(shape_of_tensor(value) for value in example_input)
    return shape_of_tensor(example_input)


def shape_of_tensor(value: Any) -> Shape:
    """Describe one tensor."""
    if not isinstance(value, Tensor):
        raise ModelError(f"the example input must be made of tensors; found {type(value).__name__}")
    return Shape(shape=tuple(value.shape), dtype=str(value.dtype).removeprefix("torch."))


def make_example(example: Example) -> Inputs:
    """Give an example input of zeros."""
    if isinstance(example, dict):
        return {name: shape.make() for name, shape in example.items()}
    return tuple(shape.make() for shape in example) if isinstance(example, tuple) else example.make()
