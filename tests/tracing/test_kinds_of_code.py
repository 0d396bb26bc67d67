"""Code as models of the hub have it, which a proof, a file or a trace once took for something else."""

import math
from pathlib import Path
from typing import Any, ClassVar

import numpy
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from tests.tracing.cutting import Case, check_case, check_network
from topiarist import anatomy, surgery
from topiarist.surgery.proving import prove
from topiarist.tracing import Anatomy


def proven_halves(model: nn.Module, example: Tensor) -> tuple[Anatomy, nn.Module, float]:
    """Cut half of every free space; return the anatomy, what is left, and how far the proof says it is off."""
    found = anatomy(model, example)
    units = {name: list(range(1, space.size, 2)) for name, space in found.free.items() if space.size > 1}
    assert units, str(found)
    return found, surgery.remove(model, example, units=units, anatomy=found), prove(model, example, found, units)


class InSingle(nn.Module):
    """Attention whose code asks for float32, whatever the network's numbers are."""

    def __init__(self) -> None:
        super().__init__()
        self.heads = 2
        self.queries, self.keys, self.values = (nn.Linear(8, 8) for _ in range(3))
        self.last = nn.Linear(8, 3)

    def split(self, x: Tensor) -> Tensor:
        return x.view(x.shape[0], x.shape[1], self.heads, -1).transpose(1, 2)

    def forward(self, x: Tensor) -> Tensor:
        queries, keys = (self.split(layer(x)).to(torch.float32) for layer in (self.queries, self.keys))
        steps = torch.arange(x.shape[1], dtype=torch.float32)
        scores = queries @ keys.transpose(2, 3) / math.sqrt(queries.shape[-1]) - (steps[:, None] - steps).abs()
        given = torch.softmax(scores, -1, dtype=torch.float32).to(x.dtype) @ self.split(self.values(x))
        result: Tensor = self.last(given.transpose(1, 2).flatten(2))
        return result


def test_code_that_asks_for_float32_is_proven_in_float64() -> None:
    _, _, apart = proven_halves(InSingle(), torch.randn(2, 5, 8))
    assert apart < 1e-13


class SingleOnly(nn.Module):
    """A network that takes nothing but float32 on its way."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(4, 8), nn.Linear(8, 2)

    def forward(self, x: Tensor) -> Tensor:
        h = self.first(x).to(torch.float32)
        if h.dtype != torch.float32:
            raise TypeError("only float32")
        result: Tensor = self.last(h.relu().to(x.dtype))
        return result


def test_a_mask_in_float32_with_the_smallest_number_of_float64_hides_nothing() -> None:
    found, _, apart = proven_halves(RootOfNumpy(), torch.randn(2, 5, 8))
    assert found["queries:dims"].counted and apart < 1e-13


def test_code_that_takes_only_float32_is_proven_as_it_is() -> None:
    _, _, apart = proven_halves(SingleOnly(), torch.randn(2, 4))
    assert apart < 1e-4


class QueriesReadTwice(InSingle):
    """Attention whose queries also gate its output: only its keys can make up for another root of dims."""

    def forward(self, x: Tensor) -> Tensor:
        queries, keys, values = (self.split(layer(x)) for layer in (self.queries, self.keys, self.values))
        shares = torch.softmax(queries @ keys.transpose(2, 3) / math.sqrt(queries.shape[-1]), -1)
        result: Tensor = self.last((shares @ values * queries).transpose(1, 2).flatten(2))
        return result


class ScoresInBlocks(InSingle):
    """Attention that computes its scores in two pieces, each divided by the root of dims."""

    def forward(self, x: Tensor) -> Tensor:
        queries, keys, values = (self.split(layer(x)) for layer in (self.queries, self.keys, self.values))
        root = 1 / math.sqrt(queries.shape[-1])
        blocks = [piece @ keys.transpose(2, 3) * root for piece in (queries[:, :, :2], queries[:, :, 2:])]
        given = torch.softmax(torch.cat(blocks, 2), -1) @ values
        result: Tensor = self.last(given.transpose(1, 2).flatten(2))
        return result


class RootOfNumpy(InSingle):
    """Attention that numpy computes the root of dims for; its mask has the smallest number of its input's type."""

    def __init__(self) -> None:
        super().__init__()
        self.dims = 4

    def forward(self, x: Tensor) -> Tensor:
        queries, keys, values = (
            layer(x).view(x.shape[0], x.shape[1], self.heads, self.dims).transpose(1, 2)
            for layer in (self.queries, self.keys, self.values)
        )
        mask = (torch.arange(x.shape[1]) > 3).float() * torch.finfo(x.dtype).min
        scores = queries @ keys.transpose(2, 3) / numpy.sqrt(self.dims)
        given = torch.softmax(scores + mask, -1) @ values
        result: Tensor = self.last(given.transpose(1, 2).flatten(2))
        return result


