"""`rightsize`: from data, perhaps a network and a budget, to the smallest network proven not to be worse."""

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import nn

from topiarist.data import Data, Part
from topiarist.errors import SettingsError, TopiaristWarning
from topiarist.measurement import Budget, BudgetError
from topiarist.measurement.budget import Footprint, footprint
from topiarist.measurement.cost import count_macs
from topiarist.models import attach, card_for
from topiarist.models.copying import copied
from topiarist.models.evaluation import numbers_of, placed
from topiarist.models.stacked import stackable
from topiarist.randomness import generator
from topiarist.rightsizing.baseline import (
    Build,
    Trained,
    builder,
    describe,
    speed_of,
    train_baselines,
)
from topiarist.rightsizing.budgeting import limits_of, nearest_below, ratios_for
from topiarist.rightsizing.choosing import Status, choose
from topiarist.rightsizing.clock import Clock, OnProgress
from topiarist.rightsizing.descending import Descent
from topiarist.rightsizing.effort import EFFORTS, METHODS, Design, EffortName, MethodName, WorkPlan, full_plan
from topiarist.rightsizing.folds import FewSamplesError, Fold, folds_of, in_memory, most_folds, some
from topiarist.rightsizing.known import Finished
from topiarist.rightsizing.making import MAKERS, finetune
from topiarist.rightsizing.planning import Speed, plan_again, plan_work
from topiarist.rightsizing.record import make_record
from topiarist.threads import torch_threads
from topiarist.training import History
from topiarist.training.inference import first_sample, part_logits
from topiarist.training.metrics import better_than_chance

MAX_DROP, ALPHA = 0.01, 0.05
FEWEST_FOLDS = 2
EPOCH_SHARE, FEWEST_SAMPLES = 1 / 20, 500  # of the time that an epoch may take, with so many samples at least
MANY_MACS = 5_000_000  # for a sample: with fewer, several threads are no faster than one
ANSWERED = 2  # times that all samples of the validation and the test part are, in the end

Model = nn.Module | Callable[[], nn.Module]


class UnreachableError(BudgetError):
    """No network fits the budget and is good enough; `nearest` are those that come nearest, `record` says it all."""

    def __init__(self, message: str, nearest: Sequence[str], record: Mapping[str, Any]) -> None:
        super().__init__(message)
        self.nearest, self.record = tuple(nearest), dict(record)


@dataclass(frozen=True, kw_only=True)
class Rightsizing:
    """The network, the baseline that it was made of, all networks by name, and the record of how it came about.

    `status` is "proven", "unproven" where the samples were too few to prove that nothing is lost, or "unchanged" where
    no smaller network was good enough.
    """

    model: nn.Module
    baseline: nn.Module
    networks: Mapping[str, nn.Module]
    status: Status
    data: Data
    record: dict[str, Any]

    @property
    def sentence(self) -> str:
        """What came of it, in a sentence."""
        return str(self.record["verdict"]["sentence"])


