"""Edits worth trying, from what a network's activations, gradients and weights tell."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, get_args

from topiarist.methods.surgeon.branches import Branch
from topiarist.methods.surgeon.theatre import Candidate, Theatre
from topiarist.surgery.costs import Costs
from topiarist.surgery.edits import DeepenNetwork, Edit, GrowSpace, RemoveUnits, WidenSpace
from topiarist.surgery.readings import evidence_from
from topiarist.surgery.recommendation import Recommendation
from topiarist.surgery.scores import hidden_layers
from topiarist.surgery.selection import eliminate

Kind = Literal["renew", "grow", "widen", "deepen", "remove", "fold", "factorise"]
KINDS: tuple[Kind, ...] = get_args(Kind)
GROWING: tuple[Kind, ...] = ("grow", "widen", "deepen")
LATE: tuple[Kind, ...] = ("remove", "factorise")
FULL = 0.6  # of its directions: a space that uses more has no room left
MANY = 0.25  # of the units of a space: so many dead ones are worth a renewal
ROOM = 4  # times as many units as directions that are used, after growth; trained wide layers have three
WORTH = 0.1  # of the parameters: an edit that saves less is not tried
LITTLE = 0.01  # of the variance or of the squared singular values: an edit that loses more is not tried


@dataclass(frozen=True)
class Proposals:
    """What could be done to one branch."""

    theatre: Theatre
    branch: Branch
    advice: Recommendation
    decision: int
    kinds: Sequence[Kind]
    tolerance: float
    stuck: bool

    @cached_property
    def costs(self) -> Costs:
        """What the network would cost with other widths."""
        return Costs(self.advice.model, self.advice.found)

    @cached_property
    def hidden(self) -> tuple[str, ...]:
        """The hidden layers."""
        return hidden_layers(self.advice.model, self.advice.found)

    def of(self, kind: Kind) -> Iterator[Candidate]:
        """Give what is worth trying of one kind, the most promising first."""
        made = {
            "widen": self.widened,
            "grow": self.grown,
            "renew": self.renewed,
            "deepen": self.deepened,
            "remove": self.removed,
            "fold": self.folded,
            "factorise": self.factorised,
        }
        yield from made[kind]()

    def grown(self) -> Iterator[Candidate]:
        """Give the spaces that are full more room, by fresh units, also in the place of dead ones."""
        if full := self.full():
            dead, more = self.dead(), self.more(full)
            more |= {name: more.get(name, 0) + len(units) for name, units in dead.items()}
            yield self._candidate("grow", (*self._fresh("grow", more), *without(dead)), said_of(full))

    def widened(self) -> Iterator[Candidate]:
        """Give the spaces that are full more room, by copies that can diverge."""
        if full := self.full():
            more = self.more(full)
            edits = tuple(WidenSpace(space=name, by=by, seed=self._seed("widen", name)) for name, by in more.items())
            yield self._candidate("widen", edits, said_of(full))

    def full(self) -> dict[str, float]:
        """Give the spaces whose activations use most of the directions that their living units have, and what share."""
        self.advice.read(self.advice.spaces)
        used = {name: self.used(name) for name in self.advice.spaces if self.learns(name)}
        return {name: share for name, share in used.items() if share >= FULL}

    def learns(self, space: str) -> bool:
        """Say whether the layers that write a space are trained: fresh units of others would stay as they are drawn."""
        writers = (self.advice.model.get_submodule(each.module) for each in self.advice.found.spaces[space].producers)
        return all(parameter.requires_grad for writer in writers for parameter in writer.parameters())

    def more(self, full: Iterable[str]) -> dict[str, int]:
        """Give how many units full spaces are to have on top: some times as many in all as directions are used."""
        spaces = self.advice.spaces
        return {
            name: max(1, round(ROOM * self.advice.activations(name).effective_rank) - spaces[name]) for name in full
        }

    def used(self, space: str) -> float:
        """Give the share of its directions that a space uses, 0 where no unit lives."""
        living = self.advice.spaces[space] - len(self.advice.health(space).dead)
        return self.advice.activations(space).effective_rank / living if living else 0.0

    def dead(self) -> dict[str, tuple[int, ...]]:
        """Give the dead units of the spaces that have some and could have better ones."""
        learning = [name for name in self.advice.spaces if self.learns(name)]
        return {name: units for name in learning if (units := self.advice.health(name).dead)}

    def renewed(self) -> Iterator[Candidate]:
        """Put fresh units in the place of dead ones, where there are many; where a space is full, growth does it."""
        dead = self.dead()
        many = any(len(units) >= MANY * self.advice.spaces[name] for name, units in dead.items())
        if many and not ("grow" in self.kinds and self.full()):
            edits = self._fresh("renew", {name: len(units) for name, units in dead.items()})
            yield self._candidate("renew", (*edits, *without(dead)), f"{sum(map(len, dead.values()))} dead")

    def deepened(self) -> Iterator[Candidate]:
        """Add a layer after the last of the hidden layers, where width is not what is missing."""
        for name in self.hidden[-1:] if self.stuck and not self.full() else ():
            yield self._candidate("deepen", (DeepenNetwork(after=name),), "no space is full")

    def removed(self) -> Iterator[Candidate]:
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
        """Give the fewest units of a space whose readers lose no more than is tolerated."""
        advice, width = self.advice, self.advice.spaces[space]
        advice.read(advice.spaces)
        known = evidence_from(advice.model, advice.found, advice.readings(space))
        if known is None or known.total <= 0:
            return {0}
        lost = (eliminate(known, 0)[1] / known.total).tolist()
        fewest = next(units for units in range(1, width + 1) if units == width or lost[units] <= self.tolerance)
        return set(eliminate(known, fewest)[0])

    def folded(self) -> Iterator[Candidate]:
        """Fold the hidden layer into the next where least is lost, where width is not what is missing; one stays."""
        hidden = self.hidden if len(self.hidden) > 1 and not self.full() else ()
        found = [folding for name in hidden if (folding := self.advice.folding(name)) is not None]
        for folding in sorted(found, key=lambda each: each.lost)[:1]:
            if folding.lost < LITTLE and folding.parameters < self.advice.parameters:
                reason = f"{100 * folding.lost:.1f} % of the variance of '{folding.into}' is lost"
                yield self._candidate("fold", (folding.edit,), reason)

    def factorised(self) -> Iterator[Candidate]:
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

    def _candidate(self, kind: Kind, edits: tuple[Edit, ...], reason: str) -> Candidate:
        return Candidate(branch=self.branch, kind=kind, edits=edits, reason=reason)

    def _seed(self, *names: str) -> int:
        return self.theatre.seed(*names, self.decision)


def without(units: Mapping[str, tuple[int, ...]]) -> tuple[Edit, ...]:
    """Give the edits that remove units, if there are any."""
    return (RemoveUnits(units=dict(units)),) if units else ()


def said_of(full: Mapping[str, float]) -> str:
    """Say how full spaces are."""
    return ", ".join(f"'{name}' uses {100 * share:.0f} % of its directions" for name, share in full.items())
