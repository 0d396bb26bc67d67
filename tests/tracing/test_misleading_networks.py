"""Networks that are easily misread: nothing may be cut wrongly in silence.

Whatever an anatomy calls free is cut, by several choices of units, and must equal the network without them; what cannot
be cut must be fixed, with a reason that names the operation and the line, or the layer.
"""

import re
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from tests.tracing.cutting import Makers, check_cuts, written
from topiarist.tracing import anatomy

Code = Callable[[Any, Tensor], Any]
IMAGES = (2, 3, 4, 4)
ROWS = (2, 4)
CONV: Makers = {"conv": lambda: nn.Conv2d(3, 6, 1), "head": lambda: nn.Linear(6, 2)}
TWO: Makers = {**CONV, "other": lambda: nn.Conv2d(3, 6, 1)}
LAYER: Makers = {"layer": lambda: nn.Linear(4, 6), "head": lambda: nn.Linear(6, 2)}


def head(width: int) -> Makers:
    return {"head": lambda: nn.Linear(width, 2)}


def size_of_another(net: Any, x: Tensor) -> Tensor:
    y = net.conv(x)
    batch, channels, _, _ = y.shape
    given: Tensor = net.head(net.second(y).view(batch, channels, -1).mean(-1))
    return given


def pooled_and_flat(net: Any, x: Tensor) -> Tensor:
    y = net.conv(x)
    given: Tensor = net.head(torch.cat([y.flatten(1), y.mean((2, 3))], 1))
    return given


def scaled_by_count(net: Any, x: Tensor) -> Tensor:
    h = net.layer(x)
    given: Tensor = net.head(h * h.shape[1] ** -0.5)
    return given


# name: (code, shape, parts)
UNSOUND: dict[str, tuple[Code, tuple[int, ...], Makers]] = {
    "flattened and pooled units joined": (pooled_and_flat, IMAGES, {**CONV, **head(6 * 17)}),
    "a gate that halves a unit": (
        lambda net, x: net.head(functional.glu(net.three(x).flatten(1), dim=1)),
        IMAGES,
        {"three": lambda: nn.Conv2d(3, 3, 1), **head(24)},
    ),
    "swapaxes by name": (
        lambda net, x: net.head(net.layer(x).swapaxes(axis0=1, axis1=2).mean(-1)),
        (2, 3, 4),
        LAYER,
    ),
    "the input is indexed by units": (
        lambda net, x: net.head(net.layer(x)) + x[net.same(x) > 0].sum(),
        ROWS,
        {**LAYER, "same": lambda: nn.Linear(4, 4)},
    ),
    "one map times the input, then joined": (
        lambda net, x: net.head(torch.cat([x * torch.sigmoid(net.map(x)), net.conv(x)], 1).mean((2, 3))),
        IMAGES,
        {**CONV, "map": lambda: nn.Conv2d(3, 1, 1), **head(9)},
    ),
    "one unit times a longer parameter, then joined": (
        lambda net, x: net.head(torch.cat([net.map(x) * net.scale, net.conv(x)], 1).mean((2, 3))),
        IMAGES,
        {**CONV, "map": lambda: nn.Conv2d(3, 1, 1), "scale": lambda: nn.Parameter(torch.rand(4, 1, 1)), **head(10)},
    ),
    "a constant written in forward": (
        lambda net, x: net.head((net.conv(x) * torch.full((6, 1, 1), 2.0, dtype=torch.float64)).mean((2, 3))),
        IMAGES,
        CONV,
    ),
    "the size of another space": (size_of_another, IMAGES, {**CONV, "second": lambda: nn.Conv2d(6, 6, 1)}),
    "the shape of another space": (
        lambda net, x: net.head(net.conv(x).view(net.other(x).shape).mean((2, 3))),
        IMAGES,
        TWO,
    ),
    "a written size by name": (
        lambda net, x: net.head(torch.reshape(input=net.conv(x), shape=(2, 96))),
        IMAGES,
        {**CONV, **head(96)},
    ),
    "a parameter read directly and through a function": (
        lambda net, x: net.head(
            torch.cat([net.conv(x) * net.scale, net.other(x) * net.scale.view(1, -1, 1, 1)], 1).mean((2, 3))
        ),
        IMAGES,
        {**TWO, "scale": lambda: nn.Parameter(torch.rand(6, 1, 1)), **head(12)},
    ),
    "a parameter that a layer reads": (
        lambda net, x: net.head(net.layer(x) * net.scale) + net.last(net.scale),
        ROWS,
        {**LAYER, "scale": lambda: nn.Parameter(torch.rand(1, 6)), "last": lambda: nn.Linear(6, 2)},
    ),
    "a parameter that is returned": (
        lambda net, x: (net.head(net.layer(x) * net.scale), net.scale),
        ROWS,
        {**LAYER, "scale": lambda: nn.Parameter(torch.rand(6))},
    ),
    "a layer's weight read beside the layer": (
        lambda net, x: net.head(net.layer(x)) + net.last(functional.linear(x, net.layer.weight)),
        ROWS,
        {**LAYER, "last": lambda: nn.Linear(6, 2)},
    ),
    "a norm's weight read beside the norm": (
        lambda net, x: net.head(net.norm(net.layer(x)) * net.norm.weight),
        ROWS,
        {**LAYER, "norm": lambda: nn.BatchNorm1d(6)},
    ),
    "a layer's weight as an example of a type": (
        lambda net, x: net.head(net.layer(x).type_as(net.head.weight)),
        ROWS,
        LAYER,
    ),
    "a parameter along two of its axes": (
        lambda net, x: net.head(
            torch.cat([(net.layer(x).unsqueeze(2) * net.table).sum(2), (net.b(x).unsqueeze(1) * net.table).sum(1)], 1)
        ),
        ROWS,
        {**LAYER, "b": lambda: nn.Linear(4, 6), "table": lambda: nn.Parameter(torch.rand(6, 6)), **head(12)},
    ),
    "units padded by reflection": (
        lambda net, x: net.head(functional.pad(net.layer(x), (1, 1), mode="reflect")),
        (2, 3, 4),
        {**LAYER, **head(8)},
    ),
    "units scaled by their number": (scaled_by_count, ROWS, LAYER),
    "a mean over no axes, which is one over all": (
        lambda net, x: net.head(net.layer(x) + net.layer(x).mean(dim=())),
        ROWS,
        LAYER,
    ),
    "a tuple through an identity": (
        lambda net, x: net.head(net.same((net.layer(x), x))[0]),
        ROWS,
        {**LAYER, "same": nn.Identity},
    ),
}


