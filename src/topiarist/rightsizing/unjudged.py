"""A baseline without a judgement, for data of which a class has too few samples to judge networks by."""

from torch import nn

from topiarist.data import Data
from topiarist.measurement import Budget, BudgetError
from topiarist.measurement.footprint import footprint
from topiarist.models.copying import copied
from topiarist.models.evaluation import numbers_of, placed
from topiarist.rightsizing.baseline import Model, train_baselines
from topiarist.rightsizing.folds import in_memory
from topiarist.rightsizing.planning import DEFAULT_EFFORT, EFFORTS, EffortName, full_plan, plan_work
from topiarist.rightsizing.preparation import prepare
from topiarist.threads import torch_threads
from topiarist.training.calibrating import calibrate
from topiarist.training.inference import first_sample


def unjudged_baseline(
    data: Data,
    model: Model | None = None,
    *,
    budget: Budget | None = None,
    effort: EffortName = DEFAULT_EFFORT,
    seed: int = 0,
    device: str | None = None,
) -> nn.Module:
    """Return the network that a rightsizing would start from, where a class has too few samples to judge by.

    Raise BudgetError where it exceeds the budget.
    """
    level, limits = EFFORTS[effort], budget or Budget()
    with torch_threads(1):
        job = prepare(in_memory(data), model, trained=None, seed=seed, device=device)
        network = copied(job.first).eval() if job.trained else None
        if network is None:
            full = full_plan(level, (), design="held out", folds=0, trained=False)
            plan = plan_work(full, job.work)
            folds, _, _ = train_baselines(job.build, [job.data], seeds=plan.seeds, epochs=plan.epochs, seed=seed)
            network = folds[0].whole
        sample = placed(first_sample(job.data.train), numbers_of(network))
        timed, runtime, threads = limits.latency_ms is not None, limits.runtime, limits.threads
        size = footprint(network, sample, data=job.data, latency=timed, runtime=runtime, threads=threads)
    excess = limits.excess(size)
    if excess is not None:
        raise BudgetError(f"{excess}; a class has too few samples to judge smaller networks by: give more of it")
    calibrate(network, job.data)
    return network
