"""After the cut: fine-tuning, or rewinding the learning rate or the weights (Renda, Frankle and Carbin, 2020)."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Literal

import torch
from pydantic import Field
from torch import nn

from topiarist.data import Data
from topiarist.errors import ModelError, SettingsError
from topiarist.models import attach, card_of
from topiarist.models.copying import copied
from topiarist.randomness import child_seed
from topiarist.settings import Settings
from topiarist.surgery import Plan, plan_of
from topiarist.surgery.applying import rebuild
from topiarist.surgery.edits.plan import attach_plan
from topiarist.training import Distillation, History, TrainConfig, train_many
from topiarist.training.config import OptimizerName
from topiarist.training.pruning import Pruning


class FineTuning(Settings):
    """Train the cut network for some epochs at a falling rate; with `distillation`, also on the uncut one's answers."""

    kind: Literal["fine-tuning"] = "fine-tuning"
    epochs: int = Field(default=5, ge=1)
    learning_rate: float = Field(default=0.002, gt=0)
    batch_size: int = Field(default=32, ge=1)
    optimizer: OptimizerName = "adam"
    distillation: Distillation | None = Distillation()


class Rewinding(Settings):
    """Repeat the original training from an early epoch on, with its rates, on the cut network.

    Its weights stay as they are, or with `weights` go back to those that the network had after that epoch: `shape` is
    then given the network of that epoch as `early`. `training` is the original one; unless given, it is what the
    network remembers.
    """

    kind: Literal["rewinding"] = "rewinding"
    epoch: int = Field(ge=0)
    weights: bool = False
    training: TrainConfig | None = None
    distillation: Distillation | None = None


Retraining = Annotated[FineTuning | Rewinding, Field(discriminator="kind")]


def training_of(model: nn.Module, retraining: FineTuning | Rewinding, seed: int) -> TrainConfig:
    """Give how a network is trained after the cut."""
    if isinstance(retraining, FineTuning):
        return TrainConfig(
            **retraining.model_dump(exclude={"kind", "distillation"}),
            distillation=retraining.distillation,
            schedule="cosine",
            seed=child_seed(seed, "fine-tuning") % 2**32,
        )
    original = retraining.training if retraining.training is not None else remembered_training(model)
    if original.steps is None and retraining.epoch >= original.epochs:
        raise SettingsError(f"the training has {original.epochs} epochs: it cannot go on from epoch {retraining.epoch}")
    changes = {"after_epoch": retraining.epoch, "until_epoch": None, "distillation": retraining.distillation}
    return TrainConfig(**{**original.model_dump(), **changes})


def end_of(config: TrainConfig) -> str:
    """Return where a training ended: after an epoch, or after a step."""
    if config.until_epoch is None and config.steps is not None:
        return f"step {config.steps}"
    return f"epoch {config.epochs if config.until_epoch is None else config.until_epoch}"


def remembered_training(model: nn.Module) -> TrainConfig:
    """Give how a network was trained, which it has on its card."""
    known = card_of(model).training
    if known is None:
        raise SettingsError("rewinding repeats the original training, and the network does not remember it: give it")
    return TrainConfig(**known)


@dataclass(frozen=True, kw_only=True)
class Pupil:
    """A network that was cut from a whole one, to be trained again; `early` is what its weights are rewound to."""

    whole: nn.Module
    cut: nn.Module
    data: Data
    early: nn.Module | None
    seed: int

    def start(self, retraining: FineTuning | Rewinding) -> nn.Module:
        """Give the network that training begins with."""
        if not (isinstance(retraining, Rewinding) and retraining.weights):
            return copied_with_edits(self.cut)
        if self.early is None:
            raise SettingsError("rewinding the weights needs the network of the early epoch: give it as early")
        known = card_of(self.early).training
        if known is not None and (found := end_of(TrainConfig(**known))) != f"epoch {retraining.epoch}":
            raise SettingsError(f"the early network is that of {found}; epoch {retraining.epoch} is asked for")
        return rewind(self.whole, self.cut, self.early)


def retrain(
    pupils: Sequence[Pupil], retraining: FineTuning | Rewinding, *, pruning: Pruning | None = None
) -> list[tuple[nn.Module, History]]:
    """Give trained copies of networks, pruned on the way if asked, and what happened; alike ones are trained as one."""
    configs = [training_of(pupil.whole, retraining, pupil.seed) for pupil in pupils]
    if pruning is not None:
        configs = [TrainConfig(**{**dict(config), "pruning": pruning}) for config in configs]
    networks = [pupil.start(retraining) for pupil in pupils]
    teachers = None if retraining.distillation is None else [pupil.whole for pupil in pupils]
    histories = train_many(networks, [pupil.data for pupil in pupils], configs, teachers=teachers)
    for network, pupil in zip(networks, pupils, strict=True):
        attach(network, replace(card_of(network), training=card_of(pupil.whole).training))
    return list(zip(networks, histories, strict=True))


def copied_with_edits(model: nn.Module) -> nn.Module:
    """Copy a network with its plan."""
    copy = copied(model)
    attach_plan(copy, plan_of(model))
    return copy


def rewind(whole: nn.Module, cut: nn.Module, early: nn.Module) -> nn.Module:
    """Give a network with the structure of the cut one and the weights of an early one; new biases are zero."""
    before, plan = plan_of(whole), plan_of(cut)
    edits = plan.edits[len(before) :]
    try:
        network = rebuild(Plan(edits, plan.example), early)
    except (ModelError, AttributeError, RuntimeError) as error:
        raise ModelError(f"the early network is not of the structure of the one that was cut: {error}") from error
    if {name: value.shape for name, value in network.state_dict().items()} != {
        name: value.shape for name, value in cut.state_dict().items()
    }:
        raise ModelError("the early network is not of the structure of the one that was cut")
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.nan_to_num_(nan=0.0)
    attach_plan(network, plan)
    return network
