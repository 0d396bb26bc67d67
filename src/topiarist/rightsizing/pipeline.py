"""`rightsize`: from data, perhaps a network and a budget, to the smallest network proven not to be worse."""

import math
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path

from pydantic import TypeAdapter
from torch import Tensor, nn

from topiarist.data import Data
from topiarist.errors import TopiaristWarning
from topiarist.measurement import Budget
from topiarist.measurement.footprint import Footprint, footprint
from topiarist.memory import return_freed
from topiarist.methods.registry import DEFAULT_METHOD
from topiarist.models import attach, card_for
from topiarist.models.copying import copied
from topiarist.models.evaluation import numbers_of, placed
from topiarist.models.stacked import stackable
from topiarist.parallel import Pool, open_pool
from topiarist.rightsizing.asking import base_words, check_settings, effort_of, few_rows_of, identity_of, methods_of
from topiarist.rightsizing.backbone import Backbone
from topiarist.rightsizing.baseline import Model, describe, folds_with, train_baselines
from topiarist.rightsizing.choice import Status, choose, go_nearest_below, limits_of, ratios_for
from topiarist.rightsizing.clock import Clock, OnProgress
from topiarist.rightsizing.descent import BEGUN, ENDED, Descent
from topiarist.rightsizing.finetuning import finetune
from topiarist.rightsizing.folds import Fold, folds_of, in_memory, judged_in_memory, stopping_apart
from topiarist.rightsizing.judging import check_each, check_metric, with_suited_metric
from topiarist.rightsizing.making import Objective, Workshop
from topiarist.rightsizing.planning import DEFAULT_EFFORT, EffortName, WorkPlan, full_plan
from topiarist.rightsizing.preparation import Setup, estimated_seconds, planned, prepare, scale_notes
from topiarist.rightsizing.record import BASELINE, ReferenceRecord, RightsizingRecord, SettingsRecord
from topiarist.rightsizing.recording import Findings, budget_record
from topiarist.rightsizing.references import (
    better_notes,
    can_be_referred,
    linear_network,
    linear_notes,
    missing_notes,
    reference_records,
)
from topiarist.rightsizing.relearning import can_learn_more, relearned
from topiarist.rightsizing.result import Rightsizing, UnreachableError
from topiarist.rightsizing.running import Crew, KeptFit, Runner
from topiarist.rightsizing.stages import Stages, working_in
from topiarist.rightsizing.teaching import teacher_for, with_references, with_teachers
from topiarist.statistics import Metric
from topiarist.threads import torch_threads, usable_cores
from topiarist.training import History
from topiarist.training.inference import first_sample
from topiarist.training.tables.config import TableTeacherName

RECORD, SIMPLE_MODELS = "record.json", "simple_models.json"  # of the stages
RECORDS = TypeAdapter(tuple[ReferenceRecord, ...])
WORTH_WORKERS = 2e11  # multiply-accumulates, about 12 s: starting workers takes some seconds
LARGE_BYTES, FLOAT32 = 2**24, 4  # 16 MB of samples as networks read them: a twentieth of what torch takes
ALPHA = 0.05  # the usual level of a test; benchmarks/proofs.py simulates that it holds


