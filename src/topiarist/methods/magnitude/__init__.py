"""Pruning while training: the weights that matter least become zero, and the file shrinks with them."""

from topiarist.methods.magnitude.magnitude import Magnitude

__all__ = ["Magnitude"]
