"""Networks with labelled samples for a test."""

import torch
from torch import Tensor, nn
from torch.nn import functional

from tests.networks import NETWORKS
from tests.surgery.samples import more
from topiarist import models
from topiarist.randomness import generator
from topiarist.surgery import Edit
from topiarist.surgery.advice.trials import LabelledSamples, mean_loss, trial
from topiarist.tracing import Anatomy


def labelled(name: str, count: int = 60) -> tuple[nn.Module, LabelledSamples]:
    """Return a network by name, or one of the library's families, with random samples and labels."""
    if name in NETWORKS:
        model, example = NETWORKS[name](0)
        x: Tensor = more(example, count)
    else:
        model = FAMILIES[name]().double().eval()
        shape = (6,) if name == "mlp" else (1, 28, 28)
        x = torch.randn(count, *shape, generator=generator(0, name), dtype=torch.float64)
    with torch.no_grad():
        classes = model(x[:2]).shape[1]
    return model, LabelledSamples(x, torch.randint(classes, (count,), generator=generator(1, name)))


FAMILIES = {
    "mlp": lambda: models.mlp([6, 8, 7, 3], "tanh"),
    "vgg": lambda: models.vgg(0, 0, 1, 1, input_shape=(1, 28, 28)),
    "inception family": lambda: models.inception(1, 0, 1, input_shape=(1, 28, 28)),
}


def loss_by_hand(model: nn.Module, samples: LabelledSamples) -> float:
    """Return the mean cross-entropy, all samples at once."""
    with torch.no_grad():
        return float(functional.cross_entropy(model.eval()(samples.calibration), samples.labels))


def loss_with(model: nn.Module, edit: Edit, found: Anatomy, samples: LabelledSamples) -> float:
    """Return the mean cross-entropy that a network would have with one edit."""
    return mean_loss(trial(model, edit, found, samples.batches(model)), samples)
