"""What users bring: networks with two names for a layer, hooks, masks, kept activations, changed by hand."""

from pathlib import Path
from types import MethodType
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils import prune

from tests.networks import NETWORKS, built
from topiarist import load, models, save, surgery
from topiarist.errors import DataError, ModelError, SettingsError, TopiaristWarning
from topiarist.randomness import generator
from topiarist.tracing import anatomy


class Plain(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(4, 8)
        self.second = nn.Linear(8, 6)
        self.head = nn.Linear(6, 3)

    def forward(self, x: Tensor) -> Tensor:
        given: Tensor = self.head(torch.relu(self.second(torch.relu(self.first(x)))))
        return given


def plain() -> tuple[Any, Tensor]:
    model, x = built(Plain, (5, 4), seed=0)
    assert isinstance(x, Tensor)
    return model, x


def test_a_layer_with_two_names_is_not_replaced() -> None:
    model, x = plain()
    model.alias = model.second
    with pytest.raises(ModelError, match="'second' is the same layer as 'alias'"):
        surgery.deepen(model, x, after="second")
    with pytest.raises(ModelError, match="'second' is the same layer as 'alias'"):
        surgery.factorise(model, layer="second", rank=2)
    cut = surgery.remove(model, x, units={"second": [0]})
    assert cut.get_submodule("alias") is cut.get_submodule("second")


def test_a_forward_that_was_replaced_in_an_object_is_followed() -> None:
    model, x = plain()
    model.second.forward = MethodType(lambda self, y: 2 * nn.Linear.forward(self, y), model.second)
    with surgery.UnitMasks(model, x).without({"first": [0, 3], "second": [1]}):
        expected = model(x)
    cut = surgery.remove(model, x, units={"first": [0, 3], "second": [1]})
    torch.testing.assert_close(cut(x), expected)


def test_a_wrapped_network_is_refused_with_the_way_out() -> None:
    model, x = plain()
    with pytest.raises(ModelError, match=r"wrapped in DataParallel: pass the one inside, model.module"):
        surgery.remove(nn.DataParallel(model), x, units={"module.first": [0]})


def test_hooks_that_write_into_the_network_do_not_touch_the_original() -> None:
    class Hooked(Plain):
        def __init__(self) -> None:
            super().__init__()
            self.seen: list[Any] = []
            self.first.register_forward_hook(self.keep)

        def keep(self, layer: nn.Module, taken: Any, given: Any) -> None:
            self.seen.append(given)

    model, x = built(Hooked, (5, 4), seed=0)
    anatomy(model, x)
    assert model.seen == []


def test_a_masked_network_of_torch_is_cut_with_its_masks() -> None:
    model, x = plain()
    prune.random_unstructured(model.second, "weight", 0.5)  # type: ignore[no-untyped-call]
    with surgery.UnitMasks(model, x).without({"first": [0], "second": [2]}):
        expected = model(x)
    cut = surgery.remove(model, x, units={"first": [0], "second": [2]})
    torch.testing.assert_close(cut(x), expected)
    assert cut.get_buffer("second.weight_mask").shape == (5, 7)


@pytest.mark.slow
def test_calibration_data_refit_a_plan_anew_on_other_weights() -> None:
    (model, x), other = plain(), built(Plain, (300, 4), seed=1)[0]
    data = torch.randn(300, 4, generator=generator(0, "data"), dtype=torch.float64)
    plan = surgery.plan_of(surgery.remove(model, x, units={"first": [0, 1]}, calibration=data))
    expected = surgery.remove(other, x, units={"first": [0, 1]}, calibration=data)
    assert torch.equal(surgery.apply(plan, other, x, calibration=data)(data), expected(data))


def test_units_are_named_by_whole_numbers_or_masks() -> None:
    model, x = plain()
    mask = torch.tensor([True, False, True, False, False, False])
    expected = surgery.remove(model, x, units={"second": [0, 2]})
    for named in (mask, mask.numpy(), torch.tensor([0, 2]), {0, 2}, range(0, 3, 2)):
        cut = surgery.remove(model, x, units={"second": named})
        assert surgery.plan_of(cut) == surgery.plan_of(expected)
    strange: Any
    for strange in ([2.7], "13", 3, [True, False]):
        with pytest.raises(ModelError, match="units are named by whole numbers"):
            surgery.remove(model, x, units={"second": strange})


def test_what_is_no_number_in_the_calibration_data_is_refused() -> None:
    model, x = plain()
    data = torch.full((20, 4), torch.nan)
    with pytest.raises(DataError, match="not finite numbers"):
        surgery.remove(model, x, units={"first": [0]}, calibration=data)
    with pytest.raises(DataError, match="not finite numbers"):
        surgery.choose_units(model, x, keep={"first": 3}, calibration=data)


def test_a_network_cut_under_inference_mode_can_be_trained() -> None:
    model, x = plain()
    with torch.inference_mode():
        cut = surgery.remove(model, x, units={"first": [0]})
    cut(x).sum().backward()
    assert cut.get_parameter("first.weight").grad is not None


def test_a_plan_and_modes_survive_a_class_that_copies_itself() -> None:
    class Own(Plain):
        def __deepcopy__(self, memo: dict[int, Any]) -> "Own":
            copy = Own().double()
            copy.load_state_dict(self.state_dict())
            return copy

    model, x = built(Own, (5, 4), seed=0)
    deep = surgery.deepen(surgery.deepen(Plain().double().eval(), x, after="first"), x, after="second")
    assert len(surgery.plan_of(deep)) == 2
    cut = surgery.remove(model, x, units={"first": [0]})
    assert len(surgery.plan_of(cut)) == 1
    assert not cut.training


def test_a_network_changed_by_hand_between_edits_can_be_saved(tmp_path: Path) -> None:
    model, x = models.mlp([4, 20, 12, 3]), torch.randn(2, 4)
    cut: Any = surgery.remove(model, x, units={"hidden1": [0]})
    cut.hidden1, cut.output = nn.Linear(20, 30), nn.Linear(30, 3)
    cut = surgery.remove(cut, x, units={"hidden1": [25]})
    with pytest.warns(TopiaristWarning, match="no longer what its spec describes"):
        save(cut, tmp_path / "m.safetensors")
    with pytest.raises(ModelError):
        load(tmp_path / "m.safetensors")


def test_the_usual_squeeze_and_excite_block_is_free() -> None:
    class Excited(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.stem = nn.Conv2d(3, 8, 3, padding=1)
            self.gate = nn.Sequential(nn.Linear(8, 2), nn.ReLU(), nn.Linear(2, 8), nn.Sigmoid())
            self.head = nn.Conv2d(8, 4, 1)

        def forward(self, x: Tensor) -> Tensor:
            h = self.stem(x)
            b, c, _, _ = h.size()
            scale = self.gate(nn.functional.adaptive_avg_pool2d(h, 1).view(b, c)).view(b, c, 1, 1)
            given: Tensor = self.head(h * scale.expand_as(h))
            return given

    model, x = built(Excited, (2, 3, 5, 5), seed=0)
    assert not anatomy(model, x)["stem"].fixed
    with surgery.UnitMasks(model, x).without({"stem": [1, 5]}):
        expected = model(x)
    torch.testing.assert_close(surgery.remove(model, x, units={"stem": [1, 5]})(x), expected)


def test_an_optimizer_follows_a_network_that_casts_its_input() -> None:
    class Casting(Plain):
        def forward(self, x: Tensor) -> Tensor:
            return super().forward(x.float() / 255)

    model, x = Casting(), torch.rand(5, 4)
    optimizer = torch.optim.Adam(model.parameters())
    model(x).sum().backward()
    optimizer.step()
    cut: Any = surgery.remove(model, x, units={"first": [0]})
    state = surgery.transplant(optimizer, model, cut).state[cut.first.weight]
    assert torch.equal(state["exp_avg"], optimizer.state[model.first.weight]["exp_avg"][1:])
    with pytest.raises(ModelError, match="LBFGS"):
        surgery.transplant(torch.optim.LBFGS(model.parameters()), model, cut)


def test_rows_of_a_table_are_fixed_and_the_rest_is_free() -> None:
    class Tabular(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embed = nn.Embedding(10, 4)
            self.hidden = nn.Linear(7, 6)
            self.head = nn.Linear(6, 2)

        def forward(self, numbers: Tensor, words: Tensor) -> Tensor:
            joined = torch.cat([numbers, self.embed(words)], dim=1)
            given: Tensor = self.head(torch.relu(self.hidden(joined)))
            return given

    model, example = Tabular().eval(), (torch.rand(5, 3), torch.zeros(5, dtype=torch.int64))
    found = anatomy(model, example)
    assert {name: space.size for name, space in found.free.items()} == {"embed": 4, "hidden": 6}
    assert str(found["embed#2"].reason).startswith("they are looked up by the input (embedding in 'embed'")
    units = {"hidden": [2], "embed": [0, 3]}
    with surgery.UnitMasks(model, example).without(units):
        expected = model(*example)
    torch.testing.assert_close(surgery.remove(model, example, units=units)(*example), expected)


def test_marks_on_parameters_stay() -> None:
    model, x = plain()
    model.first.weight.no_weight_decay = True
    cut = surgery.remove(model, x, units={"first": [0]})
    assert cut.get_parameter("first.weight").no_weight_decay  # type: ignore[attr-defined]


def test_the_global_generator_is_left_alone() -> None:
    class Noisy(Plain):
        def forward(self, x: Tensor) -> Tensor:
            return super().forward(nn.functional.dropout(x, 0.5, training=True))

    model, x = built(Noisy, (5, 4), seed=0)
    before = torch.get_rng_state()
    cut = surgery.remove(model, x, units={"first": [0]}, calibration=x)
    surgery.widen(cut, x, space="first", by=1, generator=generator(0))
    surgery.factorise(cut, layer="first", rank=2)
    assert torch.equal(before, torch.get_rng_state())


def test_a_generator_is_asked_for_by_name() -> None:
    model, x = NETWORKS["residual"](0)
    nothing: Any = None
    with pytest.raises(SettingsError, match=r"generator must be a torch.Generator"):
        surgery.widen(model, x, space="stem", by=1, generator=nothing)
