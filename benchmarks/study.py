"""A study of 210 trainings on two cores, side by side with the plain loop over cells.

3 learning rates × 7 hidden sizes × 10 folds of 674 samples with 10 features, 300 epochs, batch 32, Adam: the grid of a
published table. The plain loop (one network after the other, `DataLoader`, autograd, one thread) would take most of an
hour, so a sample of it is timed, a few epochs of every hidden size in turn with our rounds, and extrapolated; all of
ours is run. Every round of ours is a whole study: declared, run, recorded, in a fresh folder.
"""

import argparse
import tempfile
import time
from pathlib import Path

import torch
from sklearn.datasets import make_classification
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from benchmarks.paging.records import Figure, Role, Sheet
from benchmarks.paging.writing import stamp, write_results
from topiarist import Data, Study, models
from topiarist.data import Part
from topiarist.study.results import Results

RATES, HIDDEN, FOLDS, EPOCHS, BATCH = (0.01, 0.001, 0.0001), (10, 20, 50, 100, 200, 500, 1000), 10, 300, 32


def make_data() -> Data:
    """Make 674 samples with 10 features and 7 classes that overlap."""
    x, y = make_classification(
        674, 10, n_informative=8, n_redundant=0, n_classes=7, n_clusters_per_class=1, class_sep=1.0, random_state=0
    )
    return Data.from_arrays(x, y, name="674 samples", scaling="zscore")


def make_study(epochs: int) -> Study:
    """Declare the grid."""
    return Study(
        name="benchmark",
        data="674 samples",
        model={"activation": "sigmoid"},
        training={"epochs": epochs, "batch_size": BATCH},
        grid={"model.hidden": [[size] for size in HIDDEN], "training.learning_rate": list(RATES)},
        folds=FOLDS,
    )


def time_plain_epoch(data: Data, hidden: int, *, epochs: int) -> float:
    """Return the seconds of an epoch of one cell, trained as most people write it, and measured once."""
    samples = data.folds(FOLDS)[0].train
    assert isinstance(samples, Part)
    model = models.mlp([10, hidden, 7], "sigmoid").train()
    optimizer = torch.optim.Adam(model.parameters(), lr=RATES[0])
    criterion = nn.CrossEntropyLoss()
    batches = DataLoader(TensorDataset(samples.x, samples.y), batch_size=BATCH, shuffle=True)
    start = time.perf_counter()
    for _ in range(epochs):
        for x, y in batches:
            optimizer.zero_grad()
            criterion(model(x), y).backward()
            optimizer.step()
    return (time.perf_counter() - start) / epochs


def time_plain_loop(data: Data, *, sampled: int, epochs: int) -> float:
    """Extrapolate the plain loop over all cells from a few epochs of every hidden size."""
    per_epoch = [time_plain_epoch(data, hidden, epochs=sampled) for hidden in HIDDEN]
    return sum(per_epoch) * epochs * len(RATES) * FOLDS


def time_study(data: Data, epochs: int, workers: int) -> dict[str, float]:
    """Run the whole study in a fresh folder and take its times apart."""
    with tempfile.TemporaryDirectory() as folder:
        study, out = make_study(epochs), Path(folder) / "study"
        start, driver = time.time(), time.process_time()
        results = study.run(out, data=data, workers=workers)
        total = time.time() - start
        return {**times_of(results), "total": total, "driver": time.process_time() - driver}


def times_of(results: Results) -> dict[str, float]:
    """Return start-up, the time from the first task handed out to the last result recorded, and what was computed."""
    driver = results.facts["driver"]
    return {
        "startup": driver["ready"] - driver["began"],
        "running": results.facts["ended"] - driver["ready"],
        "computed": float(results.cells["seconds"].sum()),
        "cells": float((results.cells["state"] == "done").sum()),
    }


def main() -> None:
    """Time plain loop and studies in turn, and write what was found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=EPOCHS)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--sampled", type=int, default=20, help="epochs of the plain loop that are timed")
    chosen = parser.parse_args()
    torch.set_num_threads(1)
    data, plain = make_data(), []
    studies: dict[int, list[dict[str, float]]] = {1: [], 2: []}
    for _ in range(chosen.rounds):
        plain.append(time_plain_loop(data, sampled=chosen.sampled, epochs=chosen.epochs))
        for workers, rounds in studies.items():
            rounds.append(time_study(data, chosen.epochs, workers))
    figures = [
        figure_of(f"plain loop over cells, one process (extrapolated from {chosen.sampled} epochs)", plain, "rival")
    ]
    notes = []
    for workers, rounds in studies.items():
        best = min(rounds, key=lambda found: found["total"])
        idle = 1 - best["computed"] / workers / best["running"]
        name = "study, in process" if workers == 1 else "study, two workers, their start-up included"
        figures.append(figure_of(name, [found["total"] for found in rounds], "ours" if workers > 1 else "variant"))
        notes.append(f"{name}: not computing while running {idle:.1%}, start-up {best['startup']:.1f} s")
    command = f"python -m benchmarks.study --rounds {chosen.rounds}"
    found = Sheet(**stamp(command), figures=tuple(figures), notes={"idle": "; ".join(notes).capitalize() + "."})
    print(write_results("study", found))


def figure_of(name: str, seconds: list[float], role: Role) -> Figure:
    """Return the seconds of rounds as a figure."""
    return Figure(case="210 trainings", contender=name, measure="seconds", values=tuple(seconds), role=role)


if __name__ == "__main__":
    main()
