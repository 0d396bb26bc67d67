"""The Surgeon, ours: training and topology optimisation in one process."""

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, ClassVar, Self

from pydantic import Field, field_validator, model_validator
from torch import nn

from topiarist.data import Data, Part
from topiarist.errors import DataError, SettingsError
from topiarist.evolution.lineage import Lineage
from topiarist.files import sha256
from topiarist.measurement import Budget
from topiarist.methods.budget_search import check_drop, weigh
from topiarist.methods.job import Job, Limits
from topiarist.methods.method import Resizing, TrainingMethod, Traits
from topiarist.methods.outcome import Outcome
from topiarist.methods.registry import DEFAULT_METHOD, find_method
from topiarist.methods.resizing import resize_all
from topiarist.methods.surgeon.branches import Branch, TrainingSetup
from topiarist.methods.surgeon.checkpoint import SurgeonCheckpoint
from topiarist.methods.surgeon.evolution import Evolution, Strategy, evolve
from topiarist.methods.surgeon.proposals import Kind
from topiarist.methods.surgeon.racing import RacingStrategy
from topiarist.methods.surgeon.scoring import AIMS, Aim, price_of
from topiarist.models import attach, card_for
from topiarist.models.evaluation import numbers_of, placed
from topiarist.parallel import open_pool
from topiarist.randomness import generator
from topiarist.surgery import plan_of
from topiarist.surgery.advice.trials import LabelledSamples
from topiarist.training import TrainConfig
from topiarist.training.checkpoint import fingerprint
from topiarist.training.inference import settle_norms
from topiarist.training.preparation import check_trainable

TRAINING = TrainConfig(epochs=50, batch_size=16, schedule="cosine")
INTERVAL = 0.05  # of the training: between decisions
LOOKED_AT = 2048  # labelled samples, to see what an edit promises
CANDIDATE_EPOCHS = 0.1  # of those of the fine-tuning that follows in a rightsizing
USUAL: tuple[Kind, ...] = ("renew", "grow", "remove", "fold", "factorise")


class SurgeonMethod(TrainingMethod):
    """What the Surgeon, ours and as published, has in common: it changes a network between stretches of training."""

    training: TrainConfig | None = Field(default=None, description="How to train; by default the method's own.")
    interval: int | None = Field(
        default=None, ge=1, description="Epochs between decisions; by default a 20th of all epochs."
    )
    stop_at: float | None = Field(
        default=None, gt=0, le=1, description="Stop training at this accuracy on the validation part: 0.9."
    )
    workers: int = Field(
        default=1, ge=1, description="Processes that train what competes side by side; they change no result."
    )

    @model_validator(mode="after")
    def _trains_in_stretches(self) -> "SurgeonMethod":
        known = self.usual_training
        refused = {
            "early stopping": known.early_stopping is not None,
            "performance scheduling": known.schedule.name == "performance",
            "pruning": known.pruning is not None,
            "distillation": known.distillation is not None,
            "a length in steps": known.steps is not None,
            "a stretch of a training": bool(known.after_epoch) or known.until_epoch is not None,
        }
        for what, asked in refused.items():
            if asked:
                raise ValueError(f"{what} cannot be combined with the surgeon, which trains in stretches of its own")
        return self

    @property
    def usual_training(self) -> TrainConfig:
        """How networks are trained: as given, or as the method does by default."""
        return self.training or TRAINING

    @classmethod
    def in_study(cls, values: Mapping[str, Any]) -> Self:
        """Let a table of `training` change what it names; seeds and workers belong to the study."""
        if values.get("workers", 1) != 1:
            raise SettingsError(f"{cls.__name__}: workers belong to the run of a study, not to the surgeon in it")
        training = values.get("training")
        if not isinstance(training, Mapping):
            return cls(**values)
        if "seed" in training:
            text = "the seed of a training follows from the cell: use the study's seeds"
            raise SettingsError(f"{cls.__name__}: training: {text}", setting="training")
        return cls(**{**values, "training": {**cls().usual_training.model_dump(), **training}})

    def check_data(self, data: Data) -> None:
        """Raise DataError for data without samples to choose by, or that are not in memory."""
        if not len(data.validation):
            raise DataError("the surgeon chooses by a validation part: give it a fraction of the data above 0")
        if not isinstance(data.train, Part) or not isinstance(data.validation, Part):
            raise DataError("the surgeon needs its samples in memory")

    def strategy(self, evolution: Evolution, budget: Budget) -> Strategy:
        """Return how an evolution decides."""
        raise NotImplementedError

    def run(self, job: Job, resizing: Resizing) -> Outcome:
        """Train a network, and change it on the way."""
        data = job.labelled(self.name)
        self.check_data(data)
        narrow = _within_budget(job, resizing.budget)
        setup = TrainingSetup(data, self.usual_training.model_copy(update={"seed": job.seed}))
        check_trainable(narrow.whole, data, setup.config)
        checkpoint = self._checkpoint(narrow, setup, resizing)
        state = None if checkpoint is None else checkpoint.read(narrow.whole)
        lineage = Lineage(setup.config.epochs, measure=data.task.credit_title) if state is None else state.lineage
        with open_pool(setup, workers=self.workers) as pool:
            evolution = Evolution(job=narrow, setup=setup, pool=pool, lineage=lineage, on_progress=resizing.on_progress)
            strategy = self.strategy(evolution, resizing.budget)
            best = evolve(strategy, evolution, checkpoint, state, stop_at=self.stop_at)
        outcome = _finished(job, best, evolution)
        check_drop(outcome, resizing.budget)
        if checkpoint is not None:
            checkpoint.remove_file()
        return outcome

    def _checkpoint(self, job: Job, setup: TrainingSetup, resizing: Resizing) -> SurgeonCheckpoint | None:
        if resizing.checkpoint is None:
            return None
        settings = self.model_dump_json(exclude={"workers"}), resizing.budget.sizes.model_dump_json()
        training = fingerprint([job.whole], [setup.data], [setup.config], [], stacked=False)
        name = sha256("\n".join([self.name, *settings, training]).encode())
        return SurgeonCheckpoint(resizing.checkpoint, name)


