"""Model files of ensembles: one file, whichever member was cut and whenever, exact to the bit and without code."""

from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from tests.networks import NETWORKS, outputs
from tests.storage.test_edits import rewritten
from tests.surgery.strategies import assert_equal_states, assert_identical, untouched
from topiarist import surgery
from topiarist.errors import ModelError
from topiarist.models import Ensemble, card_of, inception, mlp, vgg
from topiarist.randomness import generator
from topiarist.storage import load, read_card, save, serialise
from topiarist.tracing import anatomy

SHAPE = (1, 12, 14)
Cut = Callable[[], Ensemble]


def images(count: int = 3) -> Tensor:
    return torch.randn(count, *SHAPE, generator=generator(0, "images"))


def filled(model: nn.Module, seed: int) -> nn.Module:
    """Return a network whose biases and norms are not at their defaults, with which many a wrong cut goes unseen."""
    with torch.no_grad():
        for value in model.state_dict().values():
            if value.ndim == 1:
                value.uniform_(0.5, 1.5, generator=generator(seed, "biases"))
    return model.eval()


def whole() -> list[nn.Module]:
    random = generator(0, "weights")
    vgg_like = vgg(1, 0, 1, 1, input_shape=SHAPE, generator=random)
    return [filled(vgg_like, 0), filled(inception(1, 0, 1, input_shape=SHAPE, generator=random), 1)]


def cut_apart() -> Ensemble:
    first, second = whole()
    first = surgery.remove(first, images(1), units={"convolution0_0": [1, 3], "dense": [0, 19]})
    first = surgery.factorise(first, layer="convolution4_0", rank=4)
    second = surgery.remove(second, {"input": images(5)}, units={"stem0": [2], "p0.five.0": [1, 2], "r0.three.2": [9]})
    second = surgery.deepen(second, images(2), after="dense")
    second = surgery.grow(second, images(2), space="stem1", by=2, generator=generator(0, "growth"))
    return Ensemble([first, second], [2, 1])


def cut_together() -> Ensemble:
    units = {"members.0.dense": [2], "members.1.dense": [4, 5], "members.1.p0.three.0": [0]}
    return as_ensemble(surgery.remove(Ensemble(whole(), [1, 3]), images(), units=units))


def cut_apart_then_together() -> Ensemble:
    model = surgery.remove(cut_apart(), images(), units={"members.0.dense": [2], "members.1.dense": [4, 5]})
    model = surgery.widen(model, images(), space="members.1.stem2", by=1, generator=generator(0, "width"))
    return as_ensemble(surgery.deepen(model, images(), after="members.0.dense", batch_norm=True))


def nested() -> Ensemble:
    model = Ensemble([cut_apart(), surgery.remove(whole()[0], images(), units={"dense": [7]})], [1, 2])
    return as_ensemble(
        surgery.remove(model, images(), units={"members.0.members.1.dense": [3], "members.1.dense": [1]})
    )


def as_ensemble(model: nn.Module) -> Ensemble:
    assert isinstance(model, Ensemble)
    return model


CUTS: list[Cut] = [lambda: Ensemble(whole(), [1, 3]), cut_apart, cut_together, cut_apart_then_together, nested]


def assert_loaded(loaded: nn.Module, saved: nn.Module) -> None:
    """Assert that a network is what was saved: weights and outputs to the bit, plan and card."""
    assert_identical(loaded, saved)
    assert surgery.plan_of(loaded) == surgery.plan_of(saved)
    assert card_of(loaded) == card_of(saved)
    assert all(map(torch.equal, outputs(loaded, images()), outputs(saved, images())))


@pytest.mark.slow
@pytest.mark.parametrize("make", CUTS)
def test_an_ensemble_is_loaded_without_code(make: Cut, tmp_path: Path) -> None:
    ensemble = make()
    with untouched(ensemble):
        path = save(ensemble, tmp_path / "m.safetensors")
    loaded = as_ensemble(load(path))
    assert_loaded(loaded, ensemble)
    assert not any(module.training for module in loaded.modules())
    assert read_card(path).spec == card_of(ensemble).spec
    assert serialise(loaded) == path.read_bytes()


@pytest.mark.slow
@pytest.mark.parametrize("make", [cut_apart, cut_apart_then_together])
def test_a_member_of_a_loaded_ensemble_is_saved_by_itself(make: Cut, tmp_path: Path) -> None:
    ensemble = make()
    loaded = as_ensemble(load(save(ensemble, tmp_path / "m.safetensors")))
    for member, held in zip(loaded.members, ensemble.members, strict=True):
        assert surgery.plan_of(member).edits == surgery.plan_of(held).edits
        alone = load(save(member, tmp_path / "alone.safetensors"))
        assert_loaded(alone, member)
        assert all(map(torch.equal, outputs(alone, images()), outputs(held, images())))


