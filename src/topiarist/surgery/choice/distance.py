"""How far the answers of a changed network are from those of the whole one, on some of the calibration data."""

import math

import torch
from torch import Tensor, nn

from topiarist.surgery.calibration import CalibrationBatches
from topiarist.surgery.settling.divergence import divergence_for
from topiarist.surgery.settling.pool import answers_of, samples_in


class AnswerDistance:
    """The distance of a network's answers from those of the whole network, a mean over samples.

    Scores of classes are compared as probabilities, other outputs by their squared error, as in settling.

    Parameters
    ----------
    whole : nn.Module
        The network whose answers are wanted; it answers once.
    batches : CalibrationBatches
        Calibration data.
    most : int
        About how many samples are used.
    """

    def __init__(self, whole: nn.Module, batches: CalibrationBatches, most: int) -> None:
        self._inputs = []
        count = 0
        for inputs in batches.some(most):
            self._inputs.append(inputs)
            count += samples_in(inputs)
            if count >= most:
                break
        self._wanted = [answers_of(whole, inputs) for inputs in self._inputs]
        self._divergence = divergence_for(self._wanted)

    def of(self, network: nn.Module) -> float:
        """Return the distance of a network's answers; infinite where they are not finite, or the same for all samples.

        A network that answers all alike has lost its input on the way: whatever it is near to, it is of no use.
        """
        total, count, varies = 0.0, 0, False
        for inputs, wanted in zip(self._inputs, self._wanted, strict=True):
            samples, found = samples_in(inputs), answers_of(network, inputs)
            total += samples * float(self._divergence(found, wanted))
            count += samples
            varies |= any(not _is_one_answer(answer) for answer in found)
        return total / count if varies and math.isfinite(total) else math.inf


def _is_one_answer(answers: Tensor) -> bool:
    """Return whether a tensor (n_samples, …) is the same for all of several samples, up to rounding."""
    if answers.ndim == 0 or len(answers) < 2:
        return False
    apart = (answers - answers[:1]).abs().max()
    return bool(apart <= torch.finfo(answers.dtype).eps * 64 * answers.abs().max())
