"""How many steps settling takes where nobody says: by the size of the work, not by the clock."""

import torch
from torch import nn

from topiarist.surgery.settling.macs import rough_macs
from topiarist.surgery.settling.samples import SettlingSamples

# More than 25 passes over the samples learn them by heart; 8 of a ResNet-56 that has lost half of
# its inner channels take about as long as 6 forward passes of the whole one.
MOST_PASSES, FEWEST_PASSES = 25, 8
SMALL_WORK = 3e10  # multiply-accumulates, a second or two of one core: as many passes as fit in
BACKWARD = 3  # a step beside a forward pass
MOST_STEPS, FEWEST_STEPS = 3000, 60  # of perceptrons for digits, 3,000 take 1.7 s of one core


def suited_steps(cut: nn.Module, samples: SettlingSamples) -> int:
    """Return how many steps a cut network takes by default: many where they are cheap."""
    macs = rough_macs(cut, samples.batch(torch.arange(samples.batch_size)))
    steps_per_pass = max(samples.count / samples.batch_size, 1)
    passes = SMALL_WORK / (BACKWARD * max(macs, 1) * steps_per_pass)
    steps = round(min(max(passes, FEWEST_PASSES), MOST_PASSES) * steps_per_pass)
    return min(max(steps, FEWEST_STEPS), MOST_STEPS)
