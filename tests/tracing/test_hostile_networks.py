"""Networks whose code hides what it does from a copy of them, or from a run on one example."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from tests.tracing.cutting import check_network
from topiarist import anatomy, surgery
from topiarist.errors import ModelError, TopiaristWarning


class Layers(nn.Module):
    """Two layers with eight units between them, and what else a test puts there."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(4, 8), nn.Linear(8, 2)

    def forward(self, x: Tensor) -> Any:
        return self.last(self.first(x).relu())


class HeldByLambda(Layers):
    def __init__(self) -> None:
        super().__init__()
        self.run: Callable[[Tensor], Any] = lambda x: self.last(self.first(x).relu())

    def forward(self, x: Tensor) -> Any:
        return self.run(x)


class HeldByHook(Layers):
    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.rand(8))
        self.first.register_forward_hook(lambda module, given, output: output * self.scale)


class HeldByMethod(Layers):
    def __init__(self) -> None:
        super().__init__()
        self.stages = [self.first.forward, self.read]

    def read(self, h: Tensor) -> Any:
        return self.last(h.relu())

    def forward(self, x: Tensor) -> Any:
        for stage in self.stages:
            x = stage(x)
        return x


@pytest.mark.filterwarnings("ignore:hooks of")
@pytest.mark.parametrize("make", [HeldByLambda, HeldByHook])
def test_a_lambda_that_holds_on_to_layers_holds_on_to_those_of_a_copy(
    make: Callable[[], nn.Module], tmp_path: Path
) -> None:
    assert list(check_network(make, torch.randn(3, 4), tmp_path).free) == ["first"]


KEPT: list[Layers] = []


class HeldByGlobal(Layers):
    """A network whose code finds it in a variable of its file."""

    def __init__(self, whole: bool) -> None:
        super().__init__()
        KEPT[:] = [self]
        self.whole = whole

    def forward(self, x: Tensor) -> Any:
        h = KEPT[0].first(x) if self.whole else self.first(x) * KEPT[0].first.bias
        return (KEPT[0] if self.whole else self).last(h)


def test_a_variable_that_holds_the_whole_network_is_refused() -> None:
    with pytest.raises(ModelError, match=r"holds on to 'first\.weight' of the network"):
        anatomy(HeldByGlobal(whole=True), torch.zeros(1, 4))


def test_a_variable_that_holds_a_parameter_fixes_the_units_along_it() -> None:
    space = anatomy(HeldByGlobal(whole=False), torch.zeros(1, 4))["first"]
    assert space.reason is not None and "holds on to 'first.bias'" in space.reason


def test_methods_belong_to_the_copy() -> None:
    model, x = HeldByMethod(), torch.randn(3, 4)
    (name,) = anatomy(model, x).free
    cut: Any = surgery.remove(model, x, units={name: [0, 2, 5]})
    with torch.no_grad():
        model.last.weight[:, [0, 2, 5]] = 0
    torch.testing.assert_close(cut(x), model(x))


class Branching(Layers):
    """A network that goes another way where its code says so."""

    def __init__(self, other_way: Callable[[int], bool]) -> None:
        super().__init__()
        self.other_way = other_way

    def forward(self, x: Tensor) -> Any:
        h = self.first(x)
        return self.last(-h if self.other_way(h.shape[1]) else h)


@pytest.mark.parametrize(
    ("other_way", "units"),
    [
        (lambda count: count % 2 == 1, [0]),
        (lambda count: count < 3, range(6)),
        (lambda count: min(count, 3) != 3, range(6)),
        (lambda count: count in (1, 2), range(6)),
    ],
)
def test_a_cut_that_sends_the_code_another_way_is_refused(other_way: Callable[[int], bool], units: Any) -> None:
    model, x = Branching(other_way), torch.randn(3, 4)
    found = anatomy(model, x)
    (name,) = found.free
    with pytest.raises(ModelError, match="compares numbers of units"):
        surgery.remove(model, x, units={name: list(units)}, anatomy=found)
    left: Any = surgery.remove(model, x, units={name: [0, 2, 4, 6]}, anatomy=found)
    assert left.first.out_features == 4


