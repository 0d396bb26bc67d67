"""What is compared on a split of a table: `train_tabular` and scikit-learn's models with their own settings."""

import io
import tempfile
import time
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy
from torch import Tensor

from benchmarks.tabulating.records import TableScore
from topiarist import Data, save
from topiarist.data import Part
from topiarist.training import TabularConfig, train_tabular
from topiarist.training.inference import predict_logits

KILOBYTE = 1024


def ours(data: Data, split: int, config: TabularConfig) -> list[TableScore]:
    """Return the scores of the distilled network, of its teacher and of the ensemble."""
    begun = time.process_time()
    found = train_tabular(data, config)
    seconds = time.process_time() - begun
    x, prefix = tested(data).x, "" if config.teacher == "both" else f"{config.teacher}: "
    answers = {"network": predict_logits(found.network, x), "teacher": found.teacher.outputs(x)}
    if found.ensemble is not None:
        answers["ensemble"] = predict_logits(found.ensemble, x)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "network.safetensors"
        save(found.network, file)
        size = file.stat().st_size / KILOBYTE
    return [
        scored(data, split, f"{prefix}{name}", score_of(data, outputs), size if name == "network" else None, seconds)
        for name, outputs in answers.items()
    ]


def references(data: Data, split: int) -> list[TableScore]:
    """Return the scores of scikit-learn's models on the same inputs: categories one-hot, gaps filled, standardised."""
    import joblib

    part, x = data.train, tested(data).x.numpy()
    assert isinstance(part, Part)
    y, found = part.y.numpy(), []
    for name, model in _models(data, split).items():
        begun = time.process_time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of a perceptron that has not converged after its 200 epochs
            model.fit(part.x.numpy(), y if data.task.kind == "classes" else y[:, 0])
        seconds, file = time.process_time() - begun, io.BytesIO()
        joblib.dump(model, file)
        score = model.score(x, _targets(data))
        found.append(scored(data, split, name, float(score), file.tell() / KILOBYTE, seconds))
    return found


def guess(data: Data, split: int) -> list[TableScore]:
    """Return the score of always answering the most frequent class, or the mean."""
    from sklearn import dummy

    assert isinstance(data.train, Part)
    classes = data.task.kind == "classes"
    model = dummy.DummyClassifier() if classes else dummy.DummyRegressor()
    model.fit(data.train.x.numpy(), data.train.y.numpy() if classes else data.train.y.numpy()[:, 0])
    return [scored(data, split, "guess", float(model.score(tested(data).x.numpy(), _targets(data))), None, None)]


def _models(data: Data, seed: int) -> Mapping[str, Any]:
    from sklearn import ensemble, linear_model, neural_network

    if data.task.kind == "classes":
        return {
            "boosting": ensemble.HistGradientBoostingClassifier(random_state=seed),
            "linear": linear_model.LogisticRegression(max_iter=2000),
            "perceptron": neural_network.MLPClassifier(random_state=seed),
            "forest": ensemble.RandomForestClassifier(random_state=seed),
        }
    return {
        "boosting": ensemble.HistGradientBoostingRegressor(random_state=seed),
        "linear": linear_model.Ridge(),
        "perceptron": neural_network.MLPRegressor(random_state=seed),
        "forest": ensemble.RandomForestRegressor(random_state=seed),
    }


def scored(
    data: Data, split: int, contender: str, score: float, kilobytes: float | None, seconds: float | None
) -> TableScore:
    """Return a score with what it was measured on."""
    rows = len(data.train)
    return TableScore(
        table=data.name,
        split=split,
        contender=contender,
        task=data.task.kind,
        rows=rows,
        tested=len(data.test),
        score=score,
        kilobytes=kilobytes,
        seconds=seconds,
    )


def tested(data: Data) -> Part:
    """Return the test part."""
    assert isinstance(data.test, Part)
    return data.test


def _targets(data: Data) -> Any:
    y = tested(data).y.numpy()
    return y if data.task.kind == "classes" else y[:, 0]


def score_of(data: Data, outputs: Tensor) -> float:
    """Return accuracy, or R² as scikit-learn has it."""
    y = _targets(data)
    if data.task.kind == "classes":
        return float((outputs.argmax(dim=1).numpy() == y).mean())
    error = outputs[:, 0].double().numpy() - y
    return float(1 - numpy.square(error).mean() / y.var())
