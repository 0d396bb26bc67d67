"""Batch norm after training: the mean and variance over the whole training part, in the place of moving averages.

Moving averages lag behind weights that still move, and a network may then answer much worse than it has learned to.
After Wu and Johnson, Rethinking "Batch" in BatchNorm (2021): precise batch norm.
"""

from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm

from topiarist.data import AnyPart
from topiarist.models.evaluation import evaluating, numbers_of, placed
from topiarist.training.inference import part_batches

BATCH_SIZE = 256


def settle_norms(model: nn.Module, part: AnyPart) -> None:
    """Give every batch norm that is trained the mean over the batches of a part; nothing else changes."""
    norms = [
        module
        for module in model.modules()
        if isinstance(module, _BatchNorm) and module.track_running_stats and trained(module)
    ]
    if not norms:
        return
    momenta = [norm.momentum for norm in norms]
    like, seen = numbers_of(model), 0
    with evaluating(model):
        for norm in norms:
            norm.train()
        for x, _ in part_batches(part, BATCH_SIZE):
            if len(x) > 1 or not seen:
                seen += len(x)
                for norm in norms:
                    norm.momentum = len(x) / seen
                model(placed(x, like))
    for norm, momentum in zip(norms, momenta, strict=True):
        norm.momentum = momentum


def trained(norm: _BatchNorm) -> bool:
    """Say whether a norm is not frozen."""
    return norm.weight is None or norm.weight.requires_grad
