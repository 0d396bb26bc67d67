"""A network seen as unit spaces."""

from topiarist.tracing.anatomy import Anatomy, anatomy
from topiarist.tracing.graph import Inputs
from topiarist.tracing.spaces import Place, Space

__all__ = ["Anatomy", "Inputs", "Place", "Space", "anatomy"]