HALVES = {"queries:heads": 2, "queries:dims": 4}
READ_TWICE: Case = QueriesReadTwice, torch.randn(2, 5, 8, dtype=torch.float64), HALVES
IN_BLOCKS: Case = ScoresInBlocks, torch.randn(2, 5, 8, dtype=torch.float64), {**HALVES, "values:dims": 4}


@pytest.mark.slow
@pytest.mark.parametrize("case", [READ_TWICE, IN_BLOCKS])
def test_weights_make_up_for_a_root_of_dims_and_change_nothing_else(case: Case, tmp_path: Path) -> None:
    check_case(case, tmp_path)


class StandardisedWeights(nn.Module):
    """A convolution whose weights have a mean of zero and a deviation of one, for which a batch norm serves."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second, self.last = nn.Conv2d(3, 6, 3), nn.Conv2d(6, 4, 3), nn.Linear(4, 2)

    def forward(self, x: Tensor) -> Tensor:
        for layer in (self.first, self.second):
            rows = layer.weight.reshape(1, layer.out_channels, -1)
            weight = functional.batch_norm(rows, None, None, training=True, momentum=0.0)
            x = functional.conv2d(x, weight.reshape_as(layer.weight), layer.bias).relu()
        result: Tensor = self.last(x.mean((2, 3)))
        return result


def test_a_batch_norm_of_weights_averages_over_what_they_read(tmp_path: Path) -> None:
    example = torch.randn(2, 3, 6, 6, dtype=torch.float64)
    check_case((StandardisedWeights, example, {"first": 6, "second": 4}), tmp_path)


class FunctionalAttention(nn.Module):
    """Torch's attention of several heads as a function, on layers of the network's own."""

    def __init__(self) -> None:
        super().__init__()
        self.width, self.heads = 8, 4
        self.first, self.more, self.last = nn.Linear(5, 8), nn.Linear(8, 6), nn.Linear(6, 3)
        self.queries, self.keys, self.values, self.out = (nn.Linear(8, 8) for _ in range(4))

    def forward(self, x: Tensor) -> Tensor:
        h = self.first(x).transpose(0, 1)
        biases = torch.cat((self.queries.bias, self.keys.bias, self.values.bias))
        given, _ = functional.multi_head_attention_forward(
            *(h, h, h, self.width, self.heads, None, biases, None, None, False, 0.0, self.out.weight, self.out.bias),
            use_separate_proj_weight=True,
            q_proj_weight=self.queries.weight,
            k_proj_weight=self.keys.weight,
            v_proj_weight=self.values.weight,
        )
        result: Tensor = self.last(self.more(given + h).relu().transpose(0, 1))
        return result


@pytest.mark.slow
def test_torchs_function_for_attention_has_one_width_for_all(tmp_path: Path) -> None:
    found = check_network(FunctionalAttention, torch.randn(2, 4, 5, dtype=torch.float64), tmp_path)
    assert {name: space.size for name, space in found.free.items()} == {"more": 6}
    assert str(found["first"].reason).startswith("`multi_head_attention_forward`")


class Settings:
    """Numbers in an object that all layers hold, together with something that is no setting, or with a set."""

    def __init__(self, extra: Any) -> None:
        self.heads, self.extra = 4, extra


class WithSettings(nn.Module):
    def __init__(self, settings: Settings) -> None:
        super().__init__()
        self.settings = settings
        self.values, self.out = nn.Linear(8, 8), nn.Linear(8, 8)

    def forward(self, x: Tensor) -> Tensor:
        parted = self.values(x).view(x.shape[0], -1, self.settings.heads, 2).transpose(1, 2)
        result: Tensor = self.out(torch.tanh(parted.cumsum(2)).transpose(1, 2).flatten(2))
        return result


@pytest.mark.slow
@pytest.mark.parametrize(("extra", "spaces"), [({"kind"}, 2), (nn.ReLU(), 1)])
def test_an_object_that_layers_share_changes_for_all_of_them(extra: Any, spaces: int, tmp_path: Path) -> None:
    def make() -> nn.Module:
        settings = Settings(extra)
        return nn.Sequential(WithSettings(settings), WithSettings(settings))

    found = check_network(make, torch.randn(2, 5, 8, dtype=torch.float64), tmp_path)
    assert len([name for name in found.free if name.endswith("groups")]) == spaces


class Remembering(InSingle):
    """Attention with a constant that it computes once."""

    constants: ClassVar[dict[int, Tensor]] = {}

    def forward(self, x: Tensor) -> Tensor:
        if id(self) not in self.constants:
            self.constants[id(self)] = torch.arange(x.shape[1]).to(x) * 0.1
        queries, keys, values = (self.split(layer(x)) for layer in (self.queries, self.keys, self.values))
        scores = queries @ keys.transpose(2, 3) / math.sqrt(queries.shape[-1]) + self.constants[id(self)]
        result: Tensor = self.last((torch.softmax(scores, -1) @ values).transpose(1, 2).flatten(2))
        return result


@pytest.mark.slow
def test_code_may_compute_a_product_in_its_first_run_only(tmp_path: Path) -> None:
    dims = {"queries:heads": 2, "queries:dims": 4, "values:dims": 4}
    check_case((Remembering, torch.randn(2, 5, 8, dtype=torch.float64), dims), tmp_path)


class Halving(nn.Module):
    """A network that halves weights of its own when it first runs in evaluation mode."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.last, self.halved = nn.Linear(4, 8), nn.Linear(8, 2), False

    def forward(self, x: Tensor) -> Tensor:
        if not self.halved and not self.training:
            with torch.no_grad():
                self.last.weight.div_(2)
            self.halved = True
        result: Tensor = self.last(self.first(x).relu())
        return result