@pytest.mark.filterwarnings("ignore:.*jit:DeprecationWarning")
def test_comparisons_inside_of_scripted_functions_do_not_count() -> None:
    function = torch.jit.script(swish)
    model = nn.Sequential(nn.Linear(4, 8), Called(lambda x: function(x)), nn.Linear(8, 2))
    assert list(anatomy(model, torch.zeros(1, 4)).free) == ["0"]


def swish(x: Tensor) -> Tensor:
    return x * torch.sigmoid(1.702 * x)


class Called(nn.Module):
    """A function as a layer."""

    def __init__(self, function: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: Tensor) -> Any:
        return self.function(x)


class Padded(nn.Module):
    """An encoder that is told which tokens are padding: torch then leaves them out, in a layout of its own."""

    def __init__(self) -> None:
        super().__init__()
        layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
        self.encoder, self.head = nn.TransformerEncoder(layer, 1), nn.Linear(8, 2)

    def forward(self, x: Tensor, hidden: Tensor) -> Any:
        return self.head(self.encoder(x, src_key_padding_mask=hidden).sum(1))


def test_heads_go_where_tokens_are_padding() -> None:
    hidden = torch.tensor([[False, False, True], [False, False, False]])
    model, example = Padded().eval(), (torch.randn(2, 3, 8), hidden)
    found = anatomy(model, example)
    heads = next(name for name in found.free if name.endswith("heads"))
    cut: Any = surgery.remove(model, example, units={heads: [0]}, anatomy=found)
    assert cut.encoder.layers[0].self_attn.num_heads == 1
    assert cut(*example).shape == (2, 2)


@pytest.mark.slow
def test_attention_that_two_layers_share_stays_shared() -> None:
    model, x = Padded().eval(), torch.randn(2, 3, 8)
    model.encoder.layers.append(nn.TransformerEncoderLayer(8, 2, 16, batch_first=True))
    model.encoder.layers[1].self_attn = model.encoder.layers[0].self_attn
    example = (x, torch.zeros(2, 3, dtype=torch.bool))
    heads = next(name for name in anatomy(model, example).free if name.endswith("heads"))
    cut: Any = surgery.remove(model, example, units={heads: [0]})
    layers = cut.encoder.layers
    assert layers[0].self_attn is layers[1].self_attn


class Squeezed(Layers):
    def forward(self, x: Tensor) -> Any:
        return self.last(self.first(x).squeeze().view(len(x), -1))


def test_a_cut_that_leaves_one_unit_before_a_squeeze_is_refused() -> None:
    model, x = Squeezed(), torch.randn(3, 4)
    (name,) = anatomy(model, x).free
    cut: Any = surgery.remove(model, x, units={name: range(6)})
    assert cut.first.out_features == 2
    with pytest.raises(ModelError, match="size != 1"):
        surgery.remove(model, x, units={name: range(7)})


