"""Networks that predict numbers and labels, resized by the methods; what may be lost is relative for numbers."""

import math

import numpy
import pytest
import torch
from torch import Tensor, nn
from torch.utils.data import TensorDataset

from topiarist import Budget, TrainConfig, models, resize, train
from topiarist.data import Data, Part
from topiarist.methods import find_method
from topiarist.surgery.settling.divergence import divergence_of
from topiarist.tasks import MultiLabel, Regression

pytestmark = pytest.mark.filterwarnings("ignore:y0, y1:topiarist.errors.TopiaristWarning")
X = numpy.random.default_rng(3).normal(size=(300, 4))
Y = {
    "numbers": 50 + 10 * X[:, 0] + 3 * X[:, 1] ** 2,
    "labels": (numpy.stack([X[:, 0], X[:, 1] * X[:, 2]], axis=1) > 0).astype(int),
}


@pytest.fixture(scope="module", params=list(Y))
def trained(request: pytest.FixtureRequest) -> tuple[nn.Module, Data]:
    """Train a perceptron for each task."""
    data = Data.from_arrays(X, Y[request.param], scaling="auto")
    net = models.mlp([4, 24, data.task.outputs], "tanh", generator=torch.Generator().manual_seed(0))
    train(net, data, TrainConfig(epochs=60, learning_rate=0.02))
    return net, data


@pytest.mark.parametrize("method", ["distinctiveness", "genetic", "genetic-front"])
def test_a_method_keeps_to_a_budget_and_near_the_answers(trained: tuple[nn.Module, Data], method: str) -> None:
    net, data = trained
    made = find_method(method)(**({} if method == "distinctiveness" else {"generations": 8, "population": 20}))
    outcome = resize(net, data, made, budget=Budget(parameters=80))
    assert outcome.after.parameters <= 80 and outcome.after.primary == data.task.primary
    assert "accuracy" not in str(outcome) and data.task.primary in str(outcome)
    guess = data.task.guess(data.train.y) if isinstance(data.train, Part) else torch.zeros(1)
    assert isinstance(data.test, Part)
    lazy = data.task.score(guess.expand(len(data.test), -1), data.test.y)
    assert data.task.score(outcome.model(data.test.x).detach(), data.test.y) > lazy


@pytest.mark.slow
def test_what_may_be_lost_is_relative_for_numbers(trained: tuple[nn.Module, Data]) -> None:
    net, data = trained
    outcome = resize(net, data, "distinctiveness", budget=Budget(max_drop=0.1))
    before, after = outcome.score
    assert after >= before - 0.1 and outcome.after.parameters < outcome.before.parameters
    if data.task.kind == "numbers":
        held = data.validation
        assert isinstance(held, Part)
        x, y = held.x, held.y

        def error(model: nn.Module) -> float:
            return float((model(x) - y).detach().square().mean().sqrt())

        assert error(outcome.model) <= math.exp(0.1) * error(net) * 1.0001


def test_settling_compares_answers_as_what_they_are() -> None:
    wanted, found = torch.tensor([[2.0, -1.0], [0.5, 3.0]]), torch.tensor([[2.0, -1.0], [0.5, 2.0]])
    shifted = wanted + 7.0  # the same classes, and other numbers and labels

    def apart(task: Regression | MultiLabel | None, answers: Tensor) -> float:
        return float(divergence_of(task)([[wanted]])([answers], [wanted]))

    for task in (Regression(("u", "v")), MultiLabel(("p", "q"))):
        assert apart(task, wanted) == pytest.approx(0.0, abs=1e-6)
        assert apart(task, found) > 0.01 and apart(task, shifted) > apart(task, found)
    spread = (wanted - wanted.mean(dim=0)).square().mean()
    assert apart(Regression(("u", "v")), found) == pytest.approx(float(0.25 / spread), rel=1e-5)


@pytest.mark.slow
def test_datasets_of_numbers_are_read_batch_by_batch() -> None:
    parts = [TensorDataset(torch.from_numpy(X[rows]).float(), torch.from_numpy(Y["numbers"][rows]))
             for rows in (slice(0, 200), slice(200, 250), slice(250, 300))]  # fmt: skip
    task = Regression(("y",), spread=(11.0,))
    data = Data.from_datasets(train=parts[0], validation=parts[1], test=parts[2], task=task)
    net = models.mlp([4, 8, 1])
    history = train(net, data, TrainConfig(epochs=2))
    assert history.epochs[-1].validation_metric is not None and history.epochs[-1].validation_accuracy is None
    assert resize(net, data, "distinctiveness", budget=Budget(parameters=30)).after.parameters <= 30
