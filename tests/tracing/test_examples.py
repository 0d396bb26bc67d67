"""What an example input may be, and that looking at a network leaves it as it was."""

import contextlib
import copy
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn

from tests.networks import NETWORKS, FrozenNetwork, InceptionNetwork, NormedNetwork, ResidualNetwork, built
from tests.tracing.cutting import Written
from topiarist.errors import ModelError
from topiarist.tracing import Anatomy, anatomy

SMALL = [name for name in NETWORKS if name != "resnet18"]


def places(found: Anatomy) -> list[Any]:
    return [
        (space.name, space.size, space.reason, place.name, place.role, place.length, place.positions.tolist())
        for space in found.spaces.values()
        for place in (*space.producers, *space.passes, *space.consumers)
    ]


@pytest.mark.slow
@pytest.mark.parametrize("name", SMALL)
@pytest.mark.parametrize("training", [True, False])
def test_the_network_is_left_as_it_is(name: str, training: bool) -> None:
    model, example = NETWORKS[name](3)
    model.train(training)
    next(model.children()).train(not training)
    before = copy.deepcopy(model.state_dict())
    modes = [module.training for module in model.modules()]
    gradients = [parameter.requires_grad for parameter in model.parameters()]
    attributes = [set(vars(module)) for module in model.modules()]
    examples = copy.deepcopy(example)
    anatomy(model, example)
    assert [module.training for module in model.modules()] == modes
    assert [parameter.requires_grad for parameter in model.parameters()] == gradients
    assert [set(vars(module)) for module in model.modules()] == attributes
    assert all(parameter.grad is None for parameter in model.parameters())
    assert list(before) == list(model.state_dict())
    assert all(torch.equal(value, before[key]) for key, value in model.state_dict().items())
    torch.testing.assert_close(example, examples, rtol=0, atol=0)


def test_the_modes_come_back_after_an_error() -> None:
    model, _ = NETWORKS["residual"](0)
    model.train()
    model.get_submodule("stem_norm").eval()
    with pytest.raises(ModelError):
        anatomy(model, torch.zeros(2, 5, 6, 6))
    assert model.training
    assert not model.get_submodule("stem_norm").training


def test_the_global_generator_is_left_alone() -> None:
    model, example = NETWORKS["gated"](0)
    before = torch.get_rng_state()
    anatomy(model.train(), example)
    assert torch.equal(torch.get_rng_state(), before)


def test_forward_may_write_into_the_example() -> None:
    model = Written(lambda net, x: net.layer(x.mul_(2)), layer=nn.Linear(4, 2))
    example = torch.ones(3, 4)
    anatomy(model, example)
    assert torch.equal(example, torch.ones(3, 4))


def test_a_tensor_a_tuple_a_list_and_a_mapping_give_the_same_anatomy() -> None:
    model, example = NETWORKS["residual"](0)
    found = places(anatomy(model, example))
    assert isinstance(example, Tensor)
    assert found == places(anatomy(model, (example,))) == places(anatomy(model, [example]))
    assert found == places(anatomy(model, {"x": example}))


def test_several_inputs_in_order_or_by_name() -> None:
    model, (image, row) = NETWORKS["two inputs"](0)
    found = places(anatomy(model, (image, row)))
    assert found == places(anatomy(model, {"image": image, "row": row}))
    assert found == places(anatomy(model, {"row": row, "image": image}))


