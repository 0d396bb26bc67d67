"""Runs an evolution from its start, or from the last entry of its journal, to the network that came out best."""

import math
import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Protocol

from topiarist.errors import TopiaristWarning
from topiarist.methods.surgeon.branches import Branch, judged
from topiarist.methods.surgeon.journal import Entry, Journal
from topiarist.methods.surgeon.theatre import Theatre
from topiarist.surgery.applying import copied_with_plan


class Way(Protocol):
    """A way to evolve: as published, or ours."""

    def first(self) -> list[Branch]:
        """Train the network as it is up to the first decision."""
        ...

    def cycle(self, branches: Sequence[Branch]) -> list[Branch]:
        """Decide, where a decision is due, and train what is left for a while."""
        ...

    def score(self, branch: Branch) -> float:
        """Say what a branch is worth."""
        ...

    def state(self) -> dict[str, Any]:
        """Give what it remembers from decision to decision, as what JSON is made of."""
        ...

    def load(self, state: dict[str, Any]) -> None:
        """Take up what `state` gave."""
        ...


def evolve(
    way: Way, theatre: Theatre, journal: Journal | None, entry: Entry | None, *, stop_at: float | None = None
) -> Branch:
    """Train to the end, or to an accuracy on the validation part, and return the best branch.

    A training that diverges ends with what was good.
    """
    if entry is None:
        branches = alive(way.first()) or [as_it_was(theatre)]
    else:
        branches = list(entry.branches)
        way.load(dict(entry.state))
    goal = math.inf if stop_at is None else stop_at
    while branches[0].steps < theatre.last_step and theatre.diverged is None:
        if max(branch.accuracy for branch in branches) >= goal:
            break
        after = way.cycle(branches)
        theatre.settle([branch for branch in after if branch not in alive(after)], "dropped", "it diverged")
        branches = alive(after) or stopped(theatre, branches)
        if journal is not None and theatre.diverged is None:
            journal.write(Entry(branches, theatre.lineage, way.state()))
    best = max(branches, key=way.score)
    theatre.settle([branch for branch in branches if branch is not best], "dropped")
    theatre.settle([best], "best")
    return best


def alive(branches: Sequence[Branch]) -> list[Branch]:
    """Give the branches whose numbers are still numbers."""
    return [branch for branch in branches if not math.isnan(branch.accuracy)]


def as_it_was(theatre: Theatre) -> Branch:
    """Give the network as it was given, where its training diverged at once."""
    (branch,) = stopped(theatre, [Branch(model=copied_with_plan(theatre.job.whole))])
    return replace(judged(branch, theatre.course.data), node=0)


def stopped(theatre: Theatre, branches: Sequence[Branch]) -> list[Branch]:
    """Say that the training diverged, and give what was good before."""
    epoch = theatre.epoch(branches[0])
    theatre.diverged = f"the training diverged after epoch {epoch:g}: the network of that epoch is kept"
    warnings.warn(theatre.diverged, TopiaristWarning, stacklevel=2)
    return list(branches)
