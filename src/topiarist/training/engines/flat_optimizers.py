"""Optimizers over the flat parameters of a stack: the arithmetic of `torch.optim`, with a learning rate per member.

`torch.optim` has one rate for a whole tensor and no way to leave some members alone in a step. On the CPU its fused
kernel makes the step of Adam, for each run of neighbours that agree in rate and step: one operation in the place of
seven, in a third of the time, and nothing for members without samples.
"""

import math
from collections.abc import Callable, Sequence
from itertools import groupby
from typing import NamedTuple

import torch
from torch import Tensor

from topiarist.devices import in_float64
from topiarist.training.config import TrainConfig
from topiarist.training.engines.steps import State

PerMember = float | Tensor  # one number where all members agree, otherwise one per member
PerNumber = float | Tensor
_Piece = tuple[float, list[list[Tensor]]]  # how much decays, and of flat, gradient, mean and square the parts
Spread = Callable[[PerMember], PerNumber]

BETA1, BETA2, EPSILON, ALPHA = 0.9, 0.999, 1e-8, 0.99  # of Adam and RMSprop, torch's defaults
MOST_RUNS = 16  # of the fused kernel: 20 members of 10–100–7 take 25 µs as one run, 128 µs as 16, 177 µs without it
LEAST_SQUARE = 1e-36  # its root, 1e-18, is nothing beside ε


class Neighbours(NamedTuple):
    """Members of a stack from `first` to before `last`, which make the step with the same number by the same rate."""

    first: int
    last: int
    rate: float
    step: int


def neighbours(rows: Sequence[int], rates: Sequence[float], steps: Sequence[int]) -> list[Neighbours]:
    """Return runs of members that have samples and agree in rate and step.

    Examples
    --------
    >>> [(run.first, run.last) for run in neighbours((8, 8, 0, 5, 5), (0.1,) * 5, (3, 3, 2, 3, 3))]
    [(0, 2), (3, 5)]
    """
    if all(rows) and len(set(rates)) == 1 and len(set(steps)) == 1:
        return [Neighbours(0, len(rows), rates[0], steps[0])]
    found, first = [], 0
    for key, run in groupby(zip(map(bool, rows), rates, steps, strict=True)):
        last = first + len(list(run))
        busy, rate, step = key
        if busy:
            found.append(Neighbours(first, last, rate, step))
        first = last
    return found


