import subprocess
import sys
from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils import parametrize
from torch.utils.flop_counter import FlopCounterMode

from topiarist.errors import ModelError
from topiarist.measurement.cost import count_macs
from topiarist.models import mlp
from topiarist.tracing.running import plain_kernels


class Residual(nn.Module):
    """A stem, a block of a grouped and a depthwise convolution around which the input is added, and a head."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 3, padding=1)
        self.grouped = nn.Conv2d(8, 8, 3, padding=1, groups=2)
        self.norm = nn.BatchNorm2d(8)
        self.depthwise = nn.Conv2d(8, 8, 3, padding=1, groups=8)
        self.head = nn.Linear(8, 5)

    def forward(self, x: Tensor) -> Tensor:
        x = functional.relu(self.stem(x))
        x = x + self.depthwise(functional.relu(self.norm(self.grouped(x))))
        out: Tensor = self.head(x.mean(dim=(2, 3)))
        return out


class Calls(nn.Module):
    """Calls a function on the samples and gives what comes out as logits (1, n)."""

    def __init__(self, function: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: Tensor) -> Tensor:
        return self.function(x).reshape(len(x), -1)


RESIDUAL_MACS = 64 * (3 * 8 * 9 + 8 * 4 * 9 + 8 * 9) + 8 * 5
shared = nn.Linear(4, 4)
flat = nn.Flatten()
CASES = {
    "linear": (nn.Linear(5, 7), (5,), 35),
    "linear without bias": (nn.Linear(5, 7, bias=False), (5,), 35),
    "linear over positions": (nn.Sequential(nn.Linear(5, 7), flat), (3, 5), 3 * 35),
    "mlp": (mlp([6, 10, 9, 4], batch_norm=True, dropout=0.5), (6,), 60 + 90 + 36),
    "shared module": (nn.Sequential(shared, nn.ReLU(), shared), (4,), 32),
    "conv1d": (nn.Sequential(nn.Conv1d(4, 6, 5, stride=2), flat), (4, 21), 9 * 4 * 6 * 5),
    "dilated": (nn.Sequential(nn.Conv1d(4, 6, 3, dilation=4), flat), (4, 21), 13 * 4 * 6 * 3),
    "conv2d": (nn.Sequential(nn.Conv2d(3, 4, 3, padding=1), flat), (3, 8, 8), 64 * 3 * 4 * 9),
    "grouped": (nn.Sequential(nn.Conv2d(6, 4, 3, groups=2), flat), (6, 8, 8), 36 * 3 * 4 * 9),
    "depthwise": (nn.Sequential(nn.Conv2d(8, 16, 3, groups=8), flat), (8, 8, 8), 36 * 16 * 9),
    "conv3d": (nn.Sequential(nn.Conv3d(2, 3, 2), flat), (2, 4, 4, 4), 27 * 2 * 3 * 8),
    "transposed": (nn.Sequential(nn.ConvTranspose2d(4, 6, 3, stride=2), flat), (4, 5, 5), 25 * 4 * 6 * 9),
    "transposed grouped": (nn.Sequential(nn.ConvTranspose1d(4, 6, 3, groups=2), flat), (4, 5), 5 * 4 * 3 * 3),
    "residual": (Residual(), (3, 8, 8), RESIDUAL_MACS),
    "functional linear": (Calls(lambda x: functional.linear(x, torch.ones(3, 4))), (4,), 12),
    "matmul": (Calls(lambda x: x @ torch.ones(4, 3)), (4,), 12),
    "einsum": (Calls(lambda x: torch.einsum("bi,ij->bj", x, torch.ones(4, 3))), (4,), 12),
    "einsum without an arrow": (Calls(lambda x: torch.einsum("bi,ij", x, torch.ones(4, 3))), (4,), 12),
    "tensordot": (Calls(lambda x: torch.tensordot(x, torch.ones(4, 3), dims=1)), (4,), 12),
    "named arguments": (Calls(lambda x: functional.linear(input=x, weight=torch.ones(3, 4))), (4,), 12),
    "stack": (Calls(lambda x: x.expand(6, 1, 4) @ torch.ones(6, 4, 3)), (4,), 6 * 12),
    "nothing": (flat, (4,), 0),
}
VECTORS = {
    "matrix by vector": (Calls(lambda x: x @ torch.ones(4)), (4,), 4),
    "vector by vector": (Calls(lambda x: x[0] @ torch.ones(4)), (4,), 4),
    "sum with a product": (Calls(lambda x: torch.addmv(torch.ones(3), torch.ones(3, 4), x[0])), (4,), 12),
}


@pytest.mark.parametrize(("model", "shape", "macs"), [*CASES.values(), *VECTORS.values()], ids=[*CASES, *VECTORS])
def test_counts_by_hand(model: nn.Module, shape: tuple[int, ...], macs: int) -> None:
    assert count_macs(model, torch.ones(1, *shape)) == macs


@pytest.mark.parametrize(("model", "shape", "macs"), CASES.values(), ids=CASES)
def test_counts_agree_with_torch(model: nn.Module, shape: tuple[int, ...], macs: int) -> None:
    with torch.no_grad(), FlopCounterMode(display=False) as counter:
        model.eval()(torch.ones(1, *shape))
    assert counter.get_total_flops() == 2 * macs


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_the_type_does_not_count(dtype: torch.dtype) -> None:
    assert count_macs(Residual().to(dtype), torch.ones(1, 3, 8, 8)) == RESIDUAL_MACS


class Halved(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x[:2]


def test_a_weight_that_is_computed_from_another_is_followed() -> None:
    model = nn.Linear(3, 4, bias=False)
    parametrize.register_parametrization(model, "weight", Halved(), unsafe=True)
    assert count_macs(model, torch.ones(1, 3)) == 6


def test_nothing_stays_on_the_network() -> None:
    model = Residual().train()
    model.stem.requires_grad_(False)
    asking = [parameter.requires_grad for parameter in model.parameters()]
    count_macs(model, torch.ones(1, 3, 8, 8))
    with pytest.raises(ModelError, match=r"cannot read samples of shape \(2, 8, 8\)"):
        count_macs(model, torch.ones(1, 2, 8, 8))
    assert not any(module._forward_hooks or module._forward_pre_hooks for module in model.modules())
    assert all(module.training for module in model.modules())
    assert [parameter.requires_grad for parameter in model.parameters()] == asking
    assert count_macs(model, torch.ones(1, 3, 8, 8)) == RESIDUAL_MACS


class Recurrent(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.LSTM(3, 4, batch_first=True)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.layer(x)[0][:, -1]
        return out


class Attending(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.MultiheadAttention(4, 2, batch_first=True)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.layer(x, x, x)[0][:, -1]
        return out


# Four gates read 3 inputs and 4 states at each of 5 steps; queries, keys, values and the last layer are 4 × 4 at each
# of 5 positions, and each position is weighed with each of 5 in 4 dims, twice.
@pytest.mark.parametrize(
    ("model", "shape", "macs"),
    [(Recurrent(), (5, 3), 5 * 4 * 4 * (3 + 4)), (Attending(), (5, 4), 5 * 4 * 16 + 2 * 5 * 5 * 4)],
)
@pytest.mark.parametrize("gradients", [True, False])
def test_fused_kernels_are_counted_by_what_they_compute(
    model: nn.Module, shape: tuple[int, ...], macs: int, gradients: bool
) -> None:
    with torch.set_grad_enabled(gradients):
        assert count_macs(model, torch.ones(1, *shape)) == macs


def test_a_transformer_is_counted_as_torch_counts_it() -> None:
    layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    model, x = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False).eval(), torch.ones(1, 5, 8)
    with FlopCounterMode(display=False) as counter, plain_kernels(model):
        model(x)
    assert 2 * count_macs(model, x) == counter.get_total_flops()


@pytest.mark.slow
def test_the_compiler_is_not_loaded() -> None:
    code = (
        "import sys, torch; from topiarist.measurement.cost import count_macs;"
        "count_macs(torch.nn.Linear(2, 3), torch.ones(1, 2)); sys.exit('torch._dynamo' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
