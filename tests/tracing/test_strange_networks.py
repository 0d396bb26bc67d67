"""Strange but legal networks: what is free can be cut, and the cut network equals the whole one without the units."""

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
STEPS = (2, 3, 4)
CONV: Makers = {"conv": lambda: nn.Conv2d(3, 6, 1), "head": lambda: nn.Linear(6, 2)}
TWO: Makers = {**CONV, "other": lambda: nn.Conv2d(3, 6, 3, padding=1)}
LAYER: Makers = {"layer": lambda: nn.Linear(4, 6), "head": lambda: nn.Linear(6, 2)}


def head(width: int) -> Makers:
    return {"head": lambda: nn.Linear(width, 2)}


def twice(x: Tensor, join: Callable[[Tensor, Tensor], Tensor]) -> Tensor:
    return join(x, x)


def inplace(net: Any, x: Tensor) -> Tensor:
    y = net.conv(x)
    y.relu_()
    y *= 2
    y += net.other(x)
    y.add_(1).mul_(net.scale)
    given: Tensor = net.head(functional.relu(y, inplace=True).mean([2, 3]))
    return given


def unpacked(net: Any, x: Tensor) -> Tensor:
    y = net.conv(x)
    batch, channels, height, width = y.shape
    given: Tensor = net.head(y.view(batch, channels, height * width).mean(-1))
    return given


def channels_last(net: Any, x: Tensor) -> Tensor:
    y = net.conv(x).permute(0, 2, 3, 1)
    y = (torch.relu(net.middle(y)) + y).permute(0, 3, 1, 2)
    given: Tensor = net.head(net.last(y).mean((2, 3)))
    return given


def halves(net: Any, x: Tensor) -> Tensor:
    upper, lower = net.conv(x).chunk(2, dim=2)
    given: Tensor = net.head((upper - lower).mean((2, 3)))
    return given


def thirds(net: Any, x: Tensor) -> Tensor:
    first, second, third = torch.chunk(input=net.conv(x), chunks=3, dim=1)
    given: Tensor = net.head((first + second * third).mean((2, 3)))
    return given


