"""What a network would cost with other widths: parameters and multiply-accumulates as formulas of the widths."""

from collections.abc import Mapping
from typing import Literal

from torch import nn
from torch.nn.modules.conv import _ConvNd

from topiarist.surgery import layers
from topiarist.tracing import Anatomy
from topiarist.tracing.spaces import ParameterSize, parameter_sizes, shapes_of

Measure = Literal["parameters", "macs"]


class Costs:
    """A network's parameters and multiply-accumulates for any widths of its free spaces.

    `widths` are those that it has; `positions` says, for linear layers and convolutions by name, at how many positions
    of one sample each weight is used.
    """

    def __init__(self, model: nn.Module, anatomy: Anatomy) -> None:
        self.widths = {name: space.size for name, space in anatomy.free.items()}
        sizes = parameter_sizes(anatomy.free.values(), shapes_of(model))
        self.positions: dict[str, int] = {}
        self._terms: dict[Measure, list[tuple[int, ParameterSize]]] = {
            "parameters": [(1, size) for size in sizes.values()],
            "macs": [],
        }
        for path, call in anatomy.calls.items():
            module = model.get_submodule(path)
            if isinstance(module, (nn.Linear, _ConvNd)):
                weight = layers.weight_of(module)
                transposed = isinstance(module, _ConvNd) and module.transposed
                uses = (call.taken if transposed else call.elements) // len(weight) // anatomy.samples
                constant = ParameterSize([{(): size} for size in weight.shape])  # of one that is tied
                self.positions[path] = uses
                self._terms["macs"].append((uses, sizes.get(f"{path}.weight".removeprefix("."), constant)))
        self._meeting: dict[Measure, dict[str, list[tuple[int, ParameterSize]]]] = {
            measure: {name: [term for term in terms if name in _spaces_of(term[1])] for name in self.widths}
            for measure, terms in self._terms.items()
        }

    def parameters(self, widths: Mapping[str, int]) -> int:
        """Return the parameters of the network; spaces that are not named keep their width."""
        return self._total("parameters", widths)

    def macs(self, widths: Mapping[str, int]) -> int:
        """Return the multiply-accumulates of linear layers and convolutions for one sample."""
        return self._total("macs", widths)

    def _total(self, measure: Measure, widths: Mapping[str, int]) -> int:
        full = {**self.widths, **widths}
        return sum(uses * size.count(full) for uses, size in self._terms[measure])

    def difference(self, measure: Measure, name: str, wide: Mapping[str, int], narrow: Mapping[str, int]) -> int:
        """Return what is saved where the width of one space alone changes: only layers that meet it count."""
        return sum(uses * (size.count(wide) - size.count(narrow)) for uses, size in self._meeting[measure][name])

    def neighbours(self, name: str) -> set[str]:
        """Return the spaces that share a parameter with a space, itself included."""
        return {other for _, size in self._meeting["parameters"][name] for other in _spaces_of(size)}


def _spaces_of(size: ParameterSize) -> set[str]:
    return {name for axis in size.axes for names in axis for name in names}
