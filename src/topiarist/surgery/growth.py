"""What growth of a space promises: the gradient of the loss at the outgoing weights that fresh units would have.

Those weights are zero, so that a step along the gradient g lowers the loss by about the step size times ‖g‖²; the
existing units are the measure of what is much.
"""

from dataclasses import dataclass

import numpy
import torch
from torch import Tensor, nn

from topiarist.randomness import isolated
from topiarist.surgery.costs import Costs
from topiarist.surgery.edits import GrowSpace
from topiarist.surgery.reexpressions import free_space, growing
from topiarist.surgery.trials import Samples, trial
from topiarist.surgery.width import new_axis
from topiarist.tracing import Anatomy, Space


@dataclass(frozen=True)
class Growth:
    """What an edit that grows a space promises.

    `fresh` and `existing` have, for each unit, ‖gradient of the mean loss‖² over all of its outgoing weights;
    `parameters` are those of the whole network with it.
    """

    edit: GrowSpace
    fresh: tuple[float, ...]
    existing: tuple[float, ...]
    parameters: int

    @property
    def gain(self) -> float:
        """Give the mean over the fresh units."""
        return sum(self.fresh) / len(self.fresh)

    @property
    def existing_gain(self) -> float:
        """Give the mean over the units that are there."""
        return sum(self.existing) / len(self.existing)

    @property
    def relative_gain(self) -> float | None:
        """Give the gain of a fresh unit as a multiple of that of an existing one; None where the latter is 0."""
        if not self.gain:
            return 0.0
        return self.gain / self.existing_gain if self.existing_gain else None


def expected_growth(
    model: nn.Module, found: Anatomy, name: str, samples: Samples, *, by: int | None = None, seed: int = 0
) -> Growth:
    """Grow a space of a copy, by half of its units and at least 2 unless `by` says otherwise, and take the gradient."""
    space = free_space(found, name)
    edit = GrowSpace(space=name, by=max(2, space.size // 2) if by is None else by, seed=seed)
    grown = trial(model, edit, found, samples.batches(model)).eval()
    paths = [place.module for place in space.consumers]
    gradients = dict(zip(paths, weight_gradients(grown, paths, samples), strict=True))
    gains = unit_gains(space, edit, gradients)
    parameters = Costs(model, found).parameters({name: len(gains)})
    return Growth(edit, tuple(gains[space.size :]), tuple(gains[: space.size]), parameters)


def weight_gradients(model: nn.Module, paths: list[str], samples: Samples) -> list[Tensor]:
    """Give the gradients of the mean loss at the weights of some layers of a network that is the caller's own."""
    if not paths:
        return []
    with torch.inference_mode(False), torch.enable_grad(), isolated(0):
        model.requires_grad_(False)
        weights = [model.get_parameter(f"{path}.weight".removeprefix(".")).requires_grad_() for path in paths]
        totals = [torch.zeros_like(weight, requires_grad=False) for weight in weights]
        for loss in samples.losses(model):
            if loss.requires_grad:
                gradients = torch.autograd.grad(loss, weights, allow_unused=True)
                for total, gradient in zip(totals, gradients, strict=True):
                    total += 0 if gradient is None else gradient
    return totals


def unit_gains(space: Space, edit: GrowSpace, gradients: dict[str, Tensor]) -> list[float]:
    """Give, for each unit of a grown space, the sum of squares of the gradients at the columns that read it."""
    change = growing(space, edit, structure_only=True)
    gains = numpy.zeros(space.size + edit.by)
    for place in space.consumers:
        squares = gradients[place.module].to(torch.float64).square().transpose(0, 1).flatten(1).sum(1).cpu().numpy()
        _, (part,) = new_axis([(place, change)])
        gains += squares[part.positions].sum((1, 2))
    values: list[float] = gains.tolist()
    return values
