"""A genetic algorithm over bit strings, for several problems at once; all steps are operations on whole arrays.

Tournaments, one-point crossover of neighbours, bit flips, and a hall of fame that stays in the population: the
algorithm that is usually put together with DEAP (Fortin et al., 2012). Departure: no individual is evaluated twice.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Literal

import numpy
from pydantic import Field, model_validator

from topiarist.errors import SettingsError
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

Evaluate = Callable[[Integers, Bits], Floats]
OnGeneration = Callable[[int, Floats], None]
_Record = tuple[Floats, Packed, Floats]  # of a generation: fitness, hall of fame, and its fitness


class GeneticSettings(Settings):
    """How to search. Each generation has the hall of fame and, for the rest, children of tournament winners.

    The defaults are those of Tanovic's paper (docs/methods/genetic.md). With `elite="beside"` the hall of fame is kept
    beside the population; the result is then the best of the last population, as DEAP's plain algorithm leaves it.
    `density` is the probability that a bit is set at the start; of a range, each individual draws its own.
    `patience` is the number of generations without a better fitness after which a problem's search ends.
    """

    population: int = Field(default=100, ge=2)
    generations: int = Field(default=50, ge=0)
    tournament: int = Field(default=3, ge=2)
    hall_of_fame: int = Field(default=5, ge=1)
    crossover_probability: float = Field(default=0.8, ge=0, le=1)
    mutation_probability: float = Field(default=0.2, ge=0, le=1)
    flip_probability: float = Field(default=0.1, ge=0, le=1)
    elite: Literal["inside", "beside"] = "inside"
    density: Density = 0.5
    patience: int | None = Field(default=None, ge=1)

    @model_validator(mode="after")
    def _what_goes_together(self) -> "GeneticSettings":
        if self.hall_of_fame >= self.population:
            raise ValueError(f"hall_of_fame must be below population, {self.population}; found {self.hall_of_fame}")
        check_density(self.density)
        return self


@dataclass(frozen=True)
class Evolved:
    """The result of the search for one problem.

    `hall_of_fame` (n, n_bits) holds the best individuals, each once, best first; `hall_of_fame_fitness` (n,) theirs.
    `best`, `mean` and `size` have a value for the start and one for each generation: best fitness so far, mean of the
    fitnesses above −∞ in the population, number of bits set in the best individual.
    """

    bits: Bits
    fitness: float
    hall_of_fame: Bits
    hall_of_fame_fitness: Floats
    best: Floats
    mean: Floats
    size: Integers
    n_evaluations: int

    @property
    def n_generations(self) -> int:
        """Return how many generations followed the start."""
        return len(self.best) - 1


def evolve(
    evaluate: Evaluate,
    n_bits: int,
    generators: Sequence[numpy.random.Generator],
    settings: GeneticSettings | None = None,
    *,
    on_generation: OnGeneration | None = None,
) -> list[Evolved]:
    """Search the bits of highest fitness for several problems at once; none depends on the others.

    Parameters
    ----------
    evaluate
        `evaluate(problems, bits)` returns the fitness (n,) of individuals (n, n_bits), each of the problem with the
        number in `problems` (n,), in ascending order; −∞ is the worst there is. All unseen individuals of a generation
        come in one call.
    n_bits, generators
        Length of an individual, and one generator for each problem.
    settings
        How to search.
    on_generation
        `on_generation(number, best)` is called with the best fitness (n_problems,) so far.

    Returns
    -------
    list of Evolved
        One for each problem.

    Raises
    ------
    SettingsError
        If there are no bits or no generators, or a fitness is not a number below ∞.

    Examples
    --------
    >>> found = evolve(lambda problems, bits: bits.sum(axis=1), 8, [numpy.random.default_rng(0)])
    >>> found[0].fitness, found[0].bits.all()
    (8.0, np.True_)
    """
    chosen = GeneticSettings() if settings is None else settings
    if n_bits < 1 or not generators:
        raise SettingsError(f"a search needs bits and a generator; found {n_bits} and {len(generators)}")
    populations = Populations(evaluate, n_bits, generators, chosen)
    records: list[list[_Record]] = [[] for _ in generators]
    last: dict[int, Packed] = {}
    for number in range(chosen.generations + 1):
        if number:
            populations.advance()
        running = populations.running.tolist()
        last |= zip(running, populations.members, strict=True)
        state = zip(populations.fitness, populations.famous, populations.famous_fitness, strict=True)
        for problem, record in zip(running, state, strict=True):
            records[problem].append(record)
        if on_generation is not None:
            on_generation(number, numpy.array([of_problem[-1][2][0] for of_problem in records]))
        if chosen.patience is not None and number >= chosen.patience:
            ago = -1 - chosen.patience
            improved = [records[problem][-1][2][0] > records[problem][ago][2][0] for problem in running]
            populations.keep(numpy.flatnonzero(improved).tolist())
            if not len(populations.running):
                break
    beside = chosen.elite == "beside"
    return [
        _result(of_problem, last[problem] if beside else None, n_bits, len(populations.seen[problem]))
        for problem, of_problem in enumerate(records)
    ]


def _result(records: list[_Record], last: Packed | None, n_bits: int, n_evaluations: int) -> Evolved:
    """Return what was found for a problem: the best there was, or that of the `last` population."""
    fitness, famous, famous_fitness = records[-1]
    keys = keys_of(famous)
    first = [row for row, key in enumerate(keys) if key not in keys[:row]]
    best, highest = (famous[0], famous_fitness[0]) if last is None else (last[fitness.argmax()], fitness.max())
    populations = numpy.stack([fitness for fitness, _, _ in records])
    finite = populations > -numpy.inf
    counts = finite.sum(axis=1)
    total = numpy.where(finite, populations, 0.0).sum(axis=1)
    return Evolved(
        bits=unpacked(best, n_bits),
        fitness=float(highest),
        hall_of_fame=unpacked(famous[first], n_bits),
        hall_of_fame_fitness=famous_fitness[first],
        best=numpy.array([float(fitness[0]) for _, _, fitness in records]),
        mean=numpy.where(counts > 0, total / numpy.maximum(counts, 1), -numpy.inf),
        size=unpacked(numpy.stack([best[0] for _, best, _ in records]), n_bits).sum(axis=1),
        n_evaluations=n_evaluations,
    )


class Populations:
    """Populations of the problems that are still searched, as one array.

    `running` (n_running,) are the numbers of the problems; `members` (n_running, n_individuals, n_bytes) and `fitness`
    (n_running, n_individuals) are their populations; `famous` (n_running, n_famous, n_bytes) and `famous_fitness`
    (n_running, n_famous) the best of each problem so far, best first. None of these arrays is changed in place.
    """

    def __init__(
        self, evaluate: Evaluate, n_bits: int, generators: Sequence[numpy.random.Generator], settings: GeneticSettings
    ) -> None:
        self.evaluate, self.n_bits, self.tails, self.settings = evaluate, n_bits, tails(n_bits), settings
        self.generators = list(generators)
        self.running = numpy.arange(len(generators))
        self.seen: list[dict[bytes, float]] = [{} for _ in generators]
        drawn = [random_bits(one, settings.population, n_bits, settings.density) for one in generators]
        self.members = packed(numpy.stack(drawn))
        self.fitness, unseen = self._evaluated(self.members)
        order = numpy.argsort(-unseen, axis=1, kind="stable")[:, : settings.hall_of_fame]
        rows = self.running[:, None]
        self.famous, self.famous_fitness = self.members[rows, order], self.fitness[rows, order]

    def advance(self) -> None:
        """Replace each population by its hall of fame, unless that stays beside, and children of tournament winners.

        A child that was seen before was admitted to the hall of fame then, or was not good enough; the hall only gets
        better, so that those seen for the first time are enough to look at.
        """
        beside, n_famous = self.settings.elite == "beside", self.famous.shape[1]
        children = self.children(self.members.shape[1] - (0 if beside else n_famous))
        fitness, unseen = self._evaluated(children)
        members = numpy.concatenate((self.famous, children), axis=1)
        scores = numpy.concatenate((self.famous_fitness, fitness), axis=1)
        self.members, self.fitness = (children, fitness) if beside else (members, scores)
        if (unseen.max(axis=1) > self.famous_fitness[:, -1]).any():
            merged = numpy.concatenate((self.famous_fitness, unseen), axis=1)
            order = numpy.argsort(-merged, axis=1, kind="stable")[:, :n_famous]
            rows = numpy.arange(len(order))[:, None]
            self.famous, self.famous_fitness = members[rows, order], scores[rows, order]

    def children(self, count: int) -> Packed:
        """Select, cross and mutate: packed bits (n_running, count, n_bytes)."""
        n_running, n_individuals, n_bytes = self.members.shape
        entering = count * self.settings.tournament
        crossing = entering + count // 2
        numbers = numpy.empty((n_running, crossing + count))
        for generator, row in zip(self.generators, numbers, strict=True):
            generator.random(out=row)
        entrants = (numbers[:, :entering] * n_individuals).astype(numpy.intp)
        entrants += numpy.arange(0, n_running * n_individuals, n_individuals)[:, None]
        winners = self.winners(entrants.reshape(-1, self.settings.tournament))
        children: Packed = self.members.reshape(-1, n_bytes).take(winners, axis=0).reshape(n_running, count, n_bytes)
        cross_neighbours(children, numbers[:, entering:crossing], self.settings.crossover_probability, self.tails)
        mutated = numbers[:, crossing:] < self.settings.mutation_probability
        flips = numpy.empty((numpy.count_nonzero(mutated), self.n_bits), dtype=numpy.float32)
        ends = numpy.cumsum(mutated.sum(axis=1)).tolist()
        for generator, start, end in zip(self.generators, [0, *ends], ends, strict=False):
            generator.random(out=flips[start:end], dtype=numpy.float32)
        children.reshape(-1, n_bytes)[numpy.flatnonzero(mutated)] ^= packed(flips < self.settings.flip_probability)
        return children

    def winners(self, entrants: Integers) -> Integers:
        """Return the fittest entrant of each tournament (n_tournaments, n_entrants), numbered through all problems."""
        best = self.fitness.take(entrants).argmax(axis=1)
        winners: Integers = entrants[numpy.arange(len(entrants)), best]
        return winners

    def _evaluated(self, individuals: Packed) -> tuple[Floats, Floats]:
        """Return the fitness (n_running, n_individuals) of individuals; and again, −∞ where one was seen before."""
        shape = individuals.shape[:2]
        known = [self.seen[problem] for problem in self.running.tolist()]
        keys = [keys_of(of_problem) for of_problem in individuals]
        new = [
            {key: row for row, key in enumerate(of_problem, number * shape[1]) if key not in seen}
            for number, (of_problem, seen) in enumerate(zip(keys, known, strict=True))
        ]
        rows = numpy.array(list(chain.from_iterable(of_problem.values() for of_problem in new)), dtype=numpy.intp)
        unseen = numpy.full(shape, -numpy.inf)
        if len(rows):
            bits = unpacked(individuals.reshape(-1, individuals.shape[2])[rows], self.n_bits)
            values = _checked(self.evaluate(self.running[rows // shape[1]], bits), len(rows))
            unseen.reshape(-1)[rows] = values
            remaining = iter(values.tolist())
            for seen, of_problem in zip(known, new, strict=True):
                seen.update(zip(of_problem, remaining, strict=False))
        fitness = [list(map(seen.__getitem__, of_problem)) for seen, of_problem in zip(known, keys, strict=True)]
        return numpy.array(fitness), unseen

    def keep(self, rows: list[int]) -> None:
        """Continue with those of the running problems only that stand at `rows`."""
        if len(rows) == len(self.running):
            return
        self.generators = [self.generators[row] for row in rows]
        self.running, self.members, self.fitness = self.running[rows], self.members[rows], self.fitness[rows]
        self.famous, self.famous_fitness = self.famous[rows], self.famous_fitness[rows]


def _checked(fitness: Floats, count: int) -> Floats:
    """Return the fitness of `count` individuals, all of them numbers below ∞."""
    array = numpy.asarray(fitness, dtype=numpy.float64)
    if array.shape != (count,):
        raise SettingsError(f"evaluate must give {count} values for {count} individuals; found shape {array.shape}")
    if not array.max() < numpy.inf:
        raise SettingsError(f"fitness must be below infinity; found {array[~(array < numpy.inf)][0]}")
    return array
