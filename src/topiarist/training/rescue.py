"""Networks that learned nothing, or whose units are mostly dead, are noticed and trained again before they count.

A comparison with a dead baseline is no result. Inputs that are far from centred, or a rate that is too high, let the
first steps move every pre-activation of a wide layer by whole units: ReLU units die, and plain training ends at chance.
"""

import copy
import math
import warnings
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from torch import Tensor, nn

from topiarist.data import AnyPart, Data
from topiarist.errors import ModelError, TopiaristWarning
from topiarist.models.evaluation import numbers_of, placed
from topiarist.models.stacked import signature, stackable
from topiarist.randomness import child_seed
from topiarist.surgery import GrowSpace, Plan, RemoveUnits, apply, recommend
from topiarist.tasks import Task
from topiarist.tracing import Anatomy, anatomy
from topiarist.training.centring import Centring, centring_for, some_samples
from topiarist.training.config import TrainConfig
from topiarist.training.fitting import train_many
from topiarist.training.history import History
from topiarist.training.inference import part_logits, weights_of
from topiarist.training.loop import OnEpoch
from topiarist.training.metrics import depends_on_targets

MOSTLY = 0.5  # of all hidden units; after an epoch of CIFAR-10 with pixels in [0, 1], 321 of 500 ReLU units were dead
SIGNIFICANCE = 0.01  # a network that learned little counts as one that learned nothing: that costs time only
FEWEST_STEPS = 100  # after which a training should show a result: races of the Surgeon separate widths by 125
RATE_FACTOR = 10.0  # by which the rate is divided or multiplied: the usual grid of rates

State = Mapping[str, Tensor]
Attempt = tuple[State, float, Centring | None]  # initial weights, how many times the rate, how to centre the inputs


@dataclass(frozen=True)
class NetworkHealth:
    """What is wrong with a trained network.

    `learned` is False where its answers do not depend on the targets; `dead` units by space, of `units` in all; `what`
    it does not tell apart is classes, unless it predicts something else.
    """

    learned: bool
    dead: Mapping[str, tuple[int, ...]]
    units: int
    what: str = "classes"

    @property
    def mostly_dead(self) -> bool:
        """Whether at least half of the hidden units never vary."""
        return self.units > 0 and sum(map(len, self.dead.values())) >= MOSTLY * self.units

    @property
    def healthy(self) -> bool:
        """Whether the network can be compared with others."""
        return self.learned and not self.mostly_dead

    def __str__(self) -> str:
        found = [] if self.learned else [f"does not tell the {self.what} of its training samples apart"]
        if self.mostly_dead:
            found.append(f"has {sum(map(len, self.dead.values()))} dead of {self.units} hidden units")
        return " and ".join(found)


def train_with_rescue(
    models: Sequence[nn.Module],
    datas: Sequence[Data],
    configs: Sequence[TrainConfig],
    *,
    checkpoint: Path | str | None = None,
    on_epoch: OnEpoch | None = None,
) -> tuple[list[History], tuple[str, ...]]:
    """Train networks in place as `train_many` does, and train those that failed again, in up to three other ways.

    A training of fewer than 100 steps had no time to learn, and is left alone.

    Returns the histories, and one line for each network that failed: what was wrong, what was tried, what helped. The
    weights that are kept are those of the lowest loss on the validation part, or on the training part without one.
    """
    starts = [copy.deepcopy(model.state_dict()) for model in models]
    histories = train_many(models, datas, configs, checkpoint=checkpoint, on_epoch=on_epoch)
    notes, anatomies = [], dict[Hashable, Anatomy]()
    for number, (model, data, config) in enumerate(zip(models, datas, configs, strict=True)):
        steps = len(histories[number]) * math.ceil(len(data.train) / config.batch_size)
        if steps < FEWEST_STEPS or (health := health_of(model, data.train, data.task, anatomies)).healthy:
            continue
        histories[number], note = _rescued(model, starts[number], data, config, health, histories[number])
        notes.append(note)
    return histories, tuple(dict.fromkeys(notes))


