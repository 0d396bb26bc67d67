"""Ten folds trained as one, side by side with what people do today; one core, one run.

Ten folds of a 10–100–7 network on 674 samples, batch 32, Adam, the same initial learning rate and epochs for all:
a plain PyTorch loop with `DataLoader`, the same without `DataLoader`, scikit-learn's `MLPClassifier`, our loop one
network at a time (autograd), and our stack. Then the same network with batch norm and dropout. Then a 10–100–1 network
predicts a number (friedman1), beside scikit-learn's `MLPRegressor` with the same settings, and with the settings that
it has by default. Times are processor time. `python -m benchmarks.stacked_training [--rounds 5]`.
"""

import argparse
import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy
import torch
from sklearn.datasets import make_classification, make_friedman1
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import r2_score
from sklearn.neural_network import MLPClassifier, MLPRegressor
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from benchmarks.paging.records import Figure, Role, Sheet
from benchmarks.paging.writing import stamp, write_results
from topiarist import Data, TrainConfig, models, train_many
from topiarist.data import Part
from topiarist.randomness import generator, isolated
from topiarist.training.inference import predict_logits

FOLDS, SIZES, RATE, BATCH = 10, (10, 100, 7), 0.01, 32
ONE_BY_ONE, STACKED = "ours, one network after the other (autograd)", "ours, stacked"
ROLES: dict[str, Role] = {ONE_BY_ONE: "variant", STACKED: "ours"}
Run = Callable[[], Any]


@dataclass(frozen=True)
class Settings:
    """An activation, as we and scikit-learn call it, with a batch and a rate."""

    ours: str
    theirs: str
    batch: int
    rate: float


SETTINGS = (Settings("sigmoid", "logistic", BATCH, RATE), Settings("relu", "relu", 200, 0.001))  # the latter: defaults


def make_folds() -> list[Data]:
    """Make 674 samples with 10 features and 7 classes that overlap, in ten stratified folds."""
    x, y = make_classification(
        674, 10, n_informative=8, n_redundant=0, n_classes=7, n_clusters_per_class=1, class_sep=1.0, random_state=0
    )
    return Data.from_arrays(x, y, name="674 samples", scaling="zscore").folds(FOLDS)


def part(data: Data, name: str) -> Part:
    """Return a part, which is in memory."""
    found = getattr(data, name)
    assert isinstance(found, Part)
    return found


def network(fold: int, *, extras: bool) -> nn.Module:
    """Make the network of a fold; all contestants but scikit-learn start from the same weights."""
    more = {"batch_norm": "before", "dropout": 0.2} if extras else {}
    return models.mlp(SIZES, "sigmoid", generator=generator(fold, "weights"), **more)  # type: ignore[arg-type]


def plain_loop(folds: list[Data], epochs: int, *, loader: bool, extras: bool) -> list[nn.Module]:
    """Train as most people write it: one network after the other, autograd, torch.optim."""
    trained = []
    for fold, data in enumerate(folds):
        model, samples = network(fold, extras=extras).train(), part(data, "train")
        optimizer = torch.optim.Adam(model.parameters(), lr=RATE)
        criterion = nn.CrossEntropyLoss()
        batches = DataLoader(TensorDataset(samples.x, samples.y), batch_size=BATCH, shuffle=True)
        for _ in range(epochs):
            order = torch.randperm(len(samples))
            pieces = ((samples.x[rows], samples.y[rows]) for rows in torch.split(order, BATCH))
            for x, y in batches if loader else pieces:
                optimizer.zero_grad()
                criterion(model(x), y).backward()
                optimizer.step()
        trained.append(model.eval())
    return trained


def ours(folds: list[Data], epochs: int, *, stacked: bool, extras: bool) -> list[nn.Module]:
    """Train with `train_many`."""
    trained = [network(fold, extras=extras) for fold in range(len(folds))]
    train_many(trained, folds, TrainConfig(epochs=epochs, learning_rate=RATE, batch_size=BATCH), stacked=stacked)
    return trained


def scikit_learn(folds: list[Data], epochs: int) -> list[MLPClassifier]:
    """Train scikit-learn's network with the same settings, without its stopping rule."""
    trained = []
    for fold, data in enumerate(folds):
        model = MLPClassifier(
            SIZES[1:2], activation="logistic", batch_size=BATCH, learning_rate_init=RATE, alpha=0.0, max_iter=epochs,
            n_iter_no_change=epochs + 1, random_state=fold,
        )  # fmt: skip
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model.fit(part(data, "train").x.numpy(), part(data, "train").y.numpy())
        trained.append(model)
    return trained


def accuracies(trained: list[nn.Module] | list[MLPClassifier], folds: list[Data]) -> tuple[float, ...]:
    """Return the test accuracy of each fold, in per cent."""
    found = []
    for model, data in zip(trained, folds, strict=True):
        test = part(data, "test")
        if isinstance(model, nn.Module):
            predicted = predict_logits(model, test.x).argmax(dim=1).numpy()
        else:
            predicted = model.predict(test.x.numpy())
        found.append(100 * float(numpy.mean(predicted == test.y.numpy())))
    return tuple(found)


