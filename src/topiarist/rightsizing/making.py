"""Makes the networks of one size: tasks that need nothing but what they share, so that any worker can do them.

Networks that train as one stack are one task, whatever the number of workers: their last bits depend on who trains
beside them. Others are a task each.
"""

from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, Self

import torch
from torch import Tensor, nn

from topiarist.errors import TopiaristError
from topiarist.evolution.lineage import Lineage
from topiarist.measurement import Budget
from topiarist.measurement.budget import BudgetError, Runtime
from topiarist.measurement.footprint import Footprint
from topiarist.methods.job import ANATOMY, Job, Limits
from topiarist.methods.outcome import Outcome
from topiarist.methods.registry import find_method
from topiarist.methods.resizing import resize_all
from topiarist.randomness import child_seed
from topiarist.rightsizing.baseline import baseline_training
from topiarist.rightsizing.clock import Deadline, OutOfTimeError
from topiarist.rightsizing.finetuning import finetune
from topiarist.rightsizing.folds import Fold, to_train_on
from topiarist.rightsizing.planning import WorkPlan
from topiarist.tracing.parameter_sizes import shapes_of
from topiarist.training import History

Objective = Literal["parameters", "macs", "file", "latency"]


@dataclass(frozen=True)
class MadeNetwork:
    """A network with how it came about: an outcome without its job, which every worker has."""

    model: nn.Module
    reasons: tuple[str, ...]
    histories: tuple[History, ...]
    lineage: Lineage | None

    @classmethod
    def of(cls, outcome: Outcome) -> "MadeNetwork":
        """Leave out the job."""
        return cls(outcome.model, outcome.reasons, outcome.histories, outcome.lineage)

    def outcome(self, fold: Fold) -> Outcome:
        """Return it with the job of its fold."""
        return Outcome(
            job=fold.job, model=self.model, reasons=self.reasons, histories=self.histories, lineage=self.lineage
        )


@dataclass(frozen=True, kw_only=True)
class TaughtFolds:
    """Folds whose networks learn from their teachers, until the deadline: what tasks of training share."""

    folds: Sequence[Fold]
    deadline: Deadline = field(default_factory=Deadline)

    @property
    def lean(self) -> Self:
        """The same without what its folds remember and what is judged, to be sent to workers."""
        return replace(self, folds=[replace(fold, data=to_train_on(fold.data)) for fold in self.folds])


@dataclass(frozen=True, kw_only=True)
class Workshop(TaughtFolds):
    """What tasks of one size share besides: the plan, the size of the baseline and what is to become smaller of it.

    Without an `objective`, parameters and multiply-accumulates both are.
    """

    plan: WorkPlan
    whole: Footprint
    objective: Objective | None = None
    runtime: Runtime = "torch"
    threads: int = 1

    def limits(self, ratio: float) -> Limits:
        """Return what a network so many times smaller may have, as far as numbers of parameters and products tell."""
        parameters, macs = int(self.whole.parameters / ratio), int(self.whole.macs / ratio)
        if self.objective == "parameters":
            return {"parameters": parameters}
        return {"macs": macs} if self.objective == "macs" else {"parameters": parameters, "macs": macs}

    def budget(self, ratio: float) -> Budget | None:
        """Return what a network so many times smaller may take where only its file or a clock can tell."""
        if self.objective == "file":
            return Budget(file_kb=self.whole.file_kb / ratio)
        if self.objective == "latency" and self.whole.latency_ms is not None:
            return Budget(latency_ms=self.whole.latency_ms / ratio, runtime=self.runtime, threads=self.threads)
        return None

    def make(self, method: str, fold: Fold, ratio: float) -> Outcome:
        """Let a method make a network of one fold and size."""
        training = baseline_training(fold.data, self.plan.finetuning_epochs, fold.seed, fold.whole)
        job = self._job(fold)
        resizing = find_method(method).candidate(job, self.limits(ratio), training)
        return resize_all([job], replace(resizing, budget=self.budget(ratio) or resizing.budget))[0]

    def _job(self, fold: Fold) -> Job:
        """Return the job of a fold; networks of one shape, as those of a stack are, have one anatomy and one proof."""
        if self.plan.stacked and shapes_of(fold.whole) == self.folds[0].job.anatomy.shapes:
            fold.job.memory.setdefault(ANATOMY, self.folds[0].job.anatomy)
        return fold.job


@dataclass(frozen=True)
class CandidateTask:
    """A method to be asked for networks of one size in some folds."""

    method: str
    ratio: float
    folds: tuple[int, ...]

    @property
    def name(self) -> str:
        """What its result is kept as."""
        return f"{self.ratio:.4g}-{self.method}-{'-'.join(map(str, self.folds))}"

    def fold_of(self, place: int) -> int:
        """Return the fold of a network by its place in the result, which is that fold."""
        return place

    def check(self, made: "Made") -> None:
        """Raise ValueError where a result has networks of other folds; of some, the method may have made none."""
        check_places(made, [place for place in self.folds if place in made.networks])


@dataclass(frozen=True)
class TrainingTask:
    """Networks of some folds, by their numbers, to be taught for some epochs with the seeds given."""

    stage: str
    epochs: int
    folds: tuple[int, ...]
    seeds: tuple[int, ...]
    networks: tuple[MadeNetwork, ...]

    @property
    def name(self) -> str:
        """What its result is kept as."""
        return f"{self.stage}-{'-'.join(map(str, dict.fromkeys(self.folds)))}"

    def fold_of(self, place: int) -> int:
        """Return the fold of a network by its place in the result."""
        return self.folds[place]

    def check(self, made: "Made") -> None:
        """Raise ValueError where a result has more networks or fewer, or one of which no training is known."""
        check_places(made, range(len(self.networks)), trained=self.epochs > 0)


