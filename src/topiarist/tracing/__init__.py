"""A network seen as unit spaces."""

from topiarist.tracing.anatomy import Anatomy
from topiarist.tracing.finding import Ignored, anatomy, ensure_anatomy
from topiarist.tracing.operation import Operation, register
from topiarist.tracing.running import ExampleInput, Inputs
from topiarist.tracing.spaces import Place, Space

__all__ = [
    "Anatomy",
    "ExampleInput",
    "Ignored",
    "Inputs",
    "Operation",
    "Place",
    "Space",
    "anatomy",
    "ensure_anatomy",
    "register",
]
