"""A network in 8 bits beside the same in float32, in one call after the cut."""

from pathlib import Path

import pytest
import torch
from torch import nn

from tests.methods.tasks import data_for, perceptron
from topiarist import Budget, export_int8, resize
from topiarist.errors import DataError, ModelError
from topiarist.methods import Distinctiveness

onnxruntime = pytest.importorskip("onnxruntime")


@pytest.mark.slow
def test_a_cut_network_in_one_call(tmp_path: Path) -> None:
    model = perceptron(8, 64, 48, 3)
    outcome = resize(model, data_for(model, 8), Distinctiveness(), budget=Budget(parameters=900), latency=False)
    found = outcome.export_int8(tmp_path / "small.onnx")
    assert [path.name for path in tmp_path.iterdir()] == ["small.onnx"]
    assert found.int8.bits == 8 and found.float32.bits == 32
    assert (found.int8.agreement or 0.0) > 0.9 and found.float32.agreement == 1.0
    assert found.int8.accuracy is not None and found.float32.accuracy == found.float32.accuracy_in_torch
    assert found.latency_ms > 0 and found.float32_latency_ms > 0
    assert str(found).startswith("float32 → int8: accuracy ")
    assert found.to_json()["float32"]["bits"] == 32


@pytest.mark.slow
def test_calibration_batches_of_the_users_are_shared(tmp_path: Path) -> None:
    model = nn.Sequential(nn.Conv2d(1, 8, 3), nn.ReLU(), nn.Flatten(), nn.Linear(8 * 36, 4))
    batches = [(torch.randn(20, 1, 8, 8), torch.zeros(20)) for _ in range(3)]
    outcome = resize(model, None, Distinctiveness(), budget=Budget(parameters=800), calibration=batches, latency=False)
    found = outcome.export_int8(tmp_path / "small.onnx")
    assert found.int8.samples == 60
    assert found.int8.accuracy is None and "accuracy" not in str(found)


@pytest.mark.slow
def test_a_cut_network_of_several_inputs_and_outputs(tmp_path: Path) -> None:
    class Coder(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.code, self.back = nn.Linear(9, 16), nn.Linear(16, 6)

        def forward(self, x: torch.Tensor, condition: torch.Tensor) -> dict[str, torch.Tensor]:
            code = self.code(torch.cat([x, condition], dim=1)).relu()
            return {"rebuilt": self.back(code), "size": code.norm(dim=1)}

    batches = [(torch.randn(20, 6), torch.randn(20, 3)) for _ in range(3)]
    outcome = resize(Coder(), None, Distinctiveness(), budget=Budget(parameters=200), calibration=batches)
    found = outcome.export_int8(tmp_path / "small.onnx")
    assert (found.int8.samples, [each.name for each in found.int8.outputs]) == (60, ["rebuilt", "size"])
    assert "from torch in 60 samples: 'rebuilt' by " in str(found)


def test_ranges_need_samples(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="8 bits need real samples to learn ranges from"):
        export_int8(perceptron(8, 4, 3), tmp_path / "small.onnx")


@pytest.mark.slow
def test_a_network_without_such_layers_is_one_clear_line(tmp_path: Path) -> None:
    class Doubling(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.scale = nn.Parameter(torch.ones(4))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x * self.scale

    with pytest.raises(ModelError, match=r"^the network has no layer that ONNX Runtime computes in 8 bits$"):
        export_int8(Doubling(), tmp_path / "small.onnx", samples=torch.randn(20, 4))
    assert not list(tmp_path.iterdir())
