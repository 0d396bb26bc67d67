"""Builds networks of `transformers` by the names of their classes, without their texts and bars."""

from typing import Any

import torch
from torch import nn

from benchmarks.zoo.catalogue import Catalogue
from topiarist.data.extras import import_extra

CATALOGUE = Catalogue("hub", "transformers from the hub")
CLASSES = 5


def build(network: str, configuration: str, **settings: Any) -> nn.Module:
    """Return a network with random weights: `build("ViTForImageClassification", "ViTConfig", hidden_size=32, …)`."""
    package = import_extra("transformers", what="the zoo", extra="zoo")
    package.logging.set_verbosity_error()
    package.logging.disable_progress_bar()
    model: nn.Module = getattr(package, network)(getattr(package, configuration)(**settings))
    enliven(model)
    return model


@torch.no_grad()
def enliven(model: nn.Module) -> None:
    """Scale up weights of less than 1 / √inputs, as if the network were trained.

    The package draws most weights with a deviation of 0.02. At these widths attention is then next to uniform, and a
    network whose heads were cut wrongly computes almost the same.
    """
    for weight in model.parameters():
        if weight.dim() < 2:
            continue
        deviation, usual = weight.std(), (weight.numel() / weight.shape[0]) ** -0.5
        if 0 < deviation < usual:
            weight.mul_(usual / deviation)
