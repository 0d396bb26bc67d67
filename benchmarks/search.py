"""The Surgeon beside random search and successive halving over widths and depths, at equal processor time.

    python -m benchmarks.search [digits fashion] [--seeds N] [--out results.json]

For each seed the Surgeon trains one network from a small start, and its processor time is measured. Then random search
and successive halving (optuna; reduction by 3, from one epoch on) draw networks of one to three layers of 8 to 512
units and a rate, and train them by the same recipe for as many epochs, until they have used as much processor time;
what was begun before then is ended. All choose by the validation part; accuracies are of the test part, which no
choice sees. `fashion` is 4,000 training images of Fashion-MNIST (Debian's package dataset-fashion-mnist). Needs the
extra `benchmarks`. The same command resumes.
"""

import argparse
import math
import sys
import time
from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import optuna
import torch
from torch import nn

from benchmarks.compensating.images import FASHION
from benchmarks.paging.writing import RESULTS, stamp
from benchmarks.search_table import SEARCHERS, SearchResults, SearchRow, write_markdown
from topiarist import Data, TrainConfig, load_data, measure, methods, models, resize, train
from topiarist.files import write_atomically
from topiarist.randomness import child_seed, generator
from topiarist.training import Epoch

EPOCHS, BATCH = 20, 32
START = 10  # units of the network that the Surgeon begins with
LEAST, MOST, LAYERS = 8, 512, 3
RATES = (3e-4, 3e-2)
REDUCTION = 3  # of the trials at each rung of successive halving: optuna's documentation and Hyperband's paper
PROBLEMS: dict[str, Callable[[int], Data]] = {
    "digits": lambda seed: load_data("digits", seed=seed),
    "fashion": lambda seed: load_data(str(FASHION), samples=4_000, seed=seed, input_shape=(784,)),
}


@dataclass
class Best:
    """The network with the best validation accuracy so far, and how many were tried."""

    model: nn.Module | None = None
    validation: float = -math.inf
    tried: int = field(default=0)

    def offer(self, model: nn.Module, validation: float) -> None:
        """Keep a network where it is better."""
        self.tried += 1
        if validation > self.validation:
            self.model, self.validation = deepcopy(model), validation


def config(rate: float, seed: int) -> TrainConfig:
    """Return the recipe of all."""
    return TrainConfig(epochs=EPOCHS, batch_size=BATCH, schedule="cosine", learning_rate=rate, seed=seed)


def validated(model: nn.Module, data: Data) -> float:
    """Return the accuracy on the validation part."""
    return measure(model, data, part="validation", latency=False).accuracy


def surgeon(data: Data, seed: int, _: float) -> Best:
    """Let the Surgeon train and change a small network."""
    (inputs,), outputs = data.input_shape, data.task.outputs
    start = models.mlp((inputs, START, outputs), generator=generator(seed, "weights"))
    method = methods.Surgeon(training=TrainConfig(epochs=EPOCHS, batch_size=BATCH, schedule="cosine", seed=seed))
    found = resize(start, data, method, seed=seed, latency=False).model
    best = Best()
    best.offer(found, validated(found, data))
    return best


def search(data: Data, seed: int, seconds: float, *, halving: bool) -> Best:
    """Train drawn networks until the time is over; with halving, those that are behind end early."""
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    pruner = (
        optuna.pruners.SuccessiveHalvingPruner(reduction_factor=REDUCTION) if halving else optuna.pruners.NopPruner()
    )
    sampler = optuna.samplers.RandomSampler(seed=seed)
    trials = optuna.create_study(direction="maximize", sampler=sampler, pruner=pruner)
    best, begun = Best(), time.process_time()
    while not best.tried or time.process_time() - begun < seconds:
        trials.optimize(partial(trial_of, data=data, seed=seed, best=best), n_trials=1)
    return best


def trial_of(trial: optuna.Trial, *, data: Data, seed: int, best: Best) -> float:
    """Train one drawn network; raise TrialPruned where it is behind."""
    (inputs,), outputs = data.input_shape, data.task.outputs
    layers = trial.suggest_int("layers", 1, LAYERS)
    hidden = [trial.suggest_int(f"units {number}", LEAST, MOST, log=True) for number in range(layers)]
    rate = trial.suggest_float("rate", *RATES, log=True)
    own = child_seed(seed, "trial", trial.number) % 2**32
    model = models.mlp((inputs, *hidden, outputs), generator=generator(own, "weights"))

    def watch(number: int, epochs: Sequence[Epoch]) -> None:
        trial.report(epochs[0].validation_accuracy or 0.0, number)
        if trial.should_prune():
            raise optuna.TrialPruned

    try:
        train(model, data, config(rate, own), on_epoch=watch)
    except optuna.TrialPruned:
        best.tried += 1
        raise
    found = validated(model, data)
    best.offer(model, found)
    return found


SEARCH: dict[str, Callable[[Data, int, float], Best]] = dict(
    zip(SEARCHERS, (surgeon, partial(search, halving=False), partial(search, halving=True)), strict=True)
)


def measure_all(problem: str, seed: int) -> list[SearchRow]:
    """Run all searchers on one problem; the time of the first is what the others have."""
    data, rows, allowed = PROBLEMS[problem](seed), [], 0.0
    for name, searcher in SEARCH.items():
        begun = time.process_time()
        best = searcher(data, seed, allowed)
        seconds = time.process_time() - begun
        allowed = allowed or seconds
        assert best.model is not None
        rows.append(
            SearchRow(
                problem=problem,
                seed=seed,
                searcher=name,
                test=100 * measure(best.model, data, latency=False).accuracy,
                validation=100 * best.validation,
                parameters=sum(parameter.numel() for parameter in best.model.parameters()),
                seconds=seconds,
                tried=best.tried,
            )
        )
    return rows


def main() -> None:
    """Measure what is asked for and not measured yet, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("problems", nargs="*", choices=[*PROBLEMS, []], help=f"some of {', '.join(PROBLEMS)}")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--out", type=Path, default=RESULTS / "search.json")
    asked = parser.parse_args()
    torch.set_num_threads(1)
    results = SearchResults(**stamp("python -m benchmarks.search", ["optuna"]))
    if asked.out.exists():
        known = SearchResults.model_validate_json(asked.out.read_text())
        results = SearchResults(**stamp("python -m benchmarks.search", ["optuna"], known), rows=known.rows)
    done = {(row.problem, row.seed) for row in results.rows}
    for problem in asked.problems or PROBLEMS:
        for seed in range(asked.seeds):
            if (problem, seed) not in done:
                rows = measure_all(problem, seed)
                print(*rows, sep="\n", file=sys.stderr, flush=True)
                results = results.model_copy(update={"rows": (*results.rows, *rows)})
                write_atomically(asked.out, results.model_dump_json(indent=1).encode())
    print(write_markdown(results))


if __name__ == "__main__":
    main()
