"""Plans: edits as data, which make the same network again."""

import json
from copy import deepcopy
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from tests.examples import examples
from tests.networks import NETWORKS, built, outputs
from tests.surgery.strategies import (
    KINDS,
    Case,
    assert_identical,
    assert_same,
    draw_edit,
    networks,
    perceptron,
    untouched,
    weight,
)
from topiarist import surgery
from topiarist.errors import ModelError, TopiaristError
from topiarist.randomness import generator
from topiarist.surgery import Plan


def draw_plan(data: st.DataObject, case: Case, most: int = 8) -> nn.Module:
    """Return a network with edits one after the other; its plan has them all."""
    model = case.model
    for _ in range(data.draw(st.integers(1, most), label="edits")):
        model = draw_edit(data, model, case.example)
    return model


@pytest.mark.slow
@examples(10)
@given(networks(), st.data())
def test_a_plan_makes_the_same_network_again(case: Case, data: st.DataObject) -> None:
    edited = draw_plan(data, case)
    plan = surgery.plan_of(edited)
    with untouched(case.model):
        again = surgery.apply(plan, case.model, case.example)
    assert surgery.plan_of(again).edits == plan.edits
    assert_identical(again, edited)
    assert all(map(torch.equal, outputs(again, case.example), outputs(edited, case.example)))


@pytest.mark.slow
@examples(10)
@given(networks(), st.data())
def test_a_plan_as_json_is_the_same_plan(case: Case, data: st.DataObject) -> None:
    edited = draw_plan(data, case)
    plan = surgery.plan_of(edited)
    read = Plan.from_json(plan.to_json())
    assert read == plan and tuple(read) == tuple(plan) and len(read) == len(plan)
    assert read.to_json() == plan.to_json()
    if not any(isinstance(edit, surgery.RemoveUnits) and edit.biased for edit in plan):
        assert_identical(surgery.apply(read, case.model), edited)  # the plan knows the shape of the example


@pytest.mark.slow
@examples(8)
@given(networks(), st.data())
def test_a_plan_goes_on_with_further_edits_and_survives_copies(case: Case, data: st.DataObject) -> None:
    first = draw_plan(data, case, 3)
    known = surgery.plan_of(first).edits
    second = draw_edit(data, deepcopy(first), case.example)
    assert surgery.plan_of(second).edits[: len(known)] == known
    assert surgery.plan_of(deepcopy(second)) == surgery.plan_of(second)
    assert surgery.plan_of(first).edits == known
    assert surgery.plan_of(case.model) == Plan()


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_of_edit_is_one_line_of_the_plan(kind: str) -> None:
    model, example = perceptron([4, 6, 5, 3], "relu", "before")
    random = generator(0, kind)
    weight(model, "hidden1")[:, 2] = 0
    plain, _ = perceptron([4, 6, 5, 3], "relu")
    edited: dict[str, nn.Module] = {
        "remove": surgery.remove(model, example, units={"hidden0": [1], "hidden1": [0, 2]}),
        "merge": surgery.merge_units(model, example, space="hidden0", merges=[surgery.Merge(unit=1, into=2, scale=3)]),
        "widen": surgery.widen(model, example, space="hidden0", by=2, generator=random),
        "grow": surgery.grow(model, example, space="hidden1", by=2, generator=random),
        "project": surgery.project(plain, example, space="hidden0", to=3),
        "deepen": surgery.deepen(model, example, after="activation0", batch_norm=True),
        "fold": surgery.fold(model, example, layer="norm1"),
        "factorise": surgery.factorise(model, layer="hidden1", rank=2),
        "compact": surgery.compact(model, example),
    }
    (edit,) = surgery.plan_of(edited[kind])
    assert edit.kind == ("remove" if kind == "compact" else kind)
    whole = plain if kind == "project" else model
    assert_identical(surgery.apply(surgery.plan_of(edited[kind]), whole, example), edited[kind])


@pytest.mark.slow
def test_a_plan_is_applied_to_other_weights() -> None:
    (model, example), (other, _) = NETWORKS["residual"](0), NETWORKS["residual"](1)
    plan = surgery.plan_of(surgery.remove(model, example, units={"stem": [0, 4], "first": [2]}))
    assert_identical(surgery.apply(plan, other), surgery.remove(other, example, units={"stem": [0, 4], "first": [2]}))


@pytest.mark.slow
def test_a_plan_adds_to_the_plan_that_a_network_has() -> None:
    model, example = NETWORKS["residual"](0)
    first = surgery.remove(model, example, units={"stem": [5]})
    second = surgery.remove(model, example, units={"first": [1]})
    both = surgery.apply(surgery.plan_of(second), first)
    assert surgery.plan_of(both).edits == (*surgery.plan_of(first), *surgery.plan_of(second))
    assert_same(both, surgery.remove(model, example, units={"stem": [5], "first": [1]}), example)


def samples(shape: tuple[int, ...], seed: int = 0) -> Tensor:
    """Draw calibration data."""
    return torch.randn(shape, dtype=torch.float64, generator=generator(seed, "calibration"))


