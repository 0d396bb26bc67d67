"""The one training loop: for one network or many, by whatever engine runs them."""

import copy
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

import torch
from torch import nn

from topiarist.data import Data
from topiarist.errors import SettingsError
from topiarist.models.evaluation import evaluating, numbers_of
from topiarist.randomness import child_seed, isolated
from topiarist.tasks import Task
from topiarist.training.checkpoint import Checkpoint, Snapshot
from topiarist.training.config import TrainConfig
from topiarist.training.engines import make_engine
from topiarist.training.engines.batching import Batch, make_batches
from topiarist.training.engines.steps import State
from topiarist.training.history import Epoch, History, TrainingRun
from topiarist.training.inference import weights_of
from topiarist.training.preparation import Teacher, answers_beforehand
from topiarist.training.sums import LossSums

Score = Callable[[nn.Module], float]
OnEpoch = Callable[[int, Sequence[Epoch]], None]


class Loop:
    """Trains networks that one engine runs, epoch by epoch; those that stop leave, the others continue.

    `score`, where given, is what early stopping and performance scheduling watch (larger is better) in the place of the
    monitored metric.
    """

    def __init__(
        self,
        models: Sequence[nn.Module],
        datas: Sequence[Data],
        configs: Sequence[TrainConfig],
        teachers: Sequence[Teacher],
        *,
        stacked: bool,
        score: Score | None,
        checkpoint: Checkpoint | None,
    ) -> None:
        self.models, self.score, self.checkpoint = list(models), score, checkpoint
        self.tasks = [data.task.with_loss(config.loss) for data, config in zip(datas, configs, strict=True)]
        self.best: dict[int, State] = {}
        self.active, self.done_epochs = list(range(len(models))), configs[0].after_epoch
        self.validations = [data.validation for data in datas if len(data.validation)]
        self.watched = [data.train for data in datas] if configs[0].watch_training else []
        snapshot = None if checkpoint is None else checkpoint.read()
        if checkpoint is not None and snapshot is not None:  # before the engine copies the weights
            with checkpoint.resuming():
                for model, state in zip(models, snapshot.weights, strict=True):
                    model.load_state_dict(state)
        answers = answers_beforehand(teachers, datas, configs)
        networks = [] if answers else [teacher for teacher in teachers if isinstance(teacher, nn.Module)]
        self.engine = make_engine(models, datas, configs, networks, stacked=stacked)
        self.batches = make_batches(models, datas, configs, answers)
        self.runs = [_begin(config, self.batches.steps(member)) for member, config in enumerate(configs)]
        if checkpoint is not None and snapshot is not None:
            with checkpoint.resuming():
                self._resume(snapshot)

    def _resume(self, snapshot: Snapshot) -> None:
        """Resume where a snapshot was made; the networks already have its weights."""
        self.runs = [old.resumed(run, snapshot.epoch) for run, old in zip(snapshot.runs, self.runs, strict=True)]
        self.best = {index: state for index, state in snapshot.best.items() if state}
        self.done_epochs = snapshot.epoch
        self._drop_stopped()
        if self.active:
            self.engine.load_optimizer_state(snapshot.optimizer)

    def fit(self, on_epoch: OnEpoch | None) -> list[History]:
        """Run to the end, with snapshots on the way."""
        self.engine.keep_weights()
        while self.active and self.done_epochs < max(self.runs[index].last_epoch for index in self.active):
            self._epoch(self.done_epochs + 1)
            self.done_epochs += 1
            if on_epoch is not None:
                self.engine.write_back()
                ended = [epoch for index in self.active for epoch in self.runs[index].epochs[-1:]]
                on_epoch(self.done_epochs, [epoch for epoch in ended if epoch.number == self.done_epochs])
            self._drop_stopped()
            if self.checkpoint is not None and self.checkpoint.due:
                self.checkpoint.write(self._snapshot())
        if self.active:
            self.engine.write_back()
        for index in self.active:
            self._finish(index)
        self.active = []
        if self.checkpoint is not None:
            self.checkpoint.write(self._snapshot())
        return [run.history() for run in self.runs]

    def _epoch(self, number: int) -> None:
        runs = [self.runs[index] for index in self.active]
        rates = [run.rates() for run in runs]
        longest = max(map(len, rates))
        rates_by_step = list(zip(*(rate + rate[-1:] * (longest - len(rate)) for rate in rates), strict=True))
        sums = LossSums()
        with self.engine.epoch(number):
            for batch, of_members in zip(self._batches(number, runs), rates_by_step, strict=True):
                sums.add(*self.engine.step(batch, of_members))
        for run, made in zip(runs, rates, strict=True):
            run.take_steps(len(made))
        losses = sums.means()
        improved, sparsities = [], self.engine.sparsities()
        for member, (run, finite, figures) in enumerate(zip(runs, self.engine.finite(), self._figures(), strict=True)):
            seen = (losses[member], figures.get("validation_loss"))
            bad = [loss for loss in seen if loss is not None and not math.isfinite(loss)]
            if bad or not finite:
                run.diverge(number, bad[0] if bad else losses[member])
                self.engine.restore_weights(member)
                continue
            rate, loss, sparsity = rates[member][-1], losses[member], sparsities[member]
            epoch = Epoch(number=number, learning_rate=rate, train_loss=loss, sparsity=sparsity, **figures)
            if run.record(epoch) and run.restores_best:
                improved.append(self.active[member])
        if improved:
            self.engine.write_back()
            self.best |= {index: _copied(self.models[index].state_dict()) for index in improved}
        self.engine.keep_weights()

    def _batches(self, number: int, runs: Sequence[TrainingRun]) -> Iterator[Batch]:
        """Yield the batches of an epoch up to the last step; members whose steps are done have no samples in them."""
        coming = [run.coming_steps for run in runs]
        for step, batch in enumerate(islice(self.batches.epoch(number), max(coming))):
            if runs[0].config.steps is None or step < min(coming):
                yield batch
            else:
                held = zip(batch.rows, coming, strict=True)
                yield replace(batch, rows=tuple(rows if step < last else 0 for rows, last in held))

    def _figures(self) -> list[dict[str, float | None]]:
        """Return how each active member does after an epoch, as fields of `Epoch`."""
        found: list[dict[str, float | None]] = [{"monitored": score} for score in self._scores()]
        if self.watched:
            seen = self.engine.logits([self.watched[index] for index in self.active])
            for index, figures, (outputs, y) in zip(self.active, found, seen, strict=True):
                figures |= primary_figure("train", self.tasks[index], outputs, y, weights_of(self.watched[index]))
        if self.validations:
            seen = self.engine.logits([self.validations[index] for index in self.active])
            for index, figures, (outputs, y) in zip(self.active, found, seen, strict=True):
                task, monitor = self.tasks[index], self.runs[index].config.monitor
                weights = weights_of(self.validations[index])
                loss = task.loss_of(outputs, y, weights=weights)
                if figures["monitored"] is None and monitor == "loss":
                    figures["monitored"] = -loss
                elif figures["monitored"] is None:
                    metric = task.find_metric(monitor)
                    figures["monitored"] = metric.direction * task.value(metric, outputs, y, weights)
                figures |= {"validation_loss": loss, **primary_figure("validation", task, outputs, y, weights)}
        return found

    def _scores(self) -> list[float | None]:
        """Return what the user's own score says of each active member, where there is one."""
        if self.score is None:
            return [None] * len(self.active)
        self.engine.write_back()
        found: list[float | None] = []
        for index in self.active:
            seed = child_seed(self.runs[index].config.seed, "score", self.done_epochs)
            with evaluating(self.models[index]), isolated(seed, numbers_of(self.models[index]).device):
                found.append(float(self.score(self.models[index])))
        return found

    def _drop_stopped(self) -> None:
        """Let those that stopped or have made all their steps leave, their final weights written back."""
        staying = [member for member, index in enumerate(self.active) if not self.runs[index].ended]
        stopped = [index for index in self.active if self.runs[index].ended]
        if not stopped:
            return
        self.engine.write_back()
        self.active = [self.active[member] for member in staying]
        if self.active:
            self.engine.continue_with(staying)
            self.batches.continue_with(staying)
        for index in stopped:
            self._finish(index)

    def _finish(self, index: int) -> None:
        if self.runs[index].restores_best and index in self.best:
            self.models[index].load_state_dict(self.best[index])
        self.models[index].eval()

    def _snapshot(self) -> Snapshot:
        if self.active:
            self.engine.write_back()
        return Snapshot(
            epoch=self.done_epochs,
            weights=[model.state_dict() for model in self.models],
            best=self.best,
            optimizer=self.engine.optimizer_state(),
            runs=[run.to_json() for run in self.runs],
        )


