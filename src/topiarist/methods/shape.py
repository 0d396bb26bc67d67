"""`shape`: from a network and a method to a smaller network, and the record of what it cost."""

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

import torch
from torch import Tensor, nn

from topiarist.data import AnyPart, Data, Part
from topiarist.errors import DataError, SettingsError, TopiaristWarning
from topiarist.measurement import Budget, BudgetError, measure
from topiarist.measurement.budget import Footprint, footprint
from topiarist.methods.candidates import Candidate, first_limits, smallest, within
from topiarist.methods.outcome import Outcome, widths
from topiarist.methods.retraining import FineTuning, Rewinding, copied_with_edits, retrain
from topiarist.methods.task import Limits, Method, Score, Task
from topiarist.models import attach, card_for
from topiarist.models.evaluation import evaluating, numbers_of, placed
from topiarist.randomness import generator
from topiarist.surgery import Plan, apply, plan_of
from topiarist.surgery.calibration import Calibration
from topiarist.surgery.costs import Costs
from topiarist.tracing import anatomy
from topiarist.training import History
from topiarist.training.inference import BATCH_SIZE, first_sample, part_batches, part_logits
from topiarist.training.metrics import accuracy

CALIBRATION_SAMPLES = 8192
Finetune = Callable[[nn.Module], Any]


def shape(
    model: nn.Module,
    data: Data,
    method: Method,
    *,
    budget: Budget | None = None,
    retraining: FineTuning | Rewinding | None = None,
    early: nn.Module | None = None,
    finetune: Finetune | None = None,
    score: Score | None = None,
    calibration: Calibration | None = None,
    seed: int = 0,
    latency: bool = True,
) -> Outcome:
    """Give a network the shape that a method decides; the argument is left as it is.

    A `budget` says how small it must become, or how much it may lose; one that cannot be met is an error that names
    what can. `retraining` follows each cut: fine-tuning, or rewinding, for which `early` is the network of the early
    epoch. The user's own pieces take the place of ours: `finetune(model)` trains in place, `score(model)`, larger is
    better, is what decisions go by (unless given, accuracy on the validation part), `calibration` are inputs that show
    what units do (unless given, those of the training part).
    """
    found = cut_to_shape(
        model,
        data,
        method,
        budget=budget,
        retraining=retraining,
        early=early,
        finetune=finetune,
        score=score,
        calibration=calibration,
        seed=seed,
    )
    before, after = (measure(network, data, latency=latency) for network in (model, found.model))
    sample = placed(first_sample(data.train), numbers_of(model))
    anatomies = (anatomy(network, sample, partial=True) for network in (model, found.model))
    return Outcome(
        model=found.model,
        plan=new_edits(model, found.model),
        before=before,
        after=after,
        units=widths(*anatomies),
        score=found.score,
        reasons=found.reasons,
        histories=found.histories,
    )


def cut_to_shape(
    model: nn.Module,
    data: Data,
    method: Method,
    *,
    budget: Budget | None = None,
    retraining: FineTuning | Rewinding | None = None,
    early: nn.Module | None = None,
    finetune: Finetune | None = None,
    score: Score | None = None,
    calibration: Calibration | None = None,
    seed: int = 0,
) -> "Shaped":
    """Do what `shape` does, without measuring what came of it."""
    job = Job(
        whole=model,
        data=data,
        method=method,
        budget=Budget() if budget is None else budget,
        retraining=retraining,
        early=early,
        finetune=finetune,
        score=score_on(scored_part(data)) if score is None else score,
        calibration=placed(samples_of(data.train, seed), numbers_of(model)) if calibration is None else calibration,
        seed=seed,
    )
    job.check()
    if score is None and job.budget.allowed_loss is not None and not len(data.validation):
        note = "there is no validation part: what is lost is judged on the training part, which flatters"
        warnings.warn(note, TopiaristWarning, stacklevel=3)
    return job.run()


@dataclass(frozen=True)
class Shaped:
    """A network that was cut, its score before and after, why it is as it is, and how it was trained again."""

    model: nn.Module
    score: tuple[float, float]
    reasons: tuple[str, ...]
    histories: tuple[History, ...]


