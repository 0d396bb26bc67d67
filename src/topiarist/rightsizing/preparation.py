"""What is known before the work begins: the data, the network to start from, how samples are judged, how much it takes.

The work follows from sizes alone and decides; how long it takes is measured by some steps of training, and only told.
"""

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

from torch import nn
from torch.nn.modules.conv import _ConvNd

from topiarist.data import Data, Part
from topiarist.errors import SettingsError
from topiarist.measurement.cost import count_macs
from topiarist.models.copying import copied
from topiarist.models.stacked import stackable
from topiarist.randomness import generator
from topiarist.rightsizing.backbone import Backbone
from topiarist.rightsizing.baseline import HIDDEN, Build, Model, baseline_training, builder
from topiarist.rightsizing.folds import FewSamplesError, most_folds
from topiarist.rightsizing.planning import Design, NetworkWork, WorkPlan, plan_work, rows_within
from topiarist.training.inference import first_sample, part_logits
from topiarist.training.metrics import better_than_chance
from topiarist.training.preparation import check_outputs
from topiarist.training.stretches import steps_per_epoch, train_stretch

FEWEST_FOLDS = 2
WELL_SCALED = 10.0  # root mean square of inputs or targets, or one of that, from which on initial weights are far off
FEWEST_SAMPLES = 500  # to train on, however much work that is
BACKWARD = (
    3  # times the multiply-accumulates of a forward pass that a step of training takes: forward, and two backward
)
# What a step takes besides arithmetic, for each parameter tensor of a network, at 16 billion multiply-accumulates a
# second: some 170 µs alone, with autograd and Adam, and 6 µs as one of twenty in a stack.
STEP_ALONE, STEP_STACKED = 2.5e6, 1e5
# A cut runs both networks this often for each layer that it refits, on so many samples on average.
REFIT_PASSES, REFIT_SAMPLES = 3.6, 700
PROBE_SECONDS, PROBE_STEPS = 0.3, 4
STACKED = 0.3  # of the time of a network alone that it takes as one of a stack
ALONE = 1.3  # times its best steps that an epoch of a network alone takes, with its validation


@dataclass(frozen=True)
class Setup:
    """What is known before the work begins."""

    data: Data
    build: Build
    first: nn.Module
    trained: bool
    design: Design
    work: NetworkWork

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

    @property
    def can_hold_out(self) -> bool:
        """Whether the validation part alone could be judged."""
        return most_folds(self.data, "held out") >= FEWEST_FOLDS


def prepare(
    data: Data,
    model: Model | None,
    *,
    trained: bool | None,
    seed: int,
    device: str | None = None,
    hidden: Sequence[int] = HIDDEN,
) -> Setup:
    """Build the baseline, see whether it is trained, and count how much work it takes."""
    build = builder(model, data, device, hidden=hidden)
    first = build(seed)
    check_outputs(first, data)
    is_base = isinstance(model, Backbone)
    if is_base and trained:
        raise SettingsError("the last layer of a backbone is yet to be trained: leave trained out", setting="trained")
    known = (model is not None and not is_base) and (
        better_than_chance(*part_logits(first, data.validation), data.task) if trained is None else trained
    )
    design: Design = "held out" if known or data.source is None else "refitted"
    return Setup(data, build, first, known, design, network_work(first, data))


def scale_notes(data: Data) -> tuple[str, ...]:
    """Return that nothing scales inputs, or targets, that are large or small: networks of ours learn badly from them.

    `Data.from_arrays` leaves numbers as they are unless it is asked for more, for networks that read them so.
    """
    part = data.train
    if not isinstance(part, Part) or len(data.input_shape) != 1 or data.source is None or data.source.scaling != "none":
        return ()
    sizes = {"inputs": float(part.x.square().mean(dim=0).max().sqrt())}
    if data.task.kind == "numbers":
        sizes["targets"] = float(part.y.square().mean(dim=0).max().sqrt())
    said = [f"{what} of about {size:.3g}" for what, size in sizes.items() if not 1 / WELL_SCALED <= size <= WELL_SCALED]
    return (f"nothing scales {' and '.join(said)}: make the data with scaling='auto'",) if said else ()


def network_work(model: nn.Module, data: Data) -> NetworkWork:
    """Count the multiply-accumulates of training and of cutting a network; a cut counts for none of a stack."""
    samples, macs = len(data.train), count_macs(model, first_sample(data.train))
    steps = math.ceil(samples / baseline_training(data, 1, 0, model).batch_size)
    tensors = sum(1 for _ in model.parameters())
    stacked = stackable(model)
    epoch = BACKWARD * macs * samples + steps * tensors * (STEP_STACKED if stacked else STEP_ALONE)
    layers = sum(isinstance(module, (nn.Linear, _ConvNd)) for module in model.modules())
    passes = 0.0 if stacked else REFIT_PASSES * layers * min(samples, REFIT_SAMPLES)
    return NetworkWork(samples=samples, macs=macs, epoch=epoch, cut=passes * epoch / (BACKWARD * samples))


def planned(job: Setup, full: WorkPlan, seed: int) -> tuple[Setup, WorkPlan]:
    """Return the plan within the declared work; rows are left out last, where nothing else is left to leave out."""
    plan = plan_work(full, job.work, can_hold_out=job.can_hold_out)
    samples, rows = job.work.samples, rows_within(plan, job.work, FEWEST_SAMPLES)
    if rows == samples or not job.can_hold_out:
        return job, plan
    assert isinstance(job.data.train, Part)
    drawn = job.data.train.draw(rows, generator(seed, "samples in time"))
    fewer = replace(
        job, data=replace(job.data, train=drawn, source=None, split=None), design="held out", work=job.work.on(rows)
    )
    again = plan_work(replace(full, design="held out", folds=min(full.folds, fewer.folds)), fewer.work)
    said = f"{rows:,} of {samples:,} training samples are trained on, drawn by the seed"
    return fewer, replace(again, left_out=(said, *plan.left_out))


def estimated_seconds(job: Setup, plan: WorkPlan) -> float:
    """Return how long a plan may take on this machine as it is now, by some steps of training; nothing depends on it.

    It is an upper estimate: the work may end sooner, after the first size that is not good enough.
    """
    copy, config = copied(job.first), baseline_training(job.data, 1, 0, job.first)
    per_epoch = steps_per_epoch(copy, job.data, config)
    steps = min(PROBE_STEPS, per_epoch)
    train_stretch(copy, job.data, config, done=0, steps=steps)  # the first time, torch loads and prepares much
    each, begun = math.inf, time.perf_counter()
    while each == math.inf or time.perf_counter() - begun < PROBE_SECONDS:
        start = time.perf_counter()
        train_stretch(copy, job.data, config, done=0, steps=steps)
        each = min(each, (time.perf_counter() - start) / steps)
    epoch = each * per_epoch * (STACKED if stackable(job.first) else ALONE)
    return epoch * plan.work_with(job.work) / job.work.epoch
