"""Saves and loads networks as `.safetensors` files that need no code and are never unpickled."""

from topiarist.storage.packing import Packing
from topiarist.storage.reading import load, read_card
from topiarist.storage.writing import save, serialise

__all__ = ["Packing", "load", "read_card", "save", "serialise"]
