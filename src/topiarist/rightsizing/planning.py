"""The plan of a rightsizing: what an effort asks for, or as much of it as keeps to its time.

Where the data are few and the network is small, the plan is that of the level and the clock has no say. Where they are
not, the speed of one epoch, measured beforehand, makes it smaller, and the plan says so.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from topiarist.rightsizing.effort import TIMES, WorkPlan

BASELINE_SHARE, CANDIDATES_SHARE = 0.35, 0.65
ENOUGH = 0.5  # of the epochs of a level, below which something else is left out first
FEWEST_EPOCHS = 2


@dataclass(frozen=True)
class Speed:
    """How fast a baseline is: seconds of an epoch, of a cut where that counts, and of answering all samples once."""

    epoch: float
    cut: float = 0.0
    answers: float = 0.0

    def at(self, epoch: float) -> "Speed":
        """Give the same where an epoch turned out to take so long."""
        return Speed(epoch, self.cut * epoch / self.epoch, self.answers * epoch / self.epoch)


def plan_work(full: WorkPlan, speed: Speed, *, can_hold_out: bool = True) -> WorkPlan:
    """Give the largest plan that keeps to the time of an effort, and say what it leaves out.

    `can_hold_out` says that the validation part alone could be judged.
    """
    plan = with_baselines(full, speed.epoch, can_hold_out) if full.epochs else full
    return noted(full, with_candidates(plan, speed, CANDIDATES_SHARE * full.seconds), speed.epoch)


def plan_again(full: WorkPlan, plan: WorkPlan, speed: Speed, seconds: float) -> WorkPlan:
    """Give what can be made of trained baselines in the time left, their speed being known by now."""
    wanted = replace(full, design=plan.design, folds=plan.folds, seeds=plan.seeds, epochs=plan.epochs)
    return noted(full, with_candidates(wanted, speed, seconds), speed.epoch)


def with_baselines(full: WorkPlan, epoch_seconds: float, can_hold_out: bool) -> WorkPlan:
    """Leave out seeds, then folds, until the baselines can be trained for enough epochs."""
    if full.baselines * full.epochs * epoch_seconds <= full.too_long * BASELINE_SHARE * full.seconds:
        return full
    for plan in thinner(full, can_hold_out):
        epochs = int(BASELINE_SHARE * full.seconds / (plan.baselines * epoch_seconds))
        if epochs >= ENOUGH * full.epochs:
            break
    return replace(plan, epochs=min(max(epochs, FEWEST_EPOCHS), full.epochs))


def thinner(full: WorkPlan, can_hold_out: bool) -> Iterator[WorkPlan]:
    """Give plans with fewer and fewer baselines; the last has one, judged on samples held out from all, if it can."""
    yield full
    yield replace(full, seeds=1)
    yield replace(full, seeds=1, folds=min(full.folds, 3))
    if can_hold_out:
        yield replace(full, seeds=1, folds=2, design="held out")


def with_candidates(full: WorkPlan, speed: Speed, allowed: float) -> WorkPlan:
    """Shorten fine-tuning, then leave out the slowest methods and the smallest sizes, until all can be made in time."""
    if full.seconds_of_candidates(speed.epoch) + full.seconds_of_cuts(speed.cut) <= full.too_long * allowed:
        return full
    for plan in narrower(full):
        training = allowed - plan.seconds_of_cuts(speed.cut)
        epochs = int(plan.finetuning_epochs * training / plan.seconds_of_candidates(speed.epoch))
        if epochs >= ENOUGH * full.finetuning_epochs:
            break
    return replace(plan, finetuning_epochs=min(max(epochs, FEWEST_EPOCHS), full.finetuning_epochs))


def narrower(plan: WorkPlan) -> Iterator[WorkPlan]:
    """Give plans with fewer and fewer methods, then sizes; the last has one method and three sizes."""
    yield plan
    while len(plan.methods) > 1:
        slowest = max(plan.methods, key=TIMES.__getitem__)
        plan = replace(plan, methods=tuple(method for method in plan.methods if method != slowest))
        yield plan
    while len(plan.ratios) > 3:
        plan = replace(plan, ratios=plan.ratios[::2] if len(plan.ratios) > 5 else plan.ratios[:-1])
        yield plan


def noted(full: WorkPlan, plan: WorkPlan, epoch_seconds: float) -> WorkPlan:
    """Say what the clock left out."""
    if plan == full:
        return plan
    words = {"design": "samples judged", "folds": "folds", "seeds": "seeds", "epochs": "epochs"}
    words |= {"finetuning_epochs": "epochs of fine-tuning", "ratios": "sizes", "methods": "methods"}
    less = [
        f"{word}: {shown(getattr(plan, name))} in the place of {shown(getattr(full, name))}"
        for name, word in words.items()
        if getattr(plan, name) != getattr(full, name)
    ]
    note = f"an epoch takes {epoch_seconds:.2g} s, so that the time of {full.seconds} s leaves {'; '.join(less)}"
    return replace(plan, notes=(*plan.notes, note))


def shown(value: object) -> str:
    """Write a number, a word or several."""
    return ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)
