"""The formulas for parameters and multiply-accumulates against networks that were really cut."""

from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.nn import functional

from tests.examples import examples
from tests.networks import NETWORKS, ResNet18, built
from topiarist.measurement.cost import count_macs
from topiarist.surgery import remove
from topiarist.surgery.choice.costs import Costs
from topiarist.tracing import anatomy

SMALL: dict[str, Any] = {
    **{name: network for name, network in NETWORKS.items() if name != "resnet18"},
    "narrow resnet18": lambda seed: built(lambda: ResNet18(width=2), (2, 3, 8, 8), seed=seed),
}
NARROWEST = {"einsum attention": 2}  # an axis of one position is multiplied there, not summed over


def one(example: Any) -> Any:
    """Return the first sample of an example input, as a batch."""
    return tuple(tensor[:1] for tensor in example) if isinstance(example, tuple) else example[:1]


def real_parameters(model: nn.Module) -> int:
    return sum(parameter.numel() for parameter in model.parameters())


def real_macs(model: nn.Module, example: Any) -> int:
    return count_macs(model, one(example))


def check(model: nn.Module, example: Any, widths: dict[str, int]) -> None:
    """Cut a network to some widths and compare."""
    found = anatomy(model, example)
    costs = Costs(model, found)
    units = {name: range(width, found.spaces[name].size) for name, width in widths.items()}
    cut = remove(model, example, units=units, anatomy=found)
    assert costs.parameters(widths) == real_parameters(cut)
    assert costs.macs(widths) == real_macs(cut, example)


@pytest.mark.slow
@pytest.mark.parametrize("name", SMALL)
@examples(3)
@given(data=st.data())
def test_costs_of_any_widths_are_those_of_the_network_that_is_cut_to_them(name: str, data: st.DataObject) -> None:
    model, example = SMALL[name](0)
    free = anatomy(model, example).free
    named = data.draw(st.lists(st.sampled_from(list(free)), unique=True))
    least = NARROWEST.get(name, 1)
    check(model, example, {space: data.draw(st.integers(least, free[space].size), label=space) for space in named})


@pytest.mark.slow
@pytest.mark.parametrize("name", SMALL)
def test_the_narrowest_network_costs_what_the_formulas_say(name: str) -> None:
    model, example = SMALL[name](0)
    check(model, example, dict.fromkeys(anatomy(model, example).free, NARROWEST.get(name, 1)))


@pytest.mark.slow
@pytest.mark.parametrize("name", NETWORKS)
def test_without_a_change_costs_are_those_of_the_network(name: str) -> None:
    model, example = NETWORKS[name](0)
    costs = Costs(model, anatomy(model, example))
    assert costs.parameters({}) == costs.parameters(costs.widths) == real_parameters(model)
    assert costs.macs({}) == costs.macs(costs.widths) == real_macs(model, example)


def test_widths_may_be_larger_than_they_are() -> None:
    model, example = NETWORKS["residual"](0)
    costs = Costs(model, anatomy(model, example))
    wide, _ = built(lambda: type(model)(width=9, hidden=8, branch=7), (2, 3, 6, 6), seed=0)
    widths = {"stem": 9, "first": 8, "pointwise": 7}
    assert costs.parameters(widths) == real_parameters(wide)
    assert costs.macs(widths) == real_macs(wide, example)


class Rows(nn.Module):
    """A perceptron that reads every row of a sequence."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(3, 6)
        self.second = nn.Linear(6, 4)
        self.head = nn.Linear(4, 2)

    def forward(self, x: Tensor) -> Tensor:
        given: Tensor = self.head(torch.relu(self.second(torch.relu(self.first(x)))).mean(1))
        return given


def test_sequences_of_rows_count_every_row() -> None:
    model, example = built(Rows, (2, 5, 3), seed=0)
    check(model, example, {"first": 4, "second": 3})


class Joined(nn.Module):
    """Channels are joined with themselves, normalised together and flattened."""

    def __init__(self) -> None:
        super().__init__()
        self.left = nn.Conv2d(3, 4, 3, bias=False)
        self.right = nn.Conv2d(3, 5, 3)
        self.norm = nn.BatchNorm2d(13)
        self.shift = nn.Parameter(torch.rand(13, 1, 1))
        self.head = nn.Linear(13 * 4, 2)

    def forward(self, x: Tensor) -> Tensor:
        left, right = self.left(x), self.right(x)
        joined = self.norm(torch.cat([left, right, left], 1)) + self.shift
        given: Tensor = self.head(torch.relu(joined).flatten(1))
        return given


def test_joined_channels_and_bare_parameters_count() -> None:
    model, example = built(Joined, (2, 3, 4, 4), seed=0)
    check(model, example, {"left": 1, "right": 3})


def test_parameters_that_no_forward_uses_count_as_they_are() -> None:
    model, example = NETWORKS["residual"](0)
    model.spare = nn.Linear(7, 7)
    costs = Costs(model, anatomy(model, example))
    assert costs.parameters({}) == real_parameters(model)


class TwoScales(nn.Module):
    """One convolution at two resolutions."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(3, 4, 3, padding=1)
        self.second = nn.Conv2d(4, 2, 3, padding=1)

    def forward(self, x: Tensor) -> Tensor:
        large = torch.relu(self.first(x))
        small = functional.max_pool2d(large, 2)
        given: Tensor = self.second(large).mean((2, 3)) + self.second(small).mean((2, 3))
        return given


def test_a_layer_that_runs_at_two_sizes_counts_both() -> None:
    model, example = built(TwoScales, (2, 3, 8, 8), seed=0)
    check(model, example, {"first": 3})


def test_transposed_convolutions_count_as_they_are() -> None:
    model, example = built(
        lambda: nn.Sequential(
            *(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.ConvTranspose2d(4, 2, 3, stride=2), nn.ReLU()),
            *(nn.Flatten(), nn.Linear(338, 2)),
        ),
        *((2, 3, 8, 8),),
        seed=0,
    )
    costs = Costs(model, anatomy(model, example))
    assert costs.parameters({}) == real_parameters(model)
    assert costs.macs({}) == real_macs(model, example)


def test_rows_that_are_counted_as_samples_count() -> None:
    class Merged(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first = nn.Linear(3, 4)
            self.second = nn.Linear(4, 2)

        def forward(self, x: Tensor) -> Tensor:
            rows = torch.relu(self.first(x.flatten(0, 1)))
            given: Tensor = self.second(rows).unflatten(0, (-1, 5)).mean(1)
            return given

    model, example = built(Merged, (2, 5, 3), seed=0)
    assert Costs(model, anatomy(model, example)).macs({}) == real_macs(model, example)