@dataclass(frozen=True)
class Made:
    """The networks that a task made, by fold or in order; what could not be made is noted.

    Of a teacher, `tensors` are its answers.
    """

    networks: Mapping[int, MadeNetwork] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    tensors: Mapping[str, Tensor] = field(default_factory=dict)


def check_places(made: Made, places: Collection[int], *, trained: bool = False) -> None:
    """Raise ValueError where a result has networks at other places, or some without the history of a training."""
    if set(made.networks) != set(places):
        raise ValueError(f"networks at the places {sorted(made.networks)}; {sorted(places)} were made")
    if trained and not all(network.histories for network in made.networks.values()):
        raise ValueError("a network without the history of its training")


def candidate_tasks(method: str, ratio: float, asked: Sequence[int], shop: Workshop) -> list[CandidateTask]:
    """Return the tasks of a method: one where its networks are one stack, otherwise one per network that differs."""
    if shop.plan.stacked:
        return [CandidateTask(method, ratio, tuple(asked))] if asked else []
    alike: dict[Hashable, list[int]] = {}
    for fold in asked:
        alike.setdefault(_key(method, fold, shop), []).append(fold)
    return [CandidateTask(method, ratio, tuple(folds)) for folds in alike.values()]


def _key(method: str, fold: int, shop: Workshop) -> Hashable:
    """Return what a method's network of a fold follows from."""
    return fold if find_method(method).traits.looks_at_validation else shop.folds[fold].training_key


def make_candidates(task: CandidateTask, shop: Workshop) -> Made | None:
    """Let a method make its networks of some folds, each once, and fine-tune them together; None at the deadline."""
    outcomes: dict[int, Outcome] = {}
    same: dict[Hashable, Outcome] = {}
    notes = []
    for fold in task.folds:
        if shop.deadline.passed:
            return None
        key = _key(task.method, fold, shop)
        try:
            outcomes[fold] = same[key] = same.get(key) or shop.make(task.method, shop.folds[fold], task.ratio)
        except TopiaristError as error:
            notes.append(f"{task.method}, {task.ratio:.3g} × smaller: {_of_a_size(error)}")
    if not outcomes:
        return Made({}, tuple(dict.fromkeys(notes)))
    folds = [shop.folds[fold] for fold in outcomes]
    try:
        tuned = finetune(
            list(outcomes.values()),
            folds,
            shop.plan.first_epochs,
            [fold.seed for fold in folds],
            on_epoch=shop.deadline.check,
        )
    except OutOfTimeError:
        return None
    return Made(_each_once(dict(zip(outcomes, tuned, strict=True))), tuple(dict.fromkeys(notes)))


def _of_a_size(error: TopiaristError) -> str:
    """Return why a method made nothing; its budget is the size that was asked for, not a budget of the user's."""
    said = str(error).replace("the budget cannot be met: ", "cannot be made: ")
    return said.replace("the budget is", "what is asked for is") if isinstance(error, BudgetError) else str(error)


def finalist_tasks(ratio: float, winners: Sequence[MadeNetwork], shop: Workshop) -> list[TrainingTask]:
    """Return the tasks of the finalists of one size: each fold's best network, perhaps several times.

    Seeds of one fold differ.
    """
    times = shop.plan.trainings
    places = [place for place in range(len(winners)) for _ in range(times)]
    seeds = [
        child_seed(shop.folds[place].seed, "finalist", number % times) % 2**32 for number, place in enumerate(places)
    ]
    whole = TrainingTask(
        stage=f"{ratio:.4g}-finalists",
        epochs=shop.plan.finetuning_epochs,
        folds=tuple(places),
        seeds=tuple(seeds),
        networks=tuple(winners[place] for place in places),
    )
    return [whole] if shop.plan.stacked else one_by_one(whole, shop.folds)


def one_by_one(task: TrainingTask, folds: Sequence[Fold]) -> list[TrainingTask]:
    """Return a task for each network, but one for what would be the same training in several folds."""
    alike: dict[Hashable, list[int]] = {}
    for number, (fold, seed, network) in enumerate(zip(task.folds, task.seeds, task.networks, strict=True)):
        alike.setdefault((id(network.model), folds[fold].training_key, seed), []).append(number)
    return [
        replace(
            task,
            folds=tuple(task.folds[number] for number in found),
            seeds=tuple(task.seeds[number] for number in found),
            networks=tuple(task.networks[number] for number in found),
        )
        for found in alike.values()
    ]


def train_taught(task: TrainingTask, taught: TaughtFolds) -> Made | None:
    """Train networks to the end, in the order of the task; None at the deadline."""
    folds = [taught.folds[fold] for fold in task.folds]
    known: dict[int, Outcome] = {}
    pairs = zip(task.networks, folds, strict=True)
    outcomes = [known.setdefault(id(each.model), each.outcome(fold)) for each, fold in pairs]
    try:
        tuned = finetune(outcomes, folds, task.epochs, list(task.seeds), on_epoch=taught.deadline.check)
    except OutOfTimeError:
        return None
    return Made(_each_once(dict(enumerate(tuned))))


def _each_once(outcomes: Mapping[int, Outcome]) -> dict[int, MadeNetwork]:
    """Return networks without their jobs; what is one network in several folds stays one.

    What follows rounds alike after a resumption.
    """
    once = {id(outcome): MadeNetwork.of(outcome) for outcome in outcomes.values()}
    for made in once.values():
        make_dense(made.model)
    return {number: once[id(outcome)] for number, outcome in outcomes.items()}


def make_dense(model: nn.Module) -> None:
    """Let the tensors of a network lie in memory as they do in one that is read from a file."""
    for tensor in (*model.parameters(), *model.buffers()):
        tensor.data = tensor.data.clone(memory_format=torch.contiguous_format)
