"""What a fit of our estimators takes beside scikit-learn's, on tables of 500 rows and 10 columns; processor time.

`MLPClassifier` and `MLPRegressor` have their own settings, ours the effort `quick`; both are fitted a first time that
does not count. The limit is three times what scikit-learn's takes, and 2 s. Scores are of 4,000 other rows: accuracy of
classes, R² of numbers, mean ROC AUC of labels, scikit-learn's networks behind a `StandardScaler`.
"""

import argparse
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy
from numpy.typing import NDArray
from sklearn.datasets import make_classification, make_friedman1, make_multilabel_classification
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import roc_auc_score
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from benchmarks.paging.records import Figure, Sheet
from benchmarks.paging.writing import stamp, write_results
from topiarist import RightSizedClassifier, RightSizedRegressor
from topiarist.models.evaluation import count_parameters

ROWS, COLUMNS, OTHERS = 500, 10, 4_000
TIMES, MORE = 3, 2.0  # the limit: so many times what scikit-learn's takes, and so many seconds
THEIRS, LIMIT = "scikit-learn's network", "our limit"
Samples = tuple[NDArray[Any], NDArray[Any]]


@dataclass(frozen=True)
class Table:
    """A generated table, and whether its target is a number."""

    name: str
    make: Callable[[int], Samples]
    numbers: bool = False


def three_targets(seed: int) -> Samples:
    """Make friedman1 and two more numbers that follow from its columns."""
    x, y = make_friedman1(ROWS + OTHERS, COLUMNS, noise=1.0, random_state=seed)
    noise = numpy.random.default_rng(seed).normal(size=(2, len(x)))
    return x, numpy.stack([y, 10 * x[:, 0] * x[:, 5] + noise[0], numpy.sin(6 * x[:, 1]) + x[:, 6] + noise[1] / 5], 1)


TABLES = (
    Table("two classes", lambda seed: make_classification(ROWS + OTHERS, COLUMNS, n_informative=6, random_state=seed)),
    Table(
        "five classes",
        lambda seed: make_classification(ROWS + OTHERS, COLUMNS, n_informative=8, n_classes=5, random_state=seed),
    ),
    Table(
        "a number",
        lambda seed: make_friedman1(ROWS + OTHERS, COLUMNS, noise=1.0, random_state=seed),
        numbers=True,
    ),
    Table("three numbers", three_targets, numbers=True),
    Table(
        "five labels",
        lambda seed: make_multilabel_classification(ROWS + OTHERS, COLUMNS, n_classes=5, random_state=seed),
    ),
)


def fitted(model: Any, x: NDArray[Any], y: NDArray[Any]) -> tuple[Any, float]:
    """Return an estimator after its fit, and the processor time that this took."""
    begun = time.process_time()
    return model.fit(x, y), time.process_time() - begun


def score(model: Any, x: NDArray[Any], y: NDArray[Any], *, numbers: bool) -> float:
    """Return accuracy, R², or the mean ROC AUC of several labels."""
    if numbers or y.ndim == 1:
        return float(model.score(x, y))
    return float(roc_auc_score(y, model.predict_proba(x)))


def main() -> None:
    """Fit both on every table, print what that took, and write it down."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3, help="fits of each with another seed")
    parser.add_argument("--table", choices=[table.name for table in TABLES], help="this one only; nothing is written")
    options = parser.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)
    figures: list[Figure] = []
    for table in TABLES:
        if options.table in (None, table.name):
            found = measured(table, options.rounds)
            print(
                table.name,
                *(f"{each.contender} {each.measure} {each.values}" for each in found),
                sep="\n  ",
                flush=True,
            )
            figures += found
    if options.table is None:
        command = f"python -m benchmarks.estimator --rounds {options.rounds}"
        print(write_results("estimator", Sheet(**stamp(command, ["scikit-learn"]), figures=tuple(figures))))


def measured(table: Table, rounds: int) -> list[Figure]:
    """Return what both take on a table, and how good they are, once for each seed."""
    theirs, ours = (MLPRegressor, RightSizedRegressor) if table.numbers else (MLPClassifier, RightSizedClassifier)
    seconds, scores, smaller = [], [], []
    for seed in range(-1, rounds):
        x, y = table.make(max(seed, 0))
        _, first = fitted(theirs(random_state=max(seed, 0)), x[:ROWS], y[:ROWS])
        scaled = make_pipeline(StandardScaler(), theirs(random_state=max(seed, 0))).fit(x[:ROWS], y[:ROWS])
        two, second = fitted(ours(random_state=max(seed, 0)), x[:ROWS], y[:ROWS])
        if seed < 0:  # what is imported and prepared the first time
            continue
        seconds.append((first, second))
        scores.append([score(each, x[ROWS:], y[ROWS:], numbers=table.numbers) for each in (scaled, two)])
        smaller.append(count_parameters(two.baseline_) / count_parameters(two.model_))
    (theirs_seconds, our_seconds), (their_scores, our_scores) = zip(*seconds, strict=True), zip(*scores, strict=True)
    limits = tuple(TIMES * each + MORE for each in theirs_seconds)
    their, own = (
        {"case": table.name, "contender": name, "role": role} for name, role in ((THEIRS, "rival"), ("ours", "ours"))
    )
    return [
        Figure(measure="seconds of a fit", values=theirs_seconds, **their),
        Figure(measure="seconds of a fit", values=our_seconds, **own),
        Figure(measure="seconds of a fit", values=limits, case=table.name, contender=LIMIT, role="aim"),
        Figure(measure="score", values=their_scores, **their),
        Figure(measure="score", values=our_scores, **own),
        Figure(measure="times fewer parameters", values=tuple(smaller), **own),
    ]


if __name__ == "__main__":
    main()
