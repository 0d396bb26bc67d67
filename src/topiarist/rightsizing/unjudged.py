"""A baseline by itself, where a class has too few samples to judge smaller networks by."""

from torch import nn

from topiarist.data import Data
from topiarist.measurement import Budget, BudgetError
from topiarist.measurement.budget import footprint
from topiarist.models import attach, card_for
from topiarist.models.copying import copied
from topiarist.models.evaluation import numbers_of, placed
from topiarist.rightsizing.baseline import train_baselines
from topiarist.rightsizing.clock import Clock
from topiarist.rightsizing.effort import EFFORTS, EffortName, full_plan
from topiarist.rightsizing.folds import in_memory
from topiarist.rightsizing.planning import plan_work
from topiarist.rightsizing.rightsize import Model, Prepared, prepare
from topiarist.threads import torch_threads
from topiarist.training.inference import first_sample


def unjudged_baseline(
    data: Data,
    model: Model | None = None,
    *,
    budget: Budget | None = None,
    effort: EffortName = "normal",
    seed: int = 0,
) -> nn.Module:
    """Give the network that a rightsizing would start from, or refuse where that exceeds the budget."""
    level = EFFORTS[effort]
    with torch_threads(1):
        job = prepare(in_memory(data), model, trained=None, seed=seed, clock=Clock(level.seconds))
        network = copied(job.first).eval() if job.trained else trained_baseline(job, effort, seed)
        sample = placed(first_sample(job.data.train), numbers_of(network))
        limits = Budget() if budget is None else budget
        size = footprint(network, sample, data=job.data, latency=limits.latency_ms is not None)
    excess = limits.excess(size)
    if excess is not None:
        raise BudgetError(f"{excess}; a class has too few samples to judge smaller networks by: give more of it")
    attach(network, card_for(network, job.data))
    return network


def trained_baseline(job: Prepared, effort: EffortName, seed: int) -> nn.Module:
    """Train as long as the effort allows, and give the best of its seeds."""
    full = full_plan(EFFORTS[effort], (), design="held out", folds=0, trained=job.trained)
    plan = plan_work(full, job.speed)
    return train_baselines(job.build, [job.data], seeds=plan.seeds, epochs=plan.epochs, seed=seed)[0].best
