"""What a network would cost with other widths: parameters and multiply-accumulates as formulas of the widths."""

import math
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from torch import Tensor, nn
from torch.nn.modules.conv import _ConvNd

from topiarist.models.evaluation import count_parameters
from topiarist.surgery import layers
from topiarist.tracing import Anatomy, Place

Measure = Literal["parameters", "macs"]


@dataclass
class Axis:
    """The length of one axis of a layer: a constant, and so many positions for each unit of some spaces."""

    constant: int
    units: dict[str, int] = field(default_factory=dict)

    def add(self, name: str, place: Place) -> None:
        """Let the positions of a space follow its width."""
        per_unit = math.prod(place.positions.shape[1:])
        self.constant -= place.positions.size
        self.units[name] = self.units.get(name, 0) + per_unit

    def length(self, widths: Mapping[str, int]) -> int:
        """Give the length for some widths."""
        return self.constant + sum(widths[name] * count for name, count in self.units.items())


@dataclass
class LayerCost:
    """A layer as a formula: its rows, its columns, the size of its kernel, the positions at which it stands."""

    rows: Axis
    columns: Axis
    kernel: int
    row_tensors: int
    positions: int = 0

    def parameters(self, widths: Mapping[str, int]) -> int:
        """Give its parameters."""
        rows = self.rows.length(widths)
        return rows * self.columns.length(widths) * self.kernel + rows * self.row_tensors

    def macs(self, widths: Mapping[str, int]) -> int:
        """Give its multiply-accumulates for one sample."""
        return self.rows.length(widths) * self.columns.length(widths) * self.kernel * self.positions


class Costs:
    """A network's parameters and multiply-accumulates for any widths of its free spaces."""

    def __init__(self, model: nn.Module, found: Anatomy) -> None:
        self.widths = {name: space.size for name, space in found.free.items()}
        self.layers: dict[str, LayerCost] = {}
        self.meeting: defaultdict[str, dict[str, LayerCost]] = defaultdict(dict)
        for name, space in found.free.items():
            for place in (*space.producers, *space.passes, *space.consumers):
                cost = self.layers.setdefault(place.name, layer_cost(model, place, found))
                (cost.columns if place.role == "reads" else cost.rows).add(name, place)
                self.meeting[name][place.name] = cost
        for path in found.calls:
            module = model.get_submodule(path)
            if path not in self.layers and isinstance(module, (nn.Linear, _ConvNd)):
                self.layers[path] = weighted_cost(module, found, path)
        counted = sum(layer.parameters(self.widths) for layer in self.layers.values())
        self.others = count_parameters(model) - counted

    def parameters(self, widths: Mapping[str, int]) -> int:
        """Give the parameters of the network; spaces that are not named keep their width."""
        full = {**self.widths, **widths}
        return self.others + sum(layer.parameters(full) for layer in self.layers.values())

    def macs(self, widths: Mapping[str, int]) -> int:
        """Give the multiply-accumulates of linear layers and convolutions for one sample."""
        full = {**self.widths, **widths}
        return sum(layer.macs(full) for layer in self.layers.values())

    def difference(self, measure: Measure, name: str, wide: Mapping[str, int], narrow: Mapping[str, int]) -> int:
        """Give what is saved where the width of one space alone changes: only layers that meet it count."""
        formulas = [getattr(layer, measure) for layer in self.meeting[name].values()]
        return sum(formula(wide) - formula(narrow) for formula in formulas)


def layer_cost(model: nn.Module, place: Place, found: Anatomy) -> LayerCost:
    """Give the formula of a layer, or of a parameter that forward reads directly."""
    module = model.get_submodule(place.module)
    if place.parameter is not None:
        tensor = getattr(module, place.parameter)
        trained = isinstance(tensor, nn.Parameter)
        return LayerCost(Axis(place.length), Axis(0), 0, tensor.numel() // place.length if trained else 0)
    if isinstance(module, (nn.Linear, _ConvNd)):
        return weighted_cost(module, found, place.module)
    tensors = [tensor for tensor in module.parameters(recurse=False) if tensor.numel() == place.length]
    return LayerCost(Axis(place.length), Axis(0), 0, len(tensors))


def weighted_cost(module: nn.Module, found: Anatomy, path: str) -> LayerCost:
    """Give the formula of a linear layer or a convolution."""
    weight: Tensor = layers.weight_of(module)
    seen = found.calls[path]
    transposed = isinstance(module, _ConvNd) and module.transposed
    positions = (seen.taken if transposed else seen.elements) // len(weight) // found.samples
    bias = int(layers.bias_of(module) is not None)
    return LayerCost(Axis(len(weight)), Axis(weight.shape[1]), math.prod(weight.shape[2:]), bias, positions)
