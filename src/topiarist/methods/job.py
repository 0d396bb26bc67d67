"""A network to resize with what is known of its work, and the request to a method: how small it must become."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, TypeVar, cast

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_leaves, tree_map

from topiarist.data import AnyPart, Data, Part
from topiarist.errors import DataError, ModelError, SettingsError
from topiarist.measurement import Measurement, measure
from topiarist.measurement.budget import Runtime
from topiarist.measurement.footprint import footprint
from topiarist.measurement.tables.prediction import LatencyModel
from topiarist.models.evaluation import PREPARED, evaluating, first_of_kind, numbers_of, placed
from topiarist.randomness import generator, isolated
from topiarist.surgery.calibration import Calibration, CalibrationBatches, batches_for, batches_without_example
from topiarist.surgery.choice.costs import Costs, Measure, Timing
from topiarist.surgery.proving import proven
from topiarist.tasks import Task
from topiarist.tracing import Anatomy, Ignored, Inputs, anatomy
from topiarist.tracing.running import call, check_unquantised
from topiarist.training.inference import BATCH_SIZE, first_sample, part_batches, part_logits, weights_of

CALIBRATION_SAMPLES = 8192  # docs/methods/index.md: a refit of 4,096 inputs still has two samples for each
ANATOMY = "anatomy"  # where a job remembers it
T = TypeVar("T")
Score = Callable[[nn.Module], float]
Limits = Mapping[Measure, float]


@dataclass(frozen=True, kw_only=True)
class Job:
    """A network to resize, and what is known of its work.

    `example_input` is what the network is traced with, `sample` one sample of it. `calibration` are inputs without
    labels; `score(model)`, larger is better, never looks at the test part. `data` is None where the user gave their own
    score and calibration instead. `ignored` layers keep their units. `memory` keeps what a method need not find out
    twice about the whole network.
    """

    whole: nn.Module
    example_input: Inputs
    sample: Inputs
    calibration: Calibration
    score: Score | None = None
    data: Data | None = None
    early: nn.Module | None = None
    ignored: Ignored = ()
    seed: int = 0
    times_latency: bool = False
    runtime: Runtime = "torch"
    threads: int = 1
    judged_on_training: bool = False
    memory: dict[str, Any] = field(default_factory=dict, compare=False, repr=False)

    @cached_property
    def whole_score(self) -> float:
        """The score of the network before any cut."""
        return self.scored(self.whole)

    @cached_property
    def before(self) -> Measurement:
        """The network before any cut, on the test part."""
        return self.measured(self.whole)

    @property
    def anatomy(self) -> Anatomy:
        """The anatomy of the network before any cut."""
        return self.request().anatomy

    @cached_property
    def widths(self) -> dict[str, int]:
        """The widths of its spaces before any cut."""
        return {name: space.size for name, space in self.anatomy.free.items()}

    @property
    def training(self) -> Part | None:
        """The labelled training samples, where they are in memory."""
        return self.data.train if self.data is not None and isinstance(self.data.train, Part) else None

    @property
    def held_out(self) -> Part | None:
        """The labelled validation samples, where they are in memory."""
        return self.data.validation if self.data is not None and isinstance(self.data.validation, Part) else None

    def labelled(self, purpose: str) -> Data:
        """Return the data; raise SettingsError where the user gave none."""
        if self.data is None:
            raise SettingsError(f"{purpose} needs labelled data: give resize a Data")
        return self.data

    def scored(self, model: nn.Module) -> float:
        """Return the score of a network; NaN where there is no score."""
        if self.score is None:
            return math.nan
        with evaluating(model):
            return float(self.score(model))

    def measured(self, model: nn.Module) -> Measurement:
        """Measure a network on the test part; without data, quality is NaN."""
        if self.data is not None:
            return measure(model, self.data, latency=self.times_latency, runtime=self.runtime, threads=self.threads)
        taken = footprint(model, self.sample, latency=self.times_latency, runtime=self.runtime, threads=self.threads)
        unknown = dict.fromkeys(("accuracy", "macro_accuracy", "log_loss"), math.nan)
        return Measurement(**vars(taken), quality=unknown, samples=0)

    def request(self, model: nn.Module | None = None, *, limits: Limits | None = None, share: float = 1.0) -> "Request":
        """Return what a method is asked; `model` is the network as it is by now, the whole one unless given."""
        whole = model is None or model is self.whole
        return Request(
            job=self,
            model=self.whole if model is None else model,
            limits=limits or {},
            share=share,
            memory=self.memory if whole else {},
        )


@dataclass(frozen=True, kw_only=True)
class Request:
    """What a method is asked: the network as it is now, and how far to go.

    `limits` on parameters and multiply-accumulates come from a budget; without them the method's own settings decide
    where to stop. `share` is how much of the remaining way to go: below 1 in all rounds but the last. `memory` is
    for what a method need not find out twice about this network, whatever the limits.
    """

    job: Job
    model: nn.Module
    limits: Limits = field(default_factory=dict)
    share: float = 1.0
    memory: dict[str, Any] = field(default_factory=dict, compare=False, repr=False)

    def remember(self, key: str, make: Callable[[], T]) -> T:
        """Return what is known under a key, making it the first time."""
        if key not in self.memory:
            self.memory[key] = make()
        return cast(T, self.memory[key])

    @property
    def anatomy(self) -> Anatomy:
        """The network's anatomy, found once: a space is free where a proof says that it can lose units."""
        return self.remember(ANATOMY, lambda: self._traced())

    def _traced(self) -> Anatomy:
        found = anatomy(self.model, self.job.example_input, ignored=self.job.ignored)
        given = self.job.example_input
        if self.job.sample is given and not callable(given) and not isinstance(given, Tensor):
            found = replace(found, samples=1)  # a graph, whose rows are no samples
        if self.memory is self.job.memory:
            return proven(self.model, self.job.example_input, anatomy=found)
        whole = self.job.anatomy  # what was proven before a cut holds after it: the network's code is the same
        found.proofs.update(whole.proofs)
        fixed = {name for name, space in whole.spaces.items() if space.fixed}
        spaces = {
            name: replace(space, reason=space.reason or whole.spaces[name].reason) if name in fixed else space
            for name, space in found.spaces.items()
        }
        return replace(found, spaces=spaces)

    @property
    def costs(self) -> Costs:
        """What the network would cost with other widths."""
        return self.remember("costs", lambda: Costs(self.model, self.anatomy))

    @property
    def timing(self) -> Timing | None:
        """How long the network takes with other widths, once `timed` was called."""
        return self.costs.timing if "costs" in self.memory else None

    def timed(self, runtime: Runtime, threads: int) -> None:
        """Let the costs know how long the network takes with other widths: layers are timed now, or were before."""
        costs = self.costs
        if costs.timing is None:
            arguments = self.model, self.anatomy, costs, self.job.sample
            costs.timing = LatencyModel(*arguments, runtime=runtime, threads=threads)

    @property
    def batches(self) -> CalibrationBatches:
        """The calibration data in batches."""
        job = self.job
        return self.remember("batches", lambda: batches_for(job.calibration, self.model, job.example_input))

    def cuttable(self, names: Sequence[str] | None) -> Anatomy:
        """Return the anatomy with only the spaces that may be cut: those named, or all free ones."""
        found = self.anatomy
        spaces = found.free if names is None else {space.name: space for space in map(found.free_space, names)}
        if not spaces:
            raise ModelError(
                f"the network has no units that could be removed: every space is fixed{_why_fixed(self.model, found)}"
            )
        return replace(found, spaces=spaces)


