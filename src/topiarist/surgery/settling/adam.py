"""Adam (Kingma and Ba, 2015), with a fraction of the overhead of torch's: the networks here are often tiny."""

import math
from collections.abc import Sequence

import torch
from torch import Tensor

MEAN, SQUARE, SMALLEST = 0.9, 0.999, 1e-8  # as published


class Adam:
    """The optimizer of one descent; parameters without a gradient count as having one of zero."""

    def __init__(self, parameters: Sequence[Tensor]) -> None:
        self.parameters = [parameter.detach() for parameter in parameters]  # the same memory
        self.means = [torch.zeros_like(parameter) for parameter in self.parameters]
        self.squares = [torch.zeros_like(parameter) for parameter in self.parameters]
        self.steps = 0

    def step(self, gradients: Sequence[Tensor | None], rate: float) -> None:
        """Move the parameters by about the rate: −rate · m̂ / (√v̂ + ε), with both means freed of their zero start."""
        pairs = zip(gradients, self.parameters, strict=True)
        known = [torch.zeros_like(parameter) if given is None else given for given, parameter in pairs]
        self.steps += 1
        torch._foreach_lerp_(self.means, known, 1 - MEAN)
        torch._foreach_mul_(self.squares, SQUARE)
        torch._foreach_addcmul_(self.squares, known, known, 1 - SQUARE)
        roots = torch._foreach_sqrt(self.squares)
        unbiased = math.sqrt(1 - SQUARE**self.steps)
        torch._foreach_add_(roots, SMALLEST * unbiased)
        torch._foreach_addcdiv_(self.parameters, self.means, roots, -rate * unbiased / (1 - MEAN**self.steps))