def _rescued(
    model: nn.Module, start: State, data: Data, config: TrainConfig, health: NetworkHealth, history: History
) -> tuple[History, str]:
    """Train a network again, in place, until it is healthy; return its history and a note."""
    best, state, helped = validation_loss(model, data), copy.deepcopy(model.state_dict()), None
    attempts = _attempts(model, start, data, config, health)
    for name, attempt in attempts.items():
        found = _try(*attempt, model, data, config)
        if (loss := validation_loss(model, data)) < best:
            best, state, helped, history = loss, copy.deepcopy(model.state_dict()), name, found
        if helped == name and health_of(model, data.train, data.task).healthy:
            break
    model.load_state_dict(state)
    if helped is None:
        tried = ", ".join(attempts)
        return history, f"the network {health}; training it again did not help ({tried}): it is kept as it was"
    return history, f"the network {health}: it was trained again {helped}"


def _attempts(
    model: nn.Module, start: State, data: Data, config: TrainConfig, health: NetworkHealth
) -> dict[str, Attempt]:
    """Return what to try: centred inputs, a lower rate, and then fresh units or, where none are dead, a higher rate."""
    attempts: dict[str, Attempt] = {}
    if (centring := centring_for(model, data.train)) is not None:
        attempts["on centred inputs"] = start, 1.0, centring
    attempts["at a tenth of the rate"] = start, 1 / RATE_FACTOR, None
    if (fresh := with_fresh_units(model, health, data.train, config.seed)) is not None:
        attempts["with fresh units at a tenth of the rate"] = fresh, 1 / RATE_FACTOR, None
    else:
        attempts["at ten times the rate"] = start, RATE_FACTOR, None
    return attempts


def _try(
    state: State, rate: float, centring: Centring | None, model: nn.Module, data: Data, config: TrainConfig
) -> History:
    """Train a network in another way, in place; it reads the inputs that it read before."""
    model.load_state_dict(state)
    again = config.model_copy(update={"learning_rate": rate * config.learning_rate})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TopiaristWarning)  # of an attempt that diverged: the note says what helped
        (found,) = train_many([model], data if centring is None else centring.of(data), again)
    if centring is not None:
        model.load_state_dict(centring.folded(model.state_dict()))
    return found


def validation_loss(model: nn.Module, data: Data) -> float:
    """Return the loss on the validation part, or on the training part without one; infinite if it diverged.

    It is the task's usual loss, whatever the network was trained by: the log loss of classes.
    """
    part = data.validation if len(data.validation) else data.train
    found = replace(data.task, loss=None, own_loss=None).loss_of(*part_logits(model, part), weights=weights_of(part))
    return found if math.isfinite(found) else math.inf


def health_of(
    model: nn.Module, part: AnyPart, task: Task | None = None, known: dict[Hashable, Anatomy] | None = None
) -> NetworkHealth:
    """Return whether a network learned anything, and which of its units are dead, by some training samples.

    `known` are anatomies of sequences of plain layers by their signature, so that many of one shape are traced once.
    """
    some, what = some_samples(part), "classes" if task is None else task.kind
    if some is None:
        return NetworkHealth(learned=True, dead={}, units=0, what=what)
    learned, x = depends_on_targets(model, some, task, significance=SIGNIFICANCE), placed(some.x, numbers_of(model))
    try:
        found = _anatomy_of(model, x[:2], {} if known is None else known)
        advice = recommend(model, x[:2], calibration=x, labels=some.y, task=task, anatomy=found)
    except ModelError:  # the network's code cannot be followed
        return NetworkHealth(learned, dead={}, units=0, what=what)
    dead = {name: units for name in advice.spaces if (units := advice.health(name).dead)}
    return NetworkHealth(learned, dead, sum(advice.spaces.values()), what)


def _anatomy_of(model: nn.Module, example: Tensor, known: dict[Hashable, Anatomy]) -> Anatomy | None:
    """Return the anatomy of a sequence of plain layers, traced once for all of its signature; None for another."""
    if not stackable(model):
        return None
    key = signature(model)
    if key not in known:
        known[key] = anatomy(model, example)
    return known[key]


def with_fresh_units(model: nn.Module, health: NetworkHealth, part: AnyPart, seed: int) -> State | None:
    """Return the weights of a network with fresh units in the place of dead ones; None where none can be replaced."""
    some = some_samples(part)
    if some is None or not health.dead:
        return None
    grown = [
        GrowSpace(space=name, by=len(units), seed=child_seed(seed, "rescue", name))
        for name, units in health.dead.items()
    ]
    plan = Plan((*grown, RemoveUnits(units=dict(health.dead))))
    return apply(plan, model, placed(some.x[:2], numbers_of(model))).state_dict()
