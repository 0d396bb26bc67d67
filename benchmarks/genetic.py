"""A genetic search for the units worth keeping, side by side with DEAP; one core, one run.

A trained 10–100–7 sigmoid network, 607 training samples, 100 individuals, 50 generations, tournaments of 3, a hall of
fame of 5 kept in the population, fitness accuracy% − λ·kept/all. DEAP with a fitness that a good engineer would write
(activations computed once, a small matrix product for an individual, a dictionary of those seen) and as the method
reads (a pruned network built and run for each individual); ours whole, without the dictionary, and one individual at a
time. Then how ours scales, and ten folds at once against one after the other.
"""

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy
import torch
from deap import algorithms, base, creator, tools
from numpy.typing import NDArray
from sklearn.datasets import make_classification
from threadpoolctl import threadpool_limits
from torch import Tensor, nn

from benchmarks.paging.records import Figure, Role, Sheet
from benchmarks.paging.timing import MILLISECONDS, in_turn, milliseconds
from benchmarks.paging.writing import stamp, write_results
from topiarist import Data, TrainConfig, models, train
from topiarist.data import Part
from topiarist.evolution.genetic_algorithm import GeneticSettings, evolve
from topiarist.methods.genetic.readout import Readout
from topiarist.randomness import array_generator, generator, isolated

SAMPLES, INPUTS, CLASSES, FOLDS = 674, 10, 7, 10
Floats = NDArray[numpy.float64]
Bits = NDArray[numpy.bool_]
Integers = NDArray[numpy.intp]
Search = Callable[[int, float], float]
CHOSEN = GeneticSettings()
SLOWEST = "DEAP, a pruned module for each individual"
RIVAL = "DEAP, one product, none seen twice"
OURS = "ours"


@dataclass(frozen=True)
class Trained:
    """A trained network, its training samples, and what its hidden layer gives for them."""

    first: nn.Linear
    last: nn.Linear
    x: Tensor
    labels: Tensor
    hidden: Tensor

    @property
    def size(self) -> int:
        """Return the number of hidden units."""
        return self.first.out_features


def trained_network(n_units: int, epochs: int, fold: int = 0) -> Trained:
    """Train a network on one of ten folds of samples of classes that overlap."""
    x, y = make_classification(
        SAMPLES, INPUTS, n_informative=8, n_redundant=0, n_classes=CLASSES, n_clusters_per_class=2, class_sep=0.7,
        flip_y=0.2, random_state=0,
    )  # fmt: skip
    data = Data.from_arrays(x, y, name="overlapping classes", scaling="zscore").folds(FOLDS)[fold]
    model = models.mlp([INPUTS, n_units, CLASSES], "sigmoid", generator=generator(fold, "weights"))
    train(model, data, TrainConfig(epochs=epochs, learning_rate=0.01, seed=fold))
    first, last = (module for module in model.modules() if isinstance(module, nn.Linear))
    part = data.train
    assert isinstance(part, Part)
    with torch.no_grad():
        return Trained(first, last, part.x, part.y, torch.sigmoid(first(part.x)))


def cached_fitness(network: Trained, penalty: float) -> Callable[[list[int]], tuple[float]]:
    """Make the fitness of one individual: activations known, one matrix product, none seen is computed again."""
    hidden = network.hidden.numpy()
    weights, bias = network.last.weight.detach().numpy().T.copy(), network.last.bias.detach().numpy()
    labels, seen = network.labels.numpy(), dict[bytes, tuple[float]]()

    def fitness(individual: list[int]) -> tuple[float]:
        key = bytes(individual)
        if key not in seen:
            kept = numpy.flatnonzero(individual)
            logits = hidden[:, kept] @ weights[kept] + bias
            right = numpy.count_nonzero(logits.argmax(axis=1) == labels)
            seen[key] = (100.0 * right / len(labels) - penalty * len(kept) / len(individual),)
        return seen[key]

    return fitness


