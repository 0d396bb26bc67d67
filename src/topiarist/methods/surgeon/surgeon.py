"""The Surgeon: training and topology optimisation in one process, as published or as we do it."""

import math
from collections.abc import Sequence
from dataclasses import replace

import torch
from pydantic import Field, field_validator, model_validator
from torch import nn

from topiarist.data import Data, Part
from topiarist.errors import DataError, SettingsError
from topiarist.files import sha256
from topiarist.measurement import Budget, BudgetError
from topiarist.methods.jobs import Job, scored
from topiarist.methods.shaping import Shaped, Shaping
from topiarist.methods.surgeon.branches import Branch, Course
from topiarist.methods.surgeon.evolving import Way, evolve
from topiarist.methods.surgeon.journal import Journal
from topiarist.methods.surgeon.lineage import Lineage
from topiarist.methods.surgeon.narrowing import fitted
from topiarist.methods.surgeon.paper_settings import PaperSettings
from topiarist.methods.surgeon.proposals import Kind
from topiarist.methods.surgeon.published import Published
from topiarist.methods.surgeon.racing import Racing
from topiarist.methods.surgeon.scoring import AIMS, Aim, price_of
from topiarist.methods.surgeon.theatre import Theatre
from topiarist.models import attach, card_for
from topiarist.models.evaluation import numbers_of, placed
from topiarist.parallel import open_pool
from topiarist.randomness import generator
from topiarist.surgery import plan_of
from topiarist.surgery.advice.trials import LabelledSamples
from topiarist.training import TrainConfig
from topiarist.training.norms import settle_norms
from topiarist.training.tasks import check_task, fingerprint

PAPER = TrainConfig(epochs=100, batch_size=16, learning_rate=0.005, optimizer="sgd")
OURS = TrainConfig(epochs=50, batch_size=16, schedule="cosine")
PAPER_INTERVAL, INTERVAL = 10, 0.05  # between decisions: epochs in the paper; of the training with ours
LOOKED_AT = 2048  # labelled samples, to see what an edit promises
OURS_ALONE = ("aim", "kinds", "patience", "search", "max_growth")  # settings that the paper's algorithm does not have
USUAL: tuple[Kind, ...] = ("renew", "grow", "remove", "fold", "factorise")


