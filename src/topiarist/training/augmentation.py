"""Samples varied anew in every step: mixup (Zhang et al., 2018) and masks as in SpecAugment (Park et al., 2019).

mixup: x ← λx + (1 − λ)x', loss = λ·CE(y) + (1 − λ)·CE(y'), where x' is another sample of the batch and λ, one a batch
as in the authors' code, is drawn from Beta(α, α). SpecAugment hides stretches of time, the last axis, and of bands, the
last but one, which are drawn for each sample and filled with its mean; there is no warping of time. Masks come after
mixup. All is drawn from torch's global generator of the CPU, which the engine seeds for each epoch.
"""

import torch
from pydantic import Field
from torch import Tensor
from torch.distributions import Beta

from topiarist.errors import SettingsError
from topiarist.settings import Settings


class Augmentation(Settings):
    """How much training samples are varied; nothing is, unless set.

    `mixup` is the α of the Beta distribution, 0 for none. There are so many masks of each kind in a sample, each from 0
    to the largest width, which is a fraction of the axis; they may overlap.
    """

    mixup: float = Field(default=0.0, ge=0)
    time_masks: int = Field(default=0, ge=0)
    time_width: float = Field(default=0.1, gt=0, le=1)
    band_masks: int = Field(default=0, ge=0)
    band_width: float = Field(default=0.15, gt=0, le=1)


def check_masks(input_shape: tuple[int, ...], settings: Augmentation) -> None:
    """Refuse masks where samples have no axes of time and bands, or too short ones to hide a step of."""
    axes = {
        "time": (settings.time_masks, settings.time_width, -1),
        "band": (settings.band_masks, settings.band_width, -2),
    }
    for name, (masks, width, axis) in axes.items():
        if masks and len(input_shape) < 2:
            raise SettingsError(f"{name} masks need samples with axes of bands and time; found samples {input_shape}")
        if masks and widest(input_shape[axis], width) < 1:
            raise SettingsError(f"{name} masks of up to {width} of {input_shape[axis]} steps hide nothing: widen them")


def augmented(x: Tensor, settings: Augmentation | None) -> tuple[Tensor, Tensor | None, float]:
    """Give samples (n_samples, …, n_bands, n_times) varied, the row of each one's partner, and λ, the share of its own.

    There are no partners without mixup.
    """
    if settings is None:
        return x, None, 1.0
    partners, share = None, 1.0
    if settings.mixup:
        share = float(Beta(settings.mixup, settings.mixup, validate_args=False).sample())
        partners = torch.randperm(len(x)).to(x.device)
        x = torch.lerp(x[partners], x, share)
    return masked(x, settings), partners, share


def masked(x: Tensor, settings: Augmentation) -> Tensor:
    """Hide stretches of time and of bands of each sample behind its mean."""
    if not settings.time_masks and not settings.band_masks:
        return x
    between = (1,) * (x.ndim - 3)
    times = hidden(len(x), x.shape[-1], settings.time_masks, settings.time_width).to(x.device)
    bands = hidden(len(x), x.shape[-2], settings.band_masks, settings.band_width).to(x.device)
    mean = x.flatten(1).mean(dim=1).view(-1, *between, 1, 1)
    return torch.where(times.view(-1, *between, 1, x.shape[-1]) | bands.view(-1, *between, x.shape[-2], 1), mean, x)


def hidden(samples: int, length: int, masks: int, width: float) -> Tensor:
    """Say which steps of an axis (samples, length) are behind a mask; widths and places are drawn evenly."""
    drawn = torch.rand(2, samples, masks, 1, dtype=torch.float64)
    widths = (drawn[0] * (widest(length, width) + 1)).floor()
    starts = (drawn[1] * (length - widths + 1)).floor()
    steps = torch.arange(length)
    return ((steps >= starts) & (steps < starts + widths)).any(dim=1)


def widest(length: int, width: float) -> int:
    """Give how many steps the largest mask hides."""
    return int(length * width)
