"""A genetic algorithm over bit strings, for several problems at once; all steps are operations on whole arrays.

Tournaments, one-point crossover of neighbours, bit flips, and a hall of fame that stays in the population: the
algorithm that is usually put together with DEAP (Fortin et al., 2012). Departure: no individual is evaluated twice.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy
from pydantic import Field, model_validator

from topiarist.errors import SettingsError
from topiarist.evolution.populations import Evaluate, Populations
from topiarist.evolution.variation import Bits, Density, Floats, Integers, Packed, keys_of, unpacked
from topiarist.settings import Settings

OnGeneration = Callable[[int, Floats], None]
Record = tuple[Floats, Packed, Floats]


class GeneticSettings(Settings):
    """How to search. Each generation has the hall of fame and, for the rest, children of tournament winners.

    `elite` says where the hall of fame is: inside the population, or beside it; the result is then the best of the last
    population, as DEAP's plain algorithm leaves it.
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
    """What the search for one problem found.

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
        """Give how many generations followed the start."""
        return len(self.best) - 1


def evolve(
    evaluate: Evaluate,
    n_bits: int,
    generators: Sequence[numpy.random.Generator],
    settings: GeneticSettings | None = None,
    *,
    on_generation: OnGeneration | None = None,
) -> list[Evolved]:
    """Search the bits of highest fitness for as many problems as there are generators.

    `evaluate(problems, bits)` gives the fitness (n,) of individuals (n, n_bits), each of the problem with the number
    in `problems` (n,), in ascending order; −∞ is the worst there is. All unseen individuals of a generation come in
    one call. A problem's result does not depend on the others. `on_generation(number, best)` gets the best fitness
    (n_problems,) so far.
    """
    chosen = GeneticSettings() if settings is None else settings
    if n_bits < 1 or not generators:
        raise SettingsError(f"a search needs bits and a generator; found {n_bits} and {len(generators)}")
    populations = Populations(evaluate, n_bits, generators, chosen.population, chosen.hall_of_fame, chosen.density)
    records: list[list[Record]] = [[] for _ in generators]
    last: dict[int, tuple[Packed, float]] = {}
    for number in range(chosen.generations + 1):
        if number:
            populations.advance(
                chosen.tournament,
                chosen.crossover_probability,
                chosen.mutation_probability,
                chosen.flip_probability,
                beside=chosen.elite == "beside",
            )
        running = populations.running
        state = zip(populations.fitness, populations.famous, populations.famous_fitness, strict=True)
        for problem, record in zip(running.tolist(), state, strict=True):
            records[problem].append(record)
        last |= zip(running.tolist(), populations.best_members(), strict=True)
        if on_generation is not None:
            on_generation(number, numpy.array([of_problem[-1][2][0] for of_problem in records]))
        if chosen.patience is not None:
            populations.keep([row for row in range(len(running)) if improved(records[running[row]], chosen.patience)])
            if not len(populations.running):
                break
    counts = [len(seen) for seen in populations.seen]
    found = [result(of_problem, n_bits, count) for of_problem, count in zip(records, counts, strict=True)]
    if chosen.elite == "inside":
        return found
    return [
        replace(of_problem, bits=unpacked(last[number][0], n_bits), fitness=last[number][1])
        for number, of_problem in enumerate(found)
    ]


def improved(records: list[Record], patience: int) -> bool:
    """Say whether the best fitness is above that of `patience` generations ago."""
    return len(records) <= patience or bool(records[-1][2][0] > records[-1 - patience][2][0])


def result(records: list[Record], n_bits: int, n_evaluations: int) -> Evolved:
    """Put together what was found for a problem: of each generation, fitness, hall of fame and its fitness."""
    _, famous, famous_fitness = records[-1]
    keys = keys_of(famous)
    first = [row for row, key in enumerate(keys) if key not in keys[:row]]
    bits = unpacked(famous[first], n_bits)
    populations = numpy.stack([fitness for fitness, _, _ in records])
    finite = populations > -numpy.inf
    counts = finite.sum(axis=1)
    total = numpy.where(finite, populations, 0.0).sum(axis=1)
    return Evolved(
        bits=bits[0],
        fitness=float(famous_fitness[0]),
        hall_of_fame=bits,
        hall_of_fame_fitness=famous_fitness[first],
        best=numpy.array([float(fitness[0]) for _, _, fitness in records]),
        mean=numpy.where(counts > 0, total / numpy.maximum(counts, 1), -numpy.inf),
        size=unpacked(numpy.stack([best[0] for _, best, _ in records]), n_bits).sum(axis=1),
        n_evaluations=n_evaluations,
    )


def check_density(density: Density) -> None:
    """Refuse what is neither a probability nor a range of them."""
    low, high = density if isinstance(density, tuple) else (density, density)
    if not 0 <= low <= high <= 1:
        raise ValueError(f"density must be a probability, or two in ascending order; found {density}")
