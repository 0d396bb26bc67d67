"""Networks with habits of their own: splines on every edge, running means in evaluation, layers in plain lists."""

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from tests.tracing.cutting import assert_same, check_network, computed, without
from topiarist import anatomy, surgery
from topiarist.errors import ModelError
from topiarist.models.copying import copied
from topiarist.tracing.removable import find_removable


def numbers(*shape: int) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(3))


class Splines(nn.Module):
    """A layer with a spline on every edge: the weights lie along inputs and knots, and are flattened to one axis."""

    def __init__(self, inputs: int, outputs: int, knots: int = 5, order: int = 2) -> None:
        super().__init__()
        self.inputs, self.outputs, self.order = inputs, outputs, order
        self.register_buffer("grid", (torch.arange(-order, knots + order + 1) / knots).repeat(inputs, 1))
        self.base = nn.Parameter(torch.randn(outputs, inputs))
        self.weight = nn.Parameter(torch.randn(outputs, inputs, knots + order))
        self.scaler = nn.Parameter(torch.randn(outputs, inputs))

    def bases(self, x: Tensor) -> Any:
        grid: Any = self.grid
        x = x.unsqueeze(-1)
        found = ((x >= grid[:, :-1]) & (x < grid[:, 1:])).to(x.dtype)
        for k in range(1, self.order + 1):
            rising = (x - grid[:, : -(k + 1)]) / (grid[:, k:-1] - grid[:, : -(k + 1)])
            falling = (grid[:, k + 1 :] - x) / (grid[:, k + 1 :] - grid[:, 1:-k])
            found = rising * found[:, :, :-1] + falling * found[:, :, 1:]
        assert found.size() == (x.size(0), self.inputs, grid.size(1) - self.order - 1)
        return found

    def forward(self, x: Tensor) -> Any:
        weight = (self.weight * self.scaler.unsqueeze(-1)).view(self.outputs, -1)
        return functional.linear(x.sigmoid(), self.base) + functional.linear(self.bases(x).view(len(x), -1), weight)


@pytest.mark.slow
def test_units_between_layers_of_splines_can_go(tmp_path: Path) -> None:
    found = check_network(lambda: nn.Sequential(Splines(4, 8), Splines(8, 6), Splines(6, 2)), numbers(5, 4), tmp_path)
    assert sorted(space.size for space in found.free.values()) == [6, 8]


class Running(nn.Module):
    """A network that keeps a running mean, also in evaluation."""

    def __init__(self, way: str) -> None:
        super().__init__()
        self.way = way
        self.first, self.last = nn.Linear(4, 8), nn.Linear(8, 2)
        self.mean: Tensor
        self.register_buffer("mean", torch.rand(8))

    def forward(self, x: Tensor) -> Any:
        h = self.first(x)
        if self.way == "in place":
            self.mean.mul_(0.9).add_(0.1 * h.mean(0))
        elif self.way == "copied":
            self.mean.copy_(0.9 * self.mean + 0.1 * h.mean(0))
        else:
            self.mean = 0.9 * self.mean + 0.1 * h.mean(0)
        return self.last((h - self.mean).relu())


@pytest.mark.parametrize("way", ["in place", "copied", "replaced"])
def test_a_running_mean_may_change_in_evaluation(way: str) -> None:
    model, x = Running(way).double(), numbers(5, 4)
    found = anatomy(model, x)
    units = {"first": [0, 3, 6]}
    cut: Any = surgery.remove(model, x, units=units, anatomy=found)
    assert_same(computed(copied(cut), x), without(copied(model), x, found, units))
    assert cut.mean.shape == (5,)


class InAList(nn.Module):
    """A network that torch sees only in part."""

    def __init__(self, holder: type) -> None:
        super().__init__()
        self.first, self.inner, self.last = nn.Linear(4, 8), nn.Linear(8, 6), nn.Linear(6, 2)
        layers = [nn.Linear(8, 8), nn.Linear(8, 8)]
        self.layers: Any = {"one": layers[0]} if holder is dict else holder(layers)

    def forward(self, x: Tensor) -> Any:
        h = self.first(x)
        for layer in self.layers.values() if isinstance(self.layers, dict) else self.layers:
            h = layer(h).relu()
        return self.last(self.inner(h).relu())


@pytest.mark.parametrize(
    ("holder", "reason"),
    [
        (list, r"the layer self.layers[0] is not registered: keep it in an nn.ModuleList, not in a list"),
        (tuple, r"the layer self.layers[0] is not registered: keep it in an nn.ModuleList, not in a tuple"),
        (dict, r"the layer self.layers['one'] is not registered: keep it in an nn.ModuleDict, not in a dict"),
    ],
)
def test_layers_that_are_not_registered_are_named(holder: type, reason: str) -> None:
    model, x = InAList(holder), torch.randn(3, 4)
    found = anatomy(model, x)
    assert found["first"].reason == reason
    assert list(found.free) == ["inner"]
    cut: Any = surgery.remove(model, x, units={"inner": [1, 2]}, anatomy=found)
    assert cut.inner.out_features == 4


def test_layers_of_a_list_that_are_registered_too_are_followed(tmp_path: Path) -> None:
    class Twice(InAList):
        def __init__(self) -> None:
            super().__init__(list)
            self.registered = nn.ModuleList(self.layers)

    assert "first" in check_network(Twice, numbers(3, 4), tmp_path).free