def rightsize(
    data: Data,
    model: Model | None = None,
    *,
    budget: Budget | None = None,
    max_drop: float = MAX_DROP,
    methods: Sequence[MethodName] = METHODS,
    effort: EffortName = "normal",
    trained: bool | None = None,
    alpha: float = ALPHA,
    seed: int = 0,
    on_progress: OnProgress | None = None,
) -> Rightsizing:
    """Give the smallest network that is not worse than the baseline by more than the drop of accuracy allowed.

    Without a `model`, a network that suits the data is trained. A model that answers better than chance is taken as
    `trained`, and is the baseline as it is; any other, or a function that builds one, is trained first. `budget` limits
    its size; its own `max_drop` takes the place of `max_drop`. The choice goes by samples that neither training nor
    any method saw; the test part confirms it, once. `on_progress` is told the share of the work that is done, and what.
    """
    limits, drop = limits_of(budget, max_drop)
    level = EFFORTS[checked("effort", effort, EFFORTS)]
    asked = [checked("methods", name, METHODS) for name in dict.fromkeys(methods)]
    if not asked:
        raise SettingsError(f"methods must name at least one of {', '.join(METHODS)}", setting="methods")
    clock = Clock(level.seconds, on_progress=on_progress or (lambda share, what: None))
    threads = torch.get_num_threads()
    with torch_threads(1), warnings.catch_warnings():
        warnings.simplefilter("ignore", TopiaristWarning)  # of single trainings and cuts: the record says what matters
        job = prepare(in_memory(data), model, trained=trained, seed=seed, clock=clock, threads=threads)
        job = in_time(job, level.seconds, seed)
        folds = most_folds(job.data, job.design)
        if folds < FEWEST_FOLDS:
            raise FewSamplesError(
                "rightsizing deals the samples of each class, in whole groups if there are any, into 2 folds or more;"
                " too few are there to judge by"
            )
        full = full_plan(
            level, asked, design=job.design, folds=folds, trained=job.trained, stacked=stackable(job.first)
        )
        with torch_threads(job.threads):
            return carry_out(job, full, limits, drop=drop, alpha=alpha, effort=effort, seed=seed, clock=clock)


@dataclass(frozen=True)
class Prepared:
    """What is known before the work begins."""

    data: Data
    build: Build
    first: nn.Module
    trained: bool
    design: Design
    speed: Speed
    threads: int
    notes: tuple[str, ...] = ()


def prepare(
    data: Data, model: Model | None, *, trained: bool | None, seed: int, clock: Clock, threads: int = 1
) -> Prepared:
    """Build the baseline, see whether it is trained, and measure how fast it learns with so many threads at most."""
    clock.tell(0.0, "looking at the data")
    build = builder(model, data)
    first = build(seed)
    known = model is not None and (
        better_than_chance(*part_logits(first, data.validation)) if trained is None else trained
    )
    design: Design = "held out" if known or data.source is None else "refitted"
    busy = threads if count_macs(first, first_sample(data.train)) >= MANY_MACS else 1
    with torch_threads(busy):
        return Prepared(data, build, first, known, design, speed_of(first, data), busy)


def in_time(job: Prepared, seconds: float, seed: int) -> Prepared:
    """Train on some of the samples where an epoch of all would take too much of the time, and say so."""
    samples = len(job.data.train)
    count = max(int(samples * EPOCH_SHARE * seconds / job.speed.epoch), FEWEST_SAMPLES)
    if count >= samples or most_folds(job.data, "held out") < FEWEST_FOLDS:
        return job
    assert isinstance(job.data.train, Part)
    drawn = torch.randperm(samples, generator=generator(seed, "samples in time"))[:count].sort().values
    return replace(
        job,
        data=replace(job.data, train=some(job.data.train, drawn), source=None, split=None),
        design="held out",
        speed=replace(job.speed, epoch=job.speed.epoch * count / samples),
        notes=(
            f"an epoch of all {samples:,} training samples takes {job.speed.epoch:.2g} s: {count:,} are trained on",
        ),
    )


