"""Genetic pruning: one bit a unit, evolved until what is left answers best for its size.

After Tanovic (Comparison of distinctiveness pruning and genetic algorithms for the reduction of a fully trained neural
network); `published` is that to the letter: a population of 100, 50 generations, tournaments of 3, a hall of fame of 5,
fitness on the training part, no refit.

Ours scores on held-out samples, starts from subsets of all sizes, stops when nothing improves, refits the winner, and
keeps all units where no subset is fitter.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, Self

import numpy
from pydantic import Field, model_validator

from topiarist.errors import ModelError
from topiarist.evolution import Evolved, GeneticSettings, evolve
from topiarist.methods.judging import (
    Evaluator,
    SearchSettings,
    Subject,
    evaluator_for,
    judged_on_training,
    refuse_above_limits,
    removal,
    settle,
    subject_of,
)
from topiarist.methods.readout import Bits, Floats, Integers
from topiarist.methods.task import Proposal, Task
from topiarist.randomness import array_generator

Fitness = Literal["relative", "absolute", "refitted"]
PUBLISHED = GeneticSettings()
FAR_BELOW = -1e15  # the fitness of what is above a limit


class Genetic(SearchSettings):
    """The fitness of a subset of units is accuracy in per cent minus a penalty for its size.

    `relative`: λ times the share of the units that is left; `absolute`: λ times their number, both after equations 5
    and 6 of the paper. `refitted`: λ times their number, with accuracy after a least-squares refit of the last layer;
    it ends at much the same size from any start. `penalty` is λ. Published, it is judged on the training samples;
    `elite` says whether the hall of fame is inside the population or beside it, and `start` the probability of a bit at
    the beginning, 0.5 unless given: the paper's words allow for others. A budget's limits are kept.
    """

    penalty: float = Field(default=0.0, ge=0)
    fitness: Fitness = "relative"
    published: bool = False
    elite: Literal["inside", "beside"] = "inside"
    start: float | None = Field(default=None, gt=0, le=1)

    @model_validator(mode="after")
    def _what_goes_together(self) -> Self:
        if self.published and self.fitness == "refitted":
            raise ValueError("the fitness 'refitted' is not the paper's: leave published out")
        if self.published and "judged_on" in self.model_fields_set and self.judged_on != "training":
            raise ValueError("the published method is judged on the training samples")
        if self.published and "patience" in self.model_fields_set and self.patience is not None:
            raise ValueError("the published method runs all its generations: leave patience out")
        if not self.published and (self.elite != "inside" or self.start is not None):
            raise ValueError("elite and start are readings of the published method: give published too")
        return self

    def propose(self, task: Task) -> Proposal:
        """Search the fittest subset of units."""
        return self.propose_many([task])[0]

    def propose_many(self, tasks: Sequence[Task]) -> list[Proposal]:
        """Search for several networks with as many units each, such as those of folds, as one computation."""
        judged_on = "training" if self.published else self.judged_on
        subjects = [
            subject_of(task, self.spaces, training=judged_on_training(task, judged_on), all_samples=self.published)
            for task in tasks
        ]
        bits = {subject.bits for subject in subjects}
        if len(bits) > 1:
            raise ModelError(f"networks that are searched together must have as many units each; found {sorted(bits)}")
        evaluator = evaluator_for(subjects, refitted=self.fitness == "refitted")
        search = Search(subjects, evaluator, self.fitness, self.penalty)
        generators = [array_generator(task.seed, "genetic") for task in tasks]
        found = evolve(search, subjects[0].bits, generators, self._settings())
        uncut = search(numpy.arange(len(tasks)), numpy.ones((len(tasks), subjects[0].bits), dtype=bool)).tolist()
        return [
            self._proposal(task, subject, result, whole, search)
            for task, subject, result, whole in zip(tasks, subjects, found, uncut, strict=True)
        ]

    def _settings(self) -> GeneticSettings:
        sizes: dict[str, Any] = {"population": self.population, "generations": self.generations}
        sizes["hall_of_fame"] = min(PUBLISHED.hall_of_fame, self.population - 1)
        if self.published:
            start = PUBLISHED.density if self.start is None else self.start
            return GeneticSettings(**sizes, elite=self.elite, density=start)
        return GeneticSettings(**sizes, density=(0.02, 1.0), patience=self.patience)

    def _proposal(self, task: Task, subject: Subject, found: Evolved, uncut: float, search: "Search") -> Proposal:
        if found.fitness == -numpy.inf or (not self.published and uncut >= found.fitness):
            return Proposal((), (f"all units stay: no subset was found that is fitter than all, {uncut:.2f}",))
        refuse_above_limits(subject, found.bits)
        reason = (
            f"fitness {found.fitness:.2f} with {int(found.bits.sum())} of {subject.bits} units after"
            f" {found.n_generations} generations and {found.n_evaluations:,} evaluations, judged on {subject.samples}"
        )
        if self.published or self.fitness == "refitted":
            return Proposal(removal(subject, found.bits, refit=not self.published), (reason,))
        accuracy = found.fitness + float(search.price(found.bits[None])[0])
        return Proposal(settle(task, subject, found.bits, accuracy)[0], (reason,))


@dataclass(frozen=True)
class Search:
    """The fitness of subsets of units, as `evolve` asks for it."""

    subjects: Sequence[Subject]
    evaluator: Evaluator
    fitness: Fitness
    penalty: float

    def __call__(self, networks: Integers, masks: Bits) -> Floats:
        """Give the fitness (n,) of individuals (n, n_bits) of networks with numbers (n,), ascending."""
        possible = numpy.zeros(len(masks), dtype=bool)
        for number in numpy.unique(networks):
            rows = networks == number
            possible[rows] = self.subjects[number].possible(masks[rows])
        fitness = numpy.full(len(masks), -numpy.inf)
        fitness[possible] = self._of_possible(networks[possible], masks[possible])
        return fitness

    def _of_possible(self, networks: Integers, masks: Bits) -> Floats:
        if not len(masks):
            return numpy.empty(0)
        over = numpy.zeros(len(masks))
        for number in numpy.unique(networks):
            rows = networks == number
            over[rows] = self.subjects[number].excess(masks[rows])
        inside = over <= 0
        fitness = FAR_BELOW * (1 + over)
        if inside.any():
            accuracy = self.evaluator.accuracy(networks[inside], masks[inside])
            fitness[inside] = accuracy - self.price(masks[inside])
        return fitness

    def price(self, masks: Bits) -> Floats:
        """Give what the size of subsets (n, n_bits) costs."""
        sizes = masks.sum(axis=1)
        cost: Floats = self.penalty * (sizes / masks.shape[1] if self.fitness == "relative" else sizes)
        return cost