@pytest.mark.slow
def test_the_plan_is_that_of_the_members_then_that_of_the_ensemble() -> None:
    apart = cut_apart()
    plan = surgery.plan_of(apart)
    assert str(plan).splitlines() == [
        "1. remove 2 of 'members.0.convolution0_0', 2 of 'members.0.dense'",
        "2. factorise 'members.0.convolution4_0' to rank 4",
        "3. remove 1 of 'members.1.stem0', 2 of 'members.1.p0.five.0', 1 of 'members.1.r0.three.2'",
        "4. deepen after 'members.1.dense'",
        "5. grow 'members.1.stem1' by 2",
    ]
    assert len(surgery.plan_of(Ensemble(whole()))) == 0
    units = {"members.1.stem0": [0], "members.0.dense": [1]}
    together = as_ensemble(surgery.remove(apart, images(), units=units))
    assert surgery.plan_of(together).edits[:-1] == plan.edits
    assert surgery.plan_of(together.members[0]).edits[-1] == surgery.RemoveUnits(units={"dense": (1,)})
    assert surgery.plan_of(together.members[1]).edits[-1] == surgery.RemoveUnits(units={"stem0": (0,)})
    assert surgery.plan_of(apart) == plan


@pytest.mark.slow
def test_a_member_that_is_cut_inside_an_ensemble_is_seen(tmp_path: Path) -> None:
    ensemble = cut_apart_then_together()
    ensemble.members[0] = surgery.remove(ensemble.members[0], images(), units={"convolution2_0": [3]})
    assert_loaded(load(save(ensemble, tmp_path / "m.safetensors")), ensemble)


@pytest.mark.slow
def test_cutting_an_ensemble_is_cutting_its_members() -> None:
    members = whole()
    units = {"dense": [2, 7]}
    apart = Ensemble([surgery.remove(member, images(), units=units) for member in members], [1, 3])
    taken = {f"members.{number}.{space}": found for number in (0, 1) for space, found in units.items()}
    together = surgery.remove(Ensemble(members, [1, 3]), images(), units=taken)
    assert_identical(together, apart)


@pytest.mark.slow
def test_a_refitted_ensemble_is_loaded_without_the_data(tmp_path: Path) -> None:
    units = {"members.0.dense": range(8), "members.1.dense": range(8)}
    ensemble = Ensemble(whole())
    refitted = surgery.remove(ensemble, images(), units=units, calibration=images(20))
    assert_loaded(load(save(refitted, tmp_path / "m.safetensors")), refitted)
    again = surgery.apply(surgery.plan_of(refitted), ensemble, images())
    assert all(map(torch.equal, outputs(again, images()), outputs(refitted, images())))


def test_the_units_of_all_members_are_free_and_the_classes_are_not() -> None:
    members = whole()
    spaces = anatomy(Ensemble(members), images()).spaces
    apart = {
        f"members.{number}.{name}": space.size
        for number, member in enumerate(members)
        for name, space in anatomy(member, images()).free.items()
    }
    assert {name: space.size for name, space in spaces.items() if not space.fixed} == apart
    assert {name for name, space in spaces.items() if space.fixed} == {
        *("x", "members.0.output", "log_weights"),
    }


@pytest.mark.slow
def test_what_nobody_reads_goes_from_all_members(tmp_path: Path) -> None:
    ensemble = Ensemble(whole(), [1, 3])
    with torch.no_grad():
        ensemble.get_parameter("members.0.output.weight")[:, [1, 4]] = 0
        ensemble.get_parameter("members.1.stem2.weight")[:, 5] = 0
    compact = surgery.compact(ensemble, images())
    sizes = {name: space.size for name, space in anatomy(compact, images()).free.items()}
    assert (sizes["members.0.dense"], sizes["members.1.stem1"]) == (18, 15)
    torch.testing.assert_close(outputs(compact, images()), outputs(ensemble, images()), rtol=0, atol=1e-5)
    assert_loaded(load(save(compact, tmp_path / "m.safetensors")), compact)


@pytest.mark.slow
def test_what_is_constant_goes_from_all_members(tmp_path: Path) -> None:
    ensemble = Ensemble([whole()[0], whole()[0]], [1, 3])
    with torch.no_grad():
        ensemble.get_parameter("members.0.dense.weight")[[2, 6]] = 0
        ensemble.get_parameter("members.1.dense.weight")[3] = 0
    compact = surgery.compact(ensemble, images())
    sizes = {name: space.size for name, space in anatomy(compact, images()).free.items()}
    assert (sizes["members.0.dense"], sizes["members.1.dense"]) == (18, 19)
    torch.testing.assert_close(outputs(compact, images()), outputs(ensemble, images()), rtol=0, atol=1e-5)
    assert_loaded(load(save(compact, tmp_path / "m.safetensors")), compact)


