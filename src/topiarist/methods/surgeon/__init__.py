"""The Surgeon: training and topology optimisation in one process, as published or as we do it."""

from topiarist.methods.surgeon.surgeon import Surgeon

__all__ = ["Surgeon"]
