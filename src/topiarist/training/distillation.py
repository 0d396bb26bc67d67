"""Distillation: a network learns what a larger one answers, besides the labels (Hinton, Vinyals and Dean, 2015).

loss = (1 − w) · cross-entropy with the labels + w · T² · cross-entropy between the answers of both at temperature T.
"""

import torch
from pydantic import Field
from torch import Tensor

from topiarist.settings import Settings


class Distillation(Settings):
    """How much the teacher's answers weigh beside the labels, and the temperature that softens both answers."""

    weight: float = Field(default=0.9, gt=0, le=1)
    temperature: float = Field(default=4.0, gt=0)


def distilled(logits: Tensor, teacher: Tensor, y: Tensor, settings: Distillation) -> tuple[Tensor, Tensor]:
    """Give the loss of each sample (…, n_samples) and its slope in the logits; the classes lie along axis -2.

    `y` (…, 1, n_samples) holds class numbers.
    """
    weight, temperature = settings.weight, settings.temperature
    hard = logits.log_softmax(dim=-2)
    soft, target = (logits / temperature).log_softmax(dim=-2), (teacher / temperature).softmax(dim=-2)
    label_loss = hard.gather(-2, y).neg_().squeeze(-2)
    teacher_loss = (target * soft).sum(dim=-2).neg_() * temperature**2
    label_slope = hard.exp().scatter_add_(-2, y, -torch.ones_like(y, dtype=logits.dtype))
    teacher_slope = (soft.exp() - target) * temperature
    return (
        torch.lerp(label_loss, teacher_loss, weight),
        torch.lerp(label_slope, teacher_slope, weight),
    )
