"""Networks that the user's own code builds."""

import sys
from importlib import import_module
from pathlib import Path
from typing import Any

from torch import nn

from topiarist.errors import ModelError


def build_by_code(reference: str, /, **options: Any) -> nn.Module:
    """Call the function that `module:function` names, found from the current folder too, to build a network."""
    module_name, _, function_name = reference.partition(":")
    if not module_name or not function_name:
        raise ModelError(f"code is named as module:function; found '{reference}'")
    here = str(Path.cwd())
    sys.path.insert(0, here)
    try:
        made = getattr(import_module(module_name), function_name)(**options)
    except (Exception, SystemExit) as error:  # whatever goes wrong in the user's code is the user's to mend
        raise ModelError(f"cannot build a network with '{reference}': {type(error).__name__}: {error}") from error
    finally:
        sys.path.remove(here)
    if not isinstance(made, nn.Module):
        raise ModelError(f"'{reference}' must give an nn.Module; it gives {type(made).__name__}")
    return made