class Surgeon(PaperSettings):
    """Train a network, and change its topology on the way.

    `aim` is "better", "balanced", "smaller", or what the mean chance of the true class must gain for twice the
    parameters to be worth it. `kinds` are the changes to try; with none, the network is only trained. `interval` is how
    many epochs lie between decisions, `patience` after how many without a change no more are made, `search` which share
    of the training those that lose may take. Before the first epoch, a race of widths may multiply them by up to
    `max_growth`. `stop_at` ends the training at an accuracy on the validation part. `workers` train side by side and
    change no result. With `published`, it is the paper's algorithm, whose training `training` may shorten; a budget is
    refused, and what `PaperSettings` names can be set.
    """

    published: bool = False
    training: TrainConfig | None = None
    aim: Aim | float = "balanced"
    kinds: tuple[Kind, ...] = USUAL
    interval: int | None = Field(default=None, ge=1)
    patience: int = Field(default=2, ge=1)
    search: float = Field(default=0.2, ge=0, le=10)
    max_growth: int = Field(default=8, ge=1, le=1024)
    stop_at: float | None = Field(default=None, gt=0, le=1)
    workers: int = Field(default=1, ge=1)

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

    @model_validator(mode="after")
    def _what_goes_together(self) -> "Surgeon":
        idle = [name for name in OURS_ALONE if name in self.model_fields_set]
        if self.published and idle:
            raise ValueError(f"{idle[0]} has no effect with published: the paper's algorithm has its own")
        self.check_paper_only(published=self.published)
        known = self.course
        refused = {
            "early stopping": known.early_stopping is not None,
            "performance scheduling": known.schedule.name == "performance",
            "pruning": known.pruning is not None,
            "distillation": known.distillation is not None,
            "a length in steps": known.steps is not None,
            "a stretch of a training": bool(known.after_epoch) or known.until_epoch is not None,
            "another device than the CPU": known.device != "cpu",
        }
        for what, asked in refused.items():
            if asked:
                raise ValueError(f"{what} cannot be combined with the surgeon, which trains in stretches of its own")
        return self

    @property
    def rounds(self) -> int:
        """It goes its way in one training."""
        return 1

    @property
    def stops_itself(self) -> bool:
        """Say whether a budget has no say."""
        return self.published

    @property
    def course(self) -> TrainConfig:
        """How networks are trained."""
        return self.training or (PAPER if self.published else OURS)

    def shape_together(self, jobs: Sequence[Job], shaping: Shaping) -> list[Shaped]:
        """Train networks, and change them on the way, one after the other."""
        if shaping.finetune is not None or shaping.retraining is not None:
            raise SettingsError("the surgeon trains by its own settings: give them as Surgeon(training=…)")
        return [self._shape(job, shaping) for job in jobs]

    def _shape(self, given: Job, shaping: Shaping) -> Shaped:
        check_parts(given.data)
        job = fitted(given, shaping.budget)
        course = Course(job.data, self.course.model_copy(update={"seed": job.seed}))
        check_task(job.whole, job.data, course.config)
        journal = self._journal(job, course, shaping)
        entry = None if journal is None else journal.read(job.whole)
        lineage = Lineage(course.config.epochs) if entry is None else entry.lineage
        with open_pool(course, workers=self.workers) as pool:
            theatre = Theatre(job=job, course=course, pool=pool, lineage=lineage, on_progress=shaping.on_progress)
            best = evolve(self._way(theatre, shaping.budget), theatre, journal, entry, stop_at=self.stop_at)
        shaped = self._settled(given, best, theatre, shaping.budget)
        if journal is not None:
            journal.remove()
        return shaped

    def _way(self, theatre: Theatre, budget: Budget) -> Way:
        if self.published:
            return Published(theatre=theatre, interval=self.interval or PAPER_INTERVAL, settings=self)
        return Racing(
            theatre=theatre,
            samples=looked_at(theatre.job.whole, theatre.job.data, theatre.job.seed),
            price=price_of(self.aim),
            kinds=self.kinds,
            budget=budget,
            interval=self.interval or max(1, round(INTERVAL * theatre.course.config.epochs)),
            patience=self.patience,
            allowance=round(self.search * theatre.last_step),
            most=self.max_growth,
        )

    def _journal(self, job: Job, course: Course, shaping: Shaping) -> Journal | None:
        if shaping.checkpoint is None:
            return None
        settings = self.model_dump_json(exclude={"workers"}), shaping.budget.model_dump_json(exclude={"max_drop"})
        training = fingerprint([job.whole], [job.data], [course.config], [], stacked=False)
        return Journal(shaping.checkpoint, sha256("\n".join([*settings, training]).encode()))

    def _settled(self, job: Job, best: Branch, theatre: Theatre, budget: Budget) -> Shaped:
        model, config = best.model.eval(), theatre.course.config
        if config.precise_norms:
            settle_norms(model, job.data.train)
        training = config.model_dump(mode="json", exclude_defaults=True)
        attach(model, replace(card_for(model, job.data), training=training))
        scores = job.whole_score, scored(job.score, model)
        check_loss(scores[0] - scores[1], budget.max_drop)
        return Shaped(model, scores, reasons_of(job, theatre), (), theatre.lineage.to_record())


def check_parts(data: Data) -> None:
    """Refuse data without samples to choose by, or that are not in memory."""
    if not len(data.validation):
        raise DataError("the surgeon chooses by a validation part: give it a fraction of the data above 0")
    if not isinstance(data.train, Part) or not isinstance(data.validation, Part):
        raise DataError("the surgeon needs its samples in memory")


def check_loss(lost: float, allowed: float | None) -> None:
    """Refuse a network that lost more than is allowed."""
    if allowed is not None and lost > allowed:
        raise BudgetError(f"{100 * lost:.1f} points are lost on the validation part and {100 * allowed:g} are allowed")


def reasons_of(job: Job, theatre: Theatre) -> tuple[str, ...]:
    """Say what was decided, and why."""
    narrowed = plan_of(theatre.job.whole).edits[len(plan_of(job.whole)) :]
    cut = [f"to keep the budget: {'; '.join(map(str, narrowed))}"] if narrowed else []
    decided = [f"after epoch {each.epoch:g}: {each.reason}" for each in theatre.lineage.decisions]
    return (*cut, *decided, *([] if theatre.diverged is None else [theatre.diverged]))


def looked_at(model: nn.Module, data: Data, seed: int) -> LabelledSamples:
    """Give labelled training samples, by which edits are judged before they are tried."""
    assert isinstance(data.train, Part)
    chosen = torch.randperm(len(data.train), generator=generator(seed, "looked at"))[:LOOKED_AT]
    return LabelledSamples(placed(data.train.x[chosen], numbers_of(model)), data.train.y[chosen])
