"""Logits of a network on a part of the data, as at test time."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader

from topiarist.data import AnyPart, Stream

BATCH_SIZE = 4096


@contextmanager
def evaluating(model: nn.Module) -> Iterator[None]:
    """Put a network in eval mode without gradients, and every module back into its own mode afterwards."""
    modes = [(module, module.training) for module in model.modules()]
    model.eval()
    try:
        with torch.inference_mode():
            yield
    finally:
        for module, mode in modes:
            module.training = mode


def numbers_like(model: nn.Module) -> Tensor:
    """Give an empty tensor of the dtype and on the device that the network computes with."""
    first = next((p for p in model.parameters() if p.is_floating_point()), torch.empty(0))
    return torch.empty(0, dtype=first.dtype, device=first.device)


def part_logits(model: nn.Module, part: AnyPart, *, batch_size: int = BATCH_SIZE) -> tuple[Tensor, Tensor]:
    """Give logits (n_samples, n_classes) and class numbers (n_samples,), both on the CPU."""
    like = numbers_like(model)
    with evaluating(model):
        outputs = [(model(x.to(like)).cpu(), torch.as_tensor(y)) for x, y in part_batches(part, batch_size)]
    return torch.cat([logits for logits, _ in outputs]).clone(), torch.cat([y for _, y in outputs])


def part_batches(part: AnyPart, batch_size: int) -> Iterator[tuple[Tensor, Tensor]]:
    """Give the samples of a part in their order."""
    if isinstance(part, Stream):
        yield from DataLoader(part.dataset, batch_size=batch_size, num_workers=part.workers)
    else:
        yield from zip(torch.split(part.x, batch_size), torch.split(part.y, batch_size), strict=True)
