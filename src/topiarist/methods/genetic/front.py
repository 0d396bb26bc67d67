"""The whole front of accuracy against size in one run: NSGA-II (Deb et al., 2002) over the units of a network."""

from dataclasses import dataclass
from typing import ClassVar

import numpy
from pydantic import Field

from topiarist.evolution import FrontSettings, evolve_front, knee, non_dominated
from topiarist.methods.genetic.genetic import ALL_SIZES
from topiarist.methods.genetic.readout import Bits, Floats
from topiarist.methods.genetic.search import Evaluator, SearchProblem, SearchSettings, evaluator_for, problem_for
from topiarist.methods.job import Job, Limits, Request
from topiarist.methods.method import Proposal, Resizing, Traits
from topiarist.randomness import array_generator
from topiarist.surgery import Edit
from topiarist.training import TrainConfig

OUT_OF_REACH = 1e6  # error in per cent and parameters of a subset that leaves a space without units


@dataclass(frozen=True)
class FrontPoint:
    """A subset of units that no other beats: accuracy in per cent on the samples judged, parameters, units by space."""

    accuracy: float
    parameters: int
    units: dict[str, int]
    bits: Bits


class GeneticFront(SearchSettings):
    """Search all sizes at once; of the front, `resize` takes the most accurate network within its budget, or the knee.

    The search ends when the front has not moved for `patience` generations.
    """

    name: ClassVar[str] = "genetic-front"
    traits: ClassVar[Traits] = Traits(
        summary="Search the front of accuracy against size (NSGA-II) over subsets of units.",
        looks_at_validation=True,
        relative_cost=1.5,
        marker="triangle",
    )

    refitted: bool = Field(
        default=False, description="Score each subset after a least-squares refit of the last layer, if it reads them."
    )
    generations: int = Field(default=100, ge=1, description="Number of generations at most.")
    patience: int | None = Field(
        default=10, ge=1, description="Stop after this many generations in which the front did not move."
    )

    def front(self, request: Request) -> list[FrontPoint]:
        """Return the front, from the smallest network to the most accurate; searched once, whatever the limits."""
        problem = self._problem(request)
        key = f"front {self.model_dump_json()}"
        return request.remember(key, lambda: self._points(problem, request.job.seed))

    def edits(self, request: Request, point: FrontPoint) -> tuple[Edit, ...]:
        """Return the edits that make the network of a point, with a refit where it does no harm."""
        return self._problem(request).resolve(point.bits, None if self.refitted else point.accuracy)[0]

    def propose(self, request: Request) -> Proposal:
        """Take one network of the front."""
        problem, points = self._problem(request), self.front(request)
        within = [point for point in points if problem.excess(point.bits[None])[0] <= 0]
        if not within:
            problem.refuse_above_limits(points[0].bits)
        costs = [(-point.accuracy, point.parameters) for point in within]
        chosen = within[-1] if request.limits else within[knee(costs)]
        edits, accuracy = problem.resolve(chosen.bits, None if self.refitted else chosen.accuracy)
        reason = (
            f"of {len(points)} networks on the front, from {points[0].parameters:,} parameters and"
            f" {problem.shown(points[0].accuracy)} to {points[-1].parameters:,} and"
            f" {problem.shown(points[-1].accuracy)}, the {problem.best if request.limits else 'knee'}:"
            f" {problem.shown(accuracy)} {problem.of_samples}"
        )
        return Proposal(edits, (reason,))

    @classmethod
    def candidate(cls, job: Job, limits: Limits, training: TrainConfig) -> Resizing:
        """Search a smaller population for fewer generations: fine-tuning follows, which makes up for the rest."""
        return Resizing.within(cls(population=40, generations=30), limits)

    def _problem(self, request: Request) -> SearchProblem:
        return problem_for(request, self.spaces, judged_on=self.judged_on)

    def _points(self, problem: SearchProblem, seed: int) -> list[FrontPoint]:
        evaluator = evaluator_for([problem], refitted=self.refitted)
        settings = FrontSettings(
            population=self.population, generations=self.generations, patience=self.patience, density=ALL_SIZES
        )
        random = array_generator(seed, "genetic front")
        found = evolve_front(lambda bits: _objectives(problem, evaluator, bits), problem.bits, random, settings)
        whole = numpy.ones((1, problem.bits), dtype=bool)
        bits = numpy.concatenate([found.bits, whole])
        costs = numpy.concatenate([found.objectives, _objectives(problem, evaluator, whole)])
        kept = numpy.unique(costs, axis=0, return_index=True)[1]
        kept = kept[non_dominated(costs[kept]) & (costs[kept, 0] < OUT_OF_REACH)]
        points = [
            FrontPoint(
                accuracy=float(100 - error),
                parameters=round(parameters),
                units={name: int(some.sum()) for name, some in problem.by_space(mask)},
                bits=mask,
            )
            for mask, (error, parameters) in zip(bits[kept], costs[kept], strict=True)
        ]
        return sorted(points, key=lambda point: point.parameters)


def _objectives(problem: SearchProblem, evaluator: Evaluator, bits: Bits) -> Floats:
    """Return errors in per cent and parameters (n, 2) of subsets (n, n_bits)."""
    widths = {name: kept.sum(axis=1) for name, kept in problem.by_space(bits)}
    possible = problem.possible(bits)
    found = numpy.full((len(bits), 2), OUT_OF_REACH)
    if possible.any():
        rows = numpy.zeros(int(possible.sum()), dtype=numpy.intp)
        found[possible, 0] = 100 - evaluator.accuracy(rows, bits[possible])
        found[possible, 1] = problem.costs.parameters({name: counts[possible] for name, counts in widths.items()})
    return found
