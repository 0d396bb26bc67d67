"""Changes of width: widening and growing keep the outputs, removing equals masking, merging what is equal is exact."""

from collections.abc import Callable, Iterable
from copy import deepcopy
from itertools import combinations
from typing import Any

import numpy
import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from tests.examples import examples
from tests.networks import NETWORKS, built, outputs
from tests.surgery.strategies import (
    SEEDS,
    SMALL,
    Case,
    assert_equal_states,
    assert_identical,
    assert_same,
    draw_edit,
    draw_units,
    incoming,
    networks,
    outgoing,
    perceptron,
    row_tensors,
    rows_of,
    sizes_of,
    untouched,
    weight,
    zoo,
)
from topiarist import surgery
from topiarist.errors import ModelError, TopiaristError
from topiarist.randomness import generator
from topiarist.surgery.choice.evidence import blind_spot
from topiarist.tracing import Space, anatomy

BY = st.integers(1, 9)


@pytest.mark.slow
@examples(8)
@given(networks(), BY, SEEDS)
def test_widening_any_space_keeps_the_outputs_and_sets_copies_apart(case: Case, by: int, seed: int) -> None:
    for name, space in growable(case).items():
        wider = surgery.widen(case.model, case.example, space=name, by=by, generator=generator(seed, name))
        assert_same(wider, case.model, case.example)
        widened = anatomy(wider, case.example)[name]
        assert widened.size == space.size + by
        copies = copies_in(wider, widened)
        assert len(copies) >= by
        for one, other in copies:
            assert not torch.equal(outgoing(wider, widened, one), outgoing(wider, widened, other))


def growable(case: Case) -> dict[str, Space]:
    """Return the spaces that can get units; the others refuse both edits in one line."""
    found, known = {}, anatomy(case.model, case.example)
    for name, space in known.free.items():
        try:
            surgery.widen(case.model, case.example, space=name, by=1, generator=generator(0, name), anatomy=known)
            found[name] = space
        except ModelError as error:
            assert "cannot get more units" in str(error) and "\n" not in str(error)
            own = any(place.parameter is not None for place in space.places)
            assert space.averaged or space.escaped or own or space.size == 1
    return found


def copies_in(model: nn.Module, space: Space) -> list[tuple[int, int]]:
    """Return the pairs of units with the same incoming weights."""
    rows = [incoming(model, space, unit) for unit in range(space.size)]
    return [(one, other) for one, other in combinations(range(space.size), 2) if torch.equal(rows[one], rows[other])]


@pytest.mark.slow
@examples(8)
@given(networks(), BY, SEEDS)
def test_growing_any_space_keeps_the_outputs_with_units_that_nothing_reads(case: Case, by: int, seed: int) -> None:
    for name, space in growable(case).items():
        grown = surgery.grow(case.model, case.example, space=name, by=by, generator=generator(seed, name))
        assert_same(grown, case.model, case.example)
        larger = anatomy(grown, case.example)[name]
        assert larger.size == space.size + by
        for unit in range(space.size, larger.size):
            assert bool((incoming(grown, larger, unit) != 0).any())
            assert fresh_columns_are_zero(grown, larger, unit, space.size)


def fresh_columns_are_zero(model: nn.Module, space: Space, unit: int, old: int) -> bool:
    """Return whether no plain layer reads a unit; a layer that writes the space too may, for new units."""
    for place in space.consumers:
        if not isinstance(model.get_submodule(place.module), (nn.Linear, nn.Conv1d, nn.Conv2d)):
            continue  # recurrent or transposed: equal outputs tell
        columns = weight(model, place.module)[:, place.positions[unit].reshape(-1)]
        own = [each.positions[old:].reshape(-1) for each in space.producers if each.module == place.module]
        rows = numpy.setdiff1d(numpy.arange(len(columns)), numpy.concatenate([*own, []]))
        if bool(columns[rows].any()):
            return False
    return True


@pytest.mark.parametrize("verb", [surgery.widen, surgery.grow])
def test_equal_generators_give_equal_networks(verb: Callable[..., nn.Module]) -> None:
    model, example = NETWORKS["residual"](0)
    first, second, third = (
        verb(model, example, space="stem", by=4, generator=generator(seed, "wider")) for seed in (1, 1, 2)
    )
    assert_identical(first, second)
    assert not torch.equal(first.state_dict()["stem.weight"], third.state_dict()["stem.weight"])