@dataclass(frozen=True, kw_only=True)
class Job:
    """All that `shape` was given, settled."""

    whole: nn.Module
    data: Data
    method: Method
    budget: Budget
    retraining: FineTuning | Rewinding | None
    early: nn.Module | None
    finetune: Finetune | None
    score: Score
    calibration: Calibration
    seed: int

    def check(self) -> None:
        """Refuse what does not go together."""
        if self.budget != Budget() and self.method.stops_itself:
            raise SettingsError("the method's own settings and the budget both say where to stop: give one")
        if self.retraining is not None and self.finetune is not None:
            raise SettingsError("retraining and finetune both train the cut network: give one")
        if self.method.rounds > 1 and self.retraining is None and self.finetune is None:
            raise SettingsError("rounds above 1 need retraining between the cuts: give retraining or finetune")
        rewinds = isinstance(self.retraining, Rewinding) and self.retraining.weights
        if (self.early is not None) != rewinds:
            raise SettingsError("an early network, and rewinding with weights=True, need each other: give both")

    @property
    def sample(self) -> Tensor:
        """Give one sample as the network reads it."""
        return placed(first_sample(self.data.train), numbers_of(self.whole))

    def run(self) -> Shaped:
        """Cut, and train again, in as many rounds as the method has."""
        whole_score = scored(self.score, self.whole)
        network, reasons, histories = self.whole, list[str](), list[History]()
        for left in range(self.method.rounds, 0, -1):
            found = self.cut(network, 1 / left, whole_score)
            network = found.model
            reasons += found.reasons
            histories += [] if found.history is None else [found.history]
        final_score = scored(self.score, network)
        self.check_loss(whole_score, final_score)
        attach(network, card_for(network, self.data))
        return Shaped(network, (whole_score, final_score), tuple(reasons), tuple(histories))

    def cut(self, network: nn.Module, share: float, whole_score: float) -> Candidate:
        """Make one cut, a share of the way that is left, and train again."""
        example = torch.cat([self.sample] * 2)
        task = Task(
            model=network,
            example_input=example,
            calibration=self.calibration,
            score=self.score,
            training=self.data.train if isinstance(self.data.train, Part) else None,
            held_out=self.data.validation if isinstance(self.data.validation, Part) else None,
            share=share,
            widths={name: space.size for name, space in anatomy(self.whole, example, partial=True).free.items()},
            seed=self.seed,
        )

        def make(limits: Limits) -> Candidate:
            return self.candidate(replace(task, limits=limits))

        if self.method.stops_itself or self.budget == Budget():
            return make({})
        costs = Costs(network, anatomy(network, task.example_input, partial=True))
        now = self.footprint(network)
        if self.budget.limits_size:
            limits = first_limits(self.budget, now, numbers_of(network).element_size())
            limits = {name: int(getattr(now, name) ** (1 - share) * limit**share) for name, limit in limits.items()}
            return within(self.budget, make, limits, costs) if share == 1 else make(limits)
        return self.least(make, costs, share, whole_score) or unchanged(network, now)

    def least(
        self, make: Callable[[Limits], Candidate], costs: Costs, share: float, whole_score: float
    ) -> Candidate | None:
        """Find the smallest network that loses no more than is allowed."""
        allowed = self.budget.allowed_loss or 0.0
        full, fewest = costs.parameters({}), costs.parameters(dict.fromkeys(costs.widths, 1))
        lowest = int(full ** (1 - share) * fewest**share)
        return smallest(
            make, lambda found: scored(self.score, found.model) >= whole_score - allowed, fewest=lowest, most=full
        )

    def candidate(self, task: Task) -> Candidate:
        """Make what a method proposes for a task, and train it again."""
        proposal = self.method.propose(task)
        network = apply(Plan(proposal.edits), task.model, task.example_input, calibration=task.calibration)
        history: History | None = None
        if self.retraining is not None:
            network, history = retrain(
                self.whole, network, self.data, self.retraining, early=self.early, seed=self.seed
            )
        elif self.finetune is not None:
            self.finetune(network)
        return Candidate(network, proposal.reasons, self.footprint(network), history)

    def footprint(self, network: nn.Module) -> Footprint:
        """Weigh a network, with a clock only where the budget asks for one."""
        return footprint(network, self.sample, data=self.data, latency=self.budget.latency_ms is not None)

    def check_loss(self, before: float, after: float) -> None:
        """Refuse a network that fits the budget's size and not its loss."""
        allowed = self.budget.allowed_loss
        if allowed is None or not self.budget.limits_size or after >= before - allowed:
            return
        found = replace(self, budget=Budget(allowed_loss=allowed)).cut(self.whole, 1.0, before)
        raise BudgetError(
            f"within the budget's size, {100 * (before - after):.1f} points are lost and {100 * allowed:g} are allowed:"
            f" the smallest network found that loses no more has {found.footprint.parameters:,} parameters and"
            f" {found.footprint.file_kb:.1f} KB"
        )


def unchanged(network: nn.Module, now: Footprint) -> Candidate:
    """Give the network as it is, where nothing can go."""
    return Candidate(copied_with_edits(network), ("nothing can go within the loss allowed",), now)


def new_edits(before: nn.Module, after: nn.Module) -> Plan:
    """Give the part of a network's plan that was not there before."""
    old, plan = plan_of(before), plan_of(after)
    steps = list(plan.steps())[len(old) :]
    return Plan(tuple(edit for edit, _ in steps), plan.example, tuple(numbers for _, numbers in steps))


def scored_part(data: Data) -> AnyPart:
    """Give the part that decisions go by: never the test part."""
    if len(data.validation):
        return data.validation
    if not len(data.train):
        raise DataError(f"{data.name} has no training samples")
    return data.train


def score_on(part: AnyPart) -> Score:
    """Give accuracy on a part as a score."""
    return lambda model: accuracy(*part_logits(model, part))


def scored(score: Score, model: nn.Module) -> float:
    """Ask a score."""
    with evaluating(model):
        return float(score(model))


def samples_of(part: AnyPart, seed: int) -> Tensor:
    """Give inputs of a part, at most some thousands of them, drawn by the seed."""
    if isinstance(part, Part):
        if len(part) <= CALIBRATION_SAMPLES:
            return part.x
        drawn = torch.randperm(len(part), generator=generator(seed, "calibration"))[:CALIBRATION_SAMPLES]
        return part.x[drawn.sort().values]
    batches = islice(part_batches(part, BATCH_SIZE), -(-CALIBRATION_SAMPLES // BATCH_SIZE))
    return torch.cat([x for x, _ in batches])
