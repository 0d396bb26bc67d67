"""Compaction: units that do nothing go, the outputs stay."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st
from torch import Tensor, nn

from tests.examples import examples
from tests.networks import NETWORKS, built, outputs
from tests.surgery.strategies import (
    SMALL,
    Case,
    assert_identical,
    assert_same,
    clear_incoming,
    clear_outgoing,
    draw_units,
    networks,
    perceptron,
    sizes_of,
    untouched,
    weight,
)
from topiarist import surgery
from topiarist.errors import ModelError
from topiarist.randomness import generator
from topiarist.surgery.choice.evidence import blind_spot
from topiarist.tracing import anatomy


@pytest.mark.slow
@examples(12)
@given(networks(), st.data())
def test_units_that_nothing_reads_go_and_the_outputs_stay(case: Case, data: st.DataObject) -> None:
    free = anatomy(case.model, case.example).free
    idle = {name: draw_units(data, space, stay=0) for name, space in free.items()}
    for name, units in idle.items():
        for unit in units:
            clear_outgoing(case.model, free[name], unit)
    assume(all(bool(given.isfinite().all()) for given in outputs(case.model, case.example)))  # a norm of no weights
    with untouched(case.model):
        smaller = surgery.compact(case.model, case.example)
    assert_same(smaller, case.model, case.example)
    sizes = sizes_of(smaller, case.example)
    for name, units in idle.items():
        left = free[name].size - len(units)
        told = blind_spot(free[name]) is None  # otherwise more than plain layers may see the units
        assert not told or left < 2 or sizes.get(name, 0) <= left  # one group left is a plain layer, one head no head


@pytest.mark.slow
@examples(12)
@given(networks(), st.data())
def test_units_that_nothing_writes_are_constants_and_the_outputs_stay(case: Case, data: st.DataObject) -> None:
    for space in anatomy(case.model, case.example).free.values():
        for unit in draw_units(data, space, stay=0):
            clear_incoming(case.model, space, unit)
    assume(all(bool(given.isfinite().all()) for given in outputs(case.model, case.example)))  # a norm of no weights
    with untouched(case.model):
        smaller = surgery.compact(case.model, case.example)
    assert_same(smaller, case.model, case.example)


@pytest.mark.slow
@examples(12)
@given(st.lists(st.integers(2, 8), min_size=1, max_size=3), st.sampled_from([False, "before", "after"]), st.data())
def test_constants_of_a_perceptron_go(hidden: list[int], batch_norm: Any, data: st.DataObject) -> None:
    model, example = perceptron([3, *hidden, 2], "sigmoid", batch_norm)
    free = anatomy(model, example).free
    idle = {name: draw_units(data, space) for name, space in free.items()}
    for name, units in idle.items():
        for unit in units:
            clear_incoming(model, free[name], unit)
    smaller = surgery.compact(model, example)
    assert_same(smaller, model, example)
    assert all(sizes_of(smaller, example)[name] == free[name].size - len(units) for name, units in idle.items())


@pytest.mark.parametrize("name", SMALL)
def test_a_network_in_which_all_units_work_stays_as_it_is(name: str) -> None:
    model, example = NETWORKS[name](0)
    same = surgery.compact(model, example)
    assert same is not model
    assert_identical(same, model)
    assert surgery.plan_of(same) == surgery.Plan()


@pytest.mark.slow
@pytest.mark.parametrize("name", SMALL)
def test_what_grew_goes_again(name: str) -> None:
    model, example = NETWORKS[name](0)
    grown = model
    for space, found in anatomy(model, example).free.items():
        if blind_spot(found) is None and all(place.parameter is None for place in found.places):
            grown = surgery.grow(grown, example, space=space, by=3, generator=generator(0, space))
    smaller = surgery.compact(grown, example)
    assert sizes_of(smaller, example) == sizes_of(model, example)
    assert_same(smaller, model, example)


def test_a_unit_that_only_idle_units_read_goes_with_them() -> None:
    model, example = perceptron([3, 4, 4, 4, 2])
    weight(model, "output")[:, 0] = 0  # so that nothing needs unit 0 of the last layer,
    for layer in ("hidden1", "hidden2"):
        weight(model, layer)[1:, 0] = 0  # which alone needs unit 0 of the one before
    smaller = surgery.compact(model, example)
    assert [sizes_of(smaller, example)[f"hidden{layer}"] for layer in range(3)] == [3, 3, 3]
    assert_same(smaller, model, example)


def test_a_unit_that_only_constants_feed_is_a_constant() -> None:
    model, example = perceptron([3, 4, 4, 4, 2], "tanh")
    weight(model, "hidden0")[0] = 0
    for layer in ("hidden1", "hidden2"):
        weight(model, layer)[0, 1:] = 0
    smaller = surgery.compact(model, example)
    assert [sizes_of(smaller, example)[f"hidden{layer}"] for layer in range(3)] == [3, 3, 3]
    assert_same(smaller, model, example)


@pytest.mark.parametrize("clear", [clear_incoming, clear_outgoing])
def test_one_unit_stays_where_all_are_idle(clear: Callable[..., None]) -> None:
    model, example = perceptron([3, 4, 5, 2], "sigmoid")
    space = anatomy(model, example)["hidden1"]
    for unit in range(space.size):
        clear(model, space, unit)
    smaller = surgery.compact(model, example)
    assert sizes_of(smaller, example)["hidden1"] == 1
    assert_same(smaller, model, example)


def pixels(reader: Callable[[], nn.Module], *, seed: int = 0) -> tuple[nn.Module, Any]:
    """Return a convolution of whose four channels nothing writes the second, a norm, and a reader."""
    model, example = built(
        lambda: nn.Sequential(nn.Conv2d(3, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), reader()),
        (2, 3, 6, 6),
        seed=seed,
    )
    clear_incoming(model, anatomy(model, example)["0"], 1)
    return model, example


def set_constant(model: nn.Module, value: float) -> None:
    """Let the idle channel of `pixels` give a constant."""
    for name, tensor in (("0.bias", 0.0), ("1.running_mean", 0.0), ("1.bias", value)):
        model.state_dict()[name][1] = tensor


READERS: dict[str, Callable[[], nn.Module]] = {
    "without padding": lambda: nn.Conv2d(4, 2, 3),
    "without padding or bias": lambda: nn.Conv2d(4, 2, 3, stride=2, bias=False),
    "of one position": lambda: nn.Conv2d(4, 2, 1),
    "padded with what is there": lambda: nn.Conv2d(4, 2, 3, padding=1, padding_mode="reflect"),
    "flattening": lambda: nn.Sequential(nn.Flatten(), nn.Linear(144, 2)),
    "pooling and flattening": lambda: nn.Sequential(nn.MaxPool2d(2), nn.Flatten(), nn.Linear(36, 2)),
}


@pytest.mark.parametrize("reader", READERS)
def test_a_constant_moves_into_the_bias_of_a_reader(reader: str) -> None:
    model, example = pixels(READERS[reader])
    set_constant(model, 0.7)
    smaller = surgery.compact(model, example)
    assert sizes_of(smaller, example)["0"] == 3
    assert_same(smaller, model, example)


@pytest.mark.parametrize(("constant", "left"), [(0.7, 4), (0.0, 3), (-0.4, 3)])
def test_only_a_constant_zero_leaves_a_convolution_with_zero_padding(constant: float, left: int) -> None:
    model, example = pixels(lambda: nn.Conv2d(4, 2, 3, padding=1))
    set_constant(model, constant)  # ReLU makes zero of what is negative
    smaller = surgery.compact(model, example)
    assert sizes_of(smaller, example)["0"] == left
    assert_same(smaller, model, example)


def test_a_constant_that_padding_made_uneven_stays() -> None:
    model, example = pixels(
        lambda: nn.Sequential(nn.Conv2d(4, 4, 3, padding=1, groups=4), nn.Conv2d(4, 2, 1), nn.ReLU())
    )
    set_constant(model, 0.7)
    smaller = surgery.compact(model, example)
    assert sizes_of(smaller, example)["0"] == 4
    assert_same(smaller, model, example)


class Gated(nn.Module):
    """A map, or a mean of the input, weighs all channels alike at a position."""

    def __init__(self, gate: str) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 5, 3, padding=1)
        self.map = nn.Conv2d(3, 1, 3, padding=1)
        self.head = nn.Linear(5, 2)
        self.gate = gate

    def forward(self, x: Tensor) -> Tensor:
        gate = torch.sigmoid(self.map(x)) if self.gate == "map" else x.mean(1, keepdim=True)
        given: Tensor = self.head((self.stem(x) * gate).mean((2, 3)))
        return given


@pytest.mark.parametrize("gate", ["map", "input"])
def test_a_constant_behind_a_gate_is_none_and_stays(gate: str) -> None:
    model, example = built(lambda: Gated(gate), (2, 3, 5, 5), seed=0)
    space = anatomy(model, example)["stem"]
    assert space.modulated
    clear_incoming(model, space, 2)
    clear_outgoing(model, space, 4)
    smaller = surgery.compact(model, example)
    assert sizes_of(smaller, example)["stem"] == 4
    assert_same(smaller, model, example)
    other = torch.randn(3, 3, 5, 5, dtype=torch.float64, generator=generator(1, "other"))
    assert_same(smaller, model, other)


class Positioned(nn.Module):
    """What a linear layer writes gets a constant for each position of a sequence."""

    def __init__(self, length: int = 7) -> None:
        super().__init__()
        self.embed = nn.Linear(3, 6)
        self.position = nn.Parameter(torch.randn(length, 6))
        self.head = nn.Linear(6, 2)

    def forward(self, x: Tensor) -> Tensor:
        given: Tensor = self.head(torch.relu(self.embed(x) + self.position))
        return given


def test_a_constant_that_depends_on_the_position_in_a_sequence_stays() -> None:
    model, example = built(Positioned, (2, 7, 3), seed=0)
    clear_incoming(model, anatomy(model, example)["embed"], 2)
    assert_same(surgery.compact(model, example), model, example)


def test_a_compact_network_computes_the_same_for_images_of_another_size() -> None:
    model, example = built(
        lambda: nn.Sequential(
            nn.Conv2d(3, 4, 1), nn.Conv2d(4, 4, 3, padding=1, groups=4), nn.AdaptiveAvgPool2d(1), nn.Conv2d(4, 2, 1)
        ),
        (2, 3, 5, 5),
        seed=0,
    )
    clear_incoming(model, anatomy(model, example)["0"], 1)
    smaller = surgery.compact(model, example)
    assert_same(smaller, model, example)
    assert_same(smaller, model, torch.ones(2, 3, 9, 9, dtype=torch.float64))


def idle() -> tuple[nn.Module, Any]:
    """Return a perceptron with a unit that is a constant and one that nothing reads."""
    model, example = perceptron([3, 6, 5, 2], "sigmoid", "before")
    space = anatomy(model, example)["hidden0"]
    clear_incoming(model, space, 1)
    clear_outgoing(model, space, 4)
    return model, example


def test_a_network_in_training_is_compacted_as_it_is_evaluated() -> None:
    model, example = idle()
    model.train()
    with untouched(model):
        smaller = surgery.compact(model, example)
    assert all(module.training for module in smaller.modules())
    assert_same(smaller.eval(), model.eval(), example)


def test_the_plan_of_a_compact_network_makes_it_again() -> None:
    model, example = idle()
    smaller = surgery.compact(model, example)
    (edit,) = surgery.plan_of(smaller)
    assert edit == surgery.RemoveUnits(units={"hidden0": (1, 4)}, biased=("hidden1",))
    assert_identical(surgery.apply(surgery.plan_of(smaller), model, example), smaller)


def test_the_plan_of_a_compact_network_as_json_makes_it_again_or_is_refused() -> None:
    model, example = idle()
    smaller = surgery.compact(model, example)
    plan = surgery.Plan.from_json(surgery.plan_of(smaller).to_json())
    try:
        again = surgery.apply(plan, model, example)
    except ModelError:
        return
    assert_same(again, smaller, example)


def test_frozen_layers_stay_frozen() -> None:
    model, example = NETWORKS["frozen"](0)
    found = anatomy(model, example)
    clear_outgoing(model, found["trunk.0"], 2)
    clear_incoming(model, found["trunk.3"], 1)
    smaller = surgery.compact(model, example)
    assert sizes_of(smaller, example) == sizes_of(model, example) | {"trunk.0": 4, "trunk.3": 6}
    assert_same(smaller, model, example)
    assert {name: p.requires_grad for name, p in smaller.named_parameters()} == {
        name: p.requires_grad for name, p in model.named_parameters()
    }


class Sorting(nn.Module):
    """A network with an operation that surgery cannot follow."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(3, 4)
        self.head = nn.Linear(4, 2)

    def forward(self, x: Tensor) -> Tensor:
        given: Tensor = self.head(torch.sort(self.layer(x)).values)
        return given


def test_units_that_are_sorted_are_not_compacted() -> None:
    model, example = built(Sorting, (2, 3), seed=0)
    with untouched(model):
        assert_identical(surgery.compact(model, example), model)
