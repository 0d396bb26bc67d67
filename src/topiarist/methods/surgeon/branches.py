"""A branch: a network on its way through training, with all that it needs to go on, here or on another worker."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor, nn

from topiarist.data import Data
from topiarist.models.evaluation import count_parameters
from topiarist.surgery import Edit, Plan, apply
from topiarist.surgery.applying import copied_with_plan
from topiarist.surgery.calibration import Calibration
from topiarist.surgery.transplant import carried
from topiarist.training import TrainConfig
from topiarist.training.engine import Memory
from topiarist.training.inference import part_logits
from topiarist.training.stretches import train_stretch


@dataclass(frozen=True, kw_only=True)
class Branch:
    """A network after some steps, and what its optimizer remembers; `node` is its number in the lineage.

    `chances` are those that it gives to the true class of each held-out sample, a row for each look at it.
    """

    model: nn.Module
    node: int = 0
    steps: int = 0
    memory: Memory = field(default_factory=dict, repr=False)
    loss: float = 0.0
    accuracy: float = math.nan
    chances: Tensor = field(default_factory=lambda: torch.zeros(0, 0), repr=False)

    @property
    def parameters(self) -> int:
        """Count what is there."""
        return count_parameters(self.model)

    @property
    def value(self) -> float:
        """The mean chance that it gives to the true class: accuracy without the noise of what lies at a border."""
        return float(self.chances.double().mean()) if self.chances.numel() else math.nan


@dataclass(frozen=True, kw_only=True)
class Practice:
    """So many steps to make with a branch; those that are not `counted` come on top of its training."""

    branch: Branch
    steps: int
    counted: bool = True


@dataclass(frozen=True)
class Course:
    """What all branches are trained on, and how."""

    data: Data
    config: TrainConfig


def practise(task: Practice, course: Course) -> Branch:
    """Train a branch a little further, and judge it on the held-out part."""
    branch, model = task.branch, copied_with_plan(task.branch.model)
    found = train_stretch(model, course.data, course.config, done=branch.steps, steps=task.steps, memory=branch.memory)
    steps = branch.steps + (task.steps if task.counted else 0)
    return judged(replace(branch, model=model, steps=steps, memory=found.memory, loss=found.loss), course.data)


def judged(branch: Branch, data: Data) -> Branch:
    """Give a branch with its chances and its accuracy on the held-out part; those of one that diverged are unknown."""
    logits, labels = part_logits(branch.model, data.validation)
    if math.isnan(branch.loss) or not bool(logits.isfinite().all()):
        return replace(branch, accuracy=math.nan, chances=torch.full((1, len(labels)), math.nan))
    chances = logits.softmax(dim=1).gather(1, labels[:, None]).T
    return replace(branch, accuracy=float((logits.argmax(dim=1) == labels).double().mean()), chances=chances)


def operated(branch: Branch, edits: Sequence[Edit], sample: Tensor, calibration: Calibration | None) -> Branch:
    """Give a branch with edits made in its network; what the optimizer remembers follows the weights."""
    model = apply(Plan(tuple(edits)), branch.model, sample, calibration=calibration)
    return replace(branch, model=model, memory=carried(branch.memory, branch.model, model))
