"""Factorisation: layers whose weights have few directions become the product of two thinner ones.

The nearest matrix of a rank is the truncated singular value decomposition (Eckart and Young, 1936). All layers keep
the same share of their squared singular values, so that each loses as much as any other.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy
from pydantic import Field
from torch import nn

from topiarist.errors import ModelError
from topiarist.methods.task import Limits, Proposal, Task
from topiarist.settings import Settings
from topiarist.surgery import FactoriseLayer
from topiarist.surgery.advice.spectra import smallest_rank, weight_spectrum
from topiarist.surgery.choice.allotment import LimitError
from topiarist.surgery.choice.costs import Costs, Measure
from topiarist.surgery.depth.factorising import can_factorise
from topiarist.surgery.layers import weight_of
from topiarist.tracing import anatomy

KEPT = 0.95
JUST_BELOW = 1 - 1e-15  # so that no rounding asks for one rank more
Ranks = Mapping[str, int]


class Factorisation(Settings):
    """Where to stop: at a share of the squared singular values of each layer, or where a budget says.

    `keep` is the share that stays, 95 % unless given; with a budget, the highest that its limits allow. A layer is
    replaced only where that saves something. `layers` names those to look at, unless all.
    """

    keep: float | None = Field(default=None, gt=0, le=1)
    layers: tuple[str, ...] | None = None

    @property
    def rounds(self) -> int:
        """It decides once."""
        return 1

    @property
    def stops_itself(self) -> bool:
        """Say whether a share is given."""
        return self.keep is not None

    def propose(self, task: Task) -> Proposal:
        """Decide which layers become two, and of which rank."""
        found = self._layers(task)
        own = KEPT if self.keep is None else self.keep
        keep = self._share(found, task.limits) if task.limits else own
        ranks = found.ranks(keep)
        kept = ", ".join(f"'{name}' {found.full_rank(name)} → {rank}" for name, rank in ranks.items())
        reason = f"ranks that keep {keep:.1%} of the squared singular values: {kept or 'no layer becomes smaller'}"
        return Proposal(tuple(FactoriseLayer(layer=name, rank=rank) for name, rank in ranks.items()), (reason,))

    def _layers(self, task: Task) -> "Layers":
        key = f"factorised layers {self.layers}"
        if key not in task.memory:
            task.memory[key] = look_at(task, self.layers)
        known: Layers = task.memory[key]
        return known

    def _share(self, found: "Layers", limits: Limits) -> float:
        """Give the highest share that keeps all limits, by halving among all shares that make a difference."""
        shares = found.shares
        for measure, limit in limits.items():
            fewest = found.cost(measure, found.ranks(shares[0]))
            if fewest > limit:
                raise LimitError(measure, limit, fewest)
        low, high = 0, len(shares)
        while high - low > 1:
            middle = (low + high) // 2
            ranks = found.ranks(shares[middle])
            fits = all(found.cost(measure, ranks) <= limit for measure, limit in limits.items())
            low, high = (middle, high) if fits else (low, middle)
        return shares[low]


@dataclass(frozen=True)
class Layer:
    """A layer as a matrix (rows, columns) that stands at some positions, with its singular values."""

    rows: int
    columns: int
    positions: int
    values: Sequence[float]

    def saved(self, measure: Measure, rank: int) -> int:
        """Give what a rank saves."""
        return (self.rows * self.columns - rank * (self.rows + self.columns)) * self.each(measure)

    def each(self, measure: Measure) -> int:
        """Give what each weight costs."""
        return 1 if measure == "parameters" else self.positions


@dataclass(frozen=True)
class Layers:
    """The layers of a network that could become two, and what the whole of it costs."""

    known: Mapping[str, Layer]
    totals: Mapping[Measure, int]

    def ranks(self, keep: float) -> dict[str, int]:
        """Give the ranks that keep a share, of the layers that become smaller by it."""
        found = {name: smallest_rank(layer.values, keep) for name, layer in self.known.items()}
        return {name: rank for name, rank in found.items() if self.known[name].saved("parameters", rank) > 0}

    def cost(self, measure: Measure, ranks: Ranks) -> int:
        """Give what the network costs with some ranks."""
        return self.totals[measure] - sum(self.known[name].saved(measure, rank) for name, rank in ranks.items())

    def full_rank(self, name: str) -> int:
        """Give the rank that a layer has at most."""
        return len(self.known[name].values)

    @cached_property
    def shares(self) -> list[float]:
        """The shares at which the rank of a layer changes, ascending; at the first, all ranks are 1."""
        found = {1.0}
        for layer in self.known.values():
            kept = numpy.cumsum(numpy.square(layer.values))
            found |= set((JUST_BELOW * kept / kept[-1]).tolist()) if kept[-1] > 0 else set()
        return sorted({min(found) / 2, *found})


def look_at(task: Task, names: Sequence[str] | None) -> Layers:
    """Look at the layers that could become two; `names` are those that may, all unless given."""
    found = anatomy(task.model, task.example_input, partial=True)
    costs = Costs(task.model, found)
    known = {}
    for name in found.calls if names is None else names:
        if name not in found.calls or name not in costs.positions or not can_factorise(task.model, name):
            if names is not None:
                raise ModelError(f"'{name}' is no layer that could become two thinner ones")
            continue
        known[name] = layer_at(task.model.get_submodule(name), costs.positions[name])
    if not known:
        raise ModelError("the network has no layer that could become two thinner ones")
    return Layers(known, {"parameters": costs.parameters({}), "macs": costs.macs({})})


def layer_at(module: nn.Module, positions: int) -> Layer:
    """Describe a linear layer or a convolution."""
    weight = weight_of(module)
    rows, columns = weight.flatten(1).shape
    return Layer(rows, columns, positions, weight_spectrum(weight).singular_values)
