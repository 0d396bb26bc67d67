"""scikit-learn's histogram gradient boosting as a teacher: cross-fitted, with outputs such as networks have.

Its answers to the rows that it was fitted on are nearly the targets themselves, and teach nothing that those do not: so
rows are answered by the model of the fold that left them out.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy
import torch
from numpy.typing import NDArray
from torch import Tensor

from topiarist.data import Part
from topiarist.randomness import child_seed
from topiarist.tasks import Task
from topiarist.training.tables.folds import InnerFold
from topiarist.training.tables.teachers import CrossFitted, answers_out_of_fold

BOOSTING = "boosting"
LEAST_PROBABILITY = 1e-6  # of what was never seen: logarithms must be finite

MOST_TREES = 500  # an iteration makes a tree per class: of 19 classes, 100 iterations take longer than all else
ITERATIONS = 100  # scikit-learn's own


def cross_fit_boosting(
    folds: Sequence[InnerFold], task: Task, *, seed: int, first: "BoostedTrees | None" = None
) -> CrossFitted:
    """Return gradient boosting with scikit-learn's own settings, fitted on each fold; `first` is that of the first."""
    known = [] if first is None else [first]
    models = known + [fit_boosting(fold.learned(), task, seed=seed) for fold in folds[len(known) :]]
    return CrossFitted(BOOSTING, task.kind, models, answers_out_of_fold(folds, models, task))


@dataclass(frozen=True)
class BoostedTrees:
    """What answers to samples as a network does: one model for classes, one per number or label."""

    task: Task
    models: Sequence[Any]  # scikit-learn's; None stands for one that was shown a single class
    shown: Sequence[NDArray[Any]]  # the classes that each was shown

    def __call__(self, x: Tensor) -> Tensor:
        """Return outputs (n_samples, n_outputs): logarithms of probabilities, logits of labels, or numbers."""
        samples = x.numpy()
        if self.task.kind == "numbers":
            return torch.from_numpy(numpy.stack([model.predict(samples) for model in self.models], axis=1))
        if self.task.kind == "classes":
            found = _probabilities(self.models[0], self.shown[0], samples, self.task.outputs)
            return torch.from_numpy(found).clamp(min=LEAST_PROBABILITY).log()
        pairs = zip(self.models, self.shown, strict=True)
        columns = [_probabilities(model, shown, samples, 2)[:, 1] for model, shown in pairs]
        return torch.from_numpy(numpy.stack(columns, axis=1)).logit(eps=LEAST_PROBABILITY)


def fit_boosting(part: Part, task: Task, *, seed: int) -> BoostedTrees:
    """Return gradient boosting that was fitted to samples."""
    number, x = child_seed(seed, "boosting") % 2**32, part.x.numpy()
    weights = None if part.weights is None else part.weights.numpy()
    if task.kind == "numbers":
        return BoostedTrees(task, [_regressor(x, column, weights, number) for column in part.y.numpy().T], ())
    columns = [part.y.numpy()] if task.kind == "classes" else list(part.y.numpy().T.astype(numpy.int64))
    shown = [numpy.unique(column) for column in columns]
    return BoostedTrees(task, [_classifier(x, column, weights, number) for column in columns], shown)


def _regressor(x: NDArray[Any], y: NDArray[Any], weights: NDArray[Any] | None, seed: int) -> Any:
    from sklearn.ensemble import HistGradientBoostingRegressor  # noqa: PLC0415  # takes a second to import

    return HistGradientBoostingRegressor(random_state=seed).fit(x, y, sample_weight=weights)


def _classifier(x: NDArray[Any], y: NDArray[Any], weights: NDArray[Any] | None, seed: int) -> Any:
    from sklearn.ensemble import HistGradientBoostingClassifier  # noqa: PLC0415  # as above

    classes = len(numpy.unique(y))
    if classes < 2:
        return None
    iterations = min(ITERATIONS, MOST_TREES // classes if classes > 2 else ITERATIONS)
    learner = HistGradientBoostingClassifier(max_iter=max(iterations, 1), random_state=seed)
    return learner.fit(x, y, sample_weight=weights)


def _probabilities(model: Any, shown: NDArray[Any], samples: NDArray[Any], classes: int) -> NDArray[Any]:
    """Return the probabilities of all classes; 0 for those that the model was not shown."""
    found = numpy.zeros((len(samples), classes))
    found[:, shown] = 1.0 if model is None else model.predict_proba(samples)
    return found
