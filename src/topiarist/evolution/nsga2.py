"""NSGA-II over bit strings: the front of two or more objectives, all minimised (Deb et al., 2002).

Binary tournaments by rank and crowding, one-point crossover, bit flips, and survival of the best of parents and
children. Departures: no individual is evaluated twice, so that none is in the population twice, and the front is that
of everything seen, not of the last population.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy
from pydantic import Field, model_validator

from topiarist.errors import SettingsError
from topiarist.evolution.genetic_algorithm import check_density
from topiarist.evolution.pareto import hypervolume
from topiarist.evolution.sorting import crowding, dominates, ranks
from topiarist.evolution.variation import (
    Bits,
    Density,
    Floats,
    Integers,
    Packed,
    cross_neighbours,
    keys_of,
    packed,
    random_bits,
    tails,
    unpacked,
)
from topiarist.settings import Settings

ATTEMPTS = 20
MARGIN = 0.1
Objectives = Callable[[Bits], Floats]
OnFront = Callable[[int, Floats], None]


class FrontSettings(Settings):
    """How to search. `flip_probability` is that of each bit of a mutated individual; None flips one on average.

    `density` is the probability that a bit is set at the start; of a range, each individual draws its own.
    The search ends when for `patience` generations the front's hypervolume has not risen by more than the share
    `tolerance`.
    """

    population: int = Field(default=100, ge=2)
    generations: int = Field(default=100, ge=0)
    crossover_probability: float = Field(default=0.9, ge=0, le=1)
    mutation_probability: float = Field(default=1.0, ge=0, le=1)
    flip_probability: float | None = Field(default=None, ge=0, le=1)
    density: Density = 0.5
    patience: int | None = Field(default=None, ge=1)
    tolerance: float = Field(default=0.0, ge=0, lt=1)

    @model_validator(mode="after")
    def _density_is_one(self) -> "FrontSettings":
        check_density(self.density)
        return self


@dataclass(frozen=True)
class Front:
    """The front of everything seen, in order of the first objective; of equal objectives, the first seen.

    `bits` (n, n_bits), `objectives` (n, n_objectives); `sizes` (n_generations + 1,), its number of points at the start
    and after each generation.
    """

    bits: Bits
    objectives: Floats
    sizes: Integers
    n_evaluations: int


@dataclass(frozen=True)
class Members:
    """Packed individuals (n, n_bytes) with their objectives (n, n_objectives), ranks (n,) and crowding (n,)."""

    individuals: Packed
    objectives: Floats
    ranks: Integers
    crowding: Floats

    def survivors(self, count: int) -> "Members":
        """Keep those of the lowest ranks; where a rank does not fit in whole, the least crowded of it."""
        kept = numpy.lexsort((-self.crowding, self.ranks))[:count]
        return Members(self.individuals[kept], self.objectives[kept], self.ranks[kept], self.crowding[kept])


def evolve_front(
    evaluate: Objectives,
    n_bits: int,
    generator: numpy.random.Generator,
    settings: FrontSettings | None = None,
    *,
    on_generation: OnFront | None = None,
) -> Front:
    """Search the front. `evaluate(bits)` gives the objectives (n, n_objectives) of individuals (n, n_bits), all unseen.

    The search also ends where no unseen individual is found. `on_generation(number, objectives)` gets the front's
    objectives (n, n_objectives).
    """
    chosen = FrontSettings() if settings is None else settings
    if n_bits < 1:
        raise SettingsError(f"a search needs bits; found {n_bits}")
    seen: set[bytes] = set()
    new = unseen(packed(random_bits(generator, chosen.population, n_bits, chosen.density)), seen, chosen.population)
    objectives = checked(evaluate(unpacked(new, n_bits)), len(new))
    members, (front, costs) = ranked(new, objectives), front_of(new, objectives)
    landmark, worst, sizes, still = costs, objectives.max(axis=0), [len(costs)], 0
    for number in range(1, chosen.generations + 1):
        new = offspring(members, n_bits, generator, chosen, seen)
        if not len(new):
            break
        objectives = checked(evaluate(unpacked(new, n_bits)), len(new))
        members = ranked(*joined(members.individuals, members.objectives, new, objectives)).survivors(chosen.population)
        front, costs = front_of(*joined(front, costs, new, objectives))
        worst = numpy.maximum(worst, objectives.max(axis=0))
        sizes.append(len(costs))
        if on_generation is not None:
            on_generation(number, costs)
        if chosen.patience is not None:
            moved = has_moved(costs, landmark, worst, chosen.tolerance)
            still, landmark = (0, costs) if moved else (still + 1, landmark)
            if still >= chosen.patience:
                break
    return Front(unpacked(front, n_bits), costs, numpy.array(sizes, dtype=numpy.intp), len(seen))


def ranked(individuals: Packed, objectives: Floats) -> Members:
    """Find ranks and crowding."""
    found = ranks(objectives)
    return Members(individuals, objectives, found, crowding(objectives, found))


def front_of(individuals: Packed, objectives: Floats) -> tuple[Packed, Floats]:
    """Give the front, in order of the first objective; of equal objectives, the first."""
    distinct, first = numpy.unique(objectives, axis=0, return_index=True)
    kept = ~dominates(distinct).any(axis=0)
    return individuals[first[kept]], distinct[kept]


def joined(first: Packed, its: Floats, second: Packed, theirs: Floats) -> tuple[Packed, Floats]:
    """Put individuals and their objectives behind others."""
    return numpy.concatenate((first, second)), numpy.concatenate((its, theirs))


def offspring(
    members: Members, n_bits: int, generator: numpy.random.Generator, chosen: FrontSettings, seen: set[bytes]
) -> Packed:
    """Make as many unseen children as there are individuals, or as many as are found in some attempts."""
    found: list[Packed] = []
    missing = chosen.population
    for _ in range(ATTEMPTS):
        found.append(unseen(children_of(members, n_bits, generator, chosen), seen, missing))
        missing -= len(found[-1])
        if not missing:
            break
    return numpy.concatenate(found)


def children_of(members: Members, n_bits: int, generator: numpy.random.Generator, chosen: FrontSettings) -> Packed:
    """Select by rank, then crowding, cross and mutate: packed bits (population, n_bytes)."""
    count = chosen.population
    first, second = generator.integers(len(members.ranks), size=(2, count))
    lower = members.ranks[second] < members.ranks[first]
    equal = members.ranks[second] == members.ranks[first]
    won = lower | (equal & (members.crowding[second] > members.crowding[first]))
    children: Packed = members.individuals[numpy.where(won, second, first)]
    cross_neighbours(children, generator.random(count // 2), chosen.crossover_probability, tails(n_bits))
    mutated = generator.random(count) < chosen.mutation_probability
    each = 1 / n_bits if chosen.flip_probability is None else chosen.flip_probability
    children[mutated] ^= packed(generator.random((int(mutated.sum()), n_bits)) < each)
    return children


def unseen(individuals: Packed, seen: set[bytes], most: int) -> Packed:
    """Give those individuals, each once and `most` at most, that are not in `seen`, and put them there."""
    new = {key: row for row, key in enumerate(keys_of(individuals)) if key not in seen}
    keys = list(new)[:most]
    seen.update(keys)
    return individuals[[new[key] for key in keys]]


def has_moved(front: Floats, landmark: Floats, worst: Floats, tolerance: float) -> bool:
    """Say whether a front covers more than an earlier one, within a corner a little worse than all that was seen."""
    lowest = front.min(axis=0)
    corner = worst + numpy.where(worst > lowest, MARGIN * (worst - lowest), 1.0)
    return hypervolume(front, corner) > (1 + tolerance) * hypervolume(landmark, corner)


def checked(objectives: Floats, count: int) -> Floats:
    """Give the objectives of `count` individuals, two or more of each, all finite."""
    array = numpy.asarray(objectives, dtype=numpy.float64)
    if array.ndim != 2 or array.shape[0] != count or array.shape[1] < 2:
        raise SettingsError(f"evaluate must give two or more objectives for {count} individuals; found {array.shape}")
    if not numpy.isfinite(array).all():
        raise SettingsError(f"objectives must be finite; found {array[~numpy.isfinite(array)][0]}")
    return array
