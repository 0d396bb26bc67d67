"""Trains any `nn.Module` by autograd and `torch.optim`."""

import copy
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from topiarist.data import AnyPart
from topiarist.errors import ModelError, SettingsError
from topiarist.models.evaluation import evaluating, numbers_of, placed, under
from topiarist.randomness import child_seed, isolated
from topiarist.tasks import Task
from topiarist.training.config import TrainConfig
from topiarist.training.engines.batching import Batch
from topiarist.training.engines.pruner import Pruner
from topiarist.training.engines.steps import Memory, State, augmented, clip_norm, clip_value, flattened
from topiarist.training.inference import call, part_logits

ADAM = {"mean": "exp_avg", "square": "exp_avg_sq"}
TORCH_NAMES: Mapping[str, Mapping[str, str]] = {  # what a stack's optimizers remember, as torch's call it
    "sgd": {"velocity": "momentum_buffer"},
    "adam": ADAM,
    "adamw": ADAM,
    "rmsprop": {"square": "square_avg", "velocity": "momentum_buffer"},
}


class AutogradEngine:
    """The engine for one network and task of any kind; class weights are (n_classes,)."""

    def __init__(
        self,
        model: nn.Module,
        config: TrainConfig,
        task: Task,
        *,
        class_weights: Tensor | None = None,
        teacher: nn.Module | None = None,
        pruner: Pruner | None = None,
    ) -> None:
        self.models, self.teacher, self.pruner = [model], teacher, pruner
        self.config, self.task, self.class_weights = config, task, class_weights
        self.trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
        if not self.trained:
            raise SettingsError("there is nothing to train: every parameter of the network is frozen")
        self.optimizer = _make_optimizer(self.trained, config)
        # What stays in eval mode: frozen batch norm, and what the user put so inside a network in train mode.
        self.resting = [
            module
            for module in model.modules()
            if (model.training and not module.training)
            or (isinstance(module, _BatchNorm) and module.affine and not module.weight.requires_grad)
        ]

    @contextmanager
    def epoch(self, number: int) -> Iterator[None]:
        """Surround one epoch of training steps: train mode, the global generator seeded for this epoch."""
        model = self.models[0].train()
        for module in self.resting:
            module.eval()
        if self.pruner is not None:
            self.pruner.before_epoch(number - 1)
        with isolated(child_seed(self.config.seed, "noise", number), numbers_of(model).device), torch.enable_grad():
            yield
        self.optimizer.zero_grad()

    def step(self, batch: Batch, rates: Sequence[float]) -> tuple[Tensor, Tensor]:
        """Make one step; return the weighted loss and the weight (1, 1) of the batch."""
        for group in self.optimizer.param_groups:
            group["lr"] = rates[0]
        y = batch.y[0]
        x, partners, share = augmented(batch.x[0], self.config.augmentation)
        self.optimizer.zero_grad()
        logits = call(self.models[0], x)
        if not logits.requires_grad:
            raise ModelError("no parameter that is to be trained has a part in the network's output")
        answers = self._answers(x) if batch.answers is None else batch.answers[0]
        weights = None if batch.weights is None else batch.weights[0]
        loss, weight = self._loss(logits, y, answers, weights)
        if partners is not None:  # of the same weight in all: they are the same samples
            shared = None if weights is None else weights[partners]
            loss = share * loss + (1 - share) * self._loss(logits, y[partners], answers, shared)[0]
        loss.backward()  # type: ignore[no-untyped-call]  # torch leaves it untyped
        if self.pruner is not None:
            self.pruner.after_backward()
        gradients = [parameter.grad for parameter in self.trained if parameter.grad is not None]
        if self.config.clip_value is not None:
            clip_value(gradients, self.config.clip_value)
        if self.config.clip_norm is not None:
            clip_norm(gradients, self.config.clip_norm, over=self.config.clip_norm_over)
        self.optimizer.step()
        if self.pruner is not None:
            self.pruner.after_step()
        return (loss.detach() * weight).view(1, 1), weight.view(1, 1)

    def _answers(self, x: Tensor) -> Tensor | None:
        if self.teacher is None:
            return None
        with evaluating(self.teacher):
            return placed(call(self.teacher, placed(x, numbers_of(self.teacher))), numbers_of(self.models[0]))

    def _loss(
        self, outputs: Tensor, y: Tensor, answers: Tensor | None, sample_weights: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        """Return the mean loss against targets and the teacher's answers, and the weight of the batch."""
        task, classes = self.task, self.class_weights
        weights = sample_weights
        if classes is not None:
            weights = classes[y] if weights is None else classes[y] * weights
        total = outputs.new_tensor(float(len(y))) if weights is None else weights.sum()
        if answers is None:
            return task.mean_loss(outputs, y, weights=sample_weights, class_weights=classes), total
        assert self.config.distillation is not None
        how = self.config.distillation.model_dump()
        losses = task.distilled(outputs.T, answers.T, task.stacked_targets(y), **how)[0]
        weights = outputs.new_ones(len(y)) if weights is None else weights
        return (losses * weights).sum() / weights.sum().clamp(min=1e-30), weights.sum()

    def logits(self, parts: Sequence[AnyPart]) -> list[tuple[Tensor, Tensor]]:
        """Return the network's outputs and the targets of a part, as at test time."""
        return [part_logits(self.models[0], parts[0])]

    def finite(self) -> list[bool]:
        """Return whether all weights are finite."""
        return [all(bool(parameter.isfinite().all()) for parameter in self.trained)]

    def sparsities(self) -> list[float | None]:
        """Return the fraction of weights or units that is pruned; None where nothing is."""
        return [None if self.pruner is None else self.pruner.sparsity]

    def keep_weights(self) -> None:
        """Keep a copy of the weights as they are now."""
        self.kept = copy.deepcopy(self.models[0].state_dict())

    def restore_weights(self, member: int) -> None:
        """Go back to the weights last kept."""
        self.models[0].load_state_dict(self.kept)
        if self.pruner is not None:
            self.pruner.after_step()

    def write_back(self) -> None:
        """Do nothing: the network itself is trained."""

    def continue_with(self, members: Sequence[int]) -> None:
        """Do nothing: there is one member."""

    def optimizer_state(self) -> State:
        """Return the state of the optimizer, under names such as `3/exp_avg`, and of the pruner for a checkpoint."""
        groups = {"pruner": {} if self.pruner is None else self.pruner.state()}
        for number, entries in self.optimizer.state_dict()["state"].items():
            groups[str(number)] = {name: torch.as_tensor(own) for name, own in entries.items() if own is not None}
        return flattened(groups)

    def load_optimizer_state(self, state: State) -> None:
        """Take up what `optimizer_state` returned."""
        if self.pruner is not None:
            self.pruner.load(under("pruner/", state))
        entries = {number: under(f"{number}/", state) for number in range(len(self.trained))}
        known = {number: entry for number, entry in entries.items() if entry}
        names = _remembered(self.config)
        for number, entry in known.items():
            shapes = {value.shape for value in entry.values()} - {torch.Size(), self.trained[number].shape}
            steps = entry.get("step", torch.ones(()))
            if (
                shapes
                or set(entry) != names
                or not all(map(torch.is_floating_point, entry.values()))
                or not bool((steps > 0).all())
            ):
                raise ValueError(f"what the optimizer remembers of parameter {number} does not fit it")
        self.optimizer.load_state_dict({**self.optimizer.state_dict(), "state": known})

    def memory(self) -> Memory:
        """Return what the optimizer remembers of each parameter, under the names that a stack has for it."""
        words = TORCH_NAMES[self.config.optimizer]
        memory = {}
        for name, parameter in self.models[0].named_parameters():
            if parameter in self.optimizer.state:
                known = self.optimizer.state[parameter]
                memory[name] = {ours: known[own].clone() for ours, own in words.items() if known.get(own) is not None}
        return memory

    def load_memory(self, memory: Memory, steps: int) -> None:
        """Let the optimizer continue after so many steps; torch counts those of each parameter, but with SGD."""
        words = TORCH_NAMES[self.config.optimizer]
        counted = {} if self.config.optimizer == "sgd" else {"step": float(steps)}
        for name, parameter in self.models[0].named_parameters():
            if known := memory.get(name):
                state = {words[key]: value.clone() for key, value in known.items()}
                self.optimizer.state[parameter] = state | {key: torch.tensor(value) for key, value in counted.items()}


def _remembered(config: TrainConfig) -> set[str]:
    """Return the names of what the optimizer remembers of a parameter after a step."""
    parameter = nn.Parameter(torch.zeros(1))
    parameter.grad = torch.zeros(1)
    optimizer = _make_optimizer([parameter], config)
    optimizer.step()
    return {name for name, value in optimizer.state[parameter].items() if value is not None}


def _make_optimizer(parameters: Sequence[nn.Parameter], config: TrainConfig) -> torch.optim.Optimizer:
    """Make torch's optimizer; weight decay touches kernels only, unless asked for on all."""
    together = config.weight_decay == 0 or config.weight_decay_on == "all"
    decayed = [parameter for parameter in parameters if parameter.ndim > 1 or together]
    others = [parameter for parameter in parameters if parameter.ndim <= 1 and not together]
    groups = [{"params": decayed, "weight_decay": config.weight_decay}, {"params": others, "weight_decay": 0.0}]
    groups = [group for group in groups if group["params"]]
    match config.optimizer:
        case "sgd":
            return torch.optim.SGD(groups, config.learning_rate, config.momentum, nesterov=config.nesterov)
        case "rmsprop":
            return torch.optim.RMSprop(groups, config.learning_rate, momentum=config.momentum)
        case "adamw":
            return torch.optim.AdamW(groups, config.learning_rate)
    return torch.optim.Adam(groups, config.learning_rate)
