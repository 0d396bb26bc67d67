"""What a network answers: its logits for samples and parts, and the spread of its answers under dropout."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.modules.dropout import _DropoutNd
from torch.utils.data import DataLoader

from topiarist.data import AnyPart, Data, Part, Samples
from topiarist.errors import DataError, ModelError, SettingsError, TopiaristError, first_line
from topiarist.models.card import card_of
from topiarist.models.evaluation import count_parameters, evaluating, numbers_of, placed
from topiarist.models.memory_format import runs_channels_last, with_channels_last
from topiarist.randomness import child_seed, generator, isolated
from topiarist.tasks import Task
from topiarist.threads import torch_threads

BATCH_SIZE, BATCH_BYTES = 4096, 2**26  # 64 MB: reached from 4,096 numbers of float32 per sample on
NORM_BATCH_SIZE = 256
IMAGE_NUMBERS, FEWEST_IMAGES = 2**16, 16  # in a batch: what more images become no longer fits in a cache
SMALL_NETWORK = 1_000_000  # parameters, below which more than one thread is slower


def suited_threads(model: nn.Module) -> int | None:
    """Return 1 for a network below a million parameters, where more threads are slower; None leaves torch alone."""
    return 1 if count_parameters(model) < SMALL_NETWORK else None


def largest_batch(sample: Tensor) -> int:
    """Return how many samples such as this one (1, *input_shape) run together at most: BATCH_SIZE, or BATCH_BYTES."""
    return min(BATCH_SIZE, max(BATCH_BYTES // max(sample.nbytes, 1), FEWEST_IMAGES))


def suited_batch(sample: Tensor) -> int:
    """Return how many samples such as this one (1, *input_shape) to run together."""
    if sample.ndim < 3:
        return largest_batch(sample)
    return min(max(IMAGE_NUMBERS // max(sample.numel(), 1), FEWEST_IMAGES), BATCH_SIZE)


def run_samples(model: nn.Module, x: Tensor) -> Any:
    """Return whatever a network returns for samples that are `placed`; what its forward raises becomes one line."""
    try:
        return model(x)
    except TopiaristError:
        raise
    except Exception as error:  # whatever a user's forward raises
        reason = first_line(error)
        raise ModelError(f"the network cannot read samples of shape {tuple(x.shape[1:])}: {reason}") from error


def call(model: nn.Module, x: Tensor) -> Tensor:
    """Return the outputs (n_samples, n_outputs) of samples that are `placed`; one number per sample is one output."""
    logits = run_samples(model, x)
    if isinstance(logits, Tensor) and logits.shape == (len(x),):
        return logits[:, None]
    if not isinstance(logits, Tensor) or logits.ndim != 2 or len(logits) != len(x):
        found = f"shape {tuple(logits.shape)}" if isinstance(logits, Tensor) else type(logits).__name__
        raise ModelError(f"the network must return logits ({len(x)}, n_classes) for {len(x)} samples; found {found}")
    return logits


def predict_logits(model: nn.Module, x: Samples, *, batch_size: int | None = None) -> Tensor:
    """Return the outputs (n_samples, n_outputs) of samples (n_samples, *input_shape), on the CPU."""
    unlabelled = Part(x, torch.zeros(len(x), dtype=torch.int64))
    return part_logits(model, unlabelled, batch_size=batch_size)[0]


def part_logits(model: nn.Module, part: AnyPart, *, batch_size: int | None = None) -> tuple[Tensor, Tensor]:
    """Return the outputs (n_samples, n_outputs) and the targets (n_samples, …) of a part, on the CPU."""
    like, outputs, done = numbers_of(model), torch.empty(0), 0
    targets: list[Tensor] = []
    with evaluating(model), torch_threads(suited_threads(model)):
        last = bool(len(part)) and runs_channels_last(model, placed(first_sample(part), like))
        for x, y in part_batches(part, batch_size):
            samples = with_channels_last(placed(x, like)) if last else placed(x, like)
            logits = call(model, samples).cpu()
            if not targets:  # one place for all: many small ones keep the memory of batches from being used again
                outputs = logits.new_empty(len(part), logits.shape[1])
            outputs[done : done + len(logits)] = logits
            done += len(logits)
            targets.append(y.cpu())
    return outputs, torch.cat(targets)


def part_batches(part: AnyPart, batch_size: int | None = None) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield the samples of a part in their order, as many together as suits them unless `batch_size` is given."""
    if batch_size is not None and batch_size < 1:
        raise SettingsError(f"batch_size must be at least 1; found {batch_size}")
    if not len(part):
        raise DataError("there are no samples to look at: the part is empty")
    batch_size = suited_batch(first_sample(part)) if batch_size is None else batch_size
    if isinstance(part, Part):
        starts = range(0, len(part), batch_size)
        yield from ((part.samples[at : at + batch_size], part.y[at : at + batch_size]) for at in starts)
    else:
        # A generator of its own: the loader would draw from torch's global one, though nothing here is shuffled.
        own = generator(0, "unshuffled batches")
        yield from DataLoader(part.dataset, batch_size=batch_size, num_workers=part.workers, generator=own)


