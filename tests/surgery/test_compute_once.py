"""What is known is passed down: a trace, a copy and the moments of activations are made once and serve all steps."""

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from tests.counting import count_costs
from tests.networks import NETWORKS
from tests.surgery.samples import made, more
from tests.surgery.strategies import SMALL, assert_identical, assert_same, perceptron, untouched
from topiarist import surgery
from topiarist.errors import ModelError
from topiarist.surgery.applying import carry_out, copied_with_plan
from topiarist.surgery.choice.choosing import cut_to_widths
from topiarist.tracing import Anatomy, Inputs, anatomy

SIZES = (6, 12, 9, 4)


@pytest.fixture
def counts(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Count traces, copies of networks with their parameters, and proofs."""
    return count_costs(monkeypatch)


def samples(model_and_example: tuple[nn.Module, Inputs]) -> tuple[nn.Module, Any, Any]:
    model, example = model_and_example
    return model, example, more(example, 200)


def test_widths_units_cut_and_refit_of_a_perceptron_take_one_trace_and_one_copy(counts: Counter[str]) -> None:
    model, example, x = samples(perceptron(SIZES))
    found = anatomy(model, example)
    widths = surgery.allot_widths(model, example, calibration=x, parameters=100, anatomy=found)
    runs: list[Tensor] = []
    model.register_forward_pre_hook(lambda _, args: runs.append(args[0]))
    cut = cut_to_widths(model, example, keep=widths, calibration=x, anatomy=found, settling=0)
    assert (counts["traces"], counts["copies"], counts["proofs"]) == (1, 1, 1)
    assert sum(len(each) for each in runs if len(each) == len(x)) == 2 * len(x)  # each network runs once
    assert sum(parameter.numel() for parameter in cut.model.parameters()) <= 100


@pytest.mark.slow
@pytest.mark.parametrize("batch_norm", [False, "before", "after"])
@pytest.mark.parametrize("activation", ["relu", "tanh"])
def test_the_cut_perceptron_is_what_choosing_removing_and_refitting_make(activation: str, batch_norm: Any) -> None:
    model, example, x = samples(perceptron(SIZES, activation, batch_norm))
    with untouched(model):
        cut = cut_to_widths(model, example, keep=0.5, calibration=x)
    assert cut.units == surgery.choose_units(model, example, keep=0.5, calibration=x)
    oracle = surgery.remove(model, example, units=cut.units, calibration=x)
    assert surgery.plan_of(cut.model).edits == surgery.plan_of(oracle).edits
    assert_same(cut.model, oracle, x)
    again = surgery.apply(surgery.plan_of(cut.model), model, example)  # with the numbers of the plan
    assert_identical(again, cut.model)


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(set(SMALL) - {"two inputs"}))
def test_the_cut_network_is_what_choosing_removing_and_refitting_make(name: str) -> None:
    model, example, x = samples(NETWORKS[name](0))
    cut = cut_to_widths(model, example, keep=0.5, calibration=x)
    oracle = surgery.remove(model, example, units=cut.units, calibration=x)
    assert_same(cut.model, oracle, x, tolerance=1e-9)
    traced = anatomy(cut.model, example)
    assert (
        cut.anatomy.valid_for == "nothing"
        or {space: each.size for space, each in cut.anatomy.spaces.items()}.items()
        <= {space: each.size for space, each in (*cut.anatomy.spaces.items(), *traced.spaces.items())}.items()
    )


def test_the_cut_of_nothing_is_a_copy(counts: Counter[str]) -> None:
    model, example, x = samples(perceptron(SIZES))
    cut = cut_to_widths(model, example, keep=1.0, calibration=x)
    assert cut.units == {} and cut.model is not model and counts["copies"] == 1
    assert_identical(cut.model, model)


PLAN = surgery.Plan(
    (
        surgery.WidenSpace(space="hidden0", by=3, seed=1),
        surgery.RemoveUnits(units={"hidden0": (0, 4), "hidden1": (1,)}, refit=True),
        surgery.MergeUnits(space="hidden1", merges=(surgery.Merge(unit=2, into=0),)),
        surgery.GrowSpace(space="hidden1", by=2, seed=2),
        surgery.ProjectSpace(space="hidden0", to=5),
    )
)


def test_changes_of_width_take_one_trace_and_one_copy(counts: Counter[str]) -> None:
    model, example, x = samples(perceptron(SIZES))
    together = surgery.apply(PLAN, model, example, calibration=x, settling=0)
    assert (counts["traces"], counts["copies"]) == (1, 1)
    assert counts["proofs"] == 3  # of each of the two spaces, and of both together
    for edit in PLAN:
        model = surgery.apply(surgery.Plan((edit,)), model, example, calibration=x, settling=0)
    assert_identical(together, model)


@pytest.mark.parametrize(
    "verb",
    [
        lambda model, x, known: surgery.remove(model, x, units={"hidden0": [1]}, calibration=x, anatomy=known),
        lambda model, x, known: surgery.remove(model, x, units={"hidden0": [1]}, multiple_of=4, anatomy=known),
        lambda model, x, known: surgery.merge_units(
            model, x, space="hidden0", merges=[surgery.Merge(unit=1, into=2)], anatomy=known
        ),
        lambda model, x, known: surgery.widen(
            model, x, space="hidden0", by=1, generator=torch.Generator(), multiple_of=4, anatomy=known
        ),
        lambda model, x, known: surgery.grow(
            model, x, space="hidden0", by=1, generator=torch.Generator(), multiple_of=4, anatomy=known
        ),
        lambda model, x, known: surgery.project(model, x, space="hidden0", to=3, anatomy=known),
        lambda model, x, known: surgery.deepen(model, x, after="hidden0", anatomy=known),
        lambda model, x, known: surgery.fold(model, x, layer="hidden0", linearise=True, calibration=x, anatomy=known),
        lambda model, x, known: surgery.compact(model, x, anatomy=known),
        lambda model, x, known: surgery.apply(PLAN, model, x, calibration=x, anatomy=known),
    ],
)
def test_a_verb_that_knows_the_anatomy_does_not_trace(
    verb: Callable[[nn.Module, Any, Anatomy | None], nn.Module], counts: Counter[str]
) -> None:
    model, example = perceptron(SIZES)
    found = anatomy(model, example)
    counts.clear()
    known = verb(model, example, found)
    assert (counts["traces"], counts["copies"]) == (0, 1)
    proofs = counts["proofs"]
    verb(model, example, found)
    assert counts["proofs"] == proofs == len(found.proofs)  # what was proven is remembered
    assert_identical(known, verb(model, example, None))


def test_what_only_looks_at_a_network_that_is_known_does_not_trace(counts: Counter[str]) -> None:
    model, example, x = samples(perceptron(SIZES))
    found = anatomy(model, example)
    counts.clear()
    surgery.allot_widths(model, example, calibration=x, parameters=100, anatomy=found)
    surgery.choose_units(model, example, keep=0.5, calibration=x, anatomy=found)
    surgery.UnitMasks(model, example, anatomy=found)
    surgery.recommend(model, example, calibration=x, labels=torch.arange(200) % 4, anatomy=found)
    assert counts["traces"] == 0


def test_units_that_do_nothing_go_round_by_round_after_one_trace(counts: Counter[str]) -> None:
    model, example = made(lambda: nn.Sequential(*(nn.Linear(8, 8, bias=False) for _ in range(4))), 3, 8)
    with torch.no_grad():
        model[2].weight[:, :3] = 0
        model[1].weight[3:, :2] = 0
    smaller = surgery.compact(model, example)
    widths = [layer.out_features for layer in smaller.modules() if isinstance(layer, nn.Linear)]
    assert widths == [6, 5, 8, 8] and len(surgery.plan_of(smaller)) > 1
    assert (counts["traces"], counts["copies"]) == (1, 1)


def test_an_optimizer_follows_changes_of_width_after_one_trace_and_one_copy(counts: Counter[str]) -> None:
    model, example, x = samples(perceptron(SIZES))
    new = surgery.apply(PLAN, model, example, calibration=x)
    counts.clear()
    optimizer = torch.optim.Adam(model.parameters())
    surgery.transplant(optimizer, model, new)
    assert (counts["traces"], counts["copies"]) == (1, 1)
    surgery.transplant(optimizer, model, new, anatomy=anatomy(model, example))
    assert (counts["traces"], counts["copies"]) == (2, 2)  # the trace is that of the test


def test_an_anatomy_of_another_network_is_refused() -> None:
    model, example = perceptron(SIZES)
    other, _ = perceptron((6, 12, 8, 4))
    with pytest.raises(ModelError, match=r"the anatomy is of another network, as 'hidden1\.weight' shows"):
        surgery.remove(model, example, units={"hidden0": [0]}, anatomy=anatomy(other, example))


def described(found: Anatomy) -> Any:
    """Return all that an anatomy says of spaces, and of the layers that have units."""
    places = {
        space.name: [(place.name, place.role, place.length, place.positions.tolist()) for place in space.places]
        for space in found.spaces.values()
    }
    layers = {place.module for space in found.spaces.values() for place in space.places if place.parameter is None}
    calls = {name: (call.shape, call.axis, call.count, call.elements) for name, call in found.calls.items()}
    sizes = {space.name: (space.size, space.reason, space.modulated) for space in found.spaces.values()}
    return places, sizes, {name: calls[name] for name in layers}, found.shapes


CROSSING = ("encoder", "grouped", "grouped sequence")  # more units than before make spaces that cross be traced anew


@pytest.mark.slow
@pytest.mark.parametrize("name", SMALL)
def test_the_anatomy_after_changes_of_width_is_that_of_the_new_network(name: str) -> None:
    model, example = NETWORKS[name](0)
    found = anatomy(model, example)
    for space in found.free.values():
        wider = [surgery.WidenSpace(space=space.name, by=3, seed=0)]
        edits: list[surgery.Edit] = [
            *wider,
            surgery.RemoveUnits(units={space.name: (0, space.size)}),
            surgery.GrowSpace(space=space.name, by=2, seed=0),
        ]
        # What reads 'first' is normed itself: with more columns, its weights would be divided by another length
        if space.averaged or space.escaped or (name, space.name) == ("weight norm", "first"):
            with pytest.raises(ModelError, match="cannot get more units"):
                carry_out(copied_with_plan(model), wider[0], example, known=found)
            edits = [surgery.RemoveUnits(units={space.name: (0,)})] if space.size > 2 else []
        copy, known = copied_with_plan(model), found
        for edit in edits:
            known = carry_out(copy, edit, example, known=known)
            if known.valid_for == "nothing":
                assert (name in CROSSING and not isinstance(edit, surgery.RemoveUnits)) or 1 in (space.size, len(edits))
                break
            assert known.valid_for == "widths"
            assert described(known) == described(anatomy(copy, example))


def test_a_group_that_is_left_alone_is_traced_anew() -> None:
    model, example = NETWORKS["residual"](0)
    one = surgery.RemoveUnits(units={"stem": (0, 1, 2, 3, 4)})
    grown = surgery.GrowSpace(space="depthwise", by=1, seed=0)  # a convolution of one group reads and writes
    wider = surgery.apply(surgery.Plan((one, grown)), model, example)
    assert wider.get_submodule("depthwise").out_channels == 2
