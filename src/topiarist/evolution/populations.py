"""The state of a genetic search for several problems: populations, halls of fame, and everything evaluated so far."""

from collections.abc import Callable, Sequence
from itertools import chain

import numpy

from topiarist.errors import SettingsError
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

Evaluate = Callable[[Integers, Bits], Floats]


class Populations:
    """Populations of those problems whose search goes on, as one array.

    `running` (n_running,) are the numbers of the problems; `members` (n_running, n_individuals, n_bytes) and `fitness`
    (n_running, n_individuals) are their populations; `famous` (n_running, n_famous, n_bytes) and `famous_fitness`
    (n_running, n_famous) the best of each problem so far, best first. None of these arrays is changed in place.
    """

    def __init__(
        self,
        evaluate: Evaluate,
        n_bits: int,
        generators: Sequence[numpy.random.Generator],
        n_individuals: int,
        n_famous: int,
        density: Density,
    ) -> None:
        self.evaluate, self.n_bits, self.tails = evaluate, n_bits, tails(n_bits)
        self.generators = list(generators)
        self.running = numpy.arange(len(generators))
        self.seen: list[dict[bytes, float]] = [{} for _ in generators]
        self.members = packed(numpy.stack([random_bits(one, n_individuals, n_bits, density) for one in generators]))
        self.fitness, unseen = self.evaluated(self.members)
        order = numpy.argsort(-unseen, axis=1, kind="stable")[:, :n_famous]
        rows = self.running[:, None]
        self.famous, self.famous_fitness = self.members[rows, order], self.fitness[rows, order]

    def advance(
        self, tournament: int, crossover: float, mutation: float, flips: float, *, beside: bool = False
    ) -> None:
        """Replace each population by its hall of fame, unless that stays beside, and children of tournament winners."""
        count = self.members.shape[1] - (0 if beside else self.famous.shape[1])
        children = self.children(count, tournament, crossover, mutation, flips)
        fitness, unseen = self.evaluated(children)
        members = numpy.concatenate((self.famous, children), axis=1)
        scores = numpy.concatenate((self.famous_fitness, fitness), axis=1)
        self.members, self.fitness = (children, fitness) if beside else (members, scores)
        self.admit(members, scores, unseen)

    def best_members(self) -> list[tuple[Packed, float]]:
        """Return the fittest individual of each population as it is now, with its fitness."""
        best = self.fitness.argmax(axis=1).tolist()
        return [(self.members[row, place], float(self.fitness[row, place])) for row, place in enumerate(best)]

    def children(self, count: int, tournament: int, crossover: float, mutation: float, flips: float) -> Packed:
        """Select, cross and mutate: packed bits (n_running, count, n_bytes)."""
        n_running, n_individuals, n_bytes = self.members.shape
        entering, crossing = count * tournament, count * tournament + count // 2
        numbers = numpy.empty((n_running, crossing + count))
        for generator, row in zip(self.generators, numbers, strict=True):
            generator.random(out=row)
        entrants = (numbers[:, :entering] * n_individuals).astype(numpy.intp)
        entrants += numpy.arange(0, n_running * n_individuals, n_individuals)[:, None]
        winners = self.winners(entrants.reshape(-1, tournament))
        children: Packed = self.members.reshape(-1, n_bytes).take(winners, axis=0).reshape(n_running, count, n_bytes)
        cross_neighbours(children, numbers[:, entering:crossing], crossover, self.tails)
        chosen = numbers[:, crossing:] < mutation
        counts = [int(numpy.count_nonzero(row)) for row in chosen]
        children.reshape(-1, n_bytes)[numpy.flatnonzero(chosen)] ^= self.flips(counts, flips)
        return children

    def winners(self, entrants: Integers) -> Integers:
        """Give the fittest of the entrants (n_tournaments, n_entrants), numbered through all problems, of each."""
        best = self.fitness.take(entrants).argmax(axis=1)
        winners: Integers = entrants[numpy.arange(len(entrants)), best]
        return winners

    def flips(self, counts: Sequence[int], probability: float) -> Packed:
        """Draw for `counts` individuals of each problem which bits are flipped: (n_mutated, n_bytes)."""
        numbers = numpy.empty((sum(counts), self.n_bits), dtype=numpy.float32)
        start = 0
        for generator, count in zip(self.generators, counts, strict=True):
            generator.random(out=numbers[start : start + count], dtype=numpy.float32)
            start += count
        return packed(numbers < probability)

    def evaluated(self, individuals: Packed) -> tuple[Floats, Floats]:
        """Give the fitness (n_running, n_individuals) of individuals; and again, −∞ where one was seen before."""
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
            values = checked(self.evaluate(self.running[rows // shape[1]], bits), len(rows))
            unseen.reshape(-1)[rows] = values
            remaining = iter(values.tolist())
            for seen, of_problem in zip(known, new, strict=True):
                seen.update(zip(of_problem, remaining, strict=False))
        fitness = [list(map(seen.__getitem__, of_problem)) for seen, of_problem in zip(known, keys, strict=True)]
        return numpy.array(fitness), unseen

    def admit(self, members: Packed, scores: Floats, unseen: Floats) -> None:
        """Let children, which follow the hall of fame in `members`, into it.

        `unseen` is their fitness where they were seen for the first time, else −∞.
        Who was seen before was admitted then, or was not good enough, and the hall only gets better.
        """
        if (unseen.max(axis=1) > self.famous_fitness[:, -1]).any():
            merged = numpy.concatenate((self.famous_fitness, unseen), axis=1)
            order = numpy.argsort(-merged, axis=1, kind="stable")[:, : self.famous.shape[1]]
            rows = numpy.arange(len(order))[:, None]
            self.famous, self.famous_fitness = members[rows, order], scores[rows, order]

    def keep(self, rows: list[int]) -> None:
        """Go on with those of the running problems only that stand at `rows`."""
        if len(rows) == len(self.running):
            return
        self.generators = [self.generators[row] for row in rows]
        self.running, self.members, self.fitness = self.running[rows], self.members[rows], self.fitness[rows]
        self.famous, self.famous_fitness = self.famous[rows], self.famous_fitness[rows]


def checked(fitness: Floats, count: int) -> Floats:
    """Give the fitness of `count` individuals, all of them numbers below ∞."""
    array = numpy.asarray(fitness, dtype=numpy.float64)
    if array.shape != (count,):
        raise SettingsError(f"evaluate must give {count} values for {count} individuals; found shape {array.shape}")
    if not array.max() < numpy.inf:
        raise SettingsError(f"fitness must be below infinity; found {array[~(array < numpy.inf)][0]}")
    return array
