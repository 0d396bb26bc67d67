"""The ways to cut a network to given widths: ours, ours with other choices, ridge compensation, and torch-pruning."""

import inspect
from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm

from benchmarks.compensating import rival
from benchmarks.compensating.problem import Problem, Widths, chunks, timed
from benchmarks.compensating.ridge import compensate
from topiarist import surgery
from topiarist.randomness import array_generator
from topiarist.surgery.choice.choosing import cut_to_widths
from topiarist.tracing import Space

Units = Mapping[str, list[int]]


@dataclass(frozen=True)
class Cut:
    """A network as cut, refitted and settled, with processor seconds; None for what a way does not have."""

    cut: nn.Module | None
    seconds: float
    refitted: nn.Module | None = None
    settled: nn.Module | None = None
    settling_seconds: float | None = None

    @property
    def best(self) -> nn.Module:
        """Return the last stage that there is."""
        found = next(stage for stage in (self.settled, self.refitted, self.cut) if stage is not None)
        return found


def settles(verb: Callable[..., object]) -> bool:
    """Return whether a verb of this version moves the cut network towards the answers of the whole one."""
    return "settling" in inspect.signature(verb).parameters


def without_settling(verb: Callable[..., object]) -> dict[str, Any]:
    """Return the keyword that switches settling off, where there is settling."""
    return {"settling": 0} if settles(verb) else {}


def ours(problem: Problem, keep: Widths) -> Cut:
    """Choose units and refit, without and with settling as it is by default."""
    cut_network = partial(
        cut_to_widths,
        problem.model,
        problem.example,
        keep=keep,
        calibration=problem.calibration,
        anatomy=problem.anatomy,
    )
    found, seconds = timed(lambda: cut_network(**without_settling(cut_to_widths)))
    as_cut = surgery.remove(problem.model, problem.example, units=found.units, anatomy=problem.anatomy, proof=False)
    if not settles(cut_to_widths):
        return Cut(as_cut, seconds, found.model)
    settled, all_seconds = timed(cut_network)
    return Cut(as_cut, seconds, found.model, settled.model, all_seconds - seconds)


def refit(choose: Callable[[Problem, Widths], Units], problem: Problem, keep: Widths) -> Cut:
    """Let another rule choose, and refit with ours; nothing is settled."""

    def cut_and_refit() -> tuple[Units, nn.Module]:
        units = choose(problem, keep)
        known: dict[str, Any] = {"units": units, "anatomy": problem.anatomy, "calibration": problem.calibration}
        return units, surgery.remove(problem.model, problem.example, **known, **without_settling(surgery.remove))

    (units, refitted), seconds = timed(cut_and_refit)
    as_cut = surgery.remove(problem.model, problem.example, units=units, anatomy=problem.anatomy, proof=False)
    return Cut(as_cut, seconds, refitted)


def ridge(problem: Problem, keep: Widths) -> Cut:
    """Choose by L1 norm, reconstruct what went from what stays by ridge; batch norms are recalibrated."""
    units = weakest(problem, keep)
    known: dict[str, Any] = {"units": units, "anatomy": problem.anatomy, "proof": False}
    as_cut = surgery.remove(problem.model, problem.example, **known)

    def cut_and_compensate() -> nn.Module:
        compensated = compensate(problem.model, problem.anatomy, units, problem.calibration)
        return recalibrated(surgery.remove(compensated, problem.example, **known), problem)

    compensated, seconds = timed(cut_and_compensate)
    return Cut(as_cut, seconds, compensated)


def torch_pruning(importance: rival.Importance, problem: Problem, keep: Widths) -> Cut:
    """Cut with torch-pruning to the same widths; where there are batch norms, they are recalibrated in the refit."""
    as_cut, seconds = timed(lambda: rival.cut(problem, keep, importance))
    if not has_batch_norms(as_cut):
        return Cut(as_cut, seconds)
    following, more = timed(lambda: recalibrated(as_cut, problem))
    return Cut(as_cut, seconds + more, following)


def has_batch_norms(model: nn.Module) -> bool:
    """Return whether statistics of a network can be measured anew."""
    return any(isinstance(module, _BatchNorm) for module in model.modules())


def recalibrated(model: nn.Module, problem: Problem) -> nn.Module:
    """Return a network whose batch norms have the statistics of its own activations on the calibration samples."""
    if not has_batch_norms(model):
        return model
    copy = deepcopy(model)
    for module in copy.modules():
        if isinstance(module, _BatchNorm):
            module.reset_running_stats()
            module.momentum = None  # the mean of all batches
    copy.train()
    with torch.no_grad():
        for part in chunks(problem.calibration):
            copy(part)
    return copy.eval()


def at_random(problem: Problem, keep: Widths) -> Units:
    """Choose units at random."""
    random = array_generator(problem.seed, "random units")
    sizes = {name: problem.anatomy[name].size for name in keep}
    return {name: sorted(random.permutation(sizes[name])[width:].tolist()) for name, width in keep.items()}


def weakest(problem: Problem, keep: Widths) -> Units:
    """Choose the units with the smallest L1 norm of the weights that write them."""
    chosen = {}
    for name, width in keep.items():
        space = problem.anatomy[name]
        order = written_norms(problem.model, space).argsort(stable=True)
        chosen[name] = sorted(order[: space.size - width].tolist())
    return chosen


def written_norms(model: nn.Module, space: Space) -> torch.Tensor:
    """Return the L1 norm (n_units,) of the weights that write each unit of a space."""
    total = torch.zeros(space.size)
    for place in space.producers:
        module = model.get_submodule(place.module)
        positions = torch.from_numpy(place.positions).flatten(1)
        for name, axis in place.tensors:
            tensor = getattr(module, name).detach()
            if tensor.ndim > 1:
                total += tensor.abs().movedim(axis, 0).flatten(1).sum(1)[positions].sum(1)
    return total


Method = Callable[[Problem, Widths], Cut]
METHODS: dict[str, Method] = {
    "ours": ours,
    "random units, our refit": partial(refit, at_random),
    "L1 units, our refit": partial(refit, weakest),
    "L1 units, ridge compensation": ridge,
    "torch-pruning, L1": partial(torch_pruning, "L1"),
    "torch-pruning, Taylor": partial(torch_pruning, "Taylor"),
}