CALIBRATION: dict[str, Any] = {
    "residual": samples((20, 3, 6, 6)),
    "inception": samples((20, 3, 6, 6)),
    "cascade": samples((50, 3)),
    "two inputs": (samples((20, 3, 5, 5)), samples((20, 7))),
    "shared layer": samples((50, 4)),
}
CUTS = {
    "residual": {"stem": [1], "first": [0, 2]},
    "inception": {"stem": [1], "narrow": [0, 2]},
    "cascade": {"layers.0": [1, 5], "layers.2": [0]},
    "two inputs": {"look": [1], "shared": [0, 2]},
    "shared layer": {"stem": [1, 4]},
}


@pytest.mark.slow
@pytest.mark.parametrize("name", CUTS)
def test_a_refit_is_replayed_from_its_numbers_or_from_data(name: str) -> None:
    model, example = NETWORKS[name](0)
    data = CALIBRATION[name]
    with untouched(model):
        cut = surgery.remove(model, example, units=CUTS[name], calibration=data)
    plan = surgery.plan_of(cut)
    assert_identical(surgery.apply(plan, model, example), cut)
    bare = Plan.from_json(plan.to_json())
    assert bare == plan
    with untouched(model), pytest.raises(ModelError, match="the plan has no numbers for its refit: pass calibration"):
        surgery.apply(bare, model, example)
    assert_same(surgery.apply(bare, model, example, calibration=data), cut, example, 1e-12)


@pytest.mark.slow
def test_a_refit_among_other_edits_keeps_its_numbers() -> None:
    model, example = NETWORKS["residual"](0)
    data = CALIBRATION["residual"]
    edited = surgery.widen(model, example, space="first", by=3, generator=generator(0, "wider"))
    edited = surgery.remove(edited, example, units={"stem": [1], "first": [0]}, calibration=data)
    edited = surgery.deepen(edited, example, after="stem_norm")
    edited = surgery.remove(edited, example, units={"pointwise": [2]}, calibration=data)
    assert_identical(surgery.apply(surgery.plan_of(deepcopy(edited)), model, example), edited)


def test_a_refitted_fold_is_replayed() -> None:
    model, example = perceptron([4, 6, 5, 3])
    folded = surgery.fold(model, example, layer="hidden0", linearise=True, calibration=samples((50, 4)))
    assert_identical(surgery.apply(surgery.plan_of(folded), model, example), folded)


EDITS: dict[str, surgery.Edit] = {
    "a space that is not there": surgery.RemoveUnits(units={"nothing": (0,)}),
    "units that are not there": surgery.RemoveUnits(units={"stem": (99,)}),
    "a layer that is not there": surgery.DeepenNetwork(after="nothing"),
    "a rank that is too high": surgery.FactoriseLayer(layer="stem", rank=99),
    "a space behind a batch norm": surgery.ProjectSpace(space="first", to=2),
    "a fixed space": surgery.GrowSpace(space="head", by=1, seed=0),
}


@pytest.mark.parametrize("what", EDITS)
def test_a_plan_for_another_network_is_refused(what: str) -> None:
    model, example = NETWORKS["residual"](0)
    plan = Plan((surgery.RemoveUnits(units={"stem": (0,)}), EDITS[what]))
    with untouched(model), pytest.raises(ModelError) as caught:
        surgery.apply(plan, model, example)
    assert "\n" not in str(caught.value)


def test_a_plan_without_the_shape_of_an_input_asks_for_one() -> None:
    model, _ = NETWORKS["residual"](0)
    plan = Plan((surgery.RemoveUnits(units={"stem": (0,)}),))
    with pytest.raises(ModelError, match="pass example_input"):
        surgery.apply(plan, model)


def test_a_factorised_network_needs_no_example() -> None:
    model, example = NETWORKS["residual"](0)
    plan = surgery.plan_of(surgery.factorise(model, layer="first", rank=2))
    assert plan.example is None
    assert_identical(surgery.apply(Plan.from_json(plan.to_json()), model), surgery.apply(plan, model, example))


def test_an_example_by_name_is_remembered() -> None:
    model, example = NETWORKS["two inputs"](0)
    assert isinstance(example, tuple)
    named = dict(zip(("image", "row"), example, strict=True))
    cut = surgery.remove(model, named, units={"look": [0]})
    plan = Plan.from_json(surgery.plan_of(cut).to_json())
    assert plan == surgery.plan_of(cut)
    assert_identical(surgery.apply(plan, model), cut)


def with_edit(edit: str) -> str:
    """Return the JSON of a plan with one edit."""
    return f'{{"edits": [{edit}], "example": null}}'


