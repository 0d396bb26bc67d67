"""Samples to judge by: folds, in each of which a network is made without the samples that it is judged on."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from topiarist.data import AnyPart, Data, LazySamples, Part
from topiarist.data.preparation import PreparationOptions
from topiarist.data.source import Source, is_table
from topiarist.data.split import fold_tests, original_rows
from topiarist.data.targets import Targets, learned_targets, targets_of
from topiarist.errors import DataError
from topiarist.methods.job import Job, make_job
from topiarist.rightsizing.judging import JudgedAnswers, guessed
from topiarist.rightsizing.lessons import TableLesson, TeacherAnswers
from topiarist.rightsizing.planning import Design
from topiarist.tasks import Task
from topiarist.training.calibrating import calibrate
from topiarist.training.inference import BATCH_SIZE, part_batches, part_logits, part_targets, weights_of

VALIDATION_FRACTION = 0.15  # of a fold's training samples, for methods to choose by
STOPPING_FOLDS = 7  # of the training part, of which one stops training: about the fraction above
FEWEST_TO_STOP_BY = 2  # samples or groups: one to learn from, one to stop by
# Of fewer rows than this, a tenth for testing and a tenth for validation: sizes are judged by folds, and
# the network to keep learns from none of what is set aside. benchmarks/README.md: what more rows are worth.
FEW_ROWS, SMALL_PART = 10_000, 0.1
FEWEST_GROUPS = 3  # one to judge, one to train on, one to choose by


class FewSamplesError(DataError):
    """A class, or all of the data, has too few samples to judge networks by."""


@dataclass(frozen=True, kw_only=True)
class Fold:
    """A baseline with the data that methods may see; the test part of the data is what networks are judged on.

    `members` are the baselines of all seeds, `whole` the best of them, `teacher` all of them together, from which
    smaller networks learn; of a table they learn by a `lesson`, perhaps from another teacher, whose answers are
    `answered`. `rivals` are the networks that the baselines were chosen from, by how they were trained; there are none
    where there was no choice. `inputs` are what units are looked at with, where folds that train on the same samples
    share them.
    """

    data: Data
    whole: nn.Module
    members: Sequence[nn.Module]
    teacher: nn.Module
    seed: int
    lesson: TableLesson | None = None
    answered: TeacherAnswers | None = None
    rivals: Mapping[str, Sequence[nn.Module]] = field(default_factory=dict)
    inputs: Tensor | None = None

    @property
    def task(self) -> Task:
        """What is predicted; where numbers are standardised, by the training samples of this fold."""
        return self.data.task

    @cached_property
    def job(self) -> Job:
        """The baseline as methods are given it."""
        return make_job(self.whole, self.data, seed=self.seed, calibration=self.inputs)

    @property
    def learned(self) -> Data:
        """What smaller networks are trained on."""
        return self.data if self.lesson is None else self.lesson.data

    @property
    def taught(self) -> nn.Module | Tensor:
        """Who teaches them, or the answers that are known already."""
        return self.teacher if self.lesson is None else self.lesson.answers

    @property
    def training_key(self) -> tuple[int, int]:
        """What a network of this fold is made of and learns from; the same for folds that differ in what they judge."""
        return id(self.whole), id(self.data.train)

    def judged(self, network: nn.Module) -> JudgedAnswers:
        """Return what a network answers to the samples that no decision saw."""
        return self._answered((network,), self.data.test)

    @cached_property
    def baseline_answers(self) -> JudgedAnswers:
        """The answers of the baselines of all seeds: so the luck of one seed decides nothing."""
        return self._answered(self.members, self.data.test)

    def judged_together(self, networks: Sequence[nn.Module]) -> JudgedAnswers:
        """Return what several networks, which differ by luck alone, answer to those samples."""
        return self._answered(networks, self.data.test)

    def validated(self, networks: Sequence[nn.Module]) -> JudgedAnswers:
        """Return what networks answer to the validation part, by which others were chosen."""
        return self._answered(networks, self.data.validation)

    @cached_property
    def guess_answers(self) -> JudgedAnswers:
        """What the best constant of the training part answers: what networks must be better than."""
        return guessed(self.data)

    def _answered(self, networks: Sequence[nn.Module], part: AnyPart) -> JudgedAnswers:
        found = [part_logits(network, part) for network in networks]
        scaled = [self._calibrated(network, each) for network, (each, _) in zip(networks, found, strict=True)]
        return JudgedAnswers(self.data.task, torch.stack(scaled), found[0][1], weights_of(part))

    def teacher_judged(self) -> JudgedAnswers:
        """Return what the teacher answers to those samples."""
        known, part = self.answered, self.data.test
        if known is None:
            return self.judged(self.teacher)
        assert known.test is not None and isinstance(part, Part)
        scaled = self._scaled(known.test, known.validation)
        return JudgedAnswers(self.data.task, scaled[None], part.y, part.weights)

    def calibrate(self, network: nn.Module) -> None:
        """Fit the temperature of a network that may be kept, and write it on its card."""
        calibrate(network, self.data)

    def _calibrated(self, network: nn.Module, outputs: torch.Tensor) -> torch.Tensor:
        """Return logits as a user reads them; decisions do not depend on it."""
        if self.task.primary_metric.decisions:
            return outputs
        return self._scaled(outputs, part_logits(network, self.data.validation)[0])

    def _scaled(self, outputs: torch.Tensor, validated: torch.Tensor) -> torch.Tensor:
        """Return logits scaled by those of the validation part."""
        if self.task.primary_metric.decisions:
            return outputs
        held = self.data.validation
        y = part_targets(held)
        return self.task.calibrated(validated, y, weights_of(held)).scaled(outputs)

    def distance(self, network: nn.Module) -> float:
        """Return how far a network's answers are from the teacher's on the validation part: what methods compete by.

        It is the mean of `Task.divergence`, for classes the Kullback–Leibler divergence, which differs less by chance
        than accuracy on so few samples.
        """
        found = float(self.divergences(network).mean())
        return found if math.isfinite(found) else math.inf

    def divergences(self, network: nn.Module) -> Tensor:
        """Return how far a network's answer to each sample of the validation part is from the teacher's."""
        outputs = part_logits(network, self.data.validation)[0].double()
        return self.data.task.divergence(outputs, self._teacher_outputs)

    @cached_property
    def _teacher_outputs(self) -> torch.Tensor:
        if self.answered is not None:
            return self.answered.validation.double()
        return part_logits(self.teacher, self.data.validation)[0].double()


def to_train_on(data: Data) -> Data:
    """Return data without their source and without what is judged: all that a worker needs, which judges nothing."""
    part = data.test
    assert isinstance(part, Part)
    return replace(data, source=None, test=part.take(torch.arange(0)))


def parts_set_aside(source: Source) -> PreparationOptions:
    """Return the fractions for testing and validation of few rows of a table, or of numbers; nothing for others."""
    rows = is_table(source.features) or (isinstance(source.features, numpy.ndarray) and source.features.ndim == 2)
    if not rows or source.parts is not None or len(source) >= FEW_ROWS:
        return {}
    return {"test_fraction": SMALL_PART, "validation_fraction": SMALL_PART}


def most_folds(data: Data, design: Design) -> int:
    """Return how many folds the samples, of the smallest class where there are classes, and whole groups allow."""
    targets, groups = _judged_samples(data, design)
    if groups is None:
        return targets.most_folds
    kinds = len(numpy.unique(groups))
    return min(targets.most_folds, kinds) if design == "held out" or kinds >= FEWEST_GROUPS else 1


def _judged_samples(data: Data, design: Design) -> tuple[Targets, NDArray[Any] | None]:
    """Return the targets of the samples that are judged, and their groups."""
    if design == "held out":
        assert isinstance(data.validation, Part)
        return learned_targets(data.task, data.validation.y.numpy()), data.validation.groups
    assert data.source is not None and data.split is not None
    rows = numpy.setdiff1d(original_rows(data.source), data.split.test)
    groups = data.source.groups
    return targets_of(data.source).take(rows), None if groups is None else groups[rows]


def folds_of(data: Data, design: Design, count: int, seed: int) -> list[Data]:
    """Return the data of each fold.

    Refitted: the samples that are not for the test are dealt into folds, and all but one train, on no more samples than
    the network to keep. Held out: the validation part is dealt into folds; all trainings have the same samples, and
    decisions see all folds but one.
    """
    if design == "refitted":
        assert data.source is not None and data.split is not None
        most = len(numpy.intersect1d(original_rows(data.source), data.split.train))
        made = data.folds(count, seed=seed, validation_fraction=VALIDATION_FRACTION, of="development", samples=most)
        if not all(len(each.validation) for each in made):
            raise FewSamplesError(
                f"{len(data.train) + len(data.validation)} samples in {count} folds leave none to choose by"
            )
        return made
    held = data.validation
    assert isinstance(held, Part)
    targets = learned_targets(data.task, held.y.numpy())
    dealt = fold_tests(targets.strata, held.groups, folds=count, seed=seed, classes=targets.in_every_fold)
    rows = [torch.from_numpy(fold) for fold in dealt]
    others = [torch.cat([fold for fold in rows if fold is not chosen]).sort().values for chosen in rows]
    return [
        replace(data, validation=held.take(seen), test=held.take(chosen))
        for seen, chosen in zip(others, rows, strict=True)
    ]


def stopping_apart(data: Data, seed: int) -> Data:
    """Return data whose validation part is a seventh of the training part: what is judged must not end a training.

    Groups stay whole, and classes are spread evenly.
    """
    part = data.train
    assert isinstance(part, Part)
    strata = learned_targets(data.task, part.y.numpy()).strata
    different = len(part) if part.groups is None else len(numpy.unique(part.groups))
    if different < FEWEST_TO_STOP_BY:
        raise FewSamplesError(f"{different} training sample(s) or group(s) leave none to stop training by")
    count = min(STOPPING_FOLDS, different)
    apart = fold_tests(strata, part.groups, folds=count, seed=seed, classes=False)[0]
    rest = numpy.setdiff1d(numpy.arange(len(part)), apart)
    learned, held = part.divided(torch.from_numpy(rest), torch.from_numpy(apart))
    return replace(data, train=learned, validation=held)


def in_memory(data: Data) -> Data:
    """Return data whose samples are in memory, read once where they are not; raise where a part is missing."""
    for part, word in ((data.train, "train on"), (data.validation, "choose by")):
        if not len(part):
            raise FewSamplesError(
                f"{data.name} has no samples to {word}: rightsizing needs a training and a validation part"
            )
    task = data.task
    return replace(
        data, train=_read(data.train, task), validation=_read(data.validation, task), test=_read(data.test, task)
    )


def judged_in_memory(data: Data) -> Data:
    """Return data that hold the rows of a file that are judged, as they are there: pixels take a byte each.

    They are asked for after every epoch. Those that are trained on stay in their file: boosting needs the memory.
    """
    return replace(data, validation=_read_rows(data.validation), test=_read_rows(data.test))


def _read_rows(part: AnyPart) -> AnyPart:
    if isinstance(part, Part) and isinstance(part.samples, LazySamples) and part.samples.in_file:
        return replace(part, samples=part.samples.held(torch.arange(len(part))))
    return part


def _read(part: AnyPart, task: Task) -> Part:
    if isinstance(part, Part):
        return part
    batches = list(part_batches(part, BATCH_SIZE)) if len(part) else []
    if not batches:
        return Part(torch.zeros(0), task.as_targets(torch.zeros(0, dtype=torch.int64)))
    return Part(torch.cat([x for x, _ in batches]), task.as_targets(torch.cat([y for _, y in batches])))
