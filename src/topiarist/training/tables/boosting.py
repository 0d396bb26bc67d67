"""scikit-learn's histogram gradient boosting as a teacher: cross-fitted, with outputs such as networks have.

Its answers to the rows that it was fitted on are nearly the targets themselves, and teach nothing that those do not: so
rows are answered by the model of the fold that left them out.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy
import torch
from numpy.typing import NDArray
from torch import Tensor

from topiarist.data import Part
from topiarist.randomness import child_seed
from topiarist.tasks import Task
from topiarist.training.tables.folds import InnerFold
from topiarist.training.tables.teachers import Answering, CrossFitted, answers_out_of_fold

LEAST_PROBABILITY = 1e-6  # of what was never seen: logarithms must be finite

MOST_TREES = 500  # an iteration makes a tree per class: of 19 classes, 100 iterations take longer than all else
ITERATIONS = 100  # scikit-learn's own

Inputs = NDArray[numpy.float32]


def cross_fit_boosting(folds: Sequence[InnerFold], task: Task, *, seed: int) -> CrossFitted:
    """Return gradient boosting with scikit-learn's own settings, fitted on each fold."""
    models = [_fitted(fold.learned(), task, child_seed(seed, "boosting") % 2**32) for fold in folds]
    return CrossFitted("boosting", task.kind, models, answers_out_of_fold(folds, models, task))


def _fitted(part: Part, task: Task, seed: int) -> Answering:
    x, weights = part.x.numpy(), None if part.weights is None else part.weights.numpy()
    if task.kind == "classes":
        predict = _classifier(x, part.y.numpy(), weights, task.outputs, seed)
        return lambda samples: torch.from_numpy(predict(samples.numpy())).clamp(min=LEAST_PROBABILITY).log()
    columns = part.y.numpy().T
    if task.kind == "numbers":
        regressors = [_regressor(x, column, weights, seed) for column in columns]
        return lambda samples: _columns(each(samples.numpy()) for each in regressors)
    judges = [_classifier(x, column.astype(numpy.int64), weights, 2, seed) for column in columns]
    return lambda samples: _columns(judge(samples.numpy())[:, 1] for judge in judges).logit(eps=LEAST_PROBABILITY)


def _columns(found: Any) -> Tensor:
    return torch.from_numpy(numpy.stack(list(found), axis=1))


def _regressor(x: Inputs, y: NDArray[Any], weights: NDArray[Any] | None, seed: int) -> Callable[[Inputs], NDArray[Any]]:
    from sklearn.ensemble import HistGradientBoostingRegressor  # noqa: PLC0415  # takes a second to import

    model = HistGradientBoostingRegressor(random_state=seed).fit(x, y, sample_weight=weights)
    return lambda samples: numpy.asarray(model.predict(samples))


def _classifier(
    x: Inputs, y: NDArray[Any], weights: NDArray[Any] | None, classes: int, seed: int
) -> Callable[[Inputs], NDArray[Any]]:
    """Return what gives the probabilities of all classes; 0 for those that the samples do not show."""
    from sklearn.ensemble import HistGradientBoostingClassifier  # noqa: PLC0415  # as above

    shown = numpy.unique(y)
    model = None
    if len(shown) > 1:
        iterations = min(ITERATIONS, MOST_TREES // len(shown) if len(shown) > 2 else ITERATIONS)
        learner = HistGradientBoostingClassifier(max_iter=max(iterations, 1), random_state=seed)
        model = learner.fit(x, y, sample_weight=weights)

    def predict(samples: Inputs) -> NDArray[Any]:
        found = numpy.zeros((len(samples), classes))
        found[:, shown] = 1.0 if model is None else model.predict_proba(samples)
        return found

    return predict
