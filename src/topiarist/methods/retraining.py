"""After the cut: fine-tuning, or rewinding the learning rate or the weights (Renda, Frankle and Carbin, 2020)."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, Literal

import torch
from pydantic import Field
from torch import nn

from topiarist.errors import ModelError, SettingsError
from topiarist.methods.job import Job
from topiarist.models import attach, card_of
from topiarist.randomness import child_seed
from topiarist.settings import Settings
from topiarist.surgery import Plan, plan_of
from topiarist.surgery.applying import copied_with_plan
from topiarist.surgery.edits.plan import attach_plan
from topiarist.surgery.replaying import rebuild
from topiarist.training import Distillation, History, TrainConfig, train_many
from topiarist.training.config import OptimizerName
from topiarist.training.fitting import OWN_LOSS
from topiarist.training.pruning import Pruning


class FineTuning(Settings):
    """Train the cut network for some epochs at a rate that falls by a cosine."""

    kind: Literal["fine-tuning"] = "fine-tuning"
    epochs: int = Field(default=5, ge=1, description="Epochs of fine-tuning after each cut.")
    learning_rate: float = Field(default=0.002, gt=0, description="Highest learning rate of fine-tuning.")
    batch_size: int = Field(default=32, ge=1, description="Samples per step of fine-tuning.")
    optimizer: OptimizerName = Field(default="adam", description="Optimizer of fine-tuning.")
    distillation: Distillation | None = Field(
        default=Distillation(), description="Also learn what the uncut network answers."
    )


class Rewinding(Settings):
    """Repeat the original training from an early epoch on, with its rates, on the cut network.

    Its weights stay as they are, or with `weights` go back to those that the network had after that epoch: `resize` is
    then given the network of that epoch as `early`. `training` is the original one; unless given, it is what the
    network remembers.
    """

    kind: Literal["rewinding"] = "rewinding"
    epoch: int = Field(ge=0, description="Repeat the original training from this epoch on, with its learning rates.")
    weights: bool = Field(default=False, description="Also go back to the weights of that epoch.")
    training: TrainConfig | None = None
    distillation: Distillation | None = Field(default=None, description="Also learn what the uncut network answers.")


Retraining = Annotated[FineTuning | Rewinding, Field(discriminator="kind")]


def retrain(
    jobs: Sequence[Job],
    networks: Sequence[nn.Module],
    retraining: FineTuning | Rewinding,
    *,
    pruning: Pruning | None = None,
) -> list[tuple[nn.Module, History]]:
    """Return trained copies of cut networks, pruned on the way if asked; networks of one shape are trained as one."""
    configs = [_training(job, retraining) for job in jobs]
    if pruning is not None:
        configs = [TrainConfig(**{**dict(config), "pruning": pruning}) for config in configs]
    starts = [_start(job, cut, retraining) for job, cut in zip(jobs, networks, strict=True)]
    teachers = None if retraining.distillation is None else [job.whole for job in jobs]
    histories = train_many(starts, [job.labelled("retraining") for job in jobs], configs, teachers=teachers)
    for network, job in zip(starts, jobs, strict=True):
        attach(network, replace(card_of(network), training=card_of(job.whole).training))
    return list(zip(starts, histories, strict=True))


def _training(job: Job, retraining: FineTuning | Rewinding) -> TrainConfig:
    known = card_of(job.whole).training
    if (
        known is not None
        and known.get("loss") == OWN_LOSS
        and (isinstance(retraining, FineTuning) or not retraining.training)
    ):
        raise SettingsError(
            "the network was trained by a loss of your own, which is not saved with it: train the cut network yourself"
        )
    if isinstance(retraining, FineTuning):
        return TrainConfig(
            **retraining.model_dump(exclude={"kind", "distillation"}),
            loss=None if known is None else known.get("loss"),
            distillation=retraining.distillation,
            schedule="cosine",
            seed=child_seed(job.seed, "fine-tuning") % 2**32,
        )
    if retraining.training is None and known is None:
        raise SettingsError("rewinding repeats the original training, and the network does not remember it: give it")
    original = TrainConfig(**{**(known or {}), "device": None}) if retraining.training is None else retraining.training
    if original.steps is None and retraining.epoch >= original.epochs:
        raise SettingsError(
            f"the training has {original.epochs} epochs: it cannot continue from epoch {retraining.epoch}"
        )
    changes = {"after_epoch": retraining.epoch, "until_epoch": None, "distillation": retraining.distillation}
    return TrainConfig(**{**original.model_dump(), **changes})


def _start(job: Job, cut: nn.Module, retraining: FineTuning | Rewinding) -> nn.Module:
    """Return the network that training begins with: a copy of the cut one, or its structure with early weights."""
    if not (isinstance(retraining, Rewinding) and retraining.weights):
        return copied_with_plan(cut)
    if job.early is None:
        raise SettingsError("rewinding the weights needs the network of the early epoch: give it as early")
    known = card_of(job.early).training
    if known is not None and (found := _end_of(TrainConfig(**{**known, "loss": None}))) != f"epoch {retraining.epoch}":
        raise SettingsError(f"the early network is that of {found}; epoch {retraining.epoch} is asked for")
    return rewind(job.whole, cut, job.early)


def _end_of(config: TrainConfig) -> str:
    if config.until_epoch is None and config.steps is not None:
        return f"step {config.steps}"
    return f"epoch {config.epochs if config.until_epoch is None else config.until_epoch}"


def rewind(whole: nn.Module, cut: nn.Module, early: nn.Module) -> nn.Module:
    """Return a network with the structure of the cut one and the weights of an early one; new biases are zero."""
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
