"""Optimizers over the flat parameters of a stack: the arithmetic of `torch.optim`, with a learning rate a member.

`torch.optim` has one rate for a whole tensor and no way to leave some members alone in a step.
"""

import math
from collections.abc import Callable
from typing import Protocol

import torch
from torch import Tensor

from topiarist.training.config import TrainConfig
from topiarist.training.engine import State

PerMember = float | Tensor  # one number where all members agree, otherwise one a member
PerNumber = float | Tensor
Spread = Callable[[PerMember], PerNumber]

LEAST_SQUARE = 1e-36


class FlatOptimizer(Protocol):
    """Changes `flat` in place from `gradient`, by one rate or one a member; `state` is what to save."""

    state: State

    def step(self, flat: Tensor, gradient: Tensor, rates: PerMember, steps: PerMember, spread: Spread) -> None:
        """Make the step whose number (from 1) is `steps`; `spread` gives each number what its member has."""
        ...


class FlatSGD:
    """v ← μv + g; w ← w − ηv, or Nesterov's w ← w − η(g + μv)."""

    def __init__(self, flat: Tensor, config: TrainConfig) -> None:
        self.momentum, self.nesterov = config.momentum, config.nesterov
        self.state: State = {"velocity": torch.zeros_like(flat)} if self.momentum else {}

    def step(self, flat: Tensor, gradient: Tensor, rates: PerMember, steps: PerMember, spread: Spread) -> None:
        """Make a step."""
        if self.momentum:
            velocity = self.state["velocity"].mul_(self.momentum).add_(gradient)
            gradient = gradient.add(velocity, alpha=self.momentum) if self.nesterov else velocity
        move(flat, gradient, spread(rates))


class FlatAdam:
    """m ← lerp(m, g, 1−β₁); v ← lerp(v, g², 1−β₂); w ← w − η m̂ / (√v̂ + ε)."""

    beta1, beta2, epsilon = 0.9, 0.999, 1e-8

    def __init__(self, flat: Tensor, config: TrainConfig) -> None:
        self.state: State = {"mean": torch.zeros_like(flat), "square": torch.zeros_like(flat)}
        self.scratch = torch.empty_like(flat)  # fresh memory at every step would cost more than the arithmetic

    def step(self, flat: Tensor, gradient: Tensor, rates: PerMember, steps: PerMember, spread: Spread) -> None:
        """Make a step."""
        mean = self.state["mean"].lerp_(gradient, 1 - self.beta1)
        square = self.state["square"].mul_(self.beta2).addcmul_(gradient, gradient, value=1 - self.beta2)
        # The correction of √v̂ is moved out of the quotient, which saves an operation.
        correction, factor = self._corrections(steps)
        denominator = root(square, self.scratch).add_(spread(correction * self.epsilon))
        change = spread(factor * rates)
        if isinstance(change, Tensor):
            flat.addcmul_(torch.div(mean, denominator, out=denominator), change, value=-1)
        else:
            flat.addcdiv_(mean, denominator, value=-change)

    def _corrections(self, steps: PerMember) -> tuple[PerMember, PerMember]:
        """Give √(1 − β₂ᵗ) and √(1 − β₂ᵗ) / (1 − β₁ᵗ), in double precision, where 1 − β₂ᵗ is exact enough."""
        if isinstance(steps, Tensor):
            exact = steps.double()
            roots = (1 - self.beta2**exact).sqrt_()
            return roots.to(steps), (roots / (1 - self.beta1**exact)).to(steps)
        root = math.sqrt(1 - self.beta2**steps)
        return root, root / (1 - self.beta1**steps)


class FlatRMSprop:
    """v ← lerp(v, g², 1−α); step g / (√v + ε), through a velocity where there is momentum."""

    alpha, epsilon = 0.99, 1e-8

    def __init__(self, flat: Tensor, config: TrainConfig) -> None:
        self.momentum = config.momentum
        self.state: State = {"square": torch.zeros_like(flat)}
        self.scratch = torch.empty_like(flat)
        if self.momentum:
            self.state["velocity"] = torch.zeros_like(flat)

    def step(self, flat: Tensor, gradient: Tensor, rates: PerMember, steps: PerMember, spread: Spread) -> None:
        """Make a step."""
        square = self.state["square"].mul_(self.alpha).addcmul_(gradient, gradient, value=1 - self.alpha)
        change = gradient / root(square, self.scratch).add_(self.epsilon)
        if self.momentum:
            change = self.state["velocity"].mul_(self.momentum).add_(change)
        move(flat, change, spread(rates))


def root(square: Tensor, out: Tensor) -> Tensor:
    """√v; of 0 it would take ten times as long, and next to ε the root of what is put in its place is nothing."""
    return torch.clamp(square, min=LEAST_SQUARE, out=out).sqrt_()


def move(flat: Tensor, change: Tensor, rates: PerNumber) -> None:
    """w ← w − η · change."""
    if isinstance(rates, Tensor):
        flat.sub_(change * rates)
    else:
        flat.sub_(change, alpha=rates)


FLAT_OPTIMIZERS: dict[str, Callable[[Tensor, TrainConfig], FlatOptimizer]] = {
    "sgd": FlatSGD,
    "adam": FlatAdam,
    "adamw": FlatAdam,
    "rmsprop": FlatRMSprop,
}