def carry_out(
    job: Prepared,
    full: WorkPlan,
    budget: Budget,
    *,
    drop: float,
    alpha: float,
    effort: EffortName,
    seed: int,
    clock: Clock,
) -> Rightsizing:
    """Train the baselines, go down the sizes, choose, and write down how it came about; `full` is all that is asked."""
    clock.measuring = ANSWERED * job.speed.answers
    full = replace(full, notes=job.notes)
    plan = plan_work(full, job.speed, can_hold_out=most_folds(job.data, "held out") >= FEWEST_FOLDS)
    folds, history, notes = baselines(job, plan, seed, clock)
    full, plan = (replace(each, notes=(*each.notes, *notes)) for each in (full, plan))
    if history is not None and not plan.stacked:
        speed = job.speed.at(clock.stages["baseline"] / (plan.baselines * len(history.epochs)))
        plan = plan_again(full, plan, speed, clock.left)
    whole = folds[-1].whole
    sample = placed(first_sample(job.data.train), numbers_of(whole))
    timed = budget.latency_ms is not None
    size = footprint(whole, sample, data=job.data, latency=timed)

    def fits(network: nn.Module) -> bool:
        return budget.excess(footprint(network, sample, data=job.data, latency=timed)) is None

    descent = Descent(folds=folds, plan=plan, clock=clock, whole=size, ratios=plan.ratios, fits=fits)

    def weigh(ratio: float) -> Footprint:
        cut = MAKERS["distinctiveness"](folds[-1], descent.target(ratio), plan.finetuning_epochs)
        (untrained,) = finetune([cut], folds[-1:], 0, [seed])
        return footprint(untrained.model, sample, data=job.data)

    if budget.excess(size) is not None:
        descent.ratios = ratios_for(budget, size, plan.ratios, numbers_of(whole).element_size(), weigh)
    judged = descent.go(margin=drop, alpha=alpha)
    if not descent.rungs and budget.excess(size) is not None:
        judged = nearest_below(descent, descent.ratios[0], drop, alpha)
    choice = choose(descent, judged, margin=drop, baseline_fits=budget.excess(size) is None)
    finished = Finished(
        data=job.data,
        plan=plan,
        descent=descent,
        judged=judged,
        choice=choice,
        baseline_history=history,
        settings={
            "effort": effort,
            "seed": seed,
            "max_drop": drop,
            "alpha": alpha,
            "methods": list(plan.methods),
            "budget": budget.model_dump(exclude={"max_drop"}),
            "model": describe(whole),
            "trained_before": job.trained,
            "command": None,
        },
        budget=budget,
    )
    clock.tell(0.92, "measuring")
    with clock.stage("measurement"):
        record = make_record(finished)
    record["seconds"] = {**clock.stages, "total": clock.elapsed}
    clock.tell(1.0, "done")
    if choice is None:
        lines = [f"{near['id']}: {near['said']}" for near in record["nearest"]]
        raise UnreachableError(record["verdict"]["sentence"], lines, record)
    networks = finished.networks
    for network in networks.values():
        attach(network, card_for(network, job.data))
    return Rightsizing(
        model=networks[record["verdict"]["chosen"]],
        baseline=networks["baseline"],
        networks=networks,
        status=choice.status,
        data=job.data,
        record=record,
    )


def baselines(
    job: Prepared, plan: WorkPlan, seed: int, clock: Clock
) -> tuple[list[Fold], History | None, tuple[str, ...]]:
    """Return each fold with its baseline, the last that of the networks to keep, its history, and which ailed."""
    datas = [*folds_of(job.data, plan.design, plan.folds, seed), job.data]
    if job.trained:
        given = copied(job.first).eval()
        return [Trained(given, (given,), None).fold(data, seed) for data in datas], None, ()

    def tell(epoch: int, records: Sequence[object]) -> None:
        clock.tell(0.2 * epoch / plan.epochs, f"training {plan.baselines} baselines, epoch {epoch}")

    with clock.stage("baseline"):
        settings = {"seeds": plan.seeds, "epochs": plan.epochs, "seed": seed}
        if plan.design == "refitted":
            found = train_baselines(job.build, datas, **settings, on_epoch=tell)
        else:
            found = train_baselines(job.build, datas[-1:], **settings, on_epoch=tell) * len(datas)
    folds = [each.fold(data, seed) for each, data in zip(found, datas, strict=True)]
    return folds, found[-1].history, found[-1].notes


def checked(setting: str, name: Any, known: Mapping[Any, Any] | Sequence[Any]) -> Any:
    """Refuse a name that is not known."""
    if name not in known:
        raise SettingsError(f"{setting} must be one of {', '.join(known)}; found '{name}'", setting=setting)
    return name