def rightsize(
    data: Data,
    model: Model | None = None,
    *,
    budget: Budget | None = None,
    max_drop: float | None = None,
    metric: str | Metric | None = None,
    each: bool = False,
    methods: Sequence[str] | None = None,
    effort: EffortName = DEFAULT_EFFORT,
    objective: Objective | None = None,
    trained: bool | None = None,
    teacher: TableTeacherName | None = None,
    alpha: float = ALPHA,
    seed: int = 0,
    device: str | None = None,
    time_limit: float | None = None,
    workers: int | None = 1,
    cluster: str | None = None,
    work_folder: str | Path | Stages | None = None,
    brief: bool = False,
    on_progress: OnProgress | None = None,
) -> Rightsizing:
    """Find the smallest network that is proven not to be worse than the baseline by more than `max_drop`.

    Parameters
    ----------
    data : Data
        With a training and a validation part; the test part confirms the result, once.
    model : nn.Module, callable or Backbone, optional
        The network to start from, or a function that builds one; or a pretrained backbone, whose layers but the last
        every baseline starts from. By default, one that suits the data is trained.
    budget : Budget, optional
        Limits on the size; its own `max_drop` replaces the argument.
    max_drop : float
        The loss that is allowed, by default that of the metric: 0.01 is one point of accuracy, 0.02 an RMSE that is
        2 % larger. See `statistics.default_margin`.
    metric : str or Metric, optional
        What networks are compared by, such as "roc_auc", or one from `statistics.own_metric`. By default accuracy of
        classes, RMSE of numbers, ROC AUC of labels; balanced accuracy where a class is rare, with a note.
    each : bool
        Whether to test each of several targets or labels by itself too, with Holm's correction over them, and to write
        that down. The decision is made by all of them together.
    methods : sequence of str, optional
        Names of registered methods that make candidates; by default those whose traits say so.
    effort : {"quick", "normal", "thorough"}
        A declared amount of work: about 1 minute, 10 minutes or 1 hour on one core. What is left out of it for large
        data and networks follows from their sizes alone; the record says what.
    objective : {"parameters", "macs", "file", "latency"}, optional
        What is to become smaller. By default parameters and multiply-accumulates both.
    trained : bool, optional
        Whether to take the model as it is, or to train it first. By default it is taken as it is if it beats chance.
    teacher : {"baselines", "ensemble", "boosting", "both"}, optional
        Who teaches the networks of a table: the baselines of all seeds, cross-fitted networks, gradient boosting, or
        the better blend of these two, which is the default where no model is given, unless the effort is "quick" and
        there are fewer than 1,000 training rows: then the baselines teach. Networks for anything else learn from the
        baselines too.
    alpha : float
        Level of the tests.
    seed : int
    device : str, optional
        Where networks are trained and cut, such as "cuda". By default where the given network lies, else the CPU.
    time_limit : float, optional
        Seconds after which the search ends with what is tested by then; the record says what that cost. The baseline is
        trained in any case. Without it, no clock decides anything.
    workers : int or None
        Processes on this machine that teach and train; None for one per core where that pays. A script that asks for
        more than one needs `if __name__ == "__main__":`.
    cluster : str, optional
        Address of a running Dask scheduler, whose workers teach and train.
    work_folder : path, optional
        A folder that keeps each stage when it is finished: the same call resumes from it after any end, and ends with
        the same networks. It is left there.
    brief : bool
        Whether seconds count, as in the loops that estimators are used in: no simple models are fitted and no network
        is timed for the record, and at `quick` a table of few rows takes a small plan.
    on_progress : callable, optional
        Called with the share of the work that is done, and what is being done, with the time that is left.

    Returns
    -------
    Rightsizing

    Raises
    ------
    UnreachableError
        If no network fits the budget and is good enough.
    FewSamplesError
        If a class has too few samples to judge networks by.
    SettingsError
        If a setting makes no sense, or the work folder holds the work of another call.

    Examples
    --------
    >>> from topiarist import load_data, rightsize
    >>> result = rightsize(load_data("digits"), effort="quick")  # doctest: +SKIP
    >>> result.status  # doctest: +SKIP
    'proven'
    """
    data, said = with_suited_metric(data.with_metric(metric))
    limits, drop = limits_of(budget, max_drop, data.task.primary_metric)
    asked, level = methods_of(methods), effort_of(effort)
    check_settings(objective, time_limit)
    if each:
        check_each(data.task)
    clock = Clock(time_limit, on_progress=on_progress or (lambda share, what: None))
    with working_in(work_folder) as stages, torch_threads(1), warnings.catch_warnings():
        warnings.simplefilter("ignore", TopiaristWarning)  # of single trainings and cuts: the record says what matters
        held = in_memory(data)
        check_metric(held, margin=drop, alpha=alpha)
        clock.on_progress(0.0, "looking at the data")
        job = prepare(held, model, trained=trained, seed=seed, device=device)
        few = few_rows_of(job, level, named=methods is not None) if brief else None
        if few is not None and model is None and (hidden := few.hidden.get(data.task.kind)):
            job = prepare(held, None, trained=trained, seed=seed, device=device, hidden=hidden)
            said += (f"for fewer than {few.rows:,} training rows, the baseline is {describe(job.first)}",)
        said += () if model is not None else scale_notes(job.data)
        taught_by = teacher_for(teacher, job.data, given=model is not None, trained=job.trained, few=few is not None)
        full = full_plan(
            level,
            asked,
            design=job.design,
            folds=job.folds,
            trained=job.trained,
            stacked=stackable(job.first),
            few_rows=few,
        )
        job, plan = planned(job, replace(full, notes=(*full.notes, *said)), seed)
        if job.design == "held out":  # all networks learn from the same rows
            job = replace(job, data=judged_in_memory(job.data))
        settings = SettingsRecord(
            effort=effort,
            objective=objective,
            seed=seed,
            max_drop=drop,
            alpha=alpha,
            methods=asked,
            budget=budget_record(limits),
            model=describe(job.first),
            trained_before=job.trained,
            base=base_words(model) if isinstance(model, Backbone) else None,
            each=each,
            teacher=taught_by,
            time_limit=time_limit,
        )
        stages.identify(partial(identity_of, job, plan, settings))
        if not brief or on_progress is not None:
            clock.estimate = estimated_seconds(job, plan)
        with _pool(job, plan, workers, cluster) as pool:
            return _carry_out(Crew(stages, pool), clock, job, plan, limits, settings, brief=brief)