@pytest.mark.slow
@examples(12)
@given(networks(), st.data())
def test_removing_equals_masking_in_each_space_and_in_all(case: Case, data: st.DataObject) -> None:
    known = anatomy(case.model, case.example)
    units = {name: draw_units(data, space) for name, space in known.free.items()}
    masks = surgery.UnitMasks(case.model, case.example, anatomy=known)
    for name, gone in units.items():
        smaller = surgery.remove(case.model, case.example, units={name: gone}, anatomy=known)
        with masks.without({name: gone}) as masked:
            assert_same(smaller, masked, case.example)
    smaller = surgery.remove(case.model, case.example, units=units)
    with masks.without(units) as masked:
        assert_same(smaller, masked, case.example)


@pytest.mark.slow
@examples(12)
@given(networks(), st.data())
def test_only_the_units_named_go_and_the_others_keep_bits_and_order(case: Case, data: st.DataObject) -> None:
    spaces = anatomy(case.model, case.example).free
    units = {name: draw_units(data, space) for name, space in spaces.items()}
    expected = case.model.state_dict()
    for tensor, axis, gone in gone_positions(case.model, spaces, units):
        expected[tensor] = dropped(expected[tensor], axis, gone)
    assert_equal_states(surgery.remove(case.model, case.example, units=units).state_dict(), expected)


def gone_positions(
    model: nn.Module, spaces: dict[str, Space], units: dict[str, list[int]]
) -> Iterable[tuple[str, int, set[int]]]:
    """Give, for each axis of each tensor, the positions that go: of all spaces that lie along it."""
    gone: dict[tuple[str, int], set[int]] = {}
    state = model.state_dict()
    for name, space in spaces.items():
        for place in (*space.producers, *space.passes, *space.consumers):
            found = set(place.positions[units[name]].reshape(-1).tolist())
            for each, axis in place.tensors:
                tensor = f"{place.module}.{each}".removeprefix(".")
                shared = [known for known, held in state.items() if held.data_ptr() == state[tensor].data_ptr()]
                for known in shared:
                    gone.setdefault((known, axis), set()).update(found)
    return [(tensor, axis, positions) for (tensor, axis), positions in gone.items()]


def dropped(tensor: Tensor, axis: int, gone: set[int]) -> Tensor:
    """Return a tensor without some positions of an axis."""
    return tensor.index_select(axis, torch.tensor([n for n in range(tensor.shape[axis]) if n not in gone]))


@pytest.mark.slow
@examples(8)
@given(networks(), st.data())
def test_all_units_but_one_can_go_and_a_space_can_grow_again(case: Case, data: st.DataObject) -> None:
    free = anatomy(case.model, case.example).free
    stays = {name: data.draw(st.integers(0, space.size - 1), label=name) for name, space in free.items()}
    units = {name: set(range(space.size)) - {stays[name]} for name, space in free.items()}
    smallest = surgery.remove(case.model, case.example, units=units)
    with surgery.UnitMasks(case.model, case.example).without(units) as masked:
        assert_same(smallest, masked, case.example)
    for name, space in growable(Case("smallest", smallest, case.example)).items():
        for verb in (surgery.widen, surgery.grow):
            larger = verb(smallest, case.example, space=name, by=2, generator=generator(0, "again"))
            assert_same(larger, smallest, case.example)
            assert sizes_of(larger, case.example)[name] == space.size + 2


@pytest.mark.slow
@examples(12)
@given(networks(), st.data())
def test_merging_units_that_are_equal_keeps_the_outputs(case: Case, data: st.DataObject) -> None:
    free = anatomy(case.model, case.example).free.values()
    plain = [space for space in free if blind_spot(space) is None and space.readers]
    space = data.draw(st.sampled_from(plain or list(free)))
    gone = draw_units(data, space) if plain else []
    into = data.draw(st.sampled_from([unit for unit in range(space.size) if unit not in gone]), label="into")
    model = deepcopy(case.model)
    for unit in gone:
        make_equal(model, space, unit, into)
    merges = [surgery.Merge(unit=unit, into=into) for unit in gone]
    merged = surgery.merge_units(model, case.example, space=space.name, merges=merges)
    assert_same(merged, model, case.example)
    for place in space.producers:
        assert len(rows_of(merged, place)) == place.length - place.positions[gone].size


