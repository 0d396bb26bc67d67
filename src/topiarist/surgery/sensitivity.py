"""Sensitivity: what is lost where a share of the units of a space goes and its readers are refitted."""

from collections.abc import Sequence
from dataclasses import dataclass

from torch import nn

from topiarist.errors import SettingsError
from topiarist.surgery.costs import Costs
from topiarist.surgery.edits import RemoveUnits
from topiarist.surgery.readings import Readings, evidence_from
from topiarist.surgery.reexpressions import free_space
from topiarist.surgery.selection import eliminate
from topiarist.tracing import Anatomy

SHARES = (0.25, 0.5, 0.75)


@dataclass(frozen=True)
class Removal:
    """A share of the units of a space that would go, with a refit.

    `lost` is the share of the variance that the readers need which no refit brings back; `increase` that of the mean
    cross-entropy, where it was measured; `parameters` are those of the whole network afterwards.
    """

    space: str
    share: float
    units: tuple[int, ...]
    lost: float
    parameters: int
    increase: float | None = None

    @property
    def edit(self) -> RemoveUnits:
        """Give the edit that does it."""
        return RemoveUnits(units={self.space: self.units}, refit=True)


def predicted_removals(
    model: nn.Module, found: Anatomy, name: str, readings: Readings, shares: Sequence[float] = SHARES
) -> tuple[Removal, ...]:
    """Predict what is lost with each share of the units of a space; a space of one unit has none to lose.

    At least one unit goes and at least one stays. Units go by greedy elimination, the one that is missed least first.
    """
    check_shares(shares)
    size = free_space(found, name).size
    evidence = evidence_from(model, found, readings)
    costs = Costs(model, found)
    removals = []
    for share in shares if size > 1 else ():
        keep = size - min(max(round(share * size), 1), size - 1)
        kept, lost = list(range(keep)), 0.0
        if evidence is not None:
            kept, path = eliminate(evidence, keep)
            lost = float(path[keep]) / evidence.total if evidence.total > 0 else 0.0
        units = tuple(sorted(set(range(size)) - set(kept)))
        removals.append(Removal(name, share, units, lost, costs.parameters({name: keep})))
    return tuple(removals)


def check_shares(shares: Sequence[float]) -> None:
    """Refuse what is no share of units that can go."""
    for share in shares:
        if not 0 < share < 1:
            raise SettingsError(f"shares of units must be above 0 and below 1; found {share}")
