"""How competing networks are compared: the paper's composite score, and ours, with a price for size."""

import math
from typing import Literal, get_args

import torch
from torch import Tensor

Aim = Literal["better", "balanced", "smaller"]
PRICES: dict[Aim, float] = {"better": 0.0002, "balanced": 0.001, "smaller": 0.01}
CLEAR = 2.0  # standard errors
AIMS = get_args(Aim)


def composite_score(accuracy: float, gain: float, fraction: float) -> float:
    """Return a + exp(Δa) / exp(Δf), equation 16 of the paper; Δf is the size as a fraction of the parent's."""
    if math.isnan(accuracy):
        return -math.inf
    return accuracy + math.exp(gain - fraction)


def price_of(aim: Aim | float) -> float:
    """Return what the mean probability of the true class must gain for twice the parameters to be worth it."""
    return PRICES[aim] if isinstance(aim, str) else float(aim)


def priced_score(value: float, parameters: int, *, start: int, price: float) -> float:
    """Return what a network is worth less what its size costs, in doublings of the size at the start."""
    if math.isnan(value):
        return -math.inf
    return value - price * math.log2(parameters / start)


def clearly_worse(probabilities: Tensor, leading: Tensor, handicap: float, least: float = 0.0) -> bool:
    """Return whether a network is worse than the leading one beyond the doubt that samples and training leave.

    `probabilities` (n_looks, n_samples) are those that each network gives to the true class of held-out samples;
    `handicap` is what the size of the leading one costs more. Both are trained on the same batches and evaluated on the
    same samples, so their differences count: how they spread over samples and over looks. Less than `least` is never
    clear.
    """
    differences = (leading - probabilities).double() - handicap
    looks, samples = differences.shape
    if samples < 2 or not bool(torch.isfinite(differences).all()):
        return False
    error = float(differences.mean(0).var()) / samples
    error += float(differences.mean(1).var()) / looks if looks > 1 else 0.0
    return float(differences.mean()) > max(CLEAR * math.sqrt(error), least)
