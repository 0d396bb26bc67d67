"""A network looked at by a method: its anatomy, the spaces that may be cut, and the calibration data in batches."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from torch import nn

from topiarist.errors import ModelError
from topiarist.methods.task import Task
from topiarist.surgery.calibration import CalibrationBatches, batches_for
from topiarist.tracing import Anatomy, Space, anatomy


@dataclass(frozen=True)
class Looked:
    """What a method sees; in the anatomy, all spaces that may not be cut are left out."""

    model: nn.Module
    anatomy: Anatomy
    spaces: Mapping[str, Space]
    batches: CalibrationBatches


def look(task: Task, names: Sequence[str] | None) -> Looked:
    """Look at a network; `names` are the spaces that may be cut, all free ones unless given."""
    found = anatomy(task.model, task.example_input, partial=True)
    spaces = found.free if names is None else {space.name: space for space in map(found.free_space, names)}
    if not spaces:
        raise ModelError("the network has no units that could go: every space is fixed")
    batches = batches_for(task.calibration, task.model, task.example_input)
    return Looked(task.model, replace(found, spaces=spaces), spaces, batches)
