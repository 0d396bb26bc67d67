"""What is known before the work begins: the data, the network to start from, how samples are judged, the speed."""

from dataclasses import dataclass, replace

from torch import nn

from topiarist.data import Data, Part
from topiarist.measurement.cost import count_macs
from topiarist.randomness import generator
from topiarist.rightsizing.baseline import Build, Model, builder, speed_of
from topiarist.rightsizing.clock import Clock
from topiarist.rightsizing.folds import FewSamplesError, most_folds
from topiarist.rightsizing.planning import Design, Speed
from topiarist.threads import torch_threads
from topiarist.training.inference import first_sample, part_logits
from topiarist.training.metrics import better_than_chance
from topiarist.training.preparation import check_outputs

FEWEST_FOLDS = 2
EPOCH_SHARE, FEWEST_SAMPLES = 1 / 20, 500  # of the time that an epoch may take, with so many samples at least
MANY_MACS = 5_000_000  # per sample: with fewer, several threads are no faster than one


@dataclass(frozen=True)
class Setup:
    """What is known before the work begins."""

    data: Data
    build: Build
    first: nn.Module
    trained: bool
    design: Design
    speed: Speed
    threads: int
    notes: tuple[str, ...] = ()

    @property
    def folds(self) -> int:
        """How many folds the samples allow; FewSamplesError where that is too few to judge by."""
        found = most_folds(self.data, self.design)
        if found < FEWEST_FOLDS:
            raise FewSamplesError(
                "rightsizing deals the samples of each class, in whole groups if there are any, into 2 folds or more;"
                " there are too few to judge by"
            )
        return found


def prepare(
    data: Data, model: Model | None, *, trained: bool | None, seed: int, clock: Clock, threads: int = 1
) -> Setup:
    """Build the baseline, see whether it is trained, and measure how fast it learns with so many threads at most."""
    clock.tell(0.0, "looking at the data")
    build = builder(model, data)
    first = build(seed)
    check_outputs(first, data)
    known = model is not None and (
        better_than_chance(*part_logits(first, data.validation), data.task) if trained is None else trained
    )
    design: Design = "held out" if known or data.source is None else "refitted"
    busy = threads if count_macs(first, first_sample(data.train)) >= MANY_MACS else 1
    with torch_threads(busy):
        return Setup(data, build, first, known, design, speed_of(first, data), busy)


def in_time(job: Setup, seconds: float, seed: int) -> Setup:
    """Train on some of the samples where an epoch of all would take too much of the time, and note it."""
    samples = len(job.data.train)
    count = max(int(samples * EPOCH_SHARE * seconds / job.speed.epoch), FEWEST_SAMPLES)
    if count >= samples or most_folds(job.data, "held out") < FEWEST_FOLDS:
        return job
    assert isinstance(job.data.train, Part)
    drawn = job.data.train.draw(count, generator(seed, "samples in time"))
    return replace(
        job,
        data=replace(job.data, train=drawn, source=None, split=None),
        design="held out",
        speed=replace(job.speed, epoch=job.speed.epoch * count / samples),
        notes=(
            f"an epoch of all {samples:,} training samples takes {job.speed.epoch:.2g} s: {count:,} are trained on",
        ),
    )
