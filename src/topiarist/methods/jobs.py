"""A network to shape with what is known of its work: its data, how it is scored, and what its units are watched on."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor, nn
from torch.utils.data import Subset

from topiarist.data import AnyPart, Data, Part, Stream
from topiarist.errors import DataError
from topiarist.methods.task import Score, Task
from topiarist.models.evaluation import evaluating, numbers_of, placed
from topiarist.randomness import generator
from topiarist.surgery.calibration import Calibration
from topiarist.tracing import anatomy
from topiarist.training.inference import BATCH_SIZE, first_sample, part_batches, part_logits
from topiarist.training.metrics import accuracy

CALIBRATION_SAMPLES = 8192


@dataclass(frozen=True, kw_only=True)
class Job:
    """A network to shape, and what is known of its work."""

    whole: nn.Module
    data: Data
    early: nn.Module | None
    score: Score
    calibration: Calibration
    seed: int
    own_score: bool

    @cached_property
    def sample(self) -> Tensor:
        """One sample as the network reads it."""
        return placed(first_sample(self.data.train), numbers_of(self.whole))

    @cached_property
    def whole_score(self) -> float:
        """The score of the network before any cut."""
        return scored(self.score, self.whole)

    @cached_property
    def widths(self) -> dict[str, int]:
        """The widths of its spaces before any cut."""
        return {name: space.size for name, space in anatomy(self.whole, self.sample, partial=True).free.items()}

    def task(self, network: nn.Module, share: float) -> Task:
        """Give what a method is asked, a share of the way that is left."""
        return Task(
            model=network,
            example_input=torch.cat([self.sample] * 2),
            calibration=self.calibration,
            score=self.score,
            training=self.data.train if isinstance(self.data.train, Part) else None,
            held_out=self.data.validation if isinstance(self.data.validation, Part) else None,
            share=share,
            widths=self.widths,
            seed=self.seed,
        )


def make_job(
    model: nn.Module,
    data: Data,
    method: object,
    *,
    early: nn.Module | None = None,
    score: Score | None = None,
    calibration: Calibration | None = None,
    seed: int = 0,
) -> Job:
    """Put together a job, with our own score and calibration data where none are given.

    Some thousands of training inputs are enough to see what units do, but for a published method, which takes all.
    """
    most = None if getattr(method, "published", False) else CALIBRATION_SAMPLES
    if not len(data.train):
        raise DataError(f"{data.name} has no training samples")
    if isinstance(calibration, Iterator):
        calibration = list(calibration)  # it is read more than once
    return Job(
        whole=model,
        data=data,
        early=early,
        score=score_on(scored_part(data)) if score is None else score,
        calibration=placed(samples_of(data.train, seed, most), numbers_of(model))
        if calibration is None
        else calibration,
        seed=seed,
        own_score=score is not None,
    )


def scored_part(data: Data) -> AnyPart:
    """Give the part that decisions go by: never the test part."""
    return data.validation if len(data.validation) else data.train


def score_on(part: AnyPart) -> Score:
    """Give accuracy on a part as a score."""
    return lambda model: accuracy(*part_logits(model, part))


def scored(score: Score, model: nn.Module) -> float:
    """Ask a score."""
    with evaluating(model):
        return float(score(model))


def samples_of(part: AnyPart, seed: int, most: int | None) -> Tensor:
    """Give inputs of a part, at most so many, drawn by the seed."""
    if isinstance(part, Part):
        if most is None or len(part) <= most:
            return part.x
        drawn = torch.randperm(len(part), generator=generator(seed, "calibration"))[:most]
        return part.x[drawn.sort().values]
    drawn = torch.randperm(len(part), generator=generator(seed, "calibration"))[:most].sort().values
    some = Stream(Subset(part.dataset, drawn.tolist()), part.workers)
    return torch.cat([x for x, _ in part_batches(some, BATCH_SIZE)])
