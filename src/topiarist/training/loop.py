"""The one training loop: for one network or many, by whatever engine runs them."""

import copy
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import islice

import torch
from torch import nn

from topiarist.data import AnyPart
from topiarist.models.evaluation import evaluating
from topiarist.randomness import child_seed, isolated
from topiarist.training.batching import Batch, Batches
from topiarist.training.checkpoint import Checkpoint, Snapshot
from topiarist.training.engine import Engine, State
from topiarist.training.history import Epoch, History
from topiarist.training.metrics import METRICS, accuracy, log_loss
from topiarist.training.run import Run

Score = Callable[[nn.Module], float]
OnEpoch = Callable[[int, Sequence[Epoch]], None]


class Loop:
    """Trains the members of an engine epoch by epoch; those that stop leave, the others go on.

    `validations` has one part per member, or is empty; so has `watched`, the training parts whose accuracy is
    recorded. `score`, where given, is what early stopping and performance
    scheduling watch (larger is better) in the place of the monitored metric.
    """

    def __init__(
        self,
        engine: Engine,
        batches: Batches,
        validations: Sequence[AnyPart],
        runs: Sequence[Run],
        score: Score | None,
        watched: Sequence[AnyPart] = (),
    ) -> None:
        self.watched = list(watched)
        self.engine, self.batches, self.validations, self.score = engine, batches, list(validations), score
        self.runs, self.models = list(runs), list(engine.models)
        self.best: dict[int, State] = {}
        self.active = list(range(len(runs)))
        self.done_epochs = self.runs[0].config.after_epoch

    def resume(self, snapshot: Snapshot) -> None:
        """Take up where a snapshot was made; the networks already have its weights."""
        self.best = {index: state for index, state in snapshot.best.items() if state}
        self.done_epochs = snapshot.epoch
        self._drop_stopped()
        if self.active:
            self.engine.load_optimizer_state(snapshot.optimizer)

    def fit(self, *, checkpoint: Checkpoint | None = None, on_epoch: OnEpoch | None = None) -> list[History]:
        """Run to the end."""
        self.engine.remember()
        while self.active and self.done_epochs < max(self.runs[index].last_epoch for index in self.active):
            self._epoch(self.done_epochs + 1)
            self.done_epochs += 1
            if on_epoch is not None:
                self.engine.write_back()
                ended = [epoch for index in self.active for epoch in self.runs[index].epochs[-1:]]
                on_epoch(self.done_epochs, [epoch for epoch in ended if epoch.number == self.done_epochs])
            self._drop_stopped()
            if checkpoint is not None and checkpoint.due:
                checkpoint.write(self.snapshot())
        if self.active:
            self.engine.write_back()
        for index in self.active:
            self._finish(index)
        self.active = []
        return [run.history() for run in self.runs]

    def _epoch(self, number: int) -> None:
        runs = [self.runs[index] for index in self.active]
        rates = [run.rates() for run in runs]
        longest = max(map(len, rates))
        rates_by_step = list(zip(*(rate + rate[-1:] * (longest - len(rate)) for rate in rates), strict=True))
        with self.engine.epoch(number):
            pieces = zip(self._batches(number, runs), rates_by_step, strict=True)
            sums = [self.engine.step(batch, rate) for batch, rate in pieces]
        for run, made in zip(runs, rates, strict=True):
            run.take_steps(len(made))
        totals, weights = (torch.cat(column, dim=1).double().sum(dim=1) for column in zip(*sums, strict=True))
        losses = (totals / weights).tolist()
        validated, watched = self._validate(), self._watch()
        improved = []
        finite_members, sparsities = self.engine.finite(), self.engine.sparsities()
        for member, (run, finite) in enumerate(zip(runs, finite_members, strict=True)):
            validation_loss, validation_accuracy, monitored = validated[member]
            bad = [loss for loss in (losses[member], validation_loss) if loss is not None and not math.isfinite(loss)]
            if bad or not finite:
                run.diverge(number, bad[0] if bad else losses[member])
                self.engine.recall(member)
                continue
            epoch = Epoch(
                number=number,
                learning_rate=rates[member][-1],
                train_loss=losses[member],
                train_accuracy=watched[member],
                validation_loss=validation_loss,
                validation_accuracy=validation_accuracy,
                monitored=monitored,
                sparsity=sparsities[member],
            )
            if run.record(epoch) and run.restores_best:
                improved.append(self.active[member])
        self._keep_best(improved)
        self.engine.remember()

    def _batches(self, number: int, runs: Sequence[Run]) -> Iterator[Batch]:
        """Yield the batches of an epoch up to the last step; members whose steps are done have no samples in them."""
        coming = [run.coming_steps for run in runs]
        for step, batch in enumerate(islice(self.batches.epoch(number), max(coming))):
            if runs[0].config.steps is None or step < min(coming):
                yield batch
            else:
                held = zip(batch.rows, coming, strict=True)
                yield replace(batch, rows=tuple(rows if step < last else 0 for rows, last in held))

    def _watch(self) -> Sequence[float | None]:
        """Return the accuracy of each active member on its training part, where that is watched."""
        if not self.watched:
            return [None] * len(self.active)
        return [accuracy(logits, y) for logits, y in self.engine.logits([self.watched[index] for index in self.active])]

    def _validate(self) -> Sequence[tuple[float | None, float | None, float | None]]:
        """Give validation loss, accuracy, and what is monitored (larger is better), for each active member."""
        scores = self._scores()
        if not self.validations:
            return [(None, None, score) for score in scores]
        found = []
        seen = self.engine.logits([self.validations[index] for index in self.active])
        for index, (logits, y), score in zip(self.active, seen, scores, strict=True):
            loss, monitor = log_loss(logits, y), self.runs[index].config.monitor
            monitored = score if score is not None else -loss if monitor == "loss" else METRICS[monitor](logits, y)
            found.append((loss, accuracy(logits, y), monitored))
        return found

    def _scores(self) -> list[float | None]:
        """Ask the user's own score, where there is one."""
        if self.score is None:
            return [None] * len(self.active)
        self.engine.write_back()
        found: list[float | None] = []
        for index in self.active:
            seed = child_seed(self.runs[index].config.seed, "score", self.done_epochs)
            with evaluating(self.models[index]), isolated(seed):
                found.append(float(self.score(self.models[index])))
        return found

    def _keep_best(self, improved: Sequence[int]) -> None:
        if improved:
            self.engine.write_back()
        for index in improved:
            self.best[index] = copy.deepcopy(self.models[index].state_dict())

    def _drop_stopped(self) -> None:
        """Let those that stopped or have made all their steps leave the stack, their final weights written back."""
        going_on = [member for member, index in enumerate(self.active) if not self.runs[index].ended]
        stopped = [index for index in self.active if self.runs[index].ended]
        if not stopped:
            return
        self.engine.write_back()
        self.active = [self.active[member] for member in going_on]
        if self.active:
            self.engine.keep(going_on)
            self.batches.keep(going_on)
        for index in stopped:
            self._finish(index)

    def _finish(self, index: int) -> None:
        if self.runs[index].restores_best and index in self.best:
            self.models[index].load_state_dict(self.best[index])
        self.models[index].eval()

    def snapshot(self) -> Snapshot:
        """Describe the training as it is between two epochs."""
        if self.active:
            self.engine.write_back()
        return Snapshot(
            epoch=self.done_epochs,
            weights=[model.state_dict() for model in self.models],
            best=self.best,
            optimizer=self.engine.optimizer_state(),
            runs=[run.to_json() for run in self.runs],
        )
