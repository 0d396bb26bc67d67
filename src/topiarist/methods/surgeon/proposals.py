"""Edits worth trying, from what a network's activations, gradients and weights tell."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, get_args

from topiarist.measurement import Budget
from topiarist.measurement.budget import footprint
from topiarist.methods.surgeon.branches import Branch
from topiarist.methods.surgeon.theatre import Candidate, Theatre
from topiarist.surgery.allotment import Losses
from topiarist.surgery.costs import Costs
from topiarist.surgery.edits import DeepenNetwork, Edit, GrowSpace, RemoveUnits, WidenSpace
from topiarist.surgery.readings import evidence_from
from topiarist.surgery.recommendation import Recommendation
from topiarist.surgery.selection import eliminate

Kind = Literal["renew", "grow", "widen", "deepen", "remove", "fold", "factorise"]
KINDS: tuple[Kind, ...] = get_args(Kind)
REDUCING: tuple[Kind, ...] = ("remove", "fold", "factorise")
FULL = 0.5  # of its directions: a space that uses more has no room left
MANY = 0.1  # of the units of a space: so many dead ones are worth a renewal
TIMES = (4, 2)  # as many units as before, that growth gives
SHARES = (0.5, 0.75)  # of the parameters, that a removal leaves
HOPELESS = 0.5  # of what readers need: an edit that loses more is not tried


@dataclass(frozen=True)
class Proposals:
    """What could be done to one branch."""

    theatre: Theatre
    branch: Branch
    advice: Recommendation
    decision: int
    narrow: bool

    @cached_property
    def costs(self) -> Costs:
        """What the network would cost with other widths."""
        return Costs(self.advice.model, self.advice.found)

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
        """Multiply the spaces that are full, by fresh units, also in the place of dead ones."""
        full = self.full()
        dead = {name: units for name in full if (units := self.advice.health(name).dead)}
        for times in TIMES if full else ():
            more = {name: (times - 1) * self.advice.spaces[name] + len(dead.get(name, ())) for name in full}
            yield self._candidate("grow", (*self._fresh("grow", more), *without(dead)), said_of(full))

    def widened(self) -> Iterator[Candidate]:
        """Multiply the spaces that are full, by copies that can diverge."""
        full = self.full()
        for times in TIMES if full else ():
            more = {name: (times - 1) * self.advice.spaces[name] for name in full}
            edits = tuple(WidenSpace(space=name, by=by, seed=self._seed("widen", name)) for name, by in more.items())
            yield self._candidate("widen", edits, said_of(full))

    def full(self) -> dict[str, float]:
        """Give the spaces whose activations use most of the directions that their living units have, and what share."""
        self.advice.read(self.advice.spaces)
        used = {name: self.used(name) for name in self.advice.spaces}
        return {name: share for name, share in used.items() if share >= FULL}

    def used(self, space: str) -> float:
        """Give the share of its directions that a space uses, 0 where no unit lives."""
        living = self.advice.spaces[space] - len(self.advice.health(space).dead)
        return self.advice.activations(space).effective_rank / living if living else 0.0

    def renewed(self) -> Iterator[Candidate]:
        """Put fresh units in the place of dead ones."""
        dead = {name: self.advice.health(name).dead for name in self.advice.spaces}
        if any(len(units) >= MANY * self.advice.spaces[name] for name, units in dead.items()):
            dead = {name: units for name, units in dead.items() if units}
            edits = self._fresh("renew", {name: len(units) for name, units in dead.items()})
            count = sum(map(len, dead.values()))
            yield self._candidate("renew", (*edits, *without(dead)), f"{count} dead")

    def deepened(self) -> Iterator[Candidate]:
        """Add a layer after the last of the hidden layers, where width is not what is missing."""
        for name in list(self.advice.scores)[-1:] if self.narrow and not self.full() else ():
            yield self._candidate("deepen", (DeepenNetwork(after=name),), "no space is full")

    def removed(self) -> Iterator[Candidate]:
        """Remove units where least is lost for each parameter, to fixed shares of the parameters."""
        advice = self.advice
        advice.read(advice.spaces)
        evidence = {name: evidence_from(advice.model, advice.found, advice.readings(name)) for name in advice.spaces}
        lost = {
            name: [0.0] * (width + 1)
            if (known := evidence[name]) is None or known.total <= 0
            else (eliminate(known, 0)[1] / known.total).tolist()
            for name, width in advice.spaces.items()
        }
        losses = Losses(self.costs, lost)
        for share in SHARES:
            limit = max(math.ceil(share * advice.parameters), losses.fewest("parameters"))
            widths = losses.within(parameters=limit)
            narrower = {name: width for name, width in widths.items() if width < advice.spaces[name]}
            if not narrower:
                continue
            units = {}
            for name, width in narrower.items():
                known = evidence[name]
                kept = range(width) if known is None else eliminate(known, width)[0]
                units[name] = tuple(sorted(set(range(advice.spaces[name])) - set(kept)))
            worst = max(lost[name][width] for name, width in narrower.items())
            if worst < HOPELESS:
                reason = f"at most {100 * worst:.1f} % of what readers need is lost"
                yield self._candidate("remove", (RemoveUnits(units=units, refit=True),), reason)

    def folded(self) -> Iterator[Candidate]:
        """Fold the hidden layer into the next where least is lost."""
        found = [folding for name in self.advice.scores if (folding := self.advice.folding(name)) is not None]
        for folding in sorted(found, key=lambda each: each.lost)[:1]:
            if folding.lost < HOPELESS and folding.parameters < self.advice.parameters:
                reason = f"{100 * folding.lost:.0f} % of the variance of '{folding.into}' is lost"
                yield self._candidate("fold", (folding.edit,), reason)

    def factorised(self) -> Iterator[Candidate]:
        """Factorise the layer where most parameters are saved."""
        found = [each for name in self.advice.layers for each in self.advice.factorisings(name)]
        for each in sorted(found, key=lambda each: each.parameters)[:1]:
            if each.parameters < 0.9 * self.advice.parameters:
                reason = f"{100 * each.lost:.0f} % of the squared singular values are lost"
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


def fits(branch: Branch, theatre: Theatre, budget: Budget) -> bool:
    """Say whether the network of a branch keeps within a budget."""
    if not budget.limits_size:
        return True
    timed = budget.latency_ms is not None
    measured = footprint(branch.model, theatre.job.sample, data=theatre.job.data, latency=timed)
    return budget.excess(measured) is None
