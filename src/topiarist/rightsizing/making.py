"""Makes smaller networks of a baseline, one way a method, and lets each learn from the baselines' answers."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import nn
from torch.nn.modules.conv import _ConvNd

from topiarist.data import Data
from topiarist.errors import ModelError
from topiarist.measurement import Budget
from topiarist.methods import Distinctiveness, Factorisation, FineTuning, GeneticFront, Magnitude, Method, Surgeon
from topiarist.methods.retraining import copied_with_edits
from topiarist.methods.shaping import Shaping, cut_together
from topiarist.models import attach, card_for
from topiarist.models.stacked import stackable
from topiarist.randomness import child_seed
from topiarist.rightsizing.baseline import LEARNING_RATE, training_of
from topiarist.rightsizing.effort import MethodName
from topiarist.rightsizing.folds import Fold
from topiarist.surgery import Plan, apply
from topiarist.surgery.choice.allotment import Losses
from topiarist.surgery.choice.costs import Costs, Measure
from topiarist.tracing import anatomy
from topiarist.training import Distillation, History, TrainConfig
from topiarist.training.padded import train_padded

SEARCHED = {"magnitude": 0.04, "surgeon": 0.1}  # of the epochs of fine-tuning that they train before it
RATES = {True: 0.02, False: 0.005}  # of networks that are trained as one stack, or one by one
BLOCKS = {"AVX512": 16}  # channels that a processor computes at once; 8 unless known
ROOM = 1.5  # times the fewest that widths of a multiple come to, below which finer steps are taken
STEPS, TRIES = 200, 5  # of a share of units
DISTILLATION = Distillation(weight=0.9, temperature=3.0)


@dataclass(frozen=True)
class Target:
    """What a smaller network may have at most, and how many times smaller that is."""

    ratio: float
    limits: Mapping[Measure, int]

    @property
    def budget(self) -> Budget:
        """The limits as a budget."""
        return Budget(parameters=self.limits["parameters"], macs=self.limits["macs"])


@dataclass(frozen=True, kw_only=True)
class Made:
    """A network that a method made, why it is as it is, how it was trained since, and its lineage, if it has one."""

    model: nn.Module
    reasons: tuple[str, ...]
    histories: tuple[History, ...] = ()
    lineage: Mapping[str, Any] | None = None


Make = Callable[[Fold, Target, int], Made]


def proposed(method: Method) -> Make:
    """Give what makes the network that a method proposes."""

    def make(fold: Fold, target: Target, epochs: int) -> Made:
        task = replace(fold.job.task(fold.whole, 1.0), limits=target.limits, memory=fold.memory)
        proposal = method.propose(task)
        network = apply(Plan(proposal.edits), task.model, task.example_input, calibration=task.calibration)
        return Made(model=network, reasons=proposal.reasons)

    return make


def by_distinctiveness(fold: Fold, target: Target, epochs: int) -> Made:
    """Remove units that others make up for; channels go in blocks, as far as the limits leave a choice."""
    return proposed(Distinctiveness(multiple_of=multiple_for(fold, target)))(fold, target, epochs)


def multiple_for(fold: Fold, target: Target) -> int:
    """Give what widths should be a multiple of: 1 for perceptrons, for others a block or the half, a quarter … of it.

    A convolution of 9 channels takes as long as one of 16.
    """
    if not any(isinstance(module, _ConvNd) for module in fold.whole.modules()):
        return 1
    costs = Costs(fold.whole, anatomy(fold.whole, fold.job.sample, partial=True))
    multiple = BLOCKS.get(torch.backends.cpu.get_cpu_capability(), 8)
    while multiple > 1 and not leaves_room(Losses(costs, {}, multiple), target):
        multiple //= 2
    return multiple


def leaves_room(losses: Losses, target: Target) -> bool:
    """Say whether the narrowest network is far enough below the limits."""
    return all(ROOM * losses.fewest(measure) <= limit for measure, limit in target.limits.items())


def factorised(fold: Fold, target: Target, epochs: int) -> Made:
    """Remove units down to half of the way, and make two thinner layers of those that are left."""
    halfway = Target(target.ratio / 2, {measure: 2 * limit for measure, limit in target.limits.items()})
    cut = MAKERS["distinctiveness"](fold, halfway, epochs)
    thin = MAKE_THIN(replace(fold, whole=cut.model, memory={}), target, epochs)
    return replace(thin, reasons=(*cut.reasons, *thin.reasons))


def by_magnitude(fold: Fold, target: Target, epochs: int) -> Made:
    """Prune units while training; what is left has no zeros, and its file is a plain one."""
    retraining = FineTuning(epochs=epochs_of("magnitude", epochs), learning_rate=LEARNING_RATE)
    costs = Costs(fold.whole, anatomy(fold.whole, fold.job.sample, partial=True))
    for sparsity in sparsities(costs, target):
        made = shaped(fold, Shaping(method=Magnitude(units=True, sparsity=sparsity), retraining=retraining))
        left = Costs(made.model, anatomy(made.model, fold.job.sample, partial=True))
        if within(left, {}, target):
            attach(made.model, replace(card_for(made.model, fold.data), bits=None))
            return made
    raise ModelError("magnitude cannot remove as many units as the limits ask for")


def sparsities(costs: Costs, target: Target) -> Iterator[float]:
    """Give shares of the units whose removal from each space should keep the limits, and then a few larger ones."""
    tried = 0
    for step in range(1, STEPS):
        share = step / STEPS
        kept = {name: max(1, size - round(share * size)) for name, size in costs.widths.items()}
        if tried < TRIES and within(costs, kept, target):
            tried += 1
            yield share


def within(costs: Costs, widths: Mapping[str, int], target: Target) -> bool:
    """Say whether a network of some widths keeps the limits."""
    return all(getattr(costs, measure)(widths) <= limit for measure, limit in target.limits.items())


def by_surgeon(fold: Fold, target: Target, epochs: int) -> Made:
    """Cut to size, then train, and change the topology on the way."""
    usual = training_of(fold.data, epochs_of("surgeon", epochs), fold.seed)
    surgeon = Surgeon(training=TrainConfig(**{**dict(usual), "early_stopping": None}))
    return shaped(fold, Shaping(method=surgeon, budget=target.budget))


def epochs_of(method: str, epochs: int) -> int:
    """Give for how many epochs a method trains before the fine-tuning."""
    return max(1, round(SEARCHED[method] * epochs))


def shaped(fold: Fold, shaping: Shaping) -> Made:
    """Let a method that cuts while it trains do its work."""
    (found,) = cut_together([fold.job], shaping)
    return Made(model=found.model, reasons=found.reasons, histories=found.histories, lineage=found.lineage)


MAKE_THIN = proposed(Factorisation())


MAKERS: Mapping[MethodName, Make] = {
    "distinctiveness": by_distinctiveness,
    "genetic": proposed(GeneticFront(population=40, generations=30)),
    "factorisation": factorised,
    "magnitude": by_magnitude,
    "surgeon": by_surgeon,
}


def finetune(made: Sequence[Made], folds: Sequence[Fold], epochs: int, seeds: Sequence[int]) -> list[Made]:
    """Give networks that have learned from the answers of their fold's baselines, those of one shape together.

    What would be the same training in several folds is done once, in the last of them.
    """
    keys = [(id(each), fold.lesson, seed) for each, fold, seed in zip(made, folds, seeds, strict=True)]
    last = {key: number for number, key in enumerate(keys)}
    networks = [copied_with_edits(made[number].model) for number in last.values()]
    places = [folds[number] for number in last.values()]
    configs = [
        finetuning(network, folds[number].data, epochs, seeds[number])
        for network, number in zip(networks, last.values(), strict=True)
    ]
    teachers = [fold.teacher for fold in places]
    histories = train_padded(networks, [fold.data for fold in places], configs, teachers=teachers)
    found = {
        key: replace(made[number], model=network, histories=(*made[number].histories, history))
        for (key, number), network, history in zip(last.items(), networks, histories, strict=True)
    }
    return [found[key] for key in keys]


def finetuning(network: nn.Module, data: Data, epochs: int, seed: int) -> TrainConfig:
    """Give how a smaller network is trained after the cut."""
    usual = training_of(data, epochs, child_seed(seed, "fine-tuning") % 2**32)
    rate = RATES[stackable(network)]
    changes = {"early_stopping": None, "learning_rate": rate, "distillation": DISTILLATION}
    return TrainConfig(**{**dict(usual), **changes})
