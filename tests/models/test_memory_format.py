import subprocess
import sys

import pytest
import torch
from torch import nn

from topiarist.models.memory_format import channels_last

IN_A_PROCESS_OF_ITS_OWN = """
import numpy
from torch import nn
from topiarist import Data, TrainConfig, train

random = numpy.random.default_rng(0)
data = Data.from_arrays(random.standard_normal((200, 4, 28, 28)), numpy.arange(200) % 2, scaling="zscore")
model = nn.Sequential(nn.Conv2d(4, 8, 1, 2), nn.Flatten(), nn.Linear(8 * 14 * 14, 2))
train(model, data, TrainConfig(epochs=2, batch_size=32))
"""


@pytest.mark.parametrize(
    ("convolution", "moved"),
    [
        (nn.Conv2d(4, 8, 1, 2), False),
        (nn.Conv2d(15, 8, 1, (1, 2)), False),
        (nn.Conv2d(32, 32, 1, 2, groups=4), False),
        (nn.Conv2d(16, 8, 1, 2), True),
        (nn.Conv2d(4, 8, 3, 2), True),
        (nn.Conv2d(4, 8, 1), True),
    ],
)
def test_kernels_stay_where_the_gradient_would_overrun(convolution: nn.Conv2d, moved: bool) -> None:
    other = nn.Conv2d(2, convolution.in_channels, 3)
    with channels_last([nn.Sequential(other, convolution, nn.Flatten())], torch.zeros(2, 2, 9, 9)):
        assert other.weight.is_contiguous() is not moved


@pytest.mark.slow
def test_a_way_around_with_few_channels_can_be_trained() -> None:
    subprocess.run([sys.executable, "-c", IN_A_PROCESS_OF_ITS_OWN], check=True, timeout=120)
