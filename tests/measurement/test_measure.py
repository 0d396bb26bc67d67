import json
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import numpy
import pytest
import torch
from torch import Tensor, nn
from torch.utils.data import TensorDataset

from topiarist.data import Data, Part
from topiarist.errors import DataError, ModelError
from topiarist.measurement import Measurement, measure
from topiarist.models import mlp
from topiarist.randomness import array_generator
from topiarist.storage import save


@pytest.fixture
def data() -> Data:
    random = array_generator(0, "data")
    return Data.from_arrays(random.normal(size=(120, 4)), numpy.arange(120) % 3, scaling="zscore")


def streamed(data: Data) -> Data:
    parts = {name: cast(Part, getattr(data, name)) for name in ("train", "validation", "test")}
    datasets: dict[str, Any] = {name: TensorDataset(part.x, part.y) for name, part in parts.items()}
    return Data.from_datasets(**datasets, classes=data.classes)


class Constant(nn.Module):
    """Says the same of every sample."""

    def __init__(self, *logits: float) -> None:
        super().__init__()
        self.logits = nn.Parameter(torch.tensor(logits))

    def forward(self, x: Tensor) -> Tensor:
        return self.logits.expand(len(x), -1)


def test_all_numbers_by_hand(data: Data, tmp_path: Path) -> None:
    model = Constant(0.0, 0.0, 1.0)
    found = measure(model, data, threads=1)
    labels = cast(Part, data.test).y
    path = save(model, tmp_path / "m.safetensors", data=data)
    loss = numpy.log(2 + numpy.e) - (labels == 2).double().mean().item()
    assert found.log_loss == pytest.approx(loss, rel=1e-6)
    assert found == Measurement(
        quality={
            "accuracy": (labels == 2).double().mean().item(),
            "macro_accuracy": 1 / 3,
            "log_loss": found.log_loss,
        },
        parameters=3,
        nonzero=1,
        memory_kb=12 / 1024,
        file_kb=path.stat().st_size / 1024,
        macs=0,
        latency_ms=found.latency_ms,
        latency_spread_ms=found.latency_spread_ms,
        threads=1,
        samples=24,
    )
    assert found.latency_ms is not None and found.latency_ms > 0
    assert found.latency_spread_ms is not None and found.latency_spread_ms >= 0
    assert json.loads(json.dumps(found.to_json())) == found.to_json()


def test_the_file_is_the_one_that_save_writes(data: Data, tmp_path: Path) -> None:
    model = mlp([4, 6, 3], batch_norm=True)
    plain = save(model, tmp_path / "m.safetensors")
    known = save(model, tmp_path / "n.safetensors", data=data)
    assert measure(model, data, latency=False).file_kb == known.stat().st_size / 1024
    assert measure(model, data.test, latency=False).file_kb == plain.stat().st_size / 1024
    assert measure(model, data, latency=False, path=plain).file_kb == plain.stat().st_size / 1024


def test_parts_and_streams_give_the_same(data: Data) -> None:
    model = mlp([4, 6, 3])
    for part in ("train", "validation", "test"):
        found = [
            measure(model, data, part=part, latency=False),
            measure(model, getattr(data, part), latency=False),
            measure(model, streamed(data), part=part, latency=False),
            measure(model, getattr(streamed(data), part), latency=False),
        ]
        assert len({replace(one, file_kb=0.0) for one in found}) == 1
        assert found[0].samples == len(getattr(data, part))


def test_latency_is_left_out(data: Data) -> None:
    found = measure(mlp([4, 3]), data, latency=False)
    assert found.latency_ms is None and found.latency_spread_ms is None


def test_the_network_is_left_as_it_was(data: Data) -> None:
    model = mlp([4, 6, 3], batch_norm=True, dropout=0.5)
    model.get_submodule("norm0").eval()
    modes = [module.training for module in model.modules()]
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    random = torch.random.get_rng_state()
    measure(model, streamed(data))
    assert [module.training for module in model.modules()] == modes
    assert all(torch.equal(tensor, before[name]) for name, tensor in model.state_dict().items())
    assert torch.equal(torch.random.get_rng_state(), random)
    assert all(parameter.requires_grad and parameter.grad is None for parameter in model.parameters())


def test_a_network_that_diverged_has_no_loss(data: Data) -> None:
    found = measure(Constant(float("nan"), 0.0, 0.0), data, latency=False)
    assert found.to_json()["log_loss"] is None
    json.dumps(found.to_json(), allow_nan=False)


def test_what_does_not_fit_is_one_line(data: Data, tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="the network has 4 outputs; the data have 3 classes"):
        measure(mlp([4, 4]), data)
    with pytest.raises(ModelError, match="the network has 2 outputs; a sample is of class 2"):
        measure(mlp([4, 2]), data.test)
    with pytest.raises(ModelError, match=r"cannot read samples of shape \(4,\)"):
        measure(mlp([5, 3]), data)
    with pytest.raises(DataError, match="no part is called 'rest': choose among train, validation, test"):
        measure(mlp([4, 3]), data, part=cast(Any, "rest"))
    with pytest.raises(ModelError, match="there is no such file"):
        measure(mlp([4, 3]), data, path=tmp_path / "absent.safetensors")
    empty = replace(data, validation=Part(torch.empty(0, 4), torch.empty(0, dtype=torch.int64)))
    with pytest.raises(DataError, match="the part is empty"):
        measure(mlp([4, 3]), empty, part="validation")
