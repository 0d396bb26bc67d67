"""Every task: slopes against autograd, records there and back, metrics against scikit-learn."""

import json
from typing import Any

import numpy
import pytest
import torch
from sklearn import metrics as oracle
from torch import Tensor
from torch.nn import functional

from topiarist.errors import DataError, SettingsError
from topiarist.tasks import Classification, Loss, MultiLabel, Regression, Task, task_from_record

TASKS: list[Task] = [
    Classification(("a", "b", "c")),
    Classification(("a", "b", "c"), loss=Loss("focal", 1.5)),
    *(Regression(("u", "v"), loss=Loss(name)) for name in ("squared", "absolute", "huber", "quantile")),
    Regression(("u",), centre=(1e6,), scale=(20.0,), loss=Loss("quantile", 0.9)),
    MultiLabel(("p", "q", "r", "s")),
    MultiLabel(("p", "q"), loss=Loss("focal")),
]
each_task = pytest.mark.parametrize("task", TASKS, ids=lambda task: f"{task.kind} {task.loss} {task.outputs}")


def draw(task: Task, count: int = 40, seed: int = 0) -> tuple[Tensor, Tensor, Tensor]:
    """Return outputs, targets and the outputs of a teacher."""
    random = torch.Generator().manual_seed(seed)
    outputs, teacher = torch.randn(2, count, task.outputs, generator=random, dtype=torch.float64) * 2
    if task.kind == "classes":
        return outputs, torch.randint(0, task.outputs, (count,), generator=random), teacher
    y = torch.randn(count, task.outputs, generator=random, dtype=torch.float64)
    return outputs, y if task.kind == "numbers" else (y > 0).double(), teacher


@each_task
def test_slopes_are_those_of_autograd(task: Task) -> None:
    outputs, y, teacher = draw(task)
    targets = task.stacked_targets(y)
    for taught in (0.0, 0.7, 1.0):
        x = outputs.T.clone().requires_grad_()
        how = {"weight": taught, "temperature": 3.0}
        losses = task.distilled(x, teacher.T, targets, **how)[0] if taught else task.losses(x, targets)
        losses.sum().backward()  # type: ignore[no-untyped-call]  # torch leaves it untyped
        plain = outputs.T.clone()
        found = task.distilled(plain, teacher.T, targets, **how) if taught else task.losses_and_slopes(plain, targets)
        assert found[0].allclose(losses.detach(), atol=1e-12)
        assert x.grad is not None and found[1].allclose(x.grad, atol=1e-12)


@each_task
def test_a_record_is_the_task(task: Task) -> None:
    assert task_from_record(json.loads(json.dumps(task.to_record()))) == task


