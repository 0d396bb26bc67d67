"""Which of several widths leaves a network nearest to its answers: each is tried out, refitted, on a few samples."""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import nn

from topiarist.models.evaluation import evaluating, numbers_of
from topiarist.randomness import isolated
from topiarist.surgery.calibration import CalibrationBatches
from topiarist.surgery.choice.choosing import cut_to_widths
from topiarist.surgery.settling.divergence import Answers, divergence_for
from topiarist.surgery.settling.pool import real_outputs
from topiarist.tracing import Anatomy, ExampleInput
from topiarist.tracing.running import Args, Kwargs

# Samples, half to refit with and half to judge by. LeNet on MNIST with 5 to 25 % of its units: on 2,000 the order of
# widths after the refit is that after settling.
COMPARED = 2048
Widths = Mapping[str, int]


def nearest_widths(
    model: nn.Module,
    example_input: ExampleInput,
    anatomy: Anatomy,
    candidates: Sequence[Widths],
    batches: CalibrationBatches,
) -> Widths:
    """Return the widths with which the refitted network is nearest to the whole one, on samples that no refit saw.

    Where there is one batch only, it is judged by what the refit saw.
    """
    if all(widths == candidates[0] for widths in candidates):
        return candidates[0]
    parts = list(batches.some(COMPARED))
    seen, judged = (parts[::2], parts[1::2]) if len(parts) > 1 else (parts, parts)
    wanted = [_answers(model, *inputs) for inputs in judged]
    divergence = divergence_for(wanted)
    calibration: list[Any] = [kwargs or args for args, kwargs in seen]

    def distance(widths: Widths) -> float:
        cut = cut_to_widths(
            model, example_input, keep=widths, calibration=calibration, anatomy=anatomy, settling=0
        ).model
        pairs = zip((_answers(cut, *inputs) for inputs in judged), wanted, strict=True)
        return sum(float(divergence(found, answers)) for found, answers in pairs)

    return min(candidates, key=distance)


def _answers(model: nn.Module, args: Args, kwargs: Kwargs) -> Answers:
    with evaluating(model), isolated(0, numbers_of(model).device), torch.no_grad():
        return real_outputs(model(*args, **kwargs))
