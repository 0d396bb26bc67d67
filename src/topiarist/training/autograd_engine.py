"""Trains any `nn.Module` by autograd and `torch.optim`."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.modules.batchnorm import _BatchNorm

from topiarist.data import AnyPart
from topiarist.errors import SettingsError
from topiarist.randomness import child_seed, isolated
from topiarist.training.batching import Batch
from topiarist.training.clipping import clip_norm, clip_value
from topiarist.training.config import TrainConfig
from topiarist.training.engine import State
from topiarist.training.inference import part_logits


class AutogradEngine:
    """The engine for one network of any kind."""

    def __init__(self, model: nn.Module, config: TrainConfig, *, class_weights: Tensor | None = None) -> None:
        self.models = [model]
        self.config, self.class_weights = config, class_weights
        self.trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
        if not self.trained:
            raise SettingsError("there is nothing to train: every parameter of the network is frozen")
        self.optimizer = make_optimizer(self.trained, config)

    @contextmanager
    def epoch(self, number: int) -> Iterator[None]:
        """Train mode, with the global generator seeded for this epoch."""
        set_training_mode(self.models[0])
        with isolated(child_seed(self.config.seed, "noise", number)):
            yield

    def step(self, batch: Batch, rates: Sequence[float]) -> tuple[Tensor, Tensor]:
        """Forward, backward, clip, step."""
        for group in self.optimizer.param_groups:
            group["lr"] = rates[0]
        x, y = batch.x[0], batch.y[0]
        self.optimizer.zero_grad()
        loss = functional.cross_entropy(self.models[0](x), y, weight=self.class_weights)
        loss.backward()  # type: ignore[no-untyped-call]  # torch leaves it untyped
        self._clip()
        self.optimizer.step()
        weight = torch.tensor(float(len(y))) if self.class_weights is None else self.class_weights[y].sum()
        return (loss.detach() * weight).view(1), weight.view(1)

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

    def remember(self) -> None:
        """Copy the state."""
        self.good = {name: value.clone() for name, value in self.models[0].state_dict().items()}

    def recall(self, member: int) -> None:
        """Load the copy."""
        self.models[0].load_state_dict(self.good)

    def write_back(self) -> None:
        """The network itself is trained: nothing to do."""

    def keep(self, members: Sequence[int]) -> None:
        """There is one member: nothing to do."""

    def optimizer_state(self) -> State:
        """Flatten the optimizer's state to names such as `3/exp_avg`."""
        states = self.optimizer.state_dict()["state"]
        return {
            f"{number}/{name}": torch.as_tensor(value)
            for number, entries in states.items()
            for name, value in entries.items()
            if value is not None
        }

    def load_optimizer_state(self, state: State) -> None:
        """Take the flattened state up again."""
        record = self.optimizer.state_dict()
        record["state"] = {}
        for name, value in state.items():
            number, entry = name.split("/")
            record["state"].setdefault(int(number), {})[entry] = value
        self.optimizer.load_state_dict(record)


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


def set_training_mode(model: nn.Module) -> None:
    """Switch to training; batch norm whose parameters are frozen stays as at test time."""
    model.train()
    for module in model.modules():
        if isinstance(module, _BatchNorm) and module.affine and not module.weight.requires_grad:
            module.eval()
