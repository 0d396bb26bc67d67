"""Builds networks of `transformers` by the names of their classes, without their texts and bars."""

from typing import Any

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
    return model
