"""What a network would cost with other widths: parameters, multiply-accumulates and, where it is known, time."""

import math
from collections import Counter, defaultdict
from collections.abc import Mapping
from typing import Any, Literal, Protocol

import numpy
from torch import nn
from torch.nn.modules.conv import _ConvNd

from topiarist.surgery import layers
from topiarist.tracing import Anatomy
from topiarist.tracing.parameter_sizes import ParameterSize, parameter_sizes, shapes_of
from topiarist.tracing.vectors import Vector

Formula = Literal["parameters", "macs"]
Measure = Literal["parameters", "macs", "latency_ms"]


class Timing(Protocol):
    """Knows how long a network takes on some machine, in some runtime, with other widths."""

    @property
    def whole_ms(self) -> float:
        """The time of the whole network."""
        ...

    def milliseconds(self, widths: Mapping[str, Any]) -> Any:
        """Return the time with some widths, whole numbers or arrays of them, as it is predicted."""
        ...

    def observe(self, widths: Mapping[str, int]) -> float:
        """Return the time with some widths, measured on a network of that shape, and learn from it."""
        ...

    def saved_by_rank(self, name: str, rank: int) -> float:
        """Return what a layer saves as two thin ones of some rank."""
        ...

    def time_beside(self, network: nn.Module) -> float:
        """Return the time of another network, measured."""
        ...


class Costs:
    """A network's parameters and multiply-accumulates for any widths of its free spaces.

    `widths` are those that it has; `positions` says, for linear layers and convolutions by name, at how many positions
    of one sample each weight is used. Products of activations, as those of attention, count too. `timing` says how long
    it takes, once someone has measured that.
    """

    def __init__(self, model: nn.Module, anatomy: Anatomy, timing: Timing | None = None) -> None:
        self.timing = timing
        self.widths = {name: space.size for name, space in anatomy.free.items()}
        sizes = parameter_sizes(anatomy.free.values(), shapes_of(model))
        self.positions: dict[str, int] = {}
        for path, call in anatomy.calls.items():
            module = model.get_submodule(path)
            if isinstance(module, (nn.Linear, _ConvNd)):
                weight = layers.weight_of(module)
                transposed = isinstance(module, _ConvNd) and module.transposed
                self.positions[path] = (call.taken if transposed else call.elements) // len(weight) // anatomy.samples
        self._samples = anatomy.samples
        self._terms: dict[Formula, list[tuple[int, ParameterSize]]] = {
            "parameters": [(1, size) for size in sizes.values()],
            "macs": _products(anatomy),
        }
        self._meeting: dict[Formula, dict[str, list[tuple[int, ParameterSize]]]] = {
            measure: {name: [term for term in terms if name in _spaces_of(term[1])] for name in self.widths}
            for measure, terms in self._terms.items()
        }

    def parameters(self, widths: Mapping[str, int]) -> int:
        """Return the parameters of the network; spaces that are not named keep their width."""
        return self._total("parameters", widths)

    def macs(self, widths: Mapping[str, int]) -> int:
        """Return the multiply-accumulates of all matrix products and convolutions for one sample."""
        return self._total("macs", widths) // self._samples

    def latency_ms(self, widths: Mapping[str, Any]) -> Any:
        """Return the milliseconds for one sample as they are predicted: a number, or an array for arrays of widths."""
        assert self.timing is not None
        return self.timing.milliseconds({**self.widths, **widths})

    def _total(self, measure: Formula, widths: Mapping[str, int]) -> int:
        full = {**self.widths, **widths}
        return sum(uses * size.count(full) for uses, size in self._terms[measure])

    def difference(self, measure: Measure, name: str, wide: Mapping[str, int], narrow: Mapping[str, int]) -> float:
        """Return what is saved where the width of one space alone changes: only what meets it counts."""
        if measure == "latency_ms":
            return float(self.latency_ms(wide) - self.latency_ms(narrow))
        saved = sum(uses * (size.count(wide) - size.count(narrow)) for uses, size in self._meeting[measure][name])
        return saved // self._samples if measure == "macs" else saved

    def neighbours(self, name: str) -> set[str]:
        """Return the spaces that share a parameter with a space, itself included."""
        return {other for _, size in self._meeting["parameters"][name] for other in _spaces_of(size)}


def _products(anatomy: Anatomy) -> list[tuple[int, ParameterSize]]:
    """Return the multiplications of the run as formulas of the widths; equal ones, as those of time steps, together."""
    if anatomy.trace is None:
        return []
    labels = anatomy.trace.tracer.labels
    home = numpy.full(len(labels), -1)
    names = list(anatomy.free)
    for number, name in enumerate(names):
        home[anatomy.spaces[name].units] = number
    copies = anatomy.copies()

    def axis(vector: Vector) -> tuple[tuple[tuple[str, ...], int], ...]:
        units = labels.units_at(vector)
        there = copies[units].prod(axis=1)
        met, inverse = numpy.unique(numpy.sort(home[units], axis=1), axis=0, return_inverse=True)
        counts = numpy.bincount(inverse.reshape(-1), weights=there).astype(numpy.int64).tolist()
        found: defaultdict[tuple[str, ...], int] = defaultdict(int)
        for members, count in zip(met.tolist(), counts, strict=True):
            together = tuple(names[number] for number in sorted(set(members)) if number >= 0)
            found[together] += count
        sizes = {spaces: math.prod(anatomy.spaces[name].size for name in spaces) for spaces in found}
        return tuple((spaces, count // sizes[spaces]) for spaces, count in found.items())

    known: dict[bytes, tuple[tuple[tuple[str, ...], int], ...]] = {}
    terms: Counter[tuple[tuple[tuple[tuple[str, ...], int], ...], ...]] = Counter()
    for product in anatomy.trace.tracer.products:
        axes = []
        for vector in product.axes:
            key = vector.tobytes()
            if key not in known:
                known[key] = axis(vector)
            axes.append(known[key])
        terms[tuple(axes)] += product.times * (1 if product.of_input else anatomy.samples)
    return [(times, ParameterSize([dict(each) for each in axes])) for axes, times in terms.items()]


def _spaces_of(size: ParameterSize) -> set[str]:
    return {name for axis in size.axes for names in axis for name in names}
