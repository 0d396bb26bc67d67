"""The layers of a network that a table covers, with their widths as formulas of those of the spaces."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy
from torch import Tensor, nn
from torch.nn.modules.conv import _ConvNd

from topiarist.measurement.cost import runner
from topiarist.measurement.tables.geometry import Geometry, geometry_of
from topiarist.measurement.tables.layer_times import LayerTimes
from topiarist.measurement.tables.steps import Surface
from topiarist.models.evaluation import evaluating
from topiarist.tracing import Anatomy, Inputs
from topiarist.tracing.parameter_sizes import parameter_sizes, shapes_of

Formula = dict[tuple[str, ...], int]  # units of the spaces, multiplied, and how often they count


@dataclass(frozen=True)
class NetworkLayer:
    """A layer that runs `times` times for one sample: its widths as formulas, and the table of its times.

    `places` are the positions along each axis of what it returns; of a linear layer, its rows.
    """

    name: str
    geometry: Geometry
    inputs: Formula
    outputs: Formula
    places: tuple[int, ...]
    surface: Surface
    times: int = 1
    known: dict[tuple[int, int], float] = field(default_factory=dict, compare=False, repr=False)

    @property
    def positions(self) -> int:
        """How many positions each output has."""
        return math.prod(self.places)

    def milliseconds(self, widths: Mapping[str, Any]) -> Any:
        """Return its time with some widths, whole numbers or arrays of them."""
        inputs, outputs = evaluated(self.inputs, widths), evaluated(self.outputs, widths)
        if isinstance(inputs, numpy.ndarray) or isinstance(outputs, numpy.ndarray):
            return 1000 * self.times * self.surface.at(inputs, outputs)
        if (inputs, outputs) not in self.known:
            self.known[inputs, outputs] = 1000 * self.times * float(self.surface.at(inputs, outputs))
        return self.known[inputs, outputs]

    def elements(self, widths: Mapping[str, Any]) -> Any:
        """Return how many numbers it returns."""
        return self.times * self.positions * evaluated(self.outputs, widths)

    def detoured(self, widths: Mapping[str, Any]) -> Any:
        """Return how many numbers it reads and returns at widths that have no fast kernel, by the table; otherwise 0.

        What such a kernel takes is laid out otherwise than what its neighbours take, and has to be rearranged.
        """
        inputs, outputs = evaluated(self.inputs, widths), evaluated(self.outputs, widths)
        read = self.times * math.prod(self.geometry.size) * inputs
        return numpy.where(self.surface.penalty(inputs, outputs) > 1.0, read + self.elements(widths), 0.0)

    def products(self, widths: Mapping[str, Any]) -> Any:
        """Return its multiplications."""
        geometry = self.geometry
        outputs = evaluated(self.outputs, widths)
        per_output: Any = geometry.groups  # of a layer with a group per unit, the inputs of a group
        if geometry.grouping == "fixed":
            per_output = evaluated(self.inputs, widths) // geometry.groups
        places = math.prod(geometry.size) if geometry.transposed else self.positions
        return self.times * places * math.prod(geometry.kernel) * outputs * per_output


def evaluated(formula: Formula, widths: Mapping[str, Any]) -> Any:
    """Return the value of a formula."""
    return sum(each * math.prod(widths[name] for name in names) for names, each in formula.items())


def layers_of(model: nn.Module, anatomy: Anatomy, example: Inputs, table: LayerTimes) -> list[NetworkLayer]:
    """Return the linear layers and convolutions that run for one sample; those that run alike are counted together."""
    sizes = parameter_sizes(anatomy.free.values(), shapes_of(model))
    names = {id(parameter): name for name, parameter in model.named_parameters()}
    found: dict[tuple[str, Geometry], NetworkLayer] = {}
    for path, x, answer in layer_runs(model, example):
        module = model.get_submodule(path)
        geometry = geometry_of(module, x)
        name = names.get(id(module.weight))
        if geometry is None or name is None or not x.numel():
            continue
        if (path, geometry) in found:
            before = found[path, geometry]
            found[path, geometry] = NetworkLayer(**{**vars(before), "times": before.times + 1, "known": {}})
            continue
        inputs, outputs = _formulas(module, geometry, sizes[name].axes)
        full = {space: one.size for space, one in anatomy.free.items()}
        widths = evaluated(inputs, full), evaluated(outputs, full)
        free = bool(set(inputs) - {()}), bool(set(outputs) - {()})
        surface = table.surface(geometry, *widths, free=free)
        places = geometry.size if geometry.kind == "linear" else tuple(answer.shape[2:])
        found[path, geometry] = NetworkLayer(path, geometry, inputs, outputs, places, surface)
    return list(found.values())


def _formulas(module: nn.Module, geometry: Geometry, axes: list[Formula]) -> tuple[Formula, Formula]:
    """Return the widths of what a layer reads and returns, from those along the axes of its weight."""
    first, second = ({names: each for names, each in axis.items() if each} for axis in axes[:2])
    transposed = isinstance(module, _ConvNd) and module.transposed
    if geometry.grouping == "fixed":
        whole = {names: geometry.groups * each for names, each in second.items()}
        return (first, whole) if transposed else (whole, first)
    if not transposed:
        return {names: each * geometry.groups // geometry.per_group for names, each in first.items()}, first
    return first, {names: each * geometry.per_group // geometry.groups for names, each in first.items()}


def layer_runs(model: nn.Module, example: Inputs) -> list[tuple[str, Tensor, Tensor]]:
    """Run a network once and return, for each run of a linear layer or convolution, what it read and returned."""
    runs: list[tuple[str, Tensor, Tensor]] = []
    hooks = []
    for path, module in model.named_modules():
        if isinstance(module, (nn.Linear, _ConvNd)):

            def note(module: nn.Module, args: tuple[Any, ...], answer: Any, path: str = path) -> None:
                if args and isinstance(args[0], Tensor) and isinstance(answer, Tensor):
                    runs.append((path, args[0].detach(), answer.detach()))

            hooks.append(module.register_forward_hook(note))
    try:
        with evaluating(model):
            runner(model, example)()
    finally:
        for hook in hooks:
            hook.remove()
    return runs
