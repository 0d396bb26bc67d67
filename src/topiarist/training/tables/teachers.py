"""Those who teach the network for a table: cross-fitted models, what they answer to rows not seen, and a blend."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from topiarist.data import Part, Samples
from topiarist.models.ensemble import mean_outputs
from topiarist.tasks import Task, TaskKind
from topiarist.training.tables.folds import InnerFold

Answering = Callable[[Samples], Tensor]  # samples (n_samples, n_inputs) → outputs (n_samples, n_outputs)
ROUNDS = 20  # of the greedy choice: weights in twentieths
BLENDED_ROWS = 2**14  # answered in float64 at once: of many rows and models, that takes more than the answers


@dataclass(frozen=True)
class CrossFitted:
    """Models that answer as one, and what is known of them by cross-validation.

    Parameters
    ----------
    name : what they are called
    kind : what they predict
    models : what gives outputs for samples
    out_of_fold : what was answered to each training sample by a model that had not seen it (n_samples, n_outputs)
    """

    name: str
    kind: TaskKind
    models: Sequence[Answering]
    out_of_fold: Tensor

    def outputs(self, x: Samples) -> Tensor:
        """Return the outputs that stand for the mean answer to samples."""
        return blended([model(x) for model in self.models], [1.0] * len(self.models), self.kind)


def answers_out_of_fold(folds: Sequence[InnerFold], models: Sequence[Answering], task: Task) -> Tensor:
    """Return what the model of each fold answers to the rows that it did not see, in the order of all rows."""
    count = sum(len(fold.rows) for fold in folds)
    found = torch.zeros(count, task.outputs)
    for fold, model in zip(folds, models, strict=True):
        found[fold.rows] = model(fold.left_out().samples).float()
    return found


@dataclass(frozen=True)
class TableTeacher:
    """Cross-fitted models, each with a weight above 0; the weights sum to 1."""

    parts: Sequence[CrossFitted]
    weights: Sequence[float]

    @property
    def shares(self) -> Mapping[str, float]:
        """How much each kind of model counts, by name."""
        return {part.name: weight for part, weight in zip(self.parts, self.weights, strict=True)}

    @property
    def out_of_fold(self) -> Tensor:
        """What is answered to each training sample by models that had not seen it (n_samples, n_outputs)."""
        return blended([part.out_of_fold for part in self.parts], self.weights, self.parts[0].kind)

    def outputs(self, x: Samples) -> Tensor:
        """Return outputs (n_samples, n_outputs) for samples (n_samples, n_inputs)."""
        return blended([part.outputs(x) for part in self.parts], self.weights, self.parts[0].kind)


@dataclass(frozen=True)
class BlendedAnswers:
    """What stands for the weighted mean of the answers of two: `share` is the weight of the second."""

    first: Answering
    second: Answering
    share: float
    kind: TaskKind

    def __call__(self, x: Samples) -> Tensor:
        """Return outputs (n_samples, n_outputs) for samples (n_samples, n_inputs)."""
        asked = [(self.first, 1 - self.share), (self.second, self.share)]
        counted = [(answer(x), weight) for answer, weight in asked if weight]
        return blended([outputs for outputs, _ in counted], [weight for _, weight in counted], self.kind)


class TeacherNetwork(nn.Module):
    """A teacher of tables where a network is asked for: it answers, and has nothing to train."""

    def __init__(self, answer: Answering) -> None:
        super().__init__()
        self.answer = answer

    def forward(self, x: Tensor) -> Tensor:
        """Return outputs (n_samples, n_outputs) for samples (n_samples, n_inputs)."""
        return self.answer(x)


def blended(outputs: Sequence[Tensor], weights: Sequence[float], kind: TaskKind) -> Tensor:
    """Return the outputs that stand for the weighted mean of several answers."""
    if len(outputs) == 1:
        return outputs[0]
    shares = torch.tensor(list(weights), dtype=torch.float64)
    logarithms = (shares / shares.sum()).log().view(-1, 1, 1)
    pieces = zip(*(torch.split(each, BLENDED_ROWS) for each in outputs), strict=True)
    stacks = (torch.stack([each.double() for each in piece]) for piece in pieces)
    return torch.cat([mean_outputs(stack, logarithms, kind).float() for stack in stacks])


def best_blend(candidates: Sequence[CrossFitted], part: Part, task: Task) -> TableTeacher:
    """Return the blend with the smallest loss on answers out of fold.

    Chosen greedily with replacement (Caruana and others, Ensemble selection from libraries of models, 2004): each round
    adds the candidate with which the mean of all that were added has the smallest loss, and the best round counts.
    """
    best, counts, kept = float("inf"), [0] * len(candidates), [0] * len(candidates)
    for _ in range(ROUNDS):
        losses = []
        for number in range(len(candidates)):
            tried = [count + (place == number) for place, count in enumerate(counts)]
            losses.append(_loss(candidates, tried, part, task))
        chosen = min(range(len(candidates)), key=losses.__getitem__)
        counts[chosen] += 1
        if losses[chosen] < best - 1e-9:
            best, kept = losses[chosen], list(counts)
    used = [(candidate, count) for candidate, count in zip(candidates, kept, strict=True) if count]
    return TableTeacher([candidate for candidate, _ in used], [count / sum(kept) for _, count in used])


def _loss(candidates: Sequence[CrossFitted], counts: Sequence[int], part: Part, task: Task) -> float:
    used = [(each.out_of_fold, float(count)) for each, count in zip(candidates, counts, strict=True) if count]
    outputs = blended([outputs for outputs, _ in used], [weight for _, weight in used], task.kind)
    return task.loss_of(outputs, part.y, weights=part.weights)
