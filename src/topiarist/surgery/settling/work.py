"""How many steps settling takes where nobody says: by the size of the work, not by the clock."""

import torch
from torch import nn

from topiarist.models.evaluation import count_parameters
from topiarist.surgery.settling.macs import rough_macs
from topiarist.surgery.settling.mixtures import ENOUGH_SAMPLES
from topiarist.surgery.settling.samples import SettlingSamples, are_few

# More than 25 passes over the samples learn them by heart; 8 of a ResNet-56 that has lost half of
# its inner channels take about as long as 6 forward passes of the whole one.
MOST_PASSES, FEWEST_PASSES = 25, 8  # the fewest over as many samples as are enough, or all that are no mixtures
SMALL_WORK = 3e10  # multiply-accumulates, a second or two of one core: as many passes as fit in
# Where layers inside are compared too, less is learnt by heart. An LSTM over the rows of Fashion-MNIST with half of its
# units came to 0.065 of the answers for new samples in 25 passes and to 0.058 in 50; a ViT to 0.094 in 8, 0.090 in 16.
# With mixtures, 1.2e11 multiply-accumulates took the LSTM from 83.9 to 87.4 %, 2.4e11 to 87.7 %.
MOST_INNER_PASSES, INNER_WORK = 50, 2.4e11
# Mixtures made anew cannot be learnt by heart: twice the steps take a ViT on Fashion-MNIST with half of its heads and
# hidden units from 88.60 to 88.78 % (89.86 before the cut), the LSTM from 88.04 to 88.10 % (89.36).
MORE_FRESH = 2
BACKWARD = 3  # a step beside a forward pass
MOST_STEPS, FEWEST_STEPS = 2000, 60  # of perceptrons for digits, 2,000 take a second of one core
# Where parameters are few. LeNet on MNIST with 286 parameters agrees on 88.8 % of 8,000 new images after 2,000 steps of
# 128, and on 89.7 % after 3,000; with 884 on 95.5 and 95.7 %. Both took 10,000 samples. `samples.py` has half batches.
MORE_PASSES, MORE_STEPS = 1.5, 3.0  # times as many at most


def suited_steps(cut: nn.Module, samples: SettlingSamples, *, inner: bool = False) -> int:
    """Return how many steps a cut network takes by default: many where they are cheap, or its layers are compared."""
    work, most = (INNER_WORK, MOST_INNER_PASSES) if inner else (SMALL_WORK, MOST_PASSES)
    more_fresh = MORE_FRESH if inner and samples.fresh is not None else 1
    few = are_few(count_parameters(cut), samples.originals)
    more_passes, more_steps = (MORE_PASSES, MORE_STEPS) if few else (1.0, 1.0)
    macs = rough_macs(cut, samples.batch(torch.arange(samples.batch_size)))
    steps_per_pass = max(samples.count / samples.batch_size, 1)
    passes = work / (BACKWARD * max(macs, 1) * steps_per_pass)
    fewest = FEWEST_PASSES * min(max(samples.originals, ENOUGH_SAMPLES) / samples.count, 1.0)
    steps = more_fresh * round(min(max(passes, fewest), more_passes * most) * steps_per_pass)
    return min(max(steps, FEWEST_STEPS), round(more_fresh * more_steps * MOST_STEPS))
