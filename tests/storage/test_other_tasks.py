"""Networks that predict numbers and labels, saved, loaded and exported: answers in the user's units."""

from pathlib import Path
from typing import Any

import numpy
import pytest
import torch
from torch import nn

from topiarist import TrainConfig, export_onnx, load, models, save, train
from topiarist.data import Data
from topiarist.models import Ensemble, card_of
from topiarist.storage.onnx_export import Session
from topiarist.tasks import MultiLabel, Regression
from topiarist.training.inference import predict_logits

pytestmark = pytest.mark.filterwarnings("ignore:y0, y1:topiarist.errors.TopiaristWarning")
X = numpy.random.default_rng(2).normal(size=(80, 3)).astype(numpy.float32)
TARGETS: dict[str, Any] = {
    "a number": 20 + 5 * X[:, 0],
    "a number far from zero": 1e6 + 5 * X[:, 0] + 2 * X[:, 1],
    "numbers": numpy.stack([X[:, 0], 1000 * X[:, 1]], axis=1),
    "labels": (X[:, :2] > 0).astype(int),
}


def trained(name: str, number: int = 0) -> tuple[nn.Module, Data]:
    data = Data.from_arrays(X, TARGETS[name], scaling="auto")
    net = models.mlp([3, 5, data.task.outputs], generator=torch.Generator().manual_seed(number))
    train(net, data, TrainConfig(epochs=2))
    return net, data


@pytest.mark.slow
@pytest.mark.parametrize("name", TARGETS)
def test_a_task_is_saved_with_the_network_and_exported(tmp_path: Path, name: str) -> None:
    net, data = trained(name)
    loaded = load(save(net, tmp_path / "net.safetensors"))
    task = card_of(loaded).task
    assert task == data.task and card_of(loaded).classes is None
    export = export_onnx(loaded, tmp_path / "net.onnx", data=data)
    assert export.accuracy is None and export.quality == pytest.approx(export.quality_in_torch, rel=1e-3)
    given = Session((tmp_path / "net.onnx").read_bytes())(X)
    assert data.preprocessing is not None and task is not None
    wanted = task.answers(predict_logits(loaded, data.preprocessing(X)))
    deviation = numpy.asarray(task.scale) if isinstance(task, Regression) else 1.0
    assert len(given) == (1 if isinstance(task, Regression) else 2)
    assert (numpy.abs(given[-1] - wanted.numpy()) / deviation).max() < 1e-4


def test_an_ensemble_of_numbers_is_their_mean_and_of_labels_that_of_probabilities(tmp_path: Path) -> None:
    for name in ("numbers", "labels"):
        members = [trained(name, number)[0] for number in range(3)]
        whole = Ensemble(members, weights=[2, 1, 1])
        task = card_of(whole).task
        assert isinstance(task, (Regression, MultiLabel))
        x = torch.from_numpy(X)
        answers = torch.stack([task.answers(member(x)) for member in members])
        mean = (answers * torch.tensor([0.5, 0.25, 0.25])[:, None, None]).sum(dim=0)
        assert torch.allclose(task.answers(whole(x)).double(), mean.double(), rtol=1e-5)
        again = load(save(whole, tmp_path / f"{name}.safetensors"))
        assert torch.allclose(again(x), whole(x)) and card_of(again).task == task
