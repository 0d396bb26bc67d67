"""Networks judged by the metric of their task, on the samples that no decision saw, fold by fold."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy
import scipy
import torch
from numpy.typing import NDArray
from torch import Tensor

from topiarist.data import Data
from topiarist.errors import SettingsError
from topiarist.statistics import Metric, PairedEvidence, compare, compare_each, pooled_value
from topiarist.statistics.proofs.comparing import FEWEST_COMPARED
from topiarist.tasks import Task
from topiarist.training.inference import part_targets, weights_of

RARE, EVEN = 0.1, 0.5  # a share of the samples; of an even share: of 10 classes, each has a tenth
BALANCED = "macro_accuracy"
SMALLEST = 1e-300  # so that a share of no error at all is a number
Found = TypeVar("Found")


@dataclass(frozen=True)
class JudgedAnswers:
    """What networks of one fold answered to its samples: outputs (n_networks, n_samples, n_outputs), and what is true.

    The task is that of the fold: where numbers are standardised, by its own training samples.
    """

    task: Task
    outputs: Tensor
    y: Tensor
    weights: Tensor | None = None

    def __len__(self) -> int:
        return len(self.y)

    @property
    def answers(self) -> NDArray[Any]:
        """What a user reads (n_networks, n_samples, n_outputs)."""
        found: NDArray[Any] = torch.stack([self.task.finite_answers(each) for each in self.outputs]).numpy()
        return found

    def with_networks(self, others: "Sequence[JudgedAnswers]") -> "JudgedAnswers":
        """Return the answers of these and other networks to the same samples."""
        return replace(self, outputs=torch.cat([self.outputs, *(each.outputs for each in others)]))


@dataclass(frozen=True)
class _Pooled:
    """Answers, targets, weights and folds of the samples of several folds."""

    answers: NDArray[Any]
    targets: NDArray[Any]
    weights: NDArray[Any] | None
    folds: NDArray[Any]


def _pooled(folds: Sequence[JudgedAnswers]) -> _Pooled:
    weights = [each.weights for each in folds]
    known = [each.numpy() for each in weights if each is not None]
    return _Pooled(
        answers=numpy.concatenate([each.answers for each in folds], axis=1),
        targets=numpy.concatenate([each.task.true_answers(each.y).numpy() for each in folds]),
        weights=numpy.concatenate(known) if len(known) == len(weights) else None,
        folds=numpy.concatenate([numpy.full(len(each), number) for number, each in enumerate(folds)]),
    )


def judged_score(folds: Sequence[JudgedAnswers]) -> float:
    """Return the primary metric over the samples of some folds, on average over networks."""
    found = _pooled(folds)
    metric = folds[0].task.primary_metric
    return pooled_value(metric, found.answers, found.targets, weights=found.weights, folds=found.folds)


def evidence_of(
    candidates: Sequence[JudgedAnswers], baselines: Sequence[JudgedAnswers], *, margin: float, alpha: float
) -> PairedEvidence:
    """Test by the primary metric whether candidates are not worse than the baselines of their folds."""
    return _tested(compare, candidates, baselines, margin=margin, alpha=alpha)


def each_evidence(
    candidates: Sequence[JudgedAnswers], baselines: Sequence[JudgedAnswers], *, margin: float, alpha: float
) -> tuple[PairedEvidence, ...]:
    """Test every target or label by itself, as `evidence_of` tests them together; p is Holm's over all of them."""
    return _tested(compare_each, candidates, baselines, margin=margin, alpha=alpha)


def _tested(
    test: Callable[..., Found],
    candidates: Sequence[JudgedAnswers],
    baselines: Sequence[JudgedAnswers],
    *,
    margin: float,
    alpha: float,
) -> Found:
    """Return what a test of `statistics` finds, over the samples of all folds."""
    one, two = _pooled(candidates), _pooled(baselines)
    return test(
        candidates[0].task.primary_metric,
        one.answers,
        two.answers,
        one.targets,
        margin=margin,
        alpha=alpha,
        weights=one.weights,
        folds=one.folds,
    )


def check_each(task: Task) -> None:
    """Raise SettingsError where there is nothing to be tested one by one."""
    if task.outputs < 2 or task.kind == "classes":
        raise SettingsError(f"several numbers or labels are tested one by one; found {task}", setting="each")
    if task.own_metric is not None:
        found = f"found {task.own_metric.name}, one of your own"
        raise SettingsError(f"targets and labels are tested one by one by metrics that topiarist knows; {found}")


def guessed(data: Data) -> JudgedAnswers:
    """Return what the best constant of the training part answers to the test part: what a network must beat."""
    train, test = map(part_targets, (data.train, data.test))
    guess = data.task.guess(train, weights_of(data.train)).float()
    return JudgedAnswers(data.task, guess.expand(1, len(test), -1), test, weights_of(data.test))


def lost_of(metric: Metric, score: float, baseline: float) -> float:
    """Return how much worse a score is than the baseline's, as the margin is meant: as a share of it, or plainly."""
    worse = metric.direction * (baseline - score)
    return worse / max(abs(baseline), SMALLEST) if metric.relative else worse


def clearly_better(found: PairedEvidence, alpha: float) -> bool:
    """Return whether a difference is shown to be above 0: its lower bound is.

    The bounds of right answers are found where the margin is lost; for them it is the sign test, which is exact: would
    at least as many of the answers that differ be won if each were won by the toss of a coin?
    """
    if found.won is None or found.lost is None:
        return found.low > 0
    luck = scipy.stats.binom.sf(math.floor(found.won) - 1, math.ceil(found.won + found.lost), 0.5)
    return float(luck) <= alpha


def with_suited_metric(data: Data) -> tuple[Data, tuple[str, ...]]:
    """Return data whose networks are compared by balanced accuracy where a class is rare and no metric was asked for.

    Rare is a class with less than a tenth of the training samples, or than half of an even share, which is less where
    there are more than five classes. Also return a note of it.
    """
    task = data.task
    if task.kind != "classes" or task.metric is not None or task.own_metric is not None or not len(data.train):
        return data, ()
    y, weights = part_targets(data.train), weights_of(data.train)
    shares = torch.bincount(y, None if weights is None else weights.double(), minlength=task.outputs).double()
    least, rarest = (shares / shares.sum()).min(dim=0)
    if float(least) >= min(RARE, EVEN / task.outputs):
        return data, ()
    balanced = data.with_metric(BALANCED)
    return balanced, (
        f"class '{task.names[int(rarest)]}' has {float(least):.1%} of the training samples: networks are compared by"
        f" balanced accuracy, in which all classes count the same; ask for the metric 'accuracy' to count samples",
    )


def check_metric(data: Data, *, margin: float, alpha: float) -> None:
    """Raise SettingsError, before the work, where the metric has no test or is not defined for the data."""
    for part in (data.validation, data.test):
        if len(part) >= FEWEST_COMPARED:
            held = part_targets(part)
            guess = data.task.guess(held).float().expand(1, len(held), -1)
            lazy = JudgedAnswers(data.task, guess, held)
            evidence_of([lazy], [lazy], margin=margin, alpha=alpha)
