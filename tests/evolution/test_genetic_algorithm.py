from collections import Counter

import numpy
import pytest
from numpy.typing import NDArray

from topiarist.errors import SettingsError
from topiarist.evolution import GeneticSettings, evolve
from topiarist.evolution.genetic_algorithm import Populations
from topiarist.evolution.variation import cross_neighbours, keys_of, packed, random_bits, tails, unpacked
from topiarist.randomness import array_generator

Bits = NDArray[numpy.bool_]
Floats = NDArray[numpy.float64]
Integers = NDArray[numpy.intp]


class Weighing:
    """A fitness that is linear in the bits, with other weights for each problem; it remembers what it was asked."""

    def __init__(self, n_problems: int, n_bits: int) -> None:
        self.weights = array_generator(0, "weights").normal(size=(n_problems, n_bits))
        self.asked: list[tuple[int, bytes]] = []

    def __call__(self, problems: Integers, bits: Bits) -> Floats:
        assert (numpy.diff(problems) >= 0).all()
        self.asked += [(problem, one.tobytes()) for problem, one in zip(problems.tolist(), bits, strict=True)]
        values: Floats = (self.weights[problems] * bits).sum(axis=1)
        return values


def generators(*problems: int) -> list[numpy.random.Generator]:
    return [array_generator(7, "search", problem) for problem in problems]


def test_the_best_bits_are_found() -> None:
    weighing = Weighing(1, 20)
    found = evolve(weighing, 20, generators(0))[0]
    assert found.bits.tolist() == (weighing.weights[0] > 0).tolist()
    assert found.fitness == pytest.approx(weighing.weights[0].clip(0).sum())
    assert found.n_generations == 50
    assert found.size[-1] == found.bits.sum()


@pytest.mark.parametrize("n_bits", [1, 2, 7, 64, 100])
def test_no_individual_is_evaluated_twice(n_bits: int) -> None:
    weighing = Weighing(3, n_bits)
    found = evolve(weighing, n_bits, generators(0, 1, 2))
    assert len(set(weighing.asked)) == len(weighing.asked)
    counts = Counter(problem for problem, _ in weighing.asked)
    assert [one.n_evaluations for one in found] == [counts[problem] for problem in range(3)]
    assert sum(counts.values()) < 3 * 50 * 95


def test_the_hall_of_fame_holds_the_best_of_everything_seen_once() -> None:
    weighing = Weighing(2, 12)
    for problem, found in enumerate(evolve(weighing, 12, generators(0, 1))):
        seen = numpy.array([list(key) for number, key in weighing.asked if number == problem], dtype=numpy.bool_)
        values = numpy.sort((seen * weighing.weights[problem]).sum(axis=1))[::-1]
        assert found.hall_of_fame_fitness.tolist() == pytest.approx(values[:5].tolist())
        assert len({bits.tobytes() for bits in found.hall_of_fame}) == 5
        assert found.bits.tolist() == found.hall_of_fame[0].tolist()


@pytest.mark.parametrize("patience", [None, 4])
def test_a_problem_alone_ends_as_among_others(patience: int | None) -> None:
    weighing, settings = Weighing(4, 30), GeneticSettings(generations=30, patience=patience, density=(0.02, 1.0))
    together = evolve(weighing, 30, generators(0, 1, 2, 3), settings)
    if patience is not None:
        assert len({found.n_generations for found in together}) > 1
    for problem, found in enumerate(together):
        single = Weighing(1, 30)
        single.weights = weighing.weights[[problem]]
        alone = evolve(single, 30, generators(problem), settings)[0]
        assert alone.bits.tolist() == found.bits.tolist()
        assert alone.hall_of_fame.tolist() == found.hall_of_fame.tolist()
        assert alone.n_evaluations == found.n_evaluations
        for record in ("best", "mean", "size"):
            assert getattr(alone, record).tolist() == getattr(found, record).tolist()


