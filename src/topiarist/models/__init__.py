"""Families of networks, one file each; any `nn.Module` works wherever these do."""

from topiarist.models.activations import ACTIVATIONS
from topiarist.models.card import Card, attach, attach_data, card_of
from topiarist.models.mlp import mlp
from topiarist.models.spec import build

__all__ = ["ACTIVATIONS", "Card", "attach", "attach_data", "build", "card_of", "mlp"]