def residuals(seed: int) -> tuple[list[nn.Module], Any]:
    (first, example), (second, _) = NETWORKS["residual"](seed), NETWORKS["residual"](seed + 1)
    return [first, second], example


def test_members_of_a_users_class_are_loaded_into_fresh_ones(tmp_path: Path) -> None:
    (first, second), example = residuals(0)
    ensemble = Ensemble([surgery.remove(first, example, units={"stem": [1, 4], "first": [0]}), second])
    path = save(ensemble, tmp_path / "m.safetensors")
    with pytest.raises(ModelError, match="build the module"):
        load(path)
    into = Ensemble(residuals(5)[0], [9, 1])
    assert load(path, into=into) is into
    assert_identical(into, ensemble)
    assert surgery.plan_of(into) == surgery.plan_of(ensemble)
    assert all(map(torch.equal, outputs(into, example), outputs(ensemble, example)))


def test_members_may_have_been_cut_with_inputs_by_different_names(tmp_path: Path) -> None:
    cascade, example = NETWORKS["cascade"](0)
    perceptron = mlp([3, 6, outputs(cascade, example)[0].shape[1]]).double().eval()
    named = surgery.remove(perceptron, {"input": example}, units={"hidden0": [1]})
    other = surgery.remove(cascade, {"x": example}, units={next(iter(anatomy(cascade, example).free)): [0]})
    ensemble, into = Ensemble([named, other]), Ensemble([deepcopy(perceptron), NETWORKS["cascade"](1)[0]])
    load(save(ensemble, tmp_path / "m.safetensors"), into=into)
    assert_identical(into, ensemble)
    assert all(map(torch.equal, outputs(into, example), outputs(ensemble, example)))


def test_members_that_share_a_part_are_cut_and_loaded_together(tmp_path: Path) -> None:
    def make(seed: int) -> Ensemble:
        random = generator(seed, "weights")
        trunk = mlp([4, 6], generator=random)
        return Ensemble([nn.Sequential(trunk, nn.ReLU(), mlp([6, 3], generator=random)) for _ in range(2)]).eval()

    x = torch.randn(2, 4, generator=generator(0, "x"))
    smaller = surgery.remove(make(0), x, units={"members.0.0.output": [2, 3]})
    into = make(1)
    load(save(smaller, tmp_path / "m.safetensors"), into=into)
    assert_equal_states(into.state_dict(), smaller.state_dict())
    assert all(map(torch.equal, outputs(into, x), outputs(smaller, x)))


def test_a_layer_may_be_a_member(tmp_path: Path) -> None:
    x = torch.randn(2, 4, generator=generator(0, "x"))
    ensemble = Ensemble([mlp([4, 3]).get_submodule("output"), mlp([4, 6, 3])])
    thinner = surgery.factorise(ensemble, layer="members.0", rank=2)
    into = Ensemble([mlp([4, 3], generator=generator(1, "")).get_submodule("output"), mlp([4, 6, 3])])
    load(save(thinner, tmp_path / "m.safetensors"), into=into)
    assert_identical(into, thinner)
    assert all(map(torch.equal, outputs(into, x), outputs(thinner, x)))


@pytest.mark.slow
def test_a_member_that_left_its_spec_is_told(tmp_path: Path) -> None:
    ensemble = cut_apart()
    ensemble.members[0].get_submodule("dense_activation").register_module("more", nn.ReLU())
    with pytest.warns(match="no longer what its spec describes"):
        path = save(ensemble, tmp_path / "m.safetensors")
    assert read_card(path).spec is None


@pytest.mark.slow
@pytest.mark.parametrize(
    "settings",
    [
        {"members": []},
        {"members": "abc"},
        {"members": [{"family": "tree"}]},
        {"weights": [1.0]},
        {"weights": [0.0, 1.0]},
        {"weights": {"a": 1.0, "b": 2.0}},
        {"weight": [1.0, 1.0]},
    ],
)
def test_a_spec_that_somebody_changed_is_one_line(settings: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "m.safetensors"
    path.write_bytes(rewritten(cut_apart(), lambda record: record["spec"].update(settings)))
    with pytest.raises(ModelError) as caught:
        load(path)
    assert str(caught.value).startswith(f"cannot load {path}: ") and "\n" not in str(caught.value)