def deap_best(weighing: Weighing, settings: GeneticSettings, seed: int) -> float:
    """The same search as DEAP's users write it."""
    import random  # noqa: TID251  DEAP draws from it

    from deap import algorithms, base, tools

    class Fitness(base.Fitness):  # type: ignore[misc]
        weights = (1.0,)

    class Individual(list[int]):
        def __init__(self, bits: list[int]) -> None:
            super().__init__(bits)
            self.fitness = Fitness()

    state = random.getstate()
    random.seed(seed)
    toolbox = base.Toolbox()
    toolbox.register("mate", tools.cxOnePoint)
    toolbox.register("mutate", tools.mutFlipBit, indpb=settings.flip_probability)
    n_bits = weighing.weights.shape[1]
    population = [Individual([random.randint(0, 1) for _ in range(n_bits)]) for _ in range(settings.population)]
    hall = tools.HallOfFame(settings.hall_of_fame)
    for number in range(settings.generations + 1):
        if number:
            chosen = tools.selTournament(population, len(population) - len(hall.items), settings.tournament)
            children = algorithms.varAnd(chosen, toolbox, settings.crossover_probability, settings.mutation_probability)
            population = children + list(hall.items)
        for one in population:
            one.fitness.values = (float(weighing.weights[0] @ numpy.array(one)),)
        hall.update(population)
    random.setstate(state)
    return float(hall[0].fitness.values[0])


@pytest.mark.slow
def test_searches_end_as_high_as_with_deap() -> None:
    weighing, settings, seeds = Weighing(1, 60), GeneticSettings(population=40, generations=12), range(40)
    ours = [evolve(weighing, 60, [array_generator(seed)], settings)[0].fitness for seed in seeds]
    theirs = [deap_best(weighing, settings, seed) for seed in seeds]
    error = float(numpy.hypot(numpy.std(ours), numpy.std(theirs))) / len(seeds) ** 0.5
    assert abs(numpy.mean(ours) - numpy.mean(theirs)) < 3 * error
    assert numpy.mean(ours) < weighing.weights.clip(0).sum() - 3 * error  # too short to find the best


def test_the_same_seed_gives_the_same_result() -> None:
    first, second = (evolve(Weighing(1, 40), 40, generators(5))[0] for _ in range(2))
    assert first.mean.tolist() == second.mean.tolist()


def test_the_best_never_gets_worse_and_patience_ends_the_search() -> None:
    found = evolve(Weighing(1, 60), 60, generators(0), GeneticSettings(generations=300, patience=6))[0]
    assert (numpy.diff(found.best) >= 0).all()
    assert found.n_generations < 300
    assert found.best[-7:].tolist() == [found.fitness] * 7
    assert found.best[-8] < found.fitness
    assert len(found.best) == len(found.mean) == len(found.size)


def test_individuals_that_are_the_worst_there_is() -> None:
    weighing = Weighing(1, 6)

    def evaluate(problems: Integers, bits: Bits) -> Floats:
        return numpy.where(bits.any(axis=1), weighing(problems, bits), -numpy.inf)

    found = evolve(evaluate, 6, generators(0), GeneticSettings(density=(0.0, 1.0)))[0]
    assert numpy.isfinite(found.mean).all()
    assert numpy.isfinite(found.fitness)
    hopeless = evolve(lambda _, bits: numpy.full(len(bits), -numpy.inf), 6, generators(0))[0]
    assert hopeless.fitness == -numpy.inf
    assert hopeless.mean.tolist() == [-numpy.inf] * 51


