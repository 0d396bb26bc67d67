"""About how many multiply-accumulates a batch takes in a network: enough to tell small work from large."""

import math
from typing import Any

from torch import Tensor, nn

from topiarist.models.evaluation import count_parameters
from topiarist.surgery.settling.pool import AnsweredBatch, answers_of


def rough_macs(model: nn.Module, batch: AnsweredBatch) -> int:
    """Return about how many multiply-accumulates a batch takes: those of the layers, at least one per parameter.

    What a network's own code multiplies is not seen here; `measurement` counts all of it.
    """
    found = 0

    def count(module: nn.Module, _: Any, given: Any) -> None:
        nonlocal found
        output = given[0] if isinstance(given, tuple) else given
        if isinstance(output, Tensor):
            found += _macs_of(module, output)

    counted = [module for module in model.modules() if not isinstance(module, nn.Embedding | nn.EmbeddingBag)]
    handles = [module.register_forward_hook(count) for module in counted]
    try:
        answers_of(model, batch.inputs)
    finally:
        for handle in handles:
            handle.remove()
    return max(found, count_parameters(model) * batch.samples)


def uses_weights_once(model: nn.Module, batch: AnsweredBatch) -> bool:
    """Return whether a network uses each weight once per sample, as perceptrons do, and not at many places of it."""
    return rough_macs(model, batch) == count_parameters(model) * batch.samples


def _macs_of(module: nn.Module, output: Tensor) -> int:
    """Return each number of the output times the weights that it sums over."""
    if isinstance(module, nn.RNNBase):
        weights = sum(own.numel() for own in module.parameters(recurse=False))
        return output.numel() // max(output.shape[-1], 1) * weights
    weight = getattr(module, "weight", None)
    if not isinstance(weight, Tensor) or weight.ndim < 2:
        return 0
    return output.numel() * math.prod(weight.shape[1:])