def make_equal(model: nn.Module, space: Space, unit: int, into: int) -> None:
    """Return a unit the incoming weights, biases, norms and slopes of another, in place."""
    for tensor, axis, positions in row_tensors(model, space):
        source = tensor.index_select(axis, torch.from_numpy(positions[into]))
        tensor.index_copy_(axis, torch.from_numpy(positions[unit]), source)


@pytest.mark.slow
@examples(12)
@given(st.integers(2, 8), st.sampled_from([False, "before"]), SEEDS, st.data())
def test_merging_complements_keeps_the_outputs(width: int, batch_norm: Any, seed: int, data: st.DataObject) -> None:
    model, example = perceptron([4, width, 5, 3], "sigmoid", batch_norm, seed=seed)
    unit, into = data.draw(st.permutations(range(width)))[:2]
    make_opposite(model, anatomy(model, example)["hidden0"], unit, into)
    merged = surgery.merge_units(model, example, space="hidden0", merges=[surgery.complement(unit, into)])
    assert_same(merged, model, example)
    assert sizes_of(merged, example)["hidden0"] == width - 1


def make_opposite(model: nn.Module, space: Space, unit: int, into: int) -> None:
    """Return a unit the negated pre-activation of another, in place: only a norm's scale and variance are the same."""
    make_equal(model, space, unit, into)
    for place in space.producers:
        layer = model.get_submodule(place.module)
        for tensor in (layer.weight, layer.bias):
            if isinstance(tensor, Tensor):
                tensor.detach()[place.positions[unit].reshape(-1)] *= -1
    for place in space.passes:
        norm = model.get_submodule(place.module)
        for tensor in (norm.running_mean, norm.bias):
            assert isinstance(tensor, Tensor)
            tensor.detach()[place.positions[unit].reshape(-1)] *= -1


def images(reader: Callable[[], nn.Module], seed: int = 0) -> tuple[nn.Module, Any]:
    """Return a convolution with sigmoid units, two of them complements, and a reader."""
    model, example = built(
        lambda: nn.Sequential(nn.Conv2d(3, 4, 3, padding=1), nn.Sigmoid(), reader()), (2, 3, 5, 5), seed=seed
    )
    make_opposite(model, anatomy(model, example)["0"], 3, 1)
    return model, example


READERS: dict[str, Callable[[], nn.Module]] = {
    "without a bias": lambda: nn.Conv2d(4, 2, 3, bias=False),
    "padded, of one position": lambda: nn.Conv2d(4, 2, 1, padding="same"),
    "padded with what is there": lambda: nn.Conv2d(4, 2, 3, padding=1, padding_mode="circular"),
    "flattening": lambda: nn.Sequential(nn.Flatten(), nn.Linear(100, 2)),
}


@pytest.mark.parametrize("reader", READERS)
def test_a_complement_goes_into_a_reader(reader: str) -> None:
    model, example = images(READERS[reader])
    merged = surgery.merge_units(model, example, space="0", merges=[surgery.complement(3, 1)])
    assert_same(merged, model, example)


@pytest.mark.parametrize("padding", [1, "same"])
def test_a_complement_into_a_convolution_with_zero_padding_is_refused(padding: Any) -> None:
    model, example = images(lambda: nn.Conv2d(4, 2, 3, padding=padding))
    refusal = "a constant cannot move into the bias of '2', which pads with zeros: merge without a shift"
    with untouched(model), pytest.raises(ModelError, match=refusal):
        surgery.merge_units(model, example, space="0", merges=[surgery.complement(3, 1)])


def test_merging_what_was_copied_gives_the_network_back() -> None:
    model, example = NETWORKS["inception"](0)
    wider = surgery.widen(model, example, space="stem", by=5, generator=generator(0, "copies"))
    pairs = copies_in(wider, anatomy(wider, example)["stem"])
    merges = [surgery.Merge(unit=copy, into=unit) for unit, copy in pairs]
    back = surgery.merge_units(wider, example, space="stem", merges=merges)
    for name, tensor in back.state_dict().items():
        torch.testing.assert_close(tensor, model.state_dict()[name], rtol=0, atol=1e-14)


