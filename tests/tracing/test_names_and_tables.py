"""How spaces are named, printed and kept: by any layer that writes them, in 100 columns, and those that are ignored."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from tests.networks import NETWORKS
from topiarist import surgery
from topiarist.errors import ModelError
from topiarist.tracing import anatomy
from topiarist.tracing.record import AnatomyRecord, record_anatomy
from topiarist.tracing.table import render


@pytest.mark.slow
@pytest.mark.parametrize("name", NETWORKS)
def test_the_printed_table_is_100_columns_wide_at_most(name: str) -> None:
    assert max(map(len, str(anatomy(*NETWORKS[name](0))).splitlines())) <= 100


def test_the_parameters_that_can_go_are_those_that_go() -> None:
    model, example = NETWORKS["inception"](0)
    found = anatomy(model, example)
    least = surgery.remove(model, example, units={name: range(1, space.size) for name, space in found.free.items()})
    before, after = (sum(parameter.numel() for parameter in net.parameters()) for net in (model, least))
    assert f"\n{before - after:,} of {before:,} parameters can go, with one unit left per space.\n" in str(found)
    held = str(found).partition("Held by what is fixed:\n")[2]
    assert held.splitlines() == ["  84 by 'head': the network's output", "  18 by 'x': they come from 'x'"]


def test_many_fixed_spaces_are_counted_below_the_table() -> None:
    model = nn.Sequential(*(nn.Linear(4, 4) for _ in range(10)))
    lines = str(anatomy(model, torch.zeros(1, 4), ignored=nn.Linear)).splitlines()
    assert lines[12].startswith("0 of 200 parameters can go, ") and lines[-1] == "  and 5 more"
    assert all(len(line) <= 100 for line in lines)


def test_names_of_spaces_are_the_last_to_be_shortened() -> None:
    long = "a_layer_with_a_name_of_many_words"
    model = nn.Sequential()
    for name in (long, f"{long}_too"):
        model.add_module(name, nn.Linear(4, 4))
        model.add_module(f"{name}_norm", nn.LayerNorm(4))
    found = anatomy(model, torch.zeros(1, 4))
    lines = render(found.spaces, found.shapes, columns=90).splitlines()
    assert lines[0].split() == ["space", "units", "written", "by", "read", "by"]
    assert lines[2].startswith(f"{long}  ") and max(map(len, lines)) <= 100
    assert "passes through" in render(found.spaces, found.shapes, columns=300)


def test_a_space_answers_to_any_layer_that_writes_it() -> None:
    found = anatomy(*NETWORKS["residual"](0))
    assert found["second"] is found["stem"] is found.spaces["stem"]
    assert list(found) == list(found.spaces)
    with pytest.raises(ModelError, match=r"there is no space 'depthwise': known are x, stem, .*, second"):
        found["depthwise"]
    with pytest.raises(ModelError, match="the units of 'head' are fixed: the network's output"):
        found.free_space("head")


def test_a_layer_that_writes_several_spaces_names_none_of_them() -> None:
    class Parted(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.both = nn.Linear(3, 2), nn.Linear(3, 6)
            self.second, self.heads = nn.Linear(3, 4), nn.ModuleList(nn.Linear(n, 1) for n in (2, 4))

        def forward(self, x: Tensor) -> Tensor:
            joined = torch.cat([self.first(x), self.second(x)], 1) + self.both(x)
            given: Tensor = self.heads[0](self.first(x)) + self.heads[1](self.second(x)) + joined.sum(1, keepdim=True)
            return given

    found = anatomy(Parted(), torch.zeros(2, 3))
    with pytest.raises(ModelError, match="the layer 'both' writes several spaces: name one of 'first', 'second'"):
        found["both"]


IGNORED: dict[str, Any] = {
    "a layer": "first",
    "several": ["first", "head"],
    "a type and a name": (nn.Linear, "first"),
}


@pytest.mark.parametrize("kind", IGNORED)
def test_ignored_layers_are_not_cut(kind: str) -> None:
    model, example = NETWORKS["residual"](0)
    found = anatomy(model, example, ignored=IGNORED[kind])
    assert "first" not in found.free and found["first"].reason == "'first' is ignored"
    assert found["stem"].reason is not None  # which it reads
    fixed = "the units of 'first' are fixed: 'first' is ignored"
    with pytest.raises(ModelError, match=fixed):
        surgery.remove(model, example, units={"first": [0]}, anatomy=found)
    masks = surgery.UnitMasks(model, example, anatomy=found)
    with pytest.raises(ModelError, match=fixed), masks.without({"first": [0]}):
        pass


def test_ignored_containers_and_types_stand_for_their_layers() -> None:
    model, example = NETWORKS["frozen"](0)
    assert anatomy(model, example, ignored="trunk").ignored == ("trunk", *(f"trunk.{n}" for n in range(7)))
    assert not anatomy(model, example, ignored=nn.Module).free
    assert list(anatomy(model, example, ignored=nn.LSTM).free) == list(anatomy(model, example).free)


def test_ignored_layers_stay_so_after_a_change_of_depth() -> None:
    model, example = NETWORKS["normed"](0)
    found = anatomy(model, example, ignored="head")
    edits = surgery.DeepenNetwork(after="hidden"), surgery.RemoveUnits(units={"hidden.deeper": (0,)})
    surgery.apply(surgery.Plan(edits), model, example)
    with pytest.raises(ModelError, match="fixed: 'head' is ignored"):
        surgery.apply(surgery.Plan(edits), model, example, anatomy=found)


@pytest.mark.parametrize("ignored", ["frist", ["first", "frist"], [3]])
def test_ignored_layers_that_are_not_there_are_refused(ignored: Any) -> None:
    with pytest.raises(ModelError, match=r"ignored must name layers or types of layers; found .*: known are stem"):
        anatomy(*NETWORKS["residual"](0), ignored=ignored)


def test_names_are_whole_where_there_are_columns_for_them() -> None:
    name = "a_layer_with_a_name_that_is_too_long_for_a_column_of_its_own_in_a_table"
    model = nn.Sequential()
    for number in range(3):
        model.add_module(f"{name}_{number}", nn.Linear(4, 4))
    found = anatomy(model, torch.zeros(1, 4))
    narrow, wide = (render(found.spaces, found.shapes, columns=columns) for columns in (100, 1000))
    assert narrow == str(found) and f"{name}_0" not in narrow.splitlines()[2]
    assert wide.splitlines()[2].split() == [f"{name}_0", "4", f"{name}_0", "-", f"{name}_1"]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["residual", "inception"])
def test_a_record_has_all_spaces_and_what_can_go(name: str) -> None:
    model, example = NETWORKS[name](0)
    found = anatomy(model, example)
    record = record_anatomy(found)
    least = surgery.remove(model, example, units={name: range(1, space.size) for name, space in found.free.items()})
    before, after = (sum(parameter.numel() for parameter in net.parameters()) for net in (model, least))
    assert (record.parameters, record.removable) == (before, before - after)
    assert [space.units for space in record.spaces.values()] == [space.size for space in found.spaces.values()]
    assert set(record.held) <= {name for name, space in record.spaces.items() if space.fixed}
    assert AnatomyRecord.model_validate_json(record.model_dump_json()) == record
