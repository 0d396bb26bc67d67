from itertools import product

import numpy
import pytest
from numpy.typing import NDArray
from pymoo.algorithms.moo.nsga2 import NSGA2
from pymoo.core.problem import Problem
from pymoo.operators.crossover.pntx import SinglePointCrossover
from pymoo.operators.mutation.bitflip import BitflipMutation
from pymoo.operators.sampling.rnd import BinaryRandomSampling
from pymoo.optimize import minimize

from topiarist.errors import SettingsError
from topiarist.evolution import FrontSettings, evolve_front, hypervolume, non_dominated
from topiarist.randomness import array_generator

Bits = NDArray[numpy.bool_]
Floats = NDArray[numpy.float64]


class Knapsack:
    """What is packed should be worth much and weigh little; it remembers what it was asked."""

    def __init__(self, n_bits: int, n_objectives: int = 2) -> None:
        draws = array_generator(n_bits, "knapsack").integers(1, 100, (n_objectives, n_bits))
        self.weights = draws.T.astype(numpy.float64)
        self.weights[:, 0] *= -1
        self.asked: list[bytes] = []

    def __call__(self, bits: Bits) -> Floats:
        self.asked += [one.tobytes() for one in bits]
        return self.of(bits)

    def of(self, bits: Bits) -> Floats:
        objectives: Floats = bits @ self.weights
        return objectives

    def front(self) -> Floats:
        """The true front, of all there is."""
        everything = self.of(numpy.array(list(product([False, True], repeat=len(self.weights)))))
        return numpy.unique(everything[non_dominated(everything)], axis=0)


class Pymoo(Problem):  # type: ignore[misc]
    """The same for pymoo."""

    def __init__(self, knapsack: Knapsack) -> None:
        super().__init__(n_var=len(knapsack.weights), n_obj=2, xl=0, xu=1, vtype=bool)
        self.knapsack = knapsack

    def _evaluate(self, x: Bits, out: dict[str, Floats], *_: object, **__: object) -> None:
        out["F"] = self.knapsack.of(x)


@pytest.mark.parametrize("n_objectives", [2, 3])
def test_the_true_front_of_a_small_knapsack_is_found(n_objectives: int) -> None:
    knapsack = Knapsack(10, n_objectives)
    found = evolve_front(knapsack, 10, array_generator(0), FrontSettings(population=60, generations=300))
    assert found.objectives.tolist() == knapsack.front().tolist()
    assert knapsack.of(found.bits).tolist() == found.objectives.tolist()
    assert found.n_evaluations <= 2**10


def test_no_individual_is_evaluated_twice_and_the_front_is_that_of_everything_seen() -> None:
    knapsack = Knapsack(30)
    found = evolve_front(knapsack, 30, array_generator(1), FrontSettings(population=40, generations=30))
    assert len(set(knapsack.asked)) == len(knapsack.asked) == found.n_evaluations == 40 * 31
    everything = knapsack.of(numpy.array([list(key) for key in knapsack.asked], dtype=numpy.bool_))
    assert found.objectives.tolist() == numpy.unique(everything[non_dominated(everything)], axis=0).tolist()
    assert len(found.sizes) == 31
    assert found.sizes[-1] == len(found.bits)


def test_the_search_ends_where_everything_was_seen() -> None:
    found = evolve_front(Knapsack(3), 3, array_generator(0), FrontSettings(population=4, generations=1000))
    assert found.n_evaluations == 8
    assert len(found.sizes) < 1000
    assert found.objectives.tolist() == Knapsack(3).front().tolist()


def test_patience_ends_the_search() -> None:
    knapsack, told = Knapsack(12), list[Floats]()
    settings = FrontSettings(population=50, generations=500, patience=5)
    found = evolve_front(knapsack, 12, array_generator(0), settings, on_generation=lambda _, front: told.append(front))
    assert 6 < len(found.sizes) < 60
    assert all(front.tolist() == found.objectives.tolist() for front in told[-6:])
    assert told[-7].tolist() != found.objectives.tolist()
    coarse = evolve_front(knapsack, 12, array_generator(0), settings.model_copy(update={"tolerance": 0.01}))
    assert len(coarse.sizes) < len(found.sizes)


def test_the_same_seed_gives_the_same_front() -> None:
    first, second = (evolve_front(Knapsack(25), 25, array_generator(3), FrontSettings(generations=9)) for _ in "ab")
    assert first.bits.tolist() == second.bits.tolist()


@pytest.mark.slow
def test_fifty_bits_are_searched_as_well_as_by_pymoo() -> None:
    knapsack, seeds = Knapsack(50), range(6)
    corner = numpy.array([0.0, knapsack.weights[:, 1].sum()])
    settings = FrontSettings(population=60, generations=60)
    ours = [hypervolume(evolve_front(knapsack, 50, array_generator(seed), settings).objectives, corner)
            for seed in seeds]  # fmt: skip
    theirs = []
    for seed in seeds:
        algorithm = NSGA2(
            pop_size=60, sampling=BinaryRandomSampling(), crossover=SinglePointCrossover(prob=0.9),
            mutation=BitflipMutation(prob=1.0, prob_var=1 / 50), eliminate_duplicates=True,
        )  # fmt: skip
        result = minimize(Pymoo(knapsack), algorithm, ("n_gen", 61), seed=seed, verbose=False)
        theirs.append(hypervolume(result.F, corner))
    assert numpy.mean(ours) >= 0.995 * numpy.mean(theirs)


def test_what_makes_no_sense_is_refused() -> None:
    with pytest.raises(SettingsError, match="two or more objectives for 100 individuals"):
        evolve_front(lambda bits: bits[:, :1].astype(numpy.float64), 64, array_generator(0))
    with pytest.raises(SettingsError, match="finite; found nan"):
        evolve_front(lambda bits: numpy.full((len(bits), 2), numpy.nan), 64, array_generator(0))
    with pytest.raises(SettingsError, match="needs bits"):
        evolve_front(Knapsack(3), 0, array_generator(0))
    with pytest.raises(SettingsError, match="density"):
        FrontSettings(density=(0.9, 0.2))
    with pytest.raises(SettingsError, match="population"):
        FrontSettings(population=1)
