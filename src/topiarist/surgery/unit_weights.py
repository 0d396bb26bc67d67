"""The weights that make each unit of a network: to judge whole units by them, and to silence units without a cut."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from topiarist.tracing import Inputs, Place, anatomy


@dataclass(frozen=True)
class Rows:
    """The rows (n_units, n) of a parameter that belong to each unit."""

    parameter: str
    rows: Tensor


@dataclass(frozen=True)
class UnitWeights:
    """A space whose units can be silenced: `kernels` write them; with `silenced` zero, they are zero."""

    size: int
    kernels: tuple[Rows, ...]
    silenced: tuple[Rows, ...]

    def summed(self, scores: Mapping[str, Tensor], *, squared: bool) -> Tensor:
        """Give each unit's sum of the scores, or of their squares, of the weights that write it (n_units,)."""
        total = torch.zeros(self.size)
        for place in self.kernels:
            score = scores[place.parameter].flatten(1)
            by_row = (score.square() if squared else score).sum(dim=1)
            total += by_row[place.rows].sum(dim=1).cpu()
        return total


def unit_weights(model: nn.Module, example_input: Inputs) -> dict[str, UnitWeights]:
    """Give the weights of the units of each space that can go; spaces that a frozen layer writes are left out."""
    parameters = dict(model.named_parameters())
    found = {}
    for name, space in anatomy(model, example_input, partial=True).free.items():
        written, passed = list(rows_of(space.producers, parameters)), list(rows_of(space.passes, parameters))
        kernels = [place for place in written if parameters[place.parameter].ndim > 1]
        if kernels and all(parameters[place.parameter].requires_grad for place in (*written, *passed)):
            found[name] = UnitWeights(space.size, tuple(kernels), (*written, *passed))
    return found


def rows_of(places: Sequence[Place], parameters: Mapping[str, Tensor]) -> Iterator[Rows]:
    """Give the rows of weights and biases of the layers that meet the units in this way."""
    for place in places:
        rows = torch.from_numpy(place.positions).flatten(1)
        for name in ("weight", "bias") if place.parameter is None else ():
            known = f"{place.module}.{name}".removeprefix(".")
            if known in parameters:
                yield Rows(known, rows)
