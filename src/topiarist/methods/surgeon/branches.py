"""A branch: a network in training, with all that it needs to continue, here or on another worker."""

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
from topiarist.tracing import Inputs
from topiarist.training import TrainConfig
from topiarist.training.engines.steps import Memory
from topiarist.training.inference import part_logits
from topiarist.training.stretches import train_stretch


@dataclass(frozen=True, kw_only=True)
class Branch:
    """A network after some steps, and the state of its optimizer; `node` is its number in the lineage.

    `probabilities` are those that it gives to the true class of each held-out sample, a row for each evaluation; of
    numbers and labels they are what `Task.credit` says, and `accuracy` is its mean: about R² of numbers.
    """

    model: nn.Module
    node: int = 0
    steps: int = 0
    memory: Memory = field(default_factory=dict, repr=False)
    loss: float = 0.0
    accuracy: float = math.nan
    probabilities: Tensor = field(default_factory=lambda: torch.zeros(0, 0), repr=False)

    @property
    def parameters(self) -> int:
        """How many parameters the network has."""
        return count_parameters(self.model)

    @property
    def value(self) -> float:
        """The mean probability that it gives to the true class: accuracy without the noise of borderline samples."""
        return float(self.probabilities.double().mean()) if self.probabilities.numel() else math.nan


@dataclass(frozen=True, kw_only=True)
class BranchTraining:
    """A branch to train for some steps; those that are not `counted` come on top of its training."""

    branch: Branch
    steps: int
    counted: bool = True


@dataclass(frozen=True)
class TrainingSetup:
    """What all branches are trained on, and how."""

    data: Data
    config: TrainConfig


def train_branch(task: BranchTraining, setup: TrainingSetup) -> Branch:
    """Train a branch a little further, and evaluate it on the held-out part."""
    branch, model = task.branch, copied_with_plan(task.branch.model)
    found = train_stretch(model, setup.data, setup.config, done=branch.steps, steps=task.steps, memory=branch.memory)
    steps = branch.steps + (task.steps if task.counted else 0)
    return evaluated(replace(branch, model=model, steps=steps, memory=found.memory, loss=found.loss), setup.data)


def evaluated(branch: Branch, data: Data) -> Branch:
    """Return a branch with its probabilities and accuracy on the held-out part; NaN where it diverged."""
    logits, labels = part_logits(branch.model, data.validation)
    if math.isnan(branch.loss) or not bool(logits.isfinite().all()):
        return replace(branch, accuracy=math.nan, probabilities=torch.full((1, len(labels)), math.nan))
    targets = data.task.as_targets(labels)
    probabilities = data.task.credit(logits, targets)[None]
    accuracy = float(data.task.rightness(logits, targets).double().mean())
    return replace(branch, accuracy=accuracy, probabilities=probabilities)


def edited(branch: Branch, edits: Sequence[Edit], example: Inputs, calibration: Calibration | None) -> Branch:
    """Return a branch with edits made in its network; the optimizer's state follows the weights.

    It is not settled: training goes on at once, from where the optimizer is.
    """
    model = apply(Plan(tuple(edits)), branch.model, example, calibration=calibration, settling=0)
    return replace(branch, model=model, memory=carried(branch.memory, branch.model, model))