@each_task
def test_the_guess_is_the_best_constant_answer(task: Task) -> None:
    outputs, y, _ = draw(task, count=400)
    weights = torch.rand(400, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    guess = task.guess(y, weights)
    best = task.loss_of(guess.expand_as(outputs), y, weights=weights)
    if str(task.loss) in ("cross-entropy", "squared", "absolute", "quantile:0.5", "quantile:0.9"):
        for number in range(task.outputs):
            for move in (-0.2, 0.2):
                moved = guess + move * torch.eye(task.outputs, dtype=torch.float64)[number]
                assert task.loss_of(moved.expand_as(outputs), y, weights=weights) > best
    assert task.divergence(outputs, outputs).abs().max() < 1e-12


def test_losses_are_those_of_torch() -> None:
    outputs, y, _ = draw(MultiLabel(tuple("pqrs")))
    assert (
        abs(MultiLabel(tuple("pqrs")).loss_of(outputs, y) - functional.binary_cross_entropy_with_logits(outputs, y))
        < 1e-7
    )
    outputs, y, _ = draw(Regression(("u", "v")))
    known: dict[str, Any] = {
        "squared": functional.mse_loss,
        "absolute": functional.l1_loss,
        "huber": functional.huber_loss,
    }
    for name, function in known.items():
        assert abs(Regression(("u", "v"), loss=Loss(name)).loss_of(outputs, y) - function(outputs, y)) < 1e-7


@pytest.mark.parametrize("weighted", [False, True])
def test_metrics_are_those_of_scikit_learn(weighted: bool) -> None:
    random = numpy.random.default_rng(2).uniform(0.1, 3.0, size=300)
    weights = torch.from_numpy(random) if weighted else None
    sample = {"sample_weight": random} if weighted else {}
    task: Task = Regression(("u", "v"), centre=(100.0, -5.0), scale=(20.0, 3.0))
    outputs, y, _ = draw(task, 300)
    y = outputs + 0.7 * y
    found, answers, truth = task.metrics(outputs, y.float(), weights), task.answers(outputs), task.answers(y.float())
    assert found["rmse"] == pytest.approx(oracle.root_mean_squared_error(truth, answers, **sample), rel=1e-6)
    assert found["mae"] == pytest.approx(oracle.mean_absolute_error(truth, answers, **sample), rel=1e-6)
    assert found["r2"] == pytest.approx(oracle.r2_score(truth, answers, **sample), rel=1e-6)
    task = MultiLabel(tuple("pqrs"))
    outputs, y, _ = draw(task, 300)
    outputs = (outputs + 2 * y).round(decimals=1)  # with ties
    found, answers = task.metrics(outputs, y, weights), task.answers(outputs)
    assert found["roc_auc"] == pytest.approx(oracle.roc_auc_score(y, outputs, **sample), abs=1e-9)
    assert found["f1"] == pytest.approx(oracle.f1_score(y, outputs > 0, average="macro", **sample), abs=1e-9)
    assert found["exact_match"] == pytest.approx(oracle.accuracy_score(y, outputs > 0, **sample), abs=1e-9)
    each = [oracle.log_loss(y[:, k], answers[:, k], **sample) for k in range(4)]
    assert found["log_loss"] == pytest.approx(sum(each) / 4, rel=1e-6)
    task = Classification(tuple("abc"))
    outputs, y, _ = draw(task, 300)
    found = task.metrics(outputs, y, weights)
    named = outputs.argmax(dim=1)
    assert found["accuracy"] == pytest.approx(oracle.accuracy_score(y, named, **sample), abs=1e-9)
    assert found["macro_accuracy"] == pytest.approx(oracle.balanced_accuracy_score(y, named, **sample), abs=1e-9)
    assert found["log_loss"] == pytest.approx(oracle.log_loss(y, outputs.softmax(dim=1), **sample), rel=1e-6)


def test_a_larger_error_by_two_per_cent_costs_two_hundredths_of_the_score() -> None:
    task = Regression(("u",))
    outputs, y, _ = draw(task)
    worse = y + 1.02 * (outputs - y)
    assert task.score(outputs, y) - task.score(worse, y) == pytest.approx(0.0198, abs=1e-4)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("squares", "no loss is called 'squares': choose among absolute, cross-entropy"),
        ("quantile:1.5", "the number of the loss quantile must be between 0 and 1; found 1.5"),
        ("squared:2", "the loss squared has no number; found 2"),
        ("huber:x", "a loss is written NAME or NAME:NUMBER"),
        ("focal", "the loss focal is for classes and labels, and these are numbers"),
    ],
)
def test_a_wrong_loss_is_one_line(text: str, message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        Regression(("u",)).with_loss(text)


def test_wrong_targets_and_metrics_are_one_line() -> None:
    with pytest.raises(DataError, match="labels must be 0 or 1; found 2"):
        MultiLabel(("p",)).check_targets(torch.tensor([[0.0], [2.0]]))
    with pytest.raises(DataError, match="targets must be finite; found 1 that are missing or infinite"):
        Regression(("u",)).check_targets(torch.tensor([[0.0], [torch.inf]]))
    with pytest.raises(
        DataError, match=r"targets must be real numbers \(n_samples, 1\); found torch.float32 of shape \(2,\)"
    ):
        Regression(("u",)).check_targets(torch.zeros(2))
    with pytest.raises(SettingsError, match="'rmse' is a metric of numbers; metrics of classes are accuracy"):
        Classification(("a", "b")).find_metric("rmse")
