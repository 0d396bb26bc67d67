"""Genetic pruning: one bit per unit, evolved until what is left answers best for its size.

`published.Genetic` has the search as Tanovic describes it. Ours scores on held-out samples, starts from subsets of all
sizes, stops when nothing improves, refits the winner, and keeps all units where no subset is fitter.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy
from pydantic import Field

from topiarist.errors import ModelError
from topiarist.evolution import Evolved, GeneticSettings, evolve
from topiarist.methods.genetic.readout import Bits, Floats, Integers
from topiarist.methods.genetic.search import Evaluator, SearchProblem, SearchSettings, evaluator_for, problem_for
from topiarist.methods.job import Request
from topiarist.methods.method import Proposal, Traits
from topiarist.randomness import array_generator

Fitness = Literal["relative", "absolute", "refitted"]
FAR_BELOW = -1e15  # the fitness of what is above a limit
ALL_SIZES = (0.02, 1.0)  # density of the subsets at the start: from 2 % of the units to all of them


class Genetic(SearchSettings):
    """The fitness of a subset of units is accuracy in per cent minus a penalty for its size.

    `relative`: λ times the share of the units that is left; `absolute`: λ times their number, equations 5 and 6 of the
    paper. `refitted`: λ times their number, with accuracy after a least-squares refit of the last layer; it ends at
    much the same size from any start. A budget's limits are kept.
    """

    name: ClassVar[str] = "genetic"
    traits: ClassVar[Traits] = Traits(
        summary="Search the fittest subset of units with a genetic algorithm.",
        in_rightsizing=False,
        looks_at_validation=True,
        relative_cost=1.5,
        marker="triangle",
    )

    penalty: float = Field(default=0.0, ge=0, description="λ: what size costs beside accuracy.")
    fitness: Fitness = Field(
        default="relative",
        description="Accuracy minus λ times the share of units (relative) or their number (absolute); refitted: the"
        " latter, with the last layer refitted to each subset.",
    )

    def propose(self, request: Request) -> Proposal:
        """Search the fittest subset of units."""
        return self.propose_many([request])[0]

    def propose_many(self, requests: Sequence[Request]) -> list[Proposal]:
        """Search for several networks with as many units each, such as those of folds, as one computation."""
        problems = [problem_for(request, self.spaces, judged_on=self.judged_on) for request in requests]
        settings = GeneticSettings(
            population=self.population,
            generations=self.generations,
            hall_of_fame=small_hall_of_fame(self.population),
            density=ALL_SIZES,
            patience=self.patience,
        )
        found = search_fittest(problems, self.fitness, self.penalty, settings)
        return [self._proposal(problem, fittest) for problem, fittest in zip(problems, found, strict=True)]

    def _proposal(self, problem: SearchProblem, found: "Fittest") -> Proposal:
        if found.evolved.fitness == -numpy.inf or found.uncut >= found.evolved.fitness:
            reason = f"all units stay: no subset was found that is fitter than all, {found.uncut:.2f}"
            return Proposal((), (reason,))
        bits = found.evolved.bits
        problem.refuse_above_limits(bits)
        if self.fitness == "refitted":
            return Proposal(problem.removal(bits, refit=True), (found.reason(problem),))
        return Proposal(problem.resolve(bits, found.accuracy)[0], (found.reason(problem),))


@dataclass(frozen=True)
class Fittest:
    """The fittest subset of a network's units, its accuracy in per cent, and the fitness of all units together."""

    evolved: Evolved
    accuracy: float
    uncut: float

    def reason(self, problem: SearchProblem) -> str:
        """Return what was found in one line."""
        found = self.evolved
        return (
            f"fitness {found.fitness:.2f} with {int(found.bits.sum())} of {problem.bits} units after"
            f" {found.n_generations} generations and {found.n_evaluations:,} evaluations, judged on {problem.samples}"
        )


def small_hall_of_fame(population: int) -> int:
    """Return the paper's hall of fame of 5, or what a smaller population has room for."""
    return min(GeneticSettings().hall_of_fame, population - 1)


def search_fittest(
    problems: Sequence[SearchProblem], fitness: Fitness, penalty: float, settings: GeneticSettings
) -> list[Fittest]:
    """Evolve subsets of the units of several networks as one computation."""
    bits = {problem.bits for problem in problems}
    if len(bits) > 1:
        raise ModelError(f"networks that are searched together must have as many units each; found {sorted(bits)}")
    search = FitnessFunction(problems, evaluator_for(problems, refitted=fitness == "refitted"), fitness, penalty)
    generators = [array_generator(problem.request.job.seed, "genetic") for problem in problems]
    found = evolve(search, problems[0].bits, generators, settings)
    uncut = search(numpy.arange(len(problems)), numpy.ones((len(problems), problems[0].bits), dtype=bool)).tolist()
    return [
        Fittest(evolved, evolved.fitness + float(search.price(evolved.bits[None])[0]), whole)
        for evolved, whole in zip(found, uncut, strict=True)
    ]


@dataclass(frozen=True)
class FitnessFunction:
    """The fitness of subsets of units, as `evolve` asks for it."""

    problems: Sequence[SearchProblem]
    evaluator: Evaluator
    fitness: Fitness
    penalty: float

    def __call__(self, networks: Integers, masks: Bits) -> Floats:
        """Return the fitness (n,) of individuals (n, n_bits) of networks with numbers (n,), ascending."""
        possible, over = numpy.zeros(len(masks), dtype=bool), numpy.zeros(len(masks))
        for number in numpy.unique(networks):
            rows = networks == number
            possible[rows] = self.problems[number].possible(masks[rows])
            over[rows] = self.problems[number].excess(masks[rows])
        fitness = numpy.where(possible, FAR_BELOW * (1 + over), -numpy.inf)
        inside = possible & (over <= 0)
        if inside.any():
            accuracy = self.evaluator.accuracy(networks[inside], masks[inside])
            fitness[inside] = accuracy - self.price(masks[inside])
        return fitness

    def price(self, masks: Bits) -> Floats:
        """Return what the size of subsets (n, n_bits) costs."""
        sizes = masks.sum(axis=1)
        cost: Floats = self.penalty * (sizes / masks.shape[1] if self.fitness == "relative" else sizes)
        return cost
