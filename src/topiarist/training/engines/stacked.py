"""Trains many networks of one shape as one batched computation."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence

from topiarist.data import AnyPart, Part
from topiarist.models.evaluation import placed
from topiarist.models.stacked import NetworkStack
from topiarist.models.stacked_layers import Pass
from topiarist.randomness import generator
from topiarist.tasks import Task
from topiarist.training.config import TrainConfig
from topiarist.training.engines.batching import Batch
from topiarist.training.engines.flat_optimizers import MOST_RUNS, FlatOptimizer, PerMember, PerNumber, neighbours
from topiarist.training.engines.steps import Memory, State, clip_norm, clip_value
from topiarist.training.inference import FEWEST_IMAGES, largest_batch

STACKED_BYTES = 2**24  # 16 MB of samples, of all members together, that are answered at once


class StackedEngine:
    """The engine for `stackable` networks; members may differ in seed, in learning rate and, where padded, in width.

    `class_weights` is (n_members, n_classes) where samples are weighted.
    """

    def __init__(
        self,
        models: Sequence[nn.Module],
        configs: Sequence[TrainConfig],
        task: Task,
        *,
        class_weights: Tensor | None = None,
    ) -> None:
        self.configs, self.task, self.class_weights = list(configs), task, class_weights
        self.config = configs[0]
        self.steps = [0] * len(models)
        self.passes: dict[tuple[int, tuple[int, ...]], tuple[Pass, Tensor, Tensor]] = {}
        self._build(list(models))

    def _build(self, models: list[nn.Module], shapes: Mapping[str, tuple[int, ...]] | None = None) -> None:
        self.models = models
        self.stack = NetworkStack(models, shapes)
        self.optimizer = FlatOptimizer(self.stack.flat, self.config, members=len(models), blocks=self.stack.blocks)
        decayed = self.stack.kernels if self.config.weight_decay_on == "kernels" else self.stack.kernels | True
        self.decay = decayed.to(self.stack.flat.dtype) * self.config.weight_decay

    @contextmanager
    def epoch(self, number: int) -> Iterator[None]:
        """Surround one epoch of training steps: one generator per member, seeded for this epoch."""
        seeds = [config.seed for config in self.configs] if self.stack.draws_noise else []
        self.noise = tuple(generator(seed, "noise", number) for seed in seeds)
        if self.noise:
            self.passes.clear()
        with torch.inference_mode():
            yield

    def step(self, batch: Batch, rates: Sequence[float]) -> tuple[Tensor, Tensor]:
        """Make one step; return weighted losses (n_members, n_samples) and the weight (n_members, 1) of all."""
        x, y = _features_first(batch.x), self.task.stacked_targets(batch.y)
        run, total, share = self._pass(batch.rows, x)
        losses, slope = self._losses(x, y, run, batch.answers)
        weights = self._weights(y, run.mask, batch.weights)
        if weights is None:
            slope.mul_(share)
        else:
            losses.mul_(weights.squeeze(1))
            total = weights.sum(dim=2)
            slope.mul_(weights / total.clamp(min=1e-30).unsqueeze(2))
        self.stack.backward(slope)
        self._clip()
        self._update(batch.rows, rates)
        return losses, total

    def _losses(self, x: Tensor, y: Tensor, run: Pass, answers: Tensor | None) -> tuple[Tensor, Tensor]:
        """Return the loss of each sample (n_members, n_samples) and its slope in the outputs."""
        outputs = self.stack.forward(x, run)
        if answers is not None and self.config.distillation is not None:
            return self.task.distilled(outputs, answers.mT, y, **self.config.distillation.model_dump())
        return self.task.losses_and_slopes(outputs, y)

    def _pass(self, rows: tuple[int, ...], x: Tensor) -> tuple[Pass, Tensor, Tensor]:
        """Return the pass, how many samples of each member are real, and 1 / n; most batches are alike."""
        key = x.shape[2], rows
        if key not in self.passes:
            counts = torch.tensor(rows, dtype=x.dtype, device=x.device).unsqueeze(1)
            samples = torch.arange(x.shape[2], device=x.device)
            mask = None if min(rows) == len(samples) else (samples < counts.unsqueeze(2)).to(x.dtype)
            run = Pass(training=True, rows=rows, mask=mask, noise=self.noise)
            self.passes[key] = run, counts, 1 / counts[0, 0]
        return self.passes[key]

    def _weights(self, y: Tensor, mask: Tensor | None, of_samples: Tensor | None) -> Tensor | None:
        """Return how much each sample counts (n_members, 1, n_samples), or None where all count the same."""
        weights = None if of_samples is None else of_samples.unsqueeze(1)
        if self.class_weights is not None:
            by_class = self.class_weights.unsqueeze(2).expand(-1, -1, y.shape[2]).gather(1, y)
            weights = by_class if weights is None else by_class * weights
        if weights is None or mask is None:
            return mask if weights is None else weights
        return weights * mask

    def _clip(self) -> None:
        if self.config.clip_value is not None:
            clip_value([self.stack.gradient], self.config.clip_value)
        if self.config.clip_norm is not None:
            gradients = list(self.stack.gradients.values())
            clip_norm(gradients, self.config.clip_norm, over=self.config.clip_norm_over, members=True)

    def _update(self, rows: tuple[int, ...], rates: Sequence[float]) -> None:
        """Step with every member that has samples in this batch."""
        flat, gradient = self.stack.flat, self.stack.gradient
        self.steps = [steps + (count > 0) for steps, count in zip(self.steps, rows, strict=True)]
        if self.optimizer.fused and len(runs := neighbours(rows, rates, self.steps)) <= MOST_RUNS:
            if self.config.weight_decay and self.config.optimizer != "adamw":
                gradient.add_(flat * self.decay)
            self.optimizer.step_together(flat, gradient, runs)
            return
        changed = [flat, *self.optimizer.state.values()] if 0 in rows else []
        saved = [tensor.clone() for tensor in changed]
        step = self._joint([max(steps, 1) for steps in self.steps] if saved else self.steps)
        rate = self._joint(rates)
        if self.config.weight_decay:
            if self.config.optimizer == "adamw":
                flat.mul_(1 - self._spread(rate) * self.decay)
            else:
                gradient.add_(flat * self.decay)
        self.optimizer.step(flat, gradient, rate, step, self._spread)
        if saved:
            idle = torch.tensor([not count for count in rows], device=flat.device)[self.stack.member_of]
            for tensor, old in zip(changed, saved, strict=True):
                torch.where(idle, old, tensor, out=tensor)

    def _joint(self, values: Sequence[float]) -> PerMember:
        """Return one number where all members agree, otherwise one per member."""
        return values[0] if len(set(values)) == 1 else self.stack.flat.new_tensor(values)

    def _spread(self, values: PerMember) -> PerNumber:
        """Return one number where all members agree, otherwise one for each entry of the flat parameters."""
        return values.index_select(0, self.stack.member_of) if isinstance(values, Tensor) else values

    def logits(self, parts: Sequence[AnyPart]) -> list[tuple[Tensor, Tensor]]:
        """Return each member's outputs and targets on a part of its own, as at test time."""
        held = [part for part in parts if isinstance(part, Part)]
        longest = max(len(part) for part in held)
        logits = self.stack.flat.new_empty(len(held), self.task.outputs, longest)  # one place: see `LossSums`
        sample = held[0].samples[:1]
        together = min(largest_batch(sample), max(STACKED_BYTES // max(sample.nbytes * len(held), 1), FEWEST_IMAGES))
        for first in range(0, longest, together):  # in pieces that take little memory
            asked = {id(part.samples): part.samples for part in held}  # those of several members are prepared once
            some = {name: samples[first : first + together] for name, samples in asked.items()}
            x = pad_sequence([some[id(part.samples)] for part in held], batch_first=True)
            outputs = self.stack.forward(_features_first(placed(x, self.stack.flat)), Pass(training=False))
            logits[:, :, first : first + together] = outputs
        found = logits.cpu()
        return [(found[member, :, : len(part)].T, part.y) for member, part in enumerate(held)]

    def finite(self) -> list[bool]:
        """Return which members have only finite weights; single members are looked at only if one has not."""
        if bool(self.stack.flat.sum().isfinite()):
            return [True] * len(self.models)
        bad = set(self.stack.member_of[~self.stack.flat.isfinite()].tolist())
        return [member not in bad for member in range(len(self.models))]

    def sparsities(self) -> list[float | None]:
        """Return None for each member: nothing is pruned in a stack."""
        return [None] * len(self.models)

    def keep_weights(self) -> None:
        """Keep a copy of the weights as they are now."""
        self.kept = self.stack.flat.clone()
        self.kept_buffers = {name: value.clone() for name, value in self.stack.buffers.items()}

    def restore_weights(self, member: int) -> None:
        """Take a member back to the weights last kept."""
        mine = self.stack.member_of == member
        self.stack.flat[mine] = self.kept[mine]
        for name, value in self.kept_buffers.items():
            self.stack.buffers[name][member] = value[member]

    def write_back(self) -> None:
        """Put the weights into `models`."""
        self.stack.write_back()

    def continue_with(self, members: Sequence[int]) -> None:
        """Rebuild the stack from these members only, with what the optimizer remembers of them."""
        self.write_back()
        kept = torch.isin(self.stack.member_of, self.stack.member_of.new_tensor(list(members)))
        state = {name: value[kept] for name, value in self.optimizer.state.items()}
        self.configs = [self.configs[member] for member in members]
        self.steps = [self.steps[member] for member in members]
        if self.class_weights is not None:
            self.class_weights = self.class_weights[list(members)]
        self._build([self.models[member] for member in members], self.stack.shapes)
        self.optimizer.state = state
        self.keep_weights()

    def optimizer_state(self) -> State:
        """Return the flat state of the optimizer and the step counts, for a checkpoint."""
        return {**self.optimizer.state, "steps": torch.tensor(self.steps)}

    def load_optimizer_state(self, state: State) -> None:
        """Take up what `optimizer_state` returned."""
        forms = {name: (value.shape, value.dtype) for name, value in self.optimizer_state().items()}
        if {name: (value.shape, value.dtype) for name, value in state.items()} != forms:
            raise ValueError("what the optimizer remembers does not fit the networks")
        if int(state["steps"].min()) < 0:
            raise ValueError("the optimizer made a number of steps below 0")
        self.steps = [int(steps) for steps in state["steps"]]
        self.optimizer.state = {
            name: value.to(self.stack.flat.device, copy=True) for name, value in state.items() if name != "steps"
        }

    def memory(self) -> Memory:
        """Return what the optimizer remembers of each parameter of the only member."""
        views = {key: self.stack.views(value) for key, value in self.optimizer.state.items()}
        return {name: {key: views[key][name][0].clone() for key in views} for name in self.stack.shapes}

    def load_memory(self, memory: Memory, steps: int) -> None:
        """Let the optimizer continue after so many steps, with what it is to remember of parameters."""
        self.steps = [steps]
        for key, value in self.optimizer.state.items():
            views = self.stack.views(value)
            for name, known in memory.items():
                views[name][0] = known[key]


def _features_first(x: Tensor) -> Tensor:
    """Turn (n_members, n_samples, *input_shape) into (n_members, n_features, n_samples), without a copy."""
    return (x if x.ndim == 3 else x.flatten(2)).mT
