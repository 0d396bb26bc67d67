"""What no cut can keep is fixed, and the reason names operation, module and line; the rest stays free."""

import re
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from tests.tracing.cutting import Makers, check_cuts, written
from topiarist import surgery
from topiarist.errors import ModelError
from topiarist.tracing import anatomy
from topiarist.tracing.remedies import BUFFER, LAYER, RULE

Code = Callable[[Any, Tensor], Any]
IMAGES = (2, 3, 4, 4)
ROWS = (2, 4)
STEPS = (2, 3, 4)
HEAD: Makers = {"head": lambda: nn.Linear(6, 2)}
BEFORE: Makers = {"before": lambda: nn.Linear(4, 5), "wide": lambda: nn.Linear(5, 6), **HEAD}
CONVOLVED: Makers = {"before": lambda: nn.Conv2d(3, 5, 1), "wide": lambda: nn.Conv2d(5, 6, 1), **HEAD}
LINE = r"test_reasons\.py line \d+"
WRITE = "write -1, a size of the tensor or an attribute there"


# (code, shape, parts, why 'wide' is fixed); 'before' stays free
FIXED: dict[str, tuple[Code, tuple[int, ...], Makers, str]] = {
    "written size": (
        lambda net, x: net.head(net.wide(net.before(x)).view(x.size(0), 6, 16).mean(-1)),
        IMAGES,
        CONVOLVED,
        rf"`view` in the network's forward has the number 6, {LINE}: {WRITE}",
    ),
    "written flat size": (
        lambda net, x: net.flat(net.wide(net.before(x)).reshape(-1, 96)),
        IMAGES,
        {**CONVOLVED, "flat": lambda: nn.Linear(96, 2)},
        rf"`reshape` in the network's forward has the number 96, {LINE}: {WRITE}",
    ),
    "the first units": (
        lambda net, x: net.last(net.wide(net.before(x))[:, :4]),
        ROWS,
        {**BEFORE, "last": lambda: nn.Linear(4, 2)},
        rf"`slice` in the network's forward has the number 4, {LINE}: {WRITE}",
    ),
    "one unit by its number": (
        lambda net, x: net.head(net.wide(net.before(x)) * net.wide(net.before(x))[:, 2:3]),
        ROWS,
        BEFORE,
        rf"`slice` in the network's forward has the number 2, {LINE}: {WRITE}",
    ),
    "a unit picked": (
        lambda net, x: net.head(net.wide(net.before(x))) + net.wide(net.before(x))[:, 2].unsqueeze(1),
        ROWS,
        BEFORE,
        rf"one of them is picked by its number \(select in the network's forward, {LINE}\); {LAYER}",
    ),
    "the softmax": (
        lambda net, x: net.head(torch.softmax(net.wide(net.before(x)), dim=-1)),
        ROWS,
        BEFORE,
        rf"'softmax' runs over them \(_softmax in the network's forward, {LINE}\); {LAYER}",
    ),
    "a softmax layer": (
        lambda net, x: net.head(net.soft(net.wide(net.before(x)))),
        ROWS,
        {**BEFORE, "soft": lambda: nn.Softmax(1)},
        rf"'softmax' runs over them \(_softmax in 'soft', {LINE}\); {LAYER}",
    ),
    "the logarithm of a sum": (
        lambda net, x: net.head(net.wide(net.before(x)) - torch.logsumexp(net.wide(net.before(x)), 1, keepdim=True)),
        ROWS,
        BEFORE,
        rf"'logsumexp' runs over them \(logsumexp in the network's forward, {LINE}\); {LAYER}",
    ),
    "the largest": (
        lambda net, x: net.head(net.wide(net.before(x)) - net.wide(net.before(x)).amax(1, keepdim=True)),
        ROWS,
        BEFORE,
        rf"'amax' runs over them \(amax in the network's forward, {LINE}\); {LAYER}",
    ),
    "an order": (
        lambda net, x: net.head(net.wide(net.before(x)).sort(1).values),
        ROWS,
        BEFORE,
        rf"'sort' runs over them \(sort in the network's forward, {LINE}\); {LAYER}",
    ),
    "a running sum": (
        lambda net, x: net.head(net.wide(net.before(x)).cumsum(1)),
        ROWS,
        BEFORE,
        rf"'cumsum' runs over them \(cumsum in the network's forward, {LINE}\); {LAYER}",
    ),
    "a shift": (
        lambda net, x: net.head(net.wide(net.before(x)).roll(1, 1)),
        ROWS,
        BEFORE,
        rf"they are shifted by a number of positions \(roll in the network's forward, {LINE}\); {LAYER}",
    ),
    "a spectrum": (
        lambda net, x: net.head(torch.fft.fft(net.wide(net.before(x)), dim=1).real),
        ROWS,
        BEFORE,
        rf"'fft_r2c' runs over them \(_fft_r2c in the network's forward, {LINE}\); {LAYER}",
    ),
    "an operation without a rule": (
        lambda net, x: net.head(torch.linalg.qr(net.wide(net.before(x)))[1][:1]),
        ROWS,
        BEFORE,
        rf"'linalg_qr' is not understood \(linalg_qr in the network's forward, {LINE}\); {RULE}",
    ),
}


