"""How far the answers of an exported file are from those of torch, and whether that is too far."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor

from topiarist.errors import ModelError
from topiarist.storage.deployable import Inputs
from topiarist.storage.flat import OpenAnswers
from topiarist.storage.trial import Trial
from topiarist.tasks import Regression
from topiarist.training.inference import suited_batch

Run = Callable[[slice], Sequence[Inputs]]  # of some samples of a trial
# Of the largest logit of a sample, or of 1: far above what another order of float32 sums changes, far below what
# changes a class.
TOLERANCE = 1e-4
BATCH = 256  # samples per run: bounds memory


@dataclass(frozen=True)
class ComparedOutput:
    """An output of a file beside that of torch: by how much they differ at most, and how large torch's numbers are.

    Of whole numbers and truth values `same` is the share that is the same; of others it is None.
    """

    name: str
    largest_difference: float
    largest_value: float
    same: float | None = None

    def __str__(self) -> str:
        """Return the difference in words."""
        if self.same is not None:
            return f"'{self.name}' the same in {self.same:.2%}"
        return f"'{self.name}' by {self.largest_difference:.2g} (numbers up to {self.largest_value:.2g})"


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """Outputs of a file beside those of torch for `samples` samples, and those of them that are `too_far` apart.

    Of logits and numbers there are the judgements that an `Export` has; of whatever else a network returns, `outputs`.
    """

    samples: int
    largest: float
    too_far: str | None
    of_probabilities: float | None = None
    agreement: float | None = None
    accuracy: float | None = None
    accuracy_in_torch: float | None = None
    metric: str = "accuracy"
    quality: float | None = None
    quality_in_torch: float | None = None
    outputs: tuple[ComparedOutput, ...] = ()


def compare_with_torch(run: Run, trial: Trial) -> Comparison:
    """Run an export on the samples of a trial, in batches of several sizes, one of 1, and compare what it answers."""
    if trial.answers is not None:
        return _compare_tensors(run, trial.answers)
    starts = [0, *range(1, len(trial.inputs), BATCH), len(trial.inputs)]
    runs = [run(slice(start, end)) for start, end in pairwise(starts)]
    given = [torch.cat([torch.as_tensor(each[output]) for each in runs]) for output in range(len(runs[0]))]
    check_finite(given)
    return _compare_outputs(given, trial)


def check_finite(given: Sequence[Tensor]) -> None:
    """Refuse an export that gives numbers that are not finite."""
    if not all(bool(each.isfinite().all()) for each in given):
        raise ModelError("the export gives numbers that are not finite; nothing was written")


def _compare_outputs(given: Sequence[Tensor], trial: Trial) -> Comparison:
    """Compare what a file gives, logits and probabilities or numbers, with what torch does."""
    task, wanted = trial.known_task, trial.logits
    assert wanted is not None
    allowed = TOLERANCE * wanted.abs().amax(dim=1, keepdim=True).clamp(min=1)
    if isinstance(task, Regression):
        wide = given[0].double()
        outputs = (wide - wide.new_tensor(task.centre)) / wide.new_tensor(task.scale)
        difference = task.in_deviations(outputs - wanted).abs()
        allowed = task.in_deviations(wanted).abs().clamp(min=1) * TOLERANCE
        apart = f"numbers by {difference.max().item():.2g} deviations of the targets"
        of_probabilities = agreement = None
        too_far = bool((difference > allowed).any())
    else:
        outputs, probabilities = given
        difference = (outputs - wanted).abs()
        of_probabilities = (probabilities - task.answers(wanted)).abs().max().item()
        classes = task.kind == "classes"
        same = outputs.argmax(dim=1) == wanted.argmax(dim=1) if classes else (outputs > 0) == (wanted > 0)
        agreement = same.double().mean().item()
        too_far = bool((difference > allowed).any()) or of_probabilities > TOLERANCE
        apart = f"logits by {difference.max().item():.2g}, probabilities by {of_probabilities:.2g}"
    judged = _judged(outputs, wanted, trial)
    return Comparison(
        samples=len(outputs),
        largest=difference.max().item(),
        too_far=apart if too_far else None,
        of_probabilities=of_probabilities,
        agreement=agreement,
        **judged,
    )


def _judged(outputs: Tensor, wanted: Tensor, trial: Trial) -> dict[str, Any]:
    """Return the primary metric of the file and of torch, where the targets are known."""
    task, labels = trial.known_task, trial.labels
    metric = task.find_metric("accuracy") if task.kind == "classes" else task.primary_metric
    values = [None if labels is None else task.value(metric, each, labels, trial.weights) for each in (outputs, wanted)]
    if task.kind == "classes":
        return {"accuracy": values[0], "accuracy_in_torch": values[1]}
    return {"metric": metric.name, "quality": values[0], "quality_in_torch": values[1]}


def _compare_tensors(run: Run, answers: OpenAnswers) -> Comparison:
    """Compare whatever a network returns, output by output and batch by batch, which need not fit in memory at once."""
    step = min(BATCH, suited_batch(answers.tensors[0][:1])) if answers.batched else 1
    starts = [0, *range(1, answers.samples, step), answers.samples]
    tallies = {name: _Tally(name, name in answers.network.per_sample) for name in answers.network.outputs}
    for start, end in pairwise(starts):
        rows = slice(start, end) if answers.batched else slice(None)
        wanted, given = answers(rows), [torch.as_tensor(each) for each in run(rows)]
        check_finite(given)
        for name, found in zip(wanted, given, strict=True):
            tallies[name].add(found, wanted[name])
    compared = {name: tally.compared() for name, tally in tallies.items()}
    apart = [str(compared[name]) for name, tally in tallies.items() if tally.too_far]
    return Comparison(
        samples=answers.samples,
        largest=max(each.largest_difference for each in compared.values()),
        too_far=", ".join(apart) or None,
        outputs=tuple(compared.values()),
    )


@dataclass
class _Tally:
    """What the batches so far show of one output.

    Real numbers may differ by TOLERANCE of the largest of their sample, or of 1, as logits may. Whole numbers, which a
    comparison of close ones chose, are the same in all but a share of TOLERANCE.
    """

    name: str
    per_sample: bool
    largest_difference: float = 0.0
    largest_value: float = 0.0
    whole: bool = False
    numbers: int = 0
    same: int = 0
    real_too_far: bool = False

    def add(self, given: Tensor, wanted: Tensor) -> None:
        """Take in a batch."""
        if given.shape != wanted.shape:
            shapes = f"{tuple(given.shape)}, and {tuple(wanted.shape)} in torch"
            raise ModelError(
                f"the export does not compute what torch does: '{self.name}' has shape {shapes}; nothing was written"
            )
        self.whole = not wanted.is_floating_point()
        if not wanted.numel():
            return
        count = len(wanted) if self.per_sample else 1
        found, expected = given.double().reshape(count, -1), wanted.double().reshape(count, -1)
        difference, sizes = (found - expected).abs(), expected.abs().amax(dim=1, keepdim=True)
        self.largest_difference = max(self.largest_difference, difference.max().item())
        self.largest_value = max(self.largest_value, sizes.max().item())
        self.numbers += difference.numel()
        self.same += int((difference == 0).sum())
        self.real_too_far |= bool((difference > TOLERANCE * sizes.clamp(min=1)).any())

    @property
    def too_far(self) -> bool:
        """Return whether the batches are too far apart."""
        return self.numbers - self.same > TOLERANCE * self.numbers if self.whole else self.real_too_far

    def compared(self) -> ComparedOutput:
        """Return the result."""
        same = self.same / self.numbers if self.whole and self.numbers else 1.0 if self.whole else None
        return ComparedOutput(self.name, self.largest_difference, self.largest_value, same)
