"""Optional packages, imported only where they are needed."""

import importlib
from typing import Any

from topiarist.errors import MissingExtraError


def import_extra(module: str, *, what: str, extra: str) -> Any:
    """Import `module`, or say in one line which extra brings it."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise MissingExtraError(what=what, extra=extra) from error
