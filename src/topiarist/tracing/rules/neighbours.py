"""Norms that look at the channels next to each one: without a unit, others would become neighbours."""

import sys
from types import FrameType

import torch

from topiarist.tracing.operation import Operation

_NORM = "local_response_norm"
_FUNCTIONS = torch.nn.functional.__file__


def mixes_neighbours(operation: Operation) -> str | None:
    """Return why no unit can go, where an operation is part of a norm over neighbouring channels; None elsewhere."""
    if all(vector is None for vector in operation.axes(operation.inputs[0])) or not _is_running():
        return None
    return f"'{_NORM}' divides each channel by its neighbours, which would be others without one of them"


def _is_running() -> bool:
    """Return whether torch's function for the norm is running."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code.co_name != "run_traced":
        if frame.f_code.co_name == _NORM and frame.f_code.co_filename == _FUNCTIONS:
            return True
        frame = frame.f_back
    return False