def test_progress_is_told() -> None:
    told: list[tuple[int, Floats]] = []
    found = evolve(Weighing(2, 9), 9, generators(0, 1), GeneticSettings(generations=3),
                   on_generation=lambda number, best: told.append((number, best)))  # fmt: skip
    assert [number for number, _ in told] == [0, 1, 2, 3]
    for problem in range(2):
        assert [best[problem] for _, best in told] == found[problem].best.tolist()


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"population": 1}, "population"),
        ({"tournament": 1}, "tournament"),
        ({"flip_probability": 1.1}, "flip_probability"),
        ({"population": 5}, "hall_of_fame must be below population, 5; found 5"),
        ({"density": (0.5, 0.1)}, "density must be a probability, or two in ascending order"),
        ({"density": 1.5}, "density must be a probability"),
        ({"patience": 0}, "patience"),
    ],
)
def test_settings_that_make_no_sense(values: dict[str, object], message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        GeneticSettings(**values)


def test_bad_evaluators_are_refused() -> None:
    with pytest.raises(SettingsError, match=r"100 values for 100 individuals; found shape \(100, 1\)"):
        evolve(lambda _, bits: bits[:, :1].astype(numpy.float64), 64, generators(0))
    with pytest.raises(SettingsError, match="below infinity; found nan"):
        evolve(lambda _, bits: numpy.full(len(bits), numpy.nan), 64, generators(0))
    with pytest.raises(SettingsError, match="needs bits and a generator"):
        evolve(Weighing(1, 1), 1, [])


def test_initial_densities() -> None:
    bits = random_bits(array_generator(0), 2000, 100, 0.3)
    assert bits.mean() == pytest.approx(0.3, abs=0.01)
    assert bits.mean(axis=1).std() == pytest.approx((0.3 * 0.7 / 100) ** 0.5, rel=0.1)
    sizes = random_bits(array_generator(0), 2000, 100, (0.02, 1.0)).mean(axis=1)
    assert sizes.min() < 0.05
    assert sizes.max() > 0.95
    assert numpy.histogram(sizes, bins=4, range=(0, 1))[0] == pytest.approx([500] * 4, rel=0.15)


def test_crossover_exchanges_tails_of_neighbours() -> None:
    parents = random_bits(array_generator(1), 2001, 19, 0.5)
    children = packed(parents)
    draws = array_generator(2).random(1000)
    cross_neighbours(children, draws, 0.8, tails(19))
    bits = unpacked(children, 19)
    assert (bits[2000] == parents[2000]).all()
    cuts = []
    for pair in range(1000):
        cut = 1 + int(draws[pair] / 0.8 * 18) if draws[pair] < 0.8 else 19
        one, other = parents[2 * pair], parents[2 * pair + 1]
        assert bits[2 * pair].tolist() == [*one[:cut], *other[cut:]]
        assert bits[2 * pair + 1].tolist() == [*other[:cut], *one[cut:]]
        cuts.append(cut)
    counts = numpy.bincount(cuts)
    assert counts[19] == pytest.approx(200, abs=50)
    assert counts[1:19] == pytest.approx([800 / 18] * 18, abs=30)
    before = children.copy()
    cross_neighbours(children, numpy.zeros(1000), 0.0, tails(19))
    assert (children == before).all()


def test_tournaments_and_mutation_have_the_odds_that_were_set() -> None:
    populations = Populations(lambda _, bits: bits @ numpy.arange(40.0), 40, generators(0), GeneticSettings())
    populations.fitness = numpy.arange(100.0)[None]
    entrants = numpy.array([[3, 9, 4], [50, 2, 60], [7, 99, 1]])
    assert populations.winners(entrants).tolist() == [9, 60, 99]
    populations.fitness = numpy.zeros((1, 100))
    assert populations.winners(entrants).tolist() == [3, 50, 7]
    populations.members[:] = 0
    mutants = unpacked(populations.children(20000)[0], 40)
    assert mutants.any(axis=1).mean() == pytest.approx(0.2 * (1 - 0.9**40), abs=0.01)
    assert mutants.mean() == pytest.approx(0.02, abs=0.001)


def test_packing_keeps_every_bit() -> None:
    bits = random_bits(array_generator(3), 50, 21, 0.5)
    assert (unpacked(packed(bits), 21) == bits).all()
    assert len(set(keys_of(packed(bits)))) == len(numpy.unique(bits, axis=0))
    zeros = numpy.zeros((2, 16), dtype=numpy.bool_)
    zeros[1, 0] = True
    assert len(set(keys_of(packed(zeros)))) == 2


def test_a_hall_of_fame_beside_the_population_is_not_bred_from_and_the_last_population_wins() -> None:
    often = {
        "mutation_probability": 1.0,
        "flip_probability": 0.3,
        "generations": 8,
        "population": 10,
        "hall_of_fame": 2,
    }
    weighing, settings = Weighing(4, 40), GeneticSettings(**often, elite="beside")
    beside = evolve(weighing, 40, generators(0, 1, 2, 3), settings)
    inside = evolve(Weighing(4, 40), 40, generators(0, 1, 2, 3), settings.model_copy(update={"elite": "inside"}))
    for problem, found in enumerate(beside):
        assert found.fitness == pytest.approx(float(weighing.weights[problem] @ found.bits))
        seen = [float(weighing.weights[number] @ numpy.frombuffer(one, bool)) for number, one in weighing.asked]
        of_problem = [value for value, (number, _) in zip(seen, weighing.asked, strict=True) if number == problem]
        assert found.hall_of_fame_fitness[0] == pytest.approx(max(of_problem))
        assert found.fitness <= found.hall_of_fame_fitness[0]
    assert any(found.fitness < found.hall_of_fame_fitness[0] for found in beside)
    assert sum(found.fitness for found in inside) > sum(found.fitness for found in beside)
