"""Networks that keep the sizes of their layers in unusual places: classes, numpy's integers, frozen settings."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy
import pytest
import torch
from torch import Tensor, nn

from tests.tracing.cutting import check_network
from topiarist import anatomy, surgery

X = torch.randn(5, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(3))


class OfTheClass(nn.Module):
    """A network whose class says how wide it is."""

    WIDTH, HEADS = 12, 3
    SIZES = (12, 2)

    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(4, self.WIDTH), nn.Linear(*self.SIZES)

    def forward(self, x: Tensor) -> Any:
        h = self.first(x).view(len(x), self.HEADS, self.WIDTH // self.HEADS)
        return self.last(h.relu().reshape(len(x), self.SIZES[0]))


class OfABase(OfTheClass):
    """A network whose class changes what its base says."""

    WIDTH, SIZES = 24, (24, 2)


@dataclass(frozen=True)
class Frozen:
    width: int = 12


@dataclass(frozen=True, slots=True)
class Slotted:
    width: int = 12
    name: str = "small"


class Named(NamedTuple):
    name: str = "small"
    width: int = 12


class Held(nn.Module):
    """A network that asks its settings how wide it is."""

    def __init__(self, settings: Any) -> None:
        super().__init__()
        self.settings = settings
        self.first, self.last = nn.Linear(4, 12), nn.Linear(12, 2)

    def forward(self, x: Tensor) -> Any:
        return self.last(self.first(x).relu().view(len(x), 1, self.settings.width).flatten(1))


class OfNumpy(nn.Module):
    """A network that counts with numpy's integers."""

    def __init__(self) -> None:
        super().__init__()
        self.width = numpy.int64(12)
        self.first, self.last = nn.Linear(4, 12), nn.Linear(12, 2)

    def forward(self, x: Tensor) -> Any:
        return self.last(self.first(x).relu().view(len(x), 1, self.width).view(len(x), self.width.item()))


@pytest.mark.parametrize(
    "make", [OfTheClass, OfABase, OfNumpy, *(lambda kind=kind: Held(kind()) for kind in (Frozen, Slotted, Named))]
)
def test_sizes_follow_a_cut_wherever_they_are_kept(make: Any, tmp_path: Path) -> None:
    found = check_network(make, X, tmp_path)
    assert all(not space.fixed for space in found.spaces.values() if "first" in space.name)


def test_a_cut_network_hides_the_number_of_its_class() -> None:
    model = OfTheClass().double()
    found = anatomy(model, X)
    heads = next(name for name, space in found.free.items() if space.size == 3)
    cut: Any = surgery.remove(model, X, units={heads: [1]}, anatomy=found)
    assert (cut.HEADS, cut.WIDTH, cut.SIZES) == (2, 8, (8, 2))
    assert (OfTheClass.HEADS, OfTheClass.WIDTH, OfTheClass.SIZES, model.HEADS) == (3, 12, (12, 2), 3)


def test_settings_keep_their_kind() -> None:
    for kind in (Frozen, Slotted, Named):
        model = Held(kind()).double()
        cut: Any = surgery.remove(model, X, units={"first": [0, 3]})
        assert type(cut.settings) is kind and (cut.settings.width, model.settings.width) == (10, 12)
    assert isinstance(vars(surgery.remove(OfNumpy().double(), X, units={"first": [1]}))["width"], numpy.int64)


def test_a_number_that_numpy_computed_fixes_the_units() -> None:
    class Computed(OfNumpy):
        def forward(self, x: Tensor) -> Any:
            return self.last(self.first(x).view(len(x), 1, numpy.prod([3, 4])).flatten(1))

    space = anatomy(Computed().double(), X)["first"]
    assert space.reason is not None and "has the number 12" in space.reason
