"""The spaces of every network of the zoo, exactly: their names, sizes and places, and why some are fixed."""

import re
from collections.abc import Sequence

import numpy
import pytest
from torch import nn

from tests.networks import NETWORKS, CascadeNetwork, GroupedNetwork, InceptionNetwork, ResNet18, built
from tests.tracing.cutting import Makers, check_cuts, written
from topiarist.errors import ModelError
from topiarist.tracing import Place, Space, anatomy
from topiarist.tracing.remedies import KEPT_AXIS

OUTPUT = "the network's output"
X = "they come from 'x'"

# space: (size, why it is fixed, written by, passes through, read by); +n is the offset, ×n the positions of one unit
EXPECTED: dict[str, dict[str, tuple[int, str | None, str, str, str]]] = {
    "residual": {
        "x": (3, X, "", "", "stem"),
        "stem": (6, None, "stem second", "stem_norm second_norm depthwise", "first pointwise head"),
        "first": (5, None, "first", "first_norm", "second"),
        "pointwise": (4, None, "pointwise", "pointwise_norm", "head+6"),
        "head": (3, OUTPUT, "head", "", ""),
    },
    "inception": {
        "x": (3, X, "", "", "stem"),
        "stem": (5, None, "stem", "", "narrow_reduce wide_reduce pooled"),
        "narrow_reduce": (3, None, "narrow_reduce", "", "narrow"),
        "narrow": (4, None, "narrow", "", "head×9"),
        "wide_reduce": (3, None, "wide_reduce", "", "wide"),
        "wide": (2, None, "wide", "", "head+36×9"),
        "pooled": (3, None, "pooled", "", "head+54×9"),
        "head": (4, OUTPUT, "head", "", ""),
    },
    "cascade": {
        "x": (3, X, "", "", "layers.0 layers.1+6 layers.2+5 head+4"),
        "layers.0": (6, None, "layers.0", "", "layers.1"),
        "layers.1": (5, None, "layers.1", "", "layers.2"),
        "layers.2": (4, None, "layers.2", "", "head"),
        "head": (2, OUTPUT, "head", "", ""),
    },
    "gated": {
        "x": (3, X, "", "", "stem"),
        "stem": (6, None, "stem gate.excite project", "slopes scale", "gate.squeeze expand head"),
        "gate.squeeze": (3, None, "gate.squeeze", "", "gate.excite"),
        "expand": (4, None, "expand", "", "project"),
        "head": (3, OUTPUT, "head", "", ""),
    },
    "grouped": {
        "x": (3, X, "", "", "stem"),
        "stem:members": (2, None, "stem", "", "grouped.weight"),
        "stem:groups": (4, None, "stem×2 grouped.weight×3", "grouped×3 group_norm×3", "mix×3"),
        "grouped:members": (3, None, "grouped.weight", "grouped group_norm", "mix"),
        "mix:groups": (2, None, "mix×3", "mix_norm×3", "head×3"),
        "mix:members": (3, None, "mix", "mix_norm", "head"),
        "head": (3, OUTPUT, "head", "", ""),
    },
    "grouped sequence": {
        "x": (2, X, "", "", "stem"),
        "stem:members": (2, None, "stem", "", "grouped.weight"),
        "stem:groups": (3, None, "stem×2 grouped.weight×2", "grouped×2", "mix×2"),
        "grouped:members": (2, None, "grouped.weight", "grouped", "mix"),
        "mix": (5, None, "mix", "norm depthwise channel_norm", "head×2"),
        "head": (3, OUTPUT, "head", "", ""),
    },
    "input residual": {
        "x": (3, X, "", "", "first"),
        "first": (5, None, "first", "", "second"),
        "second": (3, X, "second", "", "third"),
        "third": (4, None, "third", "", "head"),
        "head": (2, OUTPUT, "head", "", ""),
    },
    "two inputs": {
        "image": (3, "they come from 'image'", "", "", "look"),
        "look": (4, None, "look", "", "shared"),
        "row": (7, "they come from 'row'", "", "", "read"),
        "read": (5, None, "read", "", "shared+4"),
        "shared": (6, None, "shared", "", "kind number"),
        "kind": (3, OUTPUT, "kind", "", ""),
        "number": (1, OUTPUT, "number", "", ""),
    },
    "shared layer": {
        "x": (4, X, "", "", "stem"),
        "stem": (6, None, "stem shared", "", "shared head"),
        "head": (2, OUTPUT, "head", "", ""),
    },
    "frozen": {
        "x": (3, X, "", "", "trunk.0"),
        "trunk.0": (5, None, "trunk.0", "trunk.1", "trunk.3"),
        "trunk.3": (7, None, "trunk.3", "", "hidden×4"),
        "hidden": (6, None, "hidden", "", "head"),
        "head": (3, OUTPUT, "head", "", ""),
    },
    "normed": {
        "x": (4, X, "", "", "stem"),
        "stem": (6, None, "stem", "norm", "hidden"),
        "hidden": (5, None, "hidden", "", "head"),
        "head": (2, OUTPUT, "head", "", ""),
    },
}