GARBAGE = {
    "nothing": "",
    "no JSON": "{",
    "a number": "1",
    "a list": "[]",
    "null": "null",
    "no list of edits": '{"edits": 1}',
    "an edit that is a number": with_edit("1"),
    "an edit of no kind": with_edit("{}"),
    "an edit of an unknown kind": with_edit('{"kind": "explode"}'),
    "line feeds": with_edit('{"kind": "a\\nb"}'),
    "an example that is a number": '{"edits": [], "example": 1}',
}
BAD_SETTINGS = {
    "an edit without its settings": with_edit('{"kind": "widen"}'),
    "an unknown setting": with_edit('{"kind": "fold", "layer": "a", "how": 1}'),
    "a negative unit": with_edit('{"kind": "remove", "units": {"stem": [-1]}}'),
    "half a unit": with_edit('{"kind": "remove", "units": {"stem": [0.5]}}'),
    "no units to add": with_edit('{"kind": "grow", "space": "a", "by": 0, "seed": 0}'),
    "no units to project to": with_edit('{"kind": "project", "space": "a", "to": 0}'),
    "no number": with_edit('{"kind": "merge", "space": "a", "merges": [{"unit": 1, "into": 0, "scale": NaN}]}'),
    "an infinite number": with_edit(
        '{"kind": "merge", "space": "a", "merges": [{"unit": 1, "into": 0, "shift": 1e999}]}'
    ),
    "an example without a type": '{"edits": [], "example": {"shape": [1, 2]}}',
}
TOO_MUCH = {
    "brackets": "[" * 100_000,
    "digits": with_edit('{"kind": "grow", "space": "a", "by": 1' + "0" * 5000 + ', "seed": 0}'),
}
NO_KEYS = {"nothing in it": "{}", "a misspelt key": '{"edit": [{"kind": "fold", "layer": "stem"}]}'}


NO_PLANS = {**GARBAGE, **BAD_SETTINGS, **TOO_MUCH, **NO_KEYS}


@pytest.mark.parametrize("text", [pytest.param(text, id=what) for what, text in NO_PLANS.items()])
def test_what_is_no_plan_is_refused_in_one_line(text: str) -> None:
    with pytest.raises(ModelError) as caught:
        Plan.from_json(text)
    assert "plan" in str(caught.value) and "\n" not in str(caught.value) and len(str(caught.value)) < 500


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)


@pytest.mark.slow
@settings(max_examples=60)
@given(JSON)
def test_any_json_is_a_plan_or_refused(record: Any) -> None:
    for each in (record, {"edits": record}, {"edits": [record]}, {"edits": [], "example": record}):
        try:
            plan = Plan.from_json(json.dumps(each))
        except TopiaristError as error:
            assert "\n" not in str(error)
        else:
            assert Plan.from_json(plan.to_json()) == plan


MISFITS = {
    "another number of axes": '{"shape": [2], "dtype": "float64"}',
    "two inputs": '[{"shape": [2, 3, 6, 6], "dtype": "float64"}, {"shape": [2, 3, 6, 6], "dtype": "float64"}]',
}
NO_TENSORS = {
    "a type that is not there": '{"shape": [2, 3, 6, 6], "dtype": "nonsense"}',
    "what is no type": '{"shape": [2, 3, 6, 6], "dtype": "nn"}',
    "a negative size": '{"shape": [2, -3, 6, 6], "dtype": "float64"}',
    "a size beyond all memory": '{"shape": [1000000000000, 3, 6, 6], "dtype": "float64"}',
}


@pytest.mark.parametrize("example", [pytest.param(text, id=what) for what, text in (MISFITS | NO_TENSORS).items()])
def test_an_example_that_does_not_fit_is_refused_in_one_line(example: str) -> None:
    model, _ = NETWORKS["residual"](0)
    remove = '{"kind": "remove", "units": {"stem": [0]}}'
    with untouched(model), pytest.raises(ModelError) as caught:
        surgery.apply(Plan.from_json(f'{{"edits": [{remove}], "example": {example}}}'), model)
    assert "\n" not in str(caught.value)


def test_an_edit_that_the_networks_own_code_forbids_is_refused() -> None:
    class Sized(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer, self.head = nn.Linear(3, 6), nn.Linear(6, 2)

        def forward(self, x: Tensor) -> Tensor:
            hidden = self.layer(x)
            assert self.layer.out_features == 6, "six units are needed"
            given: Tensor = self.head(hidden)
            return given

    model, example = built(Sized, (2, 3), seed=0)
    with (
        untouched(model),
        pytest.raises(ModelError, match=r"the network's own code fails, test_plan\.py line \d+: six units"),
    ):
        surgery.remove(model, example, units={"layer": [0]})
    with untouched(model), pytest.raises(ModelError, match="the network's own code does not allow this edit: six"):
        surgery.remove(model, example, units={"layer": [0]}, proof=False)


def test_a_plan_reads_like_a_list() -> None:
    model, example = NETWORKS["residual"](0)
    deep = surgery.deepen(surgery.remove(model, example, units={"stem": [1, 2]}), example, after="pool")
    assert str(surgery.plan_of(deep)) == "1. remove 2 of 'stem'\n2. deepen after 'pool'"
    assert str(Plan()) == "no edits"
