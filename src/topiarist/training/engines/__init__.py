"""What runs networks in training: `AutogradEngine` one of any kind, `StackedEngine` many of one shape.

The loop asks the same of both. Members are numbered as they are now, from 0; dropout draws from the seed and the
epoch's number alone.
"""

from topiarist.training.engines.autograd import AutogradEngine
from topiarist.training.engines.stacked import StackedEngine

Engine = AutogradEngine | StackedEngine

__all__ = ["AutogradEngine", "Engine", "StackedEngine"]
