"""Temperatures: fitted on the validation part, kept in files and exports, gone after training."""

from pathlib import Path

import numpy
import pytest
import torch
from torch import nn

from topiarist import TrainConfig, load, load_data, measure, models, save, train
from topiarist.data import Data, Part
from topiarist.models import card_of
from topiarist.tasks import Classification, MultiLabel, Regression, Task, task_from_record
from topiarist.tasks.probabilities import ProbabilityTask
from topiarist.training.calibrating import calibrate

pytestmark = pytest.mark.filterwarnings("ignore:y0, y1:topiarist.errors.TopiaristWarning")


@pytest.fixture(scope="module")
def data() -> Data:
    return load_data("breast-cancer", validation_fraction=0.3)


def overconfident(data: Data) -> nn.Module:
    """Return a trained network whose logits are six times too large."""
    model = models.mlp([*data.input_shape, 8, data.task.outputs], generator=torch.Generator().manual_seed(0))
    train(model, data, TrainConfig(epochs=10))
    last = [module for module in model.modules() if isinstance(module, nn.Linear)][-1]
    with torch.no_grad():
        last.weight.mul_(6)
        last.bias.mul_(6)
    return model


def temperature_of(model: nn.Module) -> float:
    task = card_of(model).task
    assert isinstance(task, ProbabilityTask)
    return task.temperature


def test_probabilities_mean_more_and_answers_stay(data: Data) -> None:
    model = overconfident(data)
    weights = [value.clone() for value in model.state_dict().values()]
    before = measure(model, data, part="validation", latency=False)
    found = calibrate(model, data)
    after = measure(model, data, part="validation", latency=False)
    assert found > 1.5 and temperature_of(model) == found == float(f"{found:.4g}")
    assert after.log_loss < before.log_loss and after.accuracy == before.accuracy
    assert all(map(torch.equal, weights, model.state_dict().values()))
    train(model, data, TrainConfig(epochs=1))
    assert temperature_of(model) == 1.0


def test_files_and_exports_have_the_temperature(data: Data, tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    from topiarist.storage import export_onnx
    from topiarist.storage.onnx_export import Session

    model = overconfident(data)
    plain = save(model, tmp_path / "plain.safetensors", data=data).stat().st_size
    found = calibrate(model, data)
    path = save(model, tmp_path / "model.safetensors", data=data)
    again = load(path)
    assert temperature_of(again) == found and path.stat().st_size - plain < 120
    assert card_of(again).classes == data.classes
    export_onnx(again, tmp_path / "model.onnx", data=data)
    assert data.source is not None and data.split is not None and isinstance(data.test, Part)
    raw = numpy.asarray(data.source.features)[data.split.test].astype(numpy.float32)
    logits, probabilities = Session(tmp_path / "model.onnx")(raw)
    with torch.no_grad():
        wanted = model.eval()(data.test.x)
    numpy.testing.assert_allclose(logits, wanted, atol=1e-3)
    numpy.testing.assert_allclose(probabilities, (wanted / found).softmax(dim=1), atol=1e-5)


@pytest.mark.parametrize("task", [Classification(("a", "b")), MultiLabel(("p", "q"))], ids=lambda task: task.kind)
def test_the_temperature_is_that_of_the_least_log_loss(task: Task) -> None:
    random = torch.Generator().manual_seed(0)
    outputs = 4 * torch.randn(400, 2, generator=random)
    noise = torch.rand(400, 2, generator=random)
    y = (
        (noise < (outputs / 3).sigmoid()).float()
        if task.kind == "labels"
        else (noise[:, 0] < ((outputs[:, 1] - outputs[:, 0]) / 3).sigmoid()).long()
    )
    found = task.calibrated(outputs, y)
    assert isinstance(found, ProbabilityTask) and found.temperature == pytest.approx(3, rel=0.25)
    metric = task.find_metric("log_loss")
    assert found.value(metric, outputs, y) < task.value(metric, outputs, y)
    back = task_from_record(found.to_record())
    assert isinstance(back, ProbabilityTask) and back.temperature == found.temperature and back == task
    assert found.uncalibrated().to_record() == task.to_record()


def test_numbers_have_none_and_diverged_networks_keep_theirs() -> None:
    task = Regression(("u",))
    assert task.calibrated(torch.zeros(3, 1), torch.ones(3, 1)) is task
    found = Classification(("a", "b")).calibrated(torch.full((3, 2), torch.nan), torch.tensor([0, 1, 0]))
    assert found.temperature == 1.0
