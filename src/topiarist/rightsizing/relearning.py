"""What is handed out learns once more when all is decided: from the rows of the validation part too.

No decision is made on networks that have seen the validation part. Where rows are few, it is then worth more to learn
from (benchmarks/README.md: what more rows are worth). The test part remains unseen: it confirms what learned so.
"""

from collections.abc import Mapping
from dataclasses import replace

import numpy
import torch
from torch import nn

from topiarist.data import Data, Part
from topiarist.models import attach, card_of
from topiarist.randomness import child_seed
from topiarist.rightsizing.folds import FEW_ROWS, Fold, to_train_on
from topiarist.rightsizing.making import MadeNetwork, TaughtFolds, TrainingTask, train_taught
from topiarist.rightsizing.planning import WorkPlan
from topiarist.rightsizing.running import Crew
from topiarist.rightsizing.teaching import REPEATED, with_teachers
from topiarist.training import TabularConfig
from topiarist.training.inference import part_logits
from topiarist.training.tables.config import TableTeacherName

STAGE = "relearned"
# The last teacher is fitted once, so that it may choose among all that there is. Eight other splits (402 to 409) of
# Glass, Sonar and Ionosphere, 80 % of the rows: accuracy 66.9 → 70.1, 85.4 → 86.6 and 92.3 → 92.9, for a second more.
LAST = TabularConfig(least_boosting=REPEATED.least_boosting)


def can_learn_more(fold: Fold, plan: WorkPlan, teacher: TableTeacherName | None) -> bool:
    """Return whether there is more to learn: few rows of a table, and a teacher that learns from their targets.

    Where the validation part is judged, and where inputs of the training part were made of its targets, there is not.
    """
    train, held = fold.data.train, fold.data.validation
    if not isinstance(train, Part) or not isinstance(held, Part) or plan.design != "refitted":
        return False
    cross_fitted = teacher in ("ensemble", "boosting", "both") and fold.lesson is not None
    return cross_fitted and train.effects is None and len(train) + len(held) < FEW_ROWS


def relearned(
    networks: Mapping[str, nn.Module],
    fold: Fold,
    plan: WorkPlan,
    teacher: TableTeacherName,
    seed: int,
    crew: Crew | None = None,
) -> dict[str, nn.Module]:
    """Return networks after as much training as they had, by a teacher of the training and validation part.

    Those whose answers are not finite after it are left out.
    """
    own = child_seed(seed, STAGE)
    more = replace(fold, data=with_more(to_train_on(fold.data)))
    (taught,) = with_teachers([more], teacher, own, crew, stage=f"{STAGE}-teacher", config=LAST)
    task = TrainingTask(
        stage=STAGE,
        epochs=plan.finetuning_epochs,
        folds=tuple(range(len(networks))),
        seeds=tuple(child_seed(own, "network", number) % 2**32 for number in range(len(networks))),
        networks=tuple(MadeNetwork(network, (), (), None) for network in networks.values()),
    )
    shared = TaughtFolds(folds=[taught] * len(networks))
    (made,) = (crew or Crew()).run(train_taught, [task], shared.lean, list(networks.values()))
    found = {name: made.networks[place].model for place, name in enumerate(networks)}
    for name, network in found.items():
        attach(network, card_of(networks[name]))
    return {name: network for name, network in found.items() if _is_finite(network, fold.data)}


def with_more(data: Data) -> Data:
    """Return data whose training part has the rows of the validation part too."""
    train, held = data.train, data.validation
    assert isinstance(train, Part) and isinstance(held, Part)
    weights = None if train.weights is None or held.weights is None else torch.cat([train.weights, held.weights])
    groups = None if train.groups is None or held.groups is None else numpy.concatenate([train.groups, held.groups])
    return replace(data, train=Part(torch.cat([train.x, held.x]), torch.cat([train.y, held.y]), groups, weights))


def _is_finite(network: nn.Module, data: Data) -> bool:
    return bool(part_logits(network, data.validation)[0].isfinite().all())
