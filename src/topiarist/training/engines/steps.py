"""What a training step does beside forward and backward: vary the samples, clip the gradients.

And what is kept of it: states of networks and optimizers, by name.
"""

from collections.abc import Mapping, Sequence
from typing import Literal

import torch
from torch import Tensor
from torch.distributions import Beta

from topiarist.errors import SettingsError
from topiarist.training.config import Augmentation

State = dict[str, Tensor]
Memory = Mapping[str, Mapping[str, Tensor]]  # what an optimizer remembers, by parameter: {"0.weight": {"mean": …}}


def flattened(groups: Mapping[str, Mapping[str, Tensor]]) -> State:
    """Return all tensors under names such as `group/name`, for a file; `under("group/", …)` finds a group again."""
    return {f"{group}/{name}": value for group, state in groups.items() for name, value in state.items()}


def check_masks(input_shape: tuple[int, ...], settings: Augmentation) -> None:
    """Raise an error where samples have no axes of time and bands, or are too short to hide a step of."""
    axes = {
        "time": (settings.time_masks, settings.time_width, -1),
        "band": (settings.band_masks, settings.band_width, -2),
    }
    for name, (masks, width, axis) in axes.items():
        if masks and len(input_shape) < 2:
            raise SettingsError(f"{name} masks need samples with axes of bands and time; found samples {input_shape}")
        if masks and int(input_shape[axis] * width) < 1:
            raise SettingsError(f"{name} masks of up to {width} of {input_shape[axis]} steps hide nothing: widen them")


def augmented(x: Tensor, settings: Augmentation | None) -> tuple[Tensor, Tensor | None, float]:
    """Return samples (n_samples, …, n_bands, n_times) varied, the row of each one's partner, and λ.

    Mixup: x ← λx + (1 − λ)x', loss = λ·CE(y) + (1 − λ)·CE(y'), where x' is another sample of the batch and λ, one per
    batch as in the authors' code, is drawn from Beta(α, α); there are no partners without it. SpecAugment comes after:
    stretches of time, the last axis, and of bands, the last but one, are hidden behind the sample's mean; time is not
    warped. All is drawn from torch's global generator of the CPU, which the engine seeds for each epoch.
    """
    if settings is None:
        return x, None, 1.0
    partners, share = None, 1.0
    if settings.mixup:
        share = float(Beta(settings.mixup, settings.mixup, validate_args=False).sample())
        partners = torch.randperm(len(x)).to(x.device)
        x = torch.lerp(x[partners], x, share)
    if settings.time_masks or settings.band_masks:
        between = (1,) * (x.ndim - 3)
        times = hidden_steps(len(x), x.shape[-1], settings.time_masks, settings.time_width).to(x.device)
        bands = hidden_steps(len(x), x.shape[-2], settings.band_masks, settings.band_width).to(x.device)
        behind = times.view(-1, *between, 1, x.shape[-1]) | bands.view(-1, *between, x.shape[-2], 1)
        x = torch.where(behind, x.flatten(1).mean(dim=1).view(-1, *between, 1, 1), x)
    return x, partners, share


def hidden_steps(samples: int, length: int, masks: int, width: float) -> Tensor:
    """Return which steps of an axis (samples, length) are behind a mask; widths and places are drawn evenly."""
    drawn = torch.rand(2, samples, masks, 1, dtype=torch.float64)
    widths = (drawn[0] * (int(length * width) + 1)).floor()
    starts = (drawn[1] * (length - widths + 1)).floor()
    steps = torch.arange(length)
    return ((steps >= starts) & (steps < starts + widths)).any(dim=1)


def clip_value(gradients: Sequence[Tensor], limit: float) -> None:
    """Bring every entry into [−limit, limit], in place; this changes the direction."""
    for gradient in gradients:
        gradient.clamp_(-limit, limit)


def clip_norm(
    gradients: Sequence[Tensor], limit: float, *, over: Literal["all", "tensor"], members: bool = False
) -> None:
    """Scale gradients whose norm, over all tensors together or of each, is above the limit, in place.

    With `members`, gradients (n_members, …) have a leading axis, and each member is clipped by itself.
    """
    stacked = list(gradients) if members else [gradient.unsqueeze(0) for gradient in gradients]
    squares = [gradient.flatten(1).square().sum(dim=1) for gradient in stacked]
    if over == "all":
        squares = [torch.stack(squares).sum(dim=0)] * len(stacked)
    for gradient, square in zip(stacked, squares, strict=True):
        factor = (limit / square.sqrt()).clamp(max=1.0)
        gradient.mul_(factor.view(-1, *[1] * (gradient.ndim - 1)))
