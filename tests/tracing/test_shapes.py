"""Any chain of operations that change a shape: what is free lies where every element's channel says, and can be cut."""

import re
from collections.abc import Sequence
from functools import partial
from itertools import chain
from typing import Any

import numpy
import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from tests.tracing.cutting import assert_same, computed, halves, without
from topiarist import surgery
from topiarist.errors import ModelError
from topiarist.tracing import Place, Space, anatomy

Operation = tuple[str, tuple[Any, ...]]


def apply(operations: Sequence[Operation], x: Tensor) -> Tensor:
    """Apply methods of a tensor one after the other; 'doubled' joins it with itself."""
    for name, arguments in operations:
        x = torch.cat([x, x], *arguments) if name == "doubled" else getattr(x, name)(*arguments)
    return x


class Chain(nn.Module):
    """A convolution, a chain of operations and a linear layer."""

    def __init__(self, channels: int, operations: list[Operation], features: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(2, channels, 1)
        self.apply_all = partial(apply, tuple(operations))  # a function: its numbers are in the code, in no attribute
        self.head = nn.Linear(features, 2)

    def forward(self, x: Tensor) -> Tensor:
        given: Tensor = self.head(self.apply_all(self.conv(x)))
        return given


@st.composite
def operations(draw: st.DrawFn, ndim: int, elements: int) -> Operation:
    """Return an operation that suits a number of axes and of elements."""
    axis = st.integers(-ndim, ndim - 1)
    index = st.sampled_from([slice(None), slice(None), slice(0, 1), 0, None])
    match draw(
        st.sampled_from(["reshape", "permute", "transpose", "flatten", "squeeze", "unsqueeze", "item", "double"])
    ):
        case "reshape":
            sizes: list[int] = []
            for _ in range(draw(st.integers(0, 3))):
                elements //= sizes[-1] if sizes else 1
                sizes.append(draw(st.sampled_from([size for size in range(1, elements + 1) if elements % size == 0])))
            sizes.insert(draw(st.integers(0, len(sizes))), -1)
            return "reshape", tuple(sizes)
        case "permute":
            return "permute", tuple(draw(st.permutations(range(ndim))))
        case "transpose":
            return "transpose", (draw(axis), draw(axis))
        case "flatten":
            first = draw(st.integers(0, ndim - 1))
            return "flatten", (first, draw(st.integers(first, ndim - 1)))
        case "squeeze":
            return "squeeze", draw(st.sampled_from([(), (draw(axis),)]))
        case "unsqueeze":
            return "unsqueeze", (draw(st.integers(-ndim - 1, ndim)),)
        case "item":
            return "__getitem__", (tuple(draw(st.lists(index, min_size=1, max_size=ndim))),)
        case _:
            return "doubled", (draw(axis),)


@pytest.mark.slow
@settings(max_examples=400)
@given(st.data(), st.tuples(st.integers(1, 3), st.integers(1, 4), st.integers(1, 3), st.integers(1, 3)))
def test_positions_after_any_chain(data: st.DataObject, shape: tuple[int, int, int, int]) -> None:
    batch, channels, height, width = shape
    # every element is labelled with its channel: the truth about where the units are
    labels = torch.arange(channels, dtype=torch.float32).view(1, -1, 1, 1).expand(shape).contiguous()
    steps: list[Operation] = []
    for _ in range(data.draw(st.integers(1, 4))):
        steps.append(data.draw(operations(labels.ndim, labels.numel())))
        labels = apply(steps[-1:], labels)
        assume(labels.ndim > 0 and 0 < labels.numel() < 500)
    model = Chain(channels, steps, labels.shape[-1]).double()
    example = torch.randn(batch, 2, height, width, dtype=torch.float64)
    found = anatomy(model, example)
    rows = labels.reshape(-1, labels.shape[-1]).numpy()
    for space in found.free.values():
        writers = [place for place in space.producers if place.module == "conv"]
        if space.size > 1 and writers:
            check_positions(space, writers[0], rows)
    for units in ({name: [0] for name, space in found.free.items() if space.size > 1}, halves(found)):
        if units:
            try:
                smaller = surgery.remove(model, example, units=units, anatomy=found)
            except ModelError as error:  # `squeeze` takes the axis of a single unit away; one sample may mean anything
                assert re.match(r"without units of 'conv.*', the network's own code ", str(error))
                assert ("squeeze", ()) in steps or batch == 1
            else:
                assert_same(computed(smaller, example), without(model, example, found, units))


def check_positions(space: Space, writer: Place, rows: Any) -> None:
    """Assert that the columns that read a unit are those in which its channels stand, and no others."""
    for unit in range(space.size):
        own = numpy.isin(rows, writer.positions[unit])
        columns = [place.positions[unit].reshape(-1).tolist() for place in space.consumers if place.module == "head"]
        assert sorted(chain.from_iterable(columns)) == numpy.flatnonzero(own.any(axis=0)).tolist()
        assert (own.all(axis=0) == own.any(axis=0)).all()