@pytest.mark.slow
@examples(12)
@given(networks(), st.booleans(), st.data())
def test_no_edit_touches_the_original_and_each_keeps_class_type_modes_and_frozen_layers(
    case: Case, training: bool, data: st.DataObject
) -> None:
    model = case.model.train(training)
    frozen = data.draw(st.lists(st.sampled_from([name for name, _ in model.named_parameters()]), unique=True))
    for name in frozen:
        model.get_parameter(name).requires_grad_(False)
    with untouched(model):
        edited = draw_edit(data, model, case.example)
    assert type(edited) is type(model) and edited.training == training
    working = [module for module in edited.modules() if not isinstance(module, (nn.Sequential, nn.Identity))]
    assert all(module.training == training for module in working)
    assert {tensor.dtype for tensor in edited.parameters()} == {torch.float64}
    trained = {name: parameter.requires_grad for name, parameter in model.named_parameters()}
    for name, parameter in edited.named_parameters():
        assert parameter.requires_grad == trained.get(name, parameter.requires_grad)
        assert parameter.is_leaf and parameter.grad is None
    shared = {id(tensor) for tensor in edited.state_dict(keep_vars=True).values()}
    assert shared.isdisjoint(id(tensor) for tensor in model.state_dict(keep_vars=True).values())


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("kind", ["remove", "merge", "widen", "grow", "project"])
@settings(max_examples=3)
@given(case=zoo(), data=st.data())
def test_every_type_of_number_is_kept(dtype: torch.dtype, kind: str, case: Case, data: st.DataObject) -> None:
    model = case.model.to(dtype)
    edited = draw_edit(data, model, case.example, [kind])
    assert {parameter.dtype for parameter in edited.parameters()} == {dtype}


@pytest.mark.slow
@pytest.mark.parametrize("name", SMALL)
def test_no_edit_is_the_identity(name: str) -> None:
    model, example = NETWORKS[name](3)
    for same in (
        surgery.apply(surgery.Plan(), model, example),
        surgery.apply(surgery.Plan(), model),
        surgery.remove(model, example, units={}),
        surgery.remove(model, example, units={space: [] for space in anatomy(model, example).free}),
    ):
        assert same is not model and type(same) is type(model)
        assert_identical(same, model)
        assert all(map(torch.equal, outputs(same, example), outputs(model, example)))


def test_training_statistics_are_left_alone() -> None:
    model, example = perceptron([4, 6, 6, 3], "relu", "before")
    model.train()
    with untouched(model):
        smaller = surgery.remove(model, example, units={"hidden0": [1, 3], "hidden1": [0]})
    state = model.state_dict()
    for name, gone in (("norm0", {1, 3}), ("norm1", {0})):
        for tensor in ("running_mean", "running_var"):
            assert torch.equal(smaller.state_dict()[f"{name}.{tensor}"], dropped(state[f"{name}.{tensor}"], 0, gone))
        assert smaller.state_dict()[f"{name}.num_batches_tracked"] == 0


def test_a_cut_network_can_be_trained_and_its_frozen_part_is_not() -> None:
    model, example = NETWORKS["frozen"](0)
    smaller = surgery.remove(model, example, units={"trunk.0": [0, 2], "trunk.3": [1], "hidden": [3]})
    assert isinstance(example, Tensor)
    smaller.train()(example).sum().backward()
    for name, parameter in smaller.named_parameters():
        assert (parameter.grad is None) == name.startswith("trunk.")


@pytest.mark.slow
@examples(12)
@given(networks(), st.data())
def test_random_changes_of_width_give_the_sizes_asked_for(case: Case, data: st.DataObject) -> None:
    model = case.model
    for _ in range(4):
        before = anatomy(model, case.example)
        space = data.draw(st.sampled_from(list(before.free.values())), label="space")
        kind = data.draw(st.sampled_from(["remove", "merge", "widen", "grow"]), label="edit")
        expected = {name: each.size for name, each in before.spaces.items()}
        if kind in ("widen", "grow"):
            by = data.draw(BY)
            assume(space.name in growable(Case(case.label, model, case.example)))
            verb = surgery.widen if kind == "widen" else surgery.grow
            model = verb(model, case.example, space=space.name, by=by, generator=generator(0, "wider"))
            expected[space.name] += by
        else:
            gone = draw_units(data, space, stay=2)  # a convolution with one group left would be a plain one
            into = min(set(range(space.size)) - set(gone))
            merges = [surgery.Merge(unit=unit, into=into) for unit in gone]
            if kind == "remove":
                model = surgery.remove(model, case.example, units={space.name: gone})
            else:
                model = surgery.merge_units(model, case.example, space=space.name, merges=merges)
            expected[space.name] -= len(gone)
        assert sizes_of(model, case.example) == expected
    assert all(bool(given.isfinite().all()) for given in outputs(model, case.example))


