"""Families of networks, one file each; any `nn.Module` works wherever these do."""

from topiarist.models.activations import ACTIVATIONS
from topiarist.models.card import Card, attach, card_for, card_of
from topiarist.models.ensemble import Ensemble
from topiarist.models.inception import inception
from topiarist.models.joined import joined
from topiarist.models.mlp import mlp
from topiarist.models.spec import build, spec_of
from topiarist.models.vgg import vgg

__all__ = [
    "ACTIVATIONS",
    "Card",
    "Ensemble",
    "attach",
    "build",
    "card_for",
    "card_of",
    "inception",
    "joined",
    "mlp",
    "spec_of",
    "vgg",
]
