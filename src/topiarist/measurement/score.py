"""What a network says of samples, and how often it is right."""

from collections.abc import Iterator

import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader

from topiarist.data import AnyPart, Part
from topiarist.errors import DataError, SettingsError
from topiarist.measurement.evaluating import call, evaluating, placed
from topiarist.randomness import generator

BATCH_SIZE = 1024


def predict_logits(model: nn.Module, x: Tensor, *, batch_size: int = BATCH_SIZE) -> Tensor:
    """Give the logits (n_samples, n_classes) of samples (n_samples, *input_shape), on the CPU."""
    with evaluating(model):
        return torch.cat([call(model, placed(batch, model)).cpu() for batch in torch.split(x, batch_size)])


def logits_and_labels(model: nn.Module, part: AnyPart, *, batch_size: int = BATCH_SIZE) -> tuple[Tensor, Tensor]:
    """Give the logits (n_samples, n_classes) and the class numbers (n_samples,) of a part, on the CPU."""
    logits, labels = [], []
    with evaluating(model):
        for x, y in batches(part, batch_size):
            logits.append(call(model, placed(x, model)).cpu())
            labels.append(y.cpu())
    return torch.cat(logits), torch.cat(labels)


def batches(part: AnyPart, batch_size: int) -> Iterator[tuple[Tensor, Tensor]]:
    """Give a part batch by batch, in its order."""
    if batch_size < 1:
        raise SettingsError(f"batch_size must be at least 1; found {batch_size}")
    if not len(part):
        raise DataError("there are no samples to measure on: the part is empty")
    if isinstance(part, Part):
        yield from zip(torch.split(part.x, batch_size), torch.split(part.y, batch_size), strict=True)
    else:
        # A generator of its own: the loader would draw from torch's global one, though nothing here is shuffled.
        own = generator(0, "unshuffled batches")
        yield from DataLoader(part.dataset, batch_size=batch_size, num_workers=part.workers, generator=own)


def first_sample(part: AnyPart) -> Tensor:
    """Give the first sample of a part as a batch (1, *input_shape)."""
    return part.x[:1] if isinstance(part, Part) else torch.as_tensor(part.dataset[0][0]).unsqueeze(0)