def pruned_fitness(network: Trained, penalty: float) -> Callable[[list[int]], tuple[float]]:
    """Make the fitness of one individual: a network without the other units is built and run."""

    @torch.no_grad()
    def fitness(individual: list[int]) -> tuple[float]:
        kept = torch.nonzero(torch.tensor(individual)).flatten()
        first, last = nn.Linear(INPUTS, len(kept)), nn.Linear(len(kept), CLASSES)
        first.weight.copy_(network.first.weight[kept])
        first.bias.copy_(network.first.bias[kept])
        last.weight.copy_(network.last.weight[:, kept])
        last.bias.copy_(network.last.bias)
        model = nn.Sequential(first, nn.Sigmoid(), last).eval()
        accuracy = 100.0 * float((model(network.x).argmax(dim=1) == network.labels).float().mean())
        return (accuracy - penalty * len(kept) / len(individual),)

    return fitness


def deap_search(fitness: Callable[[list[int]], tuple[float]], n_bits: int, seed: int) -> float:
    """Search as DEAP's users write it: `eaSimple`, with a hall of fame that stays in the population."""
    import random  # noqa: TID251  DEAP draws from it

    random.seed(seed)
    toolbox = base.Toolbox()
    toolbox.register("bit", random.randint, 0, 1)
    toolbox.register("individual", tools.initRepeat, creator.Individual, toolbox.bit, n_bits)
    toolbox.register("population", tools.initRepeat, list, toolbox.individual)
    toolbox.register("evaluate", fitness)
    toolbox.register("mate", tools.cxOnePoint)
    toolbox.register("mutate", tools.mutFlipBit, indpb=CHOSEN.flip_probability)
    toolbox.register("select", tools.selTournament, tournsize=CHOSEN.tournament)
    population, hall = toolbox.population(n=CHOSEN.population), tools.HallOfFame(CHOSEN.hall_of_fame)

    def evaluate(individuals: list[Any]) -> None:
        invalid = [individual for individual in individuals if not individual.fitness.valid]
        for individual, values in zip(invalid, map(toolbox.evaluate, invalid), strict=True):
            individual.fitness.values = values

    evaluate(population)
    hall.update(population)
    for _ in range(CHOSEN.generations):
        offspring = toolbox.select(population, len(population) - len(hall.items))
        offspring = algorithms.varAnd(offspring, toolbox, CHOSEN.crossover_probability, CHOSEN.mutation_probability)
        evaluate(offspring)
        offspring.extend(hall.items)
        hall.update(offspring)
        population[:] = offspring
    return float(hall[0].fitness.values[0])


def readout_of(networks: list[Trained]) -> Readout:
    """Put the networks' activations and last layers together."""
    return Readout(
        [network.hidden for network in networks],
        [network.last.weight for network in networks],
        [network.last.bias for network in networks],
        [network.labels for network in networks],
    )


def our_search(networks: list[Trained], seed: int, penalty: float, *, way: str = "whole") -> list[float]:
    """Search for several networks at once; `way` leaves a part of ours out."""
    readout, n_bits = readout_of(networks), networks[0].size

    def fitness(problems: Integers, bits: Bits) -> Floats:
        values: Floats = readout.accuracy(problems, bits) - penalty * bits.sum(axis=1) / n_bits
        return values

    def one_by_one(problems: Integers, bits: Bits) -> Floats:
        return numpy.concatenate([fitness(problems[row : row + 1], bits[row : row + 1]) for row in range(len(bits))])

    def without_memory(problems: Integers, bits: Bits) -> Floats:
        """Evaluate as many as a generation has, as if none had been seen before."""
        rows = numpy.arange(max(len(bits), CHOSEN.population - CHOSEN.hall_of_fame)) % len(bits)
        return fitness(problems[rows], bits[rows])[: len(bits)]  # of one problem

    evaluate = {"whole": fitness, "one by one": one_by_one, "without memory": without_memory}[way]
    generators = [array_generator(seed, "search", number) for number in range(len(networks))]
    return [found.fitness for found in evolve(evaluate, n_bits, generators, CHOSEN)]


def contestants(network: Trained) -> dict[str, Search]:
    """Return every contestant: from a seed and λ to the best fitness."""
    return {
        SLOWEST: lambda seed, penalty: deap_search(pruned_fitness(network, penalty), network.size, seed),
        RIVAL: lambda seed, penalty: deap_search(cached_fitness(network, penalty), network.size, seed),
        "ours, one individual at a time": lambda seed, penalty: our_search([network], seed, penalty, way="one by one")[
            0
        ],
        "ours, all evaluated anew": lambda seed, penalty: our_search([network], seed, penalty, way="without memory")[0],
        OURS: lambda seed, penalty: our_search([network], seed, penalty)[0],
    }