def _why_fixed(model: nn.Module, found: Anatomy) -> str:
    """Return why the largest of the spaces that layers write is fixed."""
    prepared = first_of_kind(model, PREPARED)
    if prepared is not None:
        return f"; '{prepared}' prepares it for quantisation: cut the network first, and prepare it after"
    written = [space for space in found.spaces.values() if space.producers]
    if not written:
        return ""
    held = max(written, key=lambda space: space.size)
    return f", such as '{held.name}' of {held.size} units: {held.reason}"


def make_job(
    model: nn.Module,
    data: Data | None = None,
    *,
    example_input: Inputs | None = None,
    score: Score | None = None,
    calibration: Calibration | None = None,
    early: nn.Module | None = None,
    ignored: Ignored = (),
    seed: int = 0,
    times_latency: bool = False,
    runtime: Runtime = "torch",
    threads: int = 1,
    all_samples: bool = False,
) -> Job:
    """Return a job, with our own score and calibration data where the user gives none.

    Some thousands of training inputs show what units do, unless `all_samples` are asked for.
    """
    check_unquantised(model)
    if data is not None and not len(data.train):
        raise DataError(f"{data.name} has no training samples")
    if isinstance(calibration, Iterator):
        calibration = list(calibration)  # it is read more than once
    if calibration is None:
        if data is None:
            raise SettingsError("without data, give calibration inputs, such as a DataLoader")
        calibration = calibration_inputs(model, data.train, seed, None if all_samples else CALIBRATION_SAMPLES)
    sample, example = _examples(model, data, calibration, example_input)
    scored_part = None if data is None else data.validation if len(data.validation) else data.train
    return Job(
        whole=model,
        example_input=example,
        sample=sample,
        calibration=calibration,
        score=score if score is not None or data is None or scored_part is None else _score_on(scored_part, data.task),
        data=data,
        early=early,
        ignored=ignored,
        seed=seed,
        times_latency=times_latency,
        runtime=runtime,
        threads=threads,
        judged_on_training=score is None and data is not None and scored_part is data.train,
    )