@contextmanager
def _pool(job: Setup, plan: WorkPlan, workers: int | None, cluster: str | None) -> Iterator[Pool | None]:
    """Yield the workers that were asked for; None where this process is the only one."""
    if workers is None:
        workers = usable_cores() if not plan.stacked and plan.work_with(job.work) >= WORTH_WORKERS else 1
    if workers == 1 and cluster is None:
        yield None
        return
    with open_pool(None, workers=workers, cluster=cluster) as pool:
        yield pool


def _carry_out(
    crew: Crew, clock: Clock, job: Setup, plan: WorkPlan, budget: Budget, settings: SettingsRecord, *, brief: bool
) -> Rightsizing:
    """Train the baselines, go down the sizes, choose, and write down how it came about."""
    clock.frees = _is_large(job.data)
    if clock.frees:
        return_freed()  # of what read the data
    folds, history, plan = _baselines(crew, clock, job, plan, settings.seed)
    if history is not None:
        with clock.stage("baseline"):
            folds, history = _referred(crew, clock, folds, history, plan, settings)
    folds[-1].calibrate(folds[-1].whole)
    descent, baseline_fits = _descend(crew, clock, job, folds, plan, budget, settings)
    choice = choose(descent, baseline_fits=baseline_fits)
    findings = Findings(
        data=job.data, descent=descent, choice=choice, baseline_history=history, budget=budget, settings=settings
    )
    findings = findings if brief else _with_simple_models(crew, clock, findings)
    findings = _relearned(crew, clock, findings)
    clock.tell(ENDED, "measuring")

    def measured() -> str:
        with clock.stage("measurement"):
            record = findings.record(timed=not brief)
        return record.model_copy(update={"seconds": {**clock.stages, "total": clock.elapsed}}).model_dump_json()

    kept = measured() if descent.cut_short else crew.stages.text(RECORD, measured)  # there may be more time next time
    record = RightsizingRecord.model_validate_json(kept)
    clock.tell(1.0, "done")
    if choice is None:
        raise UnreachableError(record)
    return _result(findings, record, choice.status)


def _is_large(data: Data) -> bool:
    """Return whether the samples take so much memory that what copies of them leave behind is worth giving back."""
    counts = sum(map(len, (data.train, data.validation, data.test)))
    return counts * math.prod(data.input_shape) * FLOAT32 > LARGE_BYTES


def _with_simple_models(crew: Crew, clock: Clock, findings: Findings) -> Findings:
    """Add simple models of a table and the network without hidden units, and note where that is as good and smaller."""
    descent, settings = findings.descent, findings.settings
    if descent.cut_short or not can_be_referred(descent.folds):
        return findings
    clock.tell(ENDED, "simple models")
    with clock.stage("references"):
        margin, alpha = settings.max_drop, settings.alpha
        linear = linear_network(descent.folds, descent.plan, margin=margin, alpha=alpha, crew=crew)
        descent.notes.extend(linear_notes(linear, findings.networks[findings.chosen], descent.folds, alpha))
        made = partial(reference_records, descent.folds, settings.seed)
        kept = crew.stages.text(SIMPLE_MODELS, lambda: RECORDS.dump_json(made()).decode())
        references = RECORDS.validate_json(kept)
        descent.notes.extend(missing_notes(descent.folds))
        descent.notes.extend(better_notes(references, findings.named[BASELINE].score, descent.metric, margin))
        return replace(findings, references=references, linear=linear)


def _relearned(crew: Crew, clock: Clock, findings: Findings) -> Findings:
    """Let the networks that are handed out learn once more, where there is more to learn from than decisions left."""
    descent, settings = findings.descent, findings.settings
    fold, teacher = descent.folds[-1], settings.teacher
    if descent.cut_short or teacher is None or not can_learn_more(fold, descent.plan, teacher):
        return findings
    clock.tell(ENDED, "learning from the validation part")
    handed_out = {name: findings.networks[name] for name in findings.handed_out}
    with clock.stage("relearning"):
        return replace(findings, relearned=relearned(handed_out, fold, descent.plan, teacher, settings.seed, crew))


