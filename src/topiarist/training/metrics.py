"""Whether what networks answer has to do with the targets at all; and the metrics of classifiers."""

from typing import Any, Literal

import numpy
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from topiarist.data import AnyPart
from topiarist.tasks import Classification, Task
from topiarist.training.inference import part_logits

__all__ = ["accuracy", "better_than_chance", "depends_on_targets", "log_loss", "macro_accuracy"]

SIGNIFICANCE = 1e-6  # the p-value below which a network is no luck: one false alarm in a million networks


def accuracy(logits: Tensor, y: Tensor) -> float:
    """Return the fraction of samples whose class is named."""
    return _of_classes("accuracy", logits, y)


def macro_accuracy(logits: Tensor, y: Tensor) -> float:
    """Return the mean over the classes present of the fraction of their samples whose class is named."""
    return _of_classes("macro_accuracy", logits, y)


def log_loss(logits: Tensor, y: Tensor) -> float:
    """Return the mean of −ln p(right class)."""
    return _of_classes("log_loss", logits, y)


def _of_classes(name: str, logits: Tensor, y: Tensor) -> float:
    task = Classification(tuple(map(str, range(logits.shape[1]))))
    return task.value(task.find_metric(name), logits, y)


def better_than_chance(
    outputs: Tensor, y: Tensor, task: Task | None = None, *, significance: float = SIGNIFICANCE
) -> bool:
    """Return whether answers are better than those of a network that answers all samples the same could be.

    The number of right classes is compared with a binomial one, whose probability is the share of the most frequent
    class among these samples, or that of a guess where it is larger. Numbers and labels must rise with the answers.
    Without a task, the targets are classes.
    """
    if task is not None and task.kind != "classes":
        return _correlates(outputs, task.as_targets(y), significance, alternative="greater")
    from scipy.stats import binom  # noqa: PLC0415  # takes half a second to import, and few trainings ask

    right = int((outputs.argmax(dim=1) == y).sum())
    share = max(float(torch.bincount(y).max()) / len(y), 1 / outputs.shape[1])
    return bool(binom.sf(right - 1, len(y), share) < significance)


def depends_on_targets(
    model: nn.Module, part: AnyPart, task: Task | None = None, *, significance: float = SIGNIFICANCE
) -> bool:
    """Return whether what a network answers depends on the targets at all.

    Classes by Pearson's χ² test: so a network counts that finds rare classes at the price of accuracy, and one that
    always answers the same does not. Numbers and labels by their rank correlation with the answers.
    """
    outputs, y = part_logits(model, part)
    if task is not None and task.kind != "classes":
        return _correlates(outputs, task.as_targets(y), significance, alternative="two-sided")
    from scipy.stats import chi2_contingency  # noqa: PLC0415  # as above

    answers, classes = numpy.unique(outputs.argmax(dim=1).numpy(), return_inverse=True)[1], y.numpy()
    counts = numpy.zeros((int(classes.max()) + 1, int(answers.max()) + 1))
    numpy.add.at(counts, (classes, answers), 1)
    counts = counts[counts.sum(axis=1) > 0]
    return min(counts.shape) > 1 and bool(chi2_contingency(counts).pvalue < significance)


def _correlates(outputs: Tensor, y: Tensor, significance: float, alternative: Literal["greater", "two-sided"]) -> bool:
    """Return whether one of the targets (n_samples, n_outputs) at least rises with its output, beyond luck."""
    from scipy.stats import spearmanr  # noqa: PLC0415  # as above

    found, wanted = outputs.double().numpy(), y.double().numpy()
    if not numpy.isfinite(found).all() or len(found) < 3:
        return False
    varying = [column for column in range(found.shape[1]) if _varies(found[:, column]) and _varies(wanted[:, column])]
    test: Any = spearmanr  # its stubs know other shapes
    tested = (test(found[:, column], wanted[:, column], alternative=alternative) for column in varying)
    return any(each.pvalue < significance / found.shape[1] for each in tested)


def _varies(values: NDArray[numpy.float64]) -> bool:
    return bool(values.max() > values.min())