class FlatOptimizer:
    """Changes `flat` in place from `gradient`, by one rate or one per member; `state` is what to save.

    `blocks` are how many numbers each parameter has in each of `members`, and whether it is a kernel.
    """

    def __init__(
        self, flat: Tensor, config: TrainConfig, *, members: int = 1, blocks: Sequence[tuple[int, bool]] = ()
    ) -> None:
        self.members, self.blocks = members, blocks
        self.weight_decay = config.weight_decay if config.optimizer == "adamw" else 0.0
        self.decays_all = config.weight_decay_on == "all"
        self.pieces: dict[tuple[int, int], list[_Piece]] = {}
        self.known: tuple[Tensor, ...] = ()
        self.name, self.momentum, self.nesterov = config.optimizer, config.momentum, config.nesterov
        remembered = {"sgd": (), "rmsprop": ("square",)}.get(self.name, ("mean", "square"))
        names = (*remembered, "velocity") if self.momentum else remembered
        self.state: State = {name: torch.zeros_like(flat) for name in names}
        # Fresh memory at every step would cost more than the arithmetic.
        self.scratch = torch.empty_like(flat) if "square" in names else flat
        self.fused = flat.device.type == "cpu" and self.name in ("adam", "adamw") and bool(blocks)
        self.number = torch.zeros(())  # of the step, as the fused kernel reads it

    def step_together(self, flat: Tensor, gradient: Tensor, runs: Sequence[Neighbours]) -> None:
        """Make a step of Adam, and the decoupled weight decay of AdamW, of runs of members by the fused kernel."""
        tensors = flat, gradient, self.state["mean"], self.state["square"]
        if len(self.known) != len(tensors) or any(one is not two for one, two in zip(tensors, self.known, strict=True)):
            self.known, self.pieces = tensors, {}
        for run in runs:
            place = run.first, run.last
            if place not in self.pieces:
                self.pieces[place] = self._pieces(tensors, *place)
            self.number.fill_(run.step)
            for decay, (numbers, slopes, means, squares) in self.pieces[place]:
                torch._fused_adamw_(
                    numbers, slopes, means, squares, [], [self.number] * len(numbers), lr=run.rate, beta1=BETA1,
                    beta2=BETA2, eps=EPSILON, weight_decay=decay, amsgrad=False, maximize=False,
                )  # fmt: skip

    def _pieces(self, tensors: Sequence[Tensor], first: int, last: int) -> "list[_Piece]":
        """Return what belongs to some members: of all parameters as one, or by whether they decay."""
        if (first, last) == (0, self.members) and not self.weight_decay:
            return [(0.0, [[tensor] for tensor in tensors])]
        found: dict[float, list[list[Tensor]]] = {}
        sizes = [size * self.members for size, _ in self.blocks]
        split = [torch.split(tensor, sizes) for tensor in tensors]
        for number, (size, kernel) in enumerate(self.blocks):
            lists = found.setdefault(self.weight_decay if kernel or self.decays_all else 0.0, [[] for _ in tensors])
            for pieces, into in zip(split, lists, strict=True):
                into.append(pieces[number][first * size : last * size])
        return list(found.items())

    def step(self, flat: Tensor, gradient: Tensor, rates: PerMember, steps: PerMember, spread: Spread) -> None:
        """Make the step whose number (from 1) is `steps`; `spread` gives each number that of its member."""
        match self.name:
            case "sgd":
                _move(flat, self._accelerated(gradient), spread(rates))
            case "rmsprop":
                # v ← lerp(v, g², 1−α); step g / (√v + ε), through a velocity where there is momentum.
                square = self.state["square"].mul_(ALPHA).addcmul_(gradient, gradient, value=1 - ALPHA)
                change = gradient / self._root(square).add_(EPSILON)
                _move(flat, self._accelerated(change), spread(rates))
            case _:
                self._adam(flat, gradient, rates, steps, spread)

    def _accelerated(self, change: Tensor) -> Tensor:
        """v ← μv + g; the step is v, or Nesterov's g + μv."""
        if not self.momentum:
            return change
        velocity = self.state["velocity"].mul_(self.momentum).add_(change)
        return change.add(velocity, alpha=self.momentum) if self.nesterov else velocity

    def _adam(self, flat: Tensor, gradient: Tensor, rates: PerMember, steps: PerMember, spread: Spread) -> None:
        """m ← lerp(m, g, 1−β₁); v ← lerp(v, g², 1−β₂); w ← w − η m̂ / (√v̂ + ε)."""
        mean = self.state["mean"].lerp_(gradient, 1 - BETA1)
        square = self.state["square"].mul_(BETA2).addcmul_(gradient, gradient, value=1 - BETA2)
        # The correction of √v̂ is moved out of the quotient, which saves an operation.
        correction, factor = _corrections(steps)
        denominator = self._root(square).add_(spread(correction * EPSILON))
        change = spread(factor * rates)
        if isinstance(change, Tensor):
            flat.addcmul_(torch.div(mean, denominator, out=denominator), change, value=-1)
        else:
            flat.addcdiv_(mean, denominator, value=-change)

    def _root(self, square: Tensor) -> Tensor:
        """Return √v; of an exact 0 it would take ten times as long."""
        return torch.clamp(square, min=LEAST_SQUARE, out=self.scratch).sqrt_()


def _corrections(steps: PerMember) -> tuple[PerMember, PerMember]:
    """Return √(1 − β₂ᵗ) and √(1 − β₂ᵗ) / (1 − β₁ᵗ), in double precision, where 1 − β₂ᵗ is exact enough."""
    if isinstance(steps, Tensor):
        exact = in_float64(steps)
        roots = (1 - BETA2**exact).sqrt_()
        return roots.to(steps), (roots / (1 - BETA1**exact)).to(steps)
    root = math.sqrt(1 - BETA2**steps)
    return root, root / (1 - BETA1**steps)


def _move(flat: Tensor, change: Tensor, rates: PerNumber) -> None:
    if isinstance(rates, Tensor):
        flat.sub_(change * rates)
    else:
        flat.sub_(change, alpha=rates)
