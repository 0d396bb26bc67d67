"""What recurrent layers see of the units of a space, step by step, as evidence for which of them to keep.

A gate adds up what it reads and the last state. What the one tells of the other needs no unit: so the covariance of the
units is what is left of it when the other is known.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from topiarist.devices import in_float64
from topiarist.surgery.choice.reading_sums import Part, of_units
from topiarist.surgery.refit.moments import RIDGE, Moments
from topiarist.surgery.refit.recurrent import (
    behind_first,
    directions_of,
    is_recurrent,
    sequences_of,
    turned,
)
from topiarist.tracing import Place, Space


def recurrent_readers(model: nn.Module, space: Space) -> list[Place]:
    """Return where recurrent layers of torch's read the units of a space."""
    own = (place for place in space.consumers if place.parameter is not None)
    return [place for place in own if is_recurrent(model.get_submodule(place.module))]


class RecurrentSums:
    """What one parameter of a recurrent layer reads of the units of a space.

    Positions of one unit, as those of both directions, are samples of it, unless they are `joint` features.
    """

    def __init__(self, model: nn.Module, place: Place, *, joint: bool) -> None:
        self.module: Any = model.get_submodule(place.module)
        self.place, self.joint = place, joint
        self.positions = torch.from_numpy(place.positions.reshape(-1))
        self.units = place.positions.size if joint else len(place.positions)
        self.moments = Moments()

    def add(self, taken: Any) -> None:
        """Add what the layer is about to read."""
        part, _, end = str(self.place.parameter).partition("_l")
        for x, last, hidden in _readings(self.module, taken, f"_l{end}"):
            read, other = {"weight_ih": (x, last), "weight_hh": (last, x), "weight_hr": (hidden, None)}[part]
            assert read is not None
            own = read.flatten(0, 1).index_select(1, self.positions.to(read.device))
            repeats = 1
            if not self.joint:
                own = own.reshape(len(own), self.units, -1)
                repeats = own.shape[2]
                own = own.transpose(1, 2).flatten(0, 1)
            if other is not None:
                own = torch.cat([own, other.flatten(0, 1).repeat_interleave(repeats, 0)], 1)
            self.moments.add(own)

    @property
    def count(self) -> int:
        """Return how many rows were read."""
        return self.moments.count

    def part(self) -> Part:
        """Return what an error in the units costs, and the covariances that `combined` takes."""
        weight = in_float64(self.module._parameters[self.place.parameter].detach())
        columns = weight.index_select(1, self.positions.to(weight.device)).reshape(len(weight), self.units, -1)
        root = torch.linalg.qr(columns.transpose(1, 2).reshape(-1, self.units), mode="r").R
        spread = without(self.moments.covariances()[0], self.units)
        return of_units(root, spread)


def without(spread: Tensor, units: int) -> Tensor:
    """Return the covariance of the first units that is left where the other features are known."""
    if spread.shape[0] == units:
        return spread
    own, shared, other = spread[:units, :units], spread[:units, units:], spread[units:, units:]
    scale = RIDGE * other.diagonal().mean().clamp_min(torch.finfo(spread.dtype).tiny)
    known = other + scale * torch.eye(len(other), dtype=spread.dtype, device=spread.device)
    left: Tensor = own - shared @ torch.linalg.solve(known, shared.T)
    return left / 2 + left.T / 2


def _readings(module: Any, taken: Any, suffix: str) -> Sequence[tuple[Tensor, Tensor, Tensor | None]]:
    """Return what a layer in one direction reads, its last states, and what it projects; states begin with zeros."""
    found = []
    with torch.no_grad():
        for sequences in sequences_of(module, taken, None):
            x = sequences.x
            for layer in range(module.num_layers):
                states = []
                for direction in directions_of(module, layer):
                    own, first = (
                        turned(x, direction),
                        sequences.state(direction.number, direction.units, direction.cells),
                    )
                    after = direction.run(own, first)
                    if direction.suffix == suffix:
                        last = behind_first(first[0], after)
                        hidden = direction.hidden(own, last, first) if "weight_hr" in direction.weights else None
                        found.append((own, last, hidden))
                    states.append(turned(after, direction))
                x = torch.cat(states, -1)
                if any(direction.suffix == suffix for direction in directions_of(module, layer)):
                    break
    return found
