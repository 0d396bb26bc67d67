"""scikit-learn's extremely randomised trees as a teacher of small tables with several classes, cross-fitted."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy
import torch
from torch import Tensor

from topiarist.data import Part, Samples
from topiarist.randomness import child_seed
from topiarist.tasks import Task
from topiarist.training.tables.folds import InnerFold
from topiarist.training.tables.teachers import CrossFitted, answers_out_of_fold

FOREST = "forest"
FEWEST_CLASSES = 3  # benchmarks/README.md: of several classes with few rows each, it is better than boosting
TREES = 100  # scikit-learn's own
LEAST_PROBABILITY = 1e-3  # a class that no tree votes for is rare, and not impossible


@dataclass(frozen=True)
class RandomisedTrees:
    """What answers to samples as a network does."""

    outputs: int
    model: Any

    def __call__(self, x: Samples) -> Tensor:
        """Return logarithms of probabilities (n_samples, n_outputs)."""
        found = numpy.zeros((len(x), self.outputs))
        found[:, self.model.classes_] = self.model.predict_proba(x[:].numpy())
        return torch.from_numpy(found).clamp(min=LEAST_PROBABILITY).log()


def can_be_forest(task: Task, rows: int, most: int) -> bool:
    """Return whether trees are tried: for several classes, and at most so many rows."""
    return task.kind == "classes" and task.outputs >= FEWEST_CLASSES and rows <= most


def cross_fit_forest(folds: Sequence[InnerFold], task: Task, *, seed: int) -> CrossFitted:
    """Return trees with scikit-learn's own settings, fitted on each fold."""
    models = [_fit(fold.learned(), task, seed) for fold in folds]
    return CrossFitted(FOREST, task.kind, models, answers_out_of_fold(folds, models, task))


def _fit(part: Part, task: Task, seed: int) -> RandomisedTrees:
    from sklearn.ensemble import ExtraTreesClassifier  # noqa: PLC0415  # takes a second to import

    weights = None if part.weights is None else part.weights.numpy()
    trees = ExtraTreesClassifier(n_estimators=TREES, random_state=child_seed(seed, FOREST) % 2**32)
    return RandomisedTrees(task.outputs, trees.fit(part.x.numpy(), part.y.numpy(), sample_weight=weights))
