"""How far the answers of a cut network are from those of the whole one.

Scores of classes (n_samples, n_classes) are compared as probabilities, which is what a choice between classes comes
from; all other outputs by their squared error, as a share of their variance. A little of the latter holds scores too,
as a tensor of that shape may be several numbers instead. Where the task is known, `divergence_of` compares numbers and
labels as what they are.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from topiarist.devices import in_float64
from topiarist.tasks import Task
from topiarist.tasks.formulas import bernoulli_entropy

Answers = Sequence[Tensor]  # what a network returns for a batch: its tensors of real numbers
Divergence = Callable[[Answers, Answers], Tensor]  # of the answers found from those wanted, a mean over the batch
DivergenceFor = Callable[[Sequence[Answers]], Divergence]  # from all that is wanted, batch by batch

SUMS_TO_ONE = 1e-3  # rows of probabilities are that near to a sum of 1, also in half precision
# Of the squared error beside the relative entropy of scores. Fashion-MNIST, cut perceptrons and ResNets: from 0.03 to
# 0.3, the accuracy of the settled networks is the same as without, and their scores are nearer by half.
HELD = 0.1
SMALLEST = 1e-12  # probabilities below it count as much as it


def divergence_for(wanted: Sequence[Answers]) -> Divergence:
    """Return how to measure the distance from such answers: the sum over the tensors of an answer."""
    parts = [_divergence_of([each.detach() for each in tensors]) for tensors in zip(*wanted, strict=True)]

    def divergence(found: Answers, answers: Answers) -> Tensor:
        return torch.stack([part(*pair) for part, *pair in zip(parts, found, answers, strict=True)]).sum()

    return divergence


def divergence_of(task: Task | None) -> DivergenceFor:
    """Return how to measure distances for a task: by the shape of the answers where it is not known, or classes."""
    if task is None or task.kind == "classes":
        return divergence_for
    labels = task.kind == "labels"

    def for_task(wanted: Sequence[Answers]) -> Divergence:
        if any(len(answers) != 1 for answers in wanted):
            return divergence_for(wanted)
        squared = _SquaredError(_scale_of([answers[0].detach() for answers in wanted]))

        def divergence(found: Answers, answers: Answers) -> Tensor:
            error = squared(found[0], answers[0])
            return bernoulli_entropy(found[0], answers[0]).mean() + HELD * error if labels else error

        return divergence

    return for_task


def _divergence_of(wanted: Sequence[Tensor]) -> Callable[[Tensor, Tensor], Tensor]:
    if all(_are_probabilities(each) for each in wanted):
        return _from_probabilities
    squared = _SquaredError(_scale_of(wanted))
    if all(each.ndim == 2 and each.shape[1] > 1 for each in wanted):
        return lambda found, answers: _from_scores(found, answers) + HELD * squared(found, answers)
    return squared


def _are_probabilities(answers: Tensor) -> bool:
    """Return whether a tensor (n_samples, n_classes) has rows of probabilities."""
    if answers.ndim != 2 or answers.shape[1] < 2 or not bool((answers >= 0).all()):
        return False
    return bool((in_float64(answers).sum(dim=1) - 1).abs().max() < SUMS_TO_ONE)


def _from_scores(found: Tensor, wanted: Tensor) -> Tensor:
    """Return the relative entropy of the softmax of scores."""
    return _relative_entropy(found.log_softmax(dim=1), wanted.log_softmax(dim=1))


def _from_probabilities(found: Tensor, wanted: Tensor) -> Tensor:
    """Return the relative entropy of probabilities."""
    return _relative_entropy(found.clamp(min=SMALLEST).log(), wanted.clamp(min=SMALLEST).log())


def _relative_entropy(found: Tensor, wanted: Tensor) -> Tensor:
    """Return Σ p · (log p − log q) as a mean over samples; what is impossible, log p = −∞, counts for nothing."""
    differences = torch.where(wanted.isfinite(), wanted - found, 0.0)
    return (wanted.exp() * differences).sum(dim=1).mean()


@dataclass(frozen=True)
class _SquaredError:
    """The mean squared error over a scale; answers that are not finite, such as masked ones, count for nothing."""

    scale: float

    def __call__(self, found: Tensor, wanted: Tensor) -> Tensor:
        error = torch.where(wanted.isfinite(), found - wanted, 0.0)
        return error.square().mean() / self.scale


def _scale_of(wanted: Sequence[Tensor]) -> float:
    """Return the variance of answers, each number of an answer about its own mean; 1 where they never vary."""
    numbers = [in_float64(each).flatten(1) if each.ndim > 1 else in_float64(each).reshape(-1, 1) for each in wanted]
    if len({each.shape[1] for each in numbers}) > 1:  # answers of several lengths
        numbers = [each.reshape(-1, 1) for each in numbers]
    together = torch.cat(numbers)
    together = torch.where(together.isfinite(), together, torch.nan)
    spread = (together - together.nanmean(dim=0)).square().nanmean()
    return float(spread) if bool(spread > 0) else 1.0
