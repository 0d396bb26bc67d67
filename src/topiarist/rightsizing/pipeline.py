"""`rightsize`: from data, perhaps a network and a budget, to the smallest network proven not to be worse."""

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

from topiarist.data import Data
from topiarist.errors import TopiaristWarning
from topiarist.measurement import Budget
from topiarist.models.stacked import stackable
from topiarist.parallel import Pool, open_pool
from topiarist.rightsizing.asking import base_words, check_settings, effort_of, few_rows_of, identity_of, methods_of
from topiarist.rightsizing.backbone import Backbone
from topiarist.rightsizing.baseline import Model, describe
from topiarist.rightsizing.choice import limits_of
from topiarist.rightsizing.clock import Clock, OnProgress
from topiarist.rightsizing.folds import in_memory, judged_in_memory
from topiarist.rightsizing.judging import check_each, check_metric, with_suited_metric
from topiarist.rightsizing.making import Objective
from topiarist.rightsizing.planning import DEFAULT_EFFORT, EffortName, WorkPlan, full_plan
from topiarist.rightsizing.preparation import Setup, estimated_seconds, planned, prepare, scale_notes
from topiarist.rightsizing.record import SettingsRecord
from topiarist.rightsizing.recording import budget_record
from topiarist.rightsizing.result import Rightsizing
from topiarist.rightsizing.running import Crew
from topiarist.rightsizing.stages import Stages, working_in
from topiarist.rightsizing.teaching import teacher_for
from topiarist.rightsizing.work import Work
from topiarist.statistics import Metric
from topiarist.threads import torch_threads, usable_cores
from topiarist.training.tables.config import TableTeacherName

WORTH_WORKERS = 2e11  # multiply-accumulates, about 12 s: starting workers takes some seconds
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
            crew = Crew(stages, pool)
            work = Work(job=job, plan=plan, budget=limits, settings=settings, crew=crew, clock=clock, brief=brief)
            return work.carry_out()


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
