"""Networks that learned nothing, or whose units are mostly dead, are noticed and trained again before they count.

A comparison with a dead baseline is no result. Inputs that are far from centred, or a rate that is too high, let the
first steps move every pre-activation of a wide layer by whole units: ReLU units die, and plain training ends at chance.
"""

import copy
import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn

from topiarist.data import AnyPart, Data, Part
from topiarist.errors import ModelError, TopiaristWarning
from topiarist.models.evaluation import numbers_of, placed
from topiarist.randomness import child_seed
from topiarist.surgery import GrowSpace, Plan, Recommendation, RemoveUnits, apply, recommend
from topiarist.training.centring import Centring, centring_for, sample_of
from topiarist.training.chance import tells_apart
from topiarist.training.config import TrainConfig
from topiarist.training.history import History
from topiarist.training.inference import part_logits
from topiarist.training.metrics import log_loss
from topiarist.training.train import train_many

MOSTLY = 0.5  # of all hidden units; after an epoch of CIFAR-10 with pixels in [0, 1], 321 of 500 ReLU units were dead
LUCK = 0.01  # a network that learned little is taken for one that learned nothing: that costs time, and loses nothing
FEWEST_STEPS = 100  # of a training that should have come to something: a race of the Surgeon tells widths apart by 125
FEWER = 10.0  # by what the rate is divided or multiplied: the usual grid of rates

State = Mapping[str, Tensor]


@dataclass(frozen=True)
class Condition:
    """What is wrong with a trained network.

    `learned` is False where its answers have nothing to do with the classes; `dead` units by space, of `units` in all.
    """

    learned: bool
    dead: Mapping[str, tuple[int, ...]]
    units: int

    @property
    def mostly_dead(self) -> bool:
        """Whether at least half of the hidden units never vary."""
        return self.units > 0 and sum(map(len, self.dead.values())) >= MOSTLY * self.units

    @property
    def sound(self) -> bool:
        """Whether the network can be compared with others."""
        return self.learned and not self.mostly_dead

    def __str__(self) -> str:
        said = [] if self.learned else ["does not tell the classes of its training samples apart"]
        if self.mostly_dead:
            said.append(f"has {sum(map(len, self.dead.values()))} dead of {self.units} hidden units")
        return " and ".join(said)


@dataclass(frozen=True)
class Attempt:
    """Another way to train a network that ails: from which weights, at how many times the rate, on which inputs."""

    name: str
    state: State
    rate: float = 1.0
    centring: Centring | None = None


def train_with_rescue(
    models: Sequence[nn.Module], datas: Sequence[Data], configs: Sequence[TrainConfig], **options: Any
) -> tuple[list[History], tuple[str, ...]]:
    """Train networks in place as `train_many` does, and train those that ail again, in up to three other ways.

    What made fewer than 100 steps had no time to learn, and is left alone.

    Returns the histories, and one line for each network that ailed: what was wrong, what was tried, what helped. The
    weights that are kept are those of the lowest log loss on the validation part, or on the training part without one.
    """
    starts = [copy.deepcopy(model.state_dict()) for model in models]
    histories = train_many(models, datas, configs, **options)
    notes = []
    for number, (model, data, config) in enumerate(zip(models, datas, configs, strict=True)):
        steps = len(histories[number]) * steps_in_epoch(len(data.train), config.batch_size)
        if steps < FEWEST_STEPS or (condition := condition_of(model, data.train)).sound:
            continue
        histories[number], note = rescued(model, starts[number], data, config, condition, histories[number])
        notes.append(note)
    return histories, tuple(dict.fromkeys(notes))


def rescued(
    model: nn.Module, start: State, data: Data, config: TrainConfig, condition: Condition, history: History
) -> tuple[History, str]:
    """Train a network that ails again, in place, until it is sound; return its history and what to say of it."""
    best, state, helped = judged(model, data), copy.deepcopy(model.state_dict()), None
    tried = attempts(model, start, data, config, condition)
    for attempt in tried:
        found = attempted(model, attempt, data, config)
        if (loss := judged(model, data)) < best:
            best, state, helped, history = loss, copy.deepcopy(model.state_dict()), attempt.name, found
        if helped == attempt.name and condition_of(model, data.train).sound:
            break
    model.load_state_dict(state)
    if helped is None:
        listed = ", ".join(attempt.name for attempt in tried)
        return history, f"the network {condition}; training it again did not help ({listed}): it is kept as it was"
    return history, f"the network {condition}: it was trained again {helped}"


def attempted(model: nn.Module, attempt: Attempt, data: Data, config: TrainConfig) -> History:
    """Train a network in another way, in place; it reads the inputs that it read before."""
    model.load_state_dict(attempt.state)
    again = config.model_copy(update={"learning_rate": attempt.rate * config.learning_rate})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TopiaristWarning)  # of an attempt that diverged: the note says what helped
        (found,) = train_many([model], [data if attempt.centring is None else attempt.centring.of(data)], [again])
    if attempt.centring is not None:
        model.load_state_dict(attempt.centring.folded(model.state_dict()))
    return found


def attempts(
    model: nn.Module, start: State, data: Data, config: TrainConfig, condition: Condition
) -> tuple[Attempt, ...]:
    """Return what to try: centred inputs, a lower rate, and then fresh units or, where none are dead, a higher rate."""
    fresh = renewed(model, condition, data.train, config.seed)
    centring = centring_for(model, data.train)
    return (
        *([] if centring is None else [Attempt("on centred inputs", start, centring=centring)]),
        Attempt("at a tenth of the rate", start, 1 / FEWER),
        Attempt("at ten times the rate", start, FEWER)
        if fresh is None
        else Attempt("with fresh units at a tenth of the rate", fresh, 1 / FEWER),
    )


def steps_in_epoch(samples: int, batch_size: int) -> int:
    """Return the number of batches of an epoch, the last of which may be smaller."""
    return math.ceil(samples / batch_size)


def judged(model: nn.Module, data: Data) -> float:
    """Return the log loss on the validation part, or on the training part without one; infinite if it diverged."""
    found = log_loss(*part_logits(model, data.validation if len(data.validation) else data.train))
    return found if math.isfinite(found) else math.inf


def condition_of(model: nn.Module, part: AnyPart) -> Condition:
    """Return whether a network learned anything, and which of its units are dead, by some training samples."""
    some = sample_of(part)
    if some is None:
        return Condition(learned=True, dead={}, units=0)
    advice = advice_for(model, some)
    names = () if advice is None else tuple(advice.spaces)
    dead = {name: units for name in names if advice is not None and (units := advice.health(name).dead)}
    return Condition(tells_apart(model, some, LUCK), dead, 0 if advice is None else sum(advice.spaces.values()))


def advice_for(model: nn.Module, part: Part) -> Recommendation | None:
    """Return what tells of the network's units; None where its code cannot be followed."""
    x = placed(part.x, numbers_of(model))
    try:
        return recommend(model, x[:2], calibration=x, labels=part.y)
    except ModelError:
        return None


def renewed(model: nn.Module, condition: Condition, part: AnyPart, seed: int) -> State | None:
    """Return the weights of a network with fresh units in the place of dead ones; None where none can be replaced."""
    some = sample_of(part)
    if some is None or not condition.dead:
        return None
    grown = [
        GrowSpace(space=name, by=len(units), seed=child_seed(seed, "rescue", name))
        for name, units in condition.dead.items()
    ]
    gone = RemoveUnits(units=dict(condition.dead))
    fresh = apply(Plan((*grown, gone)), model, placed(some.x[:2], numbers_of(model)))
    return fresh.state_dict()
