"""Edits worth trying, from what a network's activations, gradients and weights tell."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, get_args

from topiarist.methods.surgeon.branches import Branch
from topiarist.methods.surgeon.evolution import EditCandidate, Evolution
from topiarist.methods.surgeon.wider_networks import learns
from topiarist.surgery import DeepenNetwork, Edit, GrowSpace, Recommendation, RemoveUnits, layers
from topiarist.surgery.advice.readings import evidence_read
from topiarist.surgery.advice.spectra import hidden_layers
from topiarist.surgery.choice.costs import Costs
from topiarist.surgery.choice.selection import eliminate

Kind = Literal["renew", "grow", "widen", "deepen", "remove", "fold", "factorise"]
KINDS: tuple[Kind, ...] = get_args(Kind)
GROWING: tuple[Kind, ...] = ("grow", "widen")  # by the race of widths, before the first epoch
LATE: tuple[Kind, ...] = ("remove", "factorise")
FLATTENING: tuple[Kind, ...] = ("fold", "factorise")
MANY = 0.25  # of the units of a space: so many dead ones are worth a renewal
WORTH = 0.1  # of the parameters: an edit that saves less is not tried
LITTLE = 0.01  # of the variance or of the squared singular values: an edit that loses more is not tried


@dataclass(frozen=True)
class Proposals:
    """What could be done to one branch; the spaces of `needed_whole` won a race by their width, and keep it."""

    evolution: Evolution
    branch: Branch
    advice: Recommendation
    decision: int
    tolerance: float
    stuck: bool
    needed_whole: Sequence[str] = ()

    @cached_property
    def costs(self) -> Costs:
        """What the network would cost with other widths."""
        return Costs(self.advice.model, self.advice.anatomy)

    @cached_property
    def hidden(self) -> tuple[str, ...]:
        """The hidden layers."""
        return hidden_layers(self.advice.model, self.advice.anatomy)

    def of(self, kind: Kind) -> Iterator[EditCandidate]:
        """Yield what is worth trying of one kind, the most promising first."""
        made = {
            "renew": self.renewed,
            "deepen": self.deepened,
            "remove": self.removed,
            "fold": self.folded,
            "factorise": self.factorised,
        }
        yield from made[kind]()

    def dead(self) -> dict[str, tuple[int, ...]]:
        """Return the dead units of the spaces that have some and could have better ones."""
        learning = [name for name in self.advice.spaces if learns(self.advice.model, self.advice.anatomy, name)]
        return {name: units for name in learning if (units := self.advice.health(name).dead)}

    def renewed(self) -> Iterator[EditCandidate]:
        """Put fresh units in the place of dead ones, where there are many."""
        dead = self.dead()
        if any(len(units) >= MANY * self.advice.spaces[name] for name, units in dead.items()):
            edits = self._fresh("renew", {name: len(units) for name, units in dead.items()})
            yield self._candidate("renew", (*edits, *without(dead)), f"{sum(map(len, dead.values()))} dead")

    def deepened(self) -> Iterator[EditCandidate]:
        """Add a layer after the last of the hidden layers, where a decision changed nothing."""
        for name in self.hidden[-1:] if self.stuck else ():
            yield self._candidate("deepen", (DeepenNetwork(after=name),), "nothing else helped")

    def removed(self) -> Iterator[EditCandidate]:
        """Remove the units without which the readers of a space, refitted, miss next to nothing."""
        kept = {name: self.needed(name) for name in self.advice.spaces}
        narrower = {name: units for name, units in kept.items() if len(units) < self.advice.spaces[name]}
        parameters = self.costs.parameters({name: len(units) for name, units in kept.items()})
        if narrower and parameters <= (1 - WORTH) * self.advice.parameters:
            removed = {
                name: tuple(sorted(set(range(self.advice.spaces[name])) - units)) for name, units in narrower.items()
            }
            reason = f"readers lose at most {100 * self.tolerance:g} % of what they need"
            yield self._candidate("remove", (RemoveUnits(units=removed, refit=True),), reason)

    def needed(self, space: str) -> set[int]:
        """Return the fewest units of a space whose readers lose no more than is tolerated."""
        advice, width = self.advice, self.advice.spaces[space]
        if space in self.needed_whole:
            return set(range(width))
        advice.read(advice.spaces)
        known = evidence_read(advice.model, advice.anatomy, advice.readings(space))
        if known is None or known.total <= 0:
            return {0}
        lost = (eliminate(known, 0)[1] / known.total).tolist()
        fewest = next(units for units in range(1, width + 1) if units == width or lost[units] <= self.tolerance)
        return set(eliminate(known, fewest)[0])

    def folded(self) -> Iterator[EditCandidate]:
        """Fold the hidden layer into the next where least is lost; one stays."""
        hidden = [name for name in self.hidden if self.saved(name) >= WORTH] if len(self.hidden) > 1 else []
        found = [folding for name in hidden if (folding := self.advice.folding(name)) is not None]
        for folding in sorted(found, key=lambda each: each.lost)[:1]:
            if folding.lost < LITTLE:
                reason = f"{100 * folding.lost:.1f} % of the variance of '{folding.into}' is lost"
                yield self._candidate("fold", (folding.edit,), reason)

    def saved(self, layer: str) -> float:
        """Return which share of the parameters is saved where a layer is folded: a trial of it costs a refit."""
        for name, space in self.advice.anatomy.free.items():
            if [place.name for place in space.producers] == [layer] and len(space.consumers) == len(space.readers) == 1:
                written, read = (
                    layers.weight_of(self.advice.model.get_submodule(path)) for path in (layer, space.readers[0].module)
                )
                folded = self.costs.parameters({name: 0}) + written[0].numel() * (read.numel() // space.size)
                return 1 - folded / self.advice.parameters
        return 0.0

    def factorised(self) -> Iterator[EditCandidate]:
        """Factorise the layer where most parameters are saved."""
        found = [
            each
            for name in self.advice.layers
            for each in self.advice.factorisings(name)
            if each.lost < LITTLE and each.parameters <= (1 - WORTH) * self.advice.parameters
        ]
        for each in sorted(found, key=lambda each: each.parameters)[:1]:
            reason = f"{100 * each.lost:.1f} % of the squared singular values are lost"
            yield self._candidate("factorise", (each.edit,), reason)

    def _fresh(self, kind: Kind, units: Mapping[str, int]) -> tuple[Edit, ...]:
        return tuple(GrowSpace(space=name, by=by, seed=self._seed(kind, name)) for name, by in units.items())

    def _candidate(self, kind: Kind, edits: tuple[Edit, ...], reason: str) -> EditCandidate:
        return EditCandidate(branch=self.branch, kind=kind, edits=edits, reason=reason)

    def _seed(self, *names: str) -> int:
        return self.evolution.seed(*names, self.decision)


def without(units: Mapping[str, tuple[int, ...]]) -> tuple[Edit, ...]:
    """Return the edits that remove units, if there are any."""
    return (RemoveUnits(units=dict(units)),) if units else ()
