"""`shape`: from a network and a method to a smaller network, and the record of what it cost."""

from pathlib import Path

from torch import Tensor, nn

from topiarist.data import Data
from topiarist.errors import ModelError
from topiarist.measurement import Budget, measure
from topiarist.methods.jobs import make_job
from topiarist.methods.outcome import Outcome, widths
from topiarist.methods.retraining import FineTuning, Rewinding
from topiarist.methods.shaping import AnyMethod, Finetune, OnProgress, Shaping, cut_together
from topiarist.methods.task import Score
from topiarist.models.evaluation import numbers_of, placed
from topiarist.surgery import Plan, plan_of
from topiarist.surgery.calibration import Calibration
from topiarist.tracing import anatomy
from topiarist.training.inference import first_sample


def shape(
    model: nn.Module,
    data: Data,
    method: AnyMethod,
    *,
    budget: Budget | None = None,
    retraining: FineTuning | Rewinding | None = None,
    early: nn.Module | None = None,
    finetune: Finetune | None = None,
    score: Score | None = None,
    calibration: Calibration | None = None,
    seed: int = 0,
    latency: bool = True,
    checkpoint: Path | str | None = None,
    on_progress: OnProgress | None = None,
) -> Outcome:
    """Give a network the shape that a method decides; the argument is left as it is.

    A `budget` says how small it must become, or how much it may lose; one that cannot be met is an error that names
    what can. `retraining` follows each cut: fine-tuning, or rewinding, for which `early` is the network of the early
    epoch. The user's own pieces take the place of ours: `finetune(model)` trains in place, `score(model)`, larger is
    better, is what the allowed loss is judged by (unless given, accuracy on the validation part; genetic searches have
    their own fitness), `calibration` are inputs that show what units do (unless given, those of the training part).
    The surgeon writes its `checkpoint` as it goes, and the same call goes on from there when interrupted;
    `on_progress` is told which share of its training is done.
    """
    shaping = Shaping(
        method=method,
        budget=budget or Budget(),
        retraining=retraining,
        finetune=finetune,
        checkpoint=None if checkpoint is None else Path(checkpoint),
        on_progress=on_progress or (lambda share: None),
    )
    job = make_job(model, data, method, early=early, score=score, calibration=calibration, seed=seed)
    shaping.check([job])
    before = measure(model, data, latency=latency)
    (found,) = cut_together([job], shaping)
    return Outcome(
        model=found.model,
        plan=new_edits(model, found.model),
        before=before,
        after=measure(found.model, data, latency=latency),
        units=changed_widths(model, found.model, placed(first_sample(data.train), numbers_of(model))),
        score=found.score,
        reasons=found.reasons,
        histories=found.histories,
        lineage=found.lineage,
    )


def changed_widths(before: nn.Module, after: nn.Module, sample: Tensor) -> dict[str, tuple[int, int]]:
    """Give the widths of spaces before and after; none of a network that cannot be followed, and was not cut."""
    try:
        return widths(*(anatomy(network, sample, partial=True) for network in (before, after)))
    except ModelError:
        return {}


def new_edits(before: nn.Module, after: nn.Module) -> Plan:
    """Give the part of a network's plan that was not there before."""
    old, plan = plan_of(before), plan_of(after)
    steps = list(plan.steps())
    if plan.edits[: len(old)] == old.edits:
        steps = steps[len(old) :]
    else:  # of an ensemble, whose plan is that of one member after the other
        steps = [step for step in steps if step[0] not in old.edits]
    return Plan(tuple(edit for edit, _ in steps), plan.example, tuple(numbers for _, numbers in steps))
