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
from topiarist.methods.judging import Evaluator, Subject, evaluator_for, judged_on_training, removal, subject_of
from topiarist.methods.readout import Bits, Floats, Integers
from topiarist.methods.task import Proposal, Task
from topiarist.randomness import array_generator
from topiarist.settings import Settings

Fitness = Literal["relative", "absolute", "refitted"]
PUBLISHED = GeneticSettings()
FAR_BELOW = -1000.0


class Genetic(Settings):
    """The fitness of a subset of units is accuracy in per cent minus a penalty for its size.

    `relative`: λ times the share of the units that is left; `absolute`: λ times their number, both after equations 5
    and 6 of the paper. `refitted`: λ times their number, with accuracy after a least-squares refit of the last layer;
    it ends at the same size from any start. `penalty` is λ. `judged_on` are the training samples or those held out for
    validation; published, always the former. A budget's limits are kept.
    """

    penalty: float = Field(default=0.0, ge=0)
    fitness: Fitness = "relative"
    published: bool = False
    judged_on: Literal["held-out", "training"] = "held-out"
    population: int = Field(default=100, ge=2)
    generations: int = Field(default=50, ge=1)
    patience: int | None = Field(default=15, ge=1)
    spaces: tuple[str, ...] | None = None

    @model_validator(mode="after")
    def _what_goes_together(self) -> Self:
        if self.published and self.fitness == "refitted":
            raise ValueError("the fitness 'refitted' is not the paper's: leave published out")
        if self.published and "judged_on" in self.model_fields_set and self.judged_on != "training":
            raise ValueError("the published method is judged on the training samples")
        return self

    @property
    def rounds(self) -> int:
        """One search."""
        return 1

    @property
    def stops_itself(self) -> bool:
        """A budget's limits are part of the search."""
        return False

    def propose(self, task: Task) -> Proposal:
        """Search the fittest subset of units."""
        return self.propose_many([task])[0]

    def propose_many(self, tasks: Sequence[Task]) -> list[Proposal]:
        """Search for several networks with as many units each, such as those of folds, as one computation."""
        judged_on = "training" if self.published else self.judged_on
        subjects = [subject_of(task, self.spaces, training=judged_on_training(task, judged_on)) for task in tasks]
        bits = {subject.bits for subject in subjects}
        if len(bits) > 1:
            raise ModelError(f"networks that are searched together must have as many units each; found {sorted(bits)}")
        evaluator = evaluator_for(subjects, refitted=self.fitness == "refitted")
        search = Search(subjects, evaluator, self.fitness, self.penalty)
        generators = [array_generator(task.seed, "genetic") for task in tasks]
        found = evolve(search, subjects[0].bits, generators, self._settings())
        whole = search(numpy.arange(len(tasks)), numpy.ones((len(tasks), subjects[0].bits), dtype=bool))
        refits = self._refits(subjects, evaluator, numpy.stack([result.bits for result in found]))
        return [
            self._proposal(subject, result, float(uncut), bool(refit))
            for subject, result, uncut, refit in zip(subjects, found, whole, refits, strict=True)
        ]

    def _refits(self, subjects: Sequence[Subject], evaluator: Evaluator, winners: Bits) -> Bits:
        """Say for each winner whether a refit does it no harm."""
        networks = numpy.arange(len(subjects))
        if self.published:
            return numpy.zeros(len(subjects), dtype=bool)
        if self.fitness == "refitted" or not all(subject.reader() for subject in subjects):
            return numpy.ones(len(subjects), dtype=bool)
        refitted = evaluator_for(subjects, refitted=True).accuracy(networks, winners)
        better: Bits = refitted >= evaluator.accuracy(networks, winners)
        return better

    def _settings(self) -> GeneticSettings:
        sizes: dict[str, Any] = {"population": self.population, "generations": self.generations}
        sizes["hall_of_fame"] = min(PUBLISHED.hall_of_fame, self.population - 1)
        if self.published:
            return GeneticSettings(**sizes)
        return GeneticSettings(**sizes, density=(0.02, 1.0), patience=self.patience)

    def _proposal(self, subject: Subject, found: Evolved, uncut: float, refit: bool) -> Proposal:
        if not self.published and uncut >= found.fitness:
            return Proposal((), (f"all units stay: no subset was found that is fitter than all, {uncut:.2f}",))
        if not numpy.isfinite(found.fitness) or found.fitness <= FAR_BELOW:
            raise ModelError("the search found no network within the limits: more generations, or a wider limit, may")
        reason = (
            f"fitness {found.fitness:.2f} with {int(found.bits.sum())} of {subject.bits} units after"
            f" {found.n_generations} generations and {found.n_evaluations:,} evaluations"
        )
        return Proposal(removal(subject, found.bits, refit=refit), (reason,))


@dataclass(frozen=True)
class Search:
    """The fitness of subsets of units, as `evolve` asks for it."""

    subjects: Sequence[Subject]
    evaluator: Evaluator
    fitness: Fitness
    penalty: float

    def __call__(self, networks: Integers, masks: Bits) -> Floats:
        """Give the fitness (n,) of individuals (n, n_bits) of networks with numbers (n,), ascending."""
        possible = self._possible(networks, masks)
        fitness = numpy.full(len(masks), -numpy.inf)
        fitness[possible] = self._of_possible(networks[possible], masks[possible])
        return fitness

    def _of_possible(self, networks: Integers, masks: Bits) -> Floats:
        if not len(masks):
            return numpy.empty(0)
        sizes = masks.sum(axis=1)
        cost = sizes / masks.shape[1] if self.fitness == "relative" else sizes
        over = numpy.zeros(len(masks))
        for number in numpy.unique(networks):
            rows = networks == number
            over[rows] = self.subjects[number].excess(masks[rows])
        inside = over <= 0
        fitness = FAR_BELOW * (1 + over)
        if inside.any():
            accuracy = self.evaluator.accuracy(networks[inside], masks[inside])
            fitness[inside] = accuracy - self.penalty * cost[inside]
        return fitness

    def _possible(self, networks: Integers, masks: Bits) -> Bits:
        """Say which individuals leave a unit in each space."""
        subject = self.subjects[0]
        kept = [bits.any(axis=1) for _, bits in subject.by_space(masks)]
        possible: Bits = numpy.logical_and.reduce(kept)
        return possible
