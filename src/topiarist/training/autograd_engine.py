"""Trains any `nn.Module` by autograd and `torch.optim`."""

import copy
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.modules.batchnorm import _BatchNorm

from topiarist.data import AnyPart
from topiarist.errors import ModelError, SettingsError
from topiarist.models.evaluation import evaluating, numbers_of, placed
from topiarist.randomness import child_seed, isolated
from topiarist.training.augmentation import augmented
from topiarist.training.batching import Batch
from topiarist.training.clipping import clip_norm, clip_value
from topiarist.training.config import TrainConfig
from topiarist.training.distillation import distilled
from topiarist.training.engine import Memory, State
from topiarist.training.inference import call, part_logits
from topiarist.training.pruner import Pruner

PRUNER = "pruner/"
ADAM = {"mean": "exp_avg", "square": "exp_avg_sq"}
TORCH_NAMES: Mapping[str, Mapping[str, str]] = {  # what a stack's optimizers remember, as torch's call it
    "sgd": {"velocity": "momentum_buffer"},
    "adam": ADAM,
    "adamw": ADAM,
    "rmsprop": {"square": "square_avg", "velocity": "momentum_buffer"},
}


class AutogradEngine:
    """The engine for one network of any kind."""

    def __init__(
        self,
        model: nn.Module,
        config: TrainConfig,
        *,
        class_weights: Tensor | None = None,
        teacher: nn.Module | None = None,
        pruner: Pruner | None = None,
    ) -> None:
        self.models, self.teacher, self.pruner = [model], teacher, pruner
        self.config, self.class_weights = config, class_weights
        self.trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
        if not self.trained:
            raise SettingsError("there is nothing to train: every parameter of the network is frozen")
        self.optimizer = make_optimizer(self.trained, config)
        self.resting = resting_modules(model)

    @contextmanager
    def epoch(self, number: int) -> Iterator[None]:
        """Train mode, with the global generator seeded for this epoch."""
        model = self.models[0].train()
        for module in self.resting:
            module.eval()
        if self.pruner is not None:
            self.pruner.before_epoch(number - 1)
        with isolated(child_seed(self.config.seed, "noise", number), numbers_of(model).device), torch.enable_grad():
            yield
        self.optimizer.zero_grad()

    def step(self, batch: Batch, rates: Sequence[float]) -> tuple[Tensor, Tensor]:
        """Forward, backward, clip, step."""
        for group in self.optimizer.param_groups:
            group["lr"] = rates[0]
        y = batch.y[0]
        x, partners, share = augmented(batch.x[0], self.config.augmentation)
        self.optimizer.zero_grad()
        logits = call(self.models[0], x)
        if not logits.requires_grad:
            raise ModelError("no parameter that is to be trained has a part in the network's output")
        answers = self._answers(x) if batch.answers is None else batch.answers[0]
        loss, weight = self._loss(logits, y, answers)
        if partners is not None:  # of the same weight in all: they are the same samples
            loss = share * loss + (1 - share) * self._loss(logits, y[partners], answers)[0]
        loss.backward()  # type: ignore[no-untyped-call]  # torch leaves it untyped
        if self.pruner is not None:
            self.pruner.after_backward()
        self._clip()
        self.optimizer.step()
        if self.pruner is not None:
            self.pruner.after_step()
        return (loss.detach() * weight).view(1, 1), weight.view(1, 1)

    def _answers(self, x: Tensor) -> Tensor | None:
        """Ask the teacher, where there is one."""
        if self.teacher is None:
            return None
        with evaluating(self.teacher):
            return placed(call(self.teacher, placed(x, numbers_of(self.teacher))), numbers_of(self.models[0]))

    def _loss(self, logits: Tensor, y: Tensor, answers: Tensor | None) -> tuple[Tensor, Tensor]:
        """Give the mean loss against labels and the teacher's answers, and the weight of the batch."""
        if answers is None and self.class_weights is None:
            return functional.cross_entropy(logits, y), logits.new_tensor(float(len(y)))
        if answers is None:
            assert self.class_weights is not None
            weight = self.class_weights[y].sum()
            total = functional.cross_entropy(logits, y, weight=self.class_weights, reduction="sum")
            return total / weight.clamp(min=1e-30), weight
        assert self.config.distillation is not None
        losses = distilled(logits.T, answers.T, y[None], self.config.distillation)[0]
        weights = losses.new_ones(len(y)) if self.class_weights is None else self.class_weights[y]
        return (losses * weights).sum() / weights.sum().clamp(min=1e-30), weights.sum()

    def _clip(self) -> None:
        gradients = [parameter.grad for parameter in self.trained if parameter.grad is not None]
        if self.config.clip_value is not None:
            clip_value(gradients, self.config.clip_value)
        if self.config.clip_norm is not None:
            clip_norm(gradients, self.config.clip_norm, over=self.config.clip_norm_over)

    def logits(self, parts: Sequence[AnyPart]) -> list[tuple[Tensor, Tensor]]:
        """Run the network in eval mode."""
        return [part_logits(self.models[0], parts[0])]

    def finite(self) -> list[bool]:
        """Look at every parameter."""
        return [all(bool(parameter.isfinite().all()) for parameter in self.trained)]

    def sparsities(self) -> list[float | None]:
        """Ask the pruner."""
        return [None if self.pruner is None else self.pruner.sparsity]

    def remember(self) -> None:
        """Copy the state."""
        self.good = copy.deepcopy(self.models[0].state_dict())

    def recall(self, member: int) -> None:
        """Load the copy."""
        self.models[0].load_state_dict(self.good)
        if self.pruner is not None:
            self.pruner.after_step()

    def write_back(self) -> None:
        """The network itself is trained: nothing to do."""

    def keep(self, members: Sequence[int]) -> None:
        """There is one member: nothing to do."""

    def optimizer_state(self) -> State:
        """Flatten the optimizer's state to names such as `3/exp_avg`."""
        states = self.optimizer.state_dict()["state"]
        pruned = {} if self.pruner is None else self.pruner.state()
        return {
            f"{number}/{name}": torch.as_tensor(value)
            for number, entries in states.items()
            for name, value in entries.items()
            if value is not None
        } | {f"{PRUNER}{name}": value for name, value in pruned.items()}

    def load_optimizer_state(self, state: State) -> None:
        """Take the flattened state up again."""
        if self.pruner is not None:
            self.pruner.load({n.removeprefix(PRUNER): value for n, value in state.items() if n.startswith(PRUNER)})
        record = self.optimizer.state_dict()
        record["state"] = {}
        for name, value in state.items():
            if name.startswith(PRUNER):
                continue
            number, entry = name.split("/")
            record["state"].setdefault(int(number), {})[entry] = value
        self.optimizer.load_state_dict(record)

    def memory(self) -> Memory:
        """Copy the optimizer's state, under the names that a stack has for it."""
        words, states = TORCH_NAMES[self.config.optimizer], self.optimizer.state
        named = {
            name: states[parameter] for name, parameter in self.models[0].named_parameters() if parameter in states
        }
        return {
            name: {ours: value.clone() for ours, theirs in words.items() if (value := state.get(theirs)) is not None}
            for name, state in named.items()
        }

    def remind(self, memory: Memory, steps: int) -> None:
        """Fill the optimizer's state; torch counts the steps of each parameter, but with SGD."""
        words = TORCH_NAMES[self.config.optimizer]
        counted = {} if self.config.optimizer == "sgd" else {"step": torch.tensor(float(steps))}
        for name, parameter in self.models[0].named_parameters():
            state = {words[key]: value.clone() for key, value in memory.get(name, {}).items()}
            if state:
                self.optimizer.state[parameter] = state | {key: value.clone() for key, value in counted.items()}