class Surgeon(SurgeonMethod):
    """Train a network, and change its topology on the way.

    Before the first epoch, a race of widths may multiply them; then units that no one needs are removed, and layers
    folded or factorised, by held-out samples.
    """

    name: ClassVar[str] = "surgeon"
    traits: ClassVar[Traits] = Traits(
        summary="Train and change the topology in one process.",
        looks_at_validation=True,
        own_training=True,
        resumes=True,
        relative_cost=3.0,
        marker="pentagon",
    )

    aim: Aim | float = Field(
        default="balanced",
        description="better, balanced or smaller; or what the mean probability of the true class must gain for twice"
        " the parameters, such as 0.003.",
    )
    kinds: tuple[Kind, ...] = Field(
        default=USUAL, description="Changes to try: renew, grow, widen, deepen, remove, fold, factorise."
    )
    patience: int = Field(
        default=2, ge=1, description="End a phase after this many decisions in a row that changed nothing."
    )
    search: float = Field(
        default=0.2, ge=0, le=10, description="Share of the training that candidates which lose may take."
    )
    max_growth: int = Field(
        default=8, ge=1, le=1024, description="How many times its width a layer may have after the race of widths."
    )

    @field_validator("aim", mode="before")
    @classmethod
    def _known_aim(cls, value: object) -> object:
        number = isinstance(value, int | float) and not isinstance(value, bool)
        if value in AIMS or (number and 0 <= float(str(value)) < math.inf):
            return value
        raise ValueError(f"must be {', '.join(AIMS)} or a number from 0 on")

    @field_validator("kinds")
    @classmethod
    def _each_once(cls, value: tuple[Kind, ...]) -> tuple[Kind, ...]:
        return tuple(dict.fromkeys(value))

    def strategy(self, evolution: Evolution, budget: Budget) -> Strategy:
        """Race candidates on the same batches."""
        job, epochs = evolution.job, evolution.setup.config.epochs
        return RacingStrategy(
            evolution=evolution,
            samples=looked_at(job.whole, evolution.setup.data, job.seed),
            price=price_of(self.aim),
            kinds=self.kinds,
            fits=_fits(job, budget),
            interval=self.interval or max(1, round(INTERVAL * epochs)),
            patience=self.patience,
            allowance=round(self.search * evolution.last_step),
            most=self.max_growth,
        )

    @classmethod
    def candidate(cls, job: Job, limits: Limits, training: TrainConfig) -> Resizing:
        """Cut to size, then train for a while, and change the topology on the way."""
        epochs = max(1, round(CANDIDATE_EPOCHS * training.epochs))
        own = TrainConfig(**{**dict(training), "epochs": epochs, "early_stopping": None, "seed": job.seed})
        return Resizing.within(cls(training=own), limits)


def looked_at(model: nn.Module, data: Data, seed: int) -> LabelledSamples:
    """Return labelled training samples, by which edits are judged before they are tried."""
    assert isinstance(data.train, Part)
    some = data.train.draw(LOOKED_AT, generator(seed, "looked at"))
    return LabelledSamples(placed(some.x, numbers_of(model)), some.y, data.task)


def _fits(job: Job, budget: Budget) -> Callable[[nn.Module], bool]:
    if not budget.limits_size:
        return lambda model: True
    return lambda model: budget.excess(weigh(job, budget, model)) is None


def _within_budget(job: Job, budget: Budget) -> Job:
    """Return a job whose network keeps within a budget's size, cut to it where it does not."""
    if _fits(job, budget)(job.whole):
        return job
    (outcome,) = resize_all([job], Resizing(method=find_method(DEFAULT_METHOD)(), budget=budget.sizes, settling=0))
    return replace(job, whole=outcome.model, memory={})


def _finished(job: Job, best: Branch, evolution: Evolution) -> Outcome:
    model, config, data = best.model.eval(), evolution.setup.config, evolution.setup.data
    if config.precise_norms:
        settle_norms(model, data.train)
    attach(model, replace(card_for(model, data), training=config.repeatable))
    narrowed = plan_of(evolution.job.whole).edits[len(plan_of(job.whole)) :]
    cut = [f"to keep the budget: {'; '.join(map(str, narrowed))}"] if narrowed else []
    decided = [f"after epoch {each.epoch:g}: {each.reason}" for each in evolution.lineage.decisions]
    diverged = [] if evolution.diverged is None else [evolution.diverged]
    return Outcome(job=job, model=model, reasons=(*cut, *decided, *diverged), lineage=evolution.lineage)