def wide() -> tuple[nn.Module, Any]:
    """Return a network with 64 hidden units."""
    return built(lambda: nn.Sequential(nn.Linear(3, 64), nn.ReLU(), nn.Linear(64, 2)), (2, 3), seed=0)


REFUSALS: dict[str, tuple[dict[str, Iterable[int]], str]] = {
    "all units": ({"0": range(64)}, "cannot remove 64 of 64 units of '0': at least 1 must stay"),
    "the output": ({"2": [0]}, "the units of '2' are fixed: the network's output"),
    "the input": ({"input": [0]}, "the units of 'input' are fixed: they come from 'input'"),
    "an unknown space": ({"hidden": [0]}, "there is no space 'hidden': known are input, 0, 2"),
    "a number too high": ({"0": [3, 64]}, "'0' has units 0 to 63; found 64"),
    "a unit named twice": ({"0": [3, 5, 3]}, "units of '0' are named twice"),
    "a negative number": ({"0": [3, -1]}, "found -1"),
}


@pytest.mark.parametrize("what", REFUSALS)
def test_units_that_cannot_go_are_refused_in_one_line(what: str) -> None:
    units, refusal = REFUSALS[what]
    model, example = wide()
    with untouched(model), pytest.raises(TopiaristError) as caught:
        surgery.remove(model, example, units=units)
    assert refusal in str(caught.value) and "\n" not in str(caught.value)
    with untouched(model), pytest.raises(TopiaristError) as caught, surgery.UnitMasks(model, example).without(units):
        pass
    assert refusal in str(caught.value)


MERGES: dict[str, tuple[list[tuple[int, int]], str]] = {
    "into one that goes": ([(1, 2), (2, 3)], "unit 1 of '0' cannot merge into unit 2, which goes itself"),
    "into itself": ([(1, 1)], "unit 1 of '0' cannot merge into unit 1, which goes itself"),
    "into one that is not there": ([(1, 64)], "'0' has units 0 to 63; found 64"),
    "one that is not there": ([(64, 1)], "'0' has units 0 to 63; found 64"),
    "one twice": ([(1, 2), (1, 3)], "units of '0' are named twice"),
}


@pytest.mark.parametrize("what", MERGES)
def test_merges_that_make_no_sense_are_refused(what: str) -> None:
    pairs, refusal = MERGES[what]
    model, example = wide()
    merges = [surgery.Merge(unit=unit, into=into) for unit, into in pairs]
    with untouched(model), pytest.raises(ModelError, match=refusal):
        surgery.merge_units(model, example, space="0", merges=merges)


@pytest.mark.parametrize("verb", [surgery.widen, surgery.grow])
@pytest.mark.parametrize(
    ("space", "by", "refusal"),
    [
        ("2", 1, "the units of '2' are fixed: the network's output"),
        ("nothing", 1, "there is no space 'nothing'"),
        ("0", 0, "a space grows by at least 1 unit; found by=0"),
        ("0", -3, "a space grows by at least 1 unit; found by=-3"),
    ],
)
def test_a_space_that_cannot_grow_is_refused(verb: Callable[..., nn.Module], space: str, by: int, refusal: str) -> None:
    model, example = wide()
    with untouched(model), pytest.raises(ModelError, match=refusal):
        verb(model, example, space=space, by=by, generator=generator(0, "refused"))


@pytest.mark.parametrize("units", [[1, 4], (4, 1), {1, 4}, range(1, 5, 3), numpy.array([1, 4]), torch.tensor([4, 1])])
def test_units_are_named_in_any_way(units: Any) -> None:
    model, example = NETWORKS["residual"](0)
    expected = surgery.remove(model, example, units={"stem": [1, 4]})
    assert_identical(surgery.remove(model, example, units={"stem": units}), expected)


@pytest.mark.parametrize(("multiple_of", "kept"), [(1, 33), (8, 40), (32, 64), (100, 64)])
def test_widths_are_rounded_up_to_a_multiple(multiple_of: int, kept: int) -> None:
    model, example = wide()
    units = list(range(31))
    smaller = surgery.remove(model, example, units={"0": units}, multiple_of=multiple_of)
    assert sizes_of(smaller, example)["0"] == kept
    expected = surgery.remove(model, example, units={"0": units[: 64 - kept]})
    assert_identical(smaller, expected)
    larger = surgery.grow(model, example, space="0", by=3, generator=generator(0, "by"), multiple_of=multiple_of)
    assert sizes_of(larger, example)["0"] == -(-67 // multiple_of) * multiple_of