def _result(findings: Findings, record: RightsizingRecord, status: Status) -> Rightsizing:
    """Return all networks that could be kept, each with its card."""
    networks = findings.networks
    for network in networks.values():
        attach(network, card_for(network, findings.data))
    return Rightsizing(
        model=networks[findings.chosen],
        baseline=networks[BASELINE],
        networks=networks,
        status=status,
        data=findings.data,
        record=record,
        linear_will_do=findings.linear is not None and findings.linear.replaces(networks[findings.chosen]),
    )


def _baselines(
    crew: Crew, clock: Clock, job: Setup, plan: WorkPlan, seed: int
) -> tuple[list[Fold], History | None, WorkPlan]:
    """Return each fold with its baseline, the last that of the networks to keep; its history; the plan, with notes."""
    datas = [*folds_of(job.data, plan.design, plan.folds, seed), job.data]
    if job.trained:
        given = copied(job.first).eval()
        return folds_with(datas, (given,), given, seed), None, plan

    def tell(epoch: int, records: Sequence[object]) -> None:
        if plan.stacked:
            clock.tell(BEGUN * epoch / plan.epochs, f"training {plan.baselines} baselines, epoch {epoch}")

    def tell_done(done: int) -> None:
        if not plan.stacked:
            clock.tell(BEGUN * done / plan.baselines, f"{done} of {plan.baselines} baselines are trained")

    fit = KeptFit(crew, tell_done)
    with clock.stage("baseline"):
        trained_on = datas if plan.design == "refitted" else [stopping_apart(datas[-1], seed)]
        folds, history, notes = train_baselines(
            job.build, trained_on, seeds=plan.seeds, epochs=plan.epochs, seed=seed, on_epoch=tell, fit=fit
        )
    if plan.design == "held out":
        folds = folds_with(datas, folds[0].members, folds[0].whole, seed)
    return folds, history, replace(plan, notes=(*plan.notes, *notes))


def _referred(
    crew: Crew, clock: Clock, folds: Sequence[Fold], history: History, plan: WorkPlan, settings: SettingsRecord
) -> tuple[list[Fold], History]:
    """Return folds with their teachers, whose baseline is the better of the plain and a distilled one; its history."""
    clock.tell(BEGUN, "teaching networks of the same size")
    taught = folds if settings.teacher is None else with_teachers(folds, settings.teacher, settings.seed, crew)
    return with_references(taught, history, plan, settings.seed, crew)


def _descend(
    crew: Crew,
    clock: Clock,
    job: Setup,
    folds: Sequence[Fold],
    plan: WorkPlan,
    budget: Budget,
    settings: SettingsRecord,
) -> tuple[Descent, bool]:
    """Go down the sizes; return what was found, and whether the baseline itself fits the budget."""
    whole, seed = folds[-1].whole, folds[-1].seed
    sample: Tensor = placed(first_sample(job.data.train), numbers_of(whole))

    def weighed(network: nn.Module) -> Footprint:
        timed = budget.latency_ms is not None or settings.objective == "latency"
        runtime, threads = budget.runtime, budget.threads
        return footprint(network, sample, data=job.data, latency=timed, runtime=runtime, threads=threads)

    size = weighed(whole)
    baseline_fits = budget.excess(size) is None
    shop = Workshop(
        folds=folds,
        plan=plan,
        whole=size,
        objective=settings.objective,
        runtime=budget.runtime,
        threads=budget.threads,
        deadline=clock.deadline,
    )
    descent = Descent(
        shop=shop,
        runner=Runner(shop, [fold.whole for fold in folds], crew.stages),
        clock=clock,
        ratios=plan.ratios,
        fits=lambda network: not budget.limits_size or budget.excess(weighed(network)) is None,
        margin=settings.max_drop,
        alpha=settings.alpha,
        from_whole=baseline_fits,
    )

    def file_kb(ratio: float) -> float:
        cut = descent.make(DEFAULT_METHOD, folds[-1], ratio)
        (untrained,) = finetune([cut], folds[-1:], 0, [seed])
        return footprint(untrained.model, sample, data=job.data).file_kb

    if not baseline_fits:
        descent.ratios = ratios_for(budget, size, plan.ratios, numbers_of(whole).element_size(), file_kb)
    with nullcontext() if crew.pool is None else crew.pool.sharing(shop.lean) as pool:
        descent.runner = replace(descent.runner, pool=pool)
        descent.go()
        if not descent.sizes and not baseline_fits:
            go_nearest_below(descent)
    return descent, baseline_fits