def describe(places: Sequence[Place]) -> str:
    offsets = (f"+{place.offset}" if place.offset else "" for place in places)
    repeats = (f"×{place.repeat}" if place.repeat > 1 else "" for place in places)
    return " ".join(f"{place.name}{at}{of}" for place, at, of in zip(places, offsets, repeats, strict=True))


def summary(space: Space) -> tuple[int, str | None, str, str, str]:
    places = (space.producers, space.passes, space.consumers)
    return space.size, space.reason, describe(places[0]), describe(places[1]), describe(places[2])


@pytest.mark.parametrize("name", EXPECTED)
def test_every_space_of_the_zoo(name: str) -> None:
    found = anatomy(*NETWORKS[name](0))
    assert {name: summary(space) for name, space in found.spaces.items()} == EXPECTED[name]
    assert list(found.spaces) == list(EXPECTED[name])
    assert all(space.name == name for name, space in found.spaces.items())
    assert list(found.free) == [name for name, expected in EXPECTED[name].items() if expected[1] is None]
    assert found.opaque == ()


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in NETWORKS if name != "resnet18"])
def test_removing_units_equals_the_network_without_them(name: str) -> None:
    model, example = NETWORKS[name](0)
    found = anatomy(model, example)
    assert found.free
    check_cuts(model, example, found)


@pytest.mark.parametrize("name", EXPECTED)
def test_positions_lie_on_their_axis_and_belong_to_one_unit(name: str) -> None:
    for space in anatomy(*NETWORKS[name](0)).spaces.values():
        for place in (*space.producers, *space.passes, *space.consumers):
            assert place.positions.shape[0] == space.size
            assert place.positions.min() >= 0
            assert place.positions.max() < place.length
            assert len(numpy.unique(place.positions)) == place.positions.size


@pytest.mark.parametrize("name", EXPECTED)
def test_every_position_of_every_layer_belongs_to_a_space(name: str) -> None:
    taken: dict[tuple[str, str, int], set[int]] = {}
    lengths: dict[tuple[str, str, int], int] = {}
    for space in anatomy(*NETWORKS[name](0)).spaces.values():
        for place in space.places:
            for tensor, axis in place.tensors:
                key = (place.module, tensor, axis)
                taken.setdefault(key, set()).update(place.positions.reshape(-1).tolist())
                lengths[key] = place.length
    assert taken == {key: set(range(length)) for key, length in lengths.items()}


def test_groups_and_their_members_are_units_of_their_own() -> None:
    """A channel belongs to a group and to a place within it: both can go, in all tensors that have them."""
    found = anatomy(*built(lambda: GroupedNetwork(width=8, groups=2), (2, 3, 5, 5), seed=0))
    members, groups = found["stem:members"], found["stem:groups"]
    assert members.producers[0].positions.tolist() == [[[unit], [unit + 4]] for unit in range(4)]
    assert groups.producers[0].positions.tolist() == [[[0, 1, 2, 3]], [[4, 5, 6, 7]]]
    assert groups.producers[1].name == "grouped.weight"
    assert groups.producers[1].positions.tolist() == [[[0, 1, 2]], [[3, 4, 5]]]


@pytest.mark.slow
def test_resnet18() -> None:
    model, example = NETWORKS["resnet18"](0)
    assert sum(parameter.numel() for parameter in model.parameters()) == 11_173_962
    spaces = anatomy(model, example).spaces
    inner = {f"layers.{stage}.{block}.conv1": 64 * 2**stage for stage in range(4) for block in range(2)}
    outer = {"conv1": 64, **{f"layers.{stage}.0.conv2": 64 * 2**stage for stage in range(1, 4)}}
    assert {name: space.size for name, space in spaces.items()} == {"x": 3, **inner, **outer, "fc": 10}
    assert {name for name, space in spaces.items() if space.fixed} == {"x", "fc"}
    for name in inner:
        block = name.removesuffix(".conv1")
        assert summary(spaces[name])[2:] == (name, f"{block}.bn1", f"{block}.conv2")
    assert summary(spaces["layers.3.0.conv2"])[2:] == (
        "layers.3.0.conv2 layers.3.0.shortcut.0 layers.3.1.conv2",
        "layers.3.0.bn2 layers.3.0.shortcut.1 layers.3.1.bn2",
        "layers.3.1.conv1 fc",
    )