class Pair(nn.Module):
    """A module that returns a tuple with a mapping in it."""

    def __init__(self) -> None:
        super().__init__()
        self.one = nn.Conv2d(3, 6, 1)
        self.two = nn.Conv2d(3, 5, 1)

    def forward(self, x: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
        return self.one(x), {"two": self.two(x)}


def from_pair(net: Any, x: Tensor) -> Tensor:
    one, named = net.pair(x)
    given: Tensor = net.head(torch.cat([one, named["two"]], 1).mean((2, 3)))
    return given


def unet(net: Any, x: Tensor) -> Tensor:
    fine = functional.relu(net.conv(x))
    coarse = functional.relu(net.down(functional.max_pool2d(fine, 2)))
    given: Tensor = net.last(torch.cat([fine, functional.interpolate(coarse, size=x.shape[2:])], dim=1))
    return given


def densely(net: Any, x: Tensor) -> Tensor:
    y = net.conv(x)
    z = net.second(y)
    given: Tensor = net.head(torch.cat([y, z, net.third(torch.cat([y, z], 1))], 1).mean((2, 3)))
    return given


# name: (code, shape, parts, the free spaces and their sizes)
STRANGE: dict[str, tuple[Code, tuple[int, ...], Makers, dict[str, int]]] = {
    "x + x": (lambda net, x: net.head(twice(net.conv(x), torch.add).mean((2, 3))), IMAGES, CONV, {"conv": 6}),
    "joined with itself": (
        lambda net, x: net.head(twice(net.conv(x), lambda a, b: torch.cat([a, b], 1)).mean((2, 3))),
        IMAGES,
        {**CONV, **head(12)},
        {"conv": 6},
    ),
    "joined with itself and flattened": (
        lambda net, x: net.head(twice(net.conv(x), lambda a, b: torch.cat([a, b], 1)).flatten(1)),
        IMAGES,
        {**CONV, **head(12 * 16)},
        {"conv": 6},
    ),
    "view and mean": (unpacked, IMAGES, CONV, {"conv": 6}),
    "view with the size of the image": (
        lambda net, x: net.head(net.conv(x).view(x.size(0), -1, 16).mean(-1)),
        IMAGES,
        CONV,
        {"conv": 6},
    ),
    "channels last": (
        channels_last,
        IMAGES,
        {
            **CONV,
            "middle": lambda: nn.Linear(6, 6),
            "last": lambda: nn.Conv2d(6, 5, 1),
            **head(5),
        },
        {"conv": 6, "last": 5},
    ),
    "pieces of the image": (
        halves,
        IMAGES,
        CONV,
        {"conv": 6},
    ),
    "pieces joined again": (
        lambda net, x: net.head(torch.cat(net.conv(x).chunk(2, dim=1), dim=1).mean((2, 3))),
        IMAGES,
        CONV,
        {"conv": 3},
    ),
    "three pieces by name": (
        thirds,
        IMAGES,
        {**CONV, **head(2)},
        {"conv": 2},
    ),
    "a functional gate over flattened channels": (
        lambda net, x: net.head(functional.glu(net.conv(x).flatten(1), dim=1)),
        IMAGES,
        {**CONV, **head(48)},
        {"conv": 3},
    ),
    "every second row": (lambda net, x: net.head(net.conv(x)[:, :, ::2].mean((2, 3))), IMAGES, CONV, {"conv": 6}),
    "dots and numbers": (lambda net, x: net.head(net.conv(x)[..., 1:3, 0].mean(-1)), IMAGES, CONV, {"conv": 6}),
    "new axes": (lambda net, x: net.head(net.conv(x)[:, None, :, 0, 0][:, 0]), IMAGES, CONV, {"conv": 6}),
    "padded channels": (
        lambda net, x: net.head(functional.pad(net.conv(x), (0, 0, 1, 0, 1, 2)).mean((2, 3))),
        IMAGES,
        {**CONV, **head(9)},
        {"conv": 6},
    ),
    "a padded shortcut": (
        lambda net, x: net.head((functional.pad(net.conv(x), (0, 0, 0, 0, 2, 2)) + net.wider(x)).mean((2, 3))),
        IMAGES,
        {**CONV, "wider": lambda: nn.Conv2d(3, 10, 1), **head(10)},
        {"conv": 6},
    ),
    "functions": (
        lambda net, x: net.head(
            torch.flatten(functional.adaptive_avg_pool2d(functional.max_pool2d(net.conv(x).relu(), 2), 1), start_dim=1)
        ),
        IMAGES,
        CONV,
        {"conv": 6},
    ),
    "in place": (inplace, IMAGES, {**TWO, "scale": lambda: nn.Parameter(torch.rand(6, 1, 1))}, {"conv": 6}),
    "joined by name": (
        lambda net, x: net.head(torch.cat(tensors=[net.conv(x), net.other(x)], dim=1).mean((2, 3))),
        IMAGES,
        {**TWO, **head(12)},
        {"conv": 6, "other": 6},
    ),
    "joined along the image": (
        lambda net, x: net.head(torch.cat((net.conv(x), net.other(x)), dim=-1).mean((2, 3))),
        IMAGES,
        TWO,
        {"conv": 6},
    ),
    "nested": (
        lambda net, x: net.outer(x),
        IMAGES,
        {
            "outer": lambda: nn.Sequential(
                nn.Sequential(nn.Conv2d(3, 6, 1), nn.Sequential(nn.ReLU(), nn.Dropout2d())),
                nn.Flatten(),
                nn.Linear(96, 2),
            )
        },
        {"outer.0.0": 6},
    ),
    "a module list": (
        lambda net, x: net.layers[2](net.layers[1](net.layers[0](x))),
        ROWS,
        {"layers": lambda: nn.ModuleList([nn.Linear(4, 6), nn.Linear(6, 5), nn.Linear(5, 2)])},
        {"layers.0": 6, "layers.1": 5},
    ),
    "an unused layer": (lambda net, x: net.head(net.conv(x).mean((2, 3))), IMAGES, TWO, {"conv": 6}),
    "a result that nobody reads": (
        lambda net, x: (net.other(x), net.head(net.conv(x).mean((2, 3))))[1],
        IMAGES,
        TWO,
        {"conv": 6, "other": 6},
    ),
    "a module that returns a tuple": (
        from_pair,
        IMAGES,
        {"pair": Pair, **head(11)},
        {"pair.one": 6, "pair.two": 5},
    ),
    "numbers": (lambda net, x: net.head((1 - 2 * net.conv(x) / 3 + 1).mean((2, 3))), IMAGES, CONV, {"conv": 6}),
    "softmax over the image": (
        lambda net, x: net.head(torch.softmax(net.conv(x), -1).amax((2, 3))),
        IMAGES,
        CONV,
        {"conv": 6},
    ),
    "a choice": (
        lambda net, x: net.head(twice(net.conv(x), lambda a, b: torch.where(a > 0, b, 0.1 * b)).mean((2, 3))),
        IMAGES,
        CONV,
        {"conv": 6},
    ),
    "one map for all channels": (
        lambda net, x: net.head((net.conv(x) * torch.sigmoid(net.map(x))).mean((2, 3))),
        IMAGES,
        {**CONV, "map": lambda: nn.Conv2d(3, 1, 3, padding=1)},
        {"conv": 6},
    ),
    "a sum of two joins": (
        lambda net, x: net.head(torch.cat([net.a(x), net.b(x)], 1) + net.c(x)),
        ROWS,
        {"a": lambda: nn.Linear(4, 3), "b": lambda: nn.Linear(4, 2), "c": lambda: nn.Linear(4, 5), **head(5)},
        {"a": 3, "b": 2},
    ),
    "joined in both orders": (
        lambda net, x: net.head(torch.cat([net.a(x), net.b(x)], 1) + torch.cat([net.b(x), net.a(x)], 1)),
        ROWS,
        {"a": lambda: nn.Linear(4, 3), "b": lambda: nn.Linear(4, 3), **head(6)},
        {"a": 3},
    ),
    "a dense block": (
        densely,
        IMAGES,
        {**CONV, "second": lambda: nn.Conv2d(6, 3, 1), "third": lambda: nn.Conv2d(9, 2, 1), **head(11)},
        {"conv": 6, "second": 3, "third": 2},
    ),
    "down and up": (
        unet,
        IMAGES,
        {"conv": lambda: nn.Conv2d(3, 6, 1), "down": lambda: nn.Conv2d(6, 5, 1), "last": lambda: nn.Conv2d(11, 1, 1)},
        {"conv": 6, "down": 5},
    ),
    "flattened channels plus a linear layer": (
        lambda net, x: net.head(net.conv(x).flatten(1) + net.linear(x.flatten(1))),
        IMAGES,
        {**CONV, "linear": lambda: nn.Linear(48, 96), **head(96)},
        {"conv": 6},
    ),
    "several outputs a channel": (
        lambda net, x: net.head(net.norm(net.multiplied(net.conv(x))).flatten(1)),
        IMAGES,
        {
            **CONV,
            "multiplied": lambda: nn.Conv2d(6, 12, 3, padding=1, groups=6),
            "norm": lambda: nn.BatchNorm2d(12),
            **head(192),
        },
        {"conv:groups": 6, "multiplied:members": 2},
    ),
    "groups of groups": (
        lambda net, x: net.head(net.norm(net.grouped(net.wide(x))).flatten(1)),
        IMAGES,
        {
            "wide": lambda: nn.Conv2d(3, 12, 1),
            "grouped": lambda: nn.Conv2d(12, 12, 3, padding=1, groups=6),
            "norm": lambda: nn.GroupNorm(3, 12),
            **head(192),
        },
        {"wide:members": 2, "wide:groups": 2, "grouped:members": 2},
    ),
    "groups over a join": (
        lambda net, x: net.head(net.norm(torch.cat([net.conv(x), net.pair(x)], 1)).mean((2, 3))),
        IMAGES,
        {**CONV, "pair": lambda: nn.Conv2d(3, 4, 1), "norm": lambda: nn.GroupNorm(5, 10), **head(10)},
        {"conv:groups": 3, "conv:members": 2, "pair:groups": 2},
    ),
    "a norm that is used twice": (
        lambda net, x: net.head(net.norm(net.second(net.norm(net.layer(x))))),
        ROWS,
        {**LAYER, "second": lambda: nn.Linear(6, 6), "norm": lambda: nn.BatchNorm1d(6)},
        {"layer": 6},
    ),
    "a parameter with the units first": (
        lambda net, x: net.head((net.layer(x).unsqueeze(-1) * net.table).flatten(1)),
        ROWS,
        {**LAYER, "table": lambda: nn.Parameter(torch.rand(6, 5)), **head(30)},
        {"layer:groups": 6, "table:members": 5},
    ),
    "steps": (lambda net, x: net.head(net.layer(x).transpose(dim0=1, dim1=2).mean(-1)), STEPS, LAYER, {"layer": 6}),
    "hidden units that are an output too": (lambda net, x: (net.layer(x), net.head(net.layer(x))), ROWS, LAYER, {}),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", STRANGE)
def test_free_spaces_and_cuts(name: str) -> None:
    code, shape, parts, free = STRANGE[name]
    model, example = written(code, shape, parts)
    found = anatomy(model, example)
    assert {name: space.size for name, space in found.free.items()} == free
    check_cuts(model, example, found)


def test_a_unit_that_is_joined_with_itself_occurs_twice() -> None:
    code, shape, parts, _ = STRANGE["joined with itself and flattened"]
    (place,) = anatomy(*written(code, shape, parts))["conv"].consumers
    assert place.positions.shape == (6, 2, 16)
    assert place.positions[1].tolist() == [list(range(16, 32)), list(range(112, 128))]


def test_padding_is_a_space_of_its_own() -> None:
    code, shape, parts, _ = STRANGE["padded channels"]
    found = anatomy(*written(code, shape, parts))
    assert found["conv"].consumers[0].offset == 1
    assert (found["padding"].size, found["padding"].reason) == (3, "they come from 'padding'")


def test_a_map_for_all_channels_modulates_them() -> None:
    code, shape, parts, _ = STRANGE["one map for all channels"]
    found = anatomy(*written(code, shape, parts))
    assert (found["map"].reason or "").startswith("one unit is spread over many (mul in the network's forward, test_")
    assert found["conv"].modulated
    assert not found["map"].modulated