def _examples(
    model: nn.Module, data: Data | None, calibration: Calibration, example_input: Inputs | None
) -> tuple[Inputs, Inputs]:
    """Return one sample, and an example input of two or more to trace with."""
    if example_input is not None:
        return _head(model, example_input, 1), example_input
    if data is not None:
        sample = placed(first_sample(data.train), numbers_of(model))
        return sample, torch.cat([sample] * 2)
    args, kwargs = next(iter(batches_without_example(calibration, model)))
    batch: Inputs = kwargs or (args[0] if len(args) == 1 and isinstance(args[0], Tensor) else args)
    return _head(model, batch, 1), _head(model, batch, 2)


def _head(model: nn.Module, inputs: Inputs, count: int) -> Inputs:
    """Return the first samples of a tensor, a sequence of arguments or a mapping by name; a function as it is.

    Tensors as long as the first have a sample per row. Where there are others, and the network does not run without
    all rows, as on the nodes and edges of a graph, the inputs are one sample, and come back as they are.
    """
    if callable(inputs) and not isinstance(inputs, Tensor):
        return inputs
    plain = dict(inputs) if isinstance(inputs, Mapping) else inputs
    lengths = [len(leaf) for leaf in tree_leaves(plain) if isinstance(leaf, Tensor) and leaf.ndim]

    def first(value: Any) -> Any:
        return value[:count] if isinstance(value, Tensor) and value.ndim and len(value) == lengths[0] else value

    found: Inputs = tree_map(first, plain)
    if len(set(lengths)) > 1 and not _runs(model, found):
        return inputs
    return found


def _runs(model: nn.Module, inputs: Inputs) -> bool:
    """Return whether a network runs on some inputs."""
    try:
        with evaluating(model), isolated(0, numbers_of(model).device):
            call(model, inputs)
    except Exception:  # whatever a user's forward raises
        return False
    return True


def _score_on(part: AnyPart, task: Task) -> Score:
    """Return the score of the task's primary metric on a part: accuracy, for classes."""
    return lambda model: task.score(*part_logits(model, part), weights_of(part))


def calibration_inputs(model: nn.Module, part: AnyPart, seed: int, most: int | None = CALIBRATION_SAMPLES) -> Tensor:
    """Return inputs of a part where a network computes, at most so many, drawn by the seed."""
    some = part.draw(most, generator(seed, "calibration"))
    inputs = some.x if isinstance(some, Part) else torch.cat([x for x, _ in part_batches(some, BATCH_SIZE)])
    return placed(inputs, numbers_of(model))