class Windows(nn.Module):
    """Windows of an image that a layer mixes position by position."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = nn.Conv2d(3, 6, 1), nn.Conv2d(6, 2, 1)

    def forward(self, x: Tensor) -> Any:
        columns = nn.functional.unfold(self.first(x), 2, stride=2).relu()
        return self.last(nn.functional.fold(columns, x.shape[-2:], 2, stride=2))


class Pairs(nn.Module):
    """A layer that multiplies two others."""

    def __init__(self) -> None:
        super().__init__()
        self.left, self.right = nn.Linear(4, 6), nn.Linear(4, 5)
        self.both, self.last = nn.Bilinear(6, 5, 7), nn.Linear(7, 2)

    def forward(self, x: Tensor) -> Any:
        return self.last(self.both(self.left(x), self.right(x)).relu())


class Energy(Layers):
    """A network whose output is a gradient."""

    def forward(self, x: Tensor) -> Any:
        with torch.enable_grad():
            x = x.detach().requires_grad_()
            (slope,) = torch.autograd.grad(self.last(self.first(x).tanh()).sum(), x)
        return slope


@pytest.mark.parametrize(
    ("make", "shape", "free"), [(Windows, (2, 3, 4, 4), 1), (Pairs, (2, 4), 3), (Energy, (2, 4), 2)]
)
def test_units_follow_windows_products_of_three_and_gradients(make: type, shape: tuple[int, ...], free: int) -> None:
    model, x = make(), torch.randn(shape)
    found = anatomy(model, x)
    assert len(found.free) == free and not found.opaque
    for name, space in found.free.items():
        surgery.remove(model, x, units={name: range(0, space.size, 2)}, anatomy=found)


class Auxiliary(Layers):
    """A second head that only training uses, and a running mean of the units that only training writes."""

    mean: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.second = nn.Linear(8, 3)
        self.register_buffer("mean", torch.zeros(8))

    def forward(self, x: Tensor) -> Any:
        h = self.first(x)
        if not self.training:
            return self.last(h)
        self.mean.mul_(0.9).add_(h.detach().mean(0), alpha=0.1)
        return self.last(h), self.second(h)


def test_what_only_training_uses_is_cut_too() -> None:
    model, x = Auxiliary(), torch.randn(3, 4)
    found = anatomy(model, x)
    cut: Any = surgery.remove(model, x, units={"first": [1, 2, 5]}, anatomy=found)
    assert [output.shape for output in cut.train()(x)] == [(3, 2), (3, 3)]
    assert cut.mean.shape == (5,)
    assert model.training and not model.mean.any()


def test_hooks_that_change_values_are_warned_of_and_those_that_only_look_are_not() -> None:
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
    seen: list[Tensor] = []
    model[0].register_forward_hook(lambda _, __, given: seen.append(given))
    assert anatomy(model, torch.zeros(2, 4)).hooked == ("0",)
    assert seen
    model[2].register_forward_pre_hook(lambda _, taken: (taken[0] * 2,))
    with pytest.warns(TopiaristWarning, match="hooks of '2' change values"):
        found = anatomy(model, torch.zeros(2, 4))
    with pytest.warns(TopiaristWarning, match="hooks of '2' change values"):
        cut = surgery.remove(model, torch.zeros(2, 4), units={"0": [1, 6]}, anatomy=replace(found, valid_for="nothing"))
    assert cut(torch.zeros(2, 4)).shape == (2, 2)


@pytest.mark.filterwarnings("ignore:.*jit:DeprecationWarning", "ignore:The .grad attribute:UserWarning")
def test_what_torch_jit_compiled_is_held_and_the_rest_can_go() -> None:
    inner = torch.jit.script(nn.Sequential(nn.Linear(8, 6), nn.ReLU()))
    model = nn.Sequential(nn.Linear(4, 5), nn.Linear(5, 8), inner, nn.Linear(6, 2))
    found = anatomy(model, torch.zeros(2, 4))
    assert list(found.free) == ["0"]
    reason = found["1"].reason
    assert reason is not None and "'2' is compiled by torch.jit" in reason
    assert surgery.remove(model, torch.zeros(2, 4), units={"0": [0]}).get_parameter("0.weight").shape == (4, 4)
    with pytest.raises(ModelError, match=r"compiled by torch\.jit, and cannot change: pass the module"):
        anatomy(inner, torch.zeros(2, 8))


def test_what_is_no_network_is_refused_in_one_line() -> None:
    with pytest.raises(ModelError, match=r"a network is a torch\.nn\.Module; found "):
        anatomy(torch.relu_, torch.zeros(2))  # type: ignore[arg-type]
