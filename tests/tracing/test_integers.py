"""Numbers of the code lead back to attributes and sizes, through arithmetic; what a cut makes wrong is rewritten."""

import math
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn

from tests.tracing.cutting import check_network
from topiarist import surgery
from topiarist.tracing import anatomy
from topiarist.tracing.attributes import write_integer
from topiarist.tracing.integers import Attribute, Computed, Literal, TrackedInt, expression_of, tracked
from topiarist.tracing.labels import Labels

STEPS = torch.randn(2, 5, 4, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
OPERATIONS = ("+", "-", "*", "//", "%")


@given(st.integers(1, 50), st.integers(1, 50), st.lists(st.sampled_from(OPERATIONS), min_size=1, max_size=4), st.data())
def test_arithmetic_remembers_its_numbers(old: int, new: int, signs: list[str], data: st.DataObject) -> None:
    """What an expression says of another value is what Python computes with it."""
    place = Attribute("block", ("width",))
    number, code = tracked(old, place), "width"
    value: Any = number
    for sign in signs:
        other = data.draw(st.integers(1, 9))
        left = data.draw(st.booleans()) and sign not in ("//", "%")
        code = f"({other} {sign} {code})" if left else f"({code} {sign} {other})"
        value = eval(f"{other} {sign} value" if left else f"value {sign} {other}", {"value": value})
    assert isinstance(value, TrackedInt)
    assert value == eval(code, {"width": old})
    assert expression_of(value).value(Labels(), None, {place: new}) == eval(code, {"width": new})  # type: ignore[arg-type]


def test_two_attributes_in_one_expression() -> None:
    width, heads = Attribute("", ("width",)), Attribute("", ("heads",))
    found = tracked(12, width) // tracked(3, heads)
    expression = expression_of(found)
    assert isinstance(expression, Computed)
    assert expression.value(Labels(), None, {width: 8, heads: 2}) == 4  # type: ignore[arg-type]
    assert expression.value(Labels(), None, {width: 8, heads: 0}) == -1  # type: ignore[arg-type]
    assert expression_of(7) == Literal(7)


def test_a_tracked_number_is_a_number() -> None:
    number = tracked(6, Attribute("", ("width",)))
    assert hash(number) == hash(6) and number == 6 and {6: "six"}[number] == "six"
    assert number / 4 == 1.5 and math.sqrt(number) == 6**0.5 and number**-1 == 1 / 6
    assert list(range(number)) == list(range(6)) and [0] * number == [0] * 6 and f"{number:03d}" == "006"


def test_integers_are_written_in_copies() -> None:
    shared = SimpleNamespace(sizes=(3, [4, 5]), names={"heads": 2})
    one, other = nn.Module(), nn.Module()
    one.config = other.config = shared  # type: ignore[assignment]
    write_integer(one, Attribute("", ("config", "sizes", 1, 0)), 9)
    write_integer(one, Attribute("", ("config", "names", "heads")), 1)
    assert vars(one)["config"] == SimpleNamespace(sizes=(3, [9, 5]), names={"heads": 1})
    assert vars(other)["config"] == SimpleNamespace(sizes=(3, [4, 5]), names={"heads": 2})


class Heads(nn.Module):
    """Attention by hand whose dims are what the width has for each head."""

    def __init__(self, config: Any, *, joint: bool) -> None:
        super().__init__()
        self.config, self.joint = config, joint
        self.stem = nn.Linear(4, config.width)
        self.packed = nn.Linear(config.width, 3 * config.width)
        self.out = nn.Linear(config.width, config.width)
        self.head = nn.Linear(config.width, 2)

    def forward(self, x: Tensor) -> Tensor:
        x = self.stem(x)
        batch, length, width = x.shape
        heads = self.config.heads
        dims = width // heads if self.joint else self.config.dims
        queries, keys, values = self.packed(x).view(batch, length, 3, heads, dims).permute(2, 0, 3, 1, 4)
        weights = (queries @ keys.transpose(-2, -1)).softmax(-1)
        mixed = (weights @ values).transpose(1, 2).reshape(batch, length, heads * dims)
        given: Tensor = self.head(x + self.out(mixed))
        return given


def config() -> Any:
    return SimpleNamespace(width=12, heads=3, dims=4)


def test_a_width_that_heads_divide_makes_one_space_with_them(tmp_path: Path) -> None:
    """With `dims = width // heads`, width and heads go together: a quarter of the heads is a quarter of the width."""
    found = check_network(lambda: Heads(config(), joint=True), STEPS, tmp_path)
    (space,) = found.free.values()
    assert {place.module for place in space.places} == {"stem", "packed", "out", "head"}


@pytest.mark.slow
def test_heads_with_a_number_of_dims_of_their_own_are_free_of_the_width(tmp_path: Path) -> None:
    found = check_network(lambda: Heads(config(), joint=False), STEPS, tmp_path)
    assert sorted(space.size for space in found.free.values()) == [3, 4, 12]


def test_modules_that_share_a_config_get_a_copy_each() -> None:
    settings = config()
    model = nn.Sequential(Heads(settings, joint=False), nn.Linear(2, 4), Heads(settings, joint=False)).double().eval()
    found = anatomy(model, STEPS)
    heads = [name for name, space in found.free.items() if name.startswith("0.") and space.size == 3]
    smaller: Any = surgery.remove(model, STEPS, units={heads[0]: [1]}, anatomy=found)
    assert (smaller[0].config.heads, smaller[2].config.heads, settings.heads) == (2, 3, 3)
    assert smaller[2].config is not smaller[0].config


class Parted(nn.Module):
    """Units that are split by sizes which attributes hold, and sliced at the sum of them."""

    def __init__(self) -> None:
        super().__init__()
        self.left, self.right = 5, 3
        self.first = nn.Linear(4, 8)
        self.one, self.other, self.sliced = nn.Linear(5, 2), nn.Linear(3, 2), nn.Linear(3, 2)

    def forward(self, x: Tensor) -> Tensor:
        y = self.first(x)
        left, right = y.split([self.left, self.right], dim=-1)
        behind = y[..., self.left : self.left + self.right]
        given: Tensor = self.one(left) + self.other(right) + self.sliced(behind) + self.sliced(y[..., -self.right :])
        return given


def test_split_sizes_and_the_bounds_of_slices_follow(tmp_path: Path) -> None:
    found = check_network(Parted, STEPS, tmp_path)
    assert sorted(space.size for space in found.free.values()) == [3, 5]
    model = Parted()
    name = next(name for name, space in found.free.items() if space.size == 5)
    smaller: Any = surgery.remove(model, STEPS.float(), units={name: [0, 1]})
    assert (smaller.left, smaller.right, smaller.first.out_features) == (3, 3, 6)
    assert (model.left, model.right) == (5, 3)


class Written(Parted):
    """The same with numbers in the code."""

    def forward(self, x: Tensor) -> Tensor:
        left, right = self.first(x).split([5, 3], dim=-1)
        given: Tensor = self.one(left) + self.other(right)
        return given


def test_numbers_in_the_code_are_refused_with_their_line() -> None:
    found = anatomy(Written(), STEPS.float())
    reasons = [space.reason or "" for space in found.spaces.values() if space.name.startswith("first")]
    assert len(reasons) == 2
    for number, reason in zip((5, 3), reasons, strict=True):
        expected = rf"`split\w*` in the network's forward has the number {number}, test_integers\.py line \d+: write .*"
        assert re.fullmatch(expected, reason), reason


class HeadsInTheBatch(nn.Module):
    """Code that names its width and its heads in one expression, and nowhere else."""

    def __init__(self) -> None:
        super().__init__()
        self.width, self.heads = 12, 3
        self.first, self.keys, self.last = nn.Linear(4, 12), nn.Linear(12, 12), nn.Linear(12, 2)

    def forward(self, x: Tensor) -> Tensor:
        size = self.width // self.heads
        queries = self.first(x)
        apart, keys = (torch.cat(torch.split(each, size, 2), 0) for each in (queries, self.keys(queries)))
        mixed = torch.softmax(apart @ keys.transpose(1, 2), 2) @ keys
        result: Tensor = self.last(torch.cat(torch.split(mixed, len(x), 0), 2))
        return result


def test_of_two_numbers_in_one_expression_the_one_that_fits_is_rewritten(tmp_path: Path) -> None:
    found = check_network(HeadsInTheBatch, STEPS, tmp_path)
    assert {name: space.size for name, space in found.free.items()} == {"first": 4}
    cut = surgery.remove(HeadsInTheBatch().double(), STEPS, units={"first": [1, 2]})
    assert isinstance(cut, HeadsInTheBatch)
    assert (cut.width, cut.heads, cut.keys.out_features) == (6, 3, 6)
