"""How many steps settling takes where nobody says: by the size of the work, not by the clock."""

import math
from typing import Any

import torch
from torch import Tensor, nn

from topiarist.models.evaluation import count_parameters
from topiarist.surgery.settling.samples import AnsweredBatch, SettlingSamples, answers_of

# More than 25 passes over the samples learn them by heart; 8 of a ResNet-56 that has lost half of
# its inner channels take about as long as 6 forward passes of the whole one.
MOST_PASSES, FEWEST_PASSES = 25, 8
SMALL_WORK = 3e10  # multiply-accumulates, a second or two of one core: as many passes as fit in
# Where layers inside are compared too, less is learnt by heart. An LSTM over the rows of Fashion-MNIST with half of its
# units came to 0.065 of the answers for new samples in 25 passes and to 0.058 in 50; a ViT to 0.094 in 8, 0.090 in 16.
MOST_INNER_PASSES, INNER_WORK = 50, 1.2e11
BACKWARD = 3  # a step beside a forward pass
MOST_STEPS, FEWEST_STEPS = 1000, 60


def suited_steps(cut: nn.Module, samples: SettlingSamples, *, inner: bool = False) -> int:
    """Return how many steps a cut network takes by default: many where they are cheap, or its layers are compared."""
    work, most = (INNER_WORK, MOST_INNER_PASSES) if inner else (SMALL_WORK, MOST_PASSES)
    macs = rough_macs(cut, samples.batch(torch.arange(samples.batch_size)))
    steps_per_pass = max(samples.count / samples.batch_size, 1)
    passes = work / (BACKWARD * max(macs, 1) * steps_per_pass)
    steps = round(min(max(passes, FEWEST_PASSES), most) * steps_per_pass)
    return min(max(steps, FEWEST_STEPS), MOST_STEPS)


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


def _macs_of(module: nn.Module, output: Tensor) -> int:
    """Return each number of the output times the weights that it sums over."""
    if isinstance(module, nn.RNNBase):
        weights = sum(own.numel() for own in module.parameters(recurse=False))
        return output.numel() // max(output.shape[-1], 1) * weights
    weight = getattr(module, "weight", None)
    if not isinstance(weight, Tensor) or weight.ndim < 2:
        return 0
    return output.numel() * math.prod(weight.shape[1:])