@pytest.mark.parametrize("name", FIXED)
def test_what_no_cut_can_keep_is_fixed_with_its_reason(name: str) -> None:
    code, shape, parts, reason = FIXED[name]
    model, example = written(code, shape, parts)
    found = anatomy(model, example)
    assert found["before"].size == 5 and not found["before"].fixed
    assert re.fullmatch(reason, found["wide"].reason or ""), found["wide"].reason
    check_cuts(model, example, found)
    with pytest.raises(ModelError, match=r"^the units of 'wide' are fixed: .*") as caught:
        surgery.remove(model, example, units={"wide": [0]}, anatomy=found)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", [name for name, (*_, reason) in FIXED.items() if reason.endswith(LAYER)])
def test_a_linear_layer_in_between_frees_them(name: str) -> None:
    code, shape, parts, _ = FIXED[name]
    between: Makers = {**parts, "wide": lambda: nn.Sequential(nn.Linear(5, 6), nn.Linear(6, 6))}
    model, example = written(code, shape, between)
    found = anatomy(model, example)
    assert not found["wide.0"].fixed and found["wide.1"].fixed
    check_cuts(model, example, found)


def test_a_constant_in_a_buffer_is_cut_with_the_units() -> None:
    parts: Makers = {"wide": lambda: nn.Linear(4, 6), "head": lambda: nn.Linear(6, 2)}
    constant = torch.arange(6, dtype=torch.float64)
    model, example = written(lambda net, x: net.head(net.wide(x) * constant), ROWS, parts)
    reason = anatomy(model, example)["wide"].reason or ""
    assert re.fullmatch(rf"they meet a constant \(mul in the network's forward, {LINE}\); {BUFFER}", reason)
    model, example = written(lambda net, x: net.head(net.wide(x) * net.constant), ROWS, parts)
    model.register_buffer("constant", constant)
    found = anatomy(model, example)
    assert not found["wide"].fixed
    check_cuts(model, example, found)


def test_a_written_number_of_groups_fixes_the_groups_and_leaves_their_members_free() -> None:
    model, example = written(
        lambda net, x: net.head(net.wide(net.before(x)).view(x.size(0), 2, -1).flatten(1)), ROWS, BEFORE
    )
    found = anatomy(model, example)
    assert {name: space.size for name, space in found.free.items()} == {"before": 5, "wide:members": 3}
    reason = found["wide:groups"].reason or ""
    assert re.fullmatch(rf"`view` in the network's forward has the number 2, {LINE}: {WRITE}", reason)
    check_cuts(model, example, found)


def test_what_is_not_understood_is_listed() -> None:
    code, shape, parts, _ = FIXED["an operation without a rule"]
    found = anatomy(*written(code, shape, parts))
    assert found.opaque == ("'linalg_qr' (1 times)",)
    assert "\nNot understood: 'linalg_qr' (1 times).\n" in str(found)


# what averages or sums over units: they are free, and flagged
MIXED: dict[str, tuple[Code, str]] = {
    "their mean": (lambda net, x: net.head(net.wide(x) - net.wide(x).mean(dim=1, keepdim=True)), "averaged"),
    "their deviation": (lambda net, x: net.head(net.wide(x) / net.wide(x).std(1, keepdim=True)), "averaged"),
    "their sum": (lambda net, x: net.head(net.wide(x) / net.wide(x).sum()), "escaped"),
    "their length": (lambda net, x: net.head(nn.functional.normalize(net.wide(x))), "escaped"),
    "products of all pairs": (lambda net, x: net.head(net.wide(x)) + (net.wide(x) @ net.wide(x).T).mean(), "escaped"),
}


@pytest.mark.parametrize("name", MIXED)
def test_what_averages_over_units_runs_over_those_that_are_left(name: str) -> None:
    code, flag = MIXED[name]
    model, example = written(code, ROWS, {"wide": lambda: nn.Linear(4, 6), **HEAD})
    found = anatomy(model, example)
    assert getattr(found["wide"], flag)
    check_cuts(model, example, found)


class Deciding(nn.Module):
    """A network that looks at its values."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 6)
        self.one = nn.Linear(6, 2)
        self.other = nn.Linear(6, 2)

    def forward(self, x: Tensor) -> Tensor:
        hidden = self.layer(x)
        given: Tensor = self.one(hidden) if x.sum() > 0 else self.other(hidden)
        return given


def test_parameters_that_the_run_never_reached_are_reported() -> None:
    found = anatomy(Deciding(), torch.ones(2, 4))
    assert found.unreached == ("other.weight", "other.bias")
    assert anatomy(Deciding(), -torch.ones(2, 4)).unreached == ("one.weight", "one.bias")
