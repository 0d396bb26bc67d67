"""Families of networks; any `nn.Module` works wherever these do.

The names are loaded when they are first used: importing `topiarist.models.settings` does not import torch.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from topiarist.models.activations import ACTIVATIONS
    from topiarist.models.building import build, build_network, spec_of
    from topiarist.models.card import Card, attach, card_for, card_of
    from topiarist.models.convolutional import inception, vgg
    from topiarist.models.ensemble import Ensemble, joined
    from topiarist.models.perceptrons import mlp
    from topiarist.models.settings import ModelSettings
    from topiarist.models.table_networks import tabular, tabular_widths

_NAMES_OF = {
    "activations": ("ACTIVATIONS",),
    "building": ("build", "build_network", "spec_of"),
    "card": ("Card", "attach", "card_for", "card_of"),
    "convolutional": ("inception", "vgg"),
    "ensemble": ("Ensemble", "joined"),
    "perceptrons": ("mlp",),
    "settings": ("ModelSettings",),
    "table_networks": ("tabular", "tabular_widths"),
}

__all__ = [
    "ACTIVATIONS",
    "Card",
    "Ensemble",
    "ModelSettings",
    "attach",
    "build",
    "build_network",
    "card_for",
    "card_of",
    "inception",
    "joined",
    "mlp",
    "spec_of",
    "tabular",
    "tabular_widths",
    "vgg",
]


def __getattr__(name: str) -> Any:
    for module, names in _NAMES_OF.items():
        if name in names:
            return getattr(import_module(f"{__name__}.{module}"), name)
    raise AttributeError(f"module '{__name__}' has no attribute {name!r}")