def make_optimizer(parameters: Sequence[nn.Parameter], config: TrainConfig) -> torch.optim.Optimizer:
    """Make torch's optimizer; weight decay touches kernels only, unless asked for on all."""
    together = config.weight_decay == 0 or config.weight_decay_on == "all"
    decayed = [parameter for parameter in parameters if parameter.ndim > 1 or together]
    others = [parameter for parameter in parameters if parameter.ndim <= 1 and not together]
    groups = [{"params": decayed, "weight_decay": config.weight_decay}, {"params": others, "weight_decay": 0.0}]
    groups = [group for group in groups if group["params"]]
    rate = config.learning_rate
    match config.optimizer:
        case "sgd":
            return torch.optim.SGD(groups, lr=rate, momentum=config.momentum, nesterov=config.nesterov)
        case "rmsprop":
            return torch.optim.RMSprop(groups, lr=rate, momentum=config.momentum)
        case "adamw":
            return torch.optim.AdamW(groups, lr=rate)
        case _:
            return torch.optim.Adam(groups, lr=rate)


def resting_modules(model: nn.Module) -> list[nn.Module]:
    """Give what stays in eval mode: frozen batch norm, and what the user put so inside a network in train mode."""
    return [
        module
        for module in model.modules()
        if (model.training and not module.training)
        or (isinstance(module, _BatchNorm) and module.affine and not module.weight.requires_grad)
    ]