def primary_figure(
    part: str, task: Task, outputs: torch.Tensor, y: torch.Tensor, weights: torch.Tensor | None
) -> dict[str, float | None]:
    """Return the primary metric of a task as a field of `Epoch`."""
    name = f"{part}_accuracy" if task.kind == "classes" and task.primary == "accuracy" else f"{part}_metric"
    return {name: task.value(task.primary_metric, outputs, y, weights)}


def _copied(state: Mapping[str, Any]) -> State:
    """Return a copy of a state: its tensors as clones, which takes a tenth of the time that `deepcopy` takes."""
    return {
        name: value.clone() if isinstance(value, torch.Tensor) else copy.deepcopy(value)
        for name, value in state.items()
    }


def _begin(config: TrainConfig, steps_per_epoch: int) -> TrainingRun:
    """Return a run that has made the steps of the epochs before the first."""
    begun, total = config.after_epoch * steps_per_epoch, config.total_epochs(steps_per_epoch)
    if config.steps is not None and (begun >= config.steps or (config.until_epoch or 0) > total):
        asked = f"after_epoch {config.after_epoch}" if begun >= config.steps else f"until_epoch {config.until_epoch}"
        found = f"{config.steps} steps are {config.steps / steps_per_epoch:.4g} epochs of {steps_per_epoch} steps"
        raise SettingsError(f"{asked} is beyond the end of the training: {found}")
    return TrainingRun(config, steps_per_epoch, steps=begun)
