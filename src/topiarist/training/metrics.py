"""What a classifier is judged by, from logits (n_samples, n_classes) and class numbers (n_samples,)."""

from collections.abc import Callable

import numpy
import torch
from torch import Tensor, nn
from torch.nn import functional

from topiarist.data import AnyPart
from topiarist.training.config import Metric
from topiarist.training.inference import part_logits

SIGNIFICANCE = 1e-6  # the p-value below which a network is no luck: one false alarm in a million networks


def accuracy(logits: Tensor, y: Tensor) -> float:
    """Return the fraction of samples that are right (micro accuracy)."""
    return (logits.argmax(dim=1) == y).double().mean().item()


def macro_accuracy(logits: Tensor, y: Tensor) -> float:
    """Return the mean over the classes present of the fraction of their samples that are right."""
    members = torch.bincount(y, minlength=logits.shape[1]).double()
    right = torch.bincount(y[logits.argmax(dim=1) == y], minlength=logits.shape[1]).double()
    present = members > 0
    return (right[present] / members[present]).mean().item()


def log_loss(logits: Tensor, y: Tensor) -> float:
    """Return the mean of −ln p(right class)."""
    return functional.cross_entropy(logits.double(), y).item()


METRICS: dict[Metric, Callable[[Tensor, Tensor], float]] = {
    "loss": log_loss,
    "accuracy": accuracy,
    "macro_accuracy": macro_accuracy,
}


def better_than_chance(logits: Tensor, y: Tensor, significance: float = SIGNIFICANCE) -> bool:
    """Return whether answers are right more often than a network that always names the most frequent class could be.

    The number of right answers is compared with a binomial one, whose probability is the share of the most frequent
    class among these samples, or that of a guess where it is larger.
    """
    from scipy.stats import binom  # noqa: PLC0415  # takes half a second to import, and few trainings ask

    right = int((logits.argmax(dim=1) == y).sum())
    share = max(float(torch.bincount(y).max()) / len(y), 1 / logits.shape[1])
    return bool(binom.sf(right - 1, len(y), share) < significance)


def depends_on_classes(model: nn.Module, part: AnyPart, significance: float = SIGNIFICANCE) -> bool:
    """Return whether what a network answers depends on the classes at all, by Pearson's χ² test.

    So a network counts that finds rare classes at the price of accuracy, and one that always answers the same does not.
    """
    from scipy.stats import chi2_contingency  # noqa: PLC0415  # as above

    logits, labels = part_logits(model, part)
    answers, classes = numpy.unique(logits.argmax(dim=1).numpy(), return_inverse=True)[1], labels.numpy()
    counts = numpy.zeros((int(classes.max()) + 1, int(answers.max()) + 1))
    numpy.add.at(counts, (classes, answers), 1)
    counts = counts[counts.sum(axis=1) > 0]
    return min(counts.shape) > 1 and bool(chi2_contingency(counts).pvalue < significance)
