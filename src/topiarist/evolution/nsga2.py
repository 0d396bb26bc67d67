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
from topiarist.evolution.pareto import crowding, dominates, hypervolume, ranks
from topiarist.evolution.variation import (
    Bits,
    Density,
    Floats,
    Integers,
    Packed,
    check_density,
    cross_neighbours,
    keys_of,
    packed,
    random_bits,
    tails,
    unpacked,
)
from topiarist.settings import Settings

ATTEMPTS = 20  # to fill a generation with unseen children; then it has fewer, and without any the search ends
MARGIN = 0.1  # of the extent of each objective: so far beyond all points lies the corner of the hypervolume
Objectives = Callable[[Bits], Floats]
OnFront = Callable[[int, Floats], None]


class FrontSettings(Settings):
    """How to search. `flip_probability` is that of each bit of a mutated individual; None flips one on average.

    `density` is the probability that a bit is set at the start; of a range, each individual draws its own.
    The search ends when for `patience` generations the front's hypervolume has not risen by more than the share
    `tolerance`. The probabilities of crossover and mutation are those of Deb et al. (2002).
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
class FrontResult:
    """The front of everything seen, in order of the first objective; of equal objectives, the first seen.

    `bits` (n, n_bits), `objectives` (n, n_objectives); `sizes` (n_generations + 1,), its number of points at the start
    and after each generation.
    """

    bits: Bits
    objectives: Floats
    sizes: Integers
    n_evaluations: int


@dataclass(frozen=True)
class _Members:
    """Packed individuals (n, n_bytes) with their objectives (n, n_objectives), ranks (n,) and crowding (n,)."""

    individuals: Packed
    objectives: Floats
    ranks: Integers
    crowding: Floats


def evolve_front(
    evaluate: Objectives,
    n_bits: int,
    generator: numpy.random.Generator,
    settings: FrontSettings | None = None,
    *,
    on_generation: OnFront | None = None,
) -> FrontResult:
    """Search the bits on the front of two or more objectives, all minimised.

    Parameters
    ----------
    evaluate
        `evaluate(bits)` returns the objectives (n, n_objectives) of individuals (n, n_bits), all unseen.
    n_bits, generator
        Length of an individual, and the source of all randomness.
    settings
        How to search. The search also ends where no unseen individual is found.
    on_generation
        `on_generation(number, objectives)` is called with the front's objectives (n, n_objectives).

    Returns
    -------
    FrontResult

    Raises
    ------
    SettingsError
        If there are no bits, or the objectives are fewer than two or not finite.

    Examples
    --------
    >>> weights = numpy.array([[-2, 1], [-3, 2], [-1, 3]])
    >>> evolve_front(lambda bits: bits @ weights, 3, numpy.random.default_rng(0)).objectives.tolist()
    [[-6.0, 6.0], [-5.0, 3.0], [-3.0, 2.0], [-2.0, 1.0], [0.0, 0.0]]
    """
    chosen = FrontSettings() if settings is None else settings
    if n_bits < 1:
        raise SettingsError(f"a search needs bits; found {n_bits}")
    seen: set[bytes] = set()
    drawn = random_bits(generator, chosen.population, n_bits, chosen.density)
    new = _unseen(packed(drawn), seen, chosen.population)
    objectives = _checked(evaluate(unpacked(new, n_bits)), len(new))
    members, (front, costs) = _ranked(new, objectives), _front_of(new, objectives)
    landmark, worst, sizes, still = costs, objectives.max(axis=0), [len(costs)], 0
    for number in range(1, chosen.generations + 1):
        new = _offspring(members, n_bits, generator, chosen, seen)
        if not len(new):
            break
        objectives = _checked(evaluate(unpacked(new, n_bits)), len(new))
        both = numpy.concatenate((members.individuals, new)), numpy.concatenate((members.objectives, objectives))
        members = _ranked(*both, chosen.population)
        front, costs = _front_of(numpy.concatenate((front, new)), numpy.concatenate((costs, objectives)))
        worst = numpy.maximum(worst, objectives.max(axis=0))
        sizes.append(len(costs))
        if on_generation is not None:
            on_generation(number, costs)
        if chosen.patience is not None:
            moved = _has_moved(costs, landmark, worst, chosen.tolerance)
            still, landmark = (0, costs) if moved else (still + 1, landmark)
            if still >= chosen.patience:
                break
    return FrontResult(unpacked(front, n_bits), costs, numpy.array(sizes, dtype=numpy.intp), len(seen))


def _ranked(individuals: Packed, objectives: Floats, most: int | None = None) -> _Members:
    """Find ranks and crowding; keep `most` of the lowest ranks and, of a rank that does not fit, the least crowded."""
    found = ranks(objectives)
    distances = crowding(objectives, found)
    kept = slice(None) if most is None else numpy.lexsort((-distances, found))[:most]
    return _Members(individuals[kept], objectives[kept], found[kept], distances[kept])


def _front_of(individuals: Packed, objectives: Floats) -> tuple[Packed, Floats]:
    """Return the front, in order of the first objective; of equal objectives, the first."""
    distinct, first = numpy.unique(objectives, axis=0, return_index=True)
    kept = ~dominates(distinct).any(axis=0)
    return individuals[first[kept]], distinct[kept]


def _offspring(
    members: _Members, n_bits: int, generator: numpy.random.Generator, chosen: FrontSettings, seen: set[bytes]
) -> Packed:
    """Make as many unseen children as there are individuals, or as many as are found in some attempts."""
    found: list[Packed] = []
    missing = chosen.population
    for _ in range(ATTEMPTS):
        found.append(_unseen(_children_of(members, n_bits, generator, chosen), seen, missing))
        missing -= len(found[-1])
        if not missing:
            break
    return numpy.concatenate(found)


def _children_of(members: _Members, n_bits: int, generator: numpy.random.Generator, chosen: FrontSettings) -> Packed:
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


def _unseen(individuals: Packed, seen: set[bytes], most: int) -> Packed:
    """Return those individuals, each once and `most` at most, that are not in `seen`, and put them there."""
    new = {key: row for row, key in enumerate(keys_of(individuals)) if key not in seen}
    keys = list(new)[:most]
    seen.update(keys)
    return individuals[[new[key] for key in keys]]


def _has_moved(front: Floats, landmark: Floats, worst: Floats, tolerance: float) -> bool:
    """Return whether a front covers more than an earlier one, within a corner a little worse than all that was seen."""
    lowest = front.min(axis=0)
    corner = worst + numpy.where(worst > lowest, MARGIN * (worst - lowest), 1.0)
    return hypervolume(front, corner) > (1 + tolerance) * hypervolume(landmark, corner)


def _checked(objectives: Floats, count: int) -> Floats:
    """Return the objectives of `count` individuals, two or more of each, all finite."""
    array = numpy.asarray(objectives, dtype=numpy.float64)
    if array.ndim != 2 or array.shape[0] != count or array.shape[1] < 2:
        raise SettingsError(f"evaluate must give two or more objectives for {count} individuals; found {array.shape}")
    if not numpy.isfinite(array).all():
        raise SettingsError(f"objectives must be finite; found {array[~numpy.isfinite(array)][0]}")
    return array