@pytest.mark.slow
def test_a_narrow_resnet18_on_larger_images_has_the_same_spaces() -> None:
    wide = anatomy(*built(ResNet18, (1, 3, 32, 32), seed=0))
    narrow = anatomy(*built(lambda: ResNet18(width=2), (1, 3, 64, 64), seed=0))
    assert list(narrow.spaces) == list(wide.spaces)
    assert narrow["layers.2.0.conv2"].size == 8


def test_positions_of_flattened_and_concatenated_units() -> None:
    found = anatomy(*built(InceptionNetwork, (2, 3, 6, 6), seed=0))
    (place,) = found["wide"].consumers
    assert (place.module, place.role, place.length, place.offset, place.repeat) == ("head", "reads", 81, 36, 9)
    assert place.positions.tolist() == [[list(range(36, 45))], [list(range(45, 54))]]


def test_a_gate_meets_each_unit_twice() -> None:
    (place,) = anatomy(*NETWORKS["gated"](0))["expand"].producers
    assert place.positions.tolist() == [[[unit], [unit + 4]] for unit in range(4)]


def test_a_scale_that_forward_reads_is_a_parameter_of_the_network() -> None:
    scale = anatomy(*NETWORKS["gated"](0))["stem"].passes[1]
    assert (scale.module, scale.parameter, scale.dimension, scale.name) == ("", "scale", 0, "scale")
    assert scale.positions.tolist() == [[[unit]] for unit in range(6)]


@pytest.mark.parametrize("widths", [(1, 1, 1), (1, 5, 2), (7, 1, 1)])
def test_spaces_of_one_unit(widths: tuple[int, ...]) -> None:
    model, example = built(lambda: CascadeNetwork(widths), (4, 3), seed=0)
    assert [space.size for space in anatomy(model, example).free.values()] == list(widths)


@pytest.mark.parametrize("size", [1, 2])
def test_one_channel_before_flattening_stays(size: int) -> None:
    """A view of (2, 1, 4) as (2, 4) does not say which axis the single one went into."""
    parts: Makers = {"conv": lambda: nn.Conv2d(3, 1, 1), "head": lambda: nn.Linear(size * size, 2)}
    found = anatomy(*written(lambda net, x: net.head(net.conv(x).flatten(1)), (2, 3, size, size), parts))
    assert re.fullmatch(
        rf"its axis disappears \(view in the network's forward, test_anatomy\.py line \d+\); {KEPT_AXIS}",
        found["conv"].reason or "",
    )


@pytest.mark.parametrize("width", [2, 3])
def test_flattening_one_pixel_keeps_one_position_a_unit(width: int) -> None:
    parts: Makers = {"conv": lambda: nn.Conv2d(3, width, 1), "head": lambda: nn.Linear(width, 2)}
    found = anatomy(*written(lambda net, x: net.head(net.conv(x).view(x.size(0), -1)), (2, 3, 1, 1), parts))
    assert found["conv"].consumers[0].positions.tolist() == [[[unit]] for unit in range(width)]


def test_an_unknown_space_is_told_the_others() -> None:
    with pytest.raises(ModelError, match=r"^there is no space 'hiden': known are x, stem, hidden, head$"):
        anatomy(*NETWORKS["normed"](0))["hiden"]


def test_layers_are_remembered_in_the_order_in_which_they_run() -> None:
    calls = anatomy(*NETWORKS["frozen"](0)).calls
    assert list(calls) == [*(f"trunk.{number}" for number in range(7)), "hidden", "head"]
    assert (calls["trunk.3"].shape, calls["trunk.3"].axis) == ((2, 7, 3, 3), -3)
    assert (calls["trunk.6"].shape, calls["trunk.6"].axis) == ((2, 28), -1)


def test_the_printed_table() -> None:
    assert str(anatomy(*NETWORKS["residual"](0))).splitlines() == [
        "space      units  written by    passes through  read by",
        "x          3      -             -               stem                 fixed: they come from 'x'",
        "stem       6      stem, second  stem_norm +2    first, pointwise +1",
        "first      5      first         first_norm      second",
        "pointwise  4      pointwise     pointwise_norm  head+6",
        "head       3      head          -               -                    fixed: the network's output",
        "791 of 865 parameters can go, with one unit left per space.",
        "Held by what is fixed:",
        "  18 by 'x': they come from 'x'",
        "  6 by 'head': the network's output",
    ]
    assert "head+36×9" in str(anatomy(*NETWORKS["inception"](0)))