class Odd(nn.Module):
    """A network whose arguments are more than tensors."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(4, 8), nn.Linear(8, 2)

    def forward(self, parts: list[Tensor], mask: Tensor | None, add: bool = True, *, weights: Any = (1, 2)) -> Any:
        h = sum(weight * self.first(part) for weight, part in zip(weights, parts, strict=True))
        h = h if mask is None else h * mask
        return self.last(h.relu() if add else h)


@pytest.mark.parametrize(
    "inputs",
    [
        ([numbers(3, 4), numbers(3, 4)], None, True),
        {"parts": [numbers(3, 4), numbers(3, 4)], "mask": None, "add": False, "weights": [3, 0.5]},
    ],
)
def test_arguments_may_be_none_truths_and_lists(inputs: Any) -> None:
    model = Odd().double()
    found = anatomy(model, inputs)
    units = {"first": [0, 3, 6]}
    cut = surgery.remove(model, inputs, units=units, anatomy=found)
    assert_same(computed(cut, inputs), without(model, inputs, found, units))


class Projected(nn.Module):
    """An LSTM whose hidden units are projected."""

    def __init__(self, hidden: int, **settings: Any) -> None:
        super().__init__()
        self.inner = nn.LSTM(4, hidden, batch_first=True, proj_size=6, **settings)
        self.last = nn.Linear(12 if self.inner.bidirectional else 6, 2)

    def forward(self, x: Tensor) -> Any:
        return self.last(self.inner(x)[0][:, -1])


@pytest.mark.slow
@pytest.mark.parametrize("settings", [{}, {"num_layers": 2, "bidirectional": True}])
def test_hidden_and_projected_units_of_an_lstm_can_go(settings: Any, tmp_path: Path) -> None:
    found = check_network(lambda: Projected(16, **settings), numbers(3, 5, 4), tmp_path)
    assert sorted(space.size for space in found.free.values()) == [6, 16]


def test_hidden_units_that_are_twice_those_of_a_projection_can_go_but_not_half_of_them() -> None:
    model, x = Projected(12).double(), numbers(3, 5, 4)
    found = anatomy(model, x)
    assert found["inner"].size == 12
    for count in (1, 5, 7):
        units = {"inner": list(range(count))}
        cut = surgery.remove(model, x, units=units, anatomy=found)
        assert_same(computed(cut, x), without(model, x, found, units))
    with pytest.raises(ModelError, match="compares numbers of units"):
        surgery.remove(model, x, units={"inner": range(6)}, anatomy=found)


class ShuffleUnit(nn.Module):
    """A block of ShuffleNet: grouped, shuffled, depthwise, grouped; joined with its input where it has a stride."""

    def __init__(self, inputs: int, outputs: int, groups: int, *, strided: bool, first: bool = False) -> None:
        super().__init__()
        self.groups, self.strided = groups, strided
        inner, given = outputs // 4, outputs - inputs if strided else outputs
        self.compress = nn.Conv2d(inputs, inner, 1, groups=1 if first else groups, bias=False)
        self.depthwise = nn.Conv2d(inner, inner, 3, 2 if strided else 1, 1, groups=inner, bias=False)
        self.expand = nn.Conv2d(inner, given, 1, groups=groups, bias=False)
        self.norms = nn.ModuleList([nn.BatchNorm2d(size) for size in (inner, inner, given)])
        self.pool = nn.AvgPool2d(3, 2, 1)

    def forward(self, x: Tensor) -> Any:
        h = self.norms[0](self.compress(x)).relu()
        batch, channels, height, width = h.shape
        h = h.view(batch, self.groups, channels // self.groups, height, width).transpose(1, 2)
        h = h.contiguous().view(batch, channels, height, width)
        h = self.norms[2](self.expand(self.norms[1](self.depthwise(h))))
        return (torch.cat([self.pool(x), h], 1) if self.strided else x + h).relu()


@pytest.mark.slow
@pytest.mark.parametrize(("groups", "first", "width"), [(3, 24, 60), (8, 16, 64)])
def test_channels_of_a_shuffle_net_can_go(groups: int, first: int, width: int, tmp_path: Path) -> None:
    def make() -> nn.Module:
        return nn.Sequential(
            nn.Conv2d(3, first, 3, padding=1),
            ShuffleUnit(first, width, groups, strided=True, first=True),
            ShuffleUnit(width, width, groups, strided=False),
            ShuffleUnit(width, 2 * width, groups, strided=True),
            nn.AdaptiveAvgPool2d(1),
            nn.Flatten(),
            nn.Linear(2 * width, 2),
        )

    found = check_network(make, numbers(2, 3, 8, 8), tmp_path)
    removable = find_removable(found.spaces, found.shapes)
    assert removable.count > 0.4 * removable.parameters


def test_a_running_mean_that_is_returned_may_change_in_evaluation() -> None:
    class Returned(Running):
        def forward(self, x: Tensor) -> Any:
            return super().forward(x), self.count.add_(len(x))

        def __init__(self) -> None:
            super().__init__("in place")
            self.count: Tensor
            self.register_buffer("count", torch.zeros(()))

    model, x = Returned().double(), numbers(5, 4)
    cut: Any = surgery.remove(model, x, units={"first": [1, 2]})
    assert cut.count == 0 and model.count == 0
