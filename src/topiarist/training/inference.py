"""What a network answers: its logits for samples and parts."""

from collections.abc import Iterator

import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader

from topiarist.data import AnyPart, Part
from topiarist.errors import DataError, ModelError, SettingsError, TopiaristError
from topiarist.models.evaluation import count_parameters, evaluating, numbers_of, placed
from topiarist.models.memory_format import runs_channels_last, with_channels_last
from topiarist.randomness import generator
from topiarist.threads import torch_threads

BATCH_SIZE = 4096
NUMBERS_OF_PICTURES, FEWEST_PICTURES = 2**16, 16  # in a batch: what more pictures become no longer fits in a cache
SMALL_NETWORK = 1_000_000


def suited_threads(model: nn.Module) -> int | None:
    """One thread for a network below a million parameters, where more are slower; None leaves torch alone."""
    return 1 if count_parameters(model) < SMALL_NETWORK else None


def suited_batch(sample: Tensor) -> int:
    """Give how many samples to run together, one of them being given as a batch (1, *input_shape)."""
    if sample.ndim < 3:
        return BATCH_SIZE
    return min(max(NUMBERS_OF_PICTURES // max(sample.numel(), 1), FEWEST_PICTURES), BATCH_SIZE)


def call(model: nn.Module, x: Tensor) -> Tensor:
    """Give the logits (n_samples, n_classes) of samples that are `placed`."""
    try:
        logits = model(x)
    except TopiaristError:
        raise
    except Exception as error:  # whatever a user's forward raises
        reason = str(error).split("\n")[0] or type(error).__name__
        raise ModelError(f"the network cannot read samples of shape {tuple(x.shape[1:])}: {reason}") from error
    if not isinstance(logits, Tensor) or logits.ndim != 2 or len(logits) != len(x):
        found = f"shape {tuple(logits.shape)}" if isinstance(logits, Tensor) else type(logits).__name__
        raise ModelError(f"the network must give logits ({len(x)}, n_classes) for {len(x)} samples; found {found}")
    return logits


def predict_logits(model: nn.Module, x: Tensor, *, batch_size: int | None = None) -> Tensor:
    """Give the logits (n_samples, n_classes) of samples (n_samples, *input_shape), on the CPU."""
    unlabelled = Part(x, torch.zeros(len(x), dtype=torch.int64))
    return part_logits(model, unlabelled, batch_size=batch_size)[0]


def part_logits(model: nn.Module, part: AnyPart, *, batch_size: int | None = None) -> tuple[Tensor, Tensor]:
    """Give the logits (n_samples, n_classes) and the class numbers (n_samples,) of a part, on the CPU."""
    like, found = numbers_of(model), []
    with evaluating(model), torch_threads(suited_threads(model)):
        last = bool(len(part)) and runs_channels_last(model, placed(first_sample(part), like))
        for x, y in part_batches(part, batch_size):
            samples = with_channels_last(placed(x, like)) if last else placed(x, like)
            found.append((call(model, samples).cpu(), y))
    return torch.cat([logits for logits, _ in found]), torch.cat([y for _, y in found])


def part_batches(part: AnyPart, batch_size: int | None = None) -> Iterator[tuple[Tensor, Tensor]]:
    """Give the samples of a part in their order, so many together as suits them unless `batch_size` says."""
    if batch_size is not None and batch_size < 1:
        raise SettingsError(f"batch_size must be at least 1; found {batch_size}")
    if not len(part):
        raise DataError("there are no samples to look at: the part is empty")
    batch_size = suited_batch(first_sample(part)) if batch_size is None else batch_size
    if isinstance(part, Part):
        yield from zip(torch.split(part.x, batch_size), torch.split(part.y, batch_size), strict=True)
    else:
        # A generator of its own: the loader would draw from torch's global one, though nothing here is shuffled.
        own = generator(0, "unshuffled batches")
        yield from DataLoader(part.dataset, batch_size=batch_size, num_workers=part.workers, generator=own)


def first_sample(part: AnyPart) -> Tensor:
    """Give the first sample of a part as a batch (1, *input_shape)."""
    return part.x[:1] if isinstance(part, Part) else torch.as_tensor(part.dataset[0][0]).unsqueeze(0)