# what is fixed in these networks, by name, and why; everything else but inputs and outputs is free
FIXED: dict[str, dict[str, str]] = {
    "the input is indexed by units": {"same": "they number others \\(index in the network's forward, LINE\\); .*"},
    "one map times the input, then joined": {"map": "one unit is spread over many \\(mul in .*, LINE\\); .*"},
    "one unit times a longer parameter, then joined": {"map": "one unit is spread over many \\(mul in .*, LINE\\); .*"},
    "a constant written in forward": {"conv": "`full` in the network's forward has the number 6, LINE: write .*"},
    "a written size by name": {"conv": "`reshape` in the network's forward has the number 96, LINE: write .*"},
    "a parameter that is returned": {"layer": "the network's output"},
    "units padded by reflection": {"layer": "'reflection_pad1d' runs along them \\(.*, LINE\\); .*"},
}


@pytest.mark.parametrize("name", UNSOUND)
def test_what_is_free_can_be_cut_and_the_rest_says_why_not(name: str) -> None:
    code, shape, parts = UNSOUND[name]
    model, example = written(code, shape, parts)
    found = anatomy(model, example)
    layers = {name for name in parts if name not in ("head", "last", "scale", "table")}
    fixed = {space.name: space.reason for space in found.spaces.values() if space.fixed and space.name in layers}
    expected = FIXED.get(name, {})
    assert set(fixed) == set(expected)
    for space, reason in expected.items():
        assert re.fullmatch(reason.replace("LINE", r"test_misleading_networks\.py line \d+"), fixed[space] or "")
    check_cuts(model, example, found)


def test_a_parameter_that_two_operations_read() -> None:
    parts: Makers = {**LAYER, "b": lambda: nn.Linear(4, 6), "scale": lambda: nn.Parameter(torch.rand(6))}
    model, example = written(
        lambda net, x: net.head(net.layer(x) * net.scale) + (net.b(x) @ net.scale).unsqueeze(1), ROWS, parts
    )
    found = anatomy(model, example)
    assert {name: space.size for name, space in found.free.items()} == {"layer": 6}
    check_cuts(model, example, found)


def test_a_layer_that_runs_along_two_axes() -> None:
    def code(net: Any, x: Tensor) -> Any:
        return net.head(net.layer(x)).mean(1) + net.last(net.layer(net.before(x).transpose(1, 2))).mean(1)

    parts: Makers = {**LAYER, "before": lambda: nn.Linear(4, 3), "last": lambda: nn.Linear(6, 2)}
    model, example = written(code, (2, 4, 4), parts)
    found = anatomy(model, example)
    assert {name: space.size for name, space in found.free.items()} == {"before": 3, "layer": 6}
    check_cuts(model, example, found)


class Counting(nn.Module):
    """A network that counts its calls in a buffer and keeps its hidden units."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("calls", torch.zeros(()))
        self.layer = nn.Linear(4, 6)
        self.head = nn.Linear(6, 2)
        self.kept: Tensor | None = None

    def forward(self, x: Tensor) -> Tensor:
        self.get_buffer("calls").add_(1)
        self.kept = self.layer(x)
        given: Tensor = self.head(self.kept * torch.tensor(2.0))
        return given


def test_a_buffer_that_forward_changes_is_left_alone() -> None:
    model = Counting().eval()
    anatomy(model, torch.zeros(2, 4))
    assert model.calls == 0


def test_a_value_that_forward_keeps_is_left_alone() -> None:
    model = Counting().eval()
    anatomy(model, torch.zeros(2, 4))
    assert model.kept is None


def test_a_constant_in_forward_leaves_no_trace() -> None:
    model = Counting().eval()
    anatomy(model, torch.zeros(2, 4))
    assert not hasattr(model, "_tensor_constant0")


def test_a_forward_with_further_arguments() -> None:
    class Further(Counting):
        def forward(self, x: Tensor, *further: Tensor) -> Tensor:
            given: Tensor = self.head(self.layer(x))
            return given

    assert not anatomy(Further(), torch.zeros(2, 4))["layer"].fixed


def test_a_default_that_is_a_tuple() -> None:
    class Axes(Counting):
        def forward(self, x: Tensor, axes: tuple[int, ...] = (2, 3)) -> Tensor:
            given: Tensor = self.head(self.layer(x))
            return given

    assert not anatomy(Axes(), torch.zeros(2, 4))["layer"].fixed
