"""What is known at the end of a rightsizing: all networks by name, and who made them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy
from torch import Tensor, nn

from topiarist.data import Data
from topiarist.measurement import Budget
from topiarist.rightsizing.choosing import Choice
from topiarist.rightsizing.deciding import Judgement, Rung
from topiarist.rightsizing.descending import Descent
from topiarist.rightsizing.effort import MethodName, WorkPlan
from topiarist.rightsizing.folds import Answers
from topiarist.rightsizing.making import Made
from topiarist.training import History
from topiarist.training.inference import part_logits

BASELINE = "baseline"


@dataclass(frozen=True)
class Known:
    """A network that could be kept: its size, who made it, and the answers of those made like it in each fold."""

    ratio: float | None
    method: MethodName | None
    made: Made
    answers: Sequence[Answers | None]
    finalist: bool = False

    @property
    def fold_accuracies(self) -> list[float | None]:
        """The accuracy in each fold; None where the method was not asked any more."""
        return [None if answers is None else float(answers.mean()) for answers in self.answers]

    @property
    def accuracy(self) -> float | None:
        """The accuracy over all folds; None where the method was not asked in all."""
        known = [answers for answers in self.answers if answers is not None]
        return float(numpy.concatenate(known).mean()) if len(known) == len(self.answers) else None


@dataclass(frozen=True, kw_only=True)
class Finished:
    """A rightsizing whose work is done."""

    data: Data
    plan: WorkPlan
    descent: Descent
    judged: Sequence[Judgement]
    choice: Choice | None
    baseline_history: History | None
    settings: Mapping[str, Any]
    budget: Budget

    @cached_property
    def known(self) -> dict[str, Known]:
        """The baseline, then the networks of each size and their finalist, by name."""
        folds = self.descent.folds
        histories = () if self.baseline_history is None else (self.baseline_history,)
        baseline = Made(model=folds[-1].whole, reasons=(), histories=histories)
        found = {BASELINE: Known(None, None, baseline, [fold.baseline_answers for fold in folds[:-1]])}
        for judgement in self.judged:
            found |= known_of(judgement.rung)
        return found

    @cached_property
    def networks(self) -> dict[str, nn.Module]:
        """All networks that could be kept, by name."""
        return {name: known.made.model for name, known in self.known.items()}

    @property
    def chosen(self) -> str:
        """The name of the network that was chosen; that of the baseline where none was."""
        if self.choice is None or self.choice.judgement is None:
            return BASELINE
        return final(self.choice.judgement.rung)

    @cached_property
    def tested(self) -> dict[str, tuple[Tensor, Tensor]]:
        """What the baseline and the network that was chosen answer to the test part: logits and class numbers."""
        sides = {"before": self.networks[BASELINE], "after": self.networks[self.chosen]}
        return {side: part_logits(network, self.data.test) for side, network in sides.items()}


def known_of(rung: Rung) -> dict[str, Known]:
    """Give the networks of one size, then its finalist, by name."""
    ratio, found = rung.target.ratio, {}
    for method, candidate in rung.folds[-1].items():
        answers = [fold[method].answers if method in fold else None for fold in rung.folds[:-1]]
        found[f"{method}-{ratio:.4g}"] = Known(ratio, method, candidate.made, answers)
    finals = [finalist.answers for finalist in rung.finalists[:-1]]
    found[final(rung)] = Known(ratio, rung.winners[-1], rung.finalists[-1].made, finals, finalist=True)
    return found


def final(rung: Rung) -> str:
    """Name the finalist of a size."""
    return f"final-{rung.target.ratio:.4g}"