def regressors(folds: list[Data], settings: Settings, epochs: int) -> list[MLPRegressor]:
    """Train scikit-learn's network for a number, without its stopping rule."""
    trained = []
    for fold, data in enumerate(folds):
        model = MLPRegressor(
            hidden_layer_sizes=(100,), activation=settings.theirs, batch_size=settings.batch, alpha=0.0,
            learning_rate_init=settings.rate, max_iter=epochs, n_iter_no_change=epochs + 1, random_state=fold,
        )  # fmt: skip
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            trained.append(model.fit(part(data, "train").x.numpy(), part(data, "train").y[:, 0].numpy()))
    return trained


def our_regressors(
    folds: list[Data], settings: Settings, epochs: int, *, stacked: bool, dtype: torch.dtype = torch.float32
) -> list[nn.Module]:
    """Train our network for a number with `train_many`."""
    weights = [generator(fold, "weights") for fold in range(len(folds))]
    made: list[nn.Module] = [models.mlp([10, 100, 1], settings.ours, generator=own).to(dtype) for own in weights]
    config = TrainConfig(epochs=epochs, learning_rate=settings.rate, batch_size=settings.batch)
    train_many(made, folds, config, stacked=stacked)
    return made


def numbers(epochs: int, rounds: int) -> list[Figure]:
    """Time stacks of regressions beside `MLPRegressor`, and measure how good they are, and how alike to one by one."""
    x, y = make_friedman1(674, 10, noise=1.0, random_state=0)
    folds = Data.from_arrays(x, y, name="674 samples", scaling="auto").folds(FOLDS)
    figures = []
    for settings in SETTINGS:
        contestants: dict[str, Run] = {
            "scikit-learn's `MLPRegressor`": partial(regressors, folds, settings, epochs),
            ONE_BY_ONE: partial(our_regressors, folds, settings, epochs, stacked=False),
            STACKED: partial(our_regressors, folds, settings, epochs, stacked=True),
        }
        case = f"{settings.ours}, batch {settings.batch}, Adam at {settings.rate}"
        figures += timed("numbers", case, contestants, partial(explained, folds=folds), "R²", rounds)
    alone, together = (
        our_regressors(folds, SETTINGS[0], epochs, stacked=each, dtype=torch.float64) for each in (False, True)
    )
    apart = max(
        float((one - two).detach().abs().max())
        for pair in zip(alone, together, strict=True)
        for one, two in zip(*(each.parameters() for each in pair), strict=True)
    )
    weights = {"case": "weights in float64", "contender": STACKED, "measure": "difference"}
    return [*figures, Figure(table="alike", values=(apart,), **weights)]


def explained(trained: list[nn.Module] | list[MLPRegressor], folds: list[Data]) -> tuple[float, ...]:
    """Return the R² of the test part of each fold."""
    found = []
    for model, data in zip(trained, folds, strict=True):
        test = part(data, "test")
        if isinstance(model, nn.Module):
            answers = predict_logits(model, test.x)[:, 0].numpy()
        else:
            answers = model.predict(test.x.numpy())
        found.append(float(r2_score(test.y[:, 0].numpy(), answers)))
    return tuple(found)


def classes(epochs: int, rounds: int) -> list[Figure]:
    """Time every way to train networks that tell classes, without and with batch norm and dropout."""
    folds, figures = make_folds(), []
    for case, extras in (("plain", False), ("batch norm and dropout", True)):
        contestants: dict[str, Run] = {
            "plain PyTorch loop, `DataLoader`": partial(plain_loop, folds, epochs, loader=True, extras=extras),
            "plain PyTorch loop, indexing": partial(plain_loop, folds, epochs, loader=False, extras=extras),
            "scikit-learn's `MLPClassifier`": partial(scikit_learn, folds, epochs),
            ONE_BY_ONE: partial(ours, folds, epochs, stacked=False, extras=extras),
            STACKED: partial(ours, folds, epochs, stacked=True, extras=extras),
        }
        if extras:  # scikit-learn has neither
            del contestants["scikit-learn's `MLPClassifier`"]
        figures += timed("classes", case, contestants, partial(accuracies, folds=folds), "accuracy, %", rounds)
    return figures


def timed(
    table: str,
    case: str,
    contestants: Mapping[str, Run],
    judge: Callable[[Any], tuple[float, ...]],
    measure: str,
    rounds: int,
) -> list[Figure]:
    """Time every contestant in turn, several rounds, and judge what it trained last."""
    seconds: dict[str, list[float]] = {name: [] for name in contestants}
    judged: dict[str, tuple[float, ...]] = {}
    for _ in range(rounds):
        for name, run in contestants.items():
            with isolated(0):
                start = time.process_time()
                trained = run()
                seconds[name].append(time.process_time() - start)
            judged[name] = judge(trained)
    figures = []
    for name, times in seconds.items():
        role: Role = ROLES.get(name, "rival")
        common: dict[str, Any] = {"table": table, "case": case, "contender": name, "role": role}
        figures += [
            Figure(measure="seconds", values=tuple(times), **common),
            Figure(measure=measure, values=judged[name], **common),
        ]
    return figures


def main() -> None:
    """Measure both, and write what was found."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epochs", type=int, default=40)
    parser.add_argument("--rounds", type=int, default=5)
    chosen = parser.parse_args()
    torch.set_num_threads(1)
    figures = [*classes(chosen.epochs, chosen.rounds), *numbers(chosen.epochs, chosen.rounds)]
    command = f"python -m benchmarks.stacked_training --epochs {chosen.epochs} --rounds {chosen.rounds}"
    print(write_results("stacked_training", Sheet(**stamp(command, ["scikit-learn"]), figures=tuple(figures))))


if __name__ == "__main__":
    main()
