"""Genetic pruning as published: one bit per unit, evolved until what is left answers best for its size.

After Tanovic (Comparison of distinctiveness pruning and genetic algorithms for the reduction of a fully trained neural
network). A population of 100, 50 generations, tournaments of 3, a hall of fame of 5, fitness on the training samples,
no refit.
"""

from collections.abc import Sequence
from typing import ClassVar, Literal

import numpy
from pydantic import Field

from topiarist.evolution import GeneticSettings
from topiarist.methods.genetic.genetic import search_fittest, small_hall_of_fame
from topiarist.methods.genetic.search import problem_for
from topiarist.methods.job import Request
from topiarist.methods.method import Method, Proposal, Traits


class PublishedGenetic(Method):
    """The fitness of a subset of units is accuracy in per cent minus a penalty for its size.

    `relative`: λ times the share of the units that is left (equation 5); `absolute`: λ times their number (equation 6).
    `elite` and `start` are readings: the paper's words allow for others. A budget's limits are kept.
    """

    name: ClassVar[str] = "published-genetic"
    traits: ClassVar[Traits] = Traits(
        summary="Search the fittest subset of units, as published.", in_rightsizing=False, all_samples=True
    )

    penalty: float = Field(default=0.0, ge=0, description="λ: what size costs beside accuracy.")
    fitness: Literal["relative", "absolute"] = Field(
        default="relative", description="Accuracy minus λ times the share of units, or their number."
    )
    population: int = Field(default=100, ge=2, description="Individuals of a generation.")
    generations: int = Field(default=50, ge=1, description="Number of generations.")
    elite: Literal["inside", "beside"] = Field(
        default="inside", description="Whether the hall of fame is inside the population or beside it."
    )
    start: float = Field(default=0.5, gt=0, le=1, description="Probability that a bit is set at the start.")
    spaces: tuple[str, ...] | None = Field(default=None, description="Cut only these spaces of units, such as hidden0.")

    def propose(self, request: Request) -> Proposal:
        """Search the fittest subset of units."""
        return self.propose_many([request])[0]

    def propose_many(self, requests: Sequence[Request]) -> list[Proposal]:
        """Search for several networks with as many units each, such as those of folds, as one computation."""
        problems = [problem_for(each, self.spaces, judged_on="training", all_samples=True) for each in requests]
        settings = GeneticSettings(
            population=self.population,
            generations=self.generations,
            hall_of_fame=small_hall_of_fame(self.population),
            elite=self.elite,
            density=self.start,
        )
        proposals = []
        for problem, found in zip(
            problems, search_fittest(problems, self.fitness, self.penalty, settings), strict=True
        ):
            bits = found.evolved.bits
            if found.evolved.fitness == -numpy.inf:
                proposals.append(Proposal((), ("all units stay: no subset was found that leaves units in each space",)))
                continue
            problem.refuse_above_limits(bits)
            proposals.append(Proposal(problem.removal(bits, refit=False), (found.reason(problem),)))
        return proposals
