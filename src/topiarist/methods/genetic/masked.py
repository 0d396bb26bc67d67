"""How good networks of any kind are with some of their units only, many choices at a time.

A batch is repeated for each of several masks, and readers see zeros in the place of units that are gone; the cut
network would answer the same. Slower than a readout, and not limited to units that the last layer reads. Units that
plain layers do not tell all of, as those of recurrent layers, are hidden one mask at a time, which is slower still.
"""

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Any

import numpy
import torch
from torch import Tensor, nn
from torch.nn.modules.conv import _ConvNd

from topiarist.methods.genetic.readout import Bits, Floats, Integers, pieces
from topiarist.models.attention import free_attention
from topiarist.models.evaluation import evaluating
from topiarist.surgery.calibration import first_of
from topiarist.surgery.masks import UnitMasks
from topiarist.tasks import Task
from topiarist.threads import torch_threads
from topiarist.tracing import Place, Space
from topiarist.training.inference import call, suited_threads

MOST_VALUES = 2**20  # of inputs at a time: what layers make of them takes more


@dataclass(frozen=True)
class MaskedNetwork:
    """A network, the spaces whose units the bits stand for, in order, and the samples it is judged on.

    `task` is what is predicted: classes, where it is None. `hiding` hides units from more than plain layers; None where
    those tell all.
    """

    model: nn.Module
    spaces: Sequence[Space]
    x: Tensor
    y: Tensor
    task: Task | None = None
    hiding: UnitMasks | None = None


class MaskedForward:
    """Several networks, each evaluated for masks over the units of its spaces."""

    def __init__(self, networks: Sequence[MaskedNetwork]) -> None:
        self.networks = list(networks)

    def accuracy(self, networks: Integers, masks: Bits) -> Floats:
        """Return the percentages (n,) of right answers of networks with ascending numbers (n,) and masks (n, bits)."""
        found = numpy.zeros(len(masks))
        for number, rows in pieces(networks):
            found[rows] = self._percentages(self.networks[number], torch.from_numpy(masks[rows]))
        return found

    def _percentages(self, judged: MaskedNetwork, masks: Tensor) -> Floats:
        size = max(1, judged.x[0].numel())
        samples = min(len(judged.y), max(1, MOST_VALUES // size))
        together = max(1, MOST_VALUES // (size * samples))
        right = torch.zeros(len(masks), dtype=torch.int64 if _of_classes(judged) else torch.float64)
        with torch_threads(suited_threads(judged.model)), evaluating(judged.model):
            for x, y in zip(torch.split(judged.x, samples), torch.split(judged.y, samples), strict=True):
                some = replace(judged, x=x, y=y)
                right += torch.cat([right_answers(some, part) for part in torch.split(masks, together)])
        percentages: Floats = 100 * right.numpy() / len(judged.y)
        return percentages


def right_answers(judged: MaskedNetwork, masks: Tensor) -> Tensor:
    """Count the right answers (n_masks,); of numbers and labels, sum how right they are."""
    sizes = [space.size for space in judged.spaces]
    if judged.hiding is not None:
        return torch.stack([_answers_without(judged, judged.hiding, mask, sizes) for mask in masks])
    with ExitStack() as hooks:
        for space, bits in zip(judged.spaces, torch.split(masks, sizes, dim=1), strict=True):
            for place in space.readers:
                hook = hide_each(place, bits)
                handle = judged.model.get_submodule(place.module).register_forward_pre_hook(hook, with_kwargs=True)
                hooks.callback(handle.remove)
        hooks.enter_context(free_attention(judged.model))
        logits = call(judged.model, judged.x.repeat(len(masks), *(1,) * (judged.x.ndim - 1)))
    if judged.task is not None and not _of_classes(judged):
        task, targets = judged.task, judged.y.to(logits)
        parts = logits.view(len(masks), len(judged.y), -1)
        return torch.stack([task.rightness(part, targets).cpu().double().sum() for part in parts])
    answers = logits.argmax(dim=1).view(len(masks), -1)
    return (answers.cpu() == judged.y).sum(dim=1)


def _of_classes(judged: MaskedNetwork) -> bool:
    return judged.task is None or judged.task.kind == "classes"


def _answers_without(judged: MaskedNetwork, hiding: UnitMasks, mask: Tensor, sizes: list[int]) -> Tensor:
    """Count the right answers with the units of one mask."""
    parts = zip(judged.spaces, torch.split(mask, sizes), strict=True)
    units = {space.name: (~bits).nonzero().flatten().tolist() for space, bits in parts}
    with hiding.without({name: numbers for name, numbers in units.items() if numbers}):
        outputs = call(judged.model, judged.x)
        if judged.task is not None and not _of_classes(judged):
            return judged.task.rightness(outputs, judged.y.to(outputs)).cpu().double().sum()
        return (outputs.argmax(dim=1).cpu() == judged.y).sum()


def hide_each(place: Place, bits: Tensor) -> Any:
    """Return the hook that hides units from a reader, others for each of the masks `bits` (n_masks, n_units)."""
    factors = torch.ones(len(bits), place.length)
    positions = torch.from_numpy(place.positions)
    spread = bits[:, :, None, None].expand(-1, *positions.shape).to(factors.dtype)
    factors[:, positions.flatten()] = spread.flatten(1)

    def hook(
        module: nn.Module, taken: tuple[Any, ...], named: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        x = first_of(taken, named)
        axis = 1 if isinstance(module, _ConvNd) else x.ndim - 1
        split = x.view(len(bits), -1, *x.shape[1:])
        shape = [len(bits), 1, *(-1 if number == axis else 1 for number in range(1, x.ndim))]
        return ((split * factors.to(x).view(shape)).view_as(x),), {}

    return hook