def test_code_that_writes_into_weights_once_leaves_those_of_the_network_alone() -> None:
    model, x = Halving(), torch.randn(2, 4)
    before = model.last.weight.clone()
    fresh = anatomy(model, x)
    assert torch.equal(model.last.weight, before)
    model.eval()(x)
    assert list(anatomy(model, x).spaces) == list(fresh.spaces)  # a file replays a plan on a network that never ran


class Boxes(nn.Module):
    """A network that looks up how wide boxes are, the right side of which never comes before the left one."""

    def __init__(self) -> None:
        super().__init__()
        self.widths, self.last = nn.Embedding(20, 8), nn.Linear(8, 2)

    def forward(self, sides: Tensor) -> Tensor:
        result: Tensor = self.last(self.widths(sides[:, 1] - sides[:, 0]))
        return result


def test_a_file_can_be_loaded_where_whole_numbers_of_the_example_go_together(tmp_path: Path) -> None:
    check_case((Boxes, torch.tensor([[3, 9], [0, 12], [5, 5]]), {"widths": 8}), tmp_path)


class SizesByDivision(nn.Module):
    """Attention that finds the dims of its heads by division of the width that it reads."""

    def __init__(self) -> None:
        super().__init__()
        self.heads = 4
        self.all, self.out = nn.Linear(16, 48), nn.Linear(16, 16)

    def forward(self, x: Tensor) -> Tensor:
        samples, tokens, width = x.shape
        parted = self.all(x).reshape(samples, tokens, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        shares = torch.softmax(parted[0] @ parted[1].transpose(2, 3) * 0.5, -1)
        result: Tensor = self.out((shares @ parted[2]).transpose(1, 2).reshape(samples, tokens, width))
        return x + result


@pytest.mark.slow
def test_the_heads_of_many_layers_go_with_the_width_that_they_part(tmp_path: Path) -> None:
    def make() -> nn.Module:
        return nn.Sequential(nn.Linear(5, 16), *(SizesByDivision() for _ in range(6)), nn.Linear(16, 3))

    check_case((make, torch.randn(2, 5, 5, dtype=torch.float64), {"0:dims": 4}), tmp_path)
