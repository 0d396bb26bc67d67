"""The whole front of accuracy against size in one run: NSGA-II (Deb et al., 2002) over the units of a network."""

from dataclasses import dataclass

import numpy
from pydantic import Field

from topiarist.evolution import FrontSettings, evolve_front, knee, non_dominated
from topiarist.methods.judging import (
    Evaluator,
    SearchSettings,
    Subject,
    evaluator_for,
    judged_on_training,
    refuse_above_limits,
    settle,
    subject_of,
)
from topiarist.methods.readout import Bits, Floats
from topiarist.methods.task import Proposal, Task
from topiarist.randomness import array_generator
from topiarist.surgery import Edit

OUT_OF_REACH = 1e6


@dataclass(frozen=True)
class FrontPoint:
    """A subset of units that no other beats: accuracy in per cent on the samples judged, parameters, units by space."""

    accuracy: float
    parameters: int
    units: dict[str, int]
    bits: Bits


class GeneticFront(SearchSettings):
    """Search all sizes at once; of the front, `shape` takes the most accurate network within its budget, or the knee.

    `refitted`: accuracy is that after a least-squares refit of the last layer, where that reads the units. The search
    ends when the front has not moved for `patience` generations.
    """

    refitted: bool = False
    generations: int = Field(default=100, ge=1)
    patience: int | None = Field(default=10, ge=1)

    def front(self, task: Task) -> list[FrontPoint]:
        """Give the front, from the smallest network to the most accurate."""
        return self._search(self._subject(task), task)

    def edits(self, task: Task, point: FrontPoint) -> tuple[Edit, ...]:
        """Give the edits that make the network of a point, with a refit where that does no harm."""
        return self._settled(task, self._subject(task), point)[0]

    def propose(self, task: Task) -> Proposal:
        """Take one network of the front."""
        subject = self._subject(task)
        points = self._search(subject, task)
        within = [point for point in points if subject.excess(point.bits[None])[0] <= 0]
        if not within:
            refuse_above_limits(subject, points[0].bits)
        costs = [(-point.accuracy, point.parameters) for point in within]
        chosen = within[-1] if task.limits else within[knee(costs)]
        edits, accuracy = self._settled(task, subject, chosen)
        reason = (
            f"of {len(points)} networks on the front, from {points[0].parameters:,} parameters and"
            f" {points[0].accuracy:.1f} % to {points[-1].parameters:,} and {points[-1].accuracy:.1f} %, the"
            f" {'most accurate within the limits' if task.limits else 'knee'}: {accuracy:.1f} % of {subject.samples}"
        )
        return Proposal(edits, (reason,))

    def _settled(self, task: Task, subject: Subject, point: FrontPoint) -> tuple[tuple[Edit, ...], float]:
        return settle(task, subject, point.bits, None if self.refitted else point.accuracy)

    def _subject(self, task: Task) -> Subject:
        return subject_of(task, self.spaces, training=judged_on_training(task, self.judged_on))

    def _search(self, subject: Subject, task: Task) -> list[FrontPoint]:
        """Search once for all limits that are asked of one network."""
        key = f"front {self.model_dump_json()}"
        if key not in task.memory:
            task.memory[key] = self._points(subject, task.seed)
        points: list[FrontPoint] = task.memory[key]
        return points

    def _points(self, subject: Subject, seed: int) -> list[FrontPoint]:
        evaluator = evaluator_for([subject], refitted=self.refitted)
        settings = FrontSettings(
            population=self.population, generations=self.generations, patience=self.patience, density=(0.02, 1.0)
        )
        random = array_generator(seed, "genetic front")
        found = evolve_front(lambda bits: objectives(subject, evaluator, bits), subject.bits, random, settings)
        whole = numpy.ones((1, subject.bits), dtype=bool)
        bits = numpy.concatenate([found.bits, whole])
        costs = numpy.concatenate([found.objectives, objectives(subject, evaluator, whole)])
        kept = numpy.unique(costs, axis=0, return_index=True)[1]
        kept = kept[non_dominated(costs[kept]) & (costs[kept, 0] < OUT_OF_REACH)]
        points = [
            FrontPoint(
                accuracy=float(100 - error),
                parameters=round(parameters),
                units={name: int(some.sum()) for name, some in subject.by_space(mask)},
                bits=mask,
            )
            for mask, (error, parameters) in zip(bits[kept], costs[kept], strict=True)
        ]
        return sorted(points, key=lambda point: point.parameters)


def objectives(subject: Subject, evaluator: Evaluator, bits: Bits) -> Floats:
    """Give errors in per cent and parameters (n, 2) of subsets (n, n_bits); one without units is out of reach."""
    widths = {name: kept.sum(axis=1) for name, kept in subject.by_space(bits)}
    possible = subject.possible(bits)
    found = numpy.full((len(bits), 2), OUT_OF_REACH)
    if possible.any():
        rows = numpy.zeros(int(possible.sum()), dtype=numpy.intp)
        found[possible, 0] = 100 - evaluator.accuracy(rows, bits[possible])
        found[possible, 1] = subject.costs.parameters({name: counts[possible] for name, counts in widths.items()})
    return found