def test_arguments_with_defaults_may_be_left_out() -> None:
    class Optional(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first = nn.Linear(4, 6)
            self.head = nn.Linear(6, 2)

        def forward(self, x: Tensor, gate: Tensor | None = None, factor: float = 2.0, plain: bool = True) -> Tensor:
            h = self.first(x) * factor
            given: Tensor = self.head(h if gate is None else h * gate)
            return given

    assert not anatomy(Optional(), torch.zeros(2, 4))["first"].fixed
    gated = anatomy(Optional(), (torch.zeros(2, 4), torch.ones(2, 6)))
    assert gated["first"].reason == "they come from 'gate'"


@pytest.mark.slow
@given(batch=st.integers(1, 5), size=st.integers(1, 9))
def test_neither_the_batch_nor_the_image_size_matters_before_pooling(batch: int, size: int) -> None:
    model, example = NETWORKS["residual"](0)
    assert places(anatomy(model, torch.zeros(batch, 3, size, size))) == places(anatomy(model, example))


@pytest.mark.slow
@given(batch=st.integers(1, 3), narrow=st.integers(1, 4), wide=st.integers(1, 4), pooled=st.integers(1, 4))
def test_offsets_follow_the_widths(batch: int, narrow: int, wide: int, pooled: int) -> None:
    model = InceptionNetwork(narrow=narrow, wide=wide, pooled=pooled)
    found = anatomy(model, torch.zeros(batch, 3, 6, 6))
    places = [found[name].consumers[0] for name in ("narrow", "wide", "pooled")]
    assert [place.offset for place in places] == [0, 9 * narrow, 9 * (narrow + wide)]
    assert [place.positions.shape for place in places] == [(narrow, 1, 9), (wide, 1, 9), (pooled, 1, 9)]


@pytest.mark.parametrize("name", SMALL)
def test_a_batch_of_one(name: str) -> None:
    model, example = NETWORKS[name](0)
    one = example[:1] if isinstance(example, Tensor) else tuple(part[:1] for part in example)
    assert met(anatomy(model, one)) == met(anatomy(model, example))


def met(found: Anatomy) -> list[Any]:
    """Return where units lie, in no order; a bias is added by itself, or as a part of a product."""
    return sorted(
        (space.name, space.size, str(space.reason), place.name, place.role == "reads", place.positions.tolist())
        for space in found.spaces.values()
        for place in space.places
    )


def test_the_example_gets_the_type_of_the_network() -> None:
    model, example = NETWORKS["frozen"](0)
    assert isinstance(example, Tensor)
    assert places(anatomy(model, example.float())) == places(anatomy(model.float(), example))
    pixels = torch.zeros(2, 3, 6, 6, dtype=torch.uint8)
    assert places(anatomy(model, pixels)) == places(anatomy(model, example))


@pytest.mark.parametrize(
    ("make", "example", "message"),
    [
        (
            ResidualNetwork,
            torch.zeros(2, 4, 6, 6),
            r"the example input fails at 'stem' \(Conv2d\), networks\.py line \d+: Given groups=1, .* but got 4 .*",
        ),
        (
            InceptionNetwork,
            torch.zeros(2, 3, 8, 8),
            r"the example input fails at 'head' \(Linear\), networks\.py line \d+: mat1 and mat2 .*",
        ),
        (NormedNetwork, torch.zeros(3), r"the example input fails at 'stem' \(Linear\), networks\.py line \d+: .*"),
        (
            FrozenNetwork,
            torch.zeros(3, 3, 3, 3, 3),
            r"the example input fails at 'trunk\.0' \(Conv2d\), networks\.py line \d+: .*",
        ),
        (NormedNetwork, (torch.zeros(2, 4),) * 2, r".*does not fit NormedNetwork\.forward: too many positional.*"),
        (NormedNetwork, {"y": torch.zeros(2, 4)}, r".*does not fit NormedNetwork\.forward: missing a required .*'x'"),
        (NormedNetwork, (), r".*does not fit NormedNetwork\.forward: missing a required argument: 'x'"),
        (
            NormedNetwork,
            4,
            r"example_input must be a tensor, a sequence .*, or a function that runs the network; found int",
        ),
        (NormedNetwork, None, r"example_input must be .*; found NoneType"),
    ],
)
def test_a_wrong_example_is_an_error_of_one_line(make: type[nn.Module], example: Any, message: str) -> None:
    with pytest.raises(ModelError, match=f"^{message}$") as caught:
        anatomy(make(), example)
    assert "\n" not in str(caught.value)


class Grumpy(nn.Module):
    """A module that refuses what it is given, in two lines."""

    def forward(self, x: Tensor) -> Tensor:
        raise ValueError("no more than 3 columns, please\nand no fewer")


class Forgiving(nn.Module):
    """A network that tries a layer that fails, and goes on without it."""

    def __init__(self) -> None:
        super().__init__()
        self.broken = nn.Linear(3, 3)
        self.layer = nn.Linear(4, 6)
        self.head = nn.Linear(6, 2)

    def forward(self, x: Tensor) -> Tensor:
        with contextlib.suppress(RuntimeError):
            self.broken(x)
        given: Tensor = self.head(self.layer(x))
        return given


def test_an_error_of_the_users_own_is_told_in_its_first_line() -> None:
    message = r"^the example input fails at '1' \(Grumpy\), test_examples\.py line \d+: no more than 3 columns, please$"
    with pytest.raises(ModelError, match=message):
        anatomy(nn.Sequential(nn.Linear(4, 4), Grumpy()), torch.zeros(2, 4))


def test_an_error_that_forward_catches_leaves_no_trace() -> None:
    found = anatomy(Forgiving(), torch.zeros(2, 4))
    assert [place.name for place in found["layer"].places] == ["layer", "head"]
    assert [place.parameter for place in found["layer"].places] == [None, None]
    assert list(found.calls) == ["layer", "head"]


def test_a_function_that_runs_the_network() -> None:
    model, example = NETWORKS["residual"](0)
    found = anatomy(model, lambda network: network(example))
    assert places(found) == places(anatomy(model, example))
    assert found.samples == 2


def test_a_function_that_runs_a_part_of_the_network() -> None:
    def part(network: Any) -> Any:
        return network[2](network[0](torch.zeros(2, 4)))

    found = anatomy(nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.Linear(6, 2)), part)
    assert list(found.free) == ["0"]
    assert found["constant"].size == 4


def test_equal_seeds_give_equal_networks() -> None:
    (first, one), (second, two), (third, _) = (NETWORKS["gated"](seed) for seed in (5, 5, 6))
    assert isinstance(one, Tensor)
    assert isinstance(two, Tensor)
    assert torch.equal(one, two)
    pairs = zip(first.state_dict().values(), second.state_dict().values(), strict=True)
    assert all(torch.equal(left, right) for left, right in pairs)
    assert not torch.equal(first.state_dict()["scale"], third.state_dict()["scale"])


def test_a_network_alone_has_no_spaces() -> None:
    assert anatomy(*built(lambda: nn.Sequential(nn.ReLU()), (2, 3), seed=0)).spaces == {}
