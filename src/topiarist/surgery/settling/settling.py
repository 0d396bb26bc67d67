"""Settling: after a cut and its refit, the whole network is moved towards the answers that it gave before.

A refit makes up for a cut layer by layer. What is left of its errors adds up on the way to the answers, and there the
layers can make up for each other: a bounded number of gradient steps on the same unlabelled calibration data.
"""

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn

from topiarist.errors import SettingsError, TopiaristWarning
from topiarist.models.evaluation import count_parameters, numbers_of
from topiarist.randomness import isolated
from topiarist.surgery.calibration import CalibrationBatches
from topiarist.surgery.refit.fits import Fitted
from topiarist.surgery.settling.divergence import DivergenceFor, divergence_for
from topiarist.surgery.settling.inner import InnerAnswers
from topiarist.surgery.settling.samples import answered
from topiarist.surgery.settling.state import Settleable
from topiarist.surgery.settling.steps import NoGradientError, SettlingDescent
from topiarist.surgery.settling.work import suited_steps
from topiarist.threads import torch_threads, without_denormals

SMALL_NETWORK = 1_000_000  # parameters, below which more threads are slower


@dataclass(frozen=True)
class Settled:
    """What settling made of a network.

    Parameters
    ----------
    numbers : dict[str, Tensor]
        The tensors that changed, by name; none where nothing was better than what the network began with.
    steps : int
        How many steps were made, the trials that found their rate included.
    before, after : float
        How far the answers were from those wanted, and are, on the part of the calibration data that judges.
    """

    numbers: Fitted = field(default_factory=Fitted, repr=False)
    steps: int = 0
    before: float = 0.0
    after: float = 0.0


def settle(
    whole: nn.Module,
    cut: nn.Module,
    batches: CalibrationBatches,
    *,
    steps: int | None = None,
    seed: int = 0,
    divergence: DivergenceFor = divergence_for,
) -> Settled:
    """Move a cut network towards the answers of the whole one, in place, and return the tensors that changed.

    The best values by a fixed part of the calibration data are kept, and where none are better than the first ones,
    nothing changes. Parameters that are frozen stay as they are, and tied ones tied.

    Parameters
    ----------
    whole, cut : nn.Module
        The network whose answers are wanted, which is left as it is, and the one that changes.
    batches : CalibrationBatches
        Calibration data, which are in memory meanwhile.
    steps : int, optional
        The number of steps of Adam, trials of rates included; by default as many as suit the size of the work.
    seed : int
        Decides which samples judge, and the order in which they are learnt from.
    divergence : callable
        From all answers wanted, what measures the distance from them.

    Returns
    -------
    Settled

    Raises
    ------
    ModelError
        The network cannot read the calibration data.
    """
    if steps is not None and steps < 0:
        raise SettingsError(f"settling takes 0 steps or more; found {steps}")
    with torch.inference_mode(False), torch.enable_grad():
        network = None if steps == 0 else Settleable.of(cut)
        can_settle = network is not None and bool(network.parameters)
        samples = answered(whole, batches, seed, parameters=count_parameters(cut)) if can_settle else None
        if network is None or samples is None:
            return Settled()
        inner = InnerAnswers.between(whole, cut, samples.batch(torch.arange(samples.batch_size)).inputs)
        count = suited_steps(cut, samples, inner=bool(inner.paths)) if steps is None else steps
        threads, device = 1 if count_parameters(cut) < SMALL_NETWORK else None, numbers_of(cut).device
        with torch_threads(threads), without_denormals(), isolated(seed, device), network.kept_apart(), inner.ready():
            descent = SettlingDescent(network, samples, divergence(samples.wanted), inner, seed)
            try:
                descent.run(count)
            except NoGradientError as error:
                network.put(descent.first)
                warnings.warn(f"the cut network was not settled: {error}", TopiaristWarning, stacklevel=2)
                return Settled()
        if not descent.has_improved:
            return Settled(steps=count, before=descent.first_loss, after=descent.first_loss)
        pairs = zip(network.tensors().items(), descent.first, strict=True)
        numbers = {name: now.detach().clone() for (name, now), old in pairs if not torch.equal(now, old)}
        return Settled(numbers, count, descent.first_loss, descent.best_loss)


def put_settled(model: nn.Module, numbers: Mapping[str, Tensor]) -> None:
    """Set the values that settling found in a network: parameters that are shared stay so."""
    tensors = {**dict(model.named_parameters()), **dict(model.named_buffers())}
    for name, values in numbers.items():
        own = tensors[name]
        own.data = values.to(own.device, copy=True)