def part_targets(part: AnyPart) -> Tensor:
    """Return the targets of a part (n_samples, …) on the CPU; samples are read where a dataset holds both."""
    return part.y.cpu() if isinstance(part, Part) else torch.cat([torch.as_tensor(y) for _, y in part_batches(part)])


def weights_of(part: AnyPart) -> Tensor | None:
    """Return how much each sample of a part counts; None where all count the same."""
    return part.weights if isinstance(part, Part) else None


def first_sample(part: AnyPart) -> Tensor:
    """Return the first sample of a part as a batch (1, *input_shape)."""
    return part.samples[:1] if isinstance(part, Part) else torch.as_tensor(part.dataset[0][0]).unsqueeze(0)


def example_input(model: nn.Module, data: Data) -> Tensor:
    """Return two samples as a network reads them."""
    return placed(torch.cat([first_sample(data.train)] * 2), numbers_of(model))


@dataclass(frozen=True)
class MonteCarlo:
    """Mean and standard deviation of the answers, such as class probabilities, both (n_samples, n_outputs)."""

    mean: Tensor
    spread: Tensor


def monte_carlo(
    model: nn.Module, x: Samples, *, passes: int = 100, seed: int = 0, task: Task | None = None
) -> MonteCarlo:
    """Predict with dropout switched on, repeatedly: Monte-Carlo dropout (Gal and Ghahramani, 2016).

    Parameters
    ----------
    model : a network with dropout; everything but dropout is as at test time
    x : samples (n_samples, *input_shape)
    passes : how often to predict
    seed : that of dropout
    task : what is predicted, where the network's card does not say

    Returns
    -------
    MonteCarlo : mean and spread of the answers over the passes, on the CPU: class probabilities, unless the network's
        card says that it predicts numbers or labels

    Raises
    ------
    ModelError : where the network has no dropout, or there are fewer than 2 passes

    Examples
    --------
    >>> from topiarist import models
    >>> monte_carlo(models.mlp([4, 8, 3], dropout=0.5), torch.zeros(5, 4), passes=10).mean.shape
    torch.Size([5, 3])
    """
    dropouts = [module for module in model.modules() if isinstance(module, _DropoutNd) and module.p > 0]
    if not dropouts:
        raise ModelError("Monte-Carlo dropout needs a network with dropout: this one has none")
    if passes < 2:
        raise ModelError(f"Monte-Carlo dropout needs at least 2 passes; asked for {passes}")
    like, means, spreads = numbers_of(model), [], []
    task = card_of(model).task if task is None else task
    random, threads = isolated(child_seed(seed, "monte carlo"), like.device), torch_threads(suited_threads(model))
    with evaluating(model), random, threads:
        for module in dropouts:
            module.training = True
        for start in range(0, len(x), BATCH_SIZE):
            samples = placed(x[start : start + BATCH_SIZE], like)
            outputs = [call(model, samples) for _ in range(passes)]
            answers = torch.stack([_answered(task, each).cpu() for each in outputs])
            means.append(answers.mean(dim=0))
            spreads.append(answers.std(dim=0))
    return MonteCarlo(torch.cat(means), torch.cat(spreads))


def _answered(task: Task | None, outputs: Tensor) -> Tensor:
    return outputs.softmax(dim=1) if task is None else task.answers(outputs)


def settle_norms(model: nn.Module, part: AnyPart) -> None:
    """Set every batch norm that is trained to the mean and variance over the batches of a part; nothing else changes.

    Moving averages lag behind weights that still move, and a network may then answer much worse than it has learned to.
    After Wu and Johnson, Rethinking "Batch" in BatchNorm (2021): precise batch norm.
    """
    norms = [
        module
        for module in model.modules()
        if isinstance(module, _BatchNorm)
        and module.track_running_stats
        and (module.weight is None or module.weight.requires_grad)
    ]
    if not norms:
        return
    momenta = [norm.momentum for norm in norms]
    like, seen = numbers_of(model), 0
    with evaluating(model):
        for norm in norms:
            norm.train()
        for x, _ in part_batches(part, NORM_BATCH_SIZE):
            if len(x) > 1 or not seen:
                seen += len(x)
                for norm in norms:
                    norm.momentum = len(x) / seen
                model(placed(x, like))
    for norm, momentum in zip(norms, momenta, strict=True):
        norm.momentum = momentum