def timed(searches: dict[str, Search], penalty: float, seeds: int, rounds: int) -> list[Figure]:
    """Time contestants in turn; return the best time of each seed.

    The slowest has one round only.
    """
    seconds = {name: numpy.full(seeds, numpy.inf) for name in searches}
    for number in range(rounds):
        for seed in range(seeds):
            for name, search in searches.items():
                if number and name == SLOWEST:
                    continue
                start = time.process_time()
                search(seed, penalty)
                seconds[name][seed] = min(seconds[name][seed], time.process_time() - start)
    return [
        Figure(
            table="search",
            case=f"λ = {penalty:g}",
            contender=name,
            measure="milliseconds of a search",
            values=tuple(float(MILLISECONDS * each) for each in seconds[name]),
            role=role_of(name),
        )
        for name in searches
    ]


def fitness_of(searches: dict[str, Search], penalty: float, seeds: int) -> list[Figure]:
    """Return the fitness that DEAP and ours find, over more seeds than are timed: it scatters more."""
    return [
        Figure(
            table="fitness",
            case=f"λ = {penalty:g}",
            contender=name,
            measure="fitness",
            values=tuple(searches[name](seed, penalty) for seed in range(seeds)),
            role=role_of(name),
        )
        for name in (RIVAL, OURS)
    ]


def role_of(name: str) -> Role:
    """Return what a contestant is on the page."""
    return "ours" if name == OURS else "variant" if name.startswith("ours") else "rival"


def scaling(epochs: int, rounds: int) -> list[Figure]:
    """Return the time for networks of other sizes, DEAP's next to it, and for ten folds."""
    figures = []
    for n_units in (20, 50, 200, 500):
        searches = contestants(trained_network(n_units, epochs))
        jobs: dict[str, Callable[[], object]] = {name: partial(searches[name], 0, 50.0) for name in (RIVAL, OURS)}
        figures += figures_of("sizes", f"{n_units} units", in_turn(jobs, rounds))
    networks = [trained_network(100, epochs, fold) for fold in range(FOLDS)]
    jobs = {
        "at once": lambda: our_search(networks, 0, 50.0),
        "one after the other": lambda: [our_search([network], 0, 50.0) for network in networks],
    }
    return [*figures, *figures_of("folds", "ten networks", in_turn(jobs, rounds))]


def figures_of(table: str, case: str, times: dict[str, tuple[float, ...]]) -> list[Figure]:
    """Return times of rounds as figures."""
    return [
        Figure(
            table=table,
            case=case,
            contender=name,
            measure="milliseconds",
            values=milliseconds(seconds),
            role="" if table == "folds" else role_of(name),
        )
        for name, seconds in times.items()
    ]


def main() -> None:
    """Time all on one network, for two penalties, then the scaling."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--fitness-seeds", type=int, default=60, help="of which the fitness is compared")
    parser.add_argument("--epochs", type=int, default=300)
    parser.add_argument("--units", type=int, default=100)
    chosen = parser.parse_args()
    torch.set_num_threads(1)
    creator.create("FitnessMax", base.Fitness, weights=(1.0,))
    creator.create("Individual", list, fitness=creator.FitnessMax)
    network = trained_network(chosen.units, chosen.epochs)
    figures: list[Figure] = []
    with isolated(0), threadpool_limits(1):
        for penalty in (50.0, 0.0):
            figures += timed(contestants(network), penalty, chosen.seeds, chosen.rounds)
            figures += fitness_of(contestants(network), penalty, chosen.fitness_seeds)
        figures += scaling(chosen.epochs, chosen.rounds)
    command = f"python -m benchmarks.genetic --seeds {chosen.seeds} --rounds {chosen.rounds}"
    print(write_results("genetic", Sheet(**stamp(command, ["deap"]), figures=tuple(figures))))


if __name__ == "__main__":
    main()
