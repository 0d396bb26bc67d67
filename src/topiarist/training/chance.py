"""Whether a network has learned anything: what it answers against what chance would."""

import numpy
import torch
from scipy.stats import binom, chi2_contingency
from torch import Tensor, nn

from topiarist.data import AnyPart
from topiarist.training.inference import part_logits

NO_LUCK = 1e-6  # the probability below which right answers are no luck: one false alarm in a million networks


def beats_chance(model: nn.Module, part: AnyPart, luck: float = NO_LUCK) -> bool:
    """Return whether a network is right more often than one that always names the most frequent class could be."""
    logits, labels = part_logits(model, part)
    return better_than_chance(logits, labels, luck)


def better_than_chance(logits: Tensor, labels: Tensor, luck: float = NO_LUCK) -> bool:
    """Return whether answers (n_samples, n_classes) are right more often than the most frequent class alone explains.

    The number of right answers is compared with a binomial one, whose probability is the share of the most frequent
    class among these samples, or that of a guess where it is larger; so many or more must be less likely than `luck`.
    """
    right = int((logits.argmax(dim=1) == labels).sum())
    share = max(float(torch.bincount(labels).max()) / len(labels), 1 / logits.shape[1])
    return bool(binom.sf(right - 1, len(labels), share) < luck)


def tells_apart(model: nn.Module, part: AnyPart, luck: float = NO_LUCK) -> bool:
    """Return whether what a network answers has anything to do with the classes.

    Answers and classes are independent of each other where a network learned nothing (Pearson's χ² test); so a network
    counts that finds rare classes at the price of accuracy, and one that always answers the same does not.
    """
    logits, labels = part_logits(model, part)
    answers, classes = numpy.unique(logits.argmax(dim=1).numpy(), return_inverse=True)[1], labels.numpy()
    counts = numpy.zeros((int(classes.max()) + 1, int(answers.max()) + 1))
    numpy.add.at(counts, (classes, answers), 1)
    counts = counts[counts.sum(axis=1) > 0]
    return min(counts.shape) > 1 and bool(chi2_contingency(counts).pvalue < luck)
