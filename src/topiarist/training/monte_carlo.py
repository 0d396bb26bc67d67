"""Monte-Carlo dropout (Gal and Ghahramani): repeated stochastic passes, mean prediction and its spread."""

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.modules.dropout import _DropoutNd

from topiarist.errors import ModelError
from topiarist.models.evaluation import evaluating, numbers_of, placed
from topiarist.randomness import child_seed, isolated
from topiarist.threads import torch_threads
from topiarist.training.inference import BATCH_SIZE, call, suited_threads


@dataclass(frozen=True)
class MonteCarlo:
    """Mean and standard deviation of the class probabilities, both (n_samples, n_classes)."""

    mean: Tensor
    spread: Tensor


def monte_carlo(model: nn.Module, x: Tensor, *, passes: int = 100, seed: int = 0) -> MonteCarlo:
    """Predict `passes` times with dropout switched on and everything else as at test time."""
    dropouts = [module for module in model.modules() if isinstance(module, _DropoutNd) and module.p > 0]
    if not dropouts:
        raise ModelError("Monte-Carlo dropout needs a network with dropout: this one has none")
    if passes < 2:
        raise ModelError(f"Monte-Carlo dropout needs at least 2 passes; asked for {passes}")
    like = numbers_of(model)
    random, threads = isolated(child_seed(seed, "monte carlo"), like.device), torch_threads(suited_threads(model))
    with evaluating(model), random, threads:
        for module in dropouts:
            module.training = True
        found = [stochastic(model, placed(batch, like), passes) for batch in torch.split(x, BATCH_SIZE)]
    return MonteCarlo(torch.cat([mean for mean, _ in found]), torch.cat([spread for _, spread in found]))


def stochastic(model: nn.Module, x: Tensor, passes: int) -> tuple[Tensor, Tensor]:
    """Give mean and spread of the probabilities of some samples over the passes, on the CPU."""
    probabilities = torch.stack([call(model, x).softmax(dim=1).cpu() for _ in range(passes)])
    return probabilities.mean(dim=0), probabilities.std(dim=0)
